"""The vision transformer: an encoder that reads the patches of an image (chapter 09); maps are in attention_maps."""

import dataclasses
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, PRNGKeyArray

from plainformer.checks import check_axes, check_choice, check_positive
from plainformer.models.encoder import Encoder, EncoderConfig
from plainformer.models.pretraining import POOLINGS, mean_pool
from plainformer.positions.positions import no_bias, sinusoidal_positions, unchanged
from plainformer.tokens.tokens import LinearEmbedding, image_to_patches, linear_map

IMAGE_POSITIONS = ("learned", "sinusoidal_2d", "none")


def patch_kernel(
    embedding: LinearEmbedding, patch_size: int | tuple[int, int], channels: int
) -> Float[Array, "patch_height patch_width channels d_model"]:
    r"""Fold the matrix that embeds patches into the kernel of the strided convolution that does the same.

    Implements `eq-vision-patch-convolution`; Dosovitskiy et al. (2021), section 3.1. The convolution steps by a whole
    patch, so that windows do not overlap; like all convolutions of neural networks, it does not flip its kernel.

    **Arguments**

    - `embedding`: of rows of `patch_height * patch_width * channels` features, such as `ViT(…).encoder.embedding`.
    - `patch_size`: the side of a square patch, or its `(height, width)`, in pixels.
    - `channels`: numbers in each pixel.

    **Returns** the kernel, `(patch_height, patch_width, channels, d_model)`, in `lax`'s words `"HWIO"`; the bias stays
    as it is.

    **Raises** `ValueError` if the matrix is not one for such patches; `TypeError` if a size is no whole number.
    """
    tall, wide = _two_sides("patch_size", patch_size)
    check_positive(channels=channels)
    hint = f"A patch of {tall} x {wide} pixels with {channels} channels has {tall * wide * channels} features."
    check_axes("embedding.weight", embedding.weight, hint, d_in=tall * wide * channels, d_model=None)
    return embedding.weight.reshape(tall, wide, channels, -1)


