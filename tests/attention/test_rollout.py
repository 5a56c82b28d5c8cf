"""Chapter 11, where a model looks: attention followed through layers, and laid over the patches of an image."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flat import vit_config
from toy_models import drawn

import plainformer as pf

LAYERS, HEADS, ROWS = 3, 2, 7
rollout = jax.jit(pf.attention_rollout)


def rows_that_sum_to_one(*shape):
    """Drawn weights, each row a distribution."""
    numbers = np.exp(2 * np.random.default_rng(0).normal(size=shape))
    return (numbers / numbers.sum(axis=-1, keepdims=True)).astype(np.float32)


# Three layers of two heads over seven tokens.
WEIGHTS = rows_that_sum_to_one(LAYERS, HEADS, ROWS, ROWS)


@pytest.mark.equation("eq-vision-rollout")
def test_attention_rollout_by_hand():
    # First layer: the heads' mean is [[1/2, 1/2], [0, 1]]; with the identity, halved, [[3/4, 1/4], [0, 1]].
    # Second layer: the mean is [[1, 0], [1, 0]], so [[1, 0], [1/2, 1/2]]. The second times the first is what follows.
    first = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]
    second = [[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]]]
    found = pf.attention_rollout(jnp.array([first, second]))
    np.testing.assert_allclose(found, [[0.75, 0.25], [0.375, 0.625]], atol=1e-7)


@pytest.mark.equation("eq-vision-rollout")
def test_attention_rollout_agrees_with_a_loop_in_float64():
    numbers = WEIGHTS.astype(np.float64)
    expected = [[float(n == m) for m in range(ROWS)] for n in range(ROWS)]
    for layer in numbers:
        passed = [[(sum(h[n][m] for h in layer) / HEADS + (n == m)) / 2 for m in range(ROWS)] for n in range(ROWS)]
        expected = [[sum(row[k] * expected[k][m] for k in range(ROWS)) for m in range(ROWS)] for row in passed]
    np.testing.assert_allclose(rollout(WEIGHTS), expected, atol=1e-6)


@pytest.mark.equation("eq-vision-rollout")
def test_attention_rollout_rows_sum_to_one_and_each_layer_keeps_half():
    found = np.asarray(rollout(WEIGHTS))
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)
    assert (found >= 0).all()
    assert (np.diag(found) >= 0.5**LAYERS).all()


@pytest.mark.equation("eq-vision-rollout")
def test_attention_rollout_of_one_layer_that_looks_at_itself_is_the_identity():
    identity = np.tile(np.eye(5, dtype=np.float32), (1, 3, 1, 1))
    np.testing.assert_array_equal(rollout(identity), np.eye(5))


@pytest.mark.equation("eq-vision-rollout")
def test_attention_rollout_of_a_batch_is_that_of_each_image():
    several = np.stack([WEIGHTS, WEIGHTS[::-1]])
    found = rollout(several)
    assert found.shape == (2, ROWS, ROWS)
    for one, weights in zip(found, several, strict=True):
        np.testing.assert_allclose(one, rollout(weights), atol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.vmap(pf.attention_rollout))(several), found, atol=1e-6)
    assert np.abs(found[0] - found[1]).max() > 0.01  # the order of the layers matters


@pytest.mark.equation("eq-vision-class-attention")
def test_class_attention_lays_the_first_row_out_in_reading_order():
    weights = np.arange(49.0).reshape(7, 7)
    np.testing.assert_array_equal(pf.class_attention(weights, (2, 3)), [[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(pf.class_attention(weights, (3, 2)), [[1, 2], [3, 4], [5, 6]])


@pytest.mark.equation("eq-vision-class-attention")
def test_class_attention_of_every_layer_and_head_at_once():
    found = np.asarray(pf.class_attention(WEIGHTS, (2, 3)))
    assert found.shape == (LAYERS, HEADS, 2, 3)
    for place in np.ndindex(LAYERS, HEADS):
        np.testing.assert_array_equal(found[place], pf.class_attention(WEIGHTS[place], (2, 3)))
    np.testing.assert_allclose(found.sum(axis=(2, 3)), 1 - WEIGHTS[:, :, 0, 0], atol=1e-6)


@functools.cache
def model_that_looks_for_brightness():
    """With weights set by hand: the class token asks for brightness, of which a patch's first column tells."""
    config = vit_config(
        image_size=(6, 12),
        patch_size=(2, 3),
        num_classes=2,
        d_model=4,
        num_layers=1,
        num_heads=2,
        position_scheme="none",
        norm_placement="post",
        use_bias=False,
    )

    def parts(model):
        encoder, attention = model.encoder, model.encoder.stack.blocks[0].attention
        return encoder.embedding.weight, encoder.class_token, attention.query.weight, attention.key.weight

    embedding, token, query, key = (np.zeros(shape, np.float32) for shape in ((6, 4), 4, (4, 4), (4, 4)))
    embedding[:, 0] = token[1] = query[1, [0, 2]] = key[0, [0, 2]] = 1
    model = eqx.tree_at(parts, drawn(pf.ViT, config), [jnp.asarray(each) for each in (embedding, token, query, key)])
    return config, eqx.filter_jit(model.attention_weights)


