"""Positions as rotations of queries and keys (chapter on positions)."""

from typing import Annotated

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer, PRNGKeyArray

from plainformer.checks import Even, Number, PositiveFloat, check_each, checked
from plainformer.positions.positions import Place, PositionScheme, positions_of
from plainformer.positions.sinusoidal import clock_angles
from plainformer.positions.slower import Scaling, check_scaling

Fraction = Annotated[float, Number(lambda x: 0 < x <= 1, "above 0 and at most 1, such as 0.25 for a quarter")]


@checked
def rotate_pairs(
    rows: Float[Array, "*batch seq d_k"],
    positions: Integer[Array, "*#batch seq"],
    *,
    base: PositiveFloat = 10_000.0,
    scaling: Scaling | None = None,
) -> Float[Array, "*batch seq d_k"]:
    r"""Turn each query or key, pair of columns by pair of columns, by an angle in proportion to its position.

    Implements `eq-positions-rotary`; Su et al. (2021), equations 14 and 15. The dot product of a turned query and a
    turned key depends on the difference of their positions alone: `eq-positions-rotary-offset`.

    Args:
        rows: queries or keys.
        positions: whole numbers, such as `jnp.arange(seq_len)`.
        base: by how much the last pair would be slower than the first, if there were infinitely many.
        scaling: how much slower pairs turn, for longer texts (chapter on serving); `None` for no change.

    Differs from the paper:
        In which columns form a pair: column i and column i + d_k / 2, as in GPT-NeoX and in Hugging Face's Llama, where
        the paper takes columns 2i and 2i + 1. Columns of learned matrices have no order, so it is the same model.
    """
    check_each(Even, d_k=rows.shape[-1])
    check_scaling(scaling, "scaling")
    slow_down, magnitude = (None, 1.0) if scaling is None else (scaling.slowed, scaling.magnitude)
    return turn_pairs(rows, clock_angles(positions, rows.shape[-1], base, slow_down), magnitude)


def turn_pairs(rows: Array, angles: Array, magnitude: float | Array = 1.0) -> Array:
    """Turn each pair of columns by its angle, and multiply it."""
    sines, cosines = jnp.sin(angles).astype(rows.dtype) * magnitude, jnp.cos(angles).astype(rows.dtype) * magnitude
    first, second = jnp.split(rows, 2, axis=-1)
    return jnp.concatenate([first * cosines - second * sines, first * sines + second * cosines], axis=-1)


class RotaryPositions(PositionScheme):
    r"""Queries and keys turned by their positions.

    Implements `eq-positions-rotary`; Su et al. (2021), section 3.2.2.

    Args:
        base: as for `rotate_pairs`.
        fraction: which part of the columns, counted from the first, is turned: a quarter in GPT-NeoX (Black et al.,
            2022, section 2.1.1).
        scaling: how much slower pairs turn, for longer texts (chapter on serving); `None` for no change.

    Example:
        Three tokens with equal vectors; the products of the turned ones tell how far apart the tokens stand.

        >>> turned = pf.RotaryPositions().rotate(jnp.ones((3, 2)))
        >>> print((turned @ turned.mT).round())
        [[ 2.  1. -1.]
         [ 1.  2.  1.]
         [-1.  1.  2.]]
    """

    can_slide = True
    acts_on_scores = True
    base: float = eqx.field(static=True)
    fraction: float = eqx.field(static=True)
    scaling: Scaling | None = eqx.field(static=True, default=None)

    @checked
    def __init__(self, *, base: PositiveFloat = 10_000.0, fraction: Fraction = 1.0, scaling: Scaling | None = None):
        check_scaling(scaling, "scaling")
        self.base, self.fraction, self.scaling = base, fraction, scaling

    @classmethod
    def check(cls, config) -> None:
        """Raise `ValueError` unless the columns that turn are pairs."""
        _num_turned(config.turned_width, config.rotary_fraction, "rotary_fraction")

    @classmethod
    def made_for(cls, config, place: Place, *, key: PRNGKeyArray) -> "RotaryPositions":
        """Make the scheme with the base, the fraction and the scaling of a configuration."""
        return cls(base=config.rope_theta, fraction=config.rotary_fraction, scaling=config.rope_scaling)

    @checked
    def rotate(
        self, rows: Float[Array, "*batch seq d_k"], positions: Integer[Array, "*#batch seq"] | None = None
    ) -> Float[Array, "*batch seq d_k"]:
        """Turn queries or keys by their positions; `None` counts from 0."""
        turned, untouched = jnp.split(rows, [_num_turned(rows.shape[-1], self.fraction, "fraction")], axis=-1)
        turned = rotate_pairs(turned, positions_of(rows, positions), base=self.base, scaling=self.scaling)
        return jnp.concatenate([turned, untouched], axis=-1)


def _num_turned(width: int, fraction: float, name: str) -> int:
    """How many columns of a key turn; raise `ValueError` unless they are pairs."""
    turned = int(round(fraction * width, 6))
    if turned % 2 or turned == 0:
        raise ValueError(
            f"Of the {width} columns of a key, {name}={fraction} turns {turned}; expected an even number above 0, as "
            "columns turn in pairs. Change d_model, num_heads or d_k."
        )
    return turned
