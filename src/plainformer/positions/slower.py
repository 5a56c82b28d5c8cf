"""Rotary positions made slower, for texts longer than those of the first training (chapter on serving)."""

import abc
import dataclasses
import math
from typing import Annotated, Literal

import numpy as np

from plainformer.checks import Number, Positive, PositiveFloat, check_fields

Longer = Annotated[float, Number(lambda x: 1 <= x < math.inf, "finite and at least 1, by how much texts get longer")]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SlowerTurns(abc.ABC):
    """How much slower pairs of columns turn, so that a text longer by `factor` shows a model few angles that are new.

    The speeds are fixed before a text is read, so that keys in a cache agree with the queries that come later.
    """

    factor: Longer

    def __post_init__(self):
        check_fields(self)

    @property
    def magnitude(self) -> float:
        """What every turned query and every turned key is multiplied by."""
        return 1.0

    @abc.abstractmethod
    def slowed(self, speeds: np.ndarray) -> np.ndarray:
        """Return the speeds, in radians for each position, of pairs of columns that had these."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class LinearScaling(SlowerTurns):
    r"""Position interpolation: all pairs turn slower by `factor`, as if positions were divided by it.

    Implements `eq-serving-interpolation`; Chen et al. (2023), equation 4.

    Args:
        factor: by how much all pairs become slower.
    """

    kind: Literal["linear"] = "linear"

    def slowed(self, speeds: np.ndarray) -> np.ndarray:
        """Divide all speeds by the factor."""
        return speeds / self.factor


@dataclasses.dataclass(frozen=True, kw_only=True)
class NtkScaling(SlowerTurns):
    r"""NTK-aware scaling: a larger base. The fastest pair keeps its speed, the slowest turns slower by `factor`.

    Implements `eq-serving-ntk`; bloc97 (2023), and Peng et al. (2023), definition 1.

    Args:
        factor: by how much the slowest pair becomes slower.
    """

    kind: Literal["ntk"] = "ntk"

    def slowed(self, speeds: np.ndarray) -> np.ndarray:
        """Divide the speeds by powers of the factor, from 0 for the first pair to 1 for the last."""
        return speeds * self.factor ** -np.linspace(0, 1, len(speeds))

    def base(self, base: float, width: int) -> float:
        """Return the base that does the same to keys of this width."""
        return base * self.factor ** (width / (width - 2)) if width > 2 else base


@dataclasses.dataclass(frozen=True, kw_only=True)
class RotaryScaling(SlowerTurns):
    r"""Scaling by parts, as in Llama 3: slow pairs become slower by `factor`, fast ones keep their speed.

    Implements `eq-serving-parts`; Peng et al. (2023), equations 18 and 19; Grattafiori et al. (2024), in the released
    code. A pair that turns more than `fast_turns` times in `trained_len` positions keeps its speed, because the model
    has seen all of its angles. One that turns fewer than `slow_turns` times becomes slower by `factor`. Between them,
    the speeds pass from one into the other, in proportion to the turns.

    Args:
        factor: by how much slow pairs become slower.
        slow_turns, fast_turns: turns in `trained_len` positions.
        trained_len: the longest text of the first training, in tokens.
    """

    slow_turns: PositiveFloat = 1.0
    fast_turns: PositiveFloat = 4.0
    trained_len: Positive = 8192

    def __post_init__(self):
        check_fields(self)
        _check_turns(self.slow_turns, self.fast_turns)

    def slowed(self, speeds: np.ndarray) -> np.ndarray:
        """Keep a share of each speed, and divide the rest by the factor."""
        turns = self.trained_len * speeds / (2 * math.pi)
        kept = np.clip((turns - self.slow_turns) / (self.fast_turns - self.slow_turns), 0, 1)
        return kept * speeds + (1 - kept) * speeds / self.factor


@dataclasses.dataclass(frozen=True, kw_only=True)
class YarnScaling(SlowerTurns):
    r"""YaRN: scaling by parts, and attention made sharper.

    Implements `eq-serving-yarn` and `eq-serving-attention-factor`; Peng et al. (2023), section 3.4 and equation 22.

    Args:
        factor: by how much slow pairs become slower.
        slow_turns, fast_turns: turns in `trained_len` positions, of pairs that are slow and of those that are fast.
        trained_len: the longest text of the first training, in tokens.
        attention_factor: what queries and keys are multiplied by; `None` for the paper's, which grows with `factor`.
        truncate: whether the passage from fast to slow begins and ends at a whole pair.

    Differs from the paper:
        As in the released code and in Hugging Face's, the share that is kept falls in proportion to the number of the
        pair; in the paper to its turns, as in `RotaryScaling`.
    """

    slow_turns: PositiveFloat = 1.0
    fast_turns: PositiveFloat = 32.0
    trained_len: Positive = 8192
    attention_factor: PositiveFloat | None = None
    truncate: bool = True
    kind: Literal["yarn"] = "yarn"

    def __post_init__(self):
        check_fields(self)
        _check_turns(self.slow_turns, self.fast_turns)

    @property
    def magnitude(self) -> float:
        """Return what queries and keys are multiplied by, so that their scores grow by its square."""
        return 0.1 * math.log(self.factor) + 1 if self.attention_factor is None else self.attention_factor

    def slowed(self, speeds: np.ndarray) -> np.ndarray:
        """Keep a share of each speed, which falls from pair to pair, and divide the rest by the factor."""
        if len(speeds) == 1:
            return speeds  # a pair that is alone is the fastest, which keeps its speed
        turns = self.trained_len * speeds / (2 * math.pi)
        # Turns fall by the same factor from pair to pair, so a logarithm says which pair turns so many times.
        first, last = np.log(turns[0] / np.array([self.fast_turns, self.slow_turns])) / np.log(turns[0] / turns[1])
        if self.truncate:
            first, last = math.floor(first), math.ceil(last)
        first, last = max(first, 0), min(last, 2 * len(speeds) - 1)  # their upper bound, in columns
        slow = np.clip((np.arange(len(speeds)) - first) / (last - first or 0.001), 0, 1)
        return (1 - slow) * speeds + slow * speeds / self.factor


# One of these is a field of a configuration; a file that was saved tells them apart by `kind`, which Llama's lacks.
Scaling = RotaryScaling | LinearScaling | NtkScaling | YarnScaling


def check_scaling(scaling, name: str) -> None:
    """Raise `TypeError` unless it is one of the ways to scale, or none."""
    if not isinstance(scaling, SlowerTurns | None):
        raise TypeError(
            f"{name} is of type {type(scaling).__name__}; expected one of pf.positions, such as "
            "pf.positions.YarnScaling(factor=4.0), or None."
        )


def _check_turns(slow_turns: float, fast_turns: float) -> None:
    """Raise `ValueError` unless slow pairs turn fewer times than fast ones."""
    if slow_turns >= fast_turns:
        raise ValueError(f"slow_turns={slow_turns}; expected fewer than fast_turns={fast_turns}.")
