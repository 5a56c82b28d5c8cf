"""Chapter 04, the whole block: where the norm stands, what passes untouched, which tokens reach which."""

import dataclasses
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

SEQ, KV_SEQ, D_MODEL, HEADS, D_FF, BATCH = 5, 7, 12, 3, 10, (2, 3)
CLOSE = {"rtol": 1e-3, "atol": 1e-4}
NUMBERS = np.random.default_rng(4)
X = jnp.asarray(NUMBERS.normal(size=(SEQ, D_MODEL)) + 1, float)
CONTEXT = jnp.asarray(NUMBERS.normal(size=(KV_SEQ, D_MODEL)), float)
# A mask for the context with a row that sees nothing.
CONTEXT_MASK = jnp.asarray((NUMBERS.random((SEQ, KV_SEQ)) < 0.6) & (np.arange(SEQ) != 1)[:, None])
CAUSAL = jnp.asarray(np.tri(SEQ, dtype=bool))
KEY = jax.random.key(20170612)
both_placements = pytest.mark.parametrize("norm_placement", ["pre", "post"])
call = eqx.filter_jit(lambda block, x, mask=None, **more: block(x, mask, **more))


def new_block(num_heads=HEADS, d_ff=D_FF, *, cross_attention=False, d_model=D_MODEL, **fields):
    """A block with all its parameters drawn: biases of zero would hide a slip."""
    config = pf.StackConfig(d_model=d_model, num_heads=num_heads, d_ff=d_ff, **fields)
    return drawn(functools.partial(pf.make_block, cross_attention=cross_attention), config)


PARTS = ("attention_norm", "attention", "feed_forward_norm", "feed_forward")


@functools.cache
def made_block():
    return make_block(D_MODEL, HEADS, D_FF, cross_attention=True, key=KEY)


def block_of(norm_placement="pre", *, cross_attention=False, dropout_rate=0.0):
    """A block as it is made, the same one for many tests, so that it is made once."""
    kinds = {"norm_placement": norm_placement, "dropout_rate": dropout_rate}
    made = made_block()
    if cross_attention:
        return dataclasses.replace(made, **kinds)
    return pf.Block(**{name: getattr(made, name) for name in PARTS}, **kinds)


def silenced(block):
    """The block with zeros in the last matrix of every sublayer, which therefore adds nothing."""
    return eqx.tree_at(
        lambda m: [m.attention.output.weight, m.feed_forward.down.weight], block, replace_fn=jnp.zeros_like
    )


@pytest.mark.equation("eq-blocks-pre-norm", "eq-blocks-post-norm")
def test_pre_norm_and_post_norm_by_hand():
    x = jnp.array([[1.0, 3.0], [2.0, 10.0]])
    halve, square = (lambda rows: rows / 2), (lambda rows: rows**2)
    np.testing.assert_array_equal(pf.pre_norm(x, halve, square), [[1.25, 5.25], [3, 35]])  # x + (x / 2)²
    np.testing.assert_array_equal(pf.post_norm(x, halve, square), [[1, 6], [3, 55]])  # (x + x²) / 2


@pytest.mark.equation("eq-modern-output-norm", "eq-modern-sandwich-norm")
def test_norms_of_what_a_sublayer_returns_by_hand():
    x = jnp.array([[1.0, 3.0], [2.0, 10.0]])
    halve, square, add = (lambda rows: rows / 2), (lambda rows: rows**2), (lambda rows: rows + 1)
    np.testing.assert_array_equal(pf.blocks.output_norm(x, halve, square), [[1.5, 7.5], [4, 60]])  # x + x² / 2
    expected = [[2.25, 6.25], [4, 36]]  # x + (x / 2)² + 1
    np.testing.assert_array_equal(pf.blocks.sandwich_norm(x, halve, add, square), expected)


