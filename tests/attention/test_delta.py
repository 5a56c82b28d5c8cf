"""The delta rule, token by token, by blocks and by weights, and the layer that is made of it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference

import plainformer as pf
from plainformer.attention import GatedDeltaNet, Mask, delta_rule, delta_step, delta_weights, short_convolution

SEQ, D_K, D_V, D_MODEL, HEADS = 9, 4, 3, 12, 3


def draw(*shape, seed=0):
    return jnp.asarray(np.random.default_rng([seed, *shape]).normal(size=shape), jnp.float32)


def unit(rows):
    return rows / jnp.linalg.norm(rows, axis=-1, keepdims=True)


QKV = draw(2, SEQ, D_K), unit(draw(2, SEQ, D_K, seed=1)), draw(2, SEQ, D_V)
BETAS, LOG_FACTORS = jax.nn.sigmoid(draw(2, SEQ)), -jnp.abs(draw(2, SEQ, seed=1)) / 4
ROWS = (*QKV, BETAS, LOG_FACTORS)


def token_by_token(queries, keys, values, betas, log_factors):
    """What the recurrence says, in float64, with the matrix that the papers write."""
    q, k, v, b, f = (np.asarray(rows, np.float64) for rows in (queries, keys, values, betas, np.exp(log_factors)))
    state, out = np.zeros((len(q), D_K, D_V)), []
    for n in range(q.shape[1]):
        erase = np.eye(D_K) - b[:, n, None, None] * k[:, n, :, None] * k[:, n, None, :]
        state = f[:, n, None, None] * erase @ state + b[:, n, None, None] * k[:, n, :, None] * v[:, n, None, :]
        out.append(np.einsum("bk,bkv->bv", q[:, n], state))
    return np.stack(out, axis=1), state


EXPECTED, LAST = token_by_token(*ROWS)


@pytest.mark.equation("eq-modern-delta")
def test_delta_step_follows_the_recurrence():
    state, out = jnp.zeros((2, D_K, D_V)), []
    for n in range(SEQ):
        state, row = delta_step(state, *(rows[:, n] for rows in ROWS))
        out.append(row)
    np.testing.assert_allclose(jnp.stack(out, axis=1), EXPECTED, atol=1e-5)
    np.testing.assert_allclose(state, LAST, atol=1e-5)


@pytest.mark.equation("eq-modern-delta-block")
def test_delta_weights_are_the_recurrence_at_once():
    q, k, v, *rest = ROWS
    np.testing.assert_allclose(delta_weights(q, k, *rest) @ v, EXPECTED, atol=1e-5)


@pytest.mark.equation("eq-modern-delta-block")
@pytest.mark.parametrize("block_size", [4, 64])
def test_delta_rule_by_blocks_is_the_recurrence(block_size):
    out, state = delta_rule(*ROWS, block_size=block_size)
    np.testing.assert_allclose(out, EXPECTED, atol=1e-5)
    np.testing.assert_allclose(state, LAST, atol=1e-5)


@pytest.mark.equation("eq-modern-delta-block")
def test_delta_rule_has_the_gradients_of_the_steps():
    slopes = draw(2, SEQ, D_V, seed=3)

    def of_steps(*rows):
        state, out = jnp.zeros((2, D_K, D_V)), 0.0
        for n in range(SEQ):
            state, row = delta_step(state, *(each[:, n] for each in rows))
            out = out + (slopes[:, n] * row).sum()
        return out

    def of_blocks(*rows):
        return (slopes * delta_rule(*rows, block_size=4)[0]).sum()

    expected, found = (jax.jit(jax.grad(form, argnums=range(5)))(*ROWS) for form in (of_steps, of_blocks))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_one_key_a_thousand_times_stays_within_bounds():
    """Where sums of a thousand equal keys would have grown, the state says the last value, on the way back, too."""
    keys = jnp.ones((1000, 1))
    values = draw(1000, D_V)

    def read(values):
        return delta_rule(keys, keys, values, jnp.ones(1000), jnp.zeros(1000))[0]

    np.testing.assert_allclose(read(values), values, atol=1e-4)
    assert np.isfinite(jax.grad(lambda values: (read(values) ** 2).sum())(values)).all()


@pytest.mark.equation("eq-modern-delta-layer")
def test_short_convolution_by_hand():
    """Each row, and a tenth of the one before."""
    rows, kernel = jnp.asarray([[1.0], [2.0], [3.0]]), jnp.asarray([[0.1], [1.0]])
    np.testing.assert_allclose(short_convolution(rows, kernel, jnp.zeros((1, 1))), [[1.0], [2.1], [3.2]], rtol=1e-6)
    np.testing.assert_allclose(short_convolution(rows, kernel, jnp.full((1, 1), 5.0))[0], [1.5], rtol=1e-6)


def layer_of(**options) -> GatedDeltaNet:
    """A layer whose numbers are all drawn."""
    layer = eqx.filter_eval_shape(GatedDeltaNet, D_MODEL, HEADS, key=jax.random.key(0), **options)
    numbers = iter(range(100))
    return jax.tree.map(lambda part: draw(*part.shape, seed=next(numbers)) / 2, layer)


@pytest.mark.equation("eq-modern-delta-layer")
def test_gated_delta_net_agrees_with_a_loop_in_float64():
    layer, x = layer_of(norm=pf.RMSNorm(5), d_k=2, d_v=5), draw(SEQ, D_MODEL)
    weights, rows = reference.delta_weights_and_rows(x, layer)
    np.testing.assert_allclose(layer(x), rows, atol=1e-4)
    np.testing.assert_allclose(layer.attention_weights(x), weights, atol=1e-5)


def test_reading_in_pieces_behind_padding_is_reading_at_once():
    layer, x = layer_of(norm=pf.RMSNorm(4)), draw(2, SEQ, D_MODEL)
    padded, places = jnp.concatenate([draw(2, 2, D_MODEL, seed=5), x], axis=1), jnp.arange(-2, SEQ)
    places = jnp.tile(jnp.maximum(places, -1), (2, 1))
    first, cache = layer.extend(padded[:, :5], layer.make_cache(SEQ, batch=(2,)), places[:, :5])
    middle, cache = layer.extend(padded[:, 5:6], cache, places[:, 5:6])
    rest, cache = layer.extend(padded[:, 6:], cache, places[:, 6:])
    np.testing.assert_allclose(jnp.concatenate([first, middle, rest], axis=1)[:, 2:], layer(x), atol=1e-5)
    np.testing.assert_array_equal(cache.positions, [[SEQ - 1]] * 2)


def test_gated_delta_net_reads_no_padding_and_no_later_token():
    layer, x = layer_of(), draw(2, SEQ, D_MODEL)
    is_token = jnp.arange(SEQ) < jnp.asarray([[5], [SEQ]])
    out = layer(jnp.where(is_token[..., None], x, jnp.nan), Mask(is_token=is_token, causal=True))
    np.testing.assert_allclose(out[0, :5], layer(x[0, :5]), atol=1e-5)
    slope = jax.grad(lambda x: layer(x)[0, 3].sum())(x)
    assert (slope[0, 4:] == 0).all()
    assert (slope[0, :4] != 0).all()


def test_weights_that_are_seen_make_what_is_read():
    layer, x = layer_of(), draw(SEQ, D_MODEL)
    out, seen = pf.look(layer, x)
    np.testing.assert_allclose(seen["weights"] @ seen["values"], seen["heads"], atol=1e-5)
    without, _ = pf.look(layer, x, replace={"weights": jnp.zeros((HEADS, SEQ, SEQ))})
    np.testing.assert_allclose(without, 0, atol=1e-5)
    np.testing.assert_allclose(out, layer(x), atol=1e-5)


def test_factors_start_between_a_half_and_nearly_one():
    layer = GatedDeltaNet(8, num_heads=4, key=jax.random.key(0))
    factors = jnp.exp(-jnp.exp(layer.log_rate) * jax.nn.softplus(layer.factor.bias))
    np.testing.assert_allclose(factors, 1 - 2.0 ** -np.array([1, 3, 5, 7]), rtol=1e-5)


def test_a_layer_may_do_without_mixing():
    layer, x = layer_of(num_mixed=1), draw(SEQ, D_MODEL)
    first, cache = layer.extend(x[:4], layer.make_cache(SEQ), jnp.arange(4))
    rest, _ = layer.extend(x[4:], cache, jnp.arange(4, SEQ))
    np.testing.assert_allclose(jnp.concatenate([first, rest]), layer(x), atol=1e-5)


def test_half_precision_keeps_its_state_in_full():
    layer = jax.tree.map(lambda part: part.astype(jnp.bfloat16), layer_of())
    out, cache = layer.extend(draw(SEQ, D_MODEL).astype(jnp.bfloat16), layer.make_cache(SEQ), jnp.arange(SEQ))
    assert (out.dtype, cache.state.dtype) == (jnp.bfloat16, jnp.float32)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda layer, x: layer(x, Mask()), "mask"),
        (lambda layer, x: layer(x, pf.causal_mask(SEQ)), "mask"),
        (lambda layer, x: layer.extend(x, layer.make_cache(SEQ, batch=(3,)), jnp.zeros((2, SEQ), int)), "cache.state"),
        (lambda layer, x: GatedDeltaNet(8, num_heads=3, key=jax.random.key(0)), "num_heads"),
        (lambda layer, x: short_convolution(x, draw(4, D_MODEL), jnp.zeros((2, 2, D_MODEL))), "before"),
        (lambda layer, x: delta_rule(QKV[0], QKV[1][:, :5], *ROWS[2:]), "keys"),
    ],
)
def test_gated_delta_net_refuses_what_does_not_fit(call, message):
    with pytest.raises(ValueError, match=message):
        call(layer_of(), draw(2, SEQ, D_MODEL))
