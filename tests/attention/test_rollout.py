"""Chapter 09, where a model looks: attention followed through layers, and laid over the patches of an image."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf

LAYERS, HEADS, ROWS = 3, 2, 7


@pytest.fixture
def weights(key):
    """Three layers of two heads over seven tokens, each row a distribution."""
    return jax.nn.softmax(2 * jax.random.normal(key, (LAYERS, HEADS, ROWS, ROWS)), axis=-1)


@pytest.mark.equation("eq-vision-rollout")
def test_attention_rollout_by_hand():
    # First layer: the heads' mean is [[1/2, 1/2], [0, 1]]; with the identity, halved, [[3/4, 1/4], [0, 1]].
    # Second layer: the mean is [[1, 0], [1, 0]], so [[1, 0], [1/2, 1/2]]. The second times the first is what follows.
    first = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]
    second = [[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]]]
    found = pf.attention_rollout(jnp.array([first, second]))
    np.testing.assert_allclose(found, [[0.75, 0.25], [0.375, 0.625]], atol=1e-7)


@pytest.mark.equation("eq-vision-rollout")
def test_attention_rollout_agrees_with_a_loop_in_float64(weights):
    numbers = np.asarray(weights, np.float64)
    expected = [[float(n == m) for m in range(ROWS)] for n in range(ROWS)]
    for layer in numbers:
        passed = [[(sum(h[n][m] for h in layer) / HEADS + (n == m)) / 2 for m in range(ROWS)] for n in range(ROWS)]
        expected = [[sum(row[k] * expected[k][m] for k in range(ROWS)) for m in range(ROWS)] for row in passed]
    np.testing.assert_allclose(pf.attention_rollout(weights), expected, atol=1e-6)


@pytest.mark.equation("eq-vision-rollout")
def test_attention_rollout_rows_sum_to_one_and_each_layer_keeps_half(weights):
    found = pf.attention_rollout(weights)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)
    assert (found >= 0).all()
    assert (jnp.diag(found) >= 0.5**LAYERS).all()


@pytest.mark.equation("eq-vision-rollout")
def test_attention_rollout_of_one_layer_that_looks_at_itself_is_the_identity():
    identity = jnp.tile(jnp.eye(5), (1, 3, 1, 1))
    np.testing.assert_array_equal(pf.attention_rollout(identity), np.eye(5))


@pytest.mark.equation("eq-vision-class-attention")
def test_class_attention_lays_the_first_row_out_in_reading_order():
    weights = jnp.arange(49.0).reshape(7, 7)
    np.testing.assert_array_equal(pf.class_attention(weights, (2, 3)), [[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(pf.class_attention(weights, (3, 2)), [[1, 2], [3, 4], [5, 6]])


@pytest.mark.equation("eq-vision-class-attention")
def test_class_attention_of_every_layer_and_head_at_once(weights):
    found = pf.class_attention(weights, (2, 3))
    assert found.shape == (LAYERS, HEADS, 2, 3)
    for layer in range(LAYERS):
        for head in range(HEADS):
            np.testing.assert_array_equal(found[layer, head], pf.class_attention(weights[layer, head], (2, 3)))
    np.testing.assert_allclose(found.sum(axis=(2, 3)), 1 - weights[:, :, 0, 0], atol=1e-6)


@pytest.mark.equation("eq-vision-class-attention")
@pytest.mark.parametrize("bright", [(0, 2), (1, 0), (2, 3)])
def test_class_attention_is_brightest_where_the_image_is(bright, key):
    """With weights set by hand: the class token asks for brightness, of which a patch's first column tells."""
    config = pf.ViTConfig(
        image_size=(6, 12),
        patch_size=(2, 3),
        num_classes=2,
        d_model=4,
        num_layers=1,
        num_heads=2,
        positions="none",
        placement="post",
        use_bias=False,
    )
    model = pf.ViT(config, key=key)
    model = eqx.tree_at(
        lambda m: (
            m.encoder.embedding.weight,
            m.encoder.class_vector,
            m.encoder.blocks[0].attention.query_weight,
            m.encoder.blocks[0].attention.key_weight,
        ),
        model,
        (
            jnp.zeros((6, 4)).at[:, 0].set(1.0),
            jnp.zeros(4).at[1].set(1.0),
            jnp.zeros((4, 4)).at[1, jnp.array([0, 2])].set(1.0),
            jnp.zeros((4, 4)).at[0, jnp.array([0, 2])].set(1.0),
        ),
    )
    down, right = bright
    image = jnp.zeros((6, 12, 1)).at[2 * down : 2 * down + 2, 3 * right : 3 * right + 3].set(1.0)
    weights = model.weights(image)
    rollout = pf.attention_rollout(weights)
    for found in (*pf.class_attention(weights, config.grid)[0], pf.class_attention(rollout, (3, 4))):
        assert found.shape == (3, 4)
        assert np.unravel_index(found.argmax(), found.shape) == bright
        dark = np.delete(found.reshape(-1), found.argmax())
        np.testing.assert_allclose(dark, dark[0])
        assert found.max() > 10 * dark[0]


def test_maps_stay_in_the_precision_of_the_weights(weights):
    half = weights.astype(jnp.bfloat16)
    assert pf.attention_rollout(half).dtype == pf.class_attention(half, (2, 3)).dtype == jnp.bfloat16


def test_maps_can_be_compiled_and_mapped_over_images(weights):
    several = jnp.stack([weights, weights[::-1]])
    found = jax.jit(jax.vmap(pf.attention_rollout))(several)
    assert found.shape == (2, ROWS, ROWS)
    np.testing.assert_allclose(found[0], pf.attention_rollout(weights), atol=1e-6)
    assert np.abs(found[0] - found[1]).max() > 0.01  # the order of the layers matters


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: pf.attention_rollout(jnp.zeros((2, 7, 7))),
            ValueError,
            r"weights has shape \(2, 7, 7\); expected \(layers, heads, rows, columns\)",
        ),
        (
            lambda: pf.attention_rollout(jnp.zeros((2, 3, 5, 7))),
            ValueError,
            r"weights has shape \(2, 3, 5, 7\); expected as many keys as queries",
        ),
        (
            lambda: pf.attention_rollout(jnp.zeros((2, 3, 5, 5), int)),
            TypeError,
            r"weights holds int32; expected floats",
        ),
        (lambda: pf.attention_rollout([[[[1.0]]]]), TypeError, r"weights is a list; expected an array"),
        (
            lambda: pf.class_attention(jnp.zeros((2, 3, 6, 6)), (2, 3)),
            ValueError,
            r"\(2, 3, 6, 6\); expected 7 rows and columns .* 2 x 3 patches\. A model with pooling='mean' has no class",
        ),
        (lambda: pf.class_attention(jnp.zeros((7, 7)), (2, 0)), ValueError, r"right is 0; expected at least 1"),
        (lambda: pf.class_attention(jnp.zeros((7, 7)), (2, 3, 1)), TypeError, r"grid is \(2, 3, 1\); expected a pair"),
        (lambda: pf.class_attention(jnp.zeros((7, 7)), 6), TypeError, r"grid is 6; expected a pair, \(down, right\)"),
        (
            lambda: pf.class_attention(jnp.zeros((7, 7), int), (2, 3)),
            TypeError,
            r"weights holds int32; expected floats",
        ),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
