"""Weights kept in fewer bytes, for writing: bfloat16, or whole numbers of eight bits (chapter on efficiency)."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from plainformer.checks import checked
from plainformer.models.decoder import Decoder
from plainformer.tokens.tokens import Linear, linear
from plainformer.training.arrays import quantise

StoredIn = Literal["bfloat16", "int8"]


class SmallLinear(eqx.Module):
    r"""A `Linear` whose weights are kept in fewer bytes, and become floats of 32 bits only as they are used.

    Implements `eq-efficiency-small-linear`. It is for writing, or for what learns beside it, such as an
    `AdaptedLinear`: rounding has no slope.

    Args:
        layer: the `Linear` whose weights these are.
        stored_in: how its weights are kept: `"bfloat16"` for two bytes a number, `"int8"` for one.
    """

    stored: Num[Array, "d_out d_in"]
    step: Float[Array, " d_out"] | None
    bias: Float[Array, " d_out"] | None

    def __init__(self, layer: Linear, stored_in: StoredIn):
        small = quantise(layer.weight) if stored_in == "int8" else (layer.weight.astype(jnp.bfloat16), None)
        numbers, self.step = small
        self.stored, self.bias = numbers.T, layer.bias  # a row for each output

    @property
    def weight(self) -> Float[Array, "d_in d_out"]:
        """The weights as floats, nearly what they were."""
        weight = self.stored.T.astype(jnp.float32)
        return weight if self.step is None else weight * self.step

    def __call__(self, x: Float[Array, "*batch d_in"]) -> Float[Array, "*batch d_out"]:
        """Return the map of each row of `x`."""
        if x.size > x.shape[-1]:
            return linear(x, self.weight, self.bias)
        # Of a single row each weight is used once: in a sum it becomes a float on its way, and is not stored as one.
        y = (self.stored.astype(x.dtype) * x.reshape(-1)).sum(axis=-1).reshape(*x.shape[:-1], -1)
        y = y if self.step is None else y * self.step
        return y if self.bias is None else y + self.bias


@checked
def in_few_bytes(model: Decoder, stored_in: StoredIn) -> Decoder:
    r"""Return a decoder that writes with weights of two bytes or of one.

    Every `Linear` becomes a `SmallLinear`. The table of the embedding is looked up as it is; if it makes the logits,
    too, the output gets a small copy of its own. Norms and positions, a few numbers, stay; and experts do, whose
    matrices are not used alone.

    Example:
        A quarter of the bytes in the blocks' matrices.

        >>> decoder, _ = pf.load_pretrained("decoder")
        >>> from plainformer.models.low_precision import in_few_bytes
        >>> small = in_few_bytes(decoder, "int8")
        >>> decoder.stack.blocks[0].feed_forward.up.weight.nbytes, small.stack.blocks[0].feed_forward.up.stored.nbytes
        (176128, 44032)
    """
    if model.output is None:
        output = eqx.tree_at(lambda layer: layer.weight, _shape_of_output(model), model.embedding.weight.T)
        model = eqx.tree_at(lambda model: model.output, model, output, is_leaf=lambda leaf: leaf is None)
    return jax.tree.map(
        lambda layer: SmallLinear(layer, stored_in) if isinstance(layer, Linear) and layer.weight.ndim == 2 else layer,
        model,
        is_leaf=lambda part: isinstance(part, Linear),
    )


def _shape_of_output(model: Decoder) -> Linear:
    """A map from rows to logits, its numbers not filled in."""
    sizes = model.config.stack.d_model, model.config.vocab_size
    return eqx.filter_eval_shape(lambda key: Linear(*sizes, use_bias=False, key=key), jax.random.key(0))
