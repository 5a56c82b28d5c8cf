"""Draw the rooms of the package, floor above floor, into CONTRIBUTING.md.

The floors are those that `make lint` checks: they stand in `pyproject.toml`, under `tool.importlinter`.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "CONTRIBUTING.md"
WIDTH = 38
DRAWN = re.compile(r"(?<=```text\n).*?(?=```)", re.DOTALL)


def floors(settings: str) -> list[list[str]]:
    """Return the rooms of each floor, the highest first."""
    (contract,) = tomllib.loads(settings)["tool"]["importlinter"]["contracts"]
    return [[room.strip() for room in layer.split("|")] for layer in contract["layers"]]


def drawing(rooms: list[list[str]]) -> str:
    """Return each floor as a row of boxes, which hold the names of its rooms."""
    line = f"+{'-' * WIDTH}+\n"
    rows = []
    for floor in rooms:
        each, rest = divmod(WIDTH - len(floor) + 1, len(floor))
        widths = [each + (place < rest) for place in range(len(floor))]
        rows.append("|" + "|".join(room.center(width) for room, width in zip(floor, widths, strict=True)) + "|\n")
    return line + line.join(rows) + line


def page() -> str:
    """Return CONTRIBUTING.md with the drawing as it should be."""
    made = drawing(floors((ROOT / "pyproject.toml").read_text(encoding="utf-8")))
    return DRAWN.sub(made, PAGE.read_text(encoding="utf-8"), count=1)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
