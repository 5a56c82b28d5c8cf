"""The notebooks: what becomes of each directive and role, whose numbers they have, and how they are kept in step."""

import re
from pathlib import Path

import nbformat
import notebook_builder
import pytest
import sync_notebooks
import yaml
from book import ROOT, Book
from faulty_page import FAULTY
from raw_markup import raw_markup
from toy_book import HEADER, SITE, write_toy_book
from toy_site import build
from words_kept import words_lost

NAME = "chapters/01_small"


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
    return sync_notebooks.convert(book, NAME)


@pytest.fixture(scope="module")
def text(notebook) -> str:
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def test_numbers_are_those_of_the_executed_site(root, book):
    config = yaml.safe_load((ROOT / "_config.yml").read_text())["sphinx"]["config"]
    (root / "conf.py").write_text(
        f"import sys; sys.path.insert(0, {str(ROOT / '_ext')!r})\n"
        "extensions = ['myst_nb', 'sphinx_external_toc', 'sphinx_design', 'sphinx_exercise', 'sphinx_proof',"
        " 'sphinxcontrib.bibtex', 'book_meaning']\n"
        "bibtex_bibfiles = ['references.bib']; external_toc_path = '_toc.yml'; nb_execution_mode = 'force'\n"
        "myst_enable_extensions = ['colon_fence', 'dollarmath', 'amsmath', 'deflist']\n"
        "html_theme_options = {'repository_url': 'https://github.com/owner/name'}\n"
        f"numfig = {config['numfig']}; numfig_secnum_depth = {config['numfig_secnum_depth']}\n"
    )
    site = build(root, "dummy")[0].env
    here = book.built.env
    assert here.toc_secnumbers == site.toc_secnumbers
    assert here.toc_fignumbers == site.toc_fignumbers
    assert {"fig-small", "fig-drawn"} <= set(here.toc_fignumbers[NAME]["figure"])


def test_references_have_their_text_and_lead_to_the_site(text):
    assert (
        f"See [(2.2)]({SITE}/chapters/02_large.html#equation-eq-large-two), (1.1), Figure 1.1, "
        f"[Large things]({SITE}/chapters/02_large.html#sec-large), "
        f"[Part 1.2]({SITE}/chapters/01_small.html#sec-second)" in text
    )
    assert f"[Large things]({SITE}/chapters/02_large.html), " in text
    assert f"[the words]({SITE}/chapters/00_words.html#words)" in text
    assert "(1.1), Theorem 1.1, $x_1$, `pf.attend()` and" in text
    assert f"[tokens]({SITE}/appendix/sources.html#term-token)" in text
    assert "[the module](https://github.com/owner/name/blob/main/src/toy/sums.py)" in text


def test_sources_are_named_with_a_link_to_each(text):
    trio = "https://arxiv.org/abs/1706.03762"
    assert f"Vaswani *et al.* ([2017]({trio}))" in text
    assert f"([Bishop, 2024](https://doi.org/10.1/x); [Vaswani *et al.*, 2017]({trio}))" in text


def test_code_and_mathematics_are_left_alone(text):
    assert "Neither $a[i](j)$ nor `{eq}` in code nor ``{eq}`x` `` is touched, and \\$5 is no mathematics." in text
    assert 'print("{note}")' in text


def test_equations_carry_the_number(text):
    assert "$$\n\\begin{aligned}\nx &= y \\\\ \nz &= " in text
    assert "\\end{aligned} \\tag{1.1}\n$$" in text
    assert "p = \\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}\n\\end{aligned} \\tag{1.2}\n$$" in text


def test_notes_are_quoted_and_their_mathematics_stays_on_one_line(text):
    assert "> **Note.**\n>\n> A sum $a + b$ with\n>\n> $$ s = a + b \\tag{1.3} $$" in text
    assert '> **A *title*.**\n>\n> ```python\n> print("{note}")\n> ```' in text
    assert "> **Aside.**\n>\n> Small (1.1)." in text


