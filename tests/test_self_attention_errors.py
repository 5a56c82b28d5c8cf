"""Chapter 02: what a reader is told when an argument is wrong."""

import jax
import jax.numpy as jnp
import pytest

import plainformer as pf

Q, K, V = jnp.ones((5, 4)), jnp.ones((7, 4)), jnp.ones((7, 3))
MASK = jnp.ones((5, 7), bool)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((Q[None], K, V), ValueError, r"queries has shape \(1, 5, 4\); wanted \(q_seq, d_k\).*batch.*jax\.vmap"),
        ((Q[0], K, V), ValueError, r"queries has shape \(4,\).*one axis too few.*queries\[None\]"),
        ((Q, K.T, V), ValueError, r"keys has shape \(4, 7\); wanted \(kv_seq, d_k=4\).*swapped.*keys\.T"),
        ((Q, jnp.ones((7, 5)), V), ValueError, r"keys has shape \(7, 5\); wanted \(kv_seq, d_k=4\)"),
        ((Q, K, V[:6]), ValueError, r"values has shape \(6, 3\); wanted \(kv_seq=7, d_v\)"),
        ((Q, K, V, MASK.T), ValueError, r"mask has shape \(7, 5\); wanted \(q_seq=5, kv_seq=7\).*padding_mask"),
        ((Q, K, V, MASK[0]), ValueError, r"mask has shape \(7,\); wanted \(q_seq=5, kv_seq=7\).*padding_mask"),
        ((Q, K, V, jnp.zeros((5, 7))), TypeError, r"mask is an array of float32; wanted a Boolean.*mask == 0"),
        ((Q, K, V, [[True]]), TypeError, r"mask is list; wanted a Boolean array"),
        (([[1.0]], K, V), TypeError, r"queries is a list; wanted an array with axes \(q_seq, d_k\).*jnp\.asarray"),
    ],
)
def test_attend_names_what_came_and_what_was_wanted(arguments, error, message):
    with pytest.raises(error, match=message):
        pf.attend(*arguments)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pf.weighted_average(jnp.ones((5, 6)), V), ValueError, r"values has shape \(7, 3\); wanted \(kv_seq=6"),
        (lambda: pf.dot_product_scores(Q, jnp.ones((7, 3))), ValueError, r"keys has shape \(7, 3\); wanted .*d_k=4"),
        (lambda: pf.shared_projection_scores(Q, jnp.ones((3, 2))), ValueError, r"projection has .*d_model=4"),
        (lambda: pf.scaled_scores(Q[0], K), ValueError, r"queries has shape \(4,\)"),
        (lambda: pf.attention_weights(Q, K[None]), ValueError, r"keys has shape \(1, 7, 4\).*jax\.vmap"),
        (lambda: pf.softmax(Q, MASK), ValueError, r"mask has shape \(5, 7\); wanted \(q_seq=5, kv_seq=4\)"),
        (lambda: pf.hard_attend(Q, K, V[:2]), ValueError, r"values has shape \(2, 3\); wanted \(kv_seq=7"),
        (lambda: pf.window_weights(0, 1), ValueError, r"seq_len is 0; wanted at least 1"),
        (lambda: pf.window_weights(4, -1), ValueError, r"radius is -1; wanted 0"),
        (lambda: pf.causal_mask(0), ValueError, r"seq_len is 0; wanted at least 1"),
        (lambda: pf.causal_mask(2.5), TypeError, r"seq_len is 2\.5; wanted a whole number"),
        (lambda: pf.padding_mask(jnp.ones(3)), TypeError, r"is_token holds float32; wanted bool.*is_token == 1"),
        (lambda: pf.padding_mask(jnp.ones((2, 3), bool)), ValueError, r"is_token has shape \(2, 3\).*jax\.vmap"),
        (lambda: pf.padding_mask(jnp.ones(3, bool), 0), ValueError, r"q_seq is 0; wanted at least 1"),
        (lambda: pf.SelfAttention(0, 4, key=jax.random.key(0)), ValueError, r"d_model is 0; wanted at least 1"),
        (lambda: pf.SelfAttention(6, 4, key=jax.random.key(0))(Q), ValueError, r"x has .*wanted \(seq, d_model=6\)"),
        (lambda: pf.SelfAttention(4, 2, key=jax.random.key(0))(Q[None]), ValueError, r"x has .*jax\.vmap"),
        (lambda: pf.SelfAttention(4, 2, key=jax.random.key(0)).weights(K.T), ValueError, r"x has .*swapped.*x\.T"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
