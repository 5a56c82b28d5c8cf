"""The whole block: where the norm stands, what passes untouched, which tokens reach which."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from flat import make_block
from jax.test_util import check_grads
from toy_models import drawn

import plainformer as pf
from plainformer.blocks.blocks import ParallelBlock

SEQ, KV_SEQ, D_MODEL, HEADS, D_FF = 5, 7, 12, 3, 10
CLOSE = {"rtol": 1e-3, "atol": 1e-4}
NUMBERS = np.random.default_rng(4)
X = jnp.asarray(NUMBERS.normal(size=(SEQ, D_MODEL)) + 1, float)
CONTEXT = jnp.asarray(NUMBERS.normal(size=(KV_SEQ, D_MODEL)), float)
# A mask for the context with a row that sees nothing.
CONTEXT_MASK = jnp.asarray((NUMBERS.random((SEQ, KV_SEQ)) < 0.6) & (np.arange(SEQ) != 1)[:, None])
CAUSAL = jnp.asarray(np.tri(SEQ, dtype=bool))
KEY = jax.random.key(20170612)
call = eqx.filter_jit(lambda block, x, mask=None, **more: block(x, mask, **more))


def new_block(num_heads=HEADS, d_ff=D_FF, *, cross_attention=False, d_model=D_MODEL, **fields):
    """A block with all its parameters drawn: biases of zero would hide a slip."""
    config = pf.StackConfig(d_model=d_model, num_heads=num_heads, d_ff=d_ff, **fields)
    return drawn(functools.partial(pf.make_block, cross_attention=cross_attention), config)


@functools.cache
def block_of(norm_placement="pre", *, cross_attention=False, dropout_rate=0.0):
    """A block as it is made, the same one for many tests."""
    kinds = {"norm_placement": norm_placement, "dropout_rate": dropout_rate}
    return make_block(D_MODEL, HEADS, D_FF, cross_attention=cross_attention, **kinds, key=KEY)


@pytest.mark.equation("eq-blocks-pre-norm", "eq-blocks-post-norm", "eq-modern-output-norm", "eq-modern-sandwich-norm")
def test_norms_before_and_behind_a_sublayer_by_hand():
    x = jnp.array([[1.0, 3.0], [2.0, 10.0]])
    halve, square, add = (lambda rows: rows / 2), (lambda rows: rows**2), (lambda rows: rows + 1)
    np.testing.assert_array_equal(pf.pre_norm(x, halve, square), [[1.25, 5.25], [3, 35]])  # x + (x / 2)²
    np.testing.assert_array_equal(pf.post_norm(x, halve, square), [[1, 6], [3, 55]])  # (x + x²) / 2
    np.testing.assert_array_equal(pf.blocks.output_norm(x, halve, square), [[1.5, 7.5], [4, 60]])  # x + x² / 2
    sandwiched = pf.blocks.sandwich_norm(x, halve, add, square)
    np.testing.assert_array_equal(sandwiched, [[2.25, 6.25], [4, 36]])  # x + (x / 2)² + 1


@pytest.mark.equation("eq-blocks-pre-norm")
def test_pre_norm_takes_the_skip_from_the_token_not_from_its_normalised_form():
    from_token = pf.pre_norm(X, pf.standardise, jnp.zeros_like)
    np.testing.assert_array_equal(from_token, X)
    assert np.abs(pf.standardise(X) - X).max() > 0.5


@pytest.mark.equation("eq-blocks-block", "eq-blocks-pre-norm", "eq-blocks-post-norm")
@pytest.mark.equation("eq-modern-output-norm", "eq-modern-sandwich-norm")
@pytest.mark.parametrize(
    ("norm_placement", "activation", "num_kv_heads", "use_bias", "norm", "cross_attention"),
    [
        ("pre", "gelu", None, True, "layer", False),
        ("pre", "swiglu", 2, False, "rms", True),
        ("post", "relu", 2, True, "layer", True),
        ("post", "gelu_tanh", None, False, "rms", False),
        ("output", "swiglu", 2, False, "rms", False),
        ("output", "silu", 1, True, "layer", True),
        ("sandwich", "geglu_tanh", 1, True, "layer", True),
    ],
)
def test_transformer_block_agrees_with_a_loop_in_float64(
    norm_placement, activation, num_kv_heads, use_bias, norm, cross_attention
):
    kinds = {"norm_placement": norm_placement, "norm": norm, "activation": activation, "use_bias": use_bias}
    block = new_block(4, num_kv_heads=num_kv_heads, cross_attention=cross_attention, norm_eps=0.1, **kinds)
    more = {"context": CONTEXT, "context_mask": CONTEXT_MASK} if cross_attention else {}
    rows, expected = reference.inside_block(X, block, CAUSAL, **more)
    np.testing.assert_allclose(block(X, CAUSAL, **more), rows, **CLOSE)
    own, cross = block.attention_weights(X, CAUSAL, **more)
    for weights, of_loop in zip([own, cross] if cross_attention else [own], expected, strict=True):
        np.testing.assert_allclose(weights, of_loop, atol=1e-5)
    assert (cross is None) == (not cross_attention)


def test_parallel_block_agrees_with_a_loop_in_float64():
    block = new_block(4, num_kv_heads=2, parallel=True)
    np.testing.assert_allclose(block(X, CAUSAL), reference.block(X, block, CAUSAL), **CLOSE)
    in_turn = pf.Block(**{name: getattr(block, name) for name in parts()})
    assert np.abs(in_turn(X, CAUSAL) - block(X, CAUSAL)).max() > 0.1


@pytest.mark.equation("eq-blocks-block")
@pytest.mark.parametrize(
    "scheme",
    [
        pf.RotaryPositions(base=100.0),
        drawn(functools.partial(pf.RelativePositions, num_buckets=4, max_distance=3), HEADS),
    ],
    ids=lambda scheme: type(scheme).__name__,
)
def test_transformer_block_hands_its_position_scheme_on(scheme):
    block = new_block()
    output = block(X, scheme=scheme)
    np.testing.assert_allclose(output, reference.block(X, block, scheme=scheme), **CLOSE)
    assert np.abs(output - block(X)).max() > 0.01


@pytest.mark.equation("eq-blocks-block", "eq-depth-dropout")
def test_transformer_block_without_key_or_rate_drops_nothing():
    block, plain = block_of(dropout_rate=0.5), block_of()
    np.testing.assert_array_equal(block(X), plain(X))
    np.testing.assert_array_equal(plain(X, key=KEY), plain(X))
    assert np.abs(block(X, key=KEY) - block(X)).max() > 0.1
    np.testing.assert_array_equal(block(X, key=KEY), block(X, key=KEY))


@pytest.mark.equation("eq-depth-dropout")
def test_transformer_block_drops_each_sublayer_by_a_mask_of_its_own():
    wide = 40
    block = new_block(4, d_model=wide, cross_attention=True, dropout_rate=0.5)
    # Three sublayers that return 1, 100 and 10,000 everywhere: the digits of the sum say which of them was dropped.
    biases = [jnp.full(wide, size) for size in (1.0, 100.0, 10_000.0)]
    block = jax.tree.map(lambda leaf: jnp.asarray(np.zeros(leaf.shape, np.float32)), block)
    block = eqx.tree_at(
        lambda m: [m.attention.output.bias, m.cross_attention.output.bias, m.feed_forward.down.bias], block, biases
    )
    dropped = np.asarray(call(block, jnp.zeros((50, wide)), context=jnp.zeros((3, wide)), key=KEY))
    kept = [dropped % 100 == 2, dropped // 100 % 100 == 2, dropped // 10_000 == 2]
    np.testing.assert_array_equal(dropped, sum(2 * size * k for size, k in zip((1, 100, 10_000), kept, strict=True)))
    for n, mask in enumerate(kept):
        assert abs(mask.mean() - 0.5) < 0.05
        for other in kept[n + 1 :]:  # two independent masks agree in half of the places
            assert abs((mask == other).mean() - 0.5) < 0.05


def test_transformer_block_starts_without_two_equal_weights():
    block = make_block(D_MODEL, HEADS, D_MODEL, cross_attention=True, activation="swiglu", key=KEY)
    plain = [make_block(D_MODEL, HEADS, D_MODEL, key=key) for key in jax.random.split(KEY, 2)]
    matrices = [np.asarray(w) for w in jax.tree.leaves((block, plain)) if w.ndim == 2]
    assert len(matrices) == 11 + 2 * 6
    assert all(w.shape == (D_MODEL, D_MODEL) for w in matrices)
    for n, matrix in enumerate(matrices):
        assert all(np.abs(matrix - other).max() > 0.01 for other in matrices[n + 1 :])


@pytest.mark.equation("eq-blocks-parameters")
def test_count_parameters_of_a_block():
    def count(**fields):
        return pf.count_parameters(eqx.filter_eval_shape(make_block, D_MODEL, HEADS, key=KEY, **fields))

    attention, norm, feed_forward = 4 * (144 + 12), 24, 12 * 48 + 48 + 48 * 12 + 12
    assert count() == attention + feed_forward + 2 * norm
    assert count(cross_attention=True) == 2 * attention + feed_forward + 3 * norm
    assert count(norm="rms", use_bias=False) == 4 * 144 + 2 * 12 * 48 + 2 * 12


def test_transformer_block_has_right_gradients(x64):
    block = new_block(2, 5, d_model=4, cross_attention=True, num_kv_heads=1)
    parameters, rest = eqx.partition(block, eqx.is_array)
    x, context = (jnp.asarray(NUMBERS.normal(size=(seq, 4)), float) for seq in (3, 2))

    def output(parameters, x, context):  # check_grads hands over NumPy arrays
        parameters, x, context = jax.tree.map(jnp.asarray, (parameters, x, context))
        return eqx.combine(parameters, rest)(x, pf.causal_mask(3), context=context, key=KEY)

    check_grads(jax.jit(output), (parameters, x, context), order=1, modes=("rev",))


@pytest.mark.equation("eq-blocks-block")
def test_transformer_block_of_a_batch_is_each_text_alone():
    block = new_block(norm_placement="post", cross_attention=True)
    x, contexts = (jnp.asarray(NUMBERS.normal(size=(2, 3, seq, D_MODEL)), float) for seq in (SEQ, KV_SEQ))
    seen = jnp.asarray(NUMBERS.random((2, 3, SEQ, KV_SEQ)) < 0.6)
    found = call(block, x, CAUSAL, context=contexts, context_mask=seen)
    for place in np.ndindex(2, 3):
        alone = reference.block(x[place], block, CAUSAL, contexts[place], seen[place])
        np.testing.assert_allclose(found[place], alone, **CLOSE)


# --- at its edges -------------------------------------------------------------------------------------------


def test_transformer_block_in_half_precision_keeps_the_dtype():
    block, dtype = block_of("post", cross_attention=True, dropout_rate=0.1), jnp.bfloat16
    half = jax.tree.map(lambda w: w.astype(dtype), block)
    x, context = X.astype(dtype), CONTEXT.astype(dtype)
    output = call(half, x, context=context, scheme=pf.RotaryPositions())
    assert output.dtype == dtype
    expected = call(block, X, context=CONTEXT, scheme=pf.RotaryPositions())
    np.testing.assert_allclose(output.astype(jnp.float32), expected, atol=0.1)
    assert eqx.filter_eval_shape(half, x, context=context, key=KEY).dtype == dtype


def test_transformer_block_takes_no_tokens_and_no_context():
    block = block_of(cross_attention=True)
    assert block(X[:0], context=CONTEXT).shape == (0, D_MODEL)
    assert np.isfinite(block(X, context=CONTEXT[:0])).all()


def parts():
    return {
        name: getattr(block_of(), name) for name in ("attention_norm", "attention", "feed_forward_norm", "feed_forward")
    }


def cross_block():
    return block_of(cross_attention=True)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: pf.Block(**parts(), norm_placement="sandwich"), ValueError, "sandwich"),
        (lambda: pf.Block(**parts(), attention_output_norm=pf.RMSNorm(12)), ValueError, "attention_output_norm"),
        (lambda: ParallelBlock(**parts(), norm_placement="post"), ValueError, "norm_placement"),
        (lambda: block_of()(X[:, :8]), ValueError, "x has"),
        (lambda: block_of()(X, CAUSAL[:, :4]), ValueError, "mask has"),
        (lambda: block_of()(X, jnp.ones((5, 5))), TypeError, "mask is"),
        (lambda: block_of()(X, context=CONTEXT), ValueError, "context"),
        (lambda: block_of()(X, context_mask=CONTEXT_MASK), ValueError, "context"),
        (lambda: cross_block()(X), ValueError, "context"),
        (lambda: cross_block()(X, context=CONTEXT[:, :8]), ValueError, "context"),
        (lambda: cross_block()(X, context=CONTEXT, context_mask=CONTEXT_MASK.T), ValueError, "context_mask"),
        (lambda: cross_block()(X, context=CONTEXT, context_mask=jnp.ones((5, 7))), TypeError, "context_mask"),
    ],
)
def test_bad_input_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()
