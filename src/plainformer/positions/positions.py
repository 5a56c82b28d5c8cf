"""Ways to tell tokens where they stand: sinusoids, a learned table, rotation (chapter 05); biases are in position_bias.

A scheme is an object with three methods, of which most do nothing: `embed` adds to the token vectors before the first
block, `rotate` turns queries and keys, `bias` adds to the scores. Every scheme can therefore go wherever another can.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, PRNGKeyArray

from plainformer.checks import as_floats, as_number, check_axes, check_positive


def unchanged(self, rows: Float[Array, "*heads seq d"], positions=None) -> Float[Array, "*heads seq d"]:
    """What `embed` and `rotate` do in a scheme that has no use for them: return the rows as they are."""
    return rows


def no_bias(self, q_positions, kv_positions) -> None:
    """What `bias` does in a scheme that has no use for it: nothing is added to the scores."""


def sinusoidal_positions(
    positions: Integer[Array, " seq"], d_model: int, *, base: float = 10_000.0
) -> Float[Array, "seq d_model"]:
    r"""Describe each position by the hands of `d_model / 2` clocks, each slower than the one before.

    Implements `eq-positions-sinusoid`; Vaswani et al. (2017), section 3.5. Columns 2i and 2i + 1, counted from 0, hold
    the sine and the cosine of the angle of clock i.

    **Arguments**

    - `positions`: whole numbers, such as `jnp.arange(seq_len)`, `(seq,)`.
    - `d_model`: width of a token, even.
    - `base`: by how much the last clock would be slower than the first, if there were infinitely many.

    **Returns** one code per position, `(seq, d_model)`.

    **Raises** `ValueError` if `d_model` is odd or below 1, or `base` is not above 0; `TypeError` if positions are not
    whole numbers.
    """
    angles = _angles(whole_positions("positions", positions), d_model, "d_model", base)
    pairs = jnp.stack([jnp.sin(angles), jnp.cos(angles)], axis=2)
    return pairs.reshape(positions.shape[0], d_model)


def shift_matrix(offset: int, d_model: int, *, base: float = 10_000.0) -> Float[Array, "d_model d_model"]:
    r"""Give the matrix that moves every sinusoidal code on by `offset` positions, whichever position it stands for.

    Implements `eq-positions-shift`; Vaswani et al. (2017), section 3.5, claims that there is one. It turns each clock
    by an angle of its own, so it is a rotation. Codes are rows: the code of n + offset is the code of n times the
    matrix.

    **Arguments**

    - `offset`: by how many positions, a whole number; negative to go back.
    - `d_model`, `base`: as for `sinusoidal_positions`.

    **Returns** the matrix, `(d_model, d_model)`, with blocks of 2 x 2 on its diagonal and zeros elsewhere.

    **Raises** as `sinusoidal_positions`.
    """
    angles = _angles(whole_positions("offset", jnp.asarray(offset)[None], seq=1), d_model, "d_model", base)[0]
    sines, cosines = jnp.sin(angles), jnp.cos(angles)
    blocks = jnp.stack([jnp.stack([cosines, -sines], axis=1), jnp.stack([sines, cosines], axis=1)], axis=1)
    return jax.scipy.linalg.block_diag(*blocks)


def rotate_pairs(
    rows: Float[Array, "*heads seq d_k"], positions: Integer[Array, " seq"], *, base: float = 10_000.0
) -> Float[Array, "*heads seq d_k"]:
    r"""Turn each query or key, pair of columns by pair of columns, by an angle in proportion to its position.

    Implements `eq-positions-rotary`; Su et al. (2021), equations 14 and 15. The dot product of a turned query and a
    turned key depends on the difference of their positions alone: `eq-positions-rotary-offset`.

    **Arguments**

    - `rows`: queries or keys, `(seq, d_k)`, or with an axis of heads before; d_k even.
    - `positions`: the position of each row, whole numbers, `(seq,)`.
    - `base`: as for `sinusoidal_positions`.

    **Returns** rows of the same shape and the same lengths.

    **Raises** `ValueError` if d_k is odd, if there are not as many positions as rows, or if `base` is not above 0;
    `TypeError` if positions are not whole numbers, or rows no floats.

    **Differs from the paper** in which columns form a pair: column i and column i + d_k / 2, as in Llama and GPT-NeoX,
    where the paper takes columns 2i and 2i + 1. Columns of learned matrices have no order, so it is the same model.
    """
    positions, d_k = _positions_of(rows, positions), rows.shape[-1]
    rows = as_floats("rows", rows)
    angles = _angles(positions, d_k, "d_k", base)
    sines, cosines = (function(angles).astype(rows.dtype) for function in (jnp.sin, jnp.cos))
    sines, cosines = (jnp.broadcast_to(each, (*rows.shape[:-1], d_k // 2)) for each in (sines, cosines))
    first, second = jnp.split(rows, 2, axis=-1)
    return jnp.concatenate([first * cosines - second * sines, first * sines + second * cosines], axis=-1)


class SinusoidalPositions(eqx.Module):
    r"""Sinusoidal codes, added to the token vectors.

    Implements `eq-positions-embed`; Vaswani et al. (2017), section 3.5.

    **Arguments** and **Raises** as for `sinusoidal_positions`, without `positions`.
    """

    d_model: int = eqx.field(static=True)
    base: float = eqx.field(static=True)

    def __init__(self, d_model: int, *, base: float = 10_000.0):
        _check_even("d_model", d_model)
        self.d_model, self.base = d_model, _checked_base(base)

    def embed(
        self, x: Float[Array, "seq d_model"], positions: Integer[Array, " seq"] | None = None
    ) -> Float[Array, "seq d_model"]:
        """Add to each row of `x`, `(seq, d_model)`, the code of its position; `None` counts from 0."""
        x = as_floats("x", x, seq=None, d_model=self.d_model)
        codes = sinusoidal_positions(_positions_of(x, positions), self.d_model, base=self.base)
        return x + codes.astype(x.dtype)

    rotate = unchanged
    bias = no_bias


class LearnedPositions(eqx.Module):
    r"""One learned vector per position, added to the token vectors.

    Implements `eq-positions-learned`, and by it `eq-positions-embed`; Gehring et al. (2017), section 3.1.

    **Arguments**

    - `max_len`: for how many positions there is a vector.
    - `d_model`: width of a token.
    - `key`: random key for the table (normal, standard deviation 0.02).

    **Attributes** `table`, `(max_len, d_model)`. **Raises** `ValueError` if a size is below 1.
    """

    table: Float[Array, "max_len d_model"]

    def __init__(self, max_len: int, d_model: int, *, key: PRNGKeyArray):
        check_positive(max_len=max_len, d_model=d_model)
        self.table = 0.02 * jax.random.normal(key, (max_len, d_model))

    def embed(
        self, x: Float[Array, "seq d_model"], positions: Integer[Array, " seq"] | None = None
    ) -> Float[Array, "seq d_model"]:
        """Add to each row of `x`, `(seq, d_model)`, the vector of its position; `None` counts from 0.

        Raises `ValueError` if a position lies outside the table; under `jax.jit`, positions that are passed have no
        values yet, and the compiled function raises when it runs.
        """
        max_len, d_model = self.table.shape
        x = as_floats("x", x, seq=None, d_model=d_model)
        # Counted in NumPy, so that the values are known under jax.jit, too.
        rows = np.arange(x.shape[0]) if positions is None else _positions_of(x, positions)
        return x + self.table[_inside(rows, max_len)].astype(x.dtype)

    rotate = unchanged
    bias = no_bias


class RotaryPositions(eqx.Module):
    r"""Queries and keys turned by their positions.

    Implements `eq-positions-rotary`; Su et al. (2021), section 3.2.2.

    **Arguments**

    - `base`: as for `sinusoidal_positions`.

    **Raises** `ValueError` if `base` is not above 0.
    """

    base: float = eqx.field(static=True)

    def __init__(self, *, base: float = 10_000.0):
        self.base = _checked_base(base)

    def rotate(
        self, rows: Float[Array, "*heads seq d_k"], positions: Integer[Array, " seq"] | None = None
    ) -> Float[Array, "*heads seq d_k"]:
        """Turn queries or keys, `(heads, seq, d_k)`, by their positions; `None` counts from 0."""
        return rotate_pairs(rows, _positions_of(rows, positions), base=self.base)

    embed = unchanged
    bias = no_bias


def check_scheme(position) -> None:
    """Raise `TypeError` unless `position` is an object that can rotate and bias."""
    if isinstance(position, type):
        name = position.__name__
        raise TypeError(f"position is the class {name}; expected an object of it: make one first, by {name}(…).")
    if not (hasattr(position, "rotate") and hasattr(position, "bias")):
        came = type(position).__name__
        raise TypeError(f"position is of type {came}; expected a scheme of chapter 05, such as RotaryPositions().")


def whole_positions(name: str, positions, **axes: int | None) -> Integer[Array, "..."]:
    """The positions as integers with a sign, since they are subtracted, after checking that they are whole numbers.

    **Arguments** `name`, for the message; `positions`, any array; `axes`, as for `check_axes`, `seq` if none is given.

    **Raises** `TypeError` if they are not whole numbers, `ValueError` if they have the wrong shape.
    """
    check_axes(name, positions, "", **(axes or {"seq": None}))
    if not jnp.issubdtype(positions.dtype, jnp.integer):
        raise TypeError(f"{name} holds {positions.dtype}; expected whole numbers, such as jnp.arange(5) returns.")
    return positions.astype(int)


def _positions_of(rows, positions):
    """A position for each row: 0, 1, 2, … unless others are given."""
    if getattr(rows, "ndim", 0) < 2:
        check_axes("rows", rows, seq=None, d_k=None)
    seq = rows.shape[-2]
    return jnp.arange(seq) if positions is None else whole_positions("positions", positions, seq=seq)


def _inside(positions, max_len: int):
    """The positions, once it is sure that each of them has a row among `max_len`."""
    outside = (positions < 0) | (positions >= max_len)
    expected = f"expected 0 to {max_len - 1}. The table has a vector for these only; make it longer for more."
    if isinstance(positions, jax.core.Tracer):
        return eqx.error_if(positions, outside, f"A position is out of range; {expected}")
    if outside.any():
        raise ValueError(f"Position {positions[outside][0]} is out of range; {expected}")
    return positions


def _angles(positions, width: int, name: str, base: float) -> Float[Array, "seq pairs"]:
    """The angle of each pair of columns at each position, in radians: the position times base^(-2i / width)."""
    _check_even(name, width)
    exponents = np.arange(0, width, 2) / width  # in double precision, once, outside the traced code
    frequencies = jnp.asarray(_checked_base(base) ** -exponents, float)
    return positions.astype(float)[:, None] * frequencies[None, :]


def _check_even(name: str, width: int) -> None:
    check_positive(**{name: width})
    if width % 2:
        raise ValueError(f"{name} is {width}, an odd number; expected an even one, since columns are taken in pairs.")


def _checked_base(base: float) -> float:
    number = as_number("base", base, "10000")
    if not 0 < number < math.inf:  # a NaN, too, is refused: no comparison with it holds
        raise ValueError(f"base is {base}; expected a finite number above 0, such as 10000.")
    return number
