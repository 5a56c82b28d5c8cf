"""Chapter 11, the vision transformer: how an image becomes rows, what is made of them, and when order matters."""

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
NUM_PATCHES, FEATURES = 8, 18
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
    "mean-none": {"pooling": "mean", "position_scheme": "none"},
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
@pytest.mark.parametrize("kind", KINDS)
def test_vit_agrees_with_a_loop_in_float64(kind):
    model = new_model(kind)
    logits = model(IMAGE)
    assert logits.shape == (CLASSES,)
    assert_close(logits, reference.vision_transformer(IMAGE, model))


@pytest.mark.parametrize("kind", ["class-learned", "mean-sinusoidal-modern"])
def test_vit_of_any_batch_is_each_image_alone(kind):
    model, images = new_model(kind), jnp.asarray(PIXELS[:6].reshape(2, 3, HEIGHT, WIDTH, CHANNELS))
    together = call(model, images)
    assert together.shape == (2, 3, CLASSES)
    for place in np.ndindex(2, 3):
        assert_close(together[place], model(images[place]))


@pytest.mark.equation("eq-vision-patch-convolution")
@pytest.mark.parametrize("use_bias", [True, False])
def test_patch_kernel_makes_of_a_strided_convolution_the_patch_embedding(use_bias):
    model, images = new_model(use_bias=use_bias), jnp.asarray(PIXELS)
    embedding = model.encoder.embedding
    rows = embedding(model.patches(images))
    kernel = patch_kernel(embedding, PATCH, CHANNELS)
    assert kernel.shape == (*PATCH, CHANNELS, D_MODEL)
    layout = ("NHWC", "HWIO", "NHWC")
    convolved = jax.lax.conv_general_dilated(images, kernel, PATCH, "VALID", dimension_numbers=layout)
    assert convolved.shape == (IMAGES, *GRID, D_MODEL)
    convolved = convolved if embedding.bias is None else convolved + embedding.bias
    assert_close(rows, convolved.reshape(IMAGES, NUM_PATCHES, D_MODEL))


@pytest.mark.equation("eq-vision-patch-convolution")
def test_patch_kernel_of_square_patches_takes_one_side():
    embedding = pf.Linear(4 * CHANNELS, D_MODEL, key=KEY)
    kernel = patch_kernel(embedding, 2, CHANNELS)
    np.testing.assert_array_equal(kernel, embedding.weight.reshape(2, 2, CHANNELS, D_MODEL))