@pytest.mark.equation("eq-blocks-pre-norm", "eq-blocks-block")
def test_transformer_block_with_silent_sublayers_is_the_identity_only_with_pre_norm():
    before, after = (block_of(norm_placement) for norm_placement in ("pre", "post"))
    np.testing.assert_array_equal(silenced(before)(X), X)
    np.testing.assert_allclose(silenced(after)(X), pf.standardise(X), atol=1e-4)


@pytest.mark.equation("eq-blocks-pre-norm")
def test_pre_norm_takes_the_skip_from_the_token_not_from_its_normalised_form():
    from_token = pf.pre_norm(X, pf.standardise, jnp.zeros_like)
    np.testing.assert_array_equal(from_token, X)
    assert np.abs(pf.standardise(X) - X).max() > 0.5


@pytest.mark.equation("eq-blocks-block", "eq-blocks-pre-norm", "eq-blocks-post-norm")
@pytest.mark.equation("eq-modern-output-norm", "eq-modern-sandwich-norm")
@pytest.mark.parametrize("cross_attention", [False, True])
@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize(
    ("norm_placement", "activation", "num_kv_heads", "use_bias"),
    [
        ("pre", "gelu", None, True),
        ("pre", "swiglu", 2, False),
        ("pre", "silu", 1, True),
        ("post", "relu", 2, True),
        ("post", "gelu_tanh", None, False),
        ("post", "swiglu", 4, True),
        ("output", "swiglu", 2, False),
        ("sandwich", "geglu_tanh", 1, True),
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


@pytest.mark.equation("eq-blocks-block")
@pytest.mark.parametrize(
    "scheme",
    [
        pf.SinusoidalPositions(D_MODEL),
        drawn(functools.partial(pf.LearnedPositions, 9), D_MODEL),
        pf.RotaryPositions(base=100.0),
        drawn(functools.partial(pf.RelativePositions, num_buckets=4, max_distance=3), HEADS),
        pf.AlibiPositions(HEADS),
    ],
    ids=lambda scheme: type(scheme).__name__,
)
def test_transformer_block_takes_every_position_scheme(scheme):
    block = new_block()
    rows = scheme.embed(X)
    output = block(rows, scheme=scheme)
    np.testing.assert_allclose(output, reference.block(rows, block, scheme=scheme), **CLOSE)
    assert np.abs(output - block(X)).max() > 0.01


@pytest.mark.equation("eq-blocks-block")
@both_placements
def test_transformer_block_follows_a_permutation_of_its_tokens_and_ignores_one_of_the_context(norm_placement):
    order, other = np.array([3, 0, 4, 1, 2]), np.array([6, 1, 5, 0, 2, 4, 3])
    block = block_of(norm_placement, cross_attention=True)
    expected = block(X, context=CONTEXT)[order]
    np.testing.assert_allclose(block(X[order], context=CONTEXT[other]), expected, rtol=1e-4, atol=1e-5)
    causal = block(X[order], CAUSAL, context=CONTEXT)
    assert np.abs(causal - block(X, CAUSAL, context=CONTEXT)[order]).max() > 0.01


@both_placements
def test_transformer_block_lets_no_gradient_back_from_the_future(norm_placement):
    block = block_of(norm_placement)
    jacobian = jax.jit(jax.jacobian(lambda x: block(x, CAUSAL, scheme=pf.RotaryPositions())))(X)
    reach = np.abs(jacobian).sum(axis=(1, 3))
    assert (reach[np.triu_indices(SEQ, 1)] == 0.0).all()
    assert (reach[np.tril_indices(SEQ)] > 0).all()


@both_placements
def test_transformer_block_ignores_padding(norm_placement):
    block = block_of(norm_placement, cross_attention=True)
    padded = jnp.asarray(np.pad(X, ((0, 2), (0, 0)), constant_values=99))
    rest = jnp.asarray(np.pad(CONTEXT, ((0, 4), (0, 0)), constant_values=-99))
    mask = pf.padding_mask(jnp.arange(SEQ + 2) < SEQ)
    context_mask = pf.padding_mask(jnp.arange(KV_SEQ + 4) < KV_SEQ, SEQ + 2)
    output = call(block, padded, mask, context=rest, context_mask=context_mask)
    np.testing.assert_allclose(output[:SEQ], block(X, context=CONTEXT), rtol=1e-4, atol=1e-5)


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


@pytest.mark.equation("eq-depth-dropout")
def test_transformer_block_dropout_keeps_the_mean_of_what_the_last_sublayer_adds():
    block = silenced(block_of(dropout_rate=0.25))
    block = eqx.tree_at(lambda m: m.feed_forward.down.bias, block, jnp.arange(D_MODEL, dtype=float))
    outputs = jax.jit(jax.vmap(lambda key: block(X, key=key)))(jax.random.split(KEY, 2000))
    np.testing.assert_allclose(np.asarray(outputs).mean(axis=0), block(X), atol=0.6)


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


@both_placements
def test_transformer_block_has_right_gradients(norm_placement, x64):
    block = new_block(2, 5, d_model=4, norm_placement=norm_placement, cross_attention=True, num_kv_heads=1)
    parameters, rest = eqx.partition(block, eqx.is_array)
    x, context = (jnp.asarray(NUMBERS.normal(size=(seq, 4)), float) for seq in (3, 2))

    def output(parameters, x, context):  # check_grads hands over NumPy arrays
        parameters, x, context = jax.tree.map(jnp.asarray, (parameters, x, context))
        return eqx.combine(parameters, rest)(x, pf.causal_mask(3), context=context, key=KEY)

    check_grads(jax.jit(output), (parameters, x, context), order=1, modes=("rev",))


@pytest.mark.equation("eq-blocks-block")
@both_placements
def test_transformer_block_of_a_batch_is_each_text_alone(norm_placement):
    block = new_block(norm_placement=norm_placement, cross_attention=True)
    x, contexts, slopes = (
        jnp.asarray(NUMBERS.normal(size=(*BATCH, seq, D_MODEL)), float) for seq in (SEQ, KV_SEQ, SEQ)
    )
    seen = jnp.asarray(NUMBERS.random((*BATCH, SEQ, KV_SEQ)) < 0.6)

    def together(block, x, contexts):
        return block(x, CAUSAL, context=contexts, context_mask=seen)

    def one_by_one(block, x, contexts):
        def one(x, context, mask):
            return block(x, CAUSAL, context=context, context_mask=mask)

        return jax.vmap(jax.vmap(one))(x, contexts, seen)

    @eqx.filter_jit
    def forth_and_back(f):
        found, back = eqx.filter_vjp(f, block, x, contexts)
        return jax.tree.leaves((found, back(slopes)))

    for found, expected in zip(forth_and_back(together), forth_and_back(one_by_one), strict=True):
        np.testing.assert_allclose(found, expected, **CLOSE)
    one = reference.block(x[1, 2], block, CAUSAL, contexts[1, 2], seen[1, 2])
    np.testing.assert_allclose(call(block, x, CAUSAL, context=contexts, context_mask=seen)[1, 2], one, **CLOSE)


@pytest.mark.equation("eq-blocks-block")
@both_placements
def test_transformer_block_extend_is_a_causal_call(norm_placement):
    block = new_block(norm_placement=norm_placement, cross_attention=True)
    scheme = pf.RotaryPositions()
    kept = block.cross_attention.cache_context(CONTEXT)
    cache, pieces = block.attention.make_cache(SEQ), []
    for start, end in [(0, 3), (3, 4), (4, 5)]:
        rows, cache = block.extend(X[start:end], cache, jnp.arange(start, end), context=kept, scheme=scheme)
        pieces.append(rows)
    expected = block(X, CAUSAL, context=CONTEXT, scheme=scheme)
    np.testing.assert_allclose(np.concatenate(pieces), expected, **CLOSE)


# --- at its edges -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
@both_placements
def test_transformer_block_in_half_precision_keeps_the_dtype(norm_placement, dtype):
    block = block_of(norm_placement, cross_attention=True, dropout_rate=0.1)
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


def test_transformer_block_takes_tokens_of_one_number():
    assert np.isfinite(call(new_block(1, d_model=1), jnp.array([[2.0], [-3.0]]))).all()


def test_transformer_block_is_the_same_compiled_and_by_vmap():
    block, traced = block_of(dropout_rate=0.5), []

    @eqx.filter_jit
    def compiled(block, batch, keys):
        traced.append(batch.shape)
        return jax.vmap(lambda rows, key: block(rows, CAUSAL, key=key))(batch, keys)

    batch, keys = jnp.stack([X, -X, 2 * X]), jax.random.split(KEY, 3)
    outputs = compiled(block, batch, keys)
    compiled(block, 2 * batch, keys[::-1])
    assert len(traced) == 1  # new values and keys, no new trace
    for output, rows, key in zip(outputs, batch, keys, strict=True):
        np.testing.assert_allclose(output, block(rows, CAUSAL, key=key), rtol=1e-4, atol=1e-5)


def cross_block():
    return block_of(cross_attention=True)


def parts():
    plain = block_of()
    return {name: getattr(plain, name) for name in PARTS}


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: pf.Block(**parts(), norm_placement="before"), ValueError, r"expected one of 'pre', 'post'"),
        (
            lambda: pf.Block(**parts(), norm_placement="sandwich"),
            ValueError,
            r"'sandwich', with no norm of what leaves the sublayers; expected one for each",
        ),
        (
            lambda: pf.Block(**parts(), attention_output_norm=pf.RMSNorm(D_MODEL)),
            ValueError,
            r"'pre', with attention_output_norm of what leaves the sublayers; expected .* and none else",
        ),
        (
            lambda: pf.Block(**parts(), dropout_rate=1.0),
            ValueError,
            r"dropout_rate is 1\.0; expected at least 0 and below 1",
        ),
        (
            lambda: block_of()(jnp.ones((5, 8))),
            ValueError,
            r"x has shape \(5, 8\); expected \(\.\.\., seq, d_model=12\)",
        ),
        (lambda: block_of()(X.T), ValueError, r"x has .*swapped.*x\.mT"),
        (lambda: block_of()(X, CAUSAL[:, :4]), ValueError, r"mask has .*expected \(seq=5, seq=5\)"),
        (lambda: block_of()(X, jnp.ones((5, 5))), TypeError, r"mask is an array of float32; expected a Boolean"),
        (lambda: block_of()(X, context=CONTEXT), ValueError, r"takes no context; make it with cross_attention=True"),
        (lambda: block_of()(X, context_mask=CONTEXT_MASK), ValueError, r"takes no context; make it with cross_attent"),
        (lambda: cross_block()(X), ValueError, r"needs a context: pass context=, \(kv_seq, d_model\)"),
        (
            lambda: cross_block()(X, context=jnp.ones((7, 8))),
            ValueError,
            r"context has shape \(7, 8\); expected \(kv_seq, d_model=12\)",
        ),
        (
            lambda: cross_block()(X, context=CONTEXT, context_mask=CONTEXT_MASK.T),
            ValueError,
            r"context_mask has shape \(7, 5\); expected \(seq=5, kv_seq=7\).*context_mask\.mT",
        ),
        (
            lambda: cross_block()(X, context=CONTEXT, context_mask=jnp.ones((5, 7))),
            TypeError,
            r"^context_mask is an array of float32; expected a Boolean.*context_mask == 0",
        ),
        (
            lambda: cross_block().extend(X, cross_block().attention.make_cache(9), jnp.arange(5)),
            ValueError,
            r"needs a context: pass context=, as its cross_attention\.cache_context makes it",
        ),
        (lambda: cross_block().attention_weights(X), ValueError, r"needs a context: pass context="),
    ],
)
def test_bad_input_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()
