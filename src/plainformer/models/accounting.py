"""What a model costs: its learned numbers, operations, and its cache (chapters 04, 07 and 12)."""

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.checks import Count, Positive, checked
from plainformer.models.config import StackConfig
from plainformer.models.decoder import Decoder, DecoderConfig


def count_parameters(module) -> int:
    r"""Count the learned numbers of a module, or of any tree of arrays: the entries of all its floating-point arrays.

    Implements `eq-blocks-parameters`. Shapes are enough: `eqx.filter_eval_shape` gives a module without its numbers.
    """
    leaves = jax.tree.leaves(module)
    arrays = [leaf for leaf in leaves if hasattr(leaf, "dtype")]
    if module is None or (leaves and not arrays and not isinstance(module, eqx.Module)):
        raise TypeError(f"module is of type {type(module).__name__}; expected a module, or a tree of arrays.")
    return sum(array.size for array in arrays if jnp.issubdtype(array.dtype, jnp.inexact))


@checked
def training_flops(config: DecoderConfig, num_tokens: Count, seq_len: Positive | None = None) -> int:
    r"""Count the floating-point operations of training on `num_tokens` tokens, in texts of `seq_len`.

    Implements `eq-efficiency-training-flops`; Kaplan et al. (2020), section 2.1, who leave out the output and, in the
    end, the attention. A multiplication and an addition count as two. Only matrix products are counted: 2 for each
    weight and each token forward; for scores and weighted averages, 4 for each column and each of `seq_len` keys,
    hidden ones included, since they are computed; and twice as much backward as forward. `num_tokens` is batch times
    length times steps; without a length, texts are as long as `context_len`.
    """
    seq_len = config.context_len if seq_len is None else seq_len
    model = eqx.filter_eval_shape(lambda key: Decoder(config, key=key), jax.random.key(0))
    weights = sum(leaf.size for leaf in jax.tree.leaves(model.stack.blocks) if getattr(leaf, "ndim", 0) == 2)
    products = weights + config.stack.d_model * config.vocab_size
    widths = config.stack.num_heads * (config.stack.key_width + config.stack.value_width)
    attention = config.stack.num_layers * widths * seq_len
    return 3 * 2 * num_tokens * (products + attention)


@checked
def forward_flops(config: DecoderConfig, num_tokens: Count, seq_len: Positive | None = None) -> int:
    r"""Count the floating-point operations of reading `num_tokens` tokens, in texts of `seq_len`: a third of training.

    Implements `eq-efficiency-forward-flops`; arguments and what is counted as for `training_flops`.
    """
    return training_flops(config, num_tokens, seq_len) // 3


@checked
def cache_bytes(config: StackConfig, num_tokens: Count, bytes_per_number: Positive = 4) -> int:
    r"""Count the bytes of the keys and values that a model keeps of `num_tokens` tokens.

    Implements `eq-efficiency-cache`; Shazeer (2019), section 3, and Ainslie et al. (2023) for what fewer heads of keys
    and values save.
    """
    num_kv_heads = config.num_kv_heads or config.num_heads
    return config.num_layers * num_kv_heads * (config.key_width + config.value_width) * num_tokens * bytes_per_number
