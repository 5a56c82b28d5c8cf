"""Chapter 03: heads as a sum, as a concatenation and as one layer; grouped heads; cross-attention."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from jax.test_util import check_grads

import plainformer as pf

SEQ, KV_SEQ, D_MODEL, HEADS, D_K, D_V = 5, 7, 12, 3, 2, 6


@pytest.fixture
def stacks(key):
    """Query, key, value and output matrices of three heads, of pairwise different sizes."""
    shapes = [(HEADS, D_MODEL, D_K), (HEADS, D_MODEL, D_K), (HEADS, D_MODEL, D_V), (HEADS, D_V, D_MODEL)]
    return [0.5 * jax.random.normal(k, s) for k, s in zip(jax.random.split(key, 4), shapes, strict=True)]


@pytest.fixture
def x(key):
    """Five tokens."""
    return jax.random.normal(key, (SEQ, D_MODEL))


@pytest.fixture
def context(key):
    """Seven other tokens."""
    return jax.random.normal(jax.random.fold_in(key, 1), (KV_SEQ, D_MODEL))


@pytest.fixture
def mask(key):
    """A mask for cross-attention with a row that sees nothing."""
    return jax.random.bernoulli(key, 0.6, (SEQ, KV_SEQ)).at[1].set(False).at[0, 0].set(True)


@pytest.mark.equation("eq-multi-head-split")
def test_split_heads_by_hand():
    x = jnp.array([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [7.0, 8.0, 9.0, 10.0, 11.0, 12.0]])
    expected = [[[1, 2], [7, 8]], [[3, 4], [9, 10]], [[5, 6], [11, 12]]]
    np.testing.assert_array_equal(pf.split_heads(x, 3), expected)


@pytest.mark.equation("eq-multi-head-split", "eq-multi-head-merge")
def test_merge_heads_undoes_split_heads(x):
    np.testing.assert_array_equal(pf.merge_heads(pf.split_heads(x, 4)), x)


@pytest.mark.equation("eq-multi-head-merge")
def test_merge_heads_is_a_concatenation(x):
    heads = pf.split_heads(x, 4)
    np.testing.assert_array_equal(pf.merge_heads(heads), jnp.concatenate(list(heads), axis=1))


@pytest.mark.equation("eq-multi-head-concat", "eq-multi-head-sum")
def test_multi_head_sum_equals_multi_head_concat(x, stacks):
    mask = pf.causal_mask(SEQ)
    np.testing.assert_allclose(
        pf.multi_head_sum(x, *stacks, mask), pf.multi_head_concat(x, *stacks, mask), rtol=1e-5, atol=1e-5
    )


@pytest.mark.equation("eq-multi-head-concat", "eq-multi-head-sum")
def test_multi_head_forms_agree_with_a_loop_in_float64(x, stacks):
    w_q, w_k, w_v, w_o = (np.asarray(w, np.float64) for w in stacks)
    rows = np.asarray(x, np.float64)
    for mask in (None, pf.causal_mask(SEQ)):
        heads = [reference.attend(rows @ w_q[h], rows @ w_k[h], rows @ w_v[h], mask) @ w_o[h] for h in range(HEADS)]
        np.testing.assert_allclose(pf.multi_head_sum(x, *stacks, mask), sum(heads), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(pf.multi_head_concat(x, *stacks, mask), sum(heads), rtol=1e-4, atol=1e-5)


@pytest.mark.equation("eq-multi-head-layer", "eq-multi-head-concat")
def test_multi_head_attention_equals_the_concatenation_form(x, key):
    layer = pf.MultiHeadAttention(D_MODEL, HEADS, d_k=D_K, d_v=D_V, key=key)
    cut = [pf.split_heads(w, HEADS) for w in (layer.query_weight, layer.key_weight, layer.value_weight)]
    output_weights = layer.output_weight.reshape(HEADS, D_V, D_MODEL)
    np.testing.assert_allclose(layer(x), pf.multi_head_concat(x, *cut, output_weights), rtol=1e-5, atol=1e-5)


@pytest.mark.equation("eq-multi-head-layer", "eq-multi-head-grouped")
@pytest.mark.parametrize("num_kv_heads", [None, 1, 2, 4])
@pytest.mark.parametrize("use_bias", [False, True])
def test_multi_head_attention_agrees_with_a_loop_in_float64(num_kv_heads, use_bias, x, context, mask, key):
    layer = pf.MultiHeadAttention(
        D_MODEL, 4, num_kv_heads=num_kv_heads, d_k=5, d_v=D_V, use_bias=use_bias, key=key
    )  # fmt: skip
    if use_bias:  # they start at zero, where a forgotten bias would not show
        biases = [layer.query_bias, layer.key_bias, layer.value_bias, layer.output_bias]
        drawn = [jax.random.normal(k, b.shape) for k, b in zip(jax.random.split(key, 4), biases, strict=True)]
        layer = eqx.tree_at(lambda m: [m.query_bias, m.key_bias, m.value_bias, m.output_bias], layer, drawn)
    np.testing.assert_allclose(layer(x), reference.multi_head(x, x, layer), rtol=1e-4, atol=1e-5)
    expected = reference.multi_head(x, context, layer, mask)
    np.testing.assert_allclose(layer(x, mask, context=context), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.equation("eq-multi-head-grouped")
def test_multi_head_attention_grouped_heads_share_in_order(x, key):
    grouped = pf.MultiHeadAttention(D_MODEL, 4, num_kv_heads=2, key=key)
    full = pf.MultiHeadAttention(D_MODEL, 4, key=key)
    repeated = [
        pf.merge_heads(jnp.repeat(pf.split_heads(w, 2), 2, axis=0)) for w in (grouped.key_weight, grouped.value_weight)
    ]
    full = eqx.tree_at(
        lambda m: (m.query_weight, m.key_weight, m.value_weight, m.output_weight),
        full,
        (grouped.query_weight, *repeated, grouped.output_weight),
    )
    np.testing.assert_allclose(grouped(x), full(x), rtol=1e-5, atol=1e-6)


def test_multi_head_attention_agrees_with_equinox(x, context, mask, key):
    layer = pf.MultiHeadAttention(D_MODEL, HEADS, d_k=D_K, d_v=D_V, key=key)
    theirs = eqx.nn.MultiheadAttention(
        HEADS, D_MODEL, qk_size=D_K, vo_size=D_V, key=key
    )  # fmt: skip
    theirs = eqx.tree_at(
        lambda m: (m.query_proj.weight, m.key_proj.weight, m.value_proj.weight, m.output_proj.weight),
        theirs,
        (layer.query_weight.T, layer.key_weight.T, layer.value_weight.T, layer.output_weight.T),
    )
    mask = mask.at[1, 4].set(True)  # a row that sees nothing is a case of its own: theirs averages over all
    np.testing.assert_allclose(layer(x), theirs(x, x, x), rtol=1e-4, atol=1e-5)
    ours = layer(x, mask, context=context)
    np.testing.assert_allclose(ours, theirs(x, context, context, mask), rtol=1e-4, atol=1e-5)


def test_multi_head_attention_weights_are_those_behind_the_output(x, context, mask, key):
    layer = pf.MultiHeadAttention(D_MODEL, 4, num_kv_heads=2, key=key)
    weights = layer.weights(x, mask, context=context)
    assert weights.shape == (4, SEQ, KV_SEQ)
    values = jnp.repeat(pf.split_heads(context @ layer.value_weight, 2), 2, axis=0)
    by_hand = pf.merge_heads(weights @ values) @ layer.output_weight
    np.testing.assert_allclose(layer(x, mask, context=context), by_hand, rtol=1e-4, atol=1e-6)


def test_multi_head_attention_of_a_fully_hidden_row_is_the_output_bias_and_has_no_gradient(x, context, mask, key):
    layer = pf.MultiHeadAttention(D_MODEL, HEADS, use_bias=True, key=key)
    layer = eqx.tree_at(lambda m: m.output_bias, layer, jnp.arange(D_MODEL, dtype=jnp.float32))
    np.testing.assert_array_equal(layer(x, mask, context=context)[1], layer.output_bias)
    gradient = jax.grad(lambda c: layer(x, mask, context=c)[1].sum())(context)
    assert (gradient == 0).all()


def test_multi_head_attention_lets_no_gradient_back_from_the_future(x, key):
    layer = pf.MultiHeadAttention(D_MODEL, HEADS, key=key)
    jacobian = jax.jacobian(lambda x: layer(x, pf.causal_mask(SEQ)))(x)
    reach = np.abs(jacobian).sum(axis=(1, 3))
    assert (reach[np.triu_indices(SEQ, 1)] == 0.0).all()
    assert (reach[np.tril_indices(SEQ)] > 0).all()


def test_multi_head_attention_follows_a_permutation_of_its_tokens(x, key):
    layer, order = pf.MultiHeadAttention(D_MODEL, HEADS, key=key), jnp.array([3, 0, 4, 1, 2])
    np.testing.assert_allclose(layer(x[order]), layer(x)[order], rtol=1e-5, atol=1e-6)


def test_multi_head_attention_has_right_gradients(x64, key):
    layer = pf.MultiHeadAttention(6, 2, num_kv_heads=1, key=key)
    layer = jax.tree.map(lambda w: w.astype(jnp.float64), layer)
    x = jax.random.normal(key, (3, 6), jnp.float64)
    parameters, rest = eqx.partition(layer, eqx.is_array)

    def output(parameters, x):  # check_grads hands over NumPy arrays
        parameters, x = jax.tree.map(jnp.asarray, (parameters, x))
        return eqx.combine(parameters, rest)(x, pf.causal_mask(3))

    check_grads(output, (parameters, x), order=1, modes=("fwd", "rev"))


def test_multi_head_attention_starts_with_heads_that_differ_at_the_size_of_a_single_one(key):
    layer = pf.MultiHeadAttention(96, HEADS, key=key)
    stacks = [pf.split_heads(w, HEADS) for w in (layer.query_weight, layer.key_weight, layer.value_weight)]
    matrices = [head for stack in stacks for head in stack] + [*layer.output_weight.reshape(HEADS, 32, 96)]
    for n, matrix in enumerate(matrices[:-HEADS]):
        assert abs(float(matrix.std()) - (2 / (96 + 32)) ** 0.5) < 0.008
        assert all(np.abs(matrix - other).max() > 0.01 for other in matrices[n + 1 : -HEADS])
    assert abs(float(layer.output_weight.std()) - (2 / (96 + 96)) ** 0.5) < 0.008


def test_multi_head_attention_has_as_many_parameters_whatever_the_number_of_heads(key):
    for num_heads in (1, 2, 3, 6):
        layer = pf.MultiHeadAttention(D_MODEL, num_heads, key=key)
        assert sum(w.size for w in jax.tree.leaves(layer)) == 4 * D_MODEL**2


@pytest.mark.equation("eq-multi-head-layer", "eq-multi-head-grouped")
@pytest.mark.parametrize("own_masks", [False, True])
def test_multi_head_attention_of_several_texts_is_each_text_alone(own_masks, key):
    layer, num_texts = pf.MultiHeadAttention(D_MODEL, 4, num_kv_heads=2, use_bias=True, key=key), 3
    shapes = [(num_texts, SEQ, D_MODEL), (num_texts, KV_SEQ, D_MODEL), (num_texts, SEQ, D_MODEL)]
    x, context, slopes = (jax.random.normal(k, s) for k, s in zip(jax.random.split(key, 3), shapes, strict=True))
    masks = jax.random.bernoulli(key, 0.6, (num_texts, SEQ, KV_SEQ)).at[1, 2].set(False)
    mask = masks if own_masks else masks[1]
    position = pf.RelativePositions(4, key=key)

    def one_by_one(layer, x, context):
        texts = jax.vmap(
            lambda x, m, c: layer(x, m, context=c, position=position), in_axes=(0, 0 if own_masks else None, 0)
        )
        return texts(x, mask, context)

    def together(layer, x, context):
        rows, context_rows = x.reshape(-1, D_MODEL), context.reshape(-1, D_MODEL)
        output = layer(rows, mask, context=context_rows, position=position, num_texts=num_texts)
        return output.reshape(x.shape)

    (expected, wanted_back), (found, back) = (jax.vjp(jax.jit(f), layer, x, context) for f in (one_by_one, together))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    for mine, other in zip(jax.tree.leaves(back(slopes)), jax.tree.leaves(wanted_back(slopes)), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-5)


LAYER = {"d_model": D_MODEL, "num_heads": HEADS, "key": jax.random.key(0)}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pf.split_heads(jnp.ones((5, 7)), 3), ValueError, r"x is 7 wide, which 3 heads cannot share equally"),
        (lambda: pf.split_heads(jnp.ones((2, 5, 6)), 3), ValueError, r"x has shape \(2, 5, 6\).*jax\.vmap"),
        (lambda: pf.split_heads(jnp.ones((5, 6)), 0), ValueError, r"num_heads is 0; expected at least 1"),
        (lambda: pf.merge_heads(jnp.ones((5, 6))), ValueError, r"heads has shape \(5, 6\); expected \(heads, seq, d_h"),
        (lambda: pf.MultiHeadAttention(13, 3, key=LAYER["key"]), ValueError, r"d_model=13 is not a multiple.*=3"),
        (lambda: pf.MultiHeadAttention(12, 4, num_kv_heads=3, key=LAYER["key"]), ValueError, r"num_heads=4 is not.*=3"),
        (lambda: pf.MultiHeadAttention(12, 3, d_k=0, key=LAYER["key"]), ValueError, r"d_k is 0; expected at least 1"),
        (lambda: pf.MultiHeadAttention(12.0, 3, key=LAYER["key"]), TypeError, r"d_model is 12\.0; expected a whole"),
        (lambda: pf.MultiHeadAttention(**LAYER)(jnp.ones((2, 5, 12))), ValueError, r"x has .*jax\.vmap"),
        (lambda: pf.MultiHeadAttention(**LAYER)(jnp.ones((12, 5))), ValueError, r"x has .*swapped.*x\.T"),
        (
            lambda: pf.MultiHeadAttention(**LAYER)(jnp.ones((5, 12)), context=jnp.ones((7, 11))),
            ValueError,
            r"context has shape \(7, 11\); expected \(kv_seq, d_model=12\)",
        ),
        (
            lambda: pf.MultiHeadAttention(**LAYER)(jnp.ones((5, 12)), jnp.ones((3, 5, 5), bool)),
            ValueError,
            r"mask has shape \(3, 5, 5\); expected \(seq=5, kv_seq=5\)",
        ),
        (
            lambda: pf.MultiHeadAttention(**LAYER)(jnp.ones((5, 12)), num_texts=2),
            ValueError,
            r"x has 5 rows, context 5; expected multiples of num_texts=2, for texts of equal length",
        ),
        (
            lambda: pf.MultiHeadAttention(**LAYER)(jnp.ones((6, 12)), context=jnp.ones((7, 12)), num_texts=2),
            ValueError,
            r"x has 6 rows, context 7; expected multiples of num_texts=2",
        ),
        (
            lambda: pf.MultiHeadAttention(**LAYER)(jnp.ones((10, 12)), jnp.ones((3, 5, 5), bool), num_texts=2),
            ValueError,
            r"mask has shape \(3, 5, 5\); expected \(num_texts=2, seq=5, kv_seq=5\)",
        ),
        (
            lambda: pf.MultiHeadAttention(**LAYER)(jnp.ones((5, 12)), num_texts=0),
            ValueError,
            r"num_texts is 0; expected",
        ),
        (
            lambda: pf.MultiHeadAttention(**LAYER).weights(jnp.ones((5, 12)), jnp.ones((5, 5))),
            TypeError,
            r"mask is an array of float32; expected a Boolean",
        ),
        (
            lambda: pf.multi_head_sum(jnp.ones((5, 12)), *[jnp.ones((3, 12, 4))] * 3, jnp.ones((3, 12, 4))),
            ValueError,
            r"output_weights has shape \(3, 12, 4\); expected \(heads=3, d_v=4, d_model=12\)",
        ),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