def test_vit_reads_patches_along_the_rows_of_the_image():
    """A pixel's only trace is in the patch that it lies in, counted to the right and then down."""
    pixels = np.zeros((HEIGHT, WIDTH, HEIGHT, WIDTH, CHANNELS), np.float32)
    for row, column in np.ndindex(HEIGHT, WIDTH):
        pixels[row, column, row, column, 1] = 1
    patches = np.asarray(new_model().patches(jnp.asarray(pixels)))
    for row, column in np.ndindex(HEIGHT, WIDTH):
        patch, feature = np.argwhere(patches[row, column])[0]
        assert patches[row, column].sum() == 1
        assert patch == (row // PATCH_HEIGHT) * GRID[1] + column // PATCH_WIDTH
        assert feature == ((row % PATCH_HEIGHT) * PATCH_WIDTH + column % PATCH_WIDTH) * CHANNELS + 1


def test_vit_patches_of_several_images_are_those_of_each():
    found = new_model().patches(jnp.asarray(PIXELS))
    assert found.shape == (IMAGES, NUM_PATCHES, FEATURES)
    np.testing.assert_array_equal(found, [pf.image_to_patches(jnp.asarray(image), PATCH) for image in PIXELS])


@pytest.mark.equation("eq-vision-model")
def test_vit_judges_by_the_class_token_which_comes_first():
    model = new_model()
    bare = eqx.tree_at(lambda m: (m.encoder.stack.blocks, m.encoder.stack.final_norm), model, ((), None))
    first = bare.encoder.class_token + bare.encoder.stack.scheme.table[0]
    assert_close(bare(IMAGE), first @ bare.output.weight + bare.output.bias)
    # Without attention the class token hears nothing of the image; with it, it does.
    assert np.abs(model(IMAGE) - model(1 - IMAGE)).max() > 0.01


@pytest.mark.equation("eq-vision-model")
def test_vit_with_mean_pooling_judges_by_the_mean_of_all_patches():
    bare = eqx.tree_at(lambda m: m.encoder.stack.blocks, new_model("mean-learned-post"), ())
    rows = bare.encoder.embedding(bare.patches(IMAGE)) + bare.encoder.stack.scheme.table
    assert bare.encoder.class_token is None
    assert_close(bare(IMAGE), rows.mean(axis=0) @ bare.output.weight + bare.output.bias)


def permuted(order):
    """The image with its patches in another order."""
    patches = pf.image_to_patches(IMAGE, PATCH)[jnp.asarray(order)]
    return pf.patches_to_image(patches, PATCH, height=HEIGHT, width=WIDTH)


@pytest.mark.parametrize("kind", ["class-none", "mean-none"])
def test_vit_without_positions_cannot_tell_shuffled_patches(kind):
    model = new_model(kind)
    expected = model(IMAGE)
    other = model(permuted([3, 7, 0, 5, 2, 6, 4, 1]))
    np.testing.assert_allclose(other, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("kind", ["class-learned", "mean-learned-post", "class-sinusoidal", "mean-sinusoidal-modern"])
def test_vit_with_positions_sees_every_exchange_of_two_patches(kind):
    orders = np.tile(np.arange(NUM_PATCHES), (NUM_PATCHES, 1))
    for one in range(1, NUM_PATCHES):
        orders[one, [0, one]] = orders[one, [one, 0]]
    plain, *others = np.asarray(new_model(kind)(jnp.stack([permuted(order) for order in orders])))
    assert all(np.abs(other - plain).max() > 1e-3 * np.abs(plain).max() for other in others)


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


@pytest.mark.parametrize("kind", ["class-learned", "mean-none"])
def test_vit_weights_are_those_of_the_encoder(kind):
    model = new_model(kind)
    rows = NUM_PATCHES + (model.config.pooling == "class")
    weights = model.attention_weights(jnp.asarray(PIXELS))
    assert weights.shape == (IMAGES, 2, HEADS, rows, rows)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-6)
    np.testing.assert_array_equal(weights, model.encoder.attention_weights(model.patches(jnp.asarray(PIXELS))))


@pytest.mark.equation("eq-vision-model")
def test_vit_gradients(x64):
    small = {"image_size": (2, 3), "patch_size": 1, "channels": 2, "d_model": 8, "num_heads": 2, "d_ff": 4}
    model = drawn(pf.ViT, vit_config(**SIZES | small, position_scheme="sinusoidal_2d"))
    arrays, rest = eqx.partition(model, eqx.is_array)
    logits = jax.jit(lambda arrays, image: eqx.combine(arrays, rest)(image))
    check_grads(logits, (arrays, jnp.asarray(NUMBERS.random((2, 3, 2)))), order=1, modes=["rev"])


def test_vit_lets_a_gradient_reach_every_parameter():
    labels = jnp.arange(IMAGES) % CLASSES
    slopes = eqx.filter_jit(eqx.filter_grad(pf.classification_loss))(
        new_model(), pf.data.LabelledBatch(jnp.asarray(PIXELS), labels)
    )
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slopes))
    # A shift of all scores of a query changes nothing: the keys' biases alone have no effect.
    assert sum(np.abs(leaf).max() < 1e-7 for leaf in jax.tree.leaves(slopes)) == 2
    assert all(np.abs(block.attention.key.bias).max() < 1e-7 for block in slopes.encoder.stack.blocks)


@pytest.mark.parametrize("kind", KINDS)
def test_vit_is_saved_and_read_back(kind, tmp_path):
    model, path = new_model(kind), tmp_path / "vision.safetensors"
    pf.save_model(path, model)
    again = pf.load_model(path, pf.ViT)
    assert again.config == model.config
    assert hash(again.config) == hash(model.config)  # sizes are pairs again, not the lists of JSON
    np.testing.assert_array_equal(again(IMAGE), model(IMAGE))


@pytest.mark.usefixtures("unchecked")
def test_vit_config_keeps_sizes_as_pairs():
    one, other = (vit_config(image_size=size, patch_size=2, num_classes=3) for size in (8, [8, 8]))
    assert one == other
    assert (one.image_size, one.patch_size, one.grid) == ((8, 8), (2, 2), (4, 4))
    assert vit_config(**SIZES).grid == GRID
    assert isinstance(other.image_size, tuple)


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
        ({"image_size": (6, 8, 3)}, TypeError, r"image_size is \(6, 8, 3\); expected one side or \(height, width\)"),
        ({"image_size": "8"}, TypeError, r"image_size is '8'; expected one side or \(height, width\)"),
        ({"patch_size": True}, TypeError, r"patch_size is True; expected one side"),
        ({"num_classes": 0}, ValueError, r"num_classes is 0; expected at least 1"),
        ({"channels": 1.5}, TypeError, r"channels is 1\.5; expected a whole number"),
        ({"pooling": "max"}, ValueError, r"pooling is 'max'; expected one of 'class', 'mean'"),
        ({"d_model": 18, "position_scheme": "sinusoidal_2d"}, ValueError, r"d_model is 18; expected a multiple of 4"),
    ],
)
def test_vit_config_names_what_is_wrong_before_a_model_is_made(fields, error, message):
    with pytest.raises(error, match=message):
        vit_config(**SIZES | fields)


