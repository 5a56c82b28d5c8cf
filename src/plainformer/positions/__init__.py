"""Ways to tell tokens where they stand (chapters 06, 11 and 21)."""

from plainformer.positions.slower import (
    LinearScaling as LinearScaling,
    NtkScaling as NtkScaling,
    RotaryScaling as RotaryScaling,
    YarnScaling as YarnScaling,
)
