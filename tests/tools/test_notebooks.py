"""The notebooks' converter: what it does to each directive and role, and that its numbers are the site's."""

import pickle
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import sync_notebooks
import yaml
from book import ROOT, Book, blocks
from notebook_markdown import Converter, raw_markup
from toy_book import SITE, write_toy_book


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("toy_book")
    write_toy_book(root)
    return root


@pytest.fixture(scope="module")
def book(root) -> Book:
    return Book(root)


@pytest.fixture(scope="module")
def notebook(book):
    return sync_notebooks.convert(book, "chapters/01_small")


@pytest.fixture(scope="module")
def text(notebook) -> str:
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def test_numbers_are_those_that_sphinx_gives(root, book):
    config = yaml.safe_load((ROOT / "_config.yml").read_text())["sphinx"]["config"]
    (root / "conf.py").write_text(
        f"import sys; sys.path.insert(0, {str(ROOT / '_ext')!r})\n"
        "extensions = ['myst_nb', 'sphinx_external_toc', 'sphinx_exercise', 'sphinx_proof', 'sphinxcontrib.bibtex',"
        " 'listing', 'live_figure']\n"
        "bibtex_bibfiles = ['references.bib']; external_toc_path = '_toc.yml'; nb_execution_mode = 'force'\n"
        "myst_enable_extensions = ['colon_fence', 'dollarmath', 'amsmath', 'deflist']\n"
        "html_theme_options = {'repository_url': 'https://github.com/owner/name'}\n"
        f"numfig = {config['numfig']}; numfig_secnum_depth = {config['numfig_secnum_depth']}\n"
    )
    subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-b", "dummy", str(root), str(root / "_build")],
        check=True,
        capture_output=True,
        text=True,
    )
    environment = pickle.loads((root / "_build/.doctrees/environment.pickle").read_bytes())
    given = {
        (page, anchor): ".".join(map(str, number))
        for page, kinds in environment.toc_fignumbers.items()
        for numbers in kinds.values()
        for anchor, number in numbers.items()
    }
    for page, sections in environment.toc_secnumbers.items():
        given |= {(page, anchor.lstrip("#")): ".".join(map(str, number)) for anchor, number in sections.items()}
    # Sphinx knows a section by its title, and the page's first section by its page.
    where = {name: (label.page.name, label.anchor) for name, label in book.labels.items() if label.number}
    where |= {"sec-second": ("chapters/01_small", "second"), "sec-large": ("chapters/02_large", "")}
    where["sec-small"] = ("chapters/01_small", "")
    assert {name: book.labels[name].number for name in where} == {name: given[place] for name, place in where.items()}
    assert {"eq-after", "fig-small", "tab-small", "ex-last", "thm-small", "eq-small-three"} <= set(where)
    assert [book.labels[name].number for name in ("eq-after", "fig-words", "eq-large-two")] == ["3", "2", "2.2"]


def test_references_are_numbered_and_lead_to_the_site(text):
    assert (
        f"See [(2.2)]({SITE}/chapters/02_large.html#equation-eq-large-two), (1.1), Figure 1.1, "
        f"[Large things]({SITE}/chapters/02_large.html#sec-large), "
        f"[Part 1.2]({SITE}/chapters/01_small.html#sec-second)" in text
    )
    assert f"[Large things]({SITE}/chapters/02_large.html), " in text
    assert f"[the words]({SITE}/chapters/00_words.html#sec-words)" in text
    assert "(1.1), Theorem 1.1, $x_1$, `pf.attend`" in text
    assert "[the module](https://github.com/owner/name/blob/main/src/toy/sums.py)" in text


def test_sources_are_named_with_a_link_to_each(text):
    trio = "https://arxiv.org/abs/1706.03762"
    assert f"[Vaswani et al. (2017)]({trio})" in text
    assert f"([Bishop, 2024](https://doi.org/10.1/x); [Vaswani et al., 2017]({trio}))" in text


def test_code_and_mathematics_are_left_alone(text):
    assert "Neither $a[i](j)$ nor `{eq}` in code nor ``{eq}`x` `` is touched, and \\$5 is no mathematics." in text
    assert 'print("{note}")' in text


