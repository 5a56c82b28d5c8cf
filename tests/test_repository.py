"""The repository keeps its own rules: short files, one address, no third party, a light package."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

from book import ROOT, Book

from lab.records import checksums

LONGEST_FUNCTION = 40
BINARY = {".png", ".woff2", ".pdf", ".safetensors"}


def files(*folders: str) -> list[Path]:
    """The repository's text files, below the given folders or everywhere."""
    paths = [
        ROOT / name for name in versioned() if not folders or name.startswith(tuple(f"{each}/" for each in folders))
    ]
    return [path for path in paths if path.is_file() and path.suffix not in BINARY]


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


def test_pages_for_contributors_lead_to_what_is_there():
    for page in [ROOT / "CONTRIBUTING.md", ROOT / "README.md", *(ROOT / "contributing").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name} leads to {target}"


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


def test_import_leaves_heavy_packages_alone():
    heavy = {
        "matplotlib",
        "optax",
        "pooch",
        "orbax",
        "safetensors",
        "torch",
        "IPython",
        "babel",
        "num2words",
        "sklearn",
    }
    code = "import sys, plainformer; dir(plainformer); plainformer.__doc__; print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert not heavy & {name.partition(".")[0] for name in shown.split()}


# --- Other platforms ------------------------------------------------------------------------------------------


def listed_by_git(*options: str) -> list[str]:
    """The lines of `git ls-files`."""
    command = ["git", "-c", "core.quotepath=off", "ls-files", *options]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8")
    assert shown.stdout, f"this needs a clone that git knows as this user's. {shown.stderr}"
    return shown.stdout.splitlines()


def versioned() -> list[str]:
    """The names of all files in the repository, those of a new commit included."""
    return sorted(listed_by_git("--cached", "--others", "--exclude-standard"))


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
    links = [line.split("\t")[1] for line in listed_by_git("--stage") if line.startswith("120000")]
    assert links == ["src/plainformer/widgets"], "each link is one more thing that a clone on Windows lacks"
    assert "core.symlinks=true" in (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def test_lines_end_alike_in_every_clone():
    lines = [line.split(None, 3) for line in listed_by_git("--eol")]
    assert {stored for stored, *_ in lines} <= {"i/lf", "i/-text", "i/none", "i/"}, "stored with other ends of lines"
    rules = (ROOT / ".gitattributes").read_text("utf-8")
    assert "* text=auto eol=lf" in rules


def test_the_package_knows_the_checksum_of_every_stored_file():
    known = json.loads((ROOT / "src/plainformer/data/stored.json").read_text(encoding="utf-8"))
    assert checksums() == known, "run lab.records.write_index"
