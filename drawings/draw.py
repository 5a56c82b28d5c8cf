"""Write every schematic as SVG: the function `masks` of `self_attention.py` gives `self_attention_masks.svg`.

python -m drawings.draw             write them
python -m drawings.draw --check     only compare with the files
"""

import argparse
import importlib
import inspect
import sys
from pathlib import Path

from drawings.sketch import svg

FOLDER = Path(__file__).parent


def drawn() -> dict[str, str]:
    """Every schematic by the name of its file; what it shows, for those who cannot see it, is its docstring."""
    found = {}
    for chapter in sorted({file.stem for file in FOLDER.glob("*.py")} - {"__init__", "draw", "sketch"}):
        module = importlib.import_module(f"drawings.{chapter}")
        for name, draw in inspect.getmembers(module, inspect.isfunction):
            if draw.__module__ == module.__name__ and not name.startswith("_"):
                found[f"{chapter}_{name}.svg"] = svg(draw(), " ".join((draw.__doc__ or "").split()))
    return found


def differences(expected: dict[str, str]) -> list[str]:
    """The files that are missing, are too many, or are not as the code draws them."""
    there = {file.name: file.read_text("utf-8") for file in FOLDER.glob("*.svg")}
    return sorted(name for name in expected | there if expected.get(name) != there.get(name))


def main() -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only say which files are not as the code draws them")
    found = drawn()
    if parser.parse_args().check:
        wrong = differences(found)
        print("\n".join(f"drawings/{name} is not what the code draws: run `make drawings`." for name in wrong))
        return bool(wrong)
    for file in FOLDER.glob("*.svg"):
        if file.name not in found:
            file.unlink()
    for name, text in found.items():
        (FOLDER / name).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