def test_equations_carry_the_number(text):
    assert "$$\n\\begin{aligned}\nx &= y \\\\ \nz &= " in text
    assert "\\end{aligned} \\tag{1.1}\n$$" in text
    assert "$$\np = \\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix} \\tag{1.2}\n$$" in text


def test_notes_are_quoted_and_their_mathematics_stays_on_one_line(text):
    assert "> **Note.**\n>\n> A sum $a + b$ with\n>\n> $$ s = a + b \\tag{1.3} $$" in text
    assert '> **A *title*.**\n>\n> ```python\n> print("{note}")\n> ```' in text
    assert "> **Aside.**\n>\n> Small (1.1)." in text


def test_figures_become_words_and_a_link(text):
    assert (
        f"> **Figure 1.1**, to be moved [on the page]({SITE}/chapters/01_small.html#fig-small). "
        "A caption with (1.2).\n>\n> And more.\n>\n> *What it shows:* three dots" in text
    )


def test_a_cell_that_draws_is_followed_by_its_caption(notebook):
    drawing, caption = notebook.cells[-2:]
    assert drawing.source.startswith("from IPython.display import SVG")
    assert caption.source == "> **Figure 1.2.** Drawn, see (1.1).\n>\n> *What it shows:* a line"


def test_listing_shows_what_computes_and_leads_to_the_source(text):
    source = "https://github.com/owner/name/blob/main/src/toy/sums.py"
    code = "```python\n@functools.cache\ndef double(x):\n    return 2 * x\n```"
    assert f"{code}\n\n[sums.py]({source})" in text


def test_tables_theorems_lists_and_definitions(text):
    assert "**Table 1.1.** Names\n\n| a | b |" in text
    assert "**Table 1.2.** Sizes\n\n| name | $n$ |\n| --- | --- |\n| three | 3 |" in text
    assert "> **Theorem 1.1 (Little).** It holds." in text
    assert "> *Proof.* Clear. ∎" in text
    assert "- an item\n\n  > **Tip.**\n  >\n  > inside\n\n- another" in text
    assert "**word**  \nits meaning" in text
    assert "comment" not in text.replace("not a comment", "")


def test_exercises_are_numbered_and_solutions_folded(text):
    assert "**Exercise 1.1 (Add).** Show (1.2)." in text
    assert (
        "<details>\n<summary><b>Solution to Exercise 1.1</b></summary>\n\nThus $1$:\n\n```python\n1\n```\n\n</details>"
        in text
    )
    assert "**Exercise 1.2 (Code).**\n\nWrite it." in text
    assert "**Solution to Exercise 1.2.** *The solution is folded" in text
    folded = "<details>\n<summary>Show the text</summary>\n\nAnd so on.\n\n</details>\n\n*End of the solution.*"
    assert folded in text
    assert "**Exercise 1.3.** Again." in text
    assert "<details>\n<summary><b>Solution to Exercise 1.3</b></summary>\n\nShort.\n\n</details>" in text


def test_a_solution_that_spans_cells_has_its_code_folded(notebook):
    install, answer, shown = [cell for cell in notebook.cells if cell.cell_type == "code"]
    folded = {"jupyter": {"source_hidden": True}, "cellView": "form"}
    assert install.metadata == {"tags": ["install"]}
    assert answer.metadata == folded
    assert shown.metadata == {"tags": ["hide-input"], **folded}


def test_install_cell_comes_first_and_pins_nothing(notebook):
    install = notebook.cells[0].source
    assert '%pip install --quiet "plainformer @ git+https://github.com/owner/name"' in install
    assert "jax" not in install


