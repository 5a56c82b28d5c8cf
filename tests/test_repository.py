"""The repository keeps its own rules: short files, one address, no third party, a light package."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from book import ROOT, Book

from tools import draw_floors

# What is built, installed or cached is not the repository.
NOT_OURS = re.compile(
    r"(^|/)(\.git|\.venv[^/]*|_build|build|[^/]*\.egg-info|__pycache__|\.[^/]*cache|\.hypothesis|node_modules)(/|$)"
)
TEXT = {
    ".md",
    ".py",
    ".mjs",
    ".js",
    ".css",
    ".yml",
    ".yaml",
    ".toml",
    ".txt",
    ".bib",
    ".cff",
    ".html",
    ".svg",
    ".ipynb",
    "",
}
LONGEST_FUNCTION = 40


def files(*folders: str) -> list[Path]:
    """The repository's text files, below the given folders or everywhere."""
    found = [file for folder in folders or (".",) for file in (ROOT / folder).rglob("*")]
    names = {file: file.relative_to(ROOT).as_posix() for file in found if file.is_file() and file.suffix in TEXT}
    return sorted(file for file, name in names.items() if not NOT_OURS.search(name))


def long_functions(file: Path) -> dict[str, int]:
    """The functions of a file, by place, that do not fit on a screen: more than 40 lines without their docstring."""
    lengths = {}
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            lengths[f"{file.relative_to(ROOT)}:{node.lineno} {node.name}"] = (
                node.end_lineno - body[0].lineno + 1 if body else 0
            )
    return {name: length for name, length in lengths.items() if length > LONGEST_FUNCTION}


def test_functions_fit_on_a_screen():
    code = [file for file in files("src", "tools", "_ext", "benchmarks") if file.suffix == ".py"]
    long = {name: length for file in code for name, length in long_functions(file).items()}
    assert not long, f"over {LONGEST_FUNCTION} lines, so split them: {long}"


def test_contributing_draws_the_floors():
    text = draw_floors.PAGE.read_text("utf-8")
    assert text == draw_floors.page(), "run `make drawings`"
    drawn = draw_floors.drawing([["a", "b"], ["c"]]).splitlines()
    assert [row.replace("|", " ").split() for row in drawn[1::2]] == [["a", "b"], ["c"]]


def test_pages_for_contributors_lead_to_what_is_there():
    for page in [ROOT / "CONTRIBUTING.md", ROOT / "README.md", *(ROOT / "contributing").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name} leads to {target}"


def test_public_face_is_small():
    text = (ROOT / "src/plainformer/__init__.py").read_text("utf-8")
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    names = {"exercises", "live", *(alias.asname for node in imports for alias in node.names if alias.asname)}
    assert len(names) <= 93, "pf is full: what few need goes into its room's __init__.py, as pf.attention.Mask does"
    assert len(text.splitlines()) <= 80


def test_rooms_open_when_they_are_entered():
    say = "print(*(name for name in sys.modules if name.startswith('plainformer.')))"
    code = f"import sys, plainformer as pf; {say}; pf.attend; {say}; from plainformer import Decoder; {say}; "
    code += f"pf.exercises.check; {say}; assert {{'Decoder', 'live', 'data'}} <= {{*dir(pf)}}"
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    first, attend, decoder, exercises = (line.split() for line in shown.splitlines())
    assert first == ["plainformer.contents"]
    assert "plainformer.attention" in attend
    assert not {"plainformer.models", "plainformer.training", "plainformer.blocks"} & {*attend}
    assert "plainformer.models.decoder" in decoder
    assert "plainformer.generation" not in decoder
    assert "plainformer.exercises" not in decoder
    assert "plainformer.exercises" in exercises


def test_repository_address_stands_in_one_place():
    book = Book()
    addresses = (book.repository.removeprefix("https://"), book.site.removeprefix("https://").rstrip("/"))
    for file in files():
        name = file.relative_to(ROOT).as_posix()
        if name == "_config.yml" or (name.startswith("chapters/") and file.suffix == ".ipynb"):
            continue
        text = file.read_text("utf-8")
        assert not any(address in text for address in addresses), f"{name} states the repository's address"


