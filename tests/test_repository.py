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
    imports = [node for node in ast.parse(text).body if isinstance(node, ast.ImportFrom)]
    names = {"exercises", "live", *(alias.asname for node in imports for alias in node.names)}
    assert len(names) <= 90, "pf is full: what few need goes into its room's __init__.py, as pf.attention.Mask does"
    assert len(text.splitlines()) <= 80


def test_exercises_are_imported_when_asked_for():
    code = "import sys, plainformer as pf; print(*sys.modules); pf.exercises.check; print(*sys.modules)"
    before, after = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert "plainformer.exercises" in after.split()
    assert "plainformer.exercises" not in before.split()


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
    assert ratio <= 1.12, f"`import plainformer` takes {ratio:.2f} times as long as `import jax, equinox`"


def test_import_leaves_heavy_packages_alone():
    heavy = {"matplotlib", "optax", "pooch", "orbax", "safetensors", "torch", "IPython"}
    heavy |= {"babel", "num2words", "sklearn"}
    assert not heavy & imported("import plainformer")[1]


def test_package_pins_no_jax():
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    assert re.search(r'"jax>=[\d.]+"', text), "pyproject.toml should give jax a lower bound only"
