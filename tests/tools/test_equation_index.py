"""The index of the equations, on a toy book: what it lists, what it complains of, when it is made anew."""

import re
from pathlib import Path

import pytest
import toy_site
from book_meaning.equation_claims import implementations, mentions, missing, proofs
from toy_site import build

PAGES = ["chapters/00_words", *(f"chapters/0{number}_more" for number in range(1, 6))]
TREE = "```{toctree}\n:numbered: 2\n" + "\n".join(PAGES) + "\nappendix/api\nappendix/equations\n```\n"
WORDS = """\
# Words

## Sums of $x$

```{math}
:label: eq-words-sum
s = x + y
```

```{math}
:label: eq-words-x-definition
x = 1
```
"""
FILES = {
    "index.md": f"# Toy\n\n{TREE}",
    "chapters/00_words.md": WORDS,
    **{f"{page}.md": f"# More {page[-7:]}\n\nText.\n" for page in PAGES[1:]},
    "appendix/api.md": "# API\n\n```{eval-rst}\n.. py:function:: toy.words.Adder.add(x, y)\n```\n",
    "appendix/equations.md": "# Equations\n\n```{equation-index}\n```\n",
    "src/toy/words.py": 'class Adder:\n    def add(x, y):\n        """Add.\n\n        Implements `eq-words-sum`."""\n',
    "tests/test_words.py": 'import pytest\n\n\n@pytest.mark.equation("eq-words-sum")\ndef test_add_by_hand(): ...\n',
}
INDEX = "_build/appendix/equations.html"


def write(root: Path, **changes: str) -> None:
    """Write the toy book; a keyword such as `words` replaces the text of the one file that has this stem."""
    toy_site.write(root, {name: changes.get(Path(name).stem, text) for name, text in FILES.items()})


