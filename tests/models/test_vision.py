"""The vision transformer: how an image becomes rows, what is made of them, and when order matters."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from closeness import assert_close
from flat import vit_config
from jax.test_util import check_grads
from toy_models import drawn

import plainformer as pf
from plainformer.models.vision import patch_kernel

# 2 x 4 patches of 3 x 2 pixels, 18 features each: every size differs from every other that it could be taken for.
HEIGHT, WIDTH, PATCH_HEIGHT, PATCH_WIDTH, CHANNELS, CLASSES, IMAGES, D_MODEL, HEADS = 6, 8, 3, 2, 3, 5, 7, 24, 6
PATCH, GRID = (PATCH_HEIGHT, PATCH_WIDTH), (2, 4)
NUM_PATCHES = 8
SIZES = {
    "image_size": (HEIGHT, WIDTH),
    "patch_size": PATCH,
    "num_classes": CLASSES,
    "channels": CHANNELS,
    "d_model": D_MODEL,
    "num_layers": 2,
    "num_heads": HEADS,
    "d_ff": 10,
}
KINDS = {
    "class-learned": {},
    "mean-learned-post": {"pooling": "mean", "norm_placement": "post"},
    "class-sinusoidal": {"position_scheme": "sinusoidal_2d"},
    "mean-sinusoidal-modern": {
        "pooling": "mean",
        "position_scheme": "sinusoidal_2d",
        "norm": "rms",
        "activation": "swiglu",
        "use_bias": False,
    },
    "class-none": {"position_scheme": "none"},
}
KEY = jax.random.key(20170612)
NUMBERS = np.random.default_rng(10)
PIXELS = NUMBERS.random((IMAGES, HEIGHT, WIDTH, CHANNELS)).astype(np.float32)
IMAGE = jnp.asarray(PIXELS[0])
call = eqx.filter_jit(lambda model, images: model(images))


@functools.cache
def new_model(kind="class-learned", **fields):
    """A model with all its parameters drawn: biases of zero would hide a slip, small positions an offset."""
    return drawn(pf.ViT, vit_config(**SIZES | KINDS[kind] | fields))


@pytest.mark.equation("eq-vision-model")
@pytest.mark.parametrize("kind", ["class-sinusoidal", "mean-learned-post"])
def test_vit_agrees_with_a_loop_in_float64(kind):
    model = new_model(kind)
    logits = model(IMAGE)
    assert logits.shape == (CLASSES,)
    assert_close(logits, reference.vision_transformer(IMAGE, model))


@pytest.mark.equation("eq-vision-patch-convolution")
def test_patch_kernel_makes_of_a_strided_convolution_the_patch_embedding():
    model, images = new_model(), jnp.asarray(PIXELS)
    embedding = model.encoder.embedding
    rows = embedding(model.patches(images))
    kernel = patch_kernel(embedding, PATCH, CHANNELS)
    assert kernel.shape == (*PATCH, CHANNELS, D_MODEL)
    layout = ("NHWC", "HWIO", "NHWC")
    convolved = jax.lax.conv_general_dilated(images, kernel, PATCH, "VALID", dimension_numbers=layout)
    assert convolved.shape == (IMAGES, *GRID, D_MODEL)
    assert_close(rows, convolved.reshape(IMAGES, NUM_PATCHES, D_MODEL) + embedding.bias)


@pytest.mark.equation("eq-vision-patch-convolution")
def test_patch_kernel_of_square_patches_takes_one_side():
    embedding = pf.Linear(4 * CHANNELS, D_MODEL, key=KEY)
    kernel = patch_kernel(embedding, 2, CHANNELS)
    np.testing.assert_array_equal(kernel, embedding.weight.reshape(2, 2, CHANNELS, D_MODEL))


@pytest.mark.equation("eq-vision-sinusoid-2d")
@pytest.mark.parametrize("pooling", ["class", "mean"])
def test_vit_gives_each_patch_the_code_of_its_place_and_the_class_token_none(pooling):
    model = new_model("class-sinusoidal", pooling=pooling)
    entering = model.residual_stream(IMAGE)[0]
    if pooling == "class":
        np.testing.assert_array_equal(entering[0], model.encoder.class_token)
        entering = entering[1:]
    codes = reference.sinusoid_2d(*GRID, D_MODEL)
    assert_close(entering, model.encoder.embedding(model.patches(IMAGE)) + codes)


@pytest.mark.equation("eq-vision-model")
def test_vit_gradients(x64):
    small = {"image_size": (2, 3), "patch_size": 1, "channels": 2, "d_model": 8, "num_heads": 2, "d_ff": 4}
    model = drawn(pf.ViT, vit_config(**SIZES | small, position_scheme="sinusoidal_2d"))
    arrays, rest = eqx.partition(model, eqx.is_array)
    logits = jax.jit(lambda arrays, image: eqx.combine(arrays, rest)(image))
    check_grads(logits, (arrays, jnp.asarray(NUMBERS.random((2, 3, 2)))), order=1, modes=["rev"])


@pytest.mark.usefixtures("unchecked")
def test_vit_config_keeps_sizes_as_pairs():
    one, other = (vit_config(image_size=size, patch_size=2, num_classes=3) for size in (8, [8, 8]))
    assert hash(one) == hash(other)
    assert (one.image_size, one.patch_size, one.grid) == ((8, 8), (2, 2), (4, 4))
    assert vit_config(**SIZES).grid == GRID


def test_vit_has_as_many_parameters_as_counted_by_hand():
    def count(**fields):
        config = vit_config(**SIZES | fields)
        return pf.count_parameters(eqx.filter_eval_shape(lambda key: pf.ViT(config, key=key), KEY))

    block = 4 * (24 * 24 + 24) + (24 * 10 + 10) + (10 * 24 + 24) + 2 * 48
    rest = (18 * 24 + 24) + 2 * block + 48 + (24 * 5 + 5)
    assert count() == rest + 24 + 9 * 24
    assert count(pooling="mean") == rest + 8 * 24
    assert count(position_scheme="sinusoidal_2d") == rest + 24
    assert count(position_scheme="none", pooling="mean", norm_placement="post") == rest - 48
    assert count(position_scheme="none", pooling="mean", use_bias=False) == (
        18 * 24 + 2 * (4 * 24 * 24 + 2 * 24 * 10 + 48) + 24 + 24 * 5
    )


def test_fit_teaches_a_vit_twenty_digits():
    images, labels = (part[:20] for part in pf.data.digits().training)
    config = vit_config(image_size=8, patch_size=2, num_classes=10, d_model=24, num_layers=2, num_heads=3)
    training = pf.TrainingConfig(num_steps=60, learning_rate=3e-3, warmup_steps=5, seed=0)
    model = pf.ViT(config, key=KEY)
    result = pf.fit(
        model, pf.classification_loss, lambda step: pf.data.LabelledBatch(images, labels), training, progress=False
    )
    assert (np.asarray(call(result.model, images)).argmax(axis=1) == labels).all()


# --- at its edges: sizes that do not fit, images of another kind, and what one is told ----------------------


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"image_size": (6, 7)}, ValueError, "do not tile an image of 6 x 7"),
        ({"image_size": (7, 8)}, ValueError, "do not tile an image of 7 x 8"),
        ({"patch_size": (3, -2)}, ValueError, r"patch_size\[1\] is -2"),
        ({"patch_size": (3, 2.0)}, TypeError, r"patch_size\[1\]"),
        ({"image_size": (6, 8, 3)}, TypeError, "image_size"),
        ({"d_model": 18, "position_scheme": "sinusoidal_2d"}, ValueError, "d_model is 18"),
    ],
)
def test_vit_config_names_what_is_wrong_before_a_model_is_made(fields, error, message):
    with pytest.raises(error, match=message):
        vit_config(**SIZES | fields)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("look", ["__call__", "patches", "attention_weights", "residual_stream"])
def test_images_of_another_kind_are_named(look):
    with pytest.raises(TypeError, match="images hold uint8"):
        getattr(new_model(), look)(np.zeros((6, 8, 3), np.uint8))
    with pytest.raises(ValueError, match="height=6, width=8, channels=3"):
        getattr(new_model(), look)(np.zeros((7, 6, 8, 1)))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("channels", "images", "message"),
    [
        (3, np.zeros((8, 6, 3)), "reads images of 6 x 8 pixels"),
        (3, np.zeros((7, 3, 6, 8)), "Channels come last"),
        (1, np.zeros((6, 8)), "without an axis of channels"),
        (1, np.zeros((7, 6, 8)), "without an axis of channels"),
        (3, np.zeros((0, 6, 8, 3)), "There are 0 images"),
    ],
)
def test_images_of_another_shape_are_named(channels, images, message):
    with pytest.raises(ValueError, match=message):
        new_model(channels=channels)(images)


@pytest.mark.usefixtures("unchecked")
def test_vit_takes_numpy_images_and_an_image_that_is_one_patch():
    model = new_model(image_size=PATCH, position_scheme="sinusoidal_2d")
    image = np.full((*PATCH, CHANNELS), 0.5, np.float32)
    assert model.config.grid == (1, 1)
    np.testing.assert_array_equal(model(image), model(jnp.asarray(image)))
    assert_close(model(image[None])[0], model(image))
    assert model.attention_weights(image).shape == (2, HEADS, 2, 2)


@pytest.mark.usefixtures("unchecked")
def test_patch_kernel_of_another_embedding_is_refused():
    with pytest.raises(ValueError, match=r"embedding\.weight has shape"):
        patch_kernel(new_model().encoder.embedding, PATCH, 1)
