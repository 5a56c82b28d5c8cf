"""The book keeps its promises: chapters, notebooks, modules, equations, tests and links agree."""

import ast
import re
from functools import cache
from pathlib import Path

import jupytext
import nbformat
import pytest
import sync_notebooks
from book import LISTINGS, ROOT, Block, Book, blocks, label_of
from equation_claims import implementations, mentions, missing, proofs
from listing import find
from notebook_markdown import raw_markup
from notebook_text import INLINE, RunningText

BOOK = Book()
CHAPTERS = sync_notebooks.chapter_names()
# The notation chapter is about the symbols that the others share: it has no module of its own.
WITH_MODULE = [name for name in CHAPTERS if not name.endswith("_notation")]

each_chapter = pytest.mark.parametrize("name", CHAPTERS)
each_page = pytest.mark.parametrize("name", list(BOOK.pages))


def stem_of(name: str) -> str:
    return Path(name).name[3:]


@cache
def all_blocks(name: str) -> list[Block]:
    """Every block of a page, those inside directives too."""

    def walk(text: str) -> list[Block]:
        found = []
        for block in blocks(text):
            found.append(block)
            if block.kind == "directive" and block.name not in LISTINGS:
                found += walk(block.text)
        return found

    return walk(BOOK.pages[name].text)


def directives(name: str, *kinds: str) -> list[Block]:
    return [block for block in all_blocks(name) if block.name in kinds]


@cache
def code_cells(name: str) -> list:
    text = (ROOT / f"{name}.md").read_text(encoding="utf-8")
    return [cell for cell in jupytext.reads(text, fmt="md:myst").cells if cell.cell_type == "code"]


def labelled_equations() -> set[str]:
    return {name for name, label in BOOK.labels.items() if label.kind == "equation"}


def public_definitions(file: Path) -> set[str]:
    """The functions and classes that a module defines for others."""
    body = ast.parse(file.read_text(encoding="utf-8")).body
    names = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return {name for name in names if not name.startswith("_")}


def imported_by_the_package() -> set[str]:
    tree = ast.parse((ROOT / "src/plainformer/__init__.py").read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name for node in imports for alias in node.names}


# --- One stem, four places -----------------------------------------------------------------------------------


def test_table_of_contents_lists_every_chapter():
    listed = [name for name in BOOK.pages if name.startswith("chapters/")]
    assert listed == CHAPTERS


@each_page
def test_page_exists_and_has_a_title_and_a_label(name):
    assert (ROOT / f"{name}.md").is_file(), f"_toc.yml lists {name}.md, which does not exist"
    assert BOOK.pages[name].title, f"{name}.md has no heading"
    if name in CHAPTERS:
        label = "sec-" + stem_of(name).replace("_", "-")
        assert BOOK.labels[label].page.name == name, f"{name}.md should begin with ({label})="


@pytest.mark.parametrize("name", WITH_MODULE)
def test_chapter_has_its_module_and_tests(name):
    stem = stem_of(name)
    modules = list((ROOT / "src/plainformer").rglob(f"{stem}.py"))
    modules = [file for file in modules if "exercises" not in file.parts]
    assert len(modules) == 1, f"{name}.md wants one src/plainformer/**/{stem}.py; there are {modules}"
    assert list((ROOT / "tests").rglob(f"test_{stem}.py")), f"{name}.md has no tests/**/test_{stem}.py"


@pytest.mark.parametrize("name", WITH_MODULE)
def test_chapter_shows_the_code_of_its_module(name):
    names = [shown for block in directives(name, "listing") for shown in block.argument.split()]
    shown = {Path(find(ROOT, shown).place.file).name for shown in names}
    assert f"{stem_of(name)}.py" in shown, f"{name}.md shows nothing of its module in a {{listing}}"


# --- Notebooks ------------------------------------------------------------------------------------------------


@each_chapter
def test_notebook_is_in_step_with_its_chapter(name):
    assert not (message := sync_notebooks.drift(BOOK, name)), message


@each_chapter
def test_notebook_shows_no_raw_markup(name):
    for number, cell in enumerate(nbformat.read(ROOT / f"{name}.ipynb", as_version=4).cells, start=1):
        if cell.cell_type == "markdown":
            assert not (raw := raw_markup(cell.source)), f"{name}.ipynb, cell {number}, shows {raw!r}"


@each_chapter
def test_notebook_holds_no_image_and_no_timing(name):
    for cell in nbformat.read(ROOT / f"{name}.ipynb", as_version=4).cells:
        assert "execution" not in cell.metadata
        kinds = {kind for output in cell.get("outputs", []) for kind in output.get("data", {})}
        assert not [kind for kind in kinds if kind.startswith("image/")]


@each_chapter
def test_few_outputs_are_ignored_and_each_of_those_cells_asserts(name):
    cells = code_cells(name)
    ignored = [cell for cell in cells if "nbval-ignore-output" in cell.metadata.get("tags", [])]
    assert 5 * len(ignored) <= len(cells), f"{len(ignored)} of {len(cells)} cells ignore their output: at most one in 5"
    for cell in ignored:
        assert re.search(r"\bassert\b|\bassert_", cell.source), (
            f"this cell ignores its output and asserts nothing:\n{cell.source}"
        )
    skipped = [cell for cell in cells if "nbval-skip" in cell.metadata.get("tags", [])]
    assert not skipped, f"{name}.md: no cell may be skipped"


