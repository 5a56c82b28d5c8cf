"""Chapter 04, one token at a time: norms, the token-wise network, dropout, and how many numbers are learned."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from jax.test_util import check_grads
from redraw import redrawn

import plainformer as pf

SEQ, D_MODEL, D_FF = 5, 12, 7
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


@pytest.fixture
def x(key):
    """Five tokens, none of them with mean 0 or variance 1."""
    return 3 * jax.random.normal(key, (SEQ, D_MODEL)) + 2


@pytest.mark.equation("eq-blocks-standardise")
def test_standardise_by_hand():
    rows = pf.standardise(jnp.array([[1.0, 2.0, 3.0, 6.0], [0.0, 0.0, 4.0, 4.0]]), eps=0.0)
    np.testing.assert_allclose(rows[0], np.array([-2, -1, 0, 3]) / math.sqrt(3.5), rtol=1e-6)
    np.testing.assert_allclose(rows[1], [-1, -1, 1, 1], rtol=1e-6)


@pytest.mark.equation("eq-blocks-standardise", "eq-blocks-rms-norm")
def test_standardise_and_rms_norm_add_eps_under_the_root():
    np.testing.assert_allclose(pf.standardise(jnp.array([[1.0, 3.0]]), eps=3.0), [[-0.5, 0.5]], rtol=1e-6)
    np.testing.assert_allclose(pf.RMSNorm(2, eps=3.0)(jnp.array([[-1.0, 1.0]])), [[-0.5, 0.5]], rtol=1e-6)


@pytest.mark.equation("eq-blocks-standardise")
def test_standardise_gives_rows_of_mean_0_and_biased_variance_1(x):
    rows = np.asarray(pf.standardise(x, eps=0.0), np.float64)
    np.testing.assert_allclose(rows.mean(axis=1), np.zeros(SEQ), atol=1e-6)
    np.testing.assert_allclose(rows.var(axis=1, ddof=0), np.ones(SEQ), rtol=1e-5)


@pytest.mark.equation("eq-blocks-standardise")
def test_standardise_ignores_shift_and_scale_of_a_row(x, key):
    scales = jnp.array([0.5, 1, 2, 30, 400])[:, None]
    shifted = scales * x + jax.random.normal(key, (SEQ, 1))
    np.testing.assert_allclose(pf.standardise(shifted, eps=0.0), pf.standardise(x, eps=0.0), rtol=1e-3, atol=1e-5)


@pytest.mark.equation("eq-blocks-layer-norm")
def test_layer_norm_by_hand():
    norm = eqx.tree_at(lambda m: (m.scale, m.bias), pf.LayerNorm(2), (jnp.array([10.0, 100.0]), jnp.array([1.0, 2.0])))
    np.testing.assert_allclose(norm(jnp.array([[3.0, 5.0], [5.0, 3.0]])), [[-9, 102], [11, -98]], rtol=1e-4)


@pytest.mark.equation("eq-blocks-rms-norm")
def test_rms_norm_by_hand():
    norm = eqx.tree_at(lambda m: m.scale, pf.RMSNorm(2, eps=0.0), jnp.array([10.0, 100.0]))
    rows = norm(jnp.array([[1.0, 7.0], [-3.0, 3.0]]))
    np.testing.assert_allclose(rows, [[2, 140], [-10, 100]], rtol=1e-6)


@pytest.mark.equation("eq-blocks-layer-norm", "eq-blocks-rms-norm")
@pytest.mark.parametrize("kind", [pf.LayerNorm, pf.RMSNorm])
def test_norms_ignore_the_length_of_a_token_and_rms_norm_alone_keeps_its_mean(kind, x, key):
    norm = redrawn(kind(D_MODEL, eps=0.0), key)
    np.testing.assert_allclose(norm(50 * x), norm(x), **CLOSE)
    shift = np.abs(norm(x + 4) - norm(x)).max()
    assert shift < 1e-4 if kind is pf.LayerNorm else shift > 0.1


@pytest.mark.equation("eq-blocks-layer-norm", "eq-blocks-rms-norm")
@pytest.mark.parametrize(("seq", "d_model", "eps"), [(1, 4, 1e-5), (5, 12, 0.1), (3, 1, 1e-5), (4, 9, 1e-3)])
def test_norms_agree_with_a_loop_in_float64(seq, d_model, eps, key):
    rows = 2 * jax.random.normal(jax.random.fold_in(key, 1), (seq, d_model)) - 1
    for norm in (
        pf.LayerNorm(d_model, eps=eps),
        pf.LayerNorm(d_model, eps=eps, use_bias=False),
        pf.RMSNorm(d_model, eps=eps),
    ):
        drawn = redrawn(norm, key)
        np.testing.assert_allclose(drawn(rows), reference.normalise(rows, drawn), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("use_bias", [False, True])
def test_norms_agree_with_equinox(use_bias, x, key):
    ours = redrawn(pf.LayerNorm(D_MODEL, use_bias=use_bias), key)
    theirs = eqx.nn.LayerNorm(D_MODEL, use_bias=use_bias)
    theirs = eqx.tree_at(lambda m: [m.weight] + [m.bias] * use_bias, theirs, [ours.scale] + [ours.bias] * use_bias)
    np.testing.assert_allclose(ours(x), jax.vmap(theirs)(x), rtol=1e-5, atol=1e-5)
    ours = redrawn(pf.RMSNorm(D_MODEL), key)
    theirs = eqx.tree_at(lambda m: m.weight, eqx.nn.RMSNorm(D_MODEL, use_bias=False, eps=1e-5), ours.scale)
    np.testing.assert_allclose(ours(x), jax.vmap(theirs)(x), rtol=1e-5, atol=1e-5)


@pytest.mark.equation("eq-blocks-feed-forward", "eq-blocks-relu")
def test_feed_forward_by_hand(key):
    network = eqx.tree_at(
        lambda m: (m.in_weight, m.in_bias, m.out_weight, m.out_bias),
        pf.FeedForward(2, 3, activation="relu", key=key),
        (
            jnp.array([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0]]),
            jnp.array([0.0, -3.0, 1.0]),
            jnp.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
            jnp.array([0.5, -0.5]),
        ),
    )
    # (1, 2) becomes (1, 2 - 3, 2 - 2 + 1) = (1, -1, 1), of which (1, 0, 1) passes.
    np.testing.assert_allclose(network(jnp.array([[1.0, 2.0], [-1.0, 4.0]])), [[6.5, 7.5], [3.5, 3.5]], rtol=1e-6)


@pytest.mark.equation("eq-blocks-relu", "eq-blocks-gelu", "eq-blocks-gelu-tanh", "eq-blocks-silu")
@pytest.mark.parametrize(
    ("activation", "values"),
    [
        ("relu", [0, 0, 1]),
        ("gelu", [-0.1586552539, 0, 0.8413447461]),
        ("gelu_tanh", [-0.1588080094, 0, 0.8411919906]),
        ("silu", [-0.2689414214, 0, 0.7310585786]),
    ],
)
def test_feed_forward_activations_by_table_and_in_float64(activation, values, key):
    network = pf.FeedForward(3, 3, activation=activation, use_bias=False, key=key)
    network = eqx.tree_at(lambda m: (m.in_weight, m.out_weight), network, (jnp.eye(3), jnp.eye(3)))
    np.testing.assert_allclose(network(jnp.array([[-1.0, 0.0, 1.0]])), [values], rtol=1e-6)
    line = np.linspace(-9, 9, 300, dtype=np.float32).reshape(100, 3)
    expected = [[reference.ACTIVATIONS[activation](float(z)) for z in row] for row in line]
    np.testing.assert_allclose(network(jnp.asarray(line)), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.equation("eq-blocks-swiglu")
def test_swiglu_by_hand(key):
    network = eqx.tree_at(
        lambda m: (m.gate_weight, m.in_weight, m.out_weight),
        pf.SwiGLU(2, 3, key=key),
        (
            jnp.array([[math.log(3), 0.0, 0.0], [0.0, 0.0, -math.log(3)]]),
            jnp.array([[4.0, 9.0, 0.0], [0.0, 9.0, 8.0]]),
            jnp.array([[1.0, 2.0], [10.0, 20.0], [3.0, 4.0]]),
        ),
    )
    # The gates are silu(log 3) = 3/4 log 3, silu(0) = 0 and silu(-log 3) = -1/4 log 3: they let 3, 0 and -2 pass.
    np.testing.assert_allclose(network(jnp.array([[1.0, 1.0]])), math.log(3) * np.array([[-3.0, -2.0]]), rtol=1e-6)


@pytest.mark.equation("eq-blocks-feed-forward", "eq-blocks-swiglu")
@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh", "silu", "swiglu"])
@pytest.mark.parametrize(("seq", "d_model", "d_ff", "use_bias"), [(5, 12, 7, True), (1, 3, 1, False), (4, 1, 8, True)])
def test_feed_forward_agrees_with_a_loop_in_float64(activation, seq, d_model, d_ff, use_bias, key):
    network = (
        pf.SwiGLU(d_model, d_ff, key=key)
        if activation == "swiglu"
        else pf.FeedForward(d_model, d_ff, activation=activation, use_bias=use_bias, key=key)
    )
    network = redrawn(network, key)
    rows = 2 * jax.random.normal(jax.random.fold_in(key, 1), (seq, d_model))
    np.testing.assert_allclose(network(rows), reference.feed_forward(rows, network), **CLOSE)


def test_feed_forward_agrees_with_equinox(x, key):
    ours = redrawn(pf.FeedForward(D_MODEL, D_FF, activation="silu", key=key), key)
    theirs = eqx.nn.MLP(D_MODEL, D_MODEL, D_FF, depth=1, activation=jax.nn.silu, key=key)
    theirs = eqx.tree_at(
        lambda m: [layer.weight for layer in m.layers] + [layer.bias for layer in m.layers],
        theirs,
        [ours.in_weight.T, ours.out_weight.T, ours.in_bias, ours.out_bias],
    )
    np.testing.assert_allclose(ours(x), jax.vmap(theirs)(x), rtol=1e-5, atol=1e-5)


@pytest.mark.equation("eq-blocks-feed-forward", "eq-blocks-layer-norm")
@pytest.mark.parametrize("number", range(4))
def test_layers_look_at_one_token_only(number, x, key):
    layer = [
        pf.LayerNorm(D_MODEL),
        pf.RMSNorm(D_MODEL),
        pf.FeedForward(D_MODEL, D_FF, key=key),
        pf.SwiGLU(D_MODEL, D_FF, key=key),
    ][number]
    order = jnp.array([3, 0, 4, 1, 2])
    np.testing.assert_allclose(layer(x[order]), layer(x)[order], rtol=1e-5, atol=1e-6)
    reach = np.abs(jax.jacobian(layer)(x)).max(axis=(1, 3))
    np.testing.assert_array_equal(reach > 0, np.eye(SEQ, dtype=bool))


@pytest.mark.equation("eq-blocks-dropout")
def test_dropout_keeps_the_mean_and_drops_at_the_rate(key):
    ones = jnp.full((40, 50, 60), 3.0)
    for rate in (0.1, 0.5, 0.9):
        dropped = pf.dropout(ones, rate, key=key)
        kept = np.asarray(dropped) != 0
        np.testing.assert_allclose(dropped[kept], 3 / (1 - rate), rtol=1e-6)
        assert abs(kept.mean() - (1 - rate)) < 0.01
        assert abs(float(dropped.mean()) - 3) < 0.05


@pytest.mark.equation("eq-blocks-dropout")
def test_dropout_is_off_without_a_key_or_a_rate(x, key):
    np.testing.assert_array_equal(pf.dropout(x, 0.5), x)
    np.testing.assert_array_equal(pf.dropout(x, 0.0, key=key), x)


@pytest.mark.equation("eq-blocks-dropout")
def test_dropout_lets_the_gradient_pass_where_it_lets_the_entry_pass(x, key):
    gradient = jax.grad(lambda x: pf.dropout(x, 0.25, key=key).sum())(x)
    np.testing.assert_allclose(gradient, np.where(pf.dropout(x, 0.25, key=key) == 0, 0, 4 / 3), rtol=1e-6)


@pytest.mark.equation("eq-blocks-parameters")
def test_count_parameters_of_known_modules(key):
    assert pf.count_parameters(pf.LayerNorm(12)) == 24
    assert pf.count_parameters(pf.RMSNorm(12)) == 12
    assert pf.count_parameters(pf.FeedForward(12, 7, key=key)) == 12 * 7 + 7 + 7 * 12 + 12
    assert pf.count_parameters(pf.FeedForward(12, 7, use_bias=False, key=key)) == 2 * 12 * 7
    assert pf.count_parameters(pf.SwiGLU(12, 7, key=key)) == 3 * 12 * 7
    assert pf.count_parameters(pf.MultiHeadAttention(12, 3, use_bias=True, key=key)) == 4 * (12 * 12 + 12)
    assert pf.count_parameters({"ids": jnp.arange(3), "rate": 0.5, "none": None, "two": [jnp.ones((2, 3))] * 2}) == 12


@pytest.mark.parametrize("number", range(9))
def test_layers_have_right_gradients(number, x64, key):
    activations = ["relu", "gelu", "gelu_tanh", "silu"]
    layers = [pf.LayerNorm(4), pf.LayerNorm(4, use_bias=False), pf.RMSNorm(4), pf.SwiGLU(4, 5, key=key)]
    layers += [pf.FeedForward(4, 5, activation=activation, key=key) for activation in activations]
    layers += [lambda x: pf.dropout(x, 0.5, key=key)]
    layer, static = eqx.partition(layers[number], eqx.is_array)
    layer = redrawn(layer, key)
    x = jax.random.normal(jax.random.fold_in(key, 1), (3, 4), jnp.float64)

    def output(layer, x):  # check_grads hands over NumPy arrays
        layer, x = jax.tree.map(jnp.asarray, (layer, x))
        return eqx.combine(layer, static)(x)

    check_grads(output, (layer, x), order=1, modes=("fwd", "rev"))


def test_layers_start_with_different_weights_of_the_right_size_and_plain_norms(key):
    network, gated = pf.FeedForward(96, 160, key=key), pf.SwiGLU(96, 160, key=key)
    matrices = [network.in_weight, network.out_weight.T, gated.gate_weight, gated.in_weight, gated.out_weight.T]
    for n, matrix in enumerate(matrices):
        assert abs(float(matrix.std()) - (2 / (96 + 160)) ** 0.5) < 0.004
        start = 2 if n < 2 else len(matrices)
        assert all(np.abs(matrix - other).max() > 0.01 for other in matrices[n + 1 : start])
    assert np.abs(gated.gate_weight - gated.in_weight).max() > 0.01
    assert np.abs(gated.gate_weight - gated.out_weight.T).max() > 0.01
    np.testing.assert_array_equal(network.in_bias, np.zeros(160))
    np.testing.assert_array_equal(network.out_bias, np.zeros(96))
    for norm in (pf.LayerNorm(5), pf.RMSNorm(5)):
        np.testing.assert_array_equal(norm.scale, np.ones(5))
    np.testing.assert_array_equal(pf.LayerNorm(5).bias, np.zeros(5))
    assert pf.LayerNorm(5, use_bias=False).bias is None
