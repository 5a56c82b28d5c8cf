"""From text, images and series to rows of a matrix (chapter 01); the text's own half is in `vocabulary` and `bpe`."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, Num, PRNGKeyArray

from plainformer.checks import check_axes, check_positive, check_token_ids


def one_hot(ids: Integer[Array, " seq"], vocab_size: int) -> Float[Array, "seq vocab_size"]:
    r"""Turn each id into a row with a one in that column and zeros elsewhere.

    Implements `eq-tokens-one-hot`.

    **Arguments**

    - `ids`: whole numbers from 0 to `vocab_size - 1`, `(seq,)`.
    - `vocab_size`: the number of columns.

    **Returns** `(seq, vocab_size)`, float32.

    **Raises** `ValueError` if an id is out of range; under `jax.jit`, where ids have no values yet, the compiled
    function raises when it runs.
    """
    check_positive(vocab_size=vocab_size)
    ids = _in_range(ids, vocab_size)
    return (ids[:, None] == jnp.arange(vocab_size)[None, :]).astype(jnp.float32)


def look_up(table: Float[Array, "vocab_size d_model"], ids: Integer[Array, " seq"]) -> Float[Array, "seq d_model"]:
    r"""Take row `ids[n]` of the table as the vector of token n.

    Implements `eq-tokens-look-up` and, without ever forming a one-hot matrix, `eq-tokens-one-hot-product`; Bengio et
    al. (2003), section 2.

    **Arguments**

    - `table`: one row per token of the vocabulary, `(vocab_size, d_model)`.
    - `ids`: whole numbers from 0 to `vocab_size - 1`, `(seq,)`.

    **Returns** one row per token of the text, `(seq, d_model)`.

    **Raises** `ValueError` if an id is out of range. A compiled function has no values to look at until it runs, and
    raises then: `EquinoxRuntimeError` under `eqx.filter_jit`, JAX's own `JaxRuntimeError` with the same sentence in it
    under plain `jax.jit`. Plain indexing would clip the id to the last row instead, silently.
    """
    check_axes("table", table, vocab_size=None, d_model=None)
    return table[_in_range(ids, table.shape[0])]


def _in_range(ids: Integer[Array, " seq"], vocab_size: int) -> Integer[Array, " seq"]:
    check_axes("ids", ids, seq=None)
    if not jnp.issubdtype(ids.dtype, jnp.integer):
        raise TypeError(f"ids are {ids.dtype}; expected whole numbers, such as encode() returns.")
    if isinstance(ids, jax.core.Tracer):  # no values to look at yet, so the check goes into the compiled function
        # Compared before the cast, which would wrap what is too large for 32 bits.
        largest = min(vocab_size - 1, jnp.iinfo(ids.dtype).max)
        outside = (ids < 0) | (ids > largest)
        message = f"A token id is out of range; expected 0 to {vocab_size - 1}."
        return eqx.error_if(ids.astype(jnp.int32), outside, message)
    check_token_ids(ids, vocab_size)
    return jnp.asarray(ids, dtype=jnp.int32)


class TokenEmbedding(eqx.Module):
    r"""A learned vector for each token of a vocabulary.

    Implements `eq-tokens-look-up`; the rows start with independent normal entries of variance `1 / d_model`, so that a
    row's length is about one.

    **Arguments**

    - `vocab_size`: the number of tokens.
    - `d_model`: the number of features of each vector.
    - `key`: random key for the initial table.

    Called with ids, `(seq,)`, it returns their rows, `(seq, d_model)`, and raises as `look_up` does.
    """

    weight: Float[Array, "vocab_size d_model"]

    def __init__(self, vocab_size: int, d_model: int, *, key: PRNGKeyArray):
        check_positive(vocab_size=vocab_size, d_model=d_model)
        self.weight = jax.random.normal(key, (vocab_size, d_model)) / d_model**0.5

    def __call__(self, ids: Integer[Array, " seq"]) -> Float[Array, "seq d_model"]:
        """Give the row of each id."""
        return look_up(self.weight, ids)


def linear_map(
    x: Float[Array, "seq d_in"], weight: Float[Array, "d_in d_model"], bias: Float[Array, " d_model"] | None = None
) -> Float[Array, "seq d_model"]:
    r"""Multiply every row by one matrix, and add one vector to every row.

    Implements `eq-tokens-linear`; Dosovitskiy et al. (2021), equation 1 (the patch projection).

    **Arguments**

    - `x`: continuous tokens, `(seq, d_in)`.
    - `weight`: `(d_in, d_model)`.
    - `bias`: `(d_model,)`; `None` for none.

    **Returns** `(seq, d_model)`.

    **Raises** `ValueError` if the widths do not fit.
    """
    check_axes("weight", weight, d_in=None, d_model=None)
    check_axes("x", x, seq=None, d_in=weight.shape[0])
    product = x @ weight
    if bias is None:
        return product
    check_axes("bias", bias, d_model=weight.shape[1])
    return product + bias[None, :]


class LinearEmbedding(eqx.Module):
    r"""A learned linear map for tokens that are already vectors of numbers, such as patches of an image.

    Implements `eq-tokens-linear`; the weights start normal with variance `1 / d_in`, the bias at zero.

    **Arguments**

    - `d_in`: the number of features of each incoming token.
    - `d_model`: the number of features of each outgoing one.
    - `use_bias`: whether to add a learned vector to every row.
    - `key`: random key for the initial weights.

    Called with `(seq, d_in)` it returns `(seq, d_model)`, and raises as `linear_map` does.
    """

    weight: Float[Array, "d_in d_model"]
    bias: Float[Array, " d_model"] | None

    def __init__(self, d_in: int, d_model: int, *, use_bias: bool = True, key: PRNGKeyArray):
        check_positive(d_in=d_in, d_model=d_model)
        self.weight = jax.random.normal(key, (d_in, d_model)) / d_in**0.5
        self.bias = jnp.zeros(d_model) if use_bias else None

    def __call__(self, x: Float[Array, "seq d_in"]) -> Float[Array, "seq d_model"]:
        """Give the embedding of each row of `x`."""
        return linear_map(x, self.weight, self.bias)


def image_to_patches(
    image: Num[Array, "height width channels"], patch_size: int | tuple[int, int]
) -> Num[Array, "num_patches patch_features"]:
    r"""Cut an image into patches, and write each one as a row.

    Implements `eq-tokens-patches`; Dosovitskiy et al. (2021), section 3.1. Patches are in reading order, left to right
    and then down; so are the pixels of a patch, and each pixel's channels stay together.

    **Arguments**

    - `image`: `(height, width, channels)`.
    - `patch_size`: the side of a square patch, or its `(height, width)`, in pixels.

    **Returns** one row per patch, `(num_patches, patch_height * patch_width * channels)`.

    **Raises** `ValueError` if the patches do not tile the image.
    """
    check_axes("image", image, "For a grey image, pass image[:, :, None].", height=None, width=None, channels=None)
    height, width, channels = image.shape
    down, right, tall, wide = _tiling(height, width, patch_size)
    blocks = image.reshape(down, tall, right, wide, channels)
    return blocks.transpose(0, 2, 1, 3, 4).reshape(down * right, tall * wide * channels)


def patches_to_image(
    patches: Num[Array, "num_patches patch_features"], patch_size: int | tuple[int, int], *, height: int, width: int
) -> Num[Array, "height width channels"]:
    r"""Put the patches back together: the inverse of `image_to_patches`.

    **Arguments**

    - `patches`: one row per patch, `(num_patches, patch_height * patch_width * channels)`.
    - `patch_size`: as it was given to `image_to_patches`.
    - `height`, `width`: of the image, in pixels.

    **Returns** the image, `(height, width, channels)`.

    **Raises** `ValueError` if the patches do not tile such an image.
    """
    check_positive(height=height, width=width)
    down, right, tall, wide = _tiling(height, width, patch_size)
    hint = f"An image of {height} x {width} pixels takes {down * right} such patches."
    check_axes("patches", patches, hint, num_patches=down * right, patch_features=None)
    channels, rest = divmod(patches.shape[1], tall * wide)
    if rest:
        raise ValueError(f"patches have {patches.shape[1]} features; expected a multiple of {tall} * {wide} pixels.")
    blocks = patches.reshape(down, right, tall, wide, channels)
    return blocks.transpose(0, 2, 1, 3, 4).reshape(height, width, channels)


def _tiling(height: int, width: int, patch_size: int | tuple[int, int]) -> tuple[int, int, int, int]:
    if isinstance(patch_size, int | np.integer):
        patch_size = (patch_size, patch_size)
    if not isinstance(patch_size, tuple | list) or len(patch_size) != 2:
        raise TypeError(f"patch_size is {patch_size!r}; expected one side or (height, width), in pixels.")
    tall, wide = patch_size
    check_positive(patch_height=tall, patch_width=wide)
    if height % tall or width % wide:
        raise ValueError(
            f"Patches of {tall} x {wide} pixels do not tile an image of {height} x {width}; expected divisors of its "
            "height and width. Crop or resize the image first."
        )
    return height // tall, width // wide, tall, wide


def next_token_pairs(
    ids, *, start: int | None = None, end: int | None = None
) -> tuple[Integer[Array, " seq"], Integer[Array, " seq"]]:
    r"""Turn one sequence into inputs and targets: at every position the target is the token that comes next.

    Implements `eq-tokens-next`.

    **Arguments**

    - `ids`: the ids of the text, in order, a list or an array.
    - `start`: the id to put before the first token; `None` for nothing.
    - `end`: the id to put after the last token; `None` for nothing.

    **Returns** inputs and targets, each `(seq,)`, int32: of N ids with both special tokens, N + 1 pairs.

    **Raises** `ValueError` if there are fewer than two tokens in all, so that nothing comes next; if an id is negative
    or too large for int32; or for a batch where one sequence is expected. `TypeError` if ids are not whole numbers.
    """
    before, after = ([] if token is None else [token] for token in (start, end))
    sequence = jnp.concatenate([_as_ids(before), _as_ids(ids), _as_ids(after)])
    if len(sequence) < 2:
        raise ValueError(f"There are {len(sequence)} tokens in all; expected at least 2, a token and the next one.")
    return sequence[:-1], sequence[1:]


def _as_ids(ids) -> Integer[Array, " seq"]:
    if isinstance(ids, jax.core.Tracer):
        return _in_range(ids, 2**31)
    return jnp.asarray(check_token_ids(ids), dtype=jnp.int32)


def cosine_similarity(x: Float[Array, "rows d"], y: Float[Array, "columns d"]) -> Float[Array, "rows columns"]:
    r"""Give the cosine of the angle between each row of `x` and each row of `y`.

    Implements `eq-tokens-cosine`.

    **Arguments**

    - `x`, `y`: vectors as rows, `(rows, d)` and `(columns, d)`.

    **Returns** numbers from -1 to 1, `(rows, columns)`; 0 where a vector is all zeros and has no direction.

    **Raises** `ValueError` if the widths differ.
    """
    check_axes("x", x, rows=None, d=None)
    check_axes("y", y, columns=None, d=x.shape[1])
    lengths = _row_lengths(x)[:, None] * _row_lengths(y)[None, :]
    return jnp.where(lengths > 0, x @ y.T / jnp.where(lengths > 0, lengths, 1), 0)


def _row_lengths(x: Float[Array, "rows d"]) -> Float[Array, " rows"]:
    squares = (x**2).sum(axis=1)
    safe = jnp.where(squares > 0, squares, 1)  # the root has no finite slope at 0, so the gradient never sees that 0
    return jnp.where(squares > 0, jnp.sqrt(safe), 0)
