"""Linear attention with factors, token by token, by the dual form, by blocks, and as a layer."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from plainformer.attention import (
    GatedLinearAttention,
    Mask,
    gated_linear_attention,
    gated_linear_step,
    gated_linear_weights,
)

SEQ, D_K, D_V = 9, 4, 3


def draw(*shape, seed=0):
    return jnp.asarray(np.random.default_rng([seed, *shape]).normal(size=shape), jnp.float32)


QKV = draw(2, SEQ, D_K), draw(2, SEQ, D_K, seed=1), draw(2, SEQ, D_V)
LOG_FACTORS = -jnp.abs(draw(2, SEQ))


def token_by_token(queries, keys, values, log_factors):
    """What the recurrence says, in float64."""
    q, k, v, factors = (np.asarray(rows, np.float64) for rows in (queries, keys, values, np.exp(log_factors)))
    state, out = np.zeros((len(q), D_K, D_V)), []
    for n in range(q.shape[1]):
        state = factors[:, n, None, None] * state + k[:, n, :, None] * v[:, n, None, :]
        out.append(np.einsum("bk,bkv->bv", q[:, n], state))
    return np.stack(out, axis=1), state


@pytest.mark.equation("eq-relations-gated")
def test_gated_linear_step_follows_the_recurrence():
    state, out = jnp.zeros((2, D_K, D_V)), []
    for n in range(SEQ):
        state, row = gated_linear_step(state, *(rows[:, n] for rows in QKV), LOG_FACTORS[:, n])
        out.append(row)
    expected, last = token_by_token(*QKV, LOG_FACTORS)
    np.testing.assert_allclose(jnp.stack(out, axis=1), expected, atol=1e-5)
    np.testing.assert_allclose(state, last, atol=1e-5)


@pytest.mark.equation("eq-relations-gated-dual")
def test_gated_linear_weights_are_the_recurrence_at_once():
    weights = gated_linear_weights(*QKV[:2], LOG_FACTORS)
    np.testing.assert_allclose(weights @ QKV[2], token_by_token(*QKV, LOG_FACTORS)[0], atol=1e-5)


@pytest.mark.equation("eq-relations-gated")
@pytest.mark.parametrize("block_size", [4, 64])
def test_gated_linear_attention_by_blocks_is_the_recurrence(block_size):
    expected, last = token_by_token(*QKV, LOG_FACTORS)
    out, state = gated_linear_attention(*QKV, LOG_FACTORS, block_size=block_size)
    np.testing.assert_allclose(out, expected, atol=1e-5)
    np.testing.assert_allclose(state, last, atol=1e-5)


@pytest.mark.equation("eq-relations-gated-dual")
def test_gated_linear_attention_has_the_gradients_of_its_weights():
    slopes = draw(2, SEQ, D_V, seed=3)

    def of(form):
        return jax.grad(lambda *rows: (slopes * form(*rows)).sum(), argnums=(0, 1, 2, 3))(*QKV, LOG_FACTORS)

    expected = of(lambda q, k, v, factors: gated_linear_weights(q, k, factors) @ v)
    found = of(lambda *rows: gated_linear_attention(*rows, block_size=4)[0])
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_factors_near_zero_forget_everything_without_a_nan():
    """Exponentials of differences, not quotients: 64 tokens of factor 10⁻²⁰ give no 0/0, on the way back neither."""
    q, k, v = draw(64, D_K), draw(64, D_K, seed=1), draw(64, D_V)
    factors = jnp.full(64, -46.0)
    np.testing.assert_allclose(gated_linear_weights(q, k, factors) @ v, (q * k).sum(-1, keepdims=True) * v, atol=1e-5)
    slope = jax.grad(lambda factors: gated_linear_attention(q, k, v, factors)[0].sum())(factors)
    assert np.isfinite(slope).all()


def layer_of(**options) -> GatedLinearAttention:
    """A layer whose numbers are all drawn."""
    layer = eqx.filter_eval_shape(GatedLinearAttention, 8, num_heads=2, key=jax.random.key(0), **options)
    numbers = iter(range(100))
    return jax.tree.map(lambda part: draw(*part.shape, seed=next(numbers)) / 2, layer)


@pytest.mark.equation("eq-relations-gated-layer")
def test_gated_linear_layer_in_numpy():
    layer, x = layer_of(), draw(2, SEQ, 8)
    w = {name: np.asarray(getattr(layer, name).weight, np.float64) for name in ("query", "key", "value", "output")}
    rows = np.asarray(x, np.float64)
    factors = 1 / (1 + np.exp(-(rows @ layer.factor.weight + layer.factor.bias)))
    heads = []
    for head in range(2):
        q, k, v = (rows @ w[name][:, 4 * head : 4 * head + 4] for name in ("query", "key", "value"))
        state, out = np.zeros((2, 4, 4)), []
        for n in range(SEQ):
            state = factors[:, n, head, None, None] * state + k[:, n, :, None] * v[:, n, None, :]
            out.append(np.einsum("bk,bkv->bv", q[:, n], state))
        heads.append(np.stack(out, axis=1))
    gate = rows @ np.asarray(layer.gate.weight, np.float64)
    expected = (gate / (1 + np.exp(-gate)) * np.concatenate(heads, axis=-1)) @ w["output"]
    np.testing.assert_allclose(layer(x), expected, atol=1e-4)


def test_reading_in_pieces_is_reading_at_once():
    layer, x, scheme = layer_of(norm=pf.RMSNorm(4)), draw(2, SEQ, 8), pf.RotaryPositions()
    first, state = layer.extend(x[:, :5], layer.start((2,)), jnp.tile(jnp.arange(5), (2, 1)), scheme=scheme)
    rest, _ = layer.extend(x[:, 5:], state, jnp.tile(jnp.arange(5, SEQ), (2, 1)), scheme=scheme)
    np.testing.assert_allclose(jnp.concatenate([first, rest], axis=1), layer(x, scheme=scheme), atol=1e-5)


def test_a_decoder_takes_the_layer_in_place_of_its_attention():
    config = pf.DecoderConfig(7, 16, stack=pf.StackConfig(d_model=8, num_layers=1, num_heads=2, norm="rms"))
    decoder = pf.Decoder(config, key=jax.random.key(0))
    changed = eqx.tree_at(lambda model: model.stack.blocks[0].attention, decoder, layer_of())
    ids = jnp.asarray([[1, 2, 3, 4, 5]])
    np.testing.assert_allclose(changed(ids)[:, :3], changed(ids[:, :3]), atol=1e-5)
    assert np.abs(changed(ids) - decoder(ids)).max() > 1e-3


def test_factors_start_between_a_half_and_nearly_one():
    layer = GatedLinearAttention(8, num_heads=4, key=jax.random.key(0))
    np.testing.assert_allclose(jax.nn.sigmoid(layer.factor.bias), 1 - 2.0 ** -np.array([1, 3, 5, 7]), rtol=1e-5)


def test_gated_linear_attention_refuses_what_does_not_fit():
    layer, x = layer_of(), draw(2, SEQ, 8)
    with pytest.raises(ValueError, match="a state has read them all"):
        layer(x, Mask(is_token=jnp.ones((2, SEQ), bool), causal=True))
    with pytest.raises(ValueError, match="state has shape"):
        layer.extend(x, layer.start((3,)))
    with pytest.raises(ValueError, match="num_heads"):
        GatedLinearAttention(8, num_heads=3, key=jax.random.key(0))
    with pytest.raises(ValueError, match="keys"):
        gated_linear_attention(QKV[0], QKV[1][:, :5], QKV[2], LOG_FACTORS)