def test_nothing_is_loaded_from_a_third_party():
    hosts = r"jsdelivr|unpkg\.com|cdnjs|cdn\.|googleapis|gstatic|requirejs\.org|skypack|esm\.sh"
    for file in [*files("_ext", "_static", "widgets", "chapters", "appendix"), ROOT / "_config.yml", ROOT / "index.md"]:
        if file.is_file() and file.suffix != ".ipynb":
            found = re.search(hosts, file.read_text("utf-8"))
            assert not found, f"{file.relative_to(ROOT)} names {found[0]}, a content delivery network"
    for file in files("widgets", "_static"):
        loads = re.findall(
            r"""(?:\bfrom|\bimport|\bfetch\(|\burl\()\s*["'`]?(https?:[^"'`)\s]+)""", file.read_text("utf-8")
        )
        assert not loads, f"{file.relative_to(ROOT)} loads {loads}"


def imported(statement: str) -> tuple[float, set[str]]:
    """Run an import in a fresh interpreter: the processor time it takes, and the packages it loads."""
    code = (
        "import sys, time; start = time.process_time()\n"
        f"{statement}\n"
        "print(time.process_time() - start, *{name.partition('.')[0] for name in sys.modules})"
    )
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    seconds, *modules = shown.split()
    return float(seconds), set(modules)


@pytest.mark.slow  # it has a clock
def test_import_costs_little_more_than_jax_and_equinox():
    # One after the other in one process, so that a machine busy with something else slows both. Without the garbage
    # collector, which at some moment looks through all that jax has made, in whichever import that happens to fall.
    code = (
        "import gc; gc.disable(); from time import process_time as now\n"
        "start = now(); import jax, equinox; theirs = now(); import plainformer; ours = now()\n"
        "print((ours - start) / (theirs - start))"
    )
    command = [sys.executable, "-c", code]
    ratio = min(float(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(5))
    assert ratio <= 1.05, f"`import plainformer` takes {ratio:.2f} times as long as `import jax, equinox`"


def test_import_leaves_heavy_packages_alone():
    heavy = {"matplotlib", "optax", "pooch", "orbax", "safetensors", "torch", "IPython"}
    heavy |= {"babel", "num2words", "sklearn"}
    assert not heavy & imported("import plainformer; dir(plainformer); print(end=plainformer.__doc__[:0])")[1]


def test_package_pins_no_jax():
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    assert re.search(r'"jax>=[\d.]+"', text), "pyproject.toml should give jax a lower bound only"


# --- Other platforms ------------------------------------------------------------------------------------------


def versioned() -> list[str]:
    """The names of all files in the repository, those of a new commit included."""
    listed = ["git", "-c", "core.quotepath=off", "ls-files", "--cached", "--others", "--exclude-standard"]
    shown = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, encoding="utf-8")
    return sorted(shown.stdout.splitlines())


def no_names_on_windows(names: list[str]) -> dict[str, str]:
    """The names that a clone on Windows, or on a disk that does not tell capitals apart, could not have, and why."""
    reserved = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")
    found, lower = {}, {}
    for name in names:
        parts = name.split("/")
        if re.search(r'[<>:"\\|?*\x00-\x1f]', name):
            found[name] = "a letter that Windows does not take"
        elif any(reserved.fullmatch(part) for part in parts):
            found[name] = "a name that Windows keeps for itself"
        elif any(part.endswith((".", " ")) for part in parts):
            found[name] = "a full stop or a blank at the end"
        elif len(name) > 160:  # Windows takes 260 with the folder of the clone
            found[name] = f"{len(name)} letters"
        if (other := lower.setdefault(name.casefold(), name)) != name:
            found[name] = f"differs from {other} in capitals alone"
    return found


def test_names_of_files_are_names_on_windows_too():
    assert not no_names_on_windows(versioned())
    bad = ["aux.md", "a:b.md", "end./x", "A.md", "a.md", "deep/" * 40]
    assert sorted(no_names_on_windows(bad)) == sorted(set(bad) - {"A.md"})


def test_only_the_widgets_are_a_link():
    listed = subprocess.run(["git", "ls-files", "--stage"], cwd=ROOT, check=True, capture_output=True, encoding="utf-8")
    links = [line.split("\t")[1] for line in listed.stdout.splitlines() if line.startswith("120000")]
    assert links == ["src/plainformer/widgets"], "each link is one more thing that a clone on Windows lacks"
    assert "core.symlinks=true" in (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def test_lines_end_alike_in_every_clone():
    listed = subprocess.run(["git", "ls-files", "--eol"], cwd=ROOT, check=True, capture_output=True, encoding="utf-8")
    lines = [line.split(None, 3) for line in listed.stdout.splitlines()]
    assert {stored for stored, *_ in lines} <= {"i/lf", "i/-text", "i/none", "i/"}, "stored with other ends of lines"
    rules = (ROOT / ".gitattributes").read_text("utf-8")
    assert "* text=auto eol=lf" in rules
