"""The convolutional networks that the vision transformers of chapter 11 are compared with."""

from collections.abc import Sequence
from itertools import pairwise

import equinox as eqx
import jax
from jaxtyping import Array, Float, PRNGKeyArray


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
