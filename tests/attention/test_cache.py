"""The cache: where keys and values lie, who may attend to what, and that nothing else changes."""

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


def test_key_value_cache_starts_empty():
    cache = KeyValueCache(**SIZES, batch=(2, 3))
    assert (cache.batch, cache.capacity, int(cache.length)) == ((2, 3), CAPACITY, 0)
    assert not cache.mask(np.full((2, 3, 1), 6)).any()


def test_make_cache_has_the_dtype_of_its_layer():
    layer = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), new_layer())
    rows, cache = extend(layer, draw(5, D_MODEL).astype(jnp.bfloat16), layer.make_cache(CAPACITY), np.arange(5))
    assert rows.dtype == cache.keys.dtype == cache.values.dtype == jnp.bfloat16


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
def test_key_value_cache_select_takes_texts_of_all_heads():
    order = np.array([[0, 1, 0], [1, 1, 1]])
    selected = filled().select(order)
    assert (selected.batch, int(selected.length)) == (order.shape, 4)
    for name in ("keys", "values", "positions"):
        np.testing.assert_array_equal(getattr(selected, name), np.asarray(getattr(filled(), name))[order])


def test_key_value_cache_takes_as_many_tokens_as_it_has_room_for_and_no_more():
    front = (TEXTS, KV_HEADS)
    more = (counted(*front, 3, D_K), counted(*front, 3, D_V), np.array([[4, 5, 6], [3, 4, 5]]))
    full = filled().append(*more)
    assert int(full.length) == CAPACITY
    np.testing.assert_array_equal(full.positions[1], [-1, 0, 1, 2, 3, 4, 5])
    with pytest.raises(ValueError, match="room"):
        full.append(more[0][..., :1, :], more[1][..., :1, :], more[2][:, :1])
    assert filled().with_room(3) is filled()
    with pytest.raises(ValueError, match="room"):
        filled().with_room(4)


@pytest.mark.run_time_check
def test_key_value_cache_compiled_finds_out_about_room_when_it_runs():
    with_room = eqx.filter_jit(lambda cache, seq: cache.with_room(seq))
    assert int(with_room(filled(), 3).length) == 4
    with pytest.raises(eqx.EquinoxRuntimeError, match="at most 3"):
        jax.block_until_ready(with_room(filled(), 4))
    with pytest.raises(ValueError, match="room"):
        with_room(filled(), 8)  # known at once


def pieces_of(x, sizes):
    ends = np.cumsum(sizes)
    return zip(np.split(x, ends[:-1], axis=-2), ends - sizes, ends, strict=True)


@pytest.mark.equation("eq-generation-cached-attention")
@pytest.mark.parametrize("scheme", [pf.RotaryPositions(), pf.AlibiPositions(HEADS)], ids=repr)
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
@pytest.mark.parametrize(("num_kv_heads", "batch"), [(6, ()), (1, (2, 3))])
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


def append(cache, keys, values, positions):
    return cache.append(np.ones(keys, np.float32), np.ones(values, np.float32), np.ones(positions, int))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: append(KeyValueCache(**SIZES), (2, 3, 1, 4), (2, 3, 1, 5), (2, 1)), ValueError, "keys"),
        (lambda: append(filled(), (2, 3, 1, 4), (2, 3, 2, 5), (2, 1)), ValueError, "values"),
        (lambda: append(filled(), (2, 3, 1, 4), (2, 3, 1, 5), (1, 1)), ValueError, "positions"),
        (lambda: append(filled(), (2, 3, 8, 4), (2, 3, 8, 5), (2, 8)), ValueError, "room"),
        (lambda: filled().mask(np.ones(3, int)), ValueError, "positions"),
        (lambda: filled().select(np.array([1, 1000])), ValueError, r"rows\[1\]"),
        (lambda: KeyValueCache(**SIZES).select(np.ones(2, int)), ValueError, "single text"),
        (lambda: LAYER.extend(ROWS, filled(), PLACES[0]), ValueError, "positions"),
        (lambda: LAYER.extend(ROWS, (filled(),), PLACES), TypeError, "cache"),
        (lambda: LAYER.extend(ROWS, filled(), PLACES, scheme=pf.AlibiPositions(4)), ValueError, "AlibiPositions"),
        (lambda: new_layer(num_kv_heads=2).extend(ROWS, filled(), PLACES), ValueError, r"cache\.keys"),
        (lambda: new_layer(d_v=4).extend(ROWS, filled(), PLACES), ValueError, r"cache\.values"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
