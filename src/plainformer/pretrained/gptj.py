"""GPT-J (Wang and Komatsuzaki, 2021), by the names of Hugging Face; its rotary pairs are neighbouring columns."""

from plainformer.models.config import StackConfig
from plainformer.models.decoder import Decoder, DecoderConfig
from plainformer.pretrained.family import OF_GPT, Family, Head, in_blocks, sizes_of, their_sizes
from plainformer.pretrained.gpt2 import DEFAULTS
from plainformer.pretrained.names import TURNED, Interleaved, array, dense, norm, zeros


def _lines(theirs: dict) -> list:
    """The table of names; two norms of ours are one of theirs, and only the network has biases."""
    form = Interleaved(theirs["n_embd"] // theirs["n_head"], theirs["rotary_dim"])
    block = "transformer.h.{}"
    return [
        array("transformer.wte.weight", "embedding.weight"),
        norm(f"{block}.ln_1", in_blocks("attention_norm feed_forward_norm")),
        array(f"{block}.attn.q_proj.weight", in_blocks("attention.query.weight"), form),
        array(f"{block}.attn.k_proj.weight", in_blocks("attention.key.weight"), form),
        array(f"{block}.attn.v_proj.weight", in_blocks("attention.value.weight"), TURNED),
        array(f"{block}.attn.out_proj.weight", in_blocks("attention.output.weight"), TURNED),
        zeros(in_blocks("attention.query.bias attention.key.bias attention.value.bias attention.output.bias")),
        dense(f"{block}.mlp.fc_in", in_blocks("feed_forward.up")),
        dense(f"{block}.mlp.fc_out", in_blocks("feed_forward.down")),
        norm("transformer.ln_f", "stack.final_norm"),
        dense("lm_head", "output"),
    ]


def _read(theirs: dict) -> DecoderConfig:
    """Our configuration."""
    stack = StackConfig(
        **sizes_of(theirs, OF_GPT),
        parallel=True,
        position_scheme="rotary",
        rotary_fraction=theirs["rotary_dim"] * theirs["n_head"] / theirs["n_embd"],
    )
    sizes = theirs["vocab_size"], theirs["n_positions"]
    return DecoderConfig(*sizes, stack, tied_embedding=False, output_bias=True)


def _write(model: Decoder) -> dict:
    """Theirs."""
    ours, stack = model.config, model.config.stack
    return {
        "vocab_size": ours.vocab_size,
        "n_positions": ours.context_len,
        "rotary_dim": round(stack.rotary_fraction * stack.key_width),
        "tie_word_embeddings": False,
        **their_sizes(stack, OF_GPT),
    }


FAMILY = Family(
    "gptj",
    {"GPTJForCausalLM": Head(Decoder, _read, _write, _lines)},
    defaults=DEFAULTS,
    fixed={"tie_word_embeddings": False},
    prefix="transformer.",
    extras=("transformer.h.*.attn.bias", "transformer.h.*.attn.masked_bias"),
)
