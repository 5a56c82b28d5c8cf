"""The key–value cache: what attention has already computed about the tokens read so far (chapter on generation)."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer

from plainformer.attention.few_bits import Bits, FewBitKeys, FewBitValues, group_sizes
from plainformer.attention.self_attention import scaled_scores, softmax, weighted_average
from plainformer.attention.sinks import softmax_with_sink
from plainformer.checks import Positive, check_axes, check_each, checked, refuse
from plainformer.positions.positions import NO_POSITIONS, PositionScheme, bias_of, near_keys

MAKE_ROOM = "Make the cache larger, or start anew with the last tokens."


class KeyValueCache(eqx.Module):
    r"""Room for the keys and values of one attention layer, filled from the left as tokens are read.

    Implements `eq-generation-cache`; Shazeer (2019), section 2.4, where keys and values are argument and result, too.

    `keys` have a column per slot, so that the product with a query needs no transposed copy of them, and `values` a
    row. Stored are `key_columns` and `value_rows`, with texts and heads on one axis: XLA writes a slot of these in
    place, where with two axes it copied the whole cache for every token, which took as long as all else. `positions`
    say where in its text the token of each slot stands, or -1 for a slot that nobody may attend to, empty or padding.
    `length` slots of each text are filled.

    Args:
        num_kv_heads: number of key and value heads.
        capacity: for how many tokens of each text there is room.
        d_k, d_v: width of a key and of a value.
        batch: the axes in front, `(3,)` for three texts that are read side by side, equally many tokens at a time.
        dtype: of keys and values; `None` for JAX's default, float32.
        sliding: whether a token that finds the cache full takes the place of the oldest, so that the last `capacity`
            tokens are kept; tokens that do not fit in any more are read one at a time.
        bits: in how many bits numbers are kept, 8 or 4; `None` for as they are. `eq-serving-groups`.
        group: how many numbers of few bits share a step: so many tokens of one channel of the keys, so many channels of
            one token's value, or all of its channels if they are fewer. `None` for 32 tokens, and for the largest
            divisor of a value's width that is at most 32.
    """

    key_columns: Float[Array, "texts_heads d_k capacity"] | FewBitKeys
    value_rows: Float[Array, "texts_heads capacity d_v"] | FewBitValues
    positions: Int[Array, "*batch capacity"]
    length: Int[Array, ""]
    visible: Bool[Array, "*batch seq capacity"] | None
    sliding: bool = eqx.field(static=True)

    @checked
    def __init__(
        self,
        num_kv_heads: Positive,
        capacity: Positive,
        d_k: Positive,
        d_v: Positive,
        *,
        batch: tuple[int, ...] = (),
        dtype=None,
        sliding: bool = False,
        bits: Bits | None = None,
        group: Positive | None = None,
    ):
        if not isinstance(batch, tuple | list):
            raise TypeError(f"batch is {batch!r}; expected the sizes of the axes in front, as (3,) for three texts.")
        check_each(Positive, **{f"batch[{axis}]": size for axis, size in enumerate(batch)})
        self.key_columns = jnp.zeros((math.prod(batch) * num_kv_heads, d_k, capacity), dtype)
        self.value_rows = jnp.zeros((math.prod(batch) * num_kv_heads, capacity, d_v), dtype)
        if bits is not None:
            if sliding:
                raise ValueError(
                    "bits is given, and sliding is True; expected one of them: groups stay where they are."
                )
            of_keys, of_values = group_sizes(d_v, bits, group)
            self.key_columns = FewBitKeys(self.key_columns, bits, of_keys)
            self.value_rows = FewBitValues(self.value_rows, bits, of_values)
        self.positions = jnp.full((*batch, capacity), -1, jnp.int32)
        self.length = jnp.asarray(0, jnp.int32)
        self.visible = None
        self.sliding = sliding

    @property
    def keys(self) -> Float[Array, "*batch kv_heads d_k capacity"]:
        """The keys of each text and head, a column per slot."""
        return self._by_text(self.read()[0])

    @property
    def values(self) -> Float[Array, "*batch kv_heads capacity d_v"]:
        """The values of each text and head, a row per slot."""
        return self._by_text(self.read()[1])

    def read(self) -> tuple[Float[Array, "texts_heads d_k capacity"], Float[Array, "texts_heads capacity d_v"]]:
        """Return the columns of keys and the rows of values as floats, with texts and heads on one axis."""
        rooms = self.key_columns, self.value_rows
        keys, values = (
            room.numbers(self.capacity, self.length) if isinstance(room, FewBitKeys | FewBitValues) else room
            for room in rooms
        )
        return keys, values

    def _by_text(self, array: Array) -> Array:
        """The same, with an axis of heads behind those of texts."""
        return array.reshape(*self.batch, self.kv_heads, *array.shape[1:])

    @property
    def kv_heads(self) -> int:
        """Number of key and value heads."""
        return len(jax.tree.leaves(self.value_rows)[0]) // math.prod(self.batch)

    @property
    def capacity(self) -> int:
        """For how many tokens of each text there is room."""
        return self.positions.shape[-1]

    @property
    def batch(self) -> tuple[int, ...]:
        """The axes in front, of texts."""
        return self.positions.shape[:-1]

    @checked
    def append(
        self,
        keys: Float[Array, "*batch kv_heads seq d_k"],
        values: Float[Array, "*batch kv_heads seq d_v"],
        positions: Integer[Array, "*batch seq"],
    ) -> "KeyValueCache":
        """Return the cache with keys and values of `seq` further tokens, which stand at `positions`.

        Raises `ValueError` if they do not fit in; in a compiled function, in which `length` has no value yet, see to
        that beforehand by `with_room`.
        """
        self._check_room(keys.shape[-2])
        first = self.length % self.capacity if self.sliding else self.length

        def write(room, entries, axis):
            if isinstance(room, FewBitKeys | FewBitValues):
                return room.write(entries, first)
            entries = entries.astype(room.dtype)
            return jax.lax.dynamic_update_slice_in_dim(room, entries, first, room.ndim + axis)

        return self._replace(
            write(self.key_columns, _on_one_axis(keys.mT), -1),
            write(self.value_rows, _on_one_axis(values), -2),
            write(self.positions, positions, -1),
            self.length + keys.shape[-2],
        )

    def _replace(self, *entries) -> "KeyValueCache":
        def stored(cache):
            return cache.key_columns, cache.value_rows, cache.positions, cache.length

        return eqx.tree_at(stored, self, entries)

    @checked
    def with_room(self, seq: Positive) -> "KeyValueCache":
        """Return the cache itself; raise, in a compiled function when it runs, without room for `seq` more tokens."""
        self._check_room(seq)
        if self.sliding or not isinstance(self.length, jax.core.Tracer):
            return self
        most = self.capacity - seq
        expected = f"at most {most}, so that {seq} tokens fit into {self.capacity}. {MAKE_ROOM}"
        length = refuse(self.length, self.length > most, "cache.length", expected)
        return eqx.tree_at(lambda cache: cache.length, self, length)

    def _check_room(self, seq: int) -> None:
        """Raise `ValueError` if there is no room, as far as this is known before a compiled function runs."""
        if self.sliding and seq == 1:
            return
        filled = 0 if isinstance(self.length, jax.core.Tracer) else int(self.length)
        if filled + seq > self.capacity:
            holds = f"The cache has room for {self.capacity} tokens and holds {filled}"
            raise ValueError(f"{holds}; expected room for {seq} more. {MAKE_ROOM}")

    def check(self, num_kv_heads: int, d_k: int, d_v: int, batch: tuple[int, ...]) -> None:
        """Raise `ValueError` unless the cache is of a layer with such heads, and of these texts."""
        shared: dict[str, Any] = {"*batch": batch, "kv_heads": num_kv_heads}
        hint = f"The cache is of another layer or of other texts: make it by this one's make_cache(…, batch={batch})."
        check_axes("cache.keys", self.keys, hint, **shared, d_k=d_k, capacity=None)
        check_axes("cache.values", self.values, hint, **shared, capacity=None, d_v=d_v)

    @checked
    def mask(self, positions: Integer[Array, "*batch seq"]) -> Bool[Array, "*batch seq capacity"]:
        """Say which slots tokens at `positions` may attend to: their own and earlier ones, or those of `showing`."""
        if self.visible is not None:
            return self.visible
        slots = self.positions[..., None, :]
        return (slots >= 0) & (slots <= positions[..., :, None])

    def showing(self, visible: Bool[Array, "*batch seq capacity"]) -> "KeyValueCache":
        """Return the cache with a table of which slots the next tokens see, whatever their positions are.

        So the texts of a beam share a cache, and nothing is copied when two go on from the same beginning.
        """
        return eqx.tree_at(lambda cache: cache.visible, self, visible, is_leaf=lambda leaf: leaf is None)

    @checked
    def select(self, rows: Integer[Array, "*selected"]) -> "KeyValueCache":
        """Return the cache of the texts with these numbers, in this order; a text may be taken more than once."""
        if not self.batch:
            raise ValueError("This cache is of a single text; expected one of a batch, to select texts from.")
        if not isinstance(rows, jax.core.Tracer):
            refuse(rows, (rows < 0) | (rows >= self.batch[0]), "rows", f"0 to {self.batch[0] - 1}, one of the texts.")

        def taken(room):
            return jax.tree.map(lambda array: self._by_text(array)[rows].reshape(-1, *array.shape[1:]), room)

        return self._replace(taken(self.key_columns), taken(self.value_rows), self.positions[rows], self.length)


def _on_one_axis(array: Float[Array, "*batch kv_heads rows columns"]) -> Float[Array, "texts_heads rows columns"]:
    """The same matrices, with all axes in front as one."""
    return array.reshape(-1, *array.shape[-2:])


def ready_to_extend(cache, num_parts: int, tokens, positions):
    """Return a cache that is of this model and has room, and the tokens' positions, counted on if there are none."""
    if not isinstance(cache, tuple | list):
        raise TypeError(f"cache is of type {type(cache).__name__}; expected its parts, as make_cache() returns them.")
    if len(cache) != num_parts:
        raise ValueError(f"The cache has {len(cache)} parts; expected {num_parts}: see make_cache().")
    if cache[0].batch != tokens.shape[:-1]:
        raise ValueError(
            f"tokens has shape {tokens.shape}, and the cache was made for batch={cache[0].batch}; expected the same "
            f"axes in front: make_cache(batch={tokens.shape[:-1]})."
        )
    seq = tokens.shape[-1]
    if positions is None:
        positions = cache[0].positions.max(axis=-1, keepdims=True) + 1 + jnp.arange(seq, dtype=cache[0].positions.dtype)
    return _with_room(cache, seq), positions


