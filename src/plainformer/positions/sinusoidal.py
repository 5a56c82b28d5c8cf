"""Positions as the hands of clocks: sinusoidal codes, and the rotation that moves them on (chapter on positions)."""

from collections.abc import Callable
from typing import Annotated

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, PRNGKeyArray

from plainformer.checks import Even, Number, PositiveFloat, checked
from plainformer.positions.positions import Place, PositionScheme, positions_of

Offset = Annotated[
    int, Number(lambda n: True, "how many positions to go on, or back if negative", whole=True, traced=True)
]


@checked
def sinusoidal_positions(
    positions: Integer[Array, "*batch seq"], d_model: Even, *, base: PositiveFloat = 10_000.0
) -> Float[Array, "*batch seq d_model"]:
    r"""Describe each position by the hands of `d_model / 2` clocks, each slower than the one before.

    Implements `eq-positions-sinusoid`; Vaswani et al. (2017), section 3.5. Columns 2i and 2i + 1, counted from 0, hold
    the sine and the cosine of the angle of clock i.

    Args:
        positions: whole numbers, such as `jnp.arange(seq_len)`.
        d_model: width of a token.
        base: by how much the last clock would be slower than the first, if there were infinitely many.

    Example:
        Three positions by two clocks; the first turns by one radian a position, the second by a hundredth.

        >>> with jnp.printoptions(precision=2, suppress=True):
        ...     print(pf.sinusoidal_positions(jnp.arange(3), d_model=4))
        [[ 0.    1.    0.    1.  ]
         [ 0.84  0.54  0.01  1.  ]
         [ 0.91 -0.42  0.02  1.  ]]
    """
    angles = clock_angles(positions, d_model, base)
    pairs = jnp.stack([jnp.sin(angles), jnp.cos(angles)], axis=-1)
    return pairs.reshape(*positions.shape, d_model)


@checked
def shift_matrix(offset: Offset, d_model: Even, *, base: PositiveFloat = 10_000.0) -> Float[Array, "d_model d_model"]:
    r"""Return the matrix that moves every sinusoidal code on by `offset` positions, whichever position it stands for.

    Implements `eq-positions-shift`; Vaswani et al. (2017), section 3.5, claims that there is one. It turns each clock
    by an angle of its own, so it is a rotation, with blocks of 2 x 2 on its diagonal. Codes are rows: the code of
    n + offset is the code of n times the matrix. A negative offset goes back.
    """
    positions = jnp.asarray(offset)[None]
    angles = clock_angles(positions, d_model, base)[0]
    sines, cosines = jnp.sin(angles), jnp.cos(angles)
    blocks = jnp.stack([jnp.stack([cosines, -sines], axis=1), jnp.stack([sines, cosines], axis=1)], axis=1)
    return jax.scipy.linalg.block_diag(*blocks)


class SinusoidalPositions(PositionScheme):
    r"""Sinusoidal codes, added to the token vectors.

    Implements `eq-positions-embed`; Vaswani et al. (2017), section 3.5.
    """

    d_model: int = eqx.field(static=True)
    base: float = eqx.field(static=True)

    @checked
    def __init__(self, d_model: Even, *, base: PositiveFloat = 10_000.0):
        self.d_model, self.base = d_model, base

    @classmethod
    def check(cls, config) -> None:
        """Raise `ValueError` unless columns go in pairs."""
        check_multiple(config, 2)

    @classmethod
    def made_for(cls, config, place: Place, *, key: PRNGKeyArray) -> "SinusoidalPositions":
        """Make the codes of tokens of this width."""
        return cls(config.d_model)

    def token_scale(self, d_model: int) -> float:
        """Return the root of the width (Vaswani et al., 2017, section 3.4)."""
        return d_model**0.5

    @checked
    def embed(
        self, x: Float[Array, "*batch seq d_model"], positions: Integer[Array, "*#batch seq"] | None = None
    ) -> Float[Array, "*batch seq d_model"]:
        """Add to each row of `x` the code of its position; `None` counts from 0."""
        codes = sinusoidal_positions(positions_of(x, positions), self.d_model, base=self.base)
        return x + codes.astype(x.dtype)


def check_multiple(config, multiple: int) -> None:
    """Raise `ValueError` unless the width of a token is a multiple of so many."""
    if config.d_model % multiple:
        raise ValueError(
            f"d_model is {config.d_model}; expected a multiple of {multiple} for "
            f"position_scheme={config.position_scheme!r}."
        )


def clock_angles(
    positions: Integer[Array, "*batch seq"], width: int, base: float, slow_down: Callable | None = None
) -> Float[Array, "*batch seq pairs"]:
    """Return the angle of each pair of columns at each position, in radians: the position times base^(-2i / width).

    `slow_down` changes these speeds.
    """
    exponents = np.arange(0, width, 2) / width  # in double precision, once, outside the traced code
    speeds = base**-exponents
    frequencies = jnp.asarray(speeds if slow_down is None else slow_down(speeds), float)
    return positions.astype(int).astype(float)[..., None] * frequencies
