"""Positions as the hands of clocks: sinusoidal codes, and the rotation that moves them on (chapter 05)."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from plainformer.checks import as_number, check_positive, checked
from plainformer.positions.positions import PositionScheme, positions_of


@checked
def sinusoidal_positions(
    positions: Integer[Array, "*batch seq"], d_model: int, *, base: float = 10_000.0
) -> Float[Array, "*batch seq d_model"]:
    r"""Describe each position by the hands of `d_model / 2` clocks, each slower than the one before.

    Implements `eq-positions-sinusoid`; Vaswani et al. (2017), section 3.5. Columns 2i and 2i + 1, counted from 0, hold
    the sine and the cosine of the angle of clock i.

    **Arguments**

    - `positions`: such as `jnp.arange(seq_len)`.
    - `d_model`: width of a token, even.
    - `base`: by how much the last clock would be slower than the first, if there were infinitely many.

    **Raises** `ValueError` if `d_model` is odd or below 1, or `base` is not above 0.
    """
    angles = clock_angles(positions, d_model, base)
    pairs = jnp.stack([jnp.sin(angles), jnp.cos(angles)], axis=-1)
    return pairs.reshape(*positions.shape, d_model)


def shift_matrix(offset: int, d_model: int, *, base: float = 10_000.0) -> Float[Array, "d_model d_model"]:
    r"""Return the matrix that moves every sinusoidal code on by `offset` positions, whichever position it stands for.

    Implements `eq-positions-shift`; Vaswani et al. (2017), section 3.5, claims that there is one. It turns each clock
    by an angle of its own, so it is a rotation. Codes are rows: the code of n + offset is the code of n times the
    matrix.

    **Arguments** `offset`, by how many positions, negative to go back; the others as for `sinusoidal_positions`.

    **Returns** the matrix, with blocks of 2 x 2 on its diagonal and zeros elsewhere.
    """
    positions = jnp.asarray(offset)[None]
    if positions.ndim > 1 or not jnp.issubdtype(positions.dtype, jnp.integer):
        raise TypeError(f"offset is {offset}; expected a whole number of positions.")
    angles = clock_angles(positions, d_model, base)[0]
    sines, cosines = jnp.sin(angles), jnp.cos(angles)
    blocks = jnp.stack([jnp.stack([cosines, -sines], axis=1), jnp.stack([sines, cosines], axis=1)], axis=1)
    return jax.scipy.linalg.block_diag(*blocks)


class SinusoidalPositions(PositionScheme):
    r"""Sinusoidal codes, added to the token vectors.

    Implements `eq-positions-embed`; Vaswani et al. (2017), section 3.5.

    **Arguments** and **Raises** as for `sinusoidal_positions`, without `positions`.
    """

    d_model: int = eqx.field(static=True)
    base: float = eqx.field(static=True)

    def __init__(self, d_model: int, *, base: float = 10_000.0):
        check_even("d_model", d_model)
        self.d_model, self.base = d_model, check_base(base)

    @checked
    def embed(
        self, x: Float[Array, "*batch seq d_model"], positions: Integer[Array, "*#batch seq"] | None = None
    ) -> Float[Array, "*batch seq d_model"]:
        """Add to each row of `x` the code of its position; `None` counts from 0."""
        codes = sinusoidal_positions(positions_of(x, positions), self.d_model, base=self.base)
        return x + codes.astype(x.dtype)


def clock_angles(positions: Integer[Array, "*batch seq"], width: int, base: float) -> Float[Array, "*batch seq pairs"]:
    """Return the angle of each pair of columns at each position, in radians: the position times base^(-2i / width)."""
    check_even("d_model", width)
    exponents = np.arange(0, width, 2) / width  # in double precision, once, outside the traced code
    frequencies = jnp.asarray(check_base(base) ** -exponents, float)
    return positions.astype(int).astype(float)[..., None] * frequencies


def check_even(name: str, width: int) -> None:
    """Raise `ValueError` unless columns can be taken in pairs."""
    check_positive(**{name: width})
    if width % 2:
        raise ValueError(f"{name} is {width}, an odd number; expected an even one, since columns are taken in pairs.")


def check_base(base: float) -> float:
    """Return the base as a Python number; raise `ValueError` unless it is finite and above 0."""
    number = as_number("base", base, "10000")
    if not 0 < number < math.inf:  # a NaN, too, is refused: no comparison with it holds
        raise ValueError(f"base is {base}; expected a finite number above 0, such as 10000.")
    return number
