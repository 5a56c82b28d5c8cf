"""Attention block by block gives what `attend` gives, values and gradients, whatever is hidden."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from plainformer.attention import Mask, blockwise_attention, online_softmax_step
from plainformer.attention.efficiency import start_rows
from plainformer.positions.window import Window

SIZES = [(5, 7, 3, 2), (8, 8, 4, 4), (1, 6, 2, 5), (9, 4, 3, 1)]  # queries, keys, d_k, d_v


def draw(*shape, seed=0, factor=1.0):
    """Normal numbers, made without the compiler."""
    return jnp.asarray(factor * np.random.default_rng([seed, *shape]).normal(size=shape), jnp.float32)


def rows_of(sizes, batch=(3,), seed=0):
    """Queries, keys, values, and a slope for each entry of the result."""
    q_seq, kv_seq, d_k, d_v = sizes
    shapes = (q_seq, d_k), (kv_seq, d_k), (kv_seq, d_v), (q_seq, d_v)
    return [draw(*batch, *shape, seed=seed + number) for number, shape in enumerate(shapes)]


@eqx.filter_jit
def value_and_slopes(attention, rows, slopes, *arguments, **options):
    value, backward = jax.vjp(lambda *rows: attention(*rows, *arguments, **options), *rows)
    return value, *backward(slopes)


def assert_equal_to_direct(rows, slopes, mask, table, block_size):
    direct = value_and_slopes(pf.attend, rows, slopes, table)
    found = value_and_slopes(blockwise_attention, rows, slopes, mask, block_size=block_size)
    for name, ours, theirs in zip(("output", "d_queries", "d_keys", "d_values"), found, direct, strict=True):
        size = max(1, float(jnp.abs(theirs).max()))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5 * size, err_msg=name)


# --- the online softmax


@pytest.mark.equation("eq-efficiency-online")
def test_online_softmax_does_not_depend_on_the_order():
    scores, values = draw(2, 6, factor=30), draw(6, 3)
    expected = jax.nn.softmax(scores) @ values
    for order in ([0, 1, 2, 3, 4, 5], [5, 3, 1, 0, 2, 4]):
        rows = start_rows(scores[:, :1], 3)
        for m in order:
            rows = online_softmax_step(rows, scores[:, m : m + 1], values[m : m + 1])
        np.testing.assert_allclose(rows.out / rows.total, expected, atol=1e-5)


# --- blockwise attention


@pytest.mark.equation("eq-efficiency-blockwise")
@pytest.mark.parametrize(
    ("sizes", "block_size", "draws"),
    [(SIZES[0], 3, 0), (SIZES[2], 64, 2), (SIZES[3], 4, 4)],
)
def test_blockwise_attention_is_attention(sizes, block_size, draws):
    """Three masks each: values and gradients, ragged blocks among them, and rows from which all is hidden."""
    *rows, slopes = rows_of(sizes, seed=10 * draws)
    q_seq, kv_seq, *_ = sizes
    numbers = np.random.default_rng([draws, *sizes])
    table = jnp.asarray(numbers.random((q_seq, kv_seq)) < 0.6).at[0].set(False)
    is_token = jnp.asarray(numbers.random((3, kv_seq)) < 0.7).at[:, 0].set(True)
    rule = Mask(is_token=is_token, causal=True)
    for mask, same in ((None, None), (table, table), (rule, rule.table(q_seq, kv_seq))):
        assert_equal_to_direct(rows, slopes, mask, same, block_size)


def test_blockwise_attention_of_huge_scores():
    """Scores up to some ten thousand, of either sign: the largest changes by more than float32's exp can bear."""
    *rows, slopes = rows_of(SIZES[0])
    rows[0] = rows[0] * 1e4
    assert np.abs(rows[0] @ rows[1].mT).max() > 1e4
    assert_equal_to_direct(rows, slopes, Mask(causal=True), pf.causal_mask(7)[:5], 2)