def test_a_dropdown_is_folded(book):
    cells = [cell.source for cell in book.built.cells["chapters/02_large"] if cell.cell_type == "markdown"]
    folded = "<details>\n<summary><b>Letters</b></summary>\n\nA folded table.\n\n| letter | meaning |\n| --- | --- |\n"
    assert f"{folded}| $x$ | a number |\n\n</details>" in "\n\n".join(cells)


def test_figures_become_words_and_a_link(text):
    assert (
        f"> **Figure 1.1**, to be moved [on the page]({SITE}/chapters/01_small.html#fig-small). "
        "A caption with (1.2).\n>\n> And more.\n>\n> *What it shows:* three dots" in text
    )
    assert f"> **Figure 1.2**, shown [on the page]({SITE}/chapters/01_small.html#fig-still). It stands still." in text
    assert f"> *A dot* ([shown on the page]({SITE}/chapters/01_small.html))\n>\n> — Somebody" in text


def test_drawing_is_seen_before_anything_has_run(text):
    assert f"![three boxes]({SITE}/_images/boxes.svg)\n\n> **Figure 1.3.** Boxes, see (1.1)." in text


def test_a_cell_that_draws_is_followed_by_its_caption(notebook):
    drawing, caption = notebook.cells[-2:]
    assert drawing.source.startswith("from IPython.display import SVG")
    assert caption.source == "> **Figure 1.4.** Drawn, see (1.1).\n>\n> *What it shows:* a line"


def test_listing_shows_what_computes_and_leads_to_the_source(text):
    source = "https://github.com/owner/name/blob/main/src/toy/sums.py"
    code = "```python\n@functools.cache\ndef double(x):\n    return 2 * x\n```"
    assert f"{code}\n\n[sums.py]({source})" in text
    assert "**Listing 1.1.** A command, see (1.1)\n\n```console\n$ make\n```" in text
    assert "````markdown\n```python\n1\n```\n````" in text, "the fence is no longer than one in the code"


def test_tables_theorems_lists_and_definitions(text):
    assert "**Table 1.1.** Names\n\n| a | b |\n| --- | --- |\n| 1 | 2 \\| 3 |" in text, "a bar in a cell is not escaped"
    assert "**Table 1.2.** Sizes\n\n| name | $n$ |\n| --- | --- |\n| three | 3 |" in text
    assert "> **Theorem 1.1 (Little).** It holds." in text
    assert "> *Proof.* Clear. ∎" in text
    assert "- an item\n\n  > **Tip.**\n  >\n  > inside\n\n- another\n\n" in text
    assert "\n\n3. three\n4. four\n\n" in text, "the list does not begin at 3"
    assert "**word**  \nits meaning" in text
    assert "comment" not in text.replace("not a comment", "")


def test_exercises_are_numbered_and_solutions_folded(text):
    assert "**Exercise 1.1 (Add).** Show (1.2)." in text
    assert (
        "<details>\n<summary><b>Solution to Exercise 1.1</b></summary>\n\nThus $1$:\n\n```python\n1\n```\n\n</details>"
        in text
    )
    assert "**Exercise 1.2 (Code).** Write it." in text
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
    assert (ROOT / notebook_builder.INSTALL_DATA.split("/main/")[1]).is_file()


def test_no_word_of_a_page_is_lost(book):
    for name, cells in book.built.cells.items():
        assert not (lost := words_lost(book.built.trees[name], cells)), f"the notebook of {name} has lost {lost}"


def test_nothing_raw_is_left(text):
    assert raw_markup(text) == ""
    for raw in ("```{note}\nx\n```", "see {eq}`a`", ":::{tip}\nx\n:::", "> ```{note}"):
        assert raw_markup(raw), raw


