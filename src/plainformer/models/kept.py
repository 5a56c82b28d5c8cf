"""What a device holds of activations in a step of training, and when it holds most."""

from collections.abc import Mapping
from typing import NamedTuple

from plainformer.attention.efficiency import Blockwise
from plainformer.models.config import GATES
from plainformer.models.decoder import DecoderConfig

# What a token's network keeps for its gradients, in widths of the network, as XLA compiles it for processors.
WIDTHS_KEPT = {"relu": 2, "squared_relu": 2, "gelu": 3, "gelu_tanh": 3, "silu": 3, "quick_gelu": 3}
WIDTHS_KEPT |= {"swiglu": 5, "geglu": 4, "geglu_tanh": 5}
# And what it has beside them on the way back.
WIDTHS_BACK = {"geglu": 2}
BLOCK_SIZE = Blockwise().block_size


class Kept(NamedTuple):
    """Bytes that a device has of each token: what enters a block, what that keeps, of it its network, what comes last.

    `back_network` and `back_attention` are there beside them while their gradients are computed.
    """

    entering: int
    block: int
    network: int
    last: int
    back_network: int
    back_attention: int


def kept_bytes(config: DecoderConfig, pieces: Mapping[str, int], num_texts: int, seq_len: int, num_bytes: int) -> Kept:
    """Count what a device has of each token, `num_bytes` a number; exponentials have 4, as they are summed."""
    stack = config.stack
    d_model, heads, vocab = stack.d_model, stack.num_heads // pieces["heads"], config.vocab_size // pieces["vocab"]
    norm = (2 if stack.norm == "rms" else 3) * d_model
    wiring = 2 * d_model + 2 * norm if not stack.parallel else norm + 2 * d_model  # side by side they share much
    inner = stack.inner_width // pieces["d_ff"]
    network = num_bytes * WIDTHS_KEPT[stack.activation] * inner
    columns = heads * (2 * stack.key_width + 2 * stack.value_width)
    block = num_bytes * (wiring + columns) + network
    if stack.attention == "direct":
        block += heads * (seq_len * (num_bytes + 4) + 3 * 4)
        back_attention = heads * seq_len * 4
    else:
        block += heads * (stack.value_width * num_bytes + 4)
        # Arrays of a block's pairs that are there at once: XLA shares fewer where an axis before them is one.
        arrays = 4 if num_texts == 1 else 3 if heads == 1 else 2
        back_attention = 3 * num_bytes * d_model + heads * arrays * 4 * min(seq_len, BLOCK_SIZE) ** 2 // seq_len
        if seq_len > BLOCK_SIZE:  # queries, keys and values in blocks, and their gradients
            back_attention += num_bytes * heads * (4 * stack.key_width + 2 * stack.value_width)
    if stack.qk_norm:
        block += num_bytes * (3 * heads + 5 * min(heads, stack.num_kv_heads or heads)) * stack.key_width
    last = num_bytes * (d_model + (norm if stack.norm_placement == "pre" else 0) + vocab) + 4 * vocab
    back_network = num_bytes * WIDTHS_BACK.get(stack.activation, 1) * inner
    return Kept(num_bytes * d_model, block, network, last, back_network, back_attention)


class Moment(NamedTuple):
    """Bytes that a device holds at one moment of a step: of activations, and of gradients that are there already."""

    activations: int
    gradients: int


def fullest_moment(
    config: DecoderConfig,
    pieces: Mapping[str, int],
    kept: Kept,
    num_tokens: int,
    gathered: int,
    unsummed: int | None,
) -> Moment:
    """Return what there is when most is held, beside the weights of which `gathered` bytes are.

    That is when the loss is known, or on the way back through the network of the last block, or through its attention.
    Other gradients come as activations go. Where blocks are computed anew, one after the other, all `unsummed`
    gradients but those of the first block are there when it has its turn, and no other weights than its own.
    """
    stack = config.stack
    table = 4 * stack.d_model * config.vocab_size // pieces["vocab"]
    matrix = 4 * stack.d_model * stack.inner_width // pieces["d_ff"]
    network = (3 if stack.activation in GATES else 2) * matrix
    loss = blocks = stack.num_layers * kept.block
    rows, early = 3 * kept.entering, (table + matrix, table + network)
    if unsummed is not None:
        heads = 2 * stack.num_heads + 2 * (stack.num_kv_heads or stack.num_heads)
        after = unsummed - 4 * stack.d_model * heads * stack.key_width // pieces["heads"]
        loss = stack.num_layers * kept.entering
        blocks, rows = loss + kept.block, 0
        early = (max(after - network - gathered, 0), max(after - gathered, 0))
    return max(
        Moment(num_tokens * (loss + kept.last), table),
        Moment(num_tokens * (blocks + kept.back_network + rows), early[0]),
        Moment(num_tokens * (blocks - kept.network + kept.back_attention), early[1]),
        key=sum,
    )
