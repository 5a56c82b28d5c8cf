"""Chapter 04's layers at their edges: half precision, constant and empty rows, and what a reader is told."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf

KEY, ROWS = jax.random.key(0), jnp.ones((5, 6))
LAYERS = {
    "layer": lambda d: pf.LayerNorm(d),
    "rms": lambda d: pf.RMSNorm(d),
    "feed_forward": lambda d: pf.FeedForward(d, 7, key=KEY),
    "swiglu": lambda d: pf.SwiGLU(d, 7, key=KEY),
}


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_norms_in_half_precision_keep_the_dtype_and_do_not_overflow(dtype):
    # The square of 300 is more than float16 holds, and the square of 0.001 less than it can tell from zero.
    row = np.array([300.0, -300, 600, 0, 900, 300])
    for size in (1.0, 1e-5):
        rows = jnp.asarray([size * row], dtype)
        expected = np.asarray(rows, np.float64)
        eps = 0.0 if size < 1 else 1e-5
        centred = expected - expected.mean()
        for got, want in (
            (pf.standardise(rows, eps), centred / centred.std()),
            (pf.LayerNorm(6, eps=eps), centred / centred.std()),
            (pf.RMSNorm(6, eps=eps), expected / np.sqrt((expected**2).mean())),
        ):
            if isinstance(got, eqx.Module):
                got = jax.tree.map(lambda w: w.astype(dtype), got)(rows)
            assert got.dtype == dtype
            np.testing.assert_allclose(got.astype(jnp.float32), want, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_feed_forward_swiglu_and_dropout_keep_half_precision(dtype):
    rows = ROWS.astype(dtype)
    for activation in ("relu", "gelu", "gelu_tanh", "silu"):
        network = pf.FeedForward(6, 7, activation=activation, key=KEY)
        half = jax.tree.map(lambda w: w.astype(dtype), network)(rows)
        assert half.dtype == dtype
        np.testing.assert_allclose(half.astype(jnp.float32), network(ROWS), rtol=0.05, atol=0.05)
    assert jax.tree.map(lambda w: w.astype(dtype), pf.SwiGLU(6, 7, key=KEY))(rows).dtype == dtype
    assert pf.dropout(rows, 0.5, key=KEY).dtype == dtype


def test_norms_of_a_constant_row_are_finite_and_so_are_their_gradients():
    for value in (0.0, 5.0):
        rows = jnp.full((3, 4), value)
        np.testing.assert_array_equal(pf.standardise(rows), np.zeros((3, 4)))
        for layer in (pf.LayerNorm(4), pf.RMSNorm(4)):
            assert np.isfinite(layer(rows)).all()
            assert np.isfinite(jax.grad(lambda x, layer=layer: (layer(x) ** 2).sum())(rows)).all()
    np.testing.assert_array_equal(pf.RMSNorm(4)(jnp.zeros((3, 4))), np.zeros((3, 4)))


@pytest.mark.parametrize("name", LAYERS)
def test_layers_take_no_tokens_and_tokens_of_one_number(name):
    assert LAYERS[name](6)(jnp.ones((0, 6))).shape == (0, 6)
    single = LAYERS[name](1)(jnp.array([[2.0], [-3.0]]))
    assert np.isfinite(single).all()
    if name == "layer":  # a single number is its own mean
        np.testing.assert_array_equal(single, np.zeros((2, 1)))
    if name == "rms":
        np.testing.assert_allclose(single, [[1], [-1]], rtol=1e-5)


@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_the_same_compiled_and_over_a_batch(name):
    layer, traced = LAYERS[name](6), []

    @eqx.filter_jit
    def compiled(layer, batch):
        traced.append(batch.shape)
        return jax.vmap(layer)(batch)

    batch = jax.random.normal(KEY, (3, 5, 6))
    outputs = compiled(layer, batch)
    compiled(layer, 2 * batch)
    assert len(traced) == 1  # new values, no new trace
    for output, rows in zip(outputs, batch, strict=True):
        np.testing.assert_allclose(output, layer(rows), rtol=1e-5, atol=1e-6)
    compiled(layer, batch[:, :4])
    assert len(traced) == 2


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (jnp.ones((2, 5, 6)), ValueError, r"x has shape \(2, 5, 6\); expected \(seq, d_model=6\).*batch.*jax\.vmap"),
        (jnp.ones(6), ValueError, r"x has shape \(6,\); expected \(seq, d_model=6\).*x\[None\]"),
        (jnp.ones((5, 8)), ValueError, r"x has shape \(5, 8\); expected \(seq, d_model=6\)"),
        (jnp.ones((6, 5)), ValueError, r"x has shape \(6, 5\).*swapped.*x\.T"),
        ([[1.0]], TypeError, r"x is a list; expected an array with axes \(seq, d_model=6\).*jnp\.asarray"),
    ],
)
def test_layers_name_what_came_and_what_was_wanted(name, x, error, message):
    with pytest.raises(error, match=message):
        LAYERS[name](6)(x)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pf.standardise(ROWS[None]), ValueError, r"x has shape \(1, 5, 6\).*jax\.vmap"),
        (lambda: pf.standardise(jnp.ones((5, 0))), ValueError, r"d_model is 0; expected at least 1"),
        (lambda: pf.standardise(ROWS, -1.0), ValueError, r"eps is -1\.0; expected a small number, at least 0"),
        (
            lambda: pf.standardise(jnp.ones((5, 6), int)),
            TypeError,
            r"x holds int32; expected floats.*x\.astype\(float\)",
        ),
        (lambda: pf.RMSNorm(6)(jnp.ones((5, 6), int)), TypeError, r"x holds int32; expected floats"),
        (lambda: pf.LayerNorm(6, eps=-1e-5), ValueError, r"eps is -1e-05; expected a small number, at least 0"),
        (lambda: pf.RMSNorm(6, eps=float("nan")), ValueError, r"eps is nan; expected a small number"),
        (lambda: pf.LayerNorm(0), ValueError, r"d_model is 0; expected at least 1"),
        (lambda: pf.RMSNorm(6.0), TypeError, r"d_model is 6\.0; expected a whole number"),
        (lambda: pf.FeedForward(6, 0, key=KEY), ValueError, r"d_ff is 0; expected at least 1"),
        (lambda: pf.SwiGLU(6, -1, key=KEY), ValueError, r"d_ff is -1; expected at least 1"),
        (
            lambda: pf.FeedForward(6, 7, activation="glu", key=KEY),
            ValueError,
            r"activation is 'glu'; expected one of 'relu', 'gelu', 'gelu_tanh', 'silu'",
        ),
        (lambda: pf.dropout(ROWS, -0.1, key=KEY), ValueError, r"rate is -0\.1; expected a probability of at least 0"),
        (lambda: pf.dropout(ROWS, 1.0, key=KEY), ValueError, r"rate is 1\.0; expected a probability .* below 1"),
        (lambda: pf.dropout(ROWS, 10), ValueError, r"rate is 10;.*For 10 per cent, pass 0\.1"),
        (lambda: pf.dropout(ROWS, "0.1", key=KEY), TypeError, r"rate is '0\.1'; expected a number, such as 0\.1"),
        (lambda: pf.dropout(ROWS, True, key=KEY), TypeError, r"rate is True; expected a number"),
        (lambda: pf.dropout(ROWS, None), TypeError, r"rate is None; expected a number"),
        (lambda: jax.jit(pf.dropout)(ROWS, 0.1, key=KEY), TypeError, r"rate is traced.*static_argnames"),
        (lambda: pf.dropout(ROWS.astype(int), 0.1), TypeError, r"x holds int32; expected floats"),
        (lambda: pf.standardise(ROWS, "1e-5"), TypeError, r"eps is '1e-5'; expected a number, such as 1e-5"),
        (lambda: pf.standardise(ROWS, jnp.ones(2)), TypeError, r"eps is Array.*; expected a number"),
        (lambda: jax.jit(pf.standardise)(ROWS, 1e-5), TypeError, r"eps is traced.*static_argnames"),
        (lambda: pf.LayerNorm(6, eps=float("inf")), ValueError, r"eps is inf; expected a small number"),
        (lambda: pf.dropout(ROWS, float("nan")), ValueError, r"rate is nan; expected a probability"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
