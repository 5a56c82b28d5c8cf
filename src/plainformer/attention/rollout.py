"""Where a model looks: attention followed through all layers, or laid over the patches of an image (chapter 09)."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from plainformer.checks import as_floats, check_positive


def attention_rollout(weights: Float[Array, "layers heads rows rows"]) -> Float[Array, "rows rows"]:
    r"""Follow attention through all layers: how much each token of the last one has of each token that came in.

    Implements `eq-vision-rollout`; Abnar and Zuidema (2020), section 3.2, equation 1. In each layer half of a token is
    taken to be what the residual carries on, and half what the mean of all heads reads.

    **Arguments**

    - `weights`: attention weights, first layer first, `(num_layers, num_heads, rows, rows)`, such as `ViT.weights`
      gives.

    **Returns** a matrix, `(rows, rows)`, from tokens of the last layer to those that came in; each row sums to one.

    **Raises** `ValueError` if weights are not of this shape; `TypeError` if they are no floats.
    """
    weights = as_floats("weights", weights, layers=None, heads=None, rows=None, columns=None)
    if weights.shape[2] != weights.shape[3]:
        raise ValueError(f"weights has shape {weights.shape}; expected as many keys as queries, a self-attention's.")
    found = identity = jnp.eye(weights.shape[2], dtype=weights.dtype)
    for layer in weights.mean(axis=1):
        found = (layer + identity) / 2 @ found
    return found


def class_attention(
    weights: Float[Array, "*layers_heads rows rows"], grid: tuple[int, int]
) -> Float[Array, "*layers_heads down right"]:
    r"""Lay the class token's attention to the patches out as an image of patches.

    Implements `eq-vision-class-attention`; Caron et al. (2021), section 4.2.2.

    **Arguments**

    - `weights`: a matrix of weights whose first row and column belong to the class token, `(rows, rows)`, such as
      `attention_rollout` gives; or many, such as `ViT.weights` gives, with further axes before.
    - `grid`: patches down and to the right, such as `ViTConfig.grid`.

    **Returns** one number per patch, `(down, right)`, with the same further axes. What the class token keeps for itself
    is left out, so that they sum to less than one.

    **Raises** `ValueError` if there is not one row for each patch and one for the class token; `TypeError` if weights
    are no floats.
    """
    if not isinstance(grid, tuple | list) or len(grid) != 2:
        raise TypeError(f"grid is {grid!r}; expected a pair, (down, right), such as ViTConfig.grid.")
    down, right = grid
    check_positive(down=down, right=right)
    weights = as_floats("weights", weights)
    rows = down * right + 1
    if weights.shape[-2:] != (rows, rows):
        raise ValueError(
            f"weights has shape {weights.shape}; expected {rows} rows and columns at the end, for a class token and "
            f"{down} x {right} patches. A model with pooling='mean' has no class token to look at."
        )
    return weights[..., 0, 1:].reshape(*weights.shape[:-2], down, right)
