"""Chapter 06, the cache: where keys and values lie, who may attend to what, and that nothing else changes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference

import plainformer as pf
from plainformer.attention.cache import attend_with_cache

HEADS, KV_HEADS, TEXTS, CAPACITY, D_K, D_V = 6, 3, 2, 7, 4, 5


def counted(*shape, start=1.0):
    """An array of the numbers from `start` on, so that each can be told from all others."""
    return start + jnp.arange(np.prod(shape), dtype=jnp.float32).reshape(shape)


def filled():
    """A cache of two texts and three heads, with four tokens of each; the second text has a padded token in front."""
    cache = pf.KeyValueCache(KV_HEADS, CAPACITY, D_K, D_V, num_texts=TEXTS)
    rows = KV_HEADS * TEXTS
    cache = cache.append(counted(rows, 3, D_K), counted(rows, 3, D_V), jnp.array([[0, 1, 2], [-1, 0, 1]]))
    return cache.append(-counted(rows, 1, D_K), -counted(rows, 1, D_V), jnp.array([[3], [2]]))


def test_key_value_cache_starts_empty():
    cache = pf.KeyValueCache(KV_HEADS, CAPACITY, D_K, D_V, num_texts=TEXTS)
    assert cache.keys.shape == (6, D_K, CAPACITY)
    assert cache.values.shape == (6, CAPACITY, D_V)
    assert (cache.positions == -1).all()
    assert cache.positions.shape == (TEXTS, CAPACITY)
    assert int(cache.length) == 0
    assert not cache.mask(jnp.array([[0], [6]])).any()


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.float16])
def test_new_cache_has_the_dtype_of_its_layer(dtype, key):
    layer = jax.tree.map(lambda leaf: leaf.astype(dtype), pf.MultiHeadAttention(12, 6, num_kv_heads=3, key=key))
    x, cache = jax.random.normal(key, (5, 12)).astype(dtype), layer.new_cache(CAPACITY)
    assert cache.keys.dtype == cache.values.dtype == dtype
    rows, cache = layer.extend(x, cache, jnp.arange(5)[None, :])
    assert rows.dtype == layer(x).dtype == cache.keys.dtype == dtype


@pytest.mark.equation("eq-decoder-cache")
def test_key_value_cache_append_writes_behind_what_is_there():
    cache, rows = filled(), KV_HEADS * TEXTS
    assert int(cache.length) == 4
    np.testing.assert_array_equal(cache.keys[:, :, :3], counted(rows, 3, D_K).transpose(0, 2, 1))
    np.testing.assert_array_equal(cache.keys[:, :, 3], -counted(rows, D_K))
    np.testing.assert_array_equal(cache.values[:, :3], counted(rows, 3, D_V))
    np.testing.assert_array_equal(cache.values[:, 3], -counted(rows, D_V))
    np.testing.assert_array_equal(cache.positions, [[0, 1, 2, 3, -1, -1, -1], [-1, 0, 1, 2, -1, -1, -1]])
    assert (cache.keys[:, :, 4:] == 0).all()
    assert (cache.values[:, 4:] == 0).all()


@pytest.mark.equation("eq-decoder-cache")
def test_key_value_cache_mask_by_hand():
    mask = filled().mask(jnp.array([[1, 3], [0, -1]]))
    expected = [
        [[1, 1, 0, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0, 0]],
        [[0, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0]],  # its first slot is padding; a padded token sees nothing
    ]
    assert mask.dtype == bool
    np.testing.assert_array_equal(mask, np.array(expected, bool))


@pytest.mark.equation("eq-decoder-cache")
def test_key_value_cache_select_takes_texts_of_all_heads():
    cache, order = filled(), [1, 1, 0]
    selected = cache.select(jnp.array(order))
    np.testing.assert_array_equal(selected.positions, np.asarray(cache.positions)[order])
    assert int(selected.length) == 4
    for head in range(KV_HEADS):
        for place, text in enumerate(order):
            row, before = head * len(order) + place, head * TEXTS + text
            np.testing.assert_array_equal(selected.keys[row], cache.keys[before])
            np.testing.assert_array_equal(selected.values[row], cache.values[before])


def test_key_value_cache_takes_as_many_tokens_as_it_has_room_for_and_no_more():
    cache, rows = filled(), KV_HEADS * TEXTS
    more = (counted(rows, 3, D_K), counted(rows, 3, D_V), jnp.array([[4, 5, 6], [3, 4, 5]]))
    full = cache.append(*more)
    assert int(full.length) == CAPACITY
    np.testing.assert_array_equal(full.positions[1], [-1, 0, 1, 2, 3, 4, 5])
    with pytest.raises(ValueError, match=r"room for 7 tokens and holds 7; expected room for 3 more\. Make it larger"):
        full.append(*more)
    one = [each[:, :1] for each in more]
    with pytest.raises(ValueError, match=r"holds 7; expected room for 1 more"):
        full.append(*one)
    small = pf.KeyValueCache(KV_HEADS, 2, D_K, D_V, num_texts=TEXTS)
    with pytest.raises(ValueError, match=r"room for 2 tokens and holds 0; expected room for 3 more"):
        eqx.filter_jit(small.append)(*more)  # even where the number of filled slots is not known yet


def new_tokens(key, seq):
    """Queries, keys and values of further tokens."""
    shapes = [(HEADS, TEXTS, seq, D_K), (KV_HEADS, TEXTS, seq, D_K), (KV_HEADS, TEXTS, seq, D_V)]
    return [jax.random.normal(k, shape) for k, shape in zip(jax.random.split(key, 3), shapes, strict=True)]


@pytest.mark.equation("eq-decoder-cached-attention")
@pytest.mark.parametrize("position", [None, pf.RotaryPositions(), pf.AlibiPositions(HEADS)])
def test_attend_with_cache_agrees_with_a_loop_in_float64(position, key):
    pieces = [new_tokens(k, seq) for k, seq in zip(jax.random.split(key, 3), (3, 1, 2), strict=True)]
    places = jnp.array([[0, 1, 2, 3, 4, 5], [-1, -1, 0, 1, 2, 3]])
    cache, outputs, start = pf.KeyValueCache(KV_HEADS, CAPACITY, D_K, D_V, num_texts=TEXTS), [], 0
    for piece in pieces:
        seq = piece[0].shape[2]
        output, cache = attend_with_cache(*piece, cache, places[:, start : start + seq], position)
        outputs, start = [*outputs, output], start + seq
    output = jnp.concatenate(outputs, axis=2)
    queries, keys, values = (np.concatenate(each, axis=2) for each in zip(*pieces, strict=True))
    assert output.shape == (HEADS, TEXTS, 6, D_V)
    for text, padded in enumerate([0, 2]):
        assert (output[:, text, :padded] == 0).all()  # a padded token attends to nothing
        seq = 6 - padded
        causal = np.tri(seq, dtype=bool)
        for head in range(HEADS):
            q, k, v = queries[head, text, padded:], keys[head // 2, text, padded:], values[head // 2, text, padded:]
            bias = None
            if isinstance(position, pf.RotaryPositions):
                q, k = reference.turned(q, 10_000.0), reference.turned(k, 10_000.0)
            elif position is not None:
                bias = [[-pf.alibi_slopes(HEADS)[head] * abs(n - m) for m in range(seq)] for n in range(seq)]
            expected = reference.attend(q, k, v, causal, bias=None if bias is None else np.array(bias))
            np.testing.assert_allclose(output[head, text, padded:], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.equation("eq-decoder-cached-attention")
@pytest.mark.parametrize("num_kv_heads", [None, 2, 1])
def test_multi_head_attention_extend_equals_a_causal_call(num_kv_heads, key):
    layer = pf.MultiHeadAttention(24, 6, num_kv_heads=num_kv_heads, d_k=2, d_v=3, use_bias=True, key=key)
    x = jax.random.normal(key, (TEXTS, 5, 24))
    cache, places = layer.new_cache(CAPACITY, num_texts=TEXTS), jnp.tile(jnp.arange(5), (TEXTS, 1))
    outputs = []
    for piece in (slice(0, 3), slice(3, 4), slice(4, 5)):
        rows, cache = layer.extend(x[:, piece].reshape(-1, 24), cache, places[:, piece])
        outputs.append(rows.reshape(TEXTS, -1, 24))
    for text in range(TEXTS):
        expected = layer(x[text], pf.causal_mask(5))
        np.testing.assert_allclose(jnp.concatenate(outputs, axis=1)[text], expected, rtol=1e-4, atol=1e-5)


def test_attend_with_cache_is_not_reached_by_what_stands_in_hidden_slots(key):
    piece, places = new_tokens(key, 2), jnp.array([[4, 5], [3, 4]])
    cache = filled()
    other = eqx.tree_at(
        lambda c: (c.keys, c.values),
        cache,
        (cache.keys.at[1::2, :, 0].set(99.0), cache.values.at[1::2, 0].set(-99.0)),  # the second text's padding
    )
    np.testing.assert_array_equal(
        attend_with_cache(*piece, cache, places)[0], attend_with_cache(*piece, other, places)[0]
    )


CACHE = {"num_kv_heads": 3, "capacity": 7, "d_k": 4, "d_v": 5}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pf.KeyValueCache(**CACHE | {"capacity": 0}), ValueError, r"capacity is 0; expected at least 1"),
        (lambda: pf.KeyValueCache(**CACHE, num_texts=0), ValueError, r"num_texts is 0; expected at least 1"),
        (lambda: pf.KeyValueCache(**CACHE | {"d_k": 2.5}), TypeError, r"d_k is 2\.5; expected a whole number"),
        (
            lambda: filled().append(jnp.ones((3, 1, 4)), jnp.ones((3, 1, 5)), jnp.ones((2, 1), int)),
            ValueError,
            r"keys has shape \(3, 1, 4\); expected \(rows=6, seq, d_k=4\)",
        ),
        (
            lambda: filled().append(jnp.ones((6, 1, 4)), jnp.ones((6, 2, 5)), jnp.ones((2, 1), int)),
            ValueError,
            r"values has shape \(6, 2, 5\); expected \(rows=6, seq=1, d_v=5\)",
        ),
        (
            lambda: filled().append(jnp.ones((6, 1, 4)), jnp.ones((6, 1, 5)), jnp.ones((1, 1), int)),
            ValueError,
            r"positions has shape \(1, 1\); expected \(num_texts=2, seq=1\)",
        ),
        (
            lambda: filled().mask(jnp.ones(3, int)),
            ValueError,
            r"positions has shape \(3,\); expected \(num_texts=2, seq\)",
        ),
        (lambda: filled().select(jnp.ones((1, 2), int)), ValueError, r"texts has shape \(1, 2\)"),
        (
            lambda: attend_with_cache(*new_tokens(jax.random.key(0), 1), filled(), jnp.zeros((2, 1), int), "rotary"),
            TypeError,
            r"position is of type str; expected a scheme",
        ),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