def test_what_cannot_be_shown_or_found_is_an_error_at_its_line(tmp_path):
    write_toy_book(tmp_path)
    file = tmp_path / "chapters/02_large.md"
    file.write_text(HEADER + FAULTY)
    expected = {
        "```{strange}": "Unknown directive type: 'strange'",
        "{strange}`x`": 'Unknown interpreted text role "strange"',
        "{eq}`eq-nowhere`": "equation not found: eq-nowhere",
        "{cite:t}`nobody`": 'could not find bibtex key "nobody"',
        "{numref}`fig-nowhere`": "undefined label: 'fig-nowhere'",
        "{doc}`99_none`": "unknown document: '99_none'",
        "[b](99_none.md)": "cross-reference target not found: '99_none.md'",
        "```{listing} triple": "the package defines no triple",
        "```{drawing} nowhere": "drawing: there is no drawings/nowhere.svg",
        "| a verse": "a notebook cannot show this line_block yet",
        "## Again": "duplicate label sec-small",
        "$$ a $$": "duplicate label of equation eq-small-one",
        "{live-figure}": "duplicate label fig-small",
    }
    (tmp_path / "chapters/03_more.md").write_text(HEADER + "# More\n")
    book = Book(tmp_path)
    with pytest.raises(ValueError, match=r"_toc\.yml does not list it"):
        sync_notebooks.convert(book, "chapters/03_more")
    with pytest.raises(ValueError, match="WARNING") as raised:
        sync_notebooks.convert(book, "chapters/02_large")
    assert "duplicate label: ex-add" in str(raised.value)  # told without a line
    lines = file.read_text().splitlines()
    for mark, message in expected.items():
        number = next(number for number, line in enumerate(lines, start=1) if mark in line)
        found = re.search(rf"02_large\.md:(\d+): .*{re.escape(message)}", str(raised.value))
        assert found, f"{message} is missing in {raised.value}"
        assert abs(int(found[1]) - number) <= 2, f"{message} is told at line {found[1]}, and is at {number}"


def test_ids_change_with_their_own_cell_only(notebook):
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


def test_clean_refuses_what_the_next_run_would_not_give_and_standard_error_wherever_it_stands():
    warned = nbformat.v4.new_output("stream", name="stderr", text="a warning")
    for outputs, message in (
        ([stream("<object at 0x7f3a5c0b1d90>")], "at 0x7f3a5c0b1d90"),
        ([stream(f"file {ROOT}/x.py")], "different elsewhere"),
        ([stream("a"), warned], "standard error"),
        ([warned, stream("a")], "standard error"),
    ):
        with pytest.raises(ValueError, match=message):
            sync_notebooks.clean(outputs)


def stream(text: str):
    return nbformat.v4.new_output("stream", name="stdout", text=text)


def test_drift_is_told(root, book, notebook):
    name, file = NAME, root / "chapters/01_small.ipynb"
    assert "is missing: run `make notebooks`" in sync_notebooks.drift(book, name)
    sync_notebooks.write(notebook, file)
    assert sync_notebooks.drift(book, name) == ""
    assert not list(file.parent.glob("*.part"))
    file.write_text(file.read_text().replace("And so on.", "And on."))
    assert "run `make notebooks` and commit both (first difference: cell 4, 'And so on.')" in (
        sync_notebooks.drift(book, name)
    )
    for number, cell in enumerate(notebook.cells, start=1):
        changed = nbformat.from_dict({**notebook, "cells": [*notebook.cells]})
        changed.cells[number - 1] = nbformat.from_dict({**cell, "metadata": {"tags": ["other"]}})
        sync_notebooks.write(changed, file)
        assert f"first difference: cell {number})" in sync_notebooks.drift(book, name), f"of cell {number}, the tags"
    changed.cells = notebook.cells[:-1]
    sync_notebooks.write(changed, file)
    assert f"(it has {number - 1} cells; now there are {number})" in sync_notebooks.drift(book, name)


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
