"""One token at a time: norms, the token-wise network, dropout."""

import functools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from jax.test_util import check_grads
from toy_models import drawn

import plainformer as pf

SEQ, D_MODEL, D_FF = 5, 12, 7
CLOSE = {"rtol": 1e-4, "atol": 1e-5}
KEY = jax.random.key(20170612)
NUMBERS = np.random.default_rng(4)
# Five tokens, none of them with mean 0 or variance 1.
X = jnp.asarray(3 * NUMBERS.normal(size=(SEQ, D_MODEL)) + 2, float)
LAYERS = {
    "layer": pf.LayerNorm,
    "layer-unbiased": functools.partial(pf.LayerNorm, use_bias=False),
    "rms": pf.RMSNorm,
    "gelu": functools.partial(pf.FeedForward, activation="gelu"),
    "silu-unbiased": functools.partial(pf.FeedForward, activation="silu", use_bias=False),
    "swiglu": pf.SwiGLU,
}
NORMS = ["layer", "layer-unbiased", "rms"]
call = eqx.filter_jit(lambda layer, x: layer(x))


def new_layer(name, d_model=D_MODEL, d_ff=D_FF, **options):
    """A layer with all its parameters drawn: scales of one and biases of zero would hide a slip."""

    def make(d_model, key):
        return LAYERS[name](d_model, **options) if name in NORMS else LAYERS[name](d_model, d_ff, key=key)

    return drawn(make, d_model)


@pytest.mark.equation("eq-blocks-standardise")
def test_standardise_by_hand():
    rows = pf.standardise(jnp.array([[1.0, 2.0, 3.0, 6.0], [0.0, 0.0, 4.0, 4.0]]), eps=0.0)
    np.testing.assert_allclose(rows[0], np.array([-2, -1, 0, 3]) / math.sqrt(3.5), rtol=1e-6)
    np.testing.assert_allclose(rows[1], [-1, -1, 1, 1], rtol=1e-6)


@pytest.mark.equation("eq-blocks-standardise", "eq-blocks-rms-norm")
def test_standardise_and_rms_norm_add_eps_under_the_root():
    np.testing.assert_allclose(pf.standardise(jnp.array([[1.0, 3.0]]), eps=3.0), [[-0.5, 0.5]], rtol=1e-6)
    np.testing.assert_allclose(pf.RMSNorm(2, eps=3.0)(jnp.array([[-1.0, 1.0]])), [[-0.5, 0.5]], rtol=1e-6)


@pytest.mark.equation("eq-blocks-layer-norm", "eq-blocks-rms-norm")
@pytest.mark.parametrize(("seq", "d_model", "eps"), [(5, 12, 0.1), (3, 1, 1e-5)])
def test_norms_agree_with_a_loop_in_float64(seq, d_model, eps):
    rows = jnp.asarray(2 * NUMBERS.normal(size=(seq, d_model)) - 1, float)
    for name in NORMS:
        norm = new_layer(name, d_model, eps=eps)
        np.testing.assert_allclose(norm(rows), reference.normalise(rows, norm), rtol=1e-3, atol=1e-4)