@pytest.mark.equation("eq-vision-class-attention")
@pytest.mark.parametrize("bright", [(0, 2), (1, 0), (2, 3)])
def test_class_attention_is_brightest_where_the_image_is(bright):
    config, attention_weights = model_that_looks_for_brightness()
    image = np.zeros((3, 2, 4, 3, 1), np.float32)
    image[bright[0], :, bright[1]] = 1
    weights = attention_weights(image.reshape(6, 12, 1))
    for found in (*pf.class_attention(weights, config.grid)[0], pf.class_attention(rollout(weights), (3, 4))):
        found = np.asarray(found)
        assert found.shape == (3, 4)
        assert np.unravel_index(found.argmax(), found.shape) == bright
        dark = np.delete(found.reshape(-1), found.argmax())
        np.testing.assert_allclose(dark, dark[0])
        assert found.max() > 10 * dark[0]


def test_maps_stay_in_the_precision_of_the_weights():
    half = jnp.asarray(WEIGHTS, jnp.bfloat16)
    assert rollout(half).dtype == pf.class_attention(half, (2, 3)).dtype == jnp.bfloat16


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: pf.attention_rollout(np.zeros((2, 7, 7))),
            ValueError,
            r"weights has shape \(2, 7, 7\); expected \(\.\.\., layers, heads, rows, rows\)",
        ),
        (
            lambda: pf.attention_rollout(np.zeros((2, 3, 5, 7))),
            ValueError,
            r"weights has shape \(2, 3, 5, 7\); expected \(\.\.\., layers, heads, rows, rows\)",
        ),
        (
            lambda: pf.attention_rollout(np.zeros((2, 3, 5, 5), int)),
            TypeError,
            r"weights holds int64; expected floats",
        ),
        (lambda: pf.attention_rollout([[[[1.0]]]]), TypeError, r"weights is a list; expected an array"),
        (
            lambda: pf.class_attention(np.zeros((2, 3, 6, 6)), (2, 3)),
            ValueError,
            r"\(2, 3, 6, 6\); expected 7 rows and columns, .* 2 x 3 patches\. A model with pooling='mean' has no class",
        ),
        (lambda: pf.class_attention(np.zeros((7, 7)), (2, 0)), ValueError, r"grid_width is 0; expected at least 1"),
        (lambda: pf.class_attention(np.zeros((7, 7)), (2, 3, 1)), TypeError, r"grid is \(2, 3, 1\); expected a pair"),
        (lambda: pf.class_attention(np.zeros((7, 7)), 6), TypeError, r"grid is 6; expected a pair, \(height, width\)"),
        (lambda: pf.class_attention(np.zeros((7, 7), int), (2, 3)), TypeError, r"weights holds int64; expected floats"),
        (
            lambda: pf.class_attention(np.zeros((7, 5)), (2, 3)),
            ValueError,
            r"weights has shape \(7, 5\); .*rows, rows\)",
        ),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
