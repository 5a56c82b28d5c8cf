"""Chapter 02 at its edges: half precision, no keys at all, and what a reader is told when an argument is wrong."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf

Q, K, V = jnp.ones((5, 4)), jnp.ones((7, 4)), jnp.ones((7, 3))
MASK = jnp.ones((5, 7), bool)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_attend_in_half_precision_does_not_overflow(dtype):
    queries, keys, values = jnp.ones((2, 3), dtype), jnp.ones((1500, 3), dtype), jnp.full((1500, 4), 100, dtype)
    for scale in (None, 1 / np.sqrt(3)):
        output = pf.attend(queries, keys, values, scale=scale)
        assert output.dtype == dtype
        np.testing.assert_allclose(output.astype(jnp.float32), np.full((2, 4), 100.0), rtol=1e-2)
    assert pf.attention_weights(queries, keys).dtype == dtype


def test_attend_to_no_keys_at_all_is_zero():
    output = pf.attend(jnp.ones((2, 3)), jnp.ones((0, 3)), jnp.ones((0, 4)))
    np.testing.assert_array_equal(output, np.zeros((2, 4)))
    assert pf.SelfAttention(6, 4, key=jax.random.key(0))(jnp.ones((0, 6))).shape == (0, 6)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((Q[None], K, V), ValueError, r"queries has shape \(1, 5, 4\); expected \(q_seq, d_k\).*batch.*jax\.vmap"),
        ((Q[0], K, V), ValueError, r"queries has shape \(4,\).*one axis too few.*queries\[None\]"),
        ((Q, K.T, V), ValueError, r"keys has shape \(4, 7\); expected \(kv_seq, d_k=4\).*swapped.*keys\.T"),
        ((Q, jnp.ones((7, 5)), V), ValueError, r"keys has shape \(7, 5\); expected \(kv_seq, d_k=4\)"),
        ((Q, K, V[:6]), ValueError, r"values has shape \(6, 3\); expected \(kv_seq=7, d_v\)"),
        ((Q, K, V, MASK.T), ValueError, r"mask has shape \(7, 5\); expected \(q_seq=5, kv_seq=7\).*padding_mask"),
        ((Q, K, V, MASK[0]), ValueError, r"mask has shape \(7,\); expected \(q_seq=5, kv_seq=7\).*padding_mask"),
        ((Q, K, V, jnp.zeros((5, 7))), TypeError, r"mask is an array of float32; expected a Boolean.*mask == 0"),
        ((Q, K, V, [[True]]), TypeError, r"mask is a list; expected a Boolean array.*jnp\.asarray\(mask\)"),
        ((Q.astype(int), K, V), TypeError, r"queries holds int32; expected floats.*queries\.astype\(float\)"),
        ((Q, K, V.astype(int)), TypeError, r"values holds int32; expected floats"),
        (([[1.0]], K, V), TypeError, r"queries is a list; expected an array with axes \(q_seq, d_k\).*jnp\.asarray"),
    ],
)
def test_attend_names_what_came_and_what_was_wanted(arguments, error, message):
    with pytest.raises(error, match=message):
        pf.attend(*arguments)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: pf.weighted_average(jnp.ones((5, 6)), V),
            ValueError,
            r"values has shape \(7, 3\); expected \(kv_seq=6",
        ),
        (lambda: pf.dot_product_scores(Q, jnp.ones((7, 3))), ValueError, r"keys has shape \(7, 3\); expected .*d_k=4"),
        (lambda: pf.shared_projection_scores(Q, jnp.ones((3, 2))), ValueError, r"projection has .*d_model=4"),
        (lambda: pf.softmax(Q.astype(int)), TypeError, r"scores holds int32; expected floats"),  # not weights of 0
        (lambda: pf.scaled_scores(Q.astype(int), K), TypeError, r"queries holds int32; expected floats"),
        (lambda: pf.scaled_scores(Q[0], K), ValueError, r"queries has shape \(4,\)"),
        (lambda: pf.attention_weights(Q, K[None]), ValueError, r"keys has shape \(1, 7, 4\).*jax\.vmap"),
        (lambda: pf.softmax(Q, MASK), ValueError, r"mask has shape \(5, 7\); expected \(q_seq=5, kv_seq=4\)"),
        (lambda: pf.hard_attend(Q, K, V[:2]), ValueError, r"values has shape \(2, 3\); expected \(kv_seq=7"),
        (lambda: pf.window_weights(0, 1), ValueError, r"seq_len is 0; expected at least 1"),
        (lambda: pf.window_weights(4, -1), ValueError, r"radius is -1; expected a whole number: 0 \(only the token"),
        (lambda: pf.window_weights(4, 1.5), ValueError, r"radius is 1\.5; expected a whole number"),
        (lambda: pf.window_weights(4, float("nan")), ValueError, r"radius is nan; expected a whole number"),
        (lambda: pf.attend(Q[:, :0], K[:, :0], V), ValueError, r"d_k is 0; expected at least 1"),
        (lambda: pf.hard_attend(Q, K[None], V), ValueError, r"keys has shape \(1, 7, 4\).*jax\.vmap"),
        (lambda: pf.softmax(Q, jax.random.key(0)), TypeError, r"mask is an array of key<fry>; expected a Boolean"),
        (lambda: pf.causal_mask(0), ValueError, r"seq_len is 0; expected at least 1"),
        (lambda: pf.causal_mask(2.5), TypeError, r"seq_len is 2\.5; expected a whole number"),
        (lambda: pf.padding_mask(jnp.ones(3)), TypeError, r"is_token holds float32; expected bool.*is_token == 1"),
        (lambda: pf.padding_mask(jnp.ones((2, 3), bool)), ValueError, r"is_token has shape \(2, 3\).*jax\.vmap"),
        (lambda: pf.padding_mask(jnp.ones(3, bool), 0), ValueError, r"q_seq is 0; expected at least 1"),
        (lambda: pf.SelfAttention(0, 4, key=jax.random.key(0)), ValueError, r"d_model is 0; expected at least 1"),
        (lambda: pf.SelfAttention(6, 4, key=jax.random.key(0))(Q), ValueError, r"x has .*expected \(seq, d_model=6\)"),
        (lambda: pf.SelfAttention(4, 2, key=jax.random.key(0))(Q[None]), ValueError, r"x has .*jax\.vmap"),
        (lambda: pf.SelfAttention(4, 2, key=jax.random.key(0)).weights(K.T), ValueError, r"x has .*swapped.*x\.T"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
