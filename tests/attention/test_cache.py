"""Chapter 08, the cache: where keys and values lie, who may attend to what, and that nothing else changes."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from closeness import assert_close
from toy_models import drawn

import plainformer as pf
from plainformer.attention.cache import KeyValueCache, attend_to_cache

HEADS, KV_HEADS, TEXTS, CAPACITY, D_K, D_V, D_MODEL = 6, 3, 2, 7, 4, 5, 24
SIZES = {"num_kv_heads": KV_HEADS, "capacity": CAPACITY, "d_k": D_K, "d_v": D_V}
extend = eqx.filter_jit(lambda layer, *arguments, **options: layer.extend(*arguments, **options))


def counted(*shape, start=1.0):
    """An array of the numbers from `start` on, so that each can be told from all others."""
    return start + np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def draw(*shape, seed=0):
    """Normal numbers, made without the compiler."""
    return jnp.asarray(np.random.default_rng([seed, *shape]).normal(size=shape), jnp.float32)


def new_layer(num_kv_heads=KV_HEADS, **options):
    options = {"num_kv_heads": num_kv_heads, "d_k": D_K, "d_v": D_V, "use_bias": True} | options
    return drawn(lambda sizes, key: pf.MultiHeadAttention(*sizes, **options, key=key), (D_MODEL, HEADS))


@functools.cache
def filled():
    """A cache of two texts and three heads, with four tokens of each; the second text has a padded token in front."""
    cache, front = KeyValueCache(**SIZES, batch=(TEXTS,)), (TEXTS, KV_HEADS)
    cache = cache.append(counted(*front, 3, D_K), counted(*front, 3, D_V), np.array([[0, 1, 2], [-1, 0, 1]]))
    return cache.append(-counted(*front, 1, D_K), -counted(*front, 1, D_V), np.array([[3], [2]]))


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_key_value_cache_starts_empty(batch):
    cache = KeyValueCache(**SIZES, batch=batch)
    assert cache.keys.shape == (*batch, KV_HEADS, D_K, CAPACITY)
    assert cache.values.shape == (*batch, KV_HEADS, CAPACITY, D_V)
    assert (cache.positions == -1).all()
    assert (cache.batch, cache.capacity) == (batch, CAPACITY)
    assert cache.positions.shape == (*batch, CAPACITY)
    assert int(cache.length) == 0
    assert not cache.mask(np.full((*batch, 1), 6)).any()


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.float16])
def test_make_cache_has_the_dtype_of_its_layer(dtype):
    layer = jax.tree.map(lambda leaf: leaf.astype(dtype), new_layer())
    x, cache = draw(5, D_MODEL).astype(dtype), layer.make_cache(CAPACITY)
    assert cache.keys.dtype == cache.values.dtype == dtype
    rows, cache = extend(layer, x, cache, np.arange(5))
    assert rows.dtype == cache.keys.dtype == cache.values.dtype == dtype


@pytest.mark.equation("eq-generation-cache")
def test_key_value_cache_append_writes_behind_what_is_there():
    front, cache = (TEXTS, KV_HEADS), filled()
    assert int(cache.length) == 4
    np.testing.assert_array_equal(cache.keys[..., :3], counted(*front, 3, D_K).swapaxes(-2, -1))
    np.testing.assert_array_equal(cache.keys[..., 3], -counted(*front, D_K))
    np.testing.assert_array_equal(cache.values[..., :3, :], counted(*front, 3, D_V))
    np.testing.assert_array_equal(cache.values[..., 3, :], -counted(*front, D_V))
    np.testing.assert_array_equal(cache.positions, [[0, 1, 2, 3, -1, -1, -1], [-1, 0, 1, 2, -1, -1, -1]])
    assert (cache.keys[..., 4:] == 0).all()
    assert (cache.values[..., 4:, :] == 0).all()


@pytest.mark.equation("eq-generation-cache")
def test_key_value_cache_mask_by_hand():
    mask = filled().mask(np.array([[1, 3], [0, -1]]))
    expected = [
        [[1, 1, 0, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0, 0]],
        [[0, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0]],  # its first slot is padding; a padded token sees nothing
    ]
    assert mask.dtype == bool
    np.testing.assert_array_equal(mask, np.array(expected, bool))


@pytest.mark.equation("eq-generation-cache")
@pytest.mark.parametrize("order", [[1, 1, 0], [[0, 1, 0], [1, 1, 1]]])
def test_key_value_cache_select_takes_texts_of_all_heads(order):
    selected, order = filled().select(np.array(order)), np.array(order)
    assert selected.batch == order.shape
    for name in ("keys", "values", "positions"):
        np.testing.assert_array_equal(getattr(selected, name), np.asarray(getattr(filled(), name))[order])
    assert int(selected.length) == 4


def test_key_value_cache_takes_as_many_tokens_as_it_has_room_for_and_no_more():
    front = (TEXTS, KV_HEADS)
    more = (counted(*front, 3, D_K), counted(*front, 3, D_V), np.array([[4, 5, 6], [3, 4, 5]]))
    full = filled().append(*more)
    assert int(full.length) == CAPACITY
    np.testing.assert_array_equal(full.positions[1], [-1, 0, 1, 2, 3, 4, 5])
    with pytest.raises(ValueError, match=r"room for 7 tokens and holds 7; expected room for 3 more\. Make"):
        full.append(*more)
    one = (more[0][..., :1, :], more[1][..., :1, :], more[2][:, :1])
    with pytest.raises(ValueError, match=r"room for 7 tokens and holds 7; expected room for 1 more"):
        full.append(*one)
    assert filled().with_room(3) is filled()
    with pytest.raises(ValueError, match=r"room for 7 tokens and holds 4; expected room for 4 more"):
        filled().with_room(4)


def test_key_value_cache_compiled_finds_out_about_room_when_it_runs():
    with_room = eqx.filter_jit(lambda cache, seq: cache.with_room(seq))
    assert int(with_room(filled(), 3).length) == 4
    message = r"cache\.length is not allowed; expected at most 3, so that 4 tokens fit into 7\. Make the cache larger"
    with pytest.raises(eqx.EquinoxRuntimeError, match=message):
        jax.block_until_ready(with_room(filled(), 4))
    with pytest.raises(ValueError, match=r"room for 7 tokens and holds 0; expected room for 8 more"):
        with_room(filled(), 8)  # known at once


def test_key_value_cache_compiled_refuses_at_once_what_is_longer_than_the_whole_cache():
    front = (TEXTS, KV_HEADS)
    more = (counted(*front, 3, D_K), counted(*front, 3, D_V), np.array([[0, 1, 2], [0, 1, 2]]))
    small = KeyValueCache(**SIZES | {"capacity": 2}, batch=(TEXTS,))
    with pytest.raises(ValueError, match=r"room for 2 tokens and holds 0; expected room for 3 more\. Make"):
        eqx.filter_jit(small.append)(*more)  # the number of filled slots is not known yet, but that of all is


def pieces_of(x, sizes):
    ends = np.cumsum(sizes)
    return zip(np.split(x, ends[:-1], axis=-2), ends - sizes, ends, strict=True)


@pytest.mark.equation("eq-generation-cached-attention")
@pytest.mark.parametrize("scheme", [pf.NoPositions(), pf.RotaryPositions(), pf.AlibiPositions(HEADS)], ids=repr)
def test_multi_head_attention_extend_agrees_with_a_loop_in_float64(scheme):
    layer, x = new_layer(), draw(TEXTS, 6, D_MODEL)
    places = np.array([[0, 1, 2, 3, 4, 5], [-1, -1, 0, 1, 2, 3]])
    cache, outputs = layer.make_cache(CAPACITY, batch=(TEXTS,)), []
    for piece, start, end in pieces_of(x, [3, 1, 2]):
        output, cache = extend(layer, piece, cache, places[:, start:end], scheme=scheme)
        outputs.append(output)
    output = np.concatenate(outputs, axis=1)
    for text, padded in enumerate([0, 2]):
        for place in range(padded):  # a padded token attends to nothing
            np.testing.assert_array_equal(output[text, place], layer.output.bias)
        own = np.asarray(x)[text, padded:]
        expected = reference.multi_head(own, own, layer, np.tri(len(own), dtype=bool), scheme)
        assert_close(output[text, padded:], expected)


@pytest.mark.equation("eq-generation-cached-attention")
@pytest.mark.parametrize("num_kv_heads", [6, 2, 1])
@pytest.mark.parametrize("batch", [(), (2, 3)])
def test_multi_head_attention_extend_equals_a_causal_call(num_kv_heads, batch):
    layer, x = new_layer(num_kv_heads), draw(*batch, 5, D_MODEL)
    cache, places = layer.make_cache(CAPACITY, batch=batch), np.broadcast_to(np.arange(5), (*batch, 5))
    outputs = []
    for piece, start, end in pieces_of(x, [3, 1, 1]):
        rows, cache = extend(layer, piece, cache, places[..., start:end])
        outputs.append(rows)
    assert (cache.batch, int(cache.length)) == (batch, 5)
    expected = eqx.filter_jit(layer)(x, np.tri(5, dtype=bool))
    assert_close(np.concatenate(outputs, axis=-2), expected)


def test_attend_to_cache_is_not_reached_by_what_stands_in_hidden_slots():
    queries, places, attend = draw(TEXTS, HEADS, 2, D_K), jnp.array([[4, 5], [3, 4]]), eqx.filter_jit(attend_to_cache)
    padding = filled().keys.at[1, ..., 0].set(99.0), filled().values.at[1, :, 0].set(-99.0)  # of the second text
    stored = [array.reshape(-1, *array.shape[-2:]) for array in padding]
    other = eqx.tree_at(lambda cache: (cache.key_columns, cache.value_rows), filled(), stored)
    np.testing.assert_array_equal(attend(queries, filled(), places), attend(queries, other, places))


LAYER, ROWS, PLACES = new_layer(), np.ones((TEXTS, 1, D_MODEL), np.float32), np.zeros((TEXTS, 1), int)


def ones(*shape):
    return np.ones(shape, np.float32)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: KeyValueCache(**SIZES | {"capacity": 0}), ValueError, r"capacity is 0; expected at least 1"),
        (lambda: KeyValueCache(**SIZES, batch=(2, 0)), ValueError, r"batch\[1\] is 0; expected at least 1"),
        (lambda: KeyValueCache(**SIZES, batch=3), TypeError, r"batch is 3; expected the sizes .*, as \(3,\) for three"),
        (lambda: LAYER.make_cache(7, batch=(2.0,)), TypeError, r"batch\[0\] is 2\.0; expected a whole number"),
        (lambda: KeyValueCache(**SIZES | {"d_k": 2.5}), TypeError, r"d_k is 2\.5; expected a whole number"),
        (
            lambda: filled().append(ones(3, 1, 4), ones(3, 1, 5), np.ones(1, int)),
            ValueError,
            r"keys has shape \(3, 1, 4\); expected \(2, kv_heads=3, seq, d_k=4\)",
        ),
        (
            lambda: KeyValueCache(**SIZES).append(ones(2, 3, 1, 4), ones(2, 3, 1, 5), np.ones((2, 1), int)),
            ValueError,
            r"keys has shape \(2, 3, 1, 4\); expected \(kv_heads=3, seq, d_k=4\)",
        ),
        (
            lambda: filled().append(ones(2, 3, 1, 4), ones(2, 3, 2, 5), np.ones((2, 1), int)),
            ValueError,
            r"values has shape \(2, 3, 2, 5\); expected \(2, kv_heads=3, seq=1, d_v=5\)",
        ),
        (
            lambda: filled().append(ones(2, 3, 1, 4), ones(2, 3, 1, 5), np.ones((1, 1), int)),
            ValueError,
            r"positions has shape \(1, 1\); expected \(2, seq=1\)",
        ),
        (lambda: filled().mask(np.ones(3, int)), ValueError, r"positions has shape \(3,\); expected \(2, seq\)"),
        (
            lambda: filled().select(np.array([1, 1000])),
            ValueError,
            r"rows\[1\] is 1000; expected 0 to 1, one of the texts",
        ),
        (lambda: filled().select(np.array([-1])), ValueError, r"rows\[0\] is -1; expected 0 to 1"),
        (lambda: filled().select(np.ones(2)), TypeError, r"rows holds float64; expected whole numbers"),
        (
            lambda: KeyValueCache(**SIZES).select(np.ones(2, int)),
            ValueError,
            r"cache is of a single text; expected one",
        ),
        (
            lambda: LAYER.extend(ROWS, filled(), PLACES[0]),
            ValueError,
            r"positions has shape \(1,\); expected \(2, seq=1\)",
        ),
        (
            lambda: LAYER.extend(ROWS, filled(), PLACES + 0.0),
            TypeError,
            r"positions holds float64; expected whole numbers",
        ),
        (
            lambda: LAYER.extend(ROWS, (filled(),), PLACES),
            TypeError,
            r"cache is of type tuple; expected a KeyValueCache",
        ),
        (
            lambda: LAYER.extend(ROWS, filled(), PLACES, scheme=pf.AlibiPositions(4)),
            ValueError,
            r"The bias of AlibiPositions has shape \(2, 4, 1, 7\); expected .*heads=6, .* Make it for the 6 heads here",
        ),
        (
            lambda: LAYER.extend(ROWS, filled(), PLACES, scheme="rotary"),
            TypeError,
            r"scheme is of type str; expected a Pos",
        ),
        (
            lambda: LAYER.extend(np.ones((3, 1, 24), np.float32), filled(), np.zeros((3, 1), int)),
            ValueError,
            r"cache\.keys has shape \(2, 3, 4, 7\); expected \(3, kv_heads=3, d_k=4, capacity\)\. The cache is of",
        ),
        (
            lambda: new_layer(num_kv_heads=2).extend(ROWS, filled(), PLACES),
            ValueError,
            r"cache\.keys has shape \(2, 3, 4, 7\); expected \(2, kv_heads=2, d_k=4, capacity\)\. The cache is of",
        ),
        (
            lambda: new_layer(d_v=4).extend(ROWS, filled(), PLACES),
            ValueError,
            r"cache\.values has shape \(2, 3, 7, 5\); expected \(2, kv_heads=3, capacity, d_v=4\)\. The cache is of",
        ),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_multi_head_attention_extend_refuses_a_cache_of_another_layer_inside_a_compiled_function_too():
    with pytest.raises(
        ValueError, match=r"expected \(2, kv_heads=1, .* another layer or of other texts: .*batch=\(2,\)"
    ):
        extend(new_layer(1), ROWS, filled(), PLACES)