# --- Equations, functions, tests ------------------------------------------------------------------------------


@each_chapter
def test_equation_labels_begin_with_the_chapters_stem(name):
    stem = "eq-" + stem_of(name).replace("_", "-") + "-"
    labels = [label for label, at in BOOK.labels.items() if at.kind == "equation" and at.page.name == name]
    assert labels, f"{name}.md labels no equation"
    assert not [label for label in labels if not label.startswith(stem)], f"labels here should begin with {stem}"


def test_every_labelled_equation_is_implemented_and_tested():
    implemented, tested = implementations(ROOT), proofs(ROOT)
    lacking = [complaint for label in sorted(labelled_equations()) for complaint in missing(label, implemented, tested)]
    assert not lacking, "; ".join(lacking) + " (or end the label in -definition)"


def test_docstrings_name_equations_that_exist():
    unknown = mentions(ROOT) - labelled_equations()
    assert not unknown, f"docstrings under src/ name {sorted(unknown)}, which no chapter has"


def test_markers_name_equations_that_exist():
    places = {label: found for label, found in proofs(ROOT).items() if label not in labelled_equations()}
    unknown = [f"{label} ({found[0].file}, {found[0].name})" for label, found in places.items()]
    assert not unknown, f"tests are marked with what no chapter has: {', '.join(unknown)}"


def test_no_label_is_given_twice():
    labels: dict[str, str] = {}
    for name in BOOK.pages:
        for block in all_blocks(name):
            label = block.text if block.kind == "target" else label_of(block)
            if block.kind != "text" and label:
                assert label not in labels, f"{label} is in {labels[label]}.md and in {name}.md"
                labels[label] = name


# --- Names ----------------------------------------------------------------------------------------------------


@each_chapter
def test_no_cell_defines_what_the_package_exports(name):
    exported = imported_by_the_package()
    for cell in code_cells(name):
        # Magics are no Python; every other line is.
        source = "\n".join(line for line in cell.source.splitlines() if not line.lstrip().startswith(("%", "!")))
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                assert node.name not in exported, f"{name}.md defines {node.name}, which is pf.{node.name}"


def test_no_two_modules_define_the_same_public_name():
    homes: dict[str, str] = {}
    for file in sorted((ROOT / "src/plainformer").glob("*.py")):
        for name in public_definitions(file):
            assert name not in homes, f"{name} is defined in {homes[name]} and in {file.name}"
            homes[name] = file.name


# --- Prose ----------------------------------------------------------------------------------------------------


def slugs(name: str) -> set[str]:
    """The anchors that the site makes from a page's headings."""
    text = "\n".join(block.text for block in all_blocks(name) if block.kind == "text")
    titles = re.findall(r"^#+\s+(.+?)\s*$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@each_page
def test_every_internal_reference_leads_somewhere(name):
    page = BOOK.pages[name]
    running = RunningText(BOOK, page)
    prose = [block.text for block in all_blocks(name) if block.kind == "text"]
    prose += [block.options.get("caption", "") + " " + block.argument for block in all_blocks(name)]
    for found in (found for text in prose for found in INLINE.finditer(text)):
        if found["href"] is not None or (found["role"] or "")[1:-1] in ("eq", "ref", "numref", "doc", "prf:ref"):
            href = found["href"] or ""
            target, _, anchor = href.partition("#")
            if anchor and anchor not in BOOK.labels and not re.match(r"[a-z]+:", href):
                there = BOOK.find_page(target, page).name if target else name
                assert anchor in slugs(there), f"{name}.md links to {href}: {there}.md has no such heading or label"
            else:
                running.inline(found[0])
        elif (found["role"] or "").startswith("{cite"):
            running.inline(found[0])


@each_chapter
def test_chapter_has_three_exercises_each_with_a_solution(name):
    exercises = [label_of(block) for block in directives(name, "exercise", "exercise-start")]
    solved = {block.argument.strip() for block in directives(name, "solution", "solution-start")}
    assert len(exercises) >= 3, f"{name}.md has {len(exercises)} exercises; expected at least three"
    assert not (open_ := set(exercises) - solved), f"{name}.md: no solution to {sorted(open_)}"


@each_page
def test_every_figure_has_alternative_text_and_a_caption(name):
    for block in directives(name, "figure", "live-figure", "image"):
        assert block.options.get("alt", "").strip(), f"{name}.md: {{{block.name}}} {block.argument} has no :alt:"
        if block.name != "image":
            assert block.text.strip(), f"{name}.md: {{{block.name}}} {block.argument} has no caption"
    for block in directives(name, "code-cell"):
        if block.options:
            assert block.options.get("alt", "").strip(), f"{name}.md: the figure {label_of(block)} has no alt"
            assert block.options.get("caption", "").strip(), f"{name}.md: a cell draws a figure without a caption"


@each_chapter
def test_chapter_has_a_live_figure(name):
    assert directives(name, "live-figure"), f"{name}.md has no live figure"
