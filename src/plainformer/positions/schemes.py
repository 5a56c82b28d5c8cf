"""The position schemes by name: a new one is a file of its own and a row here (chapter on positions)."""

from typing import TYPE_CHECKING, Literal

from plainformer.positions.alibi import AlibiPositions
from plainformer.positions.grid import GridPositions
from plainformer.positions.positions import LearnedPositions, NoPositions, PositionScheme
from plainformer.positions.relative import RelativePositions
from plainformer.positions.rotary import RotaryPositions
from plainformer.positions.sinusoidal import SinusoidalPositions

SCHEMES: dict[str, type[PositionScheme]] = {
    "learned": LearnedPositions,
    "sinusoidal": SinusoidalPositions,
    "sinusoidal_2d": GridPositions,
    "rotary": RotaryPositions,
    "relative": RelativePositions,
    "alibi": AlibiPositions,
    "none": NoPositions,
}

if TYPE_CHECKING:
    SchemeName = str
else:
    SchemeName = Literal[tuple(SCHEMES)]
