"""What a model costs: its learned numbers, operations, and its cache."""

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.attention.delta import BLOCK_SIZE
from plainformer.attention.few_bits import Bits, group_sizes
from plainformer.blocks.experts import Experts
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


def active_parameters(module) -> int:
    r"""Count the learned numbers of a module that work on one token: of its experts those that are chosen, and shared.

    Implements `eq-modern-active`; Jiang et al. (2024), section 2. Everything else counts as in `count_parameters`, the
    whole table of an embedding and the router included.

    Example:
        Of eight experts, two work.

        >>> experts = pf.blocks.ExpertsConfig(num_experts=8, per_token=2, width=10)
        >>> stack = pf.StackConfig(d_model=12, num_layers=1, num_heads=3, experts=experts, use_bias=False)
        >>> block = pf.make_block(stack, key=jax.random.key(0))
        >>> pf.count_parameters(block) - pf.models.active_parameters(block) == 6 * 2 * 12 * 10
        True
    """
    return count_parameters(_at_work(module))


def _at_work(module):
    """The shapes of a module, with as many networks in the place of experts as work on one token."""

    def is_experts(part) -> bool:
        return isinstance(part, Experts)

    def of_token(part):
        if not is_experts(part):
            return part
        one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), part.networks)
        return [part.router, part.choice_bias, part.shared, *(part.config.per_token * [one])]

    return jax.tree.map(of_token, module, is_leaf=is_experts)


@checked
def training_flops(config: DecoderConfig, num_tokens: Count, seq_len: Positive | None = None) -> int:
    r"""Count the floating-point operations of training on `num_tokens` tokens, in texts of `seq_len`.

    Implements `eq-efficiency-training-flops`; Kaplan et al. (2020), section 2.1, who leave out the output and, in the
    end, the attention. A multiplication and an addition count as two. Only matrix products are counted: 2 for each
    weight and each token forward; for scores and weighted averages, 4 for each column and each of `seq_len` keys,
    hidden ones included, since they are computed; and twice as much backward as forward. Of experts, those count that
    work on a token; the empty rows with which `mixture` fills its blocks, up to a quarter more, do not. A `"delta"`
    block has, in place of scores and averages, 4 products within blocks of at most 32 tokens and 3 with the state of
    each head. `num_tokens` is batch times length times steps; without a length, texts are as long as `context_len`.
    """
    seq_len = config.context_len if seq_len is None else seq_len
    model = eqx.filter_eval_shape(lambda key: Decoder(config, key=key), jax.random.key(0))
    at_work = jax.tree.leaves(_at_work(model.stack.blocks))
    weights = sum(leaf.size for leaf in at_work if getattr(leaf, "ndim", 0) == 2)
    products = weights + config.stack.d_model * config.vocab_size
    widths = config.stack.num_heads * (config.stack.key_width + config.stack.value_width)
    state = 3 * config.stack.num_heads * config.stack.key_width * config.stack.value_width
    num_delta = config.stack.kinds.count("delta")
    attention = (config.stack.num_layers - num_delta) * widths * seq_len
    attention += num_delta * (2 * widths * min(seq_len, BLOCK_SIZE) + state)
    return 3 * 2 * num_tokens * (products + attention)


@checked
def forward_flops(config: DecoderConfig, num_tokens: Count, seq_len: Positive | None = None) -> int:
    r"""Count the floating-point operations of reading `num_tokens` tokens, in texts of `seq_len`: a third of training.

    Implements `eq-efficiency-forward-flops`; arguments and what is counted as for `training_flops`.
    """
    return training_flops(config, num_tokens, seq_len) // 3


@checked
def cache_bytes(
    config: StackConfig,
    num_tokens: Count,
    bytes_per_number: Positive = 4,
    *,
    bits: Bits | None = None,
    group: Positive | None = None,
) -> int:
    r"""Count the bytes of the keys and values that a model keeps of `num_tokens` tokens.

    Implements `eq-efficiency-cache`; Shazeer (2019), section 3, and Ainslie et al. (2023) for what fewer heads of keys
    and values save; with `latent`, where short vectors are kept in their place, `eq-modern-latent-cache`, DeepSeek-AI
    (2024), table 1. A `"delta"` block keeps the same for one token as for any number: a state and the three rows that
    its convolution looks back at, in at least 4 bytes a number. With `bits`, 8 or 4, of one text whose numbers are kept
    in so few, a step and a least number of two bytes each for a `group`, as for `KeyValueCache`:
    `eq-serving-cache-bytes`. The newest group of the keys takes `bytes_per_number`.
    """
    num_heads, d_k, d_v = config.num_kv_heads or config.num_heads, config.key_width, config.value_width
    num_delta = config.kinds.count("delta")
    per_text = config.num_heads * (d_k * d_v + 3 * (2 * d_k + d_v)) * max(bytes_per_number, 4)
    if config.latent is not None:
        num_heads, d_k, d_v = 1, config.latent.rotary_width, config.latent.width
    if bits is None:
        of_attention = num_tokens * (d_k + d_v) * bytes_per_number
    else:
        of_key, of_value = group_sizes(d_v, bits, group)
        num_groups = -(-num_tokens // of_key)
        of_attention = d_k * (num_groups * (of_key * bits // 8 + 4) + of_key * bytes_per_number)
        of_attention += num_tokens * d_v // of_value * (of_value * bits // 8 + 4)
    return (config.num_layers - num_delta) * num_heads * of_attention + num_delta * per_text