def _with_room(cache, seq: int) -> tuple:
    """The parts; raise, as `with_room` does, if those that fill up, which are of one length, have not so much room."""
    for number, part in enumerate(cache):
        if isinstance(part, KeyValueCache):
            return (*cache[:number], part.with_room(seq), *cache[number + 1 :])
    return tuple(cache)


def attend_to_cache(
    queries: Float[Array, "*batch heads seq d_k"],
    cache: KeyValueCache,
    positions: Integer[Array, "*batch seq"],
    scheme: PositionScheme = NO_POSITIONS,
    sinks: Float[Array, "heads"] | None = None,
) -> Float[Array, "*batch heads seq d_v"]:
    r"""Attend from queries to what a cache holds.

    Implements `eq-generation-cached-attention`.

    Args:
        queries: already turned if the scheme turns them.
        cache: what holds the keys and values.
        positions: where the queries stand in their texts, -1 for padding.
        scheme: a position scheme, for its bias.
        sinks: as for `softmax_with_sink`.

    Returns:
        What each head returns.
    """
    *batch, num_heads, seq, d_k = queries.shape
    bias = cache_bias(cache, positions, scheme, num_heads)
    # The query heads of a group are further queries to the one key head that they share.
    key_columns, value_rows = cache.read()
    texts_heads = len(key_columns)
    rows = math.prod(batch) * num_heads // texts_heads * seq
    bias = jnp.broadcast_to(bias, (*batch, num_heads, seq, cache.capacity)).reshape(texts_heads, rows, -1)
    scores = scaled_scores(queries.reshape(texts_heads, rows, d_k), key_columns.mT, bias=bias)
    if sinks is None:
        weights = softmax(scores)
    else:
        weights = softmax_with_sink(scores.reshape(*batch, num_heads, seq, -1), sinks).reshape(scores.shape)
    return weighted_average(weights, value_rows).reshape(*batch, num_heads, seq, -1)


