"""Ways to tell tokens where they stand (chapters on positions, vision and serving)."""

from plainformer.positions.slower import (
    LinearScaling as LinearScaling,
    NtkScaling as NtkScaling,
    RotaryScaling as RotaryScaling,
    YarnScaling as YarnScaling,
)
