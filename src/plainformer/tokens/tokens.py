"""From tokens to rows of a matrix: one-hot rows, embeddings, linear maps, and pairs to learn from."""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, PRNGKeyArray

from plainformer.checks import Positive, check_auto_axes, check_each, checked, ids_in_range
from plainformer.data.lists import check_token_ids


def normal(key: PRNGKeyArray, shape: tuple[int, ...], cut_at: float = math.inf) -> Float[Array, "..."]:
    """Draw independent standard normal numbers, anew where they are beyond `cut_at`.

    They are the first of a longer row, whose length is a power of two, because each shape would need a program of its
    own, which takes longer to compile than to run. They are those that `jax.random` draws for the shape, as long as
    `jax_threefry_partitionable` is on, as it is by default.
    """
    size = math.prod(shape)
    length = 1 << max(12, (size - 1).bit_length()) if size <= 1 << 20 else size
    is_cut = cut_at < math.inf
    row = jax.random.truncated_normal(key, -cut_at, cut_at, (length,)) if is_cut else jax.random.normal(key, (length,))
    return row[:size].reshape(shape)


def glorot_normal(key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "*batch d_in d_out"]:
    """Draw matrices whose entries have the variance 2 / (d_in + d_out).

    Glorot and Bengio (2010), equation 12, with entries of a normal distribution that is cut at twice its standard
    deviation, as `jax.nn.initializers.glorot_normal` has them.
    """
    numbers = normal(key, shape, cut_at=2.0)
    (*_, d_in, d_out), float_of = shape, numbers.dtype.type
    std_of_cut = float_of(0.87962566103423978)  # of a standard normal distribution without what is beyond 2
    return numbers * (np.sqrt(float_of(2 / (d_in + d_out))) / std_of_cut)


def unit_variance(key: PRNGKeyArray, shape: tuple[int, int]) -> Float[Array, "d_in d_out"]:
    """Draw a matrix that keeps the variance of what it multiplies: normal entries of the variance 1 / d_in."""
    numbers = normal(key, shape)
    return numbers * np.sqrt(numbers.dtype.type(1 / shape[0]))


@checked
def one_hot(ids: Integer[Array, "*batch seq"], vocab_size: Positive) -> Float[Array, "*batch seq vocab_size"]:
    """Turn each id into a row with a one in that column and zeros elsewhere; raise as `embed` does.

    Implements `eq-tokens-one-hot`.

    Example:
        >>> print(pf.one_hot(jnp.asarray([2, 0]), vocab_size=3))
        [[0. 0. 1.]
         [1. 0. 0.]]
    """
    ids = ids_in_range(ids, vocab_size).astype(jnp.int32)
    return (ids[..., None] == jnp.arange(vocab_size)).astype(jnp.float32)


@checked
def embed(
    table: Float[Array, "vocab_size d_model"], ids: Integer[Array, "*batch seq"]
) -> Float[Array, "*batch seq d_model"]:
    """Take row `ids[n]` of the table as the vector of token n.

    Implements `eq-tokens-look-up` and, without ever forming a one-hot matrix, `eq-tokens-one-hot-product`; Bengio et
    al. (2003), section 2.

    Raises:
        ValueError: if an id is out of range, which plain indexing would silently clip to the last row.
        EquinoxRuntimeError: the same in a function compiled by `eqx.filter_jit`, when it runs.
        JaxRuntimeError: the same in a function compiled by `jax.jit`, when it runs.
    """
    check_auto_axes("ids", ids)
    return table[ids_in_range(ids, table.shape[0]).astype(jnp.int32)]


class TokenEmbedding(eqx.Module):
    """A learned vector for each token of a vocabulary.

    Implements `eq-tokens-look-up`; the rows start with independent normal entries of variance `1 / d_model`, so that a
    row's length is about one.
    """

    weight: Float[Array, "vocab_size d_model"]

    @checked
    def __init__(self, vocab_size: Positive, d_model: Positive, *, key: PRNGKeyArray):
        self.weight = normal(key, (vocab_size, d_model)) / d_model**0.5

    @checked
    def __call__(self, ids: Integer[Array, "*batch seq"]) -> Float[Array, "*batch seq d_model"]:
        """Return the row of each id; raise as `embed` does."""
        return embed(self.weight, ids)


