"""Chapter 09, the vision transformer: how an image becomes rows, what is made of them, and when order matters."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from closeness import assert_close
from jax.test_util import check_grads
from redraw import redrawn

import plainformer as pf

# 2 x 4 patches of 3 x 2 pixels, 18 features each: every size differs from every other that it could be taken for.
HEIGHT, WIDTH, TALL, WIDE, CHANNELS, CLASSES, IMAGES, D_MODEL, HEADS = 6, 8, 3, 2, 3, 5, 7, 24, 6
DOWN, RIGHT = 2, 4
SIZES = {
    "image_size": (HEIGHT, WIDTH),
    "patch_size": (TALL, WIDE),
    "num_classes": CLASSES,
    "channels": CHANNELS,
    "d_model": D_MODEL,
    "num_layers": 2,
    "num_heads": HEADS,
    "d_ff": 10,
}
KINDS = {
    "class-learned": {},
    "mean-learned-post": {"pooling": "mean", "placement": "post"},
    "class-sinusoidal": {"positions": "sinusoidal_2d"},
    "mean-sinusoidal-modern": {
        "pooling": "mean",
        "positions": "sinusoidal_2d",
        "norm": "rms",
        "activation": "swiglu",
        "use_bias": False,
    },
    "class-none": {"positions": "none"},
    "mean-none": {"pooling": "mean", "positions": "none"},
}
call = eqx.filter_jit(lambda model, images, key=None: model(images, key=key))


def new_model(key, kind="class-learned", **options):
    """A model whose parameters are all drawn: biases of zero would hide a slip, small positions an offset."""
    return redrawn(pf.ViT(pf.ViTConfig(**SIZES | KINDS[kind] | options), key=key), key)


@pytest.fixture
def image(key):
    """One image, taller patches than wide."""
    return jax.random.uniform(key, (HEIGHT, WIDTH, CHANNELS))


@pytest.fixture
def images(key):
    """Seven images."""
    return jax.random.uniform(key, (IMAGES, HEIGHT, WIDTH, CHANNELS))


@pytest.mark.equation("eq-vision-model")
@pytest.mark.parametrize("kind", KINDS)
def test_vit_agrees_with_a_loop_in_float64(kind, image, key):
    model = new_model(key, kind)
    logits = call(model, image)
    assert logits.shape == (CLASSES,)
    assert_close(logits, reference.vision_transformer(image, model))


@pytest.mark.parametrize("kind", ["class-learned", "mean-sinusoidal-modern"])
def test_vit_of_several_images_is_each_image_alone(kind, images, key):
    model = new_model(key, kind)
    together = call(model, images)
    assert together.shape == (IMAGES, CLASSES)
    for logits, image in zip(together, images, strict=True):
        assert_close(logits, call(model, image))


@pytest.mark.equation("eq-vision-patch-convolution")
@pytest.mark.parametrize("use_bias", [True, False])
def test_patch_kernel_makes_of_a_strided_convolution_the_patch_embedding(use_bias, images, key):
    embedding = new_model(key, use_bias=use_bias).encoder.embedding
    rows = jax.vmap(lambda image: embedding(pf.image_to_patches(image, (TALL, WIDE))))(images)
    kernel = pf.patch_kernel(embedding, (TALL, WIDE), CHANNELS)
    assert kernel.shape == (TALL, WIDE, CHANNELS, D_MODEL)
    grid = jax.lax.conv_general_dilated(
        images, kernel, (TALL, WIDE), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    assert grid.shape == (IMAGES, DOWN, RIGHT, D_MODEL)
    grid = grid if embedding.bias is None else grid + embedding.bias[None, None, None, :]
    assert_close(rows, grid.reshape(IMAGES, DOWN * RIGHT, D_MODEL))


@pytest.mark.equation("eq-vision-patch-convolution")
def test_patch_kernel_of_square_patches_takes_one_side(key):
    embedding = pf.LinearEmbedding(4 * CHANNELS, D_MODEL, key=key)
    np.testing.assert_array_equal(
        pf.patch_kernel(embedding, 2, CHANNELS), embedding.weight.reshape(2, 2, CHANNELS, D_MODEL)
    )


def test_vit_reads_patches_along_the_rows_of_the_image(key):
    """A pixel's only trace is in the patch that it lies in, counted to the right and then down."""
    model = new_model(key)
    for row in range(HEIGHT):
        for column in range(WIDTH):
            patches = np.asarray(model.patches(jnp.zeros((HEIGHT, WIDTH, CHANNELS)).at[row, column, 1].set(1.0)))
            patch, feature = np.argwhere(patches)[0]
            assert patches.sum() == 1
            assert patch == (row // TALL) * RIGHT + column // WIDE
            assert feature == ((row % TALL) * WIDE + column % WIDE) * CHANNELS + 1


def test_vit_patches_of_several_images_are_those_of_each(images, key):
    model = new_model(key)
    found = model.patches(images)
    assert found.shape == (IMAGES, DOWN * RIGHT, TALL * WIDE * CHANNELS)
    for patches, image in zip(found, images, strict=True):
        np.testing.assert_array_equal(patches, pf.image_to_patches(image, (TALL, WIDE)))


@pytest.mark.equation("eq-vision-model")
def test_vit_judges_by_the_class_token_which_comes_first(image, key):
    model = eqx.tree_at(lambda m: (m.encoder.blocks, m.encoder.final_norm), new_model(key), ((), None))
    first = model.encoder.class_vector + model.encoder.positions.table[0]
    assert_close(call(model, image), first @ model.out_weight + model.out_bias)
    # Without attention the class token hears nothing of the image; with it, it does.
    assert np.abs(new_model(key)(image) - new_model(key)(1 - image)).max() > 0.01


@pytest.mark.equation("eq-vision-model")
def test_vit_with_mean_pooling_judges_by_the_mean_of_all_patches(image, key):
    bare = eqx.tree_at(lambda m: m.encoder.blocks, new_model(key, "mean-learned-post"), ())
    rows = bare.encoder.embedding(bare.patches(image)) + bare.encoder.positions.table
    assert bare.encoder.class_vector is None
    assert_close(call(bare, image), rows.mean(axis=0) @ bare.out_weight + bare.out_bias)


def permuted(image, order):
    """The image with its patches in another order."""
    patches = pf.image_to_patches(image, (TALL, WIDE))[jnp.asarray(order)]
    return pf.patches_to_image(patches, (TALL, WIDE), height=HEIGHT, width=WIDTH)


@pytest.mark.parametrize("kind", ["class-none", "mean-none"])
def test_vit_without_positions_cannot_tell_shuffled_patches(kind, image, key):
    model = new_model(key, kind)
    other = call(model, permuted(image, [3, 7, 0, 5, 2, 6, 4, 1]))
    expected = call(model, image)
    np.testing.assert_allclose(other, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("kind", ["class-learned", "mean-learned-post", "class-sinusoidal", "mean-sinusoidal-modern"])
def test_vit_with_positions_sees_every_exchange_of_two_patches(kind, image, key):
    model = new_model(key, kind)
    expected = call(model, image)
    for one in range(1, DOWN * RIGHT):
        order = list(range(DOWN * RIGHT))
        order[0], order[one] = order[one], order[0]
        assert np.abs(call(model, permuted(image, order)) - expected).max() > 1e-3 * np.abs(expected).max()


@pytest.mark.equation("eq-vision-sinusoid-2d")
def test_sinusoidal_positions_2d_by_hand():
    sin1, cos1, sin2, cos2 = 0.8414710, 0.5403023, 0.9092974, -0.4161468
    found = pf.sinusoidal_positions_2d(2, 3, 4)
    expected = [
        [0, 1, 0, 1],
        [0, 1, sin1, cos1],
        [0, 1, sin2, cos2],
        [sin1, cos1, 0, 1],
        [sin1, cos1, sin1, cos1],
        [sin1, cos1, sin2, cos2],
    ]
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.equation("eq-vision-sinusoid-2d")
def test_sinusoidal_positions_2d_agree_with_a_loop_in_float64():
    found = pf.sinusoidal_positions_2d(5, 3, 16)
    np.testing.assert_allclose(found, reference.sinusoid_2d(5, 3, 16), atol=1e-6)


@pytest.mark.equation("eq-vision-sinusoid-2d")
@pytest.mark.parametrize("pooling", ["class", "mean"])
def test_grid_positions_give_the_class_token_no_code(pooling, key):
    scheme = new_model(key, "class-sinusoidal", pooling=pooling).encoder.positions
    codes = pf.sinusoidal_positions_2d(DOWN, RIGHT, D_MODEL)
    found = scheme.embed(jnp.zeros((DOWN * RIGHT + (pooling == "class"), D_MODEL)))
    np.testing.assert_array_equal(scheme.embed(found[2:4], jnp.array([2, 3])), 2 * found[2:4])
    if pooling == "class":
        assert (found[0] == 0).all()
        found = found[1:]
    np.testing.assert_array_equal(found, codes)
    assert jax.tree.leaves(scheme) == []  # nothing to learn


@pytest.mark.parametrize("kind", ["class-learned", "mean-none"])
def test_vit_weights_are_those_of_the_encoder(kind, image, key):
    model = new_model(key, kind)
    rows = DOWN * RIGHT + (model.config.pooling == "class")
    weights = model.weights(image)
    assert weights.shape == (2, HEADS, rows, rows)
    np.testing.assert_allclose(weights.sum(axis=3), 1, atol=1e-6)
    np.testing.assert_array_equal(weights, model.encoder.weights(model.patches(image)))


@pytest.mark.equation("eq-vision-model")
def test_vit_gradients(x64, key):
    small = {"image_size": (2, 3), "patch_size": 1, "channels": 2, "d_model": 8, "num_heads": 2, "d_ff": 4}
    model = new_model(key, "class-sinusoidal", **small)
    image = jax.random.uniform(key, (2, 3, 2))
    arrays, rest = eqx.partition(model, eqx.is_array)
    logits = jax.jit(lambda arrays, image: eqx.combine(arrays, rest)(image))
    check_grads(logits, (arrays, image), order=1, modes=["rev"])


def test_vit_lets_a_gradient_reach_every_parameter(images, key):
    model = new_model(key)
    labels = jnp.arange(IMAGES) % CLASSES
    gradients = eqx.filter_grad(pf.classification_loss)(model, (images, labels))
    for leaf in jax.tree.leaves(gradients):
        assert np.isfinite(leaf).all()
        # A shift of all scores of a query changes nothing: the keys' biases alone have no effect.
    assert sum(np.abs(leaf).max() < 1e-7 for leaf in jax.tree.leaves(gradients)) == 2
    assert all(np.abs(block.attention.key_bias).max() < 1e-7 for block in gradients.encoder.blocks)


def test_vit_drops_only_with_a_key(image, key):
    model, sober = (new_model(key, dropout_rate=rate) for rate in (0.5, 0.0))
    one, other = jax.random.split(key)
    np.testing.assert_array_equal(call(model, image), call(sober, image))
    np.testing.assert_array_equal(call(sober, image, one), call(sober, image))
    assert np.abs(call(model, image, one) - call(model, image)).max() > 0.1
    assert np.abs(call(model, image, one) - call(model, image, other)).max() > 0.1


def test_vit_keeps_the_precision_of_its_weights(image, key):
    model = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), new_model(key, "class-sinusoidal"))
    logits = model(image.astype(jnp.bfloat16))
    assert logits.dtype == jnp.bfloat16
    expected = new_model(key, "class-sinusoidal")(image)
    np.testing.assert_allclose(logits.astype(float), expected, atol=0.05 * float(np.abs(expected).max()))


