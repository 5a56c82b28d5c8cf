"""What a training step of adapters takes beside the weights of a model that was published, as the compiler plans it."""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp

import plainformer as pf
from plainformer.models import add_adapters, is_adapter

MODEL, RANK, NUM_TEXTS, NUM_TOKENS = "SmolLM2 135M", 8, 4, 256


def adapted() -> pf.Decoder:
    """The shapes of the model with an adapter at every matrix of its blocks."""
    config = pf.models.PUBLISHED[MODEL].config
    return eqx.filter_eval_shape(
        lambda key: add_adapters(pf.Decoder(config, key=key), RANK, where="stack", key=key), jax.random.key(0)
    )


def beside_weights(rematerialise: Literal["nothing", "blocks"]) -> float:
    """Gigabytes of adapters, of their gradients and moments, and of all that a step computes, beside frozen weights."""
    model, ids = adapted(), jnp.zeros((NUM_TEXTS, NUM_TOKENS), jnp.int32)
    config = pf.TrainingConfig(num_steps=1, rematerialise=rematerialise)
    batch, loss = pf.data.Windows(ids, ids), pf.training.next_token_loss
    used: Any = pf.training.compile_step(model, loss, batch, config, trainable=is_adapter).memory_analysis()
    frozen = sum(
        array.size * array.dtype.itemsize
        for name, array in pf.training.named_arrays(model).items()
        if not is_adapter(name)
    )
    # What is returned takes the place of what was handed over, but for a few numbers.
    returned = used.output_size_in_bytes - used.alias_size_in_bytes
    return round((used.argument_size_in_bytes - frozen + returned + used.temp_size_in_bytes) / 1e9, 3)


if __name__ == "__main__":
    print(beside_weights("blocks"))