def test_blockwise_attention_keeps_out_padding_that_is_nan():
    queries, keys, values, slopes = rows_of((4, 6, 3, 2))
    is_token = jnp.arange(6) < 4
    rule = Mask(is_token=jnp.broadcast_to(is_token, (3, 6)))
    bad = jnp.where(is_token[:, None], 0, jnp.nan)
    found = value_and_slopes(blockwise_attention, [queries, keys + bad, values + bad], slopes, rule, block_size=3)
    clean = value_and_slopes(blockwise_attention, [queries, keys, values], slopes, rule, block_size=3)
    for ours, theirs in zip(found, clean, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


@pytest.mark.parametrize("scheme", [Window(pf.NoPositions(), 3), Window(pf.AlibiPositions(3), 2)])
def test_blockwise_attention_adds_what_positions_add(scheme):
    *rows, slopes = rows_of((8, 8, 4, 3))
    bias, near = (method(jnp.arange(8), jnp.arange(8)) for method in (scheme.bias, scheme.sees))
    mask = pf.causal_mask(8) if near is None else pf.causal_mask(8) & near
    direct = value_and_slopes(pf.attend, rows, slopes, mask, bias=bias)
    found = value_and_slopes(blockwise_attention, rows, slopes, Mask(causal=True), scheme=scheme, block_size=3)
    for ours, theirs in zip(found, direct, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_blockwise_attention_teaches_positions():
    """The table of relative positions gets the gradient that the direct form gives it."""
    *rows, slopes = rows_of((8, 8, 4, 3))
    scheme = pf.RelativePositions(3, num_buckets=6, max_distance=7, causal=True, key=jax.random.key(0))

    def direct(scheme):
        return (slopes * pf.attend(*rows, pf.causal_mask(8), bias=scheme.bias(jnp.arange(8), jnp.arange(8)))).sum()

    def blockwise(scheme):
        return (slopes * blockwise_attention(*rows, Mask(causal=True), scheme=scheme, block_size=3)).sum()

    expected, found = (jax.tree.leaves(eqx.filter_grad(each)(scheme)) for each in (direct, blockwise))
    assert len(found) == len(expected) == 1
    np.testing.assert_allclose(found[0], expected[0], atol=1e-5)


def test_blockwise_attention_takes_a_learned_scale(unchecked):
    *rows, slopes = rows_of(SIZES[0])
    slope_of = [
        jax.grad(lambda scale, form=form: (slopes * form(*rows, scale=scale)).sum())(jnp.asarray(0.7))
        for form in (pf.attend, blockwise_attention)
    ]
    np.testing.assert_allclose(*slope_of, rtol=1e-5)


def test_blockwise_attention_in_16_bits_sums_in_32():
    """The result has 8 binary digits, and is rounded to them once."""
    halves = [each.astype(jnp.bfloat16) for each in rows_of(SIZES[1])[:3]]
    found = blockwise_attention(*halves, block_size=2)
    assert found.dtype == jnp.bfloat16
    expected = pf.attend(*(each.astype(jnp.float32) for each in halves))
    np.testing.assert_allclose(found.astype(jnp.float32), expected, rtol=2**-8)


def test_blockwise_attention_visits_no_block_that_is_hidden(monkeypatch):
    """With a window of 4 over 32 tokens in blocks of 4, each block of queries meets two blocks of keys, or one."""
    visited = []

    def noting(rows, scores, values):
        jax.debug.callback(lambda: visited.append(1))
        return online_softmax_step(rows, scores, values)

    monkeypatch.setattr("plainformer.attention.efficiency.online_softmax_step", noting)
    *rows, _ = rows_of((32, 32, 4, 4), batch=(1,))
    scheme = Window(pf.NoPositions(), 4)
    jax.block_until_ready(blockwise_attention(*rows, Mask(causal=True), scheme=scheme, block_size=4))
    jax.effects_barrier()
    assert len(visited) == 8 + 7


def test_blockwise_attention_keeps_memory_linear_in_length():
    """What is kept for the gradients grows with the length; of the direct form, with its square."""
    kept = {
        form: [
            pf.training.count_kept_bytes(form, *3 * [np.zeros((2, seq, 8), np.float32)]) for seq in (512, 1024, 2048)
        ]
        for form in (pf.attend, blockwise_attention)
    }
    assert kept[blockwise_attention][2] / kept[blockwise_attention][1] < 2.05
    assert kept[pf.attend][2] / kept[pf.attend][1] > 3.9


def test_blockwise_attention_refuses_a_mask_of_numbers(unchecked):
    with pytest.raises(TypeError, match="mask"):
        blockwise_attention(*rows_of(SIZES[0])[:3], jnp.ones((5, 7)))


def test_blockwise_attention_refuses_a_rule_for_other_keys():
    with pytest.raises(ValueError, match="is_token"):
        blockwise_attention(*rows_of(SIZES[0])[:3], Mask(is_token=np.ones((3, 6), bool)))


# --- in layers and models


def test_layer_computes_the_same_either_way():
    options = {"num_heads": 4, "num_kv_heads": 2, "key": jax.random.key(1)}
    x, is_token = draw(3, 9, 8), jnp.arange(9) < jnp.array([9, 4, 6])[:, None]
    rule = Mask(is_token=is_token, causal=True)
    kernels = pf.attention.Softmax(), pf.attention.Blockwise()
    found = [pf.MultiHeadAttention(8, kernel=kernel, **options)(x, rule) for kernel in kernels]
    np.testing.assert_allclose(*found, atol=1e-5)


def test_layer_refuses_positions_for_other_heads():
    layer = pf.MultiHeadAttention(8, num_heads=4, kernel=pf.attention.Blockwise(), key=jax.random.key(1))
    with pytest.raises(ValueError, match="heads"):
        layer(draw(5, 8), scheme=pf.AlibiPositions(2))