@pytest.mark.parametrize("kind", KINDS)
def test_vit_is_saved_and_read_back(kind, image, key, tmp_path):
    model = new_model(key, kind)
    path = tmp_path / "vision.safetensors"
    pf.save_model(path, model)
    again = pf.load_model(path, pf.ViT)
    assert again.config == model.config
    assert hash(again.config) == hash(model.config)  # sizes are pairs again, not the lists of JSON
    np.testing.assert_array_equal(call(again, image), call(model, image))


def test_vit_config_keeps_sizes_as_pairs():
    one, other = (pf.ViTConfig(image_size=size, patch_size=2, num_classes=3) for size in (8, [8, 8]))
    assert one == other
    assert (one.image_size, one.patch_size, one.grid) == ((8, 8), (2, 2), (4, 4))
    assert pf.ViTConfig(**SIZES).grid == (DOWN, RIGHT)
    assert isinstance(other.image_size, tuple)


def test_vit_has_as_many_parameters_as_counted_by_hand():
    def count(**options):
        config = pf.ViTConfig(**SIZES | options)
        return pf.count_parameters(eqx.filter_eval_shape(lambda key: pf.ViT(config, key=key), jax.random.key(0)))

    block = 4 * (24 * 24 + 24) + (24 * 10 + 10) + (10 * 24 + 24) + 2 * 48
    rest = (18 * 24 + 24) + 2 * block + 48 + (24 * 5 + 5)
    assert count() == rest + 24 + 9 * 24
    assert count(pooling="mean") == rest + 8 * 24
    assert count(positions="sinusoidal_2d") == rest + 24
    assert count(positions="none", pooling="mean", placement="post") == rest - 48
    assert count(positions="none", pooling="mean", use_bias=False) == (
        18 * 24 + 2 * (4 * 24 * 24 + 2 * 24 * 10 + 48) + 24 + 24 * 5
    )


def test_fit_teaches_a_vit_twenty_digits(key):
    images, labels = (part[:20] for part in pf.digits().training)
    config = pf.ViTConfig(image_size=8, patch_size=2, num_classes=10, d_model=24, num_layers=2, num_heads=3)
    result = pf.fit(
        pf.ViT(config, key=key),
        pf.classification_loss,
        lambda step: (images, labels),
        pf.TrainingConfig(num_steps=60, learning_rate=3e-3, warmup_steps=5, seed=0),
        progress=False,
    )
    assert (np.asarray(call(result.model, images)).argmax(axis=1) == labels).all()
