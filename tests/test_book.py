"""The book keeps its promises: chapters, notebooks, modules, equations, tests and links agree."""

import ast
import json
import re
from functools import cache
from pathlib import Path

import nbformat
import sync_notebooks
from book import ROOT, Book
from book_meaning.equation_claims import implementations, mentions, missing, proofs
from book_meaning.equation_sources import equations
from book_meaning.listing import find
from book_meaning.order import chapters
from chapter_cells import read_cells
from count_listings import names_listed
from docutils import nodes
from py_mini_racer import MiniRacer
from raw_markup import raw_markup
from words_kept import words_lost
from words_open import words_before_exercises
from wrong_calls import public_callables

BOOK = Book()
CHAPTERS = BOOK.chapters
PAGES = ["index", *CHAPTERS, *(f"appendix/{file.stem}" for file in sorted((ROOT / "appendix").glob("*.md")))]
# Two appendices are run like chapters and hold no lesson: mistakes by symptom, and what to type for one's own data.
LESSONS = [name for name in CHAPTERS if not name.endswith(("/mistakes", "/own_data"))]
# The primer and the notation are about what the others share, and three chapters go on with modules of those before.
OWN_NO_MODULE = ("/primer", "/notation", "/subwords", "/real_text", "/deep_stacks")
WITH_MODULE = [name for name in LESSONS if not name.endswith(OWN_NO_MODULE)]


def stem_of(name: str) -> str:
    return Path(name).name


def found(name: str, *kinds: str) -> list[nodes.Element]:
    """The elements of a page that are of one of these kinds, as Sphinx has read it."""
    elements = BOOK.built.trees[name].findall(nodes.Element)
    return [element for element in elements if type(element).__name__ in kinds]


@cache
def code_cells(name: str) -> list:
    text = (ROOT / f"{name}.md").read_text(encoding="utf-8")
    return [cell for cell in read_cells(text).cells if cell.cell_type == "code"]


def labelled_equations() -> dict[str, str]:
    """The page of each labelled equation."""
    equations = BOOK.built.env.get_domain("math").equations
    return {label: page for label, (page, _) in equations.items()}


def public_definitions(file: Path) -> set[str]:
    """The functions and classes that a module defines for others."""
    body = ast.parse(file.read_text(encoding="utf-8")).body
    names = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return {name for name in names if not name.startswith("_")}


def imported_by_the_package() -> set[str]:
    tree = ast.parse((ROOT / "src/plainformer/__init__.py").read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name for node in imports for alias in node.names}


# --- One stem, four places -----------------------------------------------------------------------------------


def test_table_of_contents_lists_every_page():
    cards = {f"appendix/cards/{file.parent.name}" for file in ROOT.glob("lab/*/run.py")}
    assert BOOK.built.env.found_docs == {*PAGES, *cards}
    assert set(CHAPTERS) == {f"chapters/{file.stem}" for file in (ROOT / "chapters").glob("*.md")}


def test_page_has_a_title_and_a_chapter_a_label(subtests):
    for name in PAGES:
        with subtests.test(name):
            assert BOOK.built.env.titles[name].astext(), f"{name}.md has no heading"
            if name in CHAPTERS:
                label = "sec-" + stem_of(name).replace("_", "-")
                page, *_ = BOOK.built.env.get_domain("std").labels.get(label, ("",))
                assert page == name, f"{name}.md should begin with ({label})="


def test_chapter_has_its_module_and_tests(subtests):
    for name in WITH_MODULE:
        with subtests.test(name):
            stem = stem_of(name)
            modules = [*(ROOT / "src/plainformer").rglob(f"{stem}.py"), *(ROOT / "src/plainformer").glob(f"{stem}/")]
            modules = [file for file in modules if "exercises" not in file.parts and file.stem != file.parent.name]
            assert len(modules) == 1, (
                f"{name}.md wants one src/plainformer/**/{stem}.py, or a room {stem}; there are {modules}"
            )
            tests = [*(ROOT / "tests").rglob(f"test_{stem}.py"), *(ROOT / f"tests/{stem}").glob("test_*.py")]
            assert tests, f"{name}.md has no tests/**/test_{stem}.py"


def test_chapter_shows_the_code_of_its_module(subtests):
    for name in WITH_MODULE:
        with subtests.test(name):
            files = [Path(find(ROOT, shown).place.file) for shown in names_listed(ROOT / f"{name}.md")]
            shown = {place for file in files for place in (file.stem, file.parent.name)}
            assert stem_of(name) in shown, f"{name}.md shows nothing of its module in a {{listing}}"


