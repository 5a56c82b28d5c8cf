"""Change one thing in a room of the package, run that room's tests, and say which changes they do not see.

    python tools/mutants.py data                  forty mutants, drawn by the seed 0
    python tools/mutants.py data --number 10 --seed 1

The mutants are cosmic-ray's, made one at a time in a clone of HEAD. What the tests do not see is shown as a difference:
each is caught by the cheapest test that sees it, or changes nothing that matters.
"""

import argparse
import random
import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from cosmic_ray.commands import init
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome
from coverage import CoverageData
from tqdm import tqdm

ROOT = Path(__file__).resolve().parents[1]
LEAST = 0.85
TIMEOUT = 900.0
# An annotation is no code to break: `X | None`, and what a decorator would check.
LEFT_ALONE = re.compile("BitOr|RemoveDecorator")


def mutations(clone: Path, room: str, number: int, seed: int) -> list[MutationSpec]:
    """Draw mutants of the modules of a room, without replacement."""
    place = clone / "src/plainformer" / room
    modules = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    with use_db(clone.with_name("mutants.sqlite"), WorkDB.Mode.create) as session:
        init(modules, session, {})
        found = [change for item in session.work_items for change in item.mutations]
    found = [each for each in found if not LEFT_ALONE.search(each.operator_name)]
    return random.Random(seed).sample(found, min(number, len(found)))


def pytest(clone: Path, *before: str | Path) -> list[str | Path]:
    """Return the command that runs tests, which are to follow, on the package of the clone."""
    places: list[str | Path] = ["--rootdir", clone, "-c", clone / "pyproject.toml", "-p", "no:cacheprovider"]
    return ["env", f"PYTHONPATH={clone / 'src'}", sys.executable, "-m", *before, "pytest", "-x", "-q", *places]


def files_of(tests: Path, room: str) -> list[Path]:
    """Return the files of tests of a room: those in its folder, the one of its name, or those that name its module."""
    files = sorted((tests / room).rglob("test_*.py")) or [*tests.glob(f"test_{room}.py")]
    named = re.compile(rf"plainformer(\.| import ){room}\b")
    return files or [file for file in sorted(tests.rglob("test_*.py")) if named.search(file.read_text())]


def lines_by_test(clone: Path, files: list[Path]) -> dict[Path, dict[int, list[str]]]:
    """Run the tests, which have to pass, and return by module and line those that execute it, the smallest first."""
    settings, data = clone.with_name("coverage.ini"), CoverageData(str(clone.with_name("coverage.db")))
    settings.write_text("[run]\ndynamic_context = test_function\nsource_pkgs = plainformer\n")
    run = pytest(clone, "coverage", "run", "--rcfile", settings, "--data-file", data.data_filename(), "-m")
    subprocess.run([*run, *files], check=True)
    data.read()
    found = {Path(module): data.contexts_by_lineno(module) for module in data.measured_files()}
    sizes = Counter(test for lines in found.values() for tests in lines.values() for test in tests)
    places = {test: _place_of(test, clone) for test in sizes}

    def sorted_places(tests: list[str]) -> list[str]:
        return [place for test in sorted(tests, key=lambda test: sizes[test]) if (place := places[test])]

    return {module: {line: sorted_places(tests) for line, tests in lines.items()} for module, lines in found.items()}


def _place_of(test: str, clone: Path) -> str | None:
    """A test's file and name for pytest, from its name as coverage has it; None for what is none."""
    file, _, name = test.rpartition(".")
    place = Path(f"{file.replace('.', '/')}.py")
    is_test = name.startswith("test_") and (clone / place).is_file() and f"def {name}(" in (clone / place).read_text()
    return f"{place}::{name}" if is_test else None


def groups_of(mutation: MutationSpec, files: list[Path], executed: dict[int, list[str]]) -> Iterator[list]:
    """Yield the tests that a mutant is to pass, a group after the other: those that see it soonest come first.

    They are the hundred smallest of those that execute its line, then the files of all of these, and where there are
    none, as for a constant, the files that mention the module.
    """
    line = max((number for number in executed if number <= mutation.end_pos[0]), default=0)
    if tests := executed.get(line):
        yield tests[:100]
        yield sorted({test.partition("::")[0] for test in tests})
    else:
        module = mutation.module_path.stem
        yield [file for file in files if file.stem == f"test_{module}" or module in file.read_text()] or files


def survivors(clone: Path, files: list[Path], chosen: list[MutationSpec]) -> Iterator[str]:
    """Yield the difference of each mutant with which all tests of the room pass that execute its line."""
    executed = lines_by_test(clone, files)
    for mutation in tqdm(chosen):
        for tests in groups_of(mutation, files, executed.get(clone / mutation.module_path, {})):
            command = shlex.join(map(str, [*pytest(clone), *tests]))
            result = mutate_and_test([mutation], f"env --chdir={clone} {command}", TIMEOUT)
            if result.test_outcome != TestOutcome.SURVIVED:
                break
        else:
            yield result.diff or str(mutation)


def main() -> int:
    """Print the mutants of a room that no test saw, and the share that was caught; fail if that is too small."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    rooms = [*(ROOT / "src/plainformer").glob("[a-z]*.py"), *(ROOT / "src/plainformer").glob("[a-z]*/__init__.py")]
    names = sorted(path.parent.name if path.stem == "__init__" else path.stem for path in rooms)
    parser.add_argument("room", choices=names)
    parser.add_argument("--number", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder, "clone")
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        chosen = mutations(clone, options.room, options.number, options.seed)
        unseen = 0
        for difference in survivors(clone, files_of(clone / "tests", options.room), chosen):
            print(difference, end="\n\n", flush=True)
            unseen += 1
    caught = 1 - unseen / len(chosen)
    print(f"{options.room}: {len(chosen) - unseen} of {len(chosen)} mutants were caught ({caught:.2f})")
    return int(caught < LEAST)


if __name__ == "__main__":
    sys.exit(main())