def test_nothing_raw_is_left(text):
    assert raw_markup(text) == ""
    for raw in ("```{note}\nx\n```", "see {eq}`a`", ":::{tip}\nx\n:::", "> ```{note}"):
        assert raw_markup(raw), raw


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("```{strange}\nx\n```", r"cannot show the directive \{strange\}"),
        ("a {strange}`x`", r"cannot show the role \{strange\}"),
        ("a {eq}`eq-nowhere`", "nothing in the book has the label 'eq-nowhere'"),
        ("a {cite:t}`nobody`", "no source 'nobody' in references.bib"),
        ("a [b](99_none.md)", "there is no page '99_none.md'"),
        ("\\begin{align}\na\n\\end{align}", "write this equation in a {math} directive"),
    ],
)
def test_what_cannot_be_shown_is_an_error(book, source, message):
    with pytest.raises(ValueError, match=message):
        Converter(book, book.pages["chapters/01_small"]).cell(source)


def test_blocks_keep_every_line_of_text():
    text = "a\n\n- b\n  ```{note}\n  c\n  ```\n- d\n\n```python\ne\n```\nf"
    assert [block.kind for block in blocks(text)] == ["text", "directive", "text", "verbatim", "text"]


def test_ids_change_with_their_own_cell_only(book, notebook):
    before = [cell.id for cell in notebook.cells]
    assert len(set(before)) == len(before)
    notebook = nbformat.from_dict({"cells": [nbformat.v4.new_code_cell("new = 1"), *notebook.cells]})
    sync_notebooks.name_cells(notebook.cells)
    assert [cell.id for cell in notebook.cells[1:]] == before


def test_clean_keeps_text_and_strips_images():
    figure = nbformat.v4.new_output("display_data", data={"image/png": "abc", "text/plain": "<Figure>"})
    kept = sync_notebooks.clean([stream("a"), stream("b"), figure])
    assert kept[0].text == "ab"
    assert kept[1].data == {"text/plain": "<Figure>"}


@pytest.mark.parametrize(
    ("output", "message"),
    [("<object at 0x7f3a5c0b1d90>", "at 0x7f3a5c0b1d90"), (f"file {ROOT}/x.py", "different elsewhere")],
)
def test_clean_refuses_what_the_next_run_would_not_give(output, message):
    with pytest.raises(ValueError, match=message):
        sync_notebooks.clean([stream(output)])


def test_clean_refuses_standard_error():
    with pytest.raises(ValueError, match="standard error"):
        sync_notebooks.clean([nbformat.v4.new_output("stream", name="stderr", text="a warning")])


def stream(text: str):
    return nbformat.v4.new_output("stream", name="stdout", text=text)


def test_drift_is_told(root, book, notebook):
    name, file = "chapters/01_small", root / "chapters/01_small.ipynb"
    assert "is missing: run `make notebooks`" in sync_notebooks.drift(book, name)
    sync_notebooks.write(notebook, file)
    assert sync_notebooks.drift(book, name) == ""
    assert not list(file.parent.glob("*.part"))
    file.write_text(file.read_text().replace("Write it.", "Write this."))
    assert "run `make notebooks` and commit both (first difference: cell 2, 'Write it.')" in (
        sync_notebooks.drift(book, name)
    )


def test_a_failing_cell_is_named(tmp_path):
    cells = [nbformat.v4.new_code_cell("a = 1"), nbformat.v4.new_code_cell("a / 0"), nbformat.v4.new_code_cell("b = 1")]
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=sync_notebooks.METADATA)
    with pytest.raises(ValueError, match=r"(?s)cell 2, 'a / 0', failed:.*ZeroDivisionError"):
        sync_notebooks.execute(notebook, tmp_path)


def test_executing_twice_gives_the_same_file(tmp_path):
    source = "import matplotlib.pyplot as plt\nfor i in range(50): print(i)\nfigure = plt.plot([1, 2])"
    texts = []
    for _ in range(2):
        cell = nbformat.v4.new_code_cell(source, id="a1")
        notebook = nbformat.v4.new_notebook(cells=[cell], metadata=sync_notebooks.METADATA)
        sync_notebooks.execute(notebook, tmp_path)
        sync_notebooks.write(notebook, tmp_path / "a.ipynb")
        texts.append((tmp_path / "a.ipynb").read_text())
    assert texts[0] == texts[1]
    assert "image/png" not in texts[0]
    assert "49" in texts[0]