def test_landing_page_lists_every_chapter():
    rows = [row.astext() for row in BOOK.built.trees["index"].findall(nodes.row)]
    for name in LESSONS:
        title = BOOK.built.env.titles[name].astext()
        assert name.endswith("/notation") or [row for row in rows if title in row], f"the landing page lacks {title}"


def test_reference_has_every_room_and_hides_no_name_that_is_gone():
    text = (ROOT / "appendix/api.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```\{room\} (\w+)\n((?::.*\n)*)```$", text, re.MULTILINE)
    rooms = {file.parent.name: file.parent for file in (ROOT / "src/plainformer").glob("*/__init__.py")}
    assert {room for room, _ in shown} == set(rooms) - {"exercises"}
    for room, options in shown:
        hidden = {name for line in options.splitlines() for name in line.split(": ")[1].split(", ")}
        files = list(rooms[room].glob("*.py"))
        there = {file.stem for file in files}.union(*map(public_definitions, files))
        assert hidden <= there, f"appendix/api.md hides {sorted(hidden - there)}, which {room} has not"


def test_reference_has_every_module_of_a_room_once():
    """Where several groups share a room: all but what is only the package's own."""
    text = (ROOT / "appendix/api.md").read_text(encoding="utf-8")
    shared = {"training": {"notices", "run"}, "models": set()}
    for room, own in shared.items():
        shown = re.findall(rf"^```\{{room\}} {room}\n:modules: (.*)$", text, re.MULTILINE)
        modules = [module for group in shown for module in group.split(", ")]
        there = {file.stem for file in (ROOT / "src/plainformer" / room).glob("[!_]*.py")}
        assert sorted(modules) == sorted(there - own)


def terms_with_links() -> dict[str, list[tuple[str, str]]]:
    """The page and the heading to which the last line of each entry of the glossary leads."""
    text = (ROOT / "appendix/glossary.md").read_text(encoding="utf-8").partition("```{glossary}\n")[2]
    entries = (entry.strip("`\n").split("\n") for entry in text.split("\n\n"))
    return {term: re.findall(r"^  → \[\]\(\.\./(\S+)\.md#(\S+)\)$", lines[-1]) for term, *lines in entries}


def test_every_entry_of_the_glossary_leads_to_a_section_that_is_there():
    links = terms_with_links()
    assert not (bare := [term for term, found in links.items() if len(found) != 1]), (
        f"one link each, at the end: {bare}"
    )
    sections = {page: BOOK.built.env.metadata[page]["myst_slugs"] for page in CHAPTERS}
    lost = [term for term, [(page, slug)] in links.items() if slug not in sections.get(page, {})]
    assert not lost, f"these lead to no section of a chapter: {lost}"


def test_glossary_is_in_the_order_of_the_alphabet():
    terms = [re.sub(r"[^a-z0-9 ]", "", re.sub("[–-]", " ", term.lower())) for term in terms_with_links()]
    assert terms == sorted(terms)


# --- Notebooks ------------------------------------------------------------------------------------------------


def test_notebook_is_in_step_with_its_chapter(subtests):
    for name in CHAPTERS:
        with subtests.test(name):
            assert not (message := sync_notebooks.drift(BOOK, name)), message


def test_notebook_shows_no_raw_markup_and_holds_no_image_and_no_timing(subtests):
    for name in CHAPTERS:
        with subtests.test(name):
            for number, cell in enumerate(nbformat.read(ROOT / f"{name}.ipynb", as_version=4).cells, start=1):
                assert "execution" not in cell.metadata
                kinds = {kind for output in cell.get("outputs", []) for kind in output.get("data", {})}
                assert not [kind for kind in kinds if kind.startswith("image/")]
                if cell.cell_type == "markdown":
                    assert not (raw := raw_markup(cell.source)), f"{name}.ipynb, cell {number}, shows {raw!r}"


def test_notebook_has_every_word_of_its_chapter(subtests):
    for name in CHAPTERS:
        with subtests.test(name):
            lost = words_lost(BOOK.built.trees[name], BOOK.built.cells[name])
            assert not lost, f"{name}.ipynb has lost {lost}"


def test_few_outputs_are_ignored_and_each_of_those_cells_asserts(subtests):
    for name in CHAPTERS:
        with subtests.test(name):
            cells = code_cells(name)
            ignored = [cell for cell in cells if "nbval-ignore-output" in cell.metadata.get("tags", [])]
            for cell in ignored:
                assert re.search(r"\bassert\b|\bassert_", cell.source), (
                    f"this cell ignores its output and asserts nothing:\n{cell.source}"
                )
            skipped = [cell for cell in cells if "nbval-skip" in cell.metadata.get("tags", [])]
            assert not skipped, f"{name}.md: no cell may be skipped"


# --- Equations, functions, tests ------------------------------------------------------------------------------


