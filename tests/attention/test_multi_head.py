"""Heads as a sum, as a concatenation and as one layer; cross-attention; grouped heads."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from jax.test_util import check_grads
from toy_models import drawn

import plainformer as pf

SEQ, KV_SEQ, D_MODEL, HEADS, D_K, D_V = 5, 7, 12, 3, 2, 6
CAUSAL = np.tri(SEQ, dtype=bool)
call = eqx.filter_jit(lambda layer, *arguments, **options: layer(*arguments, **options))
multi_head_sum, multi_head_concat = map(eqx.filter_jit, (pf.multi_head_sum, pf.multi_head_concat))


def draw(*shape, seed=0):
    """Normal numbers, made without the compiler."""
    return jnp.asarray(np.random.default_rng([seed, *shape]).normal(size=shape), jnp.float32)


def new_layer(num_heads=HEADS, d_model=D_MODEL, **options):
    """A layer with all its numbers drawn: biases of zero would hide a slip."""
    return drawn(lambda sizes, key: pf.MultiHeadAttention(*sizes, **options, key=key), (d_model, num_heads))


KEY = jax.random.key(0)
X, CONTEXT = draw(SEQ, D_MODEL), draw(KV_SEQ, D_MODEL)
# Query, key, value and output matrices of three heads, of pairwise different sizes.
STACKS = [0.5 * draw(HEADS, *shape) for shape in ((D_MODEL, D_K), (D_MODEL, D_K), (D_MODEL, D_V), (D_V, D_MODEL))]
# A mask for cross-attention with a row that sees nothing.
MASK = np.random.default_rng(0).random((SEQ, KV_SEQ)) < 0.6
MASK[1], MASK[0, 0] = False, True


@pytest.mark.equation("eq-multi-head-split")
def test_split_heads_by_hand():
    x = jnp.array([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [7.0, 8.0, 9.0, 10.0, 11.0, 12.0]])
    expected = [[[1, 2], [7, 8]], [[3, 4], [9, 10]], [[5, 6], [11, 12]]]
    np.testing.assert_array_equal(pf.split_heads(x, 3), expected)


@pytest.mark.equation("eq-modern-norm-across-heads")
def test_norm_across_heads_by_hand():
    """Two heads of two tokens: the first token's row is 3, 4, 0, 0, whose mean square is 25 / 4."""
    heads = jnp.array([[[3.0, 4.0], [1.0, 1.0]], [[0.0, 0.0], [1.0, 1.0]]])
    norm = pf.attention.AcrossHeads(pf.RMSNorm(4, eps=0.0))
    np.testing.assert_allclose(norm(heads), [[[1.2, 1.6], [1, 1]], [[0, 0], [1, 1]]], rtol=1e-6)
    alone = pf.RMSNorm(2, eps=0.0)(heads[:1])  # of the first head alone the mean square is 25 / 2
    np.testing.assert_allclose(alone[0, 0], [3 / 12.5**0.5, 4 / 12.5**0.5], rtol=1e-6)


