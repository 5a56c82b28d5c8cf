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
from collections.abc import Iterator
from pathlib import Path

from cosmic_ray.commands import init
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome
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
    with use_db(clone / "mutants.sqlite", WorkDB.Mode.create) as session:
        init(modules, session, {})
        found = [change for item in session.work_items for change in item.mutations]
    found = [each for each in found if not LEFT_ALONE.search(each.operator_name)]
    return random.Random(seed).sample(found, min(number, len(found)))


def tests_of(clone: Path, room: str) -> tuple[list[str | Path], list[Path]]:
    """Return the command that runs tests on the package of the clone, and the files of tests of a room."""
    places: list[str | Path] = ["--rootdir", clone, "-c", clone / "pyproject.toml", "-p", "no:cacheprovider"]
    command = ["env", f"PYTHONPATH={clone / 'src'}", sys.executable, "-m", "pytest", "-x", "-q", *places]
    files = sorted((clone / "tests" / room).rglob("test_*.py")) or [clone / "tests" / f"test_{room}.py"]
    return command, files


def survivors(clone: Path, room: str, chosen: list[MutationSpec]) -> Iterator[str]:
    """Yield the difference of each mutant with which all tests of the room pass.

    The tests of its module come first, then those that mention it. Files are listed one by one: of a folder and a file
    within, pytest 9 takes the folder, in its own order.
    """
    command, files = tests_of(clone, room)
    for mutation in tqdm(chosen, desc=room):
        module = mutation.module_path.stem
        near = sorted(files, key=lambda file: (file.stem != f"test_{module}", module not in file.read_text()))
        result = mutate_and_test([mutation], shlex.join(map(str, [*command, *near])), TIMEOUT)
        if result.test_outcome == TestOutcome.SURVIVED:
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
        # Tests that fail anyway would catch everything. (What Python compiles here, the runs below find.)
        command, files = tests_of(clone, options.room)
        subprocess.run([*command, *files], check=True)
        unseen = 0
        for difference in survivors(clone, options.room, chosen):
            print(difference, end="\n\n", flush=True)
            unseen += 1
    caught = 1 - unseen / len(chosen)
    print(f"{options.room}: {len(chosen) - unseen} of {len(chosen)} mutants were caught ({caught:.2f})")
    return int(caught < LEAST)


if __name__ == "__main__":
    sys.exit(main())