def rewound(cache: tuple, length) -> tuple:
    """Return the parts of a cache as if only `length` tokens had been read: what comes next takes the others' place.

    Raises:
        ValueError: for a part that keeps a state, which cannot forget a token.
    """
    if not all(hasattr(part, "length") for part in cache):
        raise ValueError("A model here keeps a state, which cannot forget a token; expected a cache of keys only.")
    length = jnp.asarray(length, jnp.int32)
    return tuple(eqx.tree_at(lambda part: part.length, part, length) for part in cache)


def cache_bias(
    cache: KeyValueCache, positions: Integer[Array, "*batch seq"], scheme: PositionScheme, num_heads: int
) -> Float[Array, "*batch #heads seq capacity"]:
    """Return what is added to scores with the slots of a cache: what the scheme adds, and -inf for those not seen."""
    # A bias of -inf hides a slot as a mask does. It saves what `attend` does besides for a mask, to keep out a NaN:
    # clearing what no query sees would copy the whole cache for every token.
    near = near_keys(scheme, positions, cache.positions)
    seen = cache.mask(positions) if near is None else cache.mask(positions) & near
    bias = jnp.where(seen, 0, -jnp.inf)[..., None, :, :]
    of_scheme = bias_of(scheme, positions, cache.positions, num_heads)
    return bias if of_scheme is None else bias + of_scheme
