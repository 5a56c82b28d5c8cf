"""The key–value cache: what attention has already computed about the tokens read so far (chapter 06)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer

from plainformer.attention.self_attention import attend
from plainformer.checks import check_axes, check_positive
from plainformer.positions.positions import check_scheme


class KeyValueCache(eqx.Module):
    r"""Room for the keys and values of one attention layer, filled from the left as tokens are read.

    Implements `eq-decoder-cache`; Shazeer (2019), section 2.4, where keys and values are one more argument and result.

    **Arguments**

    - `num_kv_heads`: number of key and value heads.
    - `capacity`: for how many tokens of each text there is room.
    - `d_k`, `d_v`: width of a key, of a value.
    - `num_texts`: how many texts are read side by side, all by equally many tokens at a time.
    - `dtype`: of keys and values; `None` for JAX's default, float32.

    **Attributes** Keys and values of all texts stand together, the heads' parts one after the other: `keys`,
    `(num_kv_heads * num_texts, d_k, capacity)`, a column per slot, so that the product with a query needs no transposed
    copy of them; `values`, `(num_kv_heads * num_texts, capacity, d_v)`, a row per slot. `positions`,
    `(num_texts, capacity)`, int32: where in its text the token of each slot stands, or -1 in a slot that nobody may
    attend to, empty or padding. `length`, int32: how many slots of each text are filled.

    **Raises** `ValueError` if a size is below 1.
    """

    keys: Float[Array, "kv_heads*num_texts d_k capacity"]
    values: Float[Array, "kv_heads*num_texts capacity d_v"]
    positions: Int[Array, "num_texts capacity"]
    length: Int[Array, ""]

    def __init__(self, num_kv_heads: int, capacity: int, d_k: int, d_v: int, *, num_texts: int = 1, dtype=None):
        check_positive(num_kv_heads=num_kv_heads, capacity=capacity, d_k=d_k, d_v=d_v, num_texts=num_texts)
        self.keys = jnp.zeros((num_kv_heads * num_texts, d_k, capacity), dtype)
        self.values = jnp.zeros((num_kv_heads * num_texts, capacity, d_v), dtype)
        self.positions = jnp.full((num_texts, capacity), -1, jnp.int32)
        self.length = jnp.asarray(0, jnp.int32)

    def append(
        self,
        keys: Float[Array, "rows seq d_k"],
        values: Float[Array, "rows seq d_v"],
        positions: Integer[Array, "num_texts seq"],
    ) -> "KeyValueCache":
        """Give the cache with the keys and values of `seq` further tokens of each text, which stand at `positions`.

        Raises `ValueError` if they do not fit in; a compiled function, in which `length` has no value yet, has to see
        to that beforehand, as by `with_room`.
        """
        rows, d_k, capacity = self.keys.shape
        check_axes("keys", keys, rows=rows, seq=None, d_k=d_k)
        seq = keys.shape[1]
        check_axes("values", values, rows=rows, seq=seq, d_v=self.values.shape[2])
        check_axes("positions", positions, num_texts=self.positions.shape[0], seq=seq)
        filled = 0 if isinstance(self.length, jax.core.Tracer) else int(self.length)
        if filled + seq > capacity:
            raise ValueError(
                f"The cache has room for {capacity} tokens and holds {filled}; expected room for {seq} more. "
                "Make it larger, or start anew with the last tokens."
            )

        def write(room, entries, axis):
            return jax.lax.dynamic_update_slice_in_dim(room, entries.astype(room.dtype), self.length, axis)

        entries = (
            write(self.keys, keys.transpose(0, 2, 1), 2),
            write(self.values, values, 1),
            write(self.positions, positions, 1),
            self.length + seq,
        )
        return eqx.tree_at(lambda cache: (cache.keys, cache.values, cache.positions, cache.length), self, entries)

    def with_room(self, seq: int) -> "KeyValueCache":
        """Give the cache itself, which raises when a compiled function runs and has no room for `seq` more tokens."""
        if not isinstance(self.length, jax.core.Tracer):
            return self  # `append` looks at the length itself
        capacity = self.positions.shape[1]
        message = (
            f"The cache is full: it has room for {capacity} tokens in all; expected room for {seq} more. "
            "Make it larger, or start anew with the last tokens."
        )
        length = eqx.error_if(self.length, self.length > capacity - seq, message)
        return eqx.tree_at(lambda cache: cache.length, self, length)

    def mask(self, positions: Integer[Array, "num_texts seq"]) -> Bool[Array, "num_texts seq capacity"]:
        """Say which slots tokens at `positions` may attend to: their own and earlier positions of their text."""
        check_axes("positions", positions, num_texts=self.positions.shape[0], seq=None)
        slots = self.positions[:, None, :]
        return (slots >= 0) & (slots <= positions[:, :, None])

    def select(self, texts: Integer[Array, " num_selected"]) -> "KeyValueCache":
        """Give the cache of the texts with these numbers, in this order; a text may be taken more than once."""
        num_texts = self.positions.shape[0]
        check_axes("texts", texts, num_selected=None)

        def of_all_heads(rows):
            by_head = rows.reshape(-1, num_texts, *rows.shape[1:])[:, texts]
            return by_head.reshape(-1, *rows.shape[1:])

        entries = (of_all_heads(self.keys), of_all_heads(self.values), self.positions[texts])
        return eqx.tree_at(lambda cache: (cache.keys, cache.values, cache.positions), self, entries)


def attend_with_cache(
    queries: Float[Array, "heads num_texts seq d_k"],
    keys: Float[Array, "kv_heads num_texts seq d_k"],
    values: Float[Array, "kv_heads num_texts seq d_v"],
    cache: KeyValueCache,
    positions: Integer[Array, "num_texts seq"],
    position=None,
) -> tuple[Float[Array, "heads num_texts seq d_v"], KeyValueCache]:
    r"""Attend from further tokens to themselves and to what the cache holds of earlier positions.

    Implements `eq-decoder-cached-attention`. **Arguments** queries, keys and values of the new tokens, with axes for
    heads and texts; the cache; where the tokens stand in their texts, -1 for padding; a `position` scheme (chapter 05),
    or `None`. **Returns** what each head returns for the new tokens, and the longer cache. **Raises** as
    `KeyValueCache.append`; `TypeError` if `position` is no scheme.
    """
    if position is not None:
        check_scheme(position)
        rotate = jax.vmap(position.rotate, in_axes=(1, 0), out_axes=1)
        queries, keys = rotate(queries, positions), rotate(keys, positions)
    cache = cache.append(_texts_of_heads(keys), _texts_of_heads(values), positions)
    return attend_to_cache(queries, cache, positions, position), cache


def attend_to_cache(
    queries: Float[Array, "heads num_texts seq d_k"],
    cache: KeyValueCache,
    positions: Integer[Array, "num_texts seq"],
    position=None,
) -> Float[Array, "heads num_texts seq d_v"]:
    r"""Attend from queries to what a cache holds, and add nothing to it.

    Implements `eq-decoder-cached-attention`.

    **Arguments** the queries, already turned if the scheme turns them; the cache; where the queries stand in their
    texts, -1 for padding; a `position` scheme for its bias, or `None`. **Returns** what each head returns.
    """
    (num_heads, num_texts, seq, _), num_kv_heads = queries.shape, cache.keys.shape[0] // cache.positions.shape[0]
    # A bias of -inf hides a slot as a mask does. It saves what `attend` does besides for a mask, to keep out a NaN:
    # clearing what no query sees would copy the whole cache for every token.
    bias = jnp.where(cache.mask(positions), 0, -jnp.inf)[None]
    if position is not None and (of_texts := jax.vmap(position.bias)(positions, cache.positions)) is not None:
        bias = bias + of_texts.transpose(1, 0, 2, 3)
    bias = jnp.broadcast_to(bias, (num_heads, *bias.shape[1:]))

    def by_group(rows):
        """The query heads of a group one below the other, as further queries to the one head that they share."""
        groups = rows.reshape(num_kv_heads, num_heads // num_kv_heads, num_texts, seq, -1)
        return groups.transpose(0, 2, 1, 3, 4).reshape(num_kv_heads * num_texts, -1, rows.shape[3])

    attend_one = jax.vmap(lambda q, k, v, b: attend(q, k.T, v, bias=b))
    heads = attend_one(by_group(queries), cache.keys, cache.values, by_group(bias))
    heads = heads.reshape(num_kv_heads, num_texts, num_heads // num_kv_heads, seq, -1).transpose(0, 2, 1, 3, 4)
    return heads.reshape(num_heads, num_texts, seq, -1)


def cache_context(
    keys: Float[Array, "kv_heads num_texts kv_seq d_k"],
    values: Float[Array, "kv_heads num_texts kv_seq d_v"],
    is_token: Bool[Array, "num_texts kv_seq"],
) -> KeyValueCache:
    r"""Keep the keys and values of a context, such as a source text, for all tokens that will read it (chapter 08).

    Implements `eq-seq2seq-cached-context`. All of the context counts as position 0, so that tokens at any position may
    attend to it; padding, `False` in `is_token`, as -1.

    **Arguments** keys and values, with axes for heads and texts; which of them are of tokens. **Returns** a full cache.
    """
    num_kv_heads, num_texts, kv_seq, d_k = keys.shape
    keys, values = (jnp.where(is_token[:, :, None], rows, 0) for rows in (keys, values))  # padding may hold NaN
    empty = KeyValueCache(num_kv_heads, kv_seq, d_k, values.shape[3], num_texts=num_texts, dtype=keys.dtype)
    return empty.append(_texts_of_heads(keys), _texts_of_heads(values), jnp.where(is_token, 0, -1))


def _texts_of_heads(rows: Float[Array, "kv_heads num_texts seq d"]) -> Float[Array, "kv_heads*num_texts seq d"]:
    return rows.reshape(-1, *rows.shape[2:])
