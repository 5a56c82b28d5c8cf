"""Where the exercises are: a file each, in the folder of its chapter, imported only when it is asked for."""

import importlib
import pkgutil
from functools import cache
from pathlib import Path

from plainformer.exercises.model import Exercise


@cache
def exercise_modules() -> dict[str, str]:
    """Return each exercise's module by its name, in alphabetical order; none of them is imported."""
    root, found = Path(__file__).parent, {}
    for chapter in pkgutil.iter_modules([str(root)]):
        for file in pkgutil.iter_modules([str(root / chapter.name)]) if chapter.ispkg else ():
            # Files that begin with _ hold what several exercises share. One exercise bears the name of a chapter, whose
            # module alone may be called so: multi_head_.py.
            if not file.name.startswith("_"):
                found[file.name.rstrip("_")] = f"{__package__}.{chapter.name}.{file.name}"
    return dict(sorted(found.items()))


def load_exercise(name: str) -> Exercise:
    """Import the exercise of this name."""
    return importlib.import_module(exercise_modules()[name]).EXERCISE