@checked
def linear(
    x: Float[Array, "*batch d_in"], weight: Float[Array, "d_in d_out"], bias: Float[Array, " d_out"] | None = None
) -> Float[Array, "*batch d_out"]:
    r"""Multiply every row by one matrix, and add one vector to every row.

    Implements `eq-subwords-linear`; Dosovitskiy et al. (2021), equation 1 (the patch projection).
    """
    # One tall matrix instead of a batch of them: 1.3 to 1.4 times as fast on a CPU, gradients included.
    rows = x.reshape(-1, x.shape[-1]) @ weight
    y = rows.reshape(*x.shape[:-1], weight.shape[1])
    return y if bias is None else y + bias


class Linear(eqx.Module):
    """A learned linear map of every row: one matrix for all of them, and one vector, zeros at first, added to each.

    Implements `eq-subwords-linear`. The `initialiser` makes the matrix from key and shape; Glorot normal by default.
    """

    weight: Float[Array, "d_in d_out"]
    bias: Float[Array, " d_out"] | None

    @checked
    def __init__(
        self,
        d_in: Positive,
        d_out: Positive,
        *,
        use_bias: bool = True,
        initialiser: Callable = glorot_normal,
        key: PRNGKeyArray,
    ):
        self.weight = initialiser(key, (d_in, d_out))
        self.bias = jnp.zeros(d_out) if use_bias else None

    @checked
    def __call__(self, x: Float[Array, "*batch d_in"]) -> Float[Array, "*batch d_out"]:
        """Return the map of each row of `x`."""
        return linear(x, self.weight, self.bias)


def next_token_pairs(
    ids, *, start: int | None = None, end: int | None = None
) -> tuple[Integer[Array, " seq"], Integer[Array, " seq"]]:
    """Turn one sequence, a list or an array, into inputs and targets: at every position the token that comes next.

    Implements `eq-tokens-next`. The ids `start` and `end` are put before the first and after the last token, so that N
    ids with both make N + 1 pairs.
    """
    before, after = ([] if token is None else [token] for token in (start, end))
    sequence = jnp.concatenate([_as_ids(before, "start"), _as_ids(ids, "ids"), _as_ids(after, "end")])
    if len(sequence) < 2:
        raise ValueError(f"There are {len(sequence)} tokens in all; expected at least 2, a token and the next one.")
    return sequence[:-1], sequence[1:]


def _as_ids(ids, name: str) -> Integer[Array, " seq"]:
    if isinstance(ids, jax.core.Tracer):
        check_each(Integer[Array, " seq"], **{name: ids})
        return ids_in_range(ids, None, name).astype(jnp.int32)
    return jnp.asarray(check_token_ids(ids, name=name), dtype=jnp.int32)


@checked
def cosine_similarity(x: Float[Array, "rows d"], y: Float[Array, "columns d"]) -> Float[Array, "rows columns"]:
    """Return the cosine of the angle between each row of `x` and each row of `y`: 0 where one is all zeros.

    Implements `eq-tokens-cosine`.
    """
    kept = jnp.result_type(x, y)
    wide = kept if jnp.finfo(kept).bits >= 32 else jnp.float32  # in 16 bits squares are soon infinite, or 0
    x, y = x.astype(wide), y.astype(wide)
    lengths = _length(x)[:, None] * _length(y)[None, :]
    return jnp.where(lengths > 0, x @ y.T / jnp.where(lengths > 0, lengths, 1), 0).astype(kept)


def _length(x: Float[Array, "rows d"]) -> Float[Array, " rows"]:
    squares = (x**2).sum(axis=1)
    safe = jnp.where(squares > 0, squares, 1)  # the root has no finite slope at 0, so the gradient never sees that 0
    return jnp.where(squares > 0, jnp.sqrt(safe), 0)