def sinusoidal_positions_2d(down: int, right: int, d_model: int) -> Float[Array, "num_patches d_model"]:
    r"""Describe each place of a grid by two sinusoidal codes side by side: that of its row, and that of its column.

    Implements `eq-vision-sinusoid-2d`; Beyer et al. (2022), section 2, in the order of columns of Vaswani et al.
    (2017), section 3.5.

    **Arguments**

    - `down`, `right`: how many patches the grid is high and wide.
    - `d_model`: width of a token, a multiple of 4: the row has one half of it, the column the other, both in pairs.

    **Returns** one code per patch, in reading order, `(down * right, d_model)`.

    **Raises** `ValueError` if a size is below 1, or `d_model` no multiple of 4; `TypeError` if it is no whole number.
    """
    check_positive(down=down, right=right, d_model=d_model)
    _check_quarters(d_model)
    rows = jnp.repeat(sinusoidal_positions(jnp.arange(down), d_model // 2), right, axis=0)
    columns = jnp.tile(sinusoidal_positions(jnp.arange(right), d_model // 2), (down, 1))
    return jnp.concatenate([rows, columns], axis=1)


class GridPositions(eqx.Module):
    r"""Two-dimensional sinusoidal codes, added to the embeddings of patches, but not to a class token before them.

    Implements `eq-vision-sinusoid-2d`; a scheme of positions as in chapter 05, without learned numbers.

    **Arguments** and **Raises** as for `sinusoidal_positions_2d`; `class_token` says whether there is one.
    """

    down: int = eqx.field(static=True)
    right: int = eqx.field(static=True)
    d_model: int = eqx.field(static=True)
    class_token: bool = eqx.field(static=True)

    def embed(
        self, x: Float[Array, "rows d_model"], positions: Integer[Array, " rows"] | None = None
    ) -> Float[Array, "rows d_model"]:
        """Add to each row of `x`, `(rows, d_model)`, the code of its place among class token and patches.

        `None` counts from 0, which is the class token, if there is one.
        """
        codes = sinusoidal_positions_2d(self.down, self.right, self.d_model).astype(x.dtype)
        if self.class_token:
            codes = jnp.concatenate([jnp.zeros((1, self.d_model), x.dtype), codes])
        return x + (codes if positions is None else codes[positions])

    rotate = unchanged
    bias = no_bias


@dataclasses.dataclass(frozen=True, kw_only=True)
class ViTConfig:
    r"""All that makes a vision transformer what it is, but for its learned numbers.

    **Arguments**

    - `image_size`, `patch_size`: one side if square, or `(height, width)`, in pixels; kept as a pair.
    - `num_classes`: how many kinds of image are told apart.
    - `channels`: numbers in each pixel: 1 for grey, 3 for red, green and blue.
    - `d_model`, `num_layers`, `num_heads`: width of a token; number of blocks; attention heads in each.
    - `d_ff`: inner width of the token-wise networks; `None` for `4 * d_model`.
    - `pooling`: `"class"` to judge by a class token in front of the patches, `"mean"` by the mean of all patches.
    - `positions`: `"learned"`, one vector for each place; `"sinusoidal_2d"`; or `"none"`.
    - `placement`, `norm`, `activation`, `use_bias`: as for `TransformerBlock`.
    - `dropout_rate`: the probability with which an entry is dropped while training, after the embedding and in blocks.

    **Attributes** `grid`, how many patches there are, `(down, right)`.

    **Raises** `ValueError` if one of them is out of range, or patches do not tile the image; `TypeError` if one is not
    of its kind.
    """

    image_size: int | Sequence[int]
    patch_size: int | Sequence[int]
    num_classes: int
    channels: int = 1
    d_model: int = 128
    num_layers: int = 4
    num_heads: int = 4
    d_ff: int | None = None
    pooling: str = "class"
    positions: str = "learned"
    placement: str = "pre"
    norm: str = "layer"
    activation: str = "gelu"
    dropout_rate: float = 0.0
    use_bias: bool = True

    def __post_init__(self):
        for name in ("image_size", "patch_size"):  # JSON has lists only
            object.__setattr__(self, name, _two_sides(name, getattr(self, name)))
        check_positive(num_classes=self.num_classes, channels=self.channels)
        check_choice("pooling", self.pooling, POOLINGS)
        check_choice("positions", self.positions, IMAGE_POSITIONS)
        height, width, tall, wide = self._sides()
        if height % tall or width % wide:
            raise ValueError(
                f"Patches of {tall} x {wide} pixels do not tile an image of {height} x {width}; expected divisors of "
                "its height and width. Choose other patches, or crop or resize the images."
            )
        self.encoder_config()  # which checks the rest
        if self.positions == "sinusoidal_2d":
            _check_quarters(self.d_model)

    @property
    def grid(self) -> tuple[int, int]:
        """How many patches there are, down and to the right."""
        height, width, tall, wide = self._sides()
        return height // tall, width // wide

    def _sides(self) -> tuple[int, int, int, int]:
        return *_two_sides("image_size", self.image_size), *_two_sides("patch_size", self.patch_size)

    def encoder_config(self) -> EncoderConfig:
        """The configuration of the encoder that reads the patches."""
        _, _, tall, wide = self._sides()
        shared = [field.name for field in dataclasses.fields(EncoderConfig) if hasattr(self, field.name)]
        own = {
            "context_len": self.grid[0] * self.grid[1],
            "d_in": tall * wide * self.channels,
            "class_token": self.pooling == "class",
            "positions": "learned" if self.positions == "learned" else "none",
        }
        return EncoderConfig(**{**{name: getattr(self, name) for name in shared}, **own})


class ViT(eqx.Module):
    r"""A vision transformer: it cuts an image into patches, reads them as an encoder reads words, and names the image.

    Implements `eq-vision-model`; Dosovitskiy et al. (2021), section 3.1, equations 1 to 4.

    **Arguments**

    - `config`: sizes and kinds of all parts.
    - `key`: random key for all weights.

    **Attributes** `config`; `encoder`, an `Encoder` of patches; `out_weight`, `(d_model, num_classes)`, and `out_bias`,
    `(num_classes,)` or `None`.

    **Differs from the paper**: the class token can be done without (`pooling="mean"`), and so can learned positions.
    Two-dimensional codes have no place for the class token, which gets none.
    """

    encoder: Encoder
    out_weight: Float[Array, "d_model num_classes"]
    out_bias: Float[Array, " num_classes"] | None
    config: ViTConfig = eqx.field(static=True)

    def __init__(self, config: ViTConfig, *, key: PRNGKeyArray):
        self.config = config
        encoder_key, out_key = jax.random.split(key)
        self.encoder = Encoder(config.encoder_config(), key=encoder_key)
        if config.positions == "sinusoidal_2d":
            scheme = GridPositions(*config.grid, config.d_model, config.pooling == "class")
            self.encoder = eqx.tree_at(
                lambda encoder: encoder.positions, self.encoder, scheme, is_leaf=lambda leaf: leaf is None
            )
        self.out_weight = jax.nn.initializers.glorot_normal()(out_key, (config.d_model, config.num_classes))
        self.out_bias = jnp.zeros(config.num_classes) if config.use_bias else None

    def __call__(
        self, images: Float[Array, "*num_images height width channels"], *, key: PRNGKeyArray | None = None
    ) -> Float[Array, "*num_images num_classes"]:
        """Give a logit for each class.

        `images` is `(height, width, channels)`, floats; the result `(num_classes,)`. Several images may be given at
        once, with an axis `num_images` before; their patches then stand one below the other, in large matrix products.
        With a random `key`, as in training, dropout is on. Raises `ValueError` if an image is not of the size of
        `config`, `TypeError` if it holds whole numbers.
        """
        rows = self.encoder(self.patches(images), key=key)
        pooled = rows[..., 0, :] if self.config.pooling == "class" else mean_pool(rows)
        logits = linear_map(pooled.reshape(-1, self.config.d_model), self.out_weight, self.out_bias)
        return logits.reshape(*pooled.shape[:-1], -1)

    def patches(
        self, images: Float[Array, "*num_images height width channels"]
    ) -> Float[Array, "*num_images num_patches patch_features"]:
        """Cut an image, or several, into the rows that the encoder reads, `(num_patches, patch_features)`.

        Arguments and errors as for a call.
        """
        images = self._checked(images)
        patch_size = _two_sides("patch_size", self.config.patch_size)
        if images.ndim == 3:
            return image_to_patches(images, patch_size)
        return jax.vmap(lambda image: image_to_patches(image, patch_size))(images)

    def weights(self, image: Float[Array, "height width channels"]) -> Float[Array, "layers heads rows rows"]:
        """The attention weights of every block and head for a single image, `(num_layers, num_heads, rows, rows)`.

        With a class token, its row and column are the first ones, and patches follow in reading order.
        """
        if getattr(image, "ndim", 3) == 4:
            raise ValueError(f"There are {len(image)} images; expected a single one: use jax.vmap for several.")
        return self.encoder.weights(self.patches(image))

    def _checked(self, images) -> Float[Array, "*num_images height width channels"]:
        height, width = _two_sides("image_size", self.config.image_size)
        channels = self.config.channels
        axes: dict[str, int | None] = {"height": height, "width": width, "channels": channels}
        shape = tuple(getattr(images, "shape", ()))
        hint = f"This model reads images of {height} x {width} pixels with channels={channels}, and no others."
        if shape[-3:] == (channels, height, width):
            hint = "Channels come last here: pass jnp.moveaxis(images, -3, -1)."
        elif channels == 1 and shape[-2:] == (height, width):
            hint = "These look like grey images without an axis of channels: pass images[..., None]."
        check_axes("images", images, hint, **({"num_images": None, **axes} if len(shape) == 4 else axes))
        if not shape[0]:
            raise ValueError("There are 0 images; expected at least one.")
        if not jnp.issubdtype(images.dtype, jnp.floating):
            raise TypeError(
                f"images hold {images.dtype}; expected floats, about 0 to 1. For pixels from 0 to 255, pass images / 255."
            )
        return jnp.asarray(images)


def _two_sides(name: str, size) -> tuple[int, int]:
    """Height and width as a pair of Python's own integers."""
    if isinstance(size, int | np.integer) and not isinstance(size, bool):
        size = (size, size)
    if not isinstance(size, tuple | list) or len(size) != 2:
        raise TypeError(f"{name} is {size!r}; expected one side, or (height, width), whole numbers.")
    check_positive(**{f"{name}[0]": size[0], f"{name}[1]": size[1]})
    return int(size[0]), int(size[1])


def _check_quarters(d_model: int) -> None:
    if d_model % 4:
        raise ValueError(
            f"d_model is {d_model}; expected a multiple of 4: rows and columns of patches each have one half, in pairs."
        )
