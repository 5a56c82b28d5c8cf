"""Chapter 09's vision transformer at its edges: sizes that do not fit, images of another kind, what one is told."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf

KEY = jax.random.key(0)
SIZES = {
    "image_size": (6, 8),
    "patch_size": (3, 2),
    "num_classes": 5,
    "channels": 3,
    "d_model": 12,
    "num_layers": 1,
    "num_heads": 3,
}


def new_model(**options):
    return pf.ViT(pf.ViTConfig(**SIZES | options), key=KEY)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"image_size": (6, 7)},
            ValueError,
            r"Patches of 3 x 2 pixels do not tile an image of 6 x 7; expected divisors",
        ),
        ({"image_size": (7, 8)}, ValueError, r"do not tile an image of 7 x 8; .*crop or resize"),
        ({"patch_size": 9}, ValueError, r"Patches of 9 x 9 pixels do not tile an image of 6 x 8"),
        ({"image_size": 0}, ValueError, r"image_size\[0\] is 0; expected at least 1"),
        ({"patch_size": (3, -2)}, ValueError, r"patch_size\[1\] is -2; expected at least 1"),
        ({"patch_size": (3, 2.0)}, TypeError, r"patch_size\[1\] is 2\.0; expected a whole number"),
        ({"image_size": (6, 8, 3)}, TypeError, r"image_size is \(6, 8, 3\); expected one side, or \(height, width\)"),
        ({"image_size": "8"}, TypeError, r"image_size is '8'; expected one side, or \(height, width\)"),
        ({"patch_size": True}, TypeError, r"patch_size is True; expected one side"),
        ({"num_classes": 0}, ValueError, r"num_classes is 0; expected at least 1"),
        ({"channels": 1.5}, TypeError, r"channels is 1\.5; expected a whole number"),
        ({"pooling": "max"}, ValueError, r"pooling is 'max'; expected one of 'class', 'mean'"),
        (
            {"positions": "rotary"},
            ValueError,
            r"positions is 'rotary'; expected one of 'learned', 'sinusoidal_2d', 'no",
        ),
        (
            {"d_model": 18, "positions": "sinusoidal_2d"},
            ValueError,
            r"d_model is 18; expected a multiple of 4: rows and",
        ),
        ({"d_model": 13}, ValueError, r"d_model=13 is not a multiple of num_heads=3"),
        ({"num_layers": 0}, ValueError, r"num_layers is 0; expected at least 1"),
        ({"d_ff": 0}, ValueError, r"d_ff is 0; expected at least 1"),
        ({"placement": "both"}, ValueError, r"placement is 'both'; expected one of 'pre', 'post'"),
        ({"norm": "batch"}, ValueError, r"norm is 'batch'; expected one of 'layer', 'rms'"),
        ({"activation": "tanh"}, ValueError, r"activation is 'tanh'; expected one of"),
        ({"dropout_rate": 1.0}, ValueError, r"dropout_rate is 1\.0; expected a probability"),
        ({"use_bias": 1}, TypeError, r"use_bias is 1; expected True or False"),
    ],
)
def test_vit_config_names_what_is_wrong_before_a_model_is_made(options, error, message):
    with pytest.raises(error, match=message):
        pf.ViTConfig(**SIZES | options)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("method", [lambda model: model, lambda model: model.patches, lambda model: model.weights])
@pytest.mark.parametrize(
    ("options", "image", "error", "message"),
    [
        (
            {},
            jnp.zeros((6, 8, 3), jnp.uint8),
            TypeError,
            r"images hold uint8; expected floats, .* 255, pass images / 255",
        ),
        ({}, np.zeros((6, 8, 3), int), TypeError, r"images hold int64; expected floats, .* pass images / 255"),
        ({}, jnp.zeros((6, 8, 3), bool), TypeError, r"images hold bool; expected floats"),
        ({}, [[[0.0]]], TypeError, r"images is a list; expected an array .*Try jnp\.asarray\(images\)"),
        (
            {},
            jnp.zeros((6, 8, 1)),
            ValueError,
            r"\(6, 8, 1\); expected \(height=6, width=8, channels=3\)\. .*channels=3",
        ),
        ({}, jnp.zeros((8, 6, 3)), ValueError, r"\(8, 6, 3\); .* reads images of 6 x 8 pixels"),
        ({}, jnp.zeros((12, 8, 3)), ValueError, r"\(12, 8, 3\); .* reads images of 6 x 8 pixels .* and no others"),
        ({}, jnp.zeros((3, 6, 8)), ValueError, r"Channels come last here: pass jnp\.moveaxis\(images, -3, -1\)"),
        (
            {"channels": 1},
            jnp.zeros((6, 8)),
            ValueError,
            r"grey images without an axis of channels: pass images\[",
        ),
    ],
)
def test_an_image_of_another_kind_is_named(options, image, error, message, method):
    with pytest.raises(error, match=message):
        method(new_model(**options))(image)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("options", "images", "message"),
    [
        ({}, jnp.zeros((7, 3, 6, 8)), r"\(7, 3, 6, 8\); expected \(num_images, .*Channels come last here"),
        ({}, jnp.zeros((7, 6, 8, 1)), r"\(7, 6, 8, 1\); expected \(num_images, height=6, width=8, channels=3\)"),
        ({"channels": 1}, jnp.zeros((7, 6, 8)), r"\(7, 6, 8\); .* grey images .*: pass images\[\.\.\., None\]"),
        ({"channels": 1}, jnp.zeros((7, 1, 6, 8)), r"\(7, 1, 6, 8\); .* pass jnp\.moveaxis\(images, -3, -1\)"),
        ({}, jnp.zeros((2, 7, 6, 8, 3)), r"\(2, 7, 6, 8, 3\); expected \(height=6, width=8, channels=3\)"),
        ({}, jnp.zeros((0, 6, 8, 3)), r"There are 0 images; expected at least one"),
    ],
)
def test_several_images_of_another_kind_are_named(options, images, message):
    with pytest.raises(ValueError, match=message):
        new_model(**options)(images)


@pytest.mark.usefixtures("unchecked")
def test_bad_images_are_named_while_tracing():
    model = new_model()
    with pytest.raises(TypeError, match=r"images hold int32; expected floats"):
        jax.jit(lambda images: model(images))(jnp.zeros((7, 6, 8, 3), int))


@pytest.mark.usefixtures("unchecked")
def test_vit_weights_want_a_single_image():
    with pytest.raises(ValueError, match=r"There are 7 images; expected a single one: use jax\.vmap for several"):
        new_model().weights(jnp.zeros((7, 6, 8, 3)))


def test_vit_takes_numpy_images_and_an_image_that_is_one_patch():
    model = new_model(image_size=(3, 2), positions="sinusoidal_2d")
    image = np.full((3, 2, 3), 0.5, np.float32)
    assert model.config.grid == (1, 1)
    np.testing.assert_array_equal(model(jnp.asarray(image)), model(jnp.asarray(image)[None])[0])
    assert model.weights(jnp.asarray(image)).shape == (1, 3, 2, 2)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: pf.patch_kernel(new_model().encoder.embedding, (3, 2), 1),
            ValueError,
            r"embedding\.weight has shape \(18, 12\); expected \(d_in=6, d_model\)\. A patch of 3 x 2 .* has 6 features",
        ),
        (
            lambda: pf.patch_kernel(new_model().encoder.embedding, 3.0, 1),
            TypeError,
            r"patch_size is 3\.0; expected one",
        ),
        (
            lambda: pf.patch_kernel(new_model().encoder.embedding, 3, 0),
            ValueError,
            r"channels is 0; expected at least 1",
        ),
        (
            lambda: pf.sinusoidal_positions_2d(2, 4, 6),
            ValueError,
            r"d_model is 6; expected a multiple of 4: rows and co",
        ),
        (lambda: pf.sinusoidal_positions_2d(0, 4, 8), ValueError, r"down is 0; expected at least 1"),
        (lambda: pf.sinusoidal_positions_2d(2, 4.0, 8), TypeError, r"right is 4\.0; expected a whole number"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
