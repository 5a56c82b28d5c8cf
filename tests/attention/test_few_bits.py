"""Numbers in 8 or 4 bits by groups, and a cache of them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from closeness import assert_close
from toy_models import drawn

import plainformer as pf
from plainformer.attention import quantise_groups
from plainformer.attention.cache import KeyValueCache
from plainformer.attention.few_bits import FewBitKeys
from plainformer.models.accounting import cache_bytes

HEADS, TEXTS, D_K, D_V, CAPACITY, GROUP = 3, 2, 5, 8, 18, 4
SIZES = {"num_kv_heads": HEADS, "capacity": CAPACITY, "d_k": D_K, "d_v": D_V}
STACK = pf.StackConfig(d_model=12, num_layers=2, num_heads=3, d_ff=10, d_k=4, d_v=6, position_scheme="rotary")
extend = eqx.filter_jit(lambda model, *arguments: model.extend(*arguments))


def draw(*shape, seed=0):
    return jnp.asarray(np.random.default_rng([seed, *shape]).normal(size=shape), jnp.float32)


def by_loops(groups, bits):
    """Each number on the nearest step of its group, in float64, with step and least number of 16 bits."""
    found = np.empty(groups.shape)
    for place in np.ndindex(groups.shape[:-1]):
        group = np.asarray(groups[place], np.float64)
        low, step = float(np.float16(group.min())), float(np.float16((group.max() - group.min()) / (2**bits - 1)))
        codes = np.clip(np.round((group - low) / (step or 1)), 0, 2**bits - 1)
        found[place] = low + step * codes
    return found


@pytest.mark.equation("eq-serving-groups")
@pytest.mark.parametrize(("bits", "group"), [(8, 2), (4, 6)])
def test_quantise_groups_agrees_with_a_loop_in_float64(bits, group):
    numbers = draw(5, 3, group) * 10
    groups = quantise_groups(numbers, bits)
    assert groups.codes.shape == (5, 3, group * bits // 8)
    assert_close(groups.numbers(), by_loops(numbers, bits))
    off = np.abs(np.asarray(groups.numbers()) - np.asarray(numbers)).max(axis=-1)
    assert (off <= 0.5 * np.asarray(groups.step, np.float32) + 0.02).all()  # and what 16 bits lose of the least number


@pytest.mark.equation("eq-serving-groups")
def test_a_cache_of_few_bits_has_the_dtype_of_its_layer():
    dtype = jnp.bfloat16
    cache = KeyValueCache(**SIZES, dtype=dtype, bits=8, group=GROUP)
    keys, values = draw(HEADS, 9, D_K).astype(dtype), draw(HEADS, 9, D_V).astype(dtype)
    cache = cache.append(keys, values, jnp.arange(9, dtype=jnp.int32))
    assert cache.keys.dtype == cache.values.dtype == dtype
    for found, given in [(cache.keys[..., :9].mT, keys), (cache.values[:, :9], values)]:
        np.testing.assert_allclose(found.astype(float), given.astype(float), atol=0.03)


def appended(cache, sizes, front=(TEXTS, HEADS)):
    """The cache after pieces of these sizes, and all keys and values that it was given."""
    total = sum(sizes)
    keys, values = draw(*front, total, D_K, seed=1), draw(*front, total, D_V, seed=2)
    places = np.broadcast_to(np.arange(total, dtype=np.int32), (*front[:-1], total))
    append, start = eqx.filter_jit(lambda cache, *piece: cache.append(*piece)), 0
    for size in sizes:
        piece = slice(start, start + size)
        cache = append(cache, keys[..., piece, :], values[..., piece, :], jnp.asarray(places[..., piece]))
        start += size
    return cache, np.asarray(keys), np.asarray(values)


@pytest.mark.equation("eq-serving-groups")
@pytest.mark.parametrize(("sizes", "bits"), [([5, 1, 1, 1, 1, 3], 8), ([3, 9, 1], 4), ([17, 1], 8), ([2], 4)])
def test_cache_of_few_bits_keeps_full_groups_of_keys_and_each_value(sizes, bits):
    cache, keys, values = appended(KeyValueCache(**SIZES, batch=(TEXTS,), bits=bits, group=GROUP), sizes)
    total = sum(sizes)
    exact = (total - 1) // GROUP * GROUP  # where the newest group begins, which is as it was given
    columns = keys[..., :exact, :].swapaxes(-2, -1).reshape(TEXTS, HEADS, D_K, exact // GROUP, GROUP)
    of_full = by_loops(columns, bits).reshape(TEXTS, HEADS, D_K, exact)
    np.testing.assert_allclose(cache.keys[..., :exact], of_full, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(cache.keys[..., exact:total], keys[..., exact:, :].swapaxes(-2, -1))
    rows = by_loops(values.reshape(TEXTS, HEADS, total, D_V // GROUP, GROUP), bits)
    assert_close(cache.values[..., :total, :], rows.reshape(TEXTS, HEADS, total, D_V))
    assert (cache.kv_heads, cache.capacity, cache.batch, int(cache.length)) == (HEADS, CAPACITY, (TEXTS,), total)
    assert cache.keys.shape == (TEXTS, HEADS, D_K, CAPACITY)


def test_cache_of_few_bits_selects_texts():
    cache, *_ = appended(KeyValueCache(**SIZES, batch=(TEXTS,), bits=4, group=GROUP), [6])
    chosen = cache.select(jnp.array([1, 1, 0]))
    for name in ("keys", "values", "positions"):
        np.testing.assert_array_equal(getattr(chosen, name), np.asarray(getattr(cache, name))[[1, 1, 0]])
    assert isinstance(chosen.key_columns, FewBitKeys)


@pytest.mark.equation("eq-serving-cache-bytes")
def test_cache_bytes_of_few_bits_by_hand():
    """Of 13 tokens in groups of 6 there are three groups; a value of 6 channels is one."""
    keys = 4 * (3 * (6 // 2 + 4) + 6 * 4)  # four channels: three bytes, step and low; the newest group as it is
    values = 13 * (6 // 2 + 4)
    assert cache_bytes(STACK, 13, bits=4, group=6) == 2 * 3 * (keys + values)


@pytest.mark.equation("eq-serving-cache-bytes")
@pytest.mark.parametrize(("d_v", "bits", "size"), [(40, 8, 20), (50, 4, 10), (37, 8, 1)])
def test_without_a_group_values_have_the_largest_divisor_up_to_32(d_v, bits, size):
    """In 4 bits the largest even one, since two codes share a byte; and the arrays are as large as is counted."""
    stack = pf.StackConfig(d_model=8, num_layers=2, num_heads=2, d_v=d_v)
    cache = drawn(pf.Decoder, pf.DecoderConfig(5, 40, stack)).make_cache(bits=bits)
    rooms = [leaf for part in cache for leaf in jax.tree.leaves((part.key_columns, part.value_rows))]
    assert sum(leaf.nbytes for leaf in rooms) == cache_bytes(stack, 40, bits=bits)
    assert cache[0].value_rows.stored.step.shape[-1] == d_v // size
    assert cache[0].key_columns.newest.shape[-1] == 32
    values = draw(2, 5, d_v)
    kept = cache[0].append(draw(2, 5, 4), values, jnp.arange(5)).values[:, :5]
    assert_close(kept, by_loops(values.reshape(2, 5, -1, size), bits).reshape(values.shape))


def test_a_decoder_with_a_cache_of_8_bits_nearly_agrees_with_a_call_and_of_4_bits_less():
    stack = pf.StackConfig(d_model=12, num_layers=2, num_heads=3, position_scheme="rotary")
    model, tokens = (
        drawn(pf.Decoder, pf.DecoderConfig(11, 20, stack)),
        jnp.asarray(np.random.default_rng(0).integers(0, 11, (2, 17))),
    )
    whole, off = np.asarray(model(tokens)), {}
    for bits in (8, 4):
        cache, rows = model.make_cache(20, batch=(2,), bits=bits, group=4), []
        for piece in np.split(tokens, [9, 10, 11, 12, 13, 14, 15, 16], axis=1):
            found, cache = extend(model, piece, cache)
            rows.append(found)
        off[bits] = np.abs(np.asarray(model.logits(jnp.concatenate(rows, axis=1))) - whole).max() / np.abs(whole).max()
    assert 0 < off[8] < 0.02
    assert off[8] < off[4] < 0.3


def test_generate_writes_with_a_cache_of_few_bits():
    model = drawn(pf.Decoder, pf.DecoderConfig(11, 40, stack=STACK))
    whole = pf.generate(model, [[1, 2, 3]], 20, temperature=0)[0]
    small = pf.generate(model, [[1, 2, 3]], 20, temperature=0, cache_bits=8)[0]
    assert len(small.tokens) == len(whole.tokens)
    assert 0 < abs(small.log_probs[0] - whole.log_probs[0]) < 0.05  # the prompt is rounded, too
    beams = pf.beam_search(model, [1, 2, 3], 4, beam_width=2)
    assert beams[0].tokens  # which has no such option, and keeps its numbers as they are


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: KeyValueCache(**SIZES, bits=5), "bits"),
        (lambda: KeyValueCache(**SIZES, bits=4, group=6), "groups of 6"),
        (lambda: KeyValueCache(**SIZES, bits=8, sliding=True), "sliding"),
        (lambda: KeyValueCache(**SIZES | {"d_v": 9}, bits=4), "even"),
        (lambda: cache_bytes(STACK, 9, bits=4, group=4), "groups of 4"),
        (lambda: quantise_groups(jnp.ones((2, 3)), 4), "even"),
    ],
)
def test_caches_of_few_bits_say_what_is_wrong(call, message, unchecked):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_cache_of_few_bits_does_not_slide():
    model = drawn(pf.Decoder, pf.DecoderConfig(11, 9, stack=STACK))
    with pytest.raises(ValueError, match="context_len"):
        pf.generate(model, [[1]], 20, cache_bits=8, temperature=0)
