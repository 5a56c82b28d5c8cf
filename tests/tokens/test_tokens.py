"""One-hot rows, embeddings, linear maps, cosines."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from jax.test_util import check_grads

from plainformer.tokens.tokens import (
    Linear,
    TokenEmbedding,
    cosine_similarity,
    embed,
    glorot_normal,
    linear,
    normal,
    one_hot,
    unit_variance,
)

TABLE = np.random.default_rng(0).normal(size=(11, 6)).astype(np.float32)


@pytest.mark.equation("eq-tokens-one-hot-product")
@settings(max_examples=10)
@given(st.just([]) | st.lists(st.integers(0, 10), min_size=4, max_size=4))  # every new length is compiled anew
def test_embed_equals_the_one_hot_product(ids):
    found, product = embed_and_multiply(np.array(ids, dtype=np.int32))
    np.testing.assert_array_equal(found, product)


@jax.jit
def embed_and_multiply(ids):
    return embed(TABLE, ids), one_hot(ids, 11) @ TABLE


@pytest.mark.equation("eq-tokens-look-up", "eq-tokens-one-hot")
def test_embed_and_one_hot_of_a_batch_of_any_rank_are_those_of_each_text():
    ids = np.random.default_rng(1).integers(11, size=(2, 3, 5))
    layer = eqx.tree_at(lambda e: e.weight, TokenEmbedding(11, 6, key=jax.random.key(0)), jnp.asarray(TABLE))
    np.testing.assert_array_equal(one_hot(ids, 11), np.eye(11)[ids])
    np.testing.assert_array_equal(embed(TABLE, ids), TABLE[ids])
    np.testing.assert_array_equal(layer(ids), TABLE[ids])
    np.testing.assert_array_equal(jax.vmap(layer)(jnp.asarray(ids)), TABLE[ids])


@pytest.mark.equation("eq-tokens-look-up", "eq-tokens-one-hot-product")
def test_embed_gradient_counts_each_token(x64):
    table, ids = np.random.default_rng(0).normal(size=(5, 3)), jnp.array([4, 1, 4, 4])
    counts = np.broadcast_to(np.array([0.0, 1, 0, 0, 3])[:, None], (5, 3))
    np.testing.assert_array_equal(jax.jit(jax.grad(lambda t: embed(t, ids).sum()))(table), counts)
    check_grads(jax.jit(lambda t: embed(t, ids) ** 2), (table,), order=2, modes=["rev"])


@pytest.mark.parametrize("bad", [7, -1])
def test_embed_never_clips(bad):
    table, ids = jnp.ones((7, 3)), jnp.array([0, bad, 6])
    layer = eqx.tree_at(lambda e: e.weight, TokenEmbedding(7, 3, key=jax.random.key(0)), table)
    for call in (lambda i: embed(table, i), lambda i: one_hot(i, 7), layer):
        with pytest.raises(ValueError, match=rf"ids\[1\] is {bad}"):
            call(ids)
    with pytest.raises(ValueError, match=rf"ids\[0, 1\] is {bad}"):
        embed(table, ids[None])


@pytest.mark.run_time_check
def test_embed_and_one_hot_compiled_raise_as_documented():
    table, ids = jnp.ones((7, 3)), jnp.array([0, 7])
    message = r"An entry of ids is not allowed; expected 0 to 6, as there are 7 tokens"
    with pytest.raises(eqx.EquinoxRuntimeError, match=message):
        jax.block_until_ready(eqx.filter_jit(embed)(table, ids))
    with pytest.raises(jax.errors.JaxRuntimeError, match=message):
        jax.block_until_ready(jax.jit(embed)(table, ids))
    with pytest.raises(eqx.EquinoxRuntimeError, match=message):
        jax.block_until_ready(eqx.filter_jit(one_hot)(ids, 7))
    for call in (lambda i: embed(table, i), lambda i: one_hot(i, 7)):
        with pytest.raises(eqx.EquinoxRuntimeError, match=message):
            jax.block_until_ready(jax.vmap(call)(ids[None]))


@pytest.mark.run_time_check
def test_embed_compiled_does_not_wrap_wide_ids(x64):
    table, ids = jnp.ones((7, 3)), jnp.array([2**32 + 2])
    assert ids.dtype == jnp.int64
    with pytest.raises(eqx.EquinoxRuntimeError, match=r"An entry of ids is not allowed"):
        jax.block_until_ready(eqx.filter_jit(embed)(table, ids))


TEXT = jnp.array([1, 2])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: embed(jnp.ones(7), TEXT), ValueError, r"table has shape \(7,\)"),
        (lambda: embed(jnp.ones((7, 3)), TEXT[0]), ValueError, r"ids has shape \(\)"),
        (lambda: embed(jnp.ones((7, 3)), "ab"), TypeError, r"ids is a str"),
        (lambda: one_hot(jnp.array([1.0]), 7), TypeError, r"ids holds float32"),
        (lambda: jax.jit(embed)(TABLE, jnp.ones(2)), TypeError, r"ids holds float32"),
    ],
)
def test_embed_and_one_hot_name_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


# The two embeddings


def test_token_embedding_starts_with_rows_of_length_about_one(key):
    lengths = np.linalg.norm(TokenEmbedding(500, 64, key=key).weight, axis=1)
    assert abs(float(lengths.mean()) - 1) < 0.02


@pytest.mark.equation("eq-subwords-linear")
@pytest.mark.parametrize("batch", [(), (3, 7)])
def test_linear_layer_equals_a_float64_reference(batch, key):
    layer = eqx.tree_at(lambda e: e.bias, Linear(5, 12, key=key), jnp.arange(12.0))
    x = np.random.default_rng(0).normal(size=(*batch, 5)).astype(np.float32)
    expected = x.astype(np.float64) @ np.asarray(layer.weight, np.float64) + np.arange(12.0)
    np.testing.assert_allclose(layer(x), expected, rtol=1e-5, atol=1e-5)


def test_linear_layer_without_bias_maps_zero_to_zero(key):
    layer = Linear(5, 12, use_bias=False, key=key)
    assert layer.bias is None
    assert not layer(jnp.zeros((3, 5))).any()


def test_linear_layer_starts_with_a_bias_of_zeros_and_the_matrix_it_was_told(key):
    layer = Linear(5, 12, initialiser=lambda key, shape: jnp.ones(shape), key=key)
    np.testing.assert_array_equal(layer(jnp.ones((3, 5))), np.full((3, 12), 5))
    std = float(Linear(100, 300, key=key).weight.std())
    assert abs(std - (2 / 400) ** 0.5) < 0.001  # Glorot normal


@pytest.mark.parametrize("shape", [(1, 2), (96, 344)])
def test_first_weights_are_those_of_jax(shape, key):
    of_jax = jax.nn.initializers
    np.testing.assert_array_equal(normal(key, shape), jax.random.normal(key, shape))
    np.testing.assert_array_equal(glorot_normal(key, shape), of_jax.glorot_normal()(key, shape))
    np.testing.assert_array_equal(glorot_normal(key, (3, *shape)), of_jax.glorot_normal(batch_axis=0)(key, (3, *shape)))
    expected = of_jax.variance_scaling(1.0, "fan_in", "normal")(key, shape)
    np.testing.assert_array_equal(unit_variance(key, shape), expected)


def test_first_weights_of_many_shapes_are_drawn_by_one_program(key, monkeypatch):
    drawn, original = set(), jax.random.normal
    monkeypatch.setattr("jax.random.normal", lambda key, shape: drawn.add(shape) or original(key, shape))
    for shape in [(7,), (7, 9), (64, 64), (3, 4, 5)]:
        assert normal(key, shape).shape == shape
    assert drawn == {(4096,)}
    assert normal(key, (1025, 1025)).shape == (1025, 1025)
    assert drawn == {(4096,), (1025 * 1025,)}  # beyond a million nothing is drawn in vain


X, WEIGHT, KEY = jnp.ones((7, 5)), jnp.ones((5, 12)), jax.random.key(0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linear(X, jnp.ones((4, 12))), r"weight has shape \(4, 12\)"),
        (lambda: linear(X, WEIGHT, jnp.ones(1)), r"bias has shape \(1,\)"),
        (lambda: Linear(5, 12, key=KEY)(X[:, 1:]), r"x has shape \(7, 4\)"),
    ],
)
def test_linear_names_bad_shapes_and_sizes(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# Cosines


@pytest.mark.equation("eq-tokens-cosine")
def test_cosine_similarity_by_hand():
    x = jnp.array([[3.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    y = jnp.array([[1.0, 0.0], [0.0, -2.0]])
    half = 0.5**0.5
    np.testing.assert_allclose(cosine_similarity(x, y), [[1, 0], [half, -half], [0, 0]], atol=1e-7)
    for size in (1e-4, 1e3):  # whose squares 16 bits do not hold
        found = cosine_similarity(*2 * [jnp.full((1, 4), size, jnp.float16)])
        assert (found.dtype, found.item()) == (jnp.float16, 1)


@pytest.mark.equation("eq-tokens-cosine")
def test_cosine_similarity_ignores_lengths_and_equals_a_float64_reference():
    x, y = (np.random.default_rng(seed).normal(size=(rows, 3)) for seed, rows in enumerate((5, 7)))
    expected = x @ y.T / np.linalg.norm(x, axis=1)[:, None] / np.linalg.norm(y, axis=1)
    np.testing.assert_allclose(cosine_similarity(x, y), expected, atol=1e-6)
    np.testing.assert_allclose(cosine_similarity(7 * x, y / 3), expected, atol=1e-6)


def test_cosine_similarity_gradient(x64):
    x, y = (np.random.default_rng(seed).normal(size=(rows, 3)) for seed, rows in enumerate((5, 7)))
    check_grads(jax.jit(cosine_similarity), (x, y), order=2, modes=["rev"])
    x[2] = 0
    for_x, for_y = jax.jit(jax.grad(lambda x, y: cosine_similarity(x, y).sum(), argnums=(0, 1)))(x, y)
    assert np.isfinite(for_x).all()
    assert np.isfinite(for_y).all()
    assert for_x[2].tolist() == [0, 0, 0]


def test_cosine_similarity_names_bad_shapes():
    with pytest.raises(ValueError, match=r"y has shape \(7, 4\)"):
        cosine_similarity(jnp.ones((5, 3)), jnp.ones((7, 4)))
    with pytest.raises(ValueError, match=r"x has shape \(2, 5, 3\)"):
        cosine_similarity(jnp.ones((2, 5, 3)), jnp.ones((7, 3)))
