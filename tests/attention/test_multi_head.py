"""Chapter 03: heads as a sum, as a concatenation and as one layer; cross-attention (10); grouped heads (12)."""

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
@pytest.mark.parametrize("batch", [(), (2, 3)])
def test_merge_heads_undoes_split_heads_and_is_a_concatenation(batch):
    x = draw(*batch, SEQ, D_MODEL)
    heads = pf.split_heads(x, 4)
    assert heads.shape == (*batch, 4, SEQ, D_MODEL // 4)
    for place in np.ndindex(batch):
        np.testing.assert_array_equal(np.concatenate(list(heads[place]), axis=1), x[place])
        np.testing.assert_array_equal(heads[place], pf.split_heads(x[place], 4))
    np.testing.assert_array_equal(pf.merge_heads(heads), x)


@pytest.mark.equation("eq-multi-head-concat", "eq-multi-head-sum")
@pytest.mark.parametrize("mask", [None, CAUSAL], ids=["open", "causal"])
def test_multi_head_forms_agree_with_each_other_and_with_a_loop_in_float64(mask):
    w_q, w_k, w_v, w_o = (np.asarray(w, np.float64) for w in STACKS)
    rows, summed = np.asarray(X, np.float64), multi_head_sum(X, *STACKS, mask)
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


@pytest.mark.equation("eq-multi-head-layer", "eq-multi-head-concat")
def test_multi_head_attention_equals_the_concatenation_form():
    layer = new_layer(d_k=D_K, d_v=D_V)
    cut = [pf.split_heads(part.weight, HEADS) for part in (layer.query, layer.key, layer.value)]
    output_weights = layer.output.weight.reshape(HEADS, D_V, D_MODEL)
    np.testing.assert_allclose(call(layer, X), multi_head_concat(X, *cut, output_weights), rtol=1e-5, atol=1e-5)


@pytest.mark.equation("eq-multi-head-layer", "eq-efficiency-grouped")
@pytest.mark.parametrize("num_kv_heads", [None, 1, 2, 4])
@pytest.mark.parametrize("use_bias", [False, True])
def test_multi_head_attention_agrees_with_a_loop_in_float64(num_kv_heads, use_bias):
    layer = new_layer(4, num_kv_heads=num_kv_heads, d_k=5, d_v=D_V, use_bias=use_bias)
    assert (layer.output.bias is not None) == use_bias
    np.testing.assert_allclose(call(layer, X), reference.multi_head(X, X, layer), rtol=1e-4, atol=1e-5)
    expected = reference.multi_head(X, CONTEXT, layer, MASK)
    np.testing.assert_allclose(call(layer, X, MASK, context=CONTEXT), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.equation("eq-efficiency-grouped")
def test_multi_head_attention_grouped_heads_share_in_order():
    grouped, full = new_layer(4, num_kv_heads=2), new_layer(4)
    repeated = [
        pf.merge_heads(jnp.repeat(pf.split_heads(part.weight, 2), 2, axis=0)) for part in (grouped.key, grouped.value)
    ]
    full = eqx.tree_at(
        lambda m: (m.query.weight, m.key.weight, m.value.weight, m.output.weight),
        full,
        (grouped.query.weight, *repeated, grouped.output.weight),
    )
    np.testing.assert_allclose(call(grouped, X), call(full, X), rtol=1e-5, atol=1e-6)


def test_multi_head_attention_agrees_with_equinox():
    layer = new_layer(d_k=D_K, d_v=D_V)
    theirs = eqx.filter_eval_shape(eqx.nn.MultiheadAttention, HEADS, D_MODEL, qk_size=D_K, vo_size=D_V, key=KEY)
    theirs = eqx.tree_at(
        lambda m: (m.query_proj.weight, m.key_proj.weight, m.value_proj.weight, m.output_proj.weight),
        theirs,
        [part.weight.T for part in (layer.query, layer.key, layer.value, layer.output)],
    )
    mask = MASK.copy()
    mask[1, 4] = True  # a row that sees nothing is a case of its own: theirs averages over all
    np.testing.assert_allclose(call(layer, X), call(theirs, X, X, X), rtol=1e-4, atol=1e-5)
    expected = call(theirs, X, CONTEXT, CONTEXT, mask)
    np.testing.assert_allclose(call(layer, X, mask, context=CONTEXT), expected, rtol=1e-4, atol=1e-5)


def test_multi_head_attention_weights_are_those_behind_the_output():
    layer = new_layer(4, num_kv_heads=2)
    weights = call(layer.attention_weights, X, MASK, context=CONTEXT)
    assert weights.shape == (4, SEQ, KV_SEQ)
    expected = reference.multi_head_weights(X, CONTEXT, layer, MASK)
    np.testing.assert_allclose(weights, expected, rtol=1e-4, atol=1e-6)
    values = jnp.repeat(pf.split_heads(CONTEXT @ layer.value.weight, 2), 2, axis=0)
    by_hand = pf.merge_heads(weights @ values) @ layer.output.weight
    np.testing.assert_allclose(call(layer, X, MASK, context=CONTEXT), by_hand, rtol=1e-4, atol=1e-5)


def test_multi_head_attention_of_a_fully_hidden_row_is_the_output_bias_and_has_no_gradient():
    layer = new_layer(use_bias=True)
    np.testing.assert_array_equal(call(layer, X, MASK, context=CONTEXT)[1], layer.output.bias)
    gradient = jax.jit(jax.grad(lambda c: layer(X, MASK, context=c)[1].sum()))(CONTEXT)
    assert (gradient == 0.0).all()


def test_multi_head_attention_lets_no_gradient_back_from_the_future():
    layer = new_layer()
    reach = np.abs(jax.jit(jax.jacobian(lambda x: layer(x, CAUSAL)))(X)).sum(axis=(1, 3))
    assert (reach[~CAUSAL] == 0.0).all()
    assert (reach[CAUSAL] > 0).all()


def test_multi_head_attention_follows_a_permutation_of_its_tokens():
    layer, order = new_layer(), np.array([3, 0, 4, 1, 2])
    np.testing.assert_allclose(call(layer, X[order]), call(layer, X)[order], rtol=1e-5, atol=1e-5)


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


def test_multi_head_attention_has_as_many_parameters_whatever_the_number_of_heads():
    for num_heads in (1, 2, 3, 6):
        assert sum(w.size for w in jax.tree.leaves(new_layer(num_heads))) == 4 * D_MODEL**2


@pytest.mark.equation("eq-multi-head-layer", "eq-efficiency-grouped")
@pytest.mark.parametrize("masks", ["one for all", "one for each", "some shared"])
def test_multi_head_attention_of_a_batch_is_each_text_alone(masks):
    layer, batch = new_layer(4, num_kv_heads=2, use_bias=True), (2, 3)
    scheme = drawn(lambda heads, key: pf.RelativePositions(heads, key=key), 4)
    x, context = draw(*batch, SEQ, D_MODEL), draw(*batch, KV_SEQ, D_MODEL)
    front = {"one for all": (), "one for each": batch, "some shared": (3,)}[masks]
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


LAYER, KEY = new_layer(), jax.random.key(0)
ROWS, OPEN = np.ones((5, 12), np.float32), np.ones((5, 5), bool)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: pf.split_heads(ROWS[:, :7], 3),
            ValueError,
            r"x is 7 wide, which 3 heads cannot share equally; expect",
        ),
        (lambda: pf.split_heads(ROWS[0], 3), ValueError, r"x has shape \(12,\); expected \(\.\.\., seq, width\)"),
        (lambda: pf.split_heads(ROWS, 0), ValueError, r"num_heads is 0; expected at least 1"),
        (
            lambda: pf.merge_heads(ROWS),
            ValueError,
            r"heads has shape \(5, 12\); expected \(\.\.\., heads, seq, d_head\)",
        ),
        (
            lambda: pf.MultiHeadAttention(13, 3, key=KEY),
            ValueError,
            r"d_model=13 is not a multiple.*=3.*give d_k and d_v",
        ),
        (lambda: pf.MultiHeadAttention(12, 4, num_kv_heads=3, key=KEY), ValueError, r"num_heads=4 is not.*=3.*equally"),
        (lambda: pf.MultiHeadAttention(12, 3, d_k=0, key=KEY), ValueError, r"d_k is 0; expected at least 1"),
        (lambda: pf.MultiHeadAttention(12.0, 3, key=KEY), TypeError, r"d_model is 12\.0; expected a whole"),
        (lambda: pf.MultiHeadAttention(12, 0, key=KEY), ValueError, r"num_heads is 0; expected at least 1"),
        (
            lambda: LAYER(ROWS[0]),
            ValueError,
            r"x has shape \(12,\); expected \(\.\.\., seq, d_model=12\).*too few.*x\[None",
        ),
        (lambda: LAYER(ROWS.T), ValueError, r"x has .*swapped.*x\.mT"),
        (
            lambda: LAYER(ROWS, context=np.ones((7, 11), np.float32)),
            ValueError,
            r"context has shape \(7, 11\); expected \(kv_seq, d_model=12\)",
        ),
        (
            lambda: LAYER(ROWS[None], context=np.ones((2, 7, 12), np.float32)),
            ValueError,
            r"context has shape \(2, 7, 12\); expected \(1, kv_seq, d_model=12\)\. What stands in front is a batch",
        ),
        (
            lambda: LAYER(ROWS, np.ones((3, 5, 5), bool)),
            ValueError,
            r"mask has shape \(3, 5, 5\); expected \(seq=5, kv_seq\)",
        ),
        (
            lambda: LAYER(np.ones((2, 5, 12), np.float32), np.ones((3, 5, 5), bool)),
            ValueError,
            r"mask has shape \(3, 5, 5\); expected \(\.\.\., seq=5, kv_seq\)",
        ),
        (
            lambda: LAYER(ROWS, OPEN[:, :4]),
            ValueError,
            r"mask has shape \(5, 4\); expected \(q_seq=5, kv_seq=5",
        ),
        (lambda: LAYER(ROWS, OPEN[:4]), ValueError, r"mask has shape \(4, 5\); expected \(seq=5, kv_seq\)"),
        (lambda: LAYER.attention_weights(ROWS, OPEN + 0.0), TypeError, r"mask is an array of float64; expected a Bool"),
        (
            lambda: pf.multi_head_sum(ROWS, *[np.ones((3, 12, 4), np.float32)] * 4),
            ValueError,
            r"output_weights has shape \(3, 12, 4\); expected \(heads=3, d_v=4, d_model=12\)",
        ),
        (
            lambda: pf.multi_head_concat(ROWS, *[np.ones((0, 12, 12), np.float32)] * 4),
            ValueError,
            r"heads is 0; expected at least 1",
        ),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
