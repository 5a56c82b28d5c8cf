"""The convolutional networks that the vision transformers are compared with."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

import plainformer as pf


class ConvolutionalNetwork(eqx.Module):
    """Kernels of 3 x 3, each followed by ReLU and by the largest of every 2 x 2 places; then dense layers.

    Args:
        image_size: the side of its square images.
        channels: how many come out of each layer of kernels.
        hidden: the widths of the dense layers in front of the last one, which gives ten logits.
    """

    kernels: tuple[Array, ...]
    dense: tuple[Array, ...]

    def __init__(self, image_size: int, channels: Sequence[int], hidden: Sequence[int] = (), *, key: PRNGKeyArray):
        widths = [(image_size >> len(channels)) ** 2 * channels[-1], *hidden, 10]
        keys = iter(jax.random.split(key, len(channels) + len(widths)))
        pairs = zip([1, *channels], channels, strict=False)
        self.kernels = tuple(
            jax.random.normal(next(keys), (3, 3, *pair)) * (2 / (9 * pair[0])) ** 0.5 for pair in pairs
        )
        steps = pairwise(widths)
        self.dense = tuple(
            jax.random.normal(next(keys), step) * ((1 if step[1] == 10 else 2) / step[0]) ** 0.5 for step in steps
        )

    def __call__(
        self, images: Float[Array, "n size size 1"], *, key: PRNGKeyArray | None = None
    ) -> Float[Array, "n 10"]:
        x = images
        for kernel in self.kernels:
            x = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            size = x.shape[1] // 2
            x = jax.nn.relu(x).reshape(-1, size, 2, size, 2, x.shape[3]).max(axis=(2, 4))
        x = x.reshape(len(x), -1)
        for matrix in self.dense[:-1]:
            x = jax.nn.relu(x @ matrix)
        return x @ self.dense[-1]


class ConvolutionalBlock(eqx.Module):
    """A block of the transformer whose attention is exchanged for a convolution of 3 x 3 places, channel by channel.

    As in ConvNeXt (Liu et al., 2022), norms stand before, and what comes in is added to what comes out.
    """

    first_norm: pf.LayerNorm
    kernel: Float[Array, "3 3 width"]
    mix: pf.Linear
    second_norm: pf.LayerNorm
    feed_forward: pf.FeedForward

    def __init__(self, width: int, *, key: PRNGKeyArray):
        keys = jax.random.split(key, 3)
        self.first_norm, self.second_norm = pf.LayerNorm(width), pf.LayerNorm(width)
        self.kernel = jax.random.normal(keys[0], (3, 3, width)) / 3
        self.mix = pf.Linear(width, width, key=keys[1])
        self.feed_forward = pf.FeedForward(width, 2 * width, key=keys[2])

    def __call__(self, x: Float[Array, "n height width_ d_model"]) -> Float[Array, "n height width_ d_model"]:
        height, width = x.shape[1:3]
        padded = jnp.pad(self.first_norm(x), ((0, 0), (1, 1), (1, 1), (0, 0)))
        windows = [padded[:, i : i + height, j : j + width] * self.kernel[i, j] for i in range(3) for j in range(3)]
        x = x + self.mix(jnp.stack(windows).sum(axis=0))
        return x + self.feed_forward(self.second_norm(x))


class PatchConvolution(eqx.Module):
    """Patches of 8 x 8 of an image of 32 x 32, three convolutional blocks, and one of three ways to an answer.

    Args:
        width: of the row of a patch.
        pooling: `"all"` for a dense layer on all rows, one after the other; `"mean"` for their mean; `"attention"` for
            what the mean of all rows finds among them (Radford et al., 2021, section 2.3).
        coordinates: whether each pixel comes with its row and column, from -1 to 1 (Liu et al., 2018).
    """

    embedding: pf.Linear
    blocks: tuple[ConvolutionalBlock, ...]
    norm: pf.LayerNorm
    pool: Any
    output: pf.Linear
    pooling: str = eqx.field(static=True)
    coordinates: bool = eqx.field(static=True)

    def __init__(self, width: int, pooling: str, coordinates: bool, *, key: PRNGKeyArray):
        keys = jax.random.split(key, 6)
        self.pooling, self.coordinates, self.norm = pooling, coordinates, pf.LayerNorm(width)
        self.embedding = pf.Linear(8 * 8 * (3 if coordinates else 1), width, key=keys[0])
        self.blocks = tuple(ConvolutionalBlock(width, key=each) for each in keys[1:4])
        self.pool, features = None, width
        if pooling == "all":
            self.pool, features = pf.Linear(16 * width, 2 * width, key=keys[4]), 2 * width
        elif pooling == "attention":
            self.pool = pf.MultiHeadAttention(width, 4, use_bias=True, key=keys[4])
        self.output = pf.Linear(features, 10, key=keys[5])

    def pooled(self, rows: Float[Array, "n 16 width"]) -> Float[Array, "n features"]:
        """One row of each image."""
        if self.pooling == "all":
            return jax.nn.relu(self.pool(rows.reshape(len(rows), -1)))
        mean = rows.mean(axis=1, keepdims=True)
        return self.pool(mean, context=rows)[:, 0] if self.pooling == "attention" else mean[:, 0]

    def __call__(
        self, images: Float[Array, "n size size 1"], *, key: PRNGKeyArray | None = None
    ) -> Float[Array, "n 10"]:
        if self.coordinates:
            places = jnp.linspace(-1, 1, images.shape[1])
            both = jnp.stack(jnp.meshgrid(places, places, indexing="ij"), axis=-1)
            images = jnp.concatenate([images, jnp.broadcast_to(both, (len(images), *both.shape))], axis=3)
        x = self.embedding(pf.image_to_patches(images, 8)).reshape(len(images), 4, 4, -1)
        for block in self.blocks:
            x = block(x)
        return self.output(self.pooled(self.norm(x).reshape(len(x), 16, -1)))