def test_no_line_begins_as_a_comment():
    """Such as one that begins with the per cent sign of the number that ends the line above: it is not shown."""
    for name in PAGES:
        text = re.sub(r"^(`{3,}).*?^\1", "", (ROOT / f"{name}.md").read_text(encoding="utf-8"), flags=re.M | re.S)
        assert not re.findall(r"^ *%.*", text, re.M), name


def test_equation_labels_begin_with_the_chapters_stem(subtests):
    for name in LESSONS:
        with subtests.test(name):
            stem = "eq-" + stem_of(name).replace("_", "-") + "-"
            labels = [label for label, page in labelled_equations().items() if page == name]
            assert labels, f"{name}.md labels no equation"
            assert not [label for label in labels if not label.startswith(stem)], (
                f"labels here should begin with {stem}"
            )


def test_every_labelled_equation_is_implemented_and_tested():
    implemented, tested = implementations(ROOT), proofs(ROOT)
    lacking = [complaint for label in sorted(labelled_equations()) for complaint in missing(label, implemented, tested)]
    assert not lacking, "; ".join(lacking) + " (or end the label in -definition)"


def test_equations_of_the_sheet_have_the_numbers_and_words_of_the_book():
    """`drawings/sheet.py` reads the sources; here Sphinx has counted."""
    domain, read = BOOK.built.env.get_domain("math").equations, equations(ROOT)
    assert list(read) == [label for name in CHAPTERS for label, equation in read.items() if equation.page == name]
    assert set(read) == set(domain)
    for name, number in chapters(ROOT).items():
        assert BOOK.built.env.toc_secnumbers.get(name, {}).get("", ()) == ((int(number),) if number else ())
        shown = [node for node in BOOK.built.trees[name].findall(nodes.math_block) if node.get("label")]
        assert [node["label"] for node in shown] == [label for label in read if read[label].page == name]
        assert [" ".join(node.astext().split()) for node in shown] == [read[node["label"]].tex for node in shown]


def test_docstrings_name_equations_that_exist():
    unknown = mentions(ROOT) - set(labelled_equations())
    assert not unknown, f"docstrings under src/ name {sorted(unknown)}, which no chapter has"


def test_markers_name_equations_that_exist():
    places = {label: found for label, found in proofs(ROOT).items() if label not in labelled_equations()}
    unknown = [f"{label} ({found[0].file}, {found[0].name})" for label, found in places.items()]
    assert not unknown, f"tests are marked with what no chapter has: {', '.join(unknown)}"


# --- Names ----------------------------------------------------------------------------------------------------


def test_no_cell_defines_what_the_package_exports(subtests):
    for name in LESSONS:
        with subtests.test(name):
            exported = imported_by_the_package()
            for cell in code_cells(name):
                # Magics are no Python; every other line is.
                source = "\n".join(
                    line for line in cell.source.splitlines() if not line.lstrip().startswith(("%", "!"))
                )
                for node in ast.walk(ast.parse(source)):
                    if isinstance(node, ast.FunctionDef | ast.ClassDef):
                        assert node.name not in exported, f"{name}.md defines {node.name}, which is pf.{node.name}"


def test_no_two_modules_define_the_same_public_name():
    homes: dict[str, str] = {}
    for file in sorted((ROOT / "src/plainformer").rglob("*.py")):
        for name in public_definitions(file) if "exercises" not in file.parts else ():
            assert name not in homes, f"{name} is defined in {homes[name]} and in {file.name}"
            homes[name] = file.name


def test_every_public_name_stands_as_code_on_a_page_beside_the_reference():
    pages = [(ROOT / f"{page}.md").read_text(encoding="utf-8") for page in PAGES if page != "appendix/api"]
    cells = [cell.source for name in CHAPTERS for cell in code_cells(name)]
    listings = [" ".join(names_listed(ROOT / f"{name}.md")) for name in CHAPTERS]
    # In `{py:func}` a name is marked, too; in other roles, such as `{cite:t}`, the marks hold none.
    marks = re.compile(r"(\{[\w:+-]+\})?(?<!`)`([^`\n]+)`(?!`)")
    marked = [text for page in pages for role, text in marks.findall(page) if not role or role.startswith("{py:")]
    shown = set(re.findall(r"\w+", "\n".join([*cells, *listings, *marked])))
    callables = public_callables()
    # Methods stand with their classes: `pf.Mask.table`, `pf.data.Windows.read`.
    names = [name for name in callables if not isinstance(callables.get(name.rpartition(".")[0]), type)]
    nowhere = [name for name in names if name.rpartition(".")[2] not in shown]
    assert not nowhere, f"no chapter and no appendix says what {', '.join(nowhere)} is for: name it there, or let it go"


