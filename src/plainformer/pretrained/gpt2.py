"""GPT-2 (Radford et al., 2019), by the names of Hugging Face."""

from plainformer.models.config import StackConfig
from plainformer.models.decoder import Decoder, DecoderConfig
from plainformer.pretrained.family import OF_GPT, Family, Head, in_blocks, sizes_of, their_sizes
from plainformer.pretrained.names import SAME, TURNED, array, beside, dense, norm

DEFAULTS = {"n_inner": None, "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new"}
# Their matrices stand as ours do, which is rare in PyTorch.
LINES = (
    array("transformer.wte.weight", "embedding.weight"),
    array("transformer.wpe.weight", "stack.scheme.table"),
    norm("transformer.h.{}.ln_1", in_blocks("attention_norm")),
    beside("transformer.h.{}.attn.c_attn", in_blocks("attention.query attention.key attention.value")),
    dense("transformer.h.{}.attn.c_proj", in_blocks("attention.output"), SAME),
    norm("transformer.h.{}.ln_2", in_blocks("feed_forward_norm")),
    dense("transformer.h.{}.mlp.c_fc", in_blocks("feed_forward.up"), SAME),
    dense("transformer.h.{}.mlp.c_proj", in_blocks("feed_forward.down"), SAME),
    norm("transformer.ln_f", "stack.final_norm"),
    array("lm_head.weight", "output.weight", TURNED),
)


def _read(theirs: dict) -> DecoderConfig:
    """Our configuration."""
    sizes = theirs["vocab_size"], theirs["n_positions"]
    return DecoderConfig(*sizes, StackConfig(**sizes_of(theirs, OF_GPT)), theirs["tie_word_embeddings"])


def _write(model: Decoder) -> dict:
    """Theirs."""
    ours = model.config
    sizes = {"vocab_size": ours.vocab_size, "n_positions": ours.context_len}
    return sizes | their_sizes(ours.stack, OF_GPT) | {"tie_word_embeddings": ours.tied_embedding}


FAMILY = Family(
    "gpt2",
    {"GPT2LMHeadModel": Head(Decoder, _read, _write, lambda theirs: LINES)},
    defaults=DEFAULTS | {"tie_word_embeddings": True},
    fixed={"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False, "add_cross_attention": False},
    prefix="transformer.",
    extras=("transformer.h.*.attn.bias", "transformer.h.*.attn.masked_bias"),
    twins={"lm_head.weight": "transformer.wte.weight"},
)