@pytest.mark.equation("eq-blocks-relu", "eq-blocks-gelu", "eq-blocks-gelu-tanh", "eq-blocks-silu")
@pytest.mark.parametrize(
    ("activation", "values"),
    [
        ("relu", [0, 0, 1]),
        ("gelu", [-0.1586552539, 0, 0.8413447461]),
        ("gelu_tanh", [-0.1588080094, 0, 0.8411919906]),
        ("silu", [-0.2689414214, 0, 0.7310585786]),
        ("quick_gelu", [-0.1542042341, 0, 0.8457957659]),
        ("squared_relu", [0, 0, 1]),
    ],
)
def test_feed_forward_activations_by_table_and_in_float64(activation, values):
    eye = jnp.asarray(np.eye(3, dtype=np.float32))
    network = pf.FeedForward(3, 3, activation=activation, use_bias=False, key=KEY)
    network = eqx.tree_at(lambda m: (m.up.weight, m.down.weight), network, (eye, eye))
    np.testing.assert_allclose(network(jnp.array([[-1.0, 0.0, 1.0]])), [values], rtol=1e-6)
    line = np.linspace(-9, 9, 300, dtype=np.float32).reshape(100, 3)
    expected = np.vectorize(reference.ACTIVATIONS[activation])(line.astype(float))
    np.testing.assert_allclose(network(jnp.asarray(line)), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.equation("eq-blocks-feed-forward", "eq-blocks-swiglu")
@pytest.mark.parametrize("name", ["gelu", "silu-unbiased", "swiglu"])
def test_feed_forward_agrees_with_a_loop_in_float64(name):
    network = new_layer(name)
    np.testing.assert_allclose(network(X), reference.feed_forward(X, network), **CLOSE)


@pytest.mark.parametrize("name", ["layer", "rms", "gelu", "swiglu"])
def test_layers_take_a_batch_of_any_rank_and_a_single_vector(name):
    layer, batch = new_layer(name), jnp.asarray(NUMBERS.normal(size=(2, 3, SEQ, D_MODEL)), float)
    together = call(layer, batch)
    assert layer(X[:0]).shape == (0, D_MODEL)
    np.testing.assert_allclose(together[1, 2, 3], layer(batch[1, 2, 3]), **CLOSE)
    np.testing.assert_allclose(together, jax.vmap(jax.vmap(layer))(batch), **CLOSE)


@pytest.mark.equation("eq-depth-dropout")
def test_dropout_keeps_the_mean_and_drops_at_the_rate():
    threes = jnp.full((40, 50, 60), 3.0)
    for rate in (0.1, 0.5, 0.9):
        dropped = np.asarray(pf.dropout(threes, rate, key=KEY))
        kept = dropped != 0
        np.testing.assert_allclose(dropped[kept], 3 / (1 - rate), rtol=1e-6)
        assert abs(kept.mean() - (1 - rate)) < 0.01
        assert abs(dropped.mean() - 3) < 0.05


@pytest.mark.equation("eq-depth-dropout")
def test_dropout_is_off_without_a_key_or_a_rate():
    np.testing.assert_array_equal(pf.dropout(X, 0.5), X)
    np.testing.assert_array_equal(pf.dropout(X, 0.0, key=KEY), X)


@pytest.mark.equation("eq-depth-dropout")
def test_dropout_lets_the_gradient_pass_where_it_lets_the_entry_pass():
    gradient = jax.grad(lambda x: pf.dropout(x, 0.25, key=KEY).sum())(X)
    np.testing.assert_allclose(gradient, np.where(pf.dropout(X, 0.25, key=KEY) == 0, 0, 4 / 3), rtol=1e-6)


@pytest.mark.parametrize("name", ["layer", "rms", "gelu", "swiglu", "dropout"])
def test_layers_have_right_gradients(name, x64):
    layer = functools.partial(pf.dropout, rate=0.5, key=KEY) if name == "dropout" else new_layer(name, 4, 5)
    layer, static = eqx.partition(layer, eqx.is_array)
    x = jnp.asarray(NUMBERS.normal(size=(3, 4)), float)

    @jax.jit
    def output(layer, x):
        return eqx.combine(layer, static)(x)

    check_grads(output, (layer, x), order=1, modes=("fwd", "rev"))


def test_layers_start_with_different_weights_of_the_right_size_and_plain_norms():
    network, gated = pf.FeedForward(96, 160, key=KEY), pf.SwiGLU(96, 160, key=KEY)
    maps = [network.up, network.down, gated.gate, gated.up, gated.down]
    matrices = [np.asarray(each.weight) for each in maps]
    for matrix in matrices:
        assert abs(matrix.std() - (2 / (96 + 160)) ** 0.5) < 0.004
    assert np.abs(matrices[0] - matrices[1].T).max() > 0.01
    for one, other in [(2, 3), (2, 4), (3, 4)]:
        assert np.abs(matrices[one].reshape(-1) - matrices[other].T.reshape(-1)).max() > 0.01
        assert np.abs(matrices[one].reshape(-1) - matrices[other].reshape(-1)).max() > 0.01
    np.testing.assert_array_equal(network.up.bias, np.zeros(160))
    np.testing.assert_array_equal(network.down.bias, np.zeros(96))
    assert gated.gate.bias is gated.up.bias is gated.down.bias is None
    for norm in (pf.LayerNorm(5), pf.RMSNorm(5)):
        np.testing.assert_array_equal(norm.scale, np.ones(5))
    np.testing.assert_array_equal(pf.LayerNorm(5).bias, np.zeros(5))
    assert pf.LayerNorm(5, use_bias=False).bias is None


# --- at their edges: half precision, constant and empty rows, and what a reader is told ---------------------


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_norms_in_half_precision_keep_the_dtype_and_do_not_overflow(dtype):
    # The square of 300 is more than float16 holds, and the square of 0.001 less than it can tell from zero.
    row = np.array([300.0, -300, 600, 0, 900, 300])
    for size in (1.0, 1e-5):
        rows = jnp.asarray([size * row], dtype)
        exact = np.asarray(rows, np.float64)
        eps = 0.0 if size < 1 else 1e-5
        centred = exact - exact.mean()
        for norm, expected in (
            (lambda rows, eps=eps: pf.standardise(rows, eps), centred / centred.std()),
            (pf.LayerNorm(6, eps=eps), centred / centred.std()),
            (pf.RMSNorm(6, eps=eps), exact / np.sqrt((exact**2).mean())),
        ):
            norm = jax.tree.map(lambda leaf: leaf.astype(dtype) if eqx.is_array(leaf) else leaf, norm)
            found = norm(rows)
            assert found.dtype == dtype
            np.testing.assert_allclose(found.astype(jnp.float32), expected, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("name", ["gelu", "swiglu"])
def test_feed_forward_swiglu_and_dropout_keep_half_precision(name):
    network, rows = new_layer(name), X / 10
    half = jax.tree.map(lambda w: w.astype(jnp.bfloat16), network)(rows.astype(jnp.bfloat16))
    assert half.dtype == pf.dropout(half, 0.5, key=KEY).dtype == jnp.bfloat16
    expected = network(rows)
    np.testing.assert_allclose(half.astype(jnp.float32), expected, atol=0.03 * np.abs(expected).max())


def test_norms_of_a_constant_row_are_finite_and_so_are_their_gradients():
    for value in (0.0, 5.0):
        rows = jnp.full((3, 4), value)
        np.testing.assert_array_equal(pf.standardise(rows), np.zeros((3, 4)))
        for layer in (pf.LayerNorm(4), pf.RMSNorm(4)):
            assert np.isfinite(layer(rows)).all()
            assert np.isfinite(jax.grad(lambda x, layer=layer: (layer(x) ** 2).sum())(rows)).all()
    np.testing.assert_array_equal(pf.RMSNorm(4)(jnp.zeros((3, 4))), np.zeros((3, 4)))


def test_norms_of_one_number():
    rows = jnp.array([[2.0], [-3.0]])
    np.testing.assert_array_equal(pf.LayerNorm(1)(rows), np.zeros((2, 1)))  # a single number is its own mean
    np.testing.assert_allclose(pf.RMSNorm(1)(rows), [[1], [-1]], rtol=1e-5)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pf.LayerNorm(12)(X[:, :8]), ValueError, "x has"),
        (lambda: pf.RMSNorm(12)(X[:, :8]), ValueError, "x has"),
        (lambda: new_layer("gelu")(X[:, :8]), ValueError, "x has"),
        (lambda: new_layer("swiglu")(X.astype(int)), TypeError, "x holds"),
        (lambda: pf.standardise(jnp.ones((5, 0))), ValueError, "d_model"),
        (lambda: pf.standardise(X, -1.0), ValueError, "eps"),
        (lambda: jax.jit(pf.standardise)(X, 1e-5), TypeError, "traced"),
        (lambda: pf.LayerNorm(6, eps=float("inf")), ValueError, "eps"),
        (lambda: pf.RMSNorm(6.0), TypeError, "d_model"),
        (lambda: pf.FeedForward(6, 0, key=KEY), ValueError, "d_ff"),
        (lambda: pf.FeedForward(6, 7, activation="glu", key=KEY), ValueError, "activation"),
        (lambda: pf.dropout(X, 1.0, key=KEY), ValueError, "rate"),
        (lambda: jax.jit(pf.dropout)(X, 0.1, key=KEY), TypeError, "traced"),
        (lambda: pf.dropout(X.astype(int), 0.1), TypeError, "x holds"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
