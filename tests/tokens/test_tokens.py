"""Chapter 01: one-hot rows, embeddings, patches, cosines."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from jax.test_util import check_grads

from plainformer.tokens.tokens import (
    LinearEmbedding,
    TokenEmbedding,
    cosine_similarity,
    image_to_patches,
    linear_map,
    look_up,
    one_hot,
    patches_to_image,
)


@pytest.mark.equation("eq-tokens-one-hot")
def test_one_hot_by_hand():
    rows = one_hot(jnp.array([2, 0, 2]), 4)
    assert rows.tolist() == [[0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 1, 0]]
    assert rows.dtype == jnp.float32


@pytest.mark.equation("eq-tokens-one-hot")
def test_one_hot_rows_are_all_equally_far_apart():
    rows = np.asarray(one_hot(jnp.arange(7), 7))
    distances = np.linalg.norm(rows[:, None] - rows[None], axis=-1)
    np.testing.assert_allclose(distances, np.sqrt(2) * (1 - np.eye(7)), atol=1e-6)


@pytest.mark.equation("eq-tokens-look-up")
def test_look_up_by_hand():
    table = jnp.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert look_up(table, jnp.array([2, 0, 0, 1])).tolist() == [[5, 6], [1, 2], [1, 2], [3, 4]]


@pytest.mark.equation("eq-tokens-one-hot-product")
@settings(max_examples=20)  # every new shape is compiled anew
@given(st.lists(st.integers(0, 10), max_size=4), st.sampled_from([1, 6]))
def test_look_up_equals_the_one_hot_product(ids, d_model):
    table = jnp.asarray(np.random.default_rng(d_model).normal(size=(11, d_model)), dtype=jnp.float32)
    ids = jnp.array(ids, dtype=jnp.int32)
    np.testing.assert_array_equal(look_up(table, ids), one_hot(ids, 11) @ table)


@pytest.mark.equation("eq-tokens-look-up", "eq-tokens-one-hot-product")
def test_look_up_gradient_counts_each_token(key, x64):
    table = jax.random.normal(key, (5, 3), dtype=jnp.float64)
    ids = jnp.array([4, 1, 4, 4])
    counts = jnp.broadcast_to(jnp.array([0.0, 1, 0, 0, 3])[:, None], (5, 3))
    np.testing.assert_array_equal(jax.grad(lambda t: look_up(t, ids).sum())(table), counts)
    check_grads(lambda t: look_up(jnp.asarray(t), ids) ** 2, (table,), order=2)


@pytest.mark.parametrize(("bad", "place"), [(7, 1), (-1, 1), (-7, 1)])
def test_look_up_never_clips(bad, place):
    table, ids = jnp.ones((7, 3)), jnp.array([0, bad, 6])
    for call in (lambda i: look_up(table, i), lambda i: one_hot(i, 7)):
        with pytest.raises(ValueError, match=rf"ids\[{place}\] is {bad}; expected 0 to 6, as there are 7 tokens"):
            call(ids)
        with pytest.raises(eqx.EquinoxRuntimeError, match=r"token id is out of range; expected 0 to 6"):
            jax.block_until_ready(eqx.filter_jit(call)(ids))
        with pytest.raises(eqx.EquinoxRuntimeError, match=r"token id is out of range; expected 0 to 6"):
            jax.block_until_ready(jax.vmap(call)(ids[None]))


def test_look_up_small_unsigned_ids():
    ids = jnp.array([3, 200], dtype=jnp.uint8)
    table = jnp.arange(300.0)[:, None]
    assert look_up(table, ids).tolist() == jax.jit(look_up)(table, ids).tolist() == [[3.0], [200.0]]
    assert jax.jit(one_hot, static_argnums=1)(ids, 300).argmax(axis=1).tolist() == [3, 200]


def test_look_up_bad_shapes(unchecked):
    with pytest.raises(ValueError, match=r"ids has shape \(2, 3\); expected \(seq,\).*jax.vmap"):
        look_up(jnp.ones((7, 3)), jnp.zeros((2, 3), dtype=jnp.int32))
    with pytest.raises(ValueError, match=r"table has shape \(7,\); expected \(vocab_size, d_model\)"):
        look_up(jnp.ones(7), jnp.array([1]))
    with pytest.raises(TypeError, match=r"ids is a list; expected an array.*jnp.asarray"):
        look_up(jnp.ones((7, 3)), [1, 2])
    with pytest.raises(TypeError, match=r"ids are float32; expected whole numbers"):
        one_hot(jnp.array([1.0]), 7)
    with pytest.raises(TypeError, match=r"ids are float32; expected whole numbers"):
        jax.jit(look_up)(jnp.ones((7, 3)), jnp.array([1.0]))
    with pytest.raises(ValueError, match=r"vocab_size is 0; expected at least 1"):
        one_hot(jnp.array([1]), 0)


def test_look_up_compiled_raises_as_documented():
    table, ids = jnp.ones((7, 3)), jnp.array([0, 7])
    with pytest.raises(eqx.EquinoxRuntimeError, match=r"A token id is out of range; expected 0 to 6"):
        jax.block_until_ready(eqx.filter_jit(look_up)(table, ids))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"A token id is out of range; expected 0 to 6"):
        jax.block_until_ready(jax.jit(look_up)(table, ids))


def test_look_up_compiled_does_not_wrap_wide_ids(x64):
    table, ids = jnp.ones((7, 3)), jnp.array([2**32 + 2])
    assert ids.dtype == jnp.int64
    with pytest.raises(eqx.EquinoxRuntimeError, match=r"A token id is out of range; expected 0 to 6"):
        jax.block_until_ready(eqx.filter_jit(look_up)(table, ids))


# The two embeddings


@pytest.mark.equation("eq-tokens-look-up")
def test_token_embedding_is_a_look_up(key):
    embed = TokenEmbedding(11, 6, key=key)
    ids = jnp.array([3, 10, 0, 3])
    np.testing.assert_array_equal(embed(ids), embed.weight[jnp.array([3, 10, 0, 3])])
    np.testing.assert_array_equal(embed(ids), one_hot(ids, 11) @ embed.weight)
    np.testing.assert_array_equal(jax.vmap(embed)(ids.reshape(2, 2)).reshape(4, 6), embed(ids))


def test_token_embedding_starts_with_rows_of_length_about_one(key):
    lengths = jnp.linalg.norm(TokenEmbedding(500, 64, key=key).weight, axis=1)
    assert abs(float(lengths.mean()) - 1) < 0.02


@pytest.mark.equation("eq-tokens-linear")
def test_linear_map_by_hand():
    x = jnp.array([[1.0, 2.0], [0.0, -1.0]])
    weight = jnp.array([[1.0, 0.0, 2.0], [3.0, 1.0, 0.0]])
    assert linear_map(x, weight).tolist() == [[7, 2, 2], [-3, -1, 0]]
    assert linear_map(x, weight, jnp.array([10.0, 20.0, 30.0])).tolist() == [[17, 22, 32], [7, 19, 30]]


@pytest.mark.equation("eq-tokens-linear")
def test_linear_embedding_equals_a_float64_reference(key):
    embed = LinearEmbedding(5, 12, key=key)
    embed = eqx.tree_at(lambda e: e.bias, embed, jnp.arange(12.0))
    x = jax.random.normal(jax.random.key(1), (7, 5))
    expected = np.asarray(x, np.float64) @ np.asarray(embed.weight, np.float64) + np.arange(12.0)
    np.testing.assert_allclose(embed(x), expected, rtol=1e-5, atol=1e-5)


def test_linear_embedding_without_bias_maps_zero_to_zero(key):
    embed = LinearEmbedding(5, 12, use_bias=False, key=key)
    assert embed.bias is None
    assert not embed(jnp.zeros((3, 5))).any()


def test_linear_embedding_of_one_hot_rows_is_a_token_embedding(key):
    embed = LinearEmbedding(11, 6, use_bias=False, key=key)
    ids = jnp.array([10, 2, 5])
    np.testing.assert_array_equal(embed(one_hot(ids, 11)), look_up(embed.weight, ids))


def test_embeddings_bad_sizes(key, unchecked):
    with pytest.raises(ValueError, match=r"d_model is 0; expected at least 1"):
        TokenEmbedding(3, 0, key=key)
    with pytest.raises(ValueError, match=r"d_in is -1; expected at least 1"):
        LinearEmbedding(-1, 2, key=key)
    with pytest.raises(ValueError, match=r"x has shape \(7, 4\); expected \(seq, d_in=5\)"):
        LinearEmbedding(5, 12, key=key)(jnp.ones((7, 4)))
    with pytest.raises(ValueError, match=r"x has shape \(5,\); expected \(seq, d_in=5\).*x\[None\]"):
        LinearEmbedding(5, 12, key=key)(jnp.ones(5))


def test_linear_map_bad_shapes(unchecked):
    x, weight = jnp.ones((7, 5)), jnp.ones((5, 12))
    with pytest.raises(ValueError, match=r"weight has shape \(5,\); expected \(d_in, d_model\)"):
        linear_map(x, jnp.ones(5))
    with pytest.raises(ValueError, match=r"x has shape \(7, 4\); expected \(seq, d_in=5\)"):
        linear_map(x[:, 1:], weight)
    for bias in (jnp.ones(1), jnp.ones((1, 12))):
        with pytest.raises(ValueError, match=r"bias has shape .*; expected \(d_model=12,\)"):
            linear_map(x, weight, bias)


# Patches


@pytest.mark.equation("eq-tokens-patches")
def test_image_to_patches_by_hand():
    image = jnp.arange(24).reshape(4, 6, 1)
    patches = image_to_patches(image, (2, 3))
    assert patches.tolist() == [
        [0, 1, 2, 6, 7, 8],
        [3, 4, 5, 9, 10, 11],
        [12, 13, 14, 18, 19, 20],
        [15, 16, 17, 21, 22, 23],
    ]


@pytest.mark.equation("eq-tokens-patches")
def test_image_to_patches_equals_the_formula_index_by_index():
    height, width, channels, tall, wide = 6, 20, 3, 2, 5
    image = np.random.default_rng(0).normal(size=(height, width, channels)).astype(np.float32)
    patches = np.asarray(image_to_patches(jnp.asarray(image), (tall, wide)))
    assert patches.shape == (3 * 4, 2 * 5 * 3)
    for (y, x, c), value in np.ndenumerate(image):
        patch = (y // tall) * (width // wide) + x // wide
        feature = ((y % tall) * wide + x % wide) * channels + c
        assert patches[patch, feature] == value


@pytest.mark.equation("eq-tokens-patches")
@settings(max_examples=10)
@given(st.tuples(*[st.integers(1, 4)] * 5))
def test_patches_to_image_undoes_image_to_patches(sizes):
    down, right, tall, wide, channels = sizes
    shape = (down * tall, right * wide, channels)
    image = jnp.asarray(np.random.default_rng(0).normal(size=shape), dtype=jnp.float32)
    patches = image_to_patches(image, (tall, wide))
    back = patches_to_image(patches, (tall, wide), height=shape[0], width=shape[1])
    np.testing.assert_array_equal(back, image)


def test_image_to_patches_of_one_side_are_square():
    image = jnp.arange(6 * 9 * 2).reshape(6, 9, 2)
    np.testing.assert_array_equal(image_to_patches(image, 3), image_to_patches(image, (3, 3)))


def test_image_to_patches_takes_numpy_integers(unchecked):
    image = jnp.arange(6 * 9 * 2).reshape(6, 9, 2)
    np.testing.assert_array_equal(image_to_patches(image, np.int64(3)), image_to_patches(image, 3))


def test_patches_bad_sizes(unchecked):
    with pytest.raises(ValueError, match=r"Patches of 4 x 4 pixels do not tile an image of 8 x 6.*Crop"):
        image_to_patches(jnp.ones((8, 6, 3)), 4)
    with pytest.raises(ValueError, match=r"image has shape \(8, 6\); expected .*image\[:, :, None\]"):
        image_to_patches(jnp.ones((8, 6)), 2)
    with pytest.raises(ValueError, match=r"patch_height is 0; expected at least 1"):
        image_to_patches(jnp.ones((8, 6, 3)), 0)
    with pytest.raises(ValueError, match=r"patches has shape \(5, 12\); expected .*takes 12 such patches"):
        patches_to_image(jnp.ones((5, 12)), 2, height=8, width=6)
    with pytest.raises(ValueError, match=r"patches have 11 features; expected a multiple of 2 \* 2 pixels"):
        patches_to_image(jnp.ones((12, 11)), 2, height=8, width=6)
    with pytest.raises(ValueError, match=r"height is -4; expected at least 1"):
        patches_to_image(jnp.ones((2, 12)), 2, height=-4, width=-2)
    with pytest.raises(TypeError, match=r"patch_size is \(2, 2, 2\); expected one side or \(height, width\)"):
        image_to_patches(jnp.ones((8, 6, 3)), (2, 2, 2))


# Cosines


@pytest.mark.equation("eq-tokens-cosine")
def test_cosine_similarity_by_hand():
    x = jnp.array([[3.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    y = jnp.array([[1.0, 0.0], [0.0, -2.0]])
    half = 0.5**0.5
    np.testing.assert_allclose(cosine_similarity(x, y), [[1, 0], [half, -half], [0, 0]], atol=1e-7)


@pytest.mark.equation("eq-tokens-cosine")
def test_cosine_similarity_ignores_lengths_and_equals_a_float64_reference(key):
    x, y = jax.random.normal(key, (5, 3)), jax.random.normal(jax.random.key(1), (7, 3))
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    expected = a @ b.T / np.linalg.norm(a, axis=1)[:, None] / np.linalg.norm(b, axis=1)
    np.testing.assert_allclose(cosine_similarity(x, y), expected, atol=1e-6)
    np.testing.assert_allclose(cosine_similarity(7 * x, y / 3), expected, atol=1e-6)


def test_cosine_similarity_gradient(key, x64):
    x, y = jax.random.normal(key, (5, 3), jnp.float64), jax.random.normal(jax.random.key(1), (7, 3), jnp.float64)
    check_grads(jax.jit(lambda x, y: cosine_similarity(jnp.asarray(x), jnp.asarray(y))), (x, y), order=2)
    for_x, for_y = jax.grad(lambda x, y: cosine_similarity(x, y).sum(), argnums=(0, 1))(x.at[2].set(0), y)
    assert jnp.isfinite(for_x).all()
    assert jnp.isfinite(for_y).all()
    assert for_x[2].tolist() == [0, 0, 0]


def test_cosine_similarity_bad_widths(unchecked):
    with pytest.raises(ValueError, match=r"y has shape \(7, 4\); expected \(columns, d=3\)"):
        cosine_similarity(jnp.ones((5, 3)), jnp.ones((7, 4)))