LOOKS = {
    "logits": lambda model, images: model(images),
    "patches": lambda model, images: model.patches(images),
    "weights": lambda model, images: model.attention_weights(images),
    "stream": lambda model, images: model.residual_stream(images),
}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize(
    ("channels", "images", "error", "message"),
    [
        (3, np.zeros((6, 8, 3), np.uint8), TypeError, r"images hold uint8; expected floats, .* 255, pass images / 255"),
        (3, np.zeros((6, 8, 3), int), TypeError, r"images hold int64; expected floats, .* pass images / 255"),
        (3, np.zeros((6, 8, 3), bool), TypeError, r"images hold bool; expected floats"),
        (3, [[[0.0]]], TypeError, r"images is a list; expected an array .*Try jnp\.asarray\(images\)"),
        (
            3,
            np.zeros((6, 8, 1)),
            ValueError,
            r"\(6, 8, 1\); expected \(\.\.\., height=6, width=8, channels=3\)\. .*channels=3",
        ),
        (3, np.zeros((8, 6, 3)), ValueError, r"\(8, 6, 3\); .* reads images of 6 x 8 pixels"),
        (3, np.zeros((12, 8, 3)), ValueError, r"\(12, 8, 3\); .* reads images of 6 x 8 pixels .* and no others"),
        (3, np.zeros((3, 6, 8)), ValueError, r"Channels come last here: pass jnp\.moveaxis\(images, -3, -1\)"),
        (1, np.zeros((6, 8)), ValueError, r"grey images without an axis of channels: pass images\[\.\.\., None\]"),
        (3, np.zeros((7, 3, 6, 8)), ValueError, r"\(7, 3, 6, 8\); expected \(\.\.\., height.*Channels come last here"),
        (3, np.zeros((7, 6, 8, 1)), ValueError, r"\(7, 6, 8, 1\); expected \(\.\.\., height=6, width=8, channels=3\)"),
        (1, np.zeros((7, 6, 8)), ValueError, r"\(7, 6, 8\); .* grey images .*: pass images\[\.\.\., None\]"),
        (1, np.zeros((7, 1, 6, 8)), ValueError, r"\(7, 1, 6, 8\); .* pass jnp\.moveaxis\(images, -3, -1\)"),
        (3, np.zeros((0, 6, 8, 3)), ValueError, r"There are 0 images; expected at least one"),
    ],
)
def test_images_of_another_kind_are_named(channels, images, error, message, look):
    with pytest.raises(error, match=message):
        LOOKS[look](new_model(channels=channels), images)


@pytest.mark.usefixtures("unchecked")
def test_bad_images_are_named_while_tracing():
    with pytest.raises(TypeError, match=r"images hold int32; expected floats"):
        jax.jit(lambda images: new_model()(images))(jnp.zeros((7, 6, 8, 3), int))


@pytest.mark.usefixtures("unchecked")
def test_vit_takes_numpy_images_and_an_image_that_is_one_patch():
    model = new_model(image_size=PATCH, position_scheme="sinusoidal_2d")
    image = np.full((*PATCH, CHANNELS), 0.5, np.float32)
    assert model.config.grid == (1, 1)
    np.testing.assert_array_equal(model(image), model(jnp.asarray(image)))
    assert_close(model(image[None])[0], model(image))
    assert model.attention_weights(image).shape == (2, HEADS, 2, 2)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: patch_kernel(new_model().encoder.embedding, PATCH, 1),
            ValueError,
            r"embedding\.weight has shape \(18, 24\); expected \(d_in=6, d_out\)\. A patch of 3 x 2 .* has 6 features",
        ),
        (
            lambda: patch_kernel(new_model().encoder.embedding, 3.0, 1),
            TypeError,
            r"patch_size is 3\.0; expected one",
        ),
        (
            lambda: patch_kernel(new_model().encoder.embedding, 3, 0),
            ValueError,
            r"channels is 0; expected at least 1",
        ),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
