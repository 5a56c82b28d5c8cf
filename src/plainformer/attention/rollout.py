"""Where a model looks: attention followed through all layers, or over an image (chapter on vision)."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from plainformer.checks import Positive, check_each, checked


@checked
def attention_rollout(weights: Float[Array, "*batch layers heads rows rows"]) -> Float[Array, "*batch rows rows"]:
    r"""Follow attention through all layers: how much each token of the last one has of each token that came in.

    Implements `eq-vision-rollout`; Abnar and Zuidema (2020), section 3.2, equation 1. In each layer half of a token is
    taken to be what the residual carries on, and half what the mean of all heads reads.

    Args:
        weights: attention weights, first layer first, such as `ViT.attention_weights` returns.

    Returns:
        A matrix from tokens of the last layer to those that came in; each row sums to one.
    """
    rollout = identity = jnp.eye(weights.shape[-1], dtype=weights.dtype)
    for layer in jnp.moveaxis(weights.mean(axis=-3), -3, 0):
        rollout = (layer + identity) / 2 @ rollout
    return rollout


@checked
def class_attention(
    weights: Float[Array, "*batch rows rows"], grid: tuple[int, int]
) -> Float[Array, "*batch grid_height grid_width"]:
    r"""Lay the class token's attention to the patches out as an image of patches.

    Implements `eq-vision-class-attention`; Caron et al. (2021), section 4.2.2.

    Args:
        weights: attention weights in which the first row and column belong to the class token, such as
            `attention_rollout` or `ViT.attention_weights` returns.
        grid: how many patches the image is high and wide, such as `ViTConfig.grid`.

    Returns:
        One number per patch. What the class token keeps for itself is left out, so that they sum to less than one.

    Raises:
        ValueError: if there is not one row for each patch and one for the class token.
    """
    if not isinstance(grid, tuple | list) or len(grid) != 2:
        raise TypeError(f"grid is {grid!r}; expected a pair, (height, width), such as ViTConfig.grid.")
    height, width = grid
    check_each(Positive, grid_height=height, grid_width=width)
    if weights.shape[-1] != height * width + 1:
        raise ValueError(
            f"weights has shape {weights.shape}; expected {height * width + 1} rows and columns, for a class "
            f"token and {height} x {width} patches. A model with pooling='mean' has no class token to look at."
        )
    return weights[..., 0, 1:].reshape(*weights.shape[:-2], height, width)
