"""Every schematic as SVG: the function `masks` of `self_attention.py` gives `self_attention_masks.svg`.

They are drawn while the book is built (`_ext/book_meaning/made.py`).
"""

import importlib
import inspect
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