def complaints(root: Path, **options) -> str:
    """Build the toy book and return what Sphinx complained of."""
    return build(root, **options)[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("toy")
    write(root)
    assert complaints(root) == ""
    return root


def rows(root: Path) -> dict[str, str]:
    """The rows of the index: the HTML of each, by its id."""
    page = (root / INDEX).read_text("utf-8")
    return dict(re.findall(r'<tr class="[^"]*" id="([^"]+)">(.*?)</tr>', page, re.DOTALL))


def cells(row: str) -> list[str]:
    """The words in each cell of a row."""
    found = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
    inline = re.compile(r"<wbr>|</?(a|code|span)\b[^>]*>")
    return [" ".join(re.sub("<[^>]+>", " ", inline.sub("", cell)).split()) for cell in found]


def links(html: str) -> list[str]:
    return re.findall(r'href="([^"]+)"', html)


def test_index_lists_equation_code_and_tests(site):
    row = rows(site)["row-eq-words-sum"]
    equation = r"\[s = x + y\] Sums of \(x\) eq-words-sum"
    assert cells(row) == ["(1.1)", equation, "Adder.add in words.py", "test_add_by_hand"]
    assert links(row) == [
        "../chapters/00_words.html#equation-eq-words-sum",
        "api.html#toy.words.Adder.add",
        "https://github.com/owner/name/blob/main/src/toy/words.py#L2",
        "https://github.com/owner/name/blob/main/tests/test_words.py#L5",
    ]


def test_index_leaves_no_cell_of_a_definition_empty(site):
    assert list(rows(site)) == ["row-eq-words-sum", "row-eq-words-x-definition"]
    assert cells(rows(site)["row-eq-words-x-definition"])[2:] == [
        "a definition: nothing to compute",
        "a definition: nothing to prove",
    ]


def test_each_equation_links_to_its_row(site):
    page = (site / "_build/chapters/00_words.html").read_text("utf-8")
    found = re.findall(r'</div>\s*<p class="equation-row">(.*?)</p>', page, re.DOTALL)
    address = "../appendix/equations.html#row-eq-words"
    assert found == [
        f'<a href="{address}-sum" aria-label="code and tests of equation (1.1)">code and tests</a>',
        f'<a href="{address}-x-definition" aria-label="definition of equation (1.2)">definition</a>',
    ]


def test_no_link_is_made_without_an_index(tmp_path):
    write(tmp_path)
    (tmp_path / "appendix/equations.md").unlink()
    (tmp_path / "index.md").write_text(FILES["index.md"].replace("appendix/equations\n", ""))
    assert complaints(tmp_path) == ""
    assert "equation-row" not in (tmp_path / "_build/chapters/00_words.html").read_text("utf-8")


def test_parallel_build_makes_the_same_index(site, tmp_path):
    write(tmp_path)
    assert complaints(tmp_path, parallel=2) == ""
    assert rows(tmp_path) == rows(site)


def test_what_is_missing_is_a_warning_at_the_equation(tmp_path):
    """An equation without code and test, and code without an entry in the reference."""
    write(tmp_path)
    for name, before, after in [("src/toy/words.py", "Implements", "See"), ("tests/test_words.py", "sum", "other")]:
        (tmp_path / name).write_text(FILES[name].replace(before, after))
    first, second = complaints(tmp_path).splitlines()
    here = f"{tmp_path}/chapters/00_words.md:5: WARNING: equation index: "
    assert first.startswith(here + "no docstring says that it implements eq-words-sum")
    assert second.startswith(here + "no test is marked pytest.mark.equation with eq-words-sum")
    write(tmp_path, api="# API\n")
    assert "reference target not found: toy.words.Adder.add" in complaints(tmp_path)


def test_index_is_made_anew_when_what_it_lists_has_changed(tmp_path):
    write(tmp_path)
    build(tmp_path)
    made = (tmp_path / INDEX).stat().st_mtime_ns
    build(tmp_path)
    assert (tmp_path / INDEX).stat().st_mtime_ns == made
    new = FILES["tests/test_words.py"].replace("by_hand", "in_a_file_of_its_own")
    (tmp_path / "tests/test_more.py").write_text(new)
    build(tmp_path)
    assert "test_add_in_a_file_of_its_own" in cells(rows(tmp_path)["row-eq-words-sum"])[3]
    (tmp_path / "chapters/00_words.md").write_text(WORDS.replace("x-definition", "y-definition"))
    build(tmp_path)
    assert list(rows(tmp_path)) == ["row-eq-words-sum", "row-eq-words-y-definition"]


def test_index_is_made_anew_when_a_page_comes_or_goes_and_when_code_or_tests_move(tmp_path):
    """One thing at a time, since any of them is reason enough."""
    # Nobody has to edit this page, and the appendix keeps its numbers, so that nothing else makes Sphinx write it anew.
    chapters = "```{toctree}\n:numbered: 2\n:glob:\nchapters/*\n```\n"
    appendix = "```{toctree}\nappendix/api\nappendix/equations\n```\n"
    write(tmp_path, index=f"# Toy\n\n{chapters}\n{appendix}")
    page, code, test = (tmp_path / name for name in ("chapters/05_more.md", "src/toy/words.py", "tests/test_words.py"))
    page.unlink()
    build(tmp_path)
    page.write_text("# More\n\n```{math}\n:label: eq-more-definition\nm\n```\n")
    build(tmp_path)
    assert "row-eq-more-definition" in rows(tmp_path), "a page came, and the index lacks its equation"
    page.unlink()
    build(tmp_path)
    assert "row-eq-more-definition" not in rows(tmp_path), "a page went, and the index has its equation still"
    for file, old, new in [(code, "words.py#L2", "words.py#L3"), (test, "test_words.py#L5", "test_words.py#L6")]:
        assert old in rows(tmp_path)["row-eq-words-sum"]
        file.write_text(f"\n{file.read_text()}")
        build(tmp_path)
        assert new in rows(tmp_path)["row-eq-words-sum"], f"{file.name} has one line more, and the index has {old}"


# --- The claims -----------------------------------------------------------------------------------------------


def test_implementations_are_those_that_the_docstring_says(tmp_path):
    text = '"""Implements\n`eq-a-b`."""\nclass A:\n    """Implements `eq-a-c`.\n\n    See `eq-a-d`."""\n'
    write(tmp_path, words=text)
    claims = implementations(tmp_path)
    assert {label: [place.name for place in places] for label, places in claims.items()} == {
        "eq-a-b": ["toy.words"],
        "eq-a-c": ["toy.words.A"],
    }
    assert mentions(tmp_path) == {"eq-a-b", "eq-a-c", "eq-a-d"}


def test_proofs_know_the_tests_of_a_class_and_of_folders(tmp_path):
    text = 'class TestAdd:\n    @pytest.mark.equation("eq-a-b", "eq-a-c")\n    def test_it(self): ...\n'
    write(tmp_path, test_words=text)
    (tmp_path / "tests/parity").mkdir()
    (tmp_path / "tests/parity/test_add.py").write_text(FILES["tests/test_words.py"].replace("words-sum", "a-b"))
    claims = proofs(tmp_path)
    assert [place.name for place in claims["eq-a-b"]] == ["TestAdd.test_it", "test_add_by_hand"]
    assert claims["eq-a-c"] == [("TestAdd.test_it", "tests/test_words.py", 3)]


@pytest.mark.parametrize(
    "text",
    [
        'pytestmark = pytest.mark.equation("eq-a-b")',
        '@pytest.mark.equation("eq-a-b")\nclass TestAdd: ...',
        '@pytest.mark.equation("eq-a-b")\ndef helper_that_pytest_never_runs(): ...',
    ],
)
def test_proofs_refuse_a_marker_that_they_cannot_place(tmp_path, text):
    write(tmp_path, test_words=text)
    with pytest.raises(ValueError, match=r"tests/test_words\.py, line 1: .* put it on the test function itself"):
        proofs(tmp_path)


def test_missing_excuses_definitions_only():
    assert missing("eq-a-b-definition", {}, {}) == []
    assert missing("eq-a-b", {"eq-a-b": []}, {"eq-a-b": []}) == []
    assert len(missing("eq-a-b", {}, {"eq-a-b": []})) == len(missing("eq-a-b", {"eq-a-b": []}, {})) == 1
    assert len(missing("eq-a-b", {}, {})) == 2