@pytest.mark.equation("eq-multi-head-split", "eq-multi-head-merge")
def test_merge_heads_undoes_split_heads_and_is_a_concatenation():
    x = draw(2, 3, SEQ, D_MODEL)
    heads = pf.split_heads(x, 4)
    assert heads.shape == (2, 3, 4, SEQ, D_MODEL // 4)
    for place in np.ndindex(2, 3):
        np.testing.assert_array_equal(np.concatenate(list(heads[place]), axis=1), x[place])
    np.testing.assert_array_equal(pf.merge_heads(heads), x)


@pytest.mark.equation("eq-multi-head-concat", "eq-multi-head-sum")
def test_multi_head_forms_agree_with_each_other_and_with_a_loop_in_float64():
    w_q, w_k, w_v, w_o = (np.asarray(w, np.float64) for w in STACKS)
    rows, mask = np.asarray(X, np.float64), CAUSAL
    summed = multi_head_sum(X, *STACKS, mask)
    heads = [reference.attend(rows @ w_q[h], rows @ w_k[h], rows @ w_v[h], mask) @ w_o[h] for h in range(HEADS)]
    np.testing.assert_allclose(summed, sum(heads), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(summed, multi_head_concat(X, *STACKS, mask), rtol=1e-5, atol=1e-5)


@pytest.mark.equation("eq-multi-head-concat", "eq-multi-head-sum")
@pytest.mark.parametrize("form", [multi_head_sum, multi_head_concat], ids=["sum", "concat"])
def test_multi_head_forms_of_a_batch_are_each_text_alone(form):
    x, masks = draw(2, 3, SEQ, D_MODEL), np.random.default_rng(0).random((3, SEQ, SEQ)) < 0.6
    found = form(x, *STACKS, masks)
    for place in np.ndindex(2, 3):
        np.testing.assert_allclose(found[place], form(x[place], *STACKS, masks[place[1]]), rtol=1e-5, atol=1e-5)


@pytest.mark.equation("eq-multi-head-layer", "eq-efficiency-grouped")
@pytest.mark.parametrize(("num_kv_heads", "use_bias"), [(None, False), (2, True), (1, False)])
def test_multi_head_attention_agrees_with_a_loop_in_float64(num_kv_heads, use_bias):
    layer = new_layer(4, num_kv_heads=num_kv_heads, d_k=5, d_v=D_V, use_bias=use_bias)
    assert (layer.output.bias is not None) == use_bias
    np.testing.assert_allclose(call(layer, X), reference.multi_head(X, X, layer), rtol=1e-4, atol=1e-5)
    expected = reference.multi_head(X, CONTEXT, layer, MASK)
    np.testing.assert_allclose(call(layer, X, MASK, context=CONTEXT), expected, rtol=1e-4, atol=1e-5)


def test_multi_head_attention_weights_agree_with_a_loop_in_float64():
    layer = new_layer(4, num_kv_heads=2)
    weights = call(layer.attention_weights, X, MASK, context=CONTEXT)
    np.testing.assert_allclose(weights, reference.multi_head_weights(X, CONTEXT, layer, MASK), rtol=1e-4, atol=1e-6)


def test_multi_head_attention_of_a_fully_hidden_row_is_the_output_bias_and_has_no_gradient():
    layer = new_layer(use_bias=True)
    np.testing.assert_array_equal(call(layer, X, MASK, context=CONTEXT)[1], layer.output.bias)
    gradient = jax.jit(jax.grad(lambda c: layer(X, MASK, context=c)[1].sum()))(CONTEXT)
    assert (gradient == 0.0).all()


def test_multi_head_attention_has_right_gradients(x64):
    layer, x = new_layer(2, d_model=6, num_kv_heads=1), np.asarray(draw(3, 6), np.float64)
    parameters, rest = eqx.partition(jax.tree.map(lambda w: w.astype(jnp.float64), layer), eqx.is_array)

    @jax.jit
    def output(parameters, x):
        return eqx.combine(parameters, rest)(x, CAUSAL[:3, :3])

    check_grads(output, (parameters, x), order=1, modes=("fwd", "rev"))


def test_multi_head_attention_starts_with_heads_that_differ_at_the_size_of_a_single_one(key):
    layer = eqx.filter_jit(lambda key: pf.MultiHeadAttention(96, HEADS, use_bias=True, key=key))(key)
    parts = (layer.query, layer.key, layer.value)
    matrices = [head for part in parts for head in np.split(np.asarray(part.weight), HEADS, axis=1)]
    for n, matrix in enumerate(matrices):
        assert abs(float(matrix.std()) - (2 / (96 + 32)) ** 0.5) < 0.008
        assert all(np.abs(matrix - other).max() > 0.01 for other in matrices[n + 1 :])
    assert abs(float(layer.output.weight.std()) - (2 / (96 + 96)) ** 0.5) < 0.008
    assert not any(part.bias.any() for part in (*parts, layer.output))


@pytest.mark.equation("eq-multi-head-layer", "eq-efficiency-grouped")
@pytest.mark.parametrize("masks", ["one for each", "some shared"])
def test_multi_head_attention_of_a_batch_is_each_text_alone(masks):
    layer, batch = new_layer(4, num_kv_heads=2, use_bias=True), (2, 3)
    scheme = drawn(lambda heads, key: pf.RelativePositions(heads, key=key), 4)
    x, context = draw(*batch, SEQ, D_MODEL), draw(*batch, KV_SEQ, D_MODEL)
    front = {"one for each": batch, "some shared": (3,)}[masks]
    mask = np.random.default_rng(1).random((*front, SEQ, KV_SEQ)) < 0.6
    mask[..., 2, :] = False
    slopes, each = draw(*batch, SEQ, D_MODEL), np.broadcast_to(mask, (*batch, SEQ, KV_SEQ))

    def together(layer, x, context):
        return layer(x, mask, context=context, scheme=scheme)

    def one_by_one(layer, x, context):
        alone = jax.vmap(lambda x, m, c: layer(x, m, context=c, scheme=scheme))
        return jax.vmap(alone)(x, each, context)

    def output_and_gradients(function):
        output, back = jax.vjp(function, layer, x, context)
        return output, jax.tree.leaves(back(slopes))

    run = jax.jit(output_and_gradients, static_argnums=0)
    (output, gradients), (expected_output, expected_gradients) = run(together), run(one_by_one)
    np.testing.assert_allclose(output, expected_output, rtol=1e-4, atol=1e-5)
    for found, expected in zip(
        gradients, expected_gradients, strict=True
    ):  # that of the keys' bias is 0 but for rounding
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-5)


LAYER = new_layer()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pf.split_heads(X[:, :7], 3), ValueError, "7 wide"),
        (lambda: pf.merge_heads(X), ValueError, "heads"),
        (lambda: pf.MultiHeadAttention(13, 3, key=KEY), ValueError, "d_model"),
        (lambda: pf.MultiHeadAttention(12, 4, num_kv_heads=3, key=KEY), ValueError, "num_heads"),
        (lambda: LAYER(X[0]), ValueError, "x has"),
        (lambda: LAYER(X.T), ValueError, "swapped"),
        (lambda: LAYER(X, context=CONTEXT[:, :11]), ValueError, "context"),
        (lambda: LAYER(X[None], context=jnp.stack([CONTEXT, CONTEXT])), ValueError, "context"),
        (lambda: LAYER(X, np.ones((3, 5, 5), bool)), ValueError, "mask"),
        (lambda: LAYER(jnp.stack([X, X]), np.ones((3, 5, 5), bool)), ValueError, "mask"),
        (lambda: LAYER(X, CAUSAL[:, :4]), ValueError, "mask"),
        (lambda: LAYER.attention_weights(X, CAUSAL + 0.0), TypeError, "mask"),
        (lambda: pf.multi_head_sum(X, *[np.ones((3, 12, 4), np.float32)] * 4), ValueError, "output_weights"),
        (lambda: pf.multi_head_concat(X, *[np.ones((0, 12, 12), np.float32)] * 4), ValueError, "heads"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
