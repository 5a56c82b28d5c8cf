"""The vision transformer: an encoder that reads the patches of an image (chapter on vision)."""

import dataclasses
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from plainformer.checks import Positive, check_axes, check_fields, checked, says_where
from plainformer.models.config import StackConfig
from plainformer.models.encoder import EncoderConfig, RowEncoder
from plainformer.models.pretraining import Pooling, mean_pool
from plainformer.seeing import within
from plainformer.tokens.patches import image_to_patches, tiling, two_sides
from plainformer.tokens.tokens import Linear


@checked
def patch_kernel(
    embedding: Linear, patch_size: int | tuple[int, int], channels: Positive
) -> Float[Array, "patch_height patch_width channels d_model"]:
    r"""Fold the matrix that embeds patches into the kernel of the strided convolution that does the same.

    Implements `eq-vision-patch-convolution`; Dosovitskiy et al. (2021), section 3.1. The convolution steps by a whole
    patch, so that windows do not overlap; like all convolutions of neural networks, it does not flip its kernel.

    Args:
        embedding: such as `ViT(…).encoder.embedding`.
        patch_size: the side of a square patch, or its `(height, width)`, in pixels.
        channels: numbers in each pixel.

    Returns:
        The kernel, in `lax`'s words `"HWIO"`; the bias stays as it is.
    """
    height, width = two_sides("patch_size", patch_size)
    d_in = height * width * channels
    hint = f"A patch of {height} x {width} pixels, {channels} deep, has {d_in} features."
    check_axes("embedding.weight", embedding.weight, hint, d_in=d_in, d_out=None)
    return embedding.weight.reshape(height, width, channels, -1)


@says_where
@dataclasses.dataclass(frozen=True, kw_only=True)
class ViTConfig:
    r"""All that makes a vision transformer what it is, but for its learned numbers.

    Args:
        image_size, patch_size: one side if square, or `(height, width)`, in pixels, kept as a pair.
        channels: 1 for grey, 3 for red, green and blue.
        stack: its `position_scheme` may be `"sinusoidal_2d"`.
        pooling: `"class"` to judge by a class token in front of the patches, `"mean"` by the mean of all patches.

    Raises:
        ValueError: if patches do not tile the image.
    """

    image_size: int | Sequence[int]
    patch_size: int | Sequence[int]
    num_classes: Positive
    channels: Positive = 1
    stack: StackConfig = StackConfig()
    pooling: Pooling = "class"

    def __post_init__(self):
        for name in ("image_size", "patch_size"):  # JSON has lists only
            object.__setattr__(self, name, two_sides(name, getattr(self, name)))
        check_fields(self)
        _ = self.grid  # raises unless patches tile the image

    @property
    def grid(self) -> tuple[int, int]:
        """How many patches the image is high and wide."""
        return tiling(*two_sides("image_size", self.image_size), two_sides("patch_size", self.patch_size))[1]

    def encoder_config(self) -> EncoderConfig:
        """Return the configuration of the encoder that reads the patches."""
        (patch_height, patch_width), (grid_height, grid_width) = two_sides("patch_size", self.patch_size), self.grid
        return EncoderConfig(
            context_len=grid_height * grid_width,
            d_in=patch_height * patch_width * self.channels,
            stack=self.stack,
            use_class_token=self.pooling == "class",
        )


class ViT(eqx.Module):
    r"""A vision transformer: it cuts an image into patches, reads them as an encoder reads words, and names the image.

    Implements `eq-vision-model`; Dosovitskiy et al. (2021), section 3.1, equations 1 to 4.

    Differs from the paper:
        The class token can be done without (`pooling="mean"`), and so can learned positions. Two-dimensional codes have
        no place for the class token, which gets none.

    Example:
        A grey image of 4 by 8 pixels goes in, as two patches, and a logit for each of ten classes comes out.

        >>> stack = pf.StackConfig(d_model=8, num_layers=1, num_heads=2)
        >>> config = pf.ViTConfig(image_size=(4, 8), patch_size=4, num_classes=10, stack=stack)
        >>> pf.ViT(config, key=jax.random.key(0))(jnp.zeros((4, 8, 1))).shape
        (10,)
    """

    encoder: RowEncoder
    output: Linear
    config: ViTConfig = eqx.field(static=True)

    @checked
    def __init__(self, config: ViTConfig, *, key: PRNGKeyArray):
        self.config, sizes = config, config.stack
        encoder_key, output_key = jax.random.split(key)
        self.encoder = RowEncoder(config.encoder_config(), grid=config.grid, key=encoder_key)
        self.output = Linear(sizes.d_model, config.num_classes, use_bias=sizes.use_bias, key=output_key)

    def __call__(
        self, images: Float[Array, "*batch height width channels"], *, key: PRNGKeyArray | None = None
    ) -> Float[Array, "*batch num_classes"]:
        """Return a logit for each class; with a random `key`, as in training, dropout is on.

        Raises `ValueError` if an image is not of the size of `config`, `TypeError` if it holds whole numbers.
        """
        return self.logits(within("encoder", self.encoder.read)(self.patches(images), key=key))

    @checked
    def logits(self, x: Float[Array, "*batch rows d_model"]) -> Float[Array, "*batch num_classes"]:
        """Turn rows that the last block returned into logits."""
        rows = within("encoder", self.encoder.stack.normalise)(x)
        return self.output(rows[..., 0, :] if self.config.pooling == "class" else mean_pool(rows))

    def patches(
        self, images: Float[Array, "*batch height width channels"]
    ) -> Float[Array, "*batch num_patches patch_features"]:
        """Cut images into the rows that the encoder reads; arguments and errors as for a call."""
        self._check(images)
        return image_to_patches(jnp.asarray(images), self.config.patch_size)

    def residual_stream(
        self, images: Float[Array, "*batch height width channels"], *, key: PRNGKeyArray | None = None
    ) -> list[Float[Array, "*batch rows d_model"]]:
        """Return what enters the first block and what leaves each; arguments as for a call."""
        return self.encoder.residual_stream(self.patches(images), key=key)

    def attention_weights(
        self, images: Float[Array, "*batch height width channels"]
    ) -> Float[Array, "*batch layers heads rows rows"]:
        """Return the attention weights of every block and head: class token first, then patches in reading order."""
        return self.encoder.attention_weights(self.patches(images))

    def _check(self, images) -> None:
        (height, width), channels = two_sides("image_size", self.config.image_size), self.config.channels
        shape = tuple(getattr(images, "shape", ()))
        hint = f"This model reads images of {height} x {width} pixels with channels={channels}, and no others."
        if shape[-3:] == (channels, height, width):
            hint = "Channels come last here: pass jnp.moveaxis(images, -3, -1)."
        elif channels == 1 and shape[-2:] == (height, width):
            hint = "These look like grey images without an axis of channels: pass images[..., None]."
        check_axes("images", images, hint, **{"*batch": None}, height=height, width=width, channels=channels)
        if not images.size:
            raise ValueError("There are 0 images; expected at least one.")
        if not jnp.issubdtype(images.dtype, jnp.floating):
            raise TypeError(
                f"images hold {images.dtype}; expected floats, about 0 to 1. For pixels up to 255, pass images / 255."
            )
