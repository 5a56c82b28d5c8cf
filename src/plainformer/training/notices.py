"""Warnings that point at the reader's own line, however many functions of the package and wrappers lie between."""

import sys
import warnings
from types import FrameType


def warn(message: str) -> None:
    """Warn in the name of the line that called the package."""
    frame: FrameType | None = sys._getframe()
    level = outermost = 1
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("plainformer."):
            outermost = level
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=outermost + 1)