# --- Prose ----------------------------------------------------------------------------------------------------


def test_sphinx_complains_of_nothing(subtests):
    """Of no label given twice, no reference that leads nowhere, no unknown source or name in a listing."""
    for name in PAGES:
        with subtests.test(name):
            # The index of the equations and the reference of the package are made when the site is.
            complaints = [line for line in BOOK.complaints(name) if "Unknown directive type" not in line]
            assert not complaints, "\n".join(complaints)


def test_chapter_has_three_exercises_each_with_a_solution(subtests):
    for name in LESSONS:
        with subtests.test(name):
            exercises = {exercise["label"] for exercise in found(name, "exercise_node", "exercise_enumerable_node")}
            solved = {solution["target_label"] for solution in found(name, "solution_node")}
            assert len(exercises) >= 3, f"{name}.md has {len(exercises)} exercises; expected at least three"
            assert not (open_ := exercises - solved), f"{name}.md: no solution to {sorted(open_)}"


def test_part_one_is_short():
    """From the primer to the decoder a reader goes without skipping."""
    part_one = CHAPTERS[: CHAPTERS.index("chapters/decoder") + 1]
    read = {name: words_before_exercises((ROOT / f"{name}.md").read_text(encoding="utf-8")) for name in part_one}
    assert not (long := {name: words for name, words in read.items() if words > 3000}), f"words, at most 3,000: {long}"


def test_every_figure_has_alternative_text_and_a_caption(subtests):
    for name in PAGES:
        with subtests.test(name):
            for picture in found(name, "image"):
                assert picture.get("alt", "").strip(), (
                    f"{name}.md: the picture {picture['uri']} has no alternative text"
                )
            for figure in found(name, "figure"):
                # A live figure without its words or its caption is an error of the directive.
                caption = "".join(part.astext() for part in figure.findall(nodes.caption))
                assert caption.strip(), f"{name}.md: the figure {figure['ids']} has no caption"
            for cell in code_cells(name):
                drawing = cell.metadata.get("mystnb", {})
                assert not drawing or drawing.get("figure", {}).get("caption", "").strip(), (
                    f"{name}.md: {drawing} has no caption"
                )


def test_the_figure_of_the_machine_shows_lines_of_the_package():
    """For every kind of block that its page computes."""
    kinds = [
        {"num_layers": 2, "norm": norm, "norm_placement": place, "activation": activation, "position_scheme": scheme}
        for norm, place, activation, scheme in [
            ("rms", "pre", "swiglu", "rotary"),
            ("layer", "pre", "gelu", "learned"),
            ("rms", "pre", "gelu", "alibi"),
            ("rms", "post", "relu", "none"),
        ]
    ]
    engine = MiniRacer()
    engine.eval((ROOT / "widgets/machine_boxes.mjs").read_text("utf-8").replace("export function", "function"))
    shown = f"{json.dumps(kinds)}.flatMap((kind) => boxesOf(kind, 0).map((box) => [box.file, box.code(kind)]))"
    boxes = json.loads(engine.eval(f"JSON.stringify({shown})"))
    assert len(boxes) == 4 * 19 - 3  # with post-norm the sums hold the norms
    for file, code in boxes:
        assert code in (ROOT / "src/plainformer" / file).read_text("utf-8"), f"{file} has no {code!r}"


def test_chapter_has_a_live_figure_with_its_frame(subtests):
    for name in LESSONS:
        with subtests.test(name):
            figures = found(name, "live_figure")
            assert figures, f"{name}.md has no live figure"
            notebook = (ROOT / f"{name}.ipynb").read_text("utf-8")
            for figure in figures:
                frame = f"{figure['stem']}.png"
                assert (ROOT / "widgets" / frame).read_bytes()[:4] == b"\x89PNG", f"{frame}: run `make frames`"
                assert f"/_images/{frame})" in notebook


COMPARES = re.compile(r"\b(ahead|better|more than|level with)\b")


def test_a_sentence_that_compares_what_was_recorded_names_its_claim():
    lacking = []
    for page in sorted([*ROOT.glob("chapters/*.md"), *ROOT.glob("appendix/*.md")]):
        prose = re.sub(r"```.*?```|^\|[^\n]*$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
        for paragraph in re.split(r"\n\s*\n", prose):
            for sentence in re.split(r"(?<=[.!?:;])\s+(?=[A-Z*{])", " ".join(paragraph.split())):
                if COMPARES.search(sentence) and re.search(r"\{fact\}|`lab/", sentence) and "{claim}" not in sentence:
                    lacking.append(f"{page.name}: {sentence}")
    assert not lacking, "\n".join(lacking)
