"""Llama (Touvron et al., 2023) and its kin, by the names of Hugging Face: Mistral, Qwen 2 and 3, SmolLM2."""

import math
from collections.abc import Callable
from typing import Any

from plainformer.models.config import StackConfig
from plainformer.models.decoder import Decoder, DecoderConfig
from plainformer.positions.slower import LinearScaling, NtkScaling, RotaryScaling, Scaling, YarnScaling
from plainformer.pretrained.family import OF_BERT, Family, Head, in_blocks, sizes_of, their_sizes
from plainformer.pretrained.names import TURNED, Line, array, dense, norm, zeros

NAMES = OF_BERT | {"norm_eps": "rms_norm_eps"}
BLOCK = "model.layers.{}"
COMMON = (
    array("model.embed_tokens.weight", "embedding.weight"),
    norm(f"{BLOCK}.input_layernorm", in_blocks("attention_norm")),
    dense(f"{BLOCK}.self_attn.q_proj", in_blocks("attention.query")),
    dense(f"{BLOCK}.self_attn.k_proj", in_blocks("attention.key")),
    dense(f"{BLOCK}.self_attn.v_proj", in_blocks("attention.value")),
    norm(f"{BLOCK}.self_attn.q_norm", in_blocks("attention.query_norm")),
    norm(f"{BLOCK}.self_attn.k_norm", in_blocks("attention.key_norm")),
    norm(f"{BLOCK}.post_attention_layernorm", in_blocks("feed_forward_norm")),
    dense(f"{BLOCK}.mlp.gate_proj", in_blocks("feed_forward.gate")),
    dense(f"{BLOCK}.mlp.up_proj", in_blocks("feed_forward.up")),
    dense(f"{BLOCK}.mlp.down_proj", in_blocks("feed_forward.down")),
    norm("model.norm", "stack.final_norm"),
    array("lm_head.weight", "output.weight", TURNED),
)
LLAMA = (*COMMON, dense(f"{BLOCK}.self_attn.o_proj", in_blocks("attention.output")))
# Queries, keys and values have a bias, and what puts the heads together has none.
QWEN2 = (
    *COMMON,
    array(f"{BLOCK}.self_attn.o_proj.weight", in_blocks("attention.output.weight"), TURNED),
    zeros(in_blocks("attention.output.bias")),
)


def _rotary(theirs: dict) -> dict[str, Any]:
    """Base and scaling of rotary positions, which newer files have in one place and older ones in two."""
    both = theirs.get("rope_parameters") or {}
    scaling = both or theirs.get("rope_scaling") or {}
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind == "default" and "factor" in scaling:
        raise ValueError(
            f"rope scaling has factor={scaling['factor']} and no rope_type; expected one, such as 'linear'"
        )
    if kind not in SCALINGS:
        raise ValueError(f"the type of rope scaling is {kind!r}; expected one of {', '.join(map(repr, SCALINGS))}")
    if both.get("partial_rotary_factor", 1.0) != 1.0:
        raise ValueError(f"partial_rotary_factor is {both['partial_rotary_factor']}; expected 1")
    found: dict[str, Any] = {"rope_theta": float(both.get("rope_theta", theirs.get("rope_theta", 10_000.0)))}
    # A "dynamic" model turns as one without scaling, up to the longest text that it reads when opened.
    if (read := SCALINGS[kind]) is not None:
        found["rope_scaling"] = read({"longest": theirs["max_position_embeddings"]} | scaling)
    return found


def _read_llama3(theirs: dict) -> RotaryScaling:
    """Scaling by parts."""
    return RotaryScaling(
        factor=theirs["factor"],
        slow_turns=theirs["low_freq_factor"],
        fast_turns=theirs["high_freq_factor"],
        trained_len=theirs["original_max_position_embeddings"],
    )


def _read_yarn(theirs: dict) -> YarnScaling:
    """YaRN, whose factor and attention factor may be left out, or be said by the two numbers of DeepSeek."""
    trained_len = theirs.get("original_max_position_embeddings") or theirs["longest"]
    factor = theirs.get("factor") or theirs["longest"] / trained_len
    sharper = theirs.get("attention_factor")
    if sharper is None and theirs.get("mscale") and theirs.get("mscale_all_dim"):
        above, below = (0.1 * theirs[name] * math.log(factor) + 1 for name in ("mscale", "mscale_all_dim"))
        sharper = above / below
    return YarnScaling(
        factor=factor,
        slow_turns=theirs.get("beta_slow") or 1.0,
        fast_turns=theirs.get("beta_fast") or 32.0,
        trained_len=trained_len,
        attention_factor=sharper,
        truncate=theirs.get("truncate", True),
    )


# What their types of scaling are here; None for no scaling.
SCALINGS: dict[str, Callable[[dict], Scaling] | None] = {
    "default": None,
    "linear": lambda theirs: LinearScaling(factor=theirs["factor"]),
    "dynamic": None,
    "llama3": _read_llama3,
    "yarn": _read_yarn,
}


def _write_scaling(scaling: Scaling | None) -> dict | None:
    """Theirs; NTK-aware scaling is a larger base, and so is no scaling for them."""
    if scaling is None or isinstance(scaling, NtkScaling):
        return None
    if isinstance(scaling, LinearScaling):
        return {"rope_type": "linear", "factor": scaling.factor}
    parts = {"factor": scaling.factor, "original_max_position_embeddings": scaling.trained_len}
    if isinstance(scaling, RotaryScaling):
        ends = {"low_freq_factor": scaling.slow_turns, "high_freq_factor": scaling.fast_turns}
        return {"rope_type": "llama3"} | parts | ends
    sharper = {} if scaling.attention_factor is None else {"attention_factor": scaling.attention_factor}
    ends = {"beta_slow": scaling.slow_turns, "beta_fast": scaling.fast_turns, "truncate": scaling.truncate}
    return {"rope_type": "yarn"} | parts | ends | sharper


def _read(theirs: dict, **fields) -> DecoderConfig:
    """Our configuration, with the fields in which one family differs."""
    if kinds := set(theirs.get("layer_types") or []) - {"full_attention"}:
        raise ValueError(f"layer_types has {sorted(kinds)}; expected 'full_attention' in every layer")
    width = theirs.get("head_dim") or theirs["hidden_size"] // theirs["num_attention_heads"]
    common: dict[str, Any] = {"norm": "rms", "position_scheme": "rotary", "use_bias": False}
    stack = StackConfig(
        num_kv_heads=theirs.get("num_key_value_heads") or theirs["num_attention_heads"],
        d_k=width,
        d_v=width,
        **sizes_of(theirs, NAMES, gated=True),
        **common | _rotary(theirs) | fields,
    )
    sizes = theirs["vocab_size"], theirs["max_position_embeddings"]
    return DecoderConfig(*sizes, stack, theirs["tie_word_embeddings"])


def _write(model: Decoder) -> dict:
    """Theirs."""
    ours, stack = model.config, model.config.stack
    base, scaling = stack.rope_theta, stack.rope_scaling
    if isinstance(scaling, NtkScaling):
        base = scaling.base(base, stack.key_width)
    return {
        "vocab_size": ours.vocab_size,
        "max_position_embeddings": ours.context_len,
        "num_key_value_heads": stack.num_kv_heads or stack.num_heads,
        "head_dim": stack.key_width,
        **their_sizes(stack, NAMES),
        "rope_theta": base,
        "rope_scaling": _write_scaling(scaling),
        "tie_word_embeddings": ours.tied_embedding,
        "attention_bias": stack.use_bias,
        "sliding_window": stack.window,
    }


def _family(model_type: str, name: str, lines: tuple[Line, ...], fixed: dict, fields) -> Family:
    """A family; `fields` makes of their configuration the fields of ours in which it differs."""
    head = Head(Decoder, lambda theirs: _read(theirs, **fields(theirs)), _write, lambda theirs: lines)
    return Family(
        model_type,
        {name: head},
        defaults={"rms_norm_eps": 1e-6, "hidden_act": "silu", "tie_word_embeddings": False},
        fixed=fixed,
        prefix="model.",
        extras=("model.layers.*.self_attn.rotary_emb.inv_freq",),
        twins={"lm_head.weight": "model.embed_tokens.weight"},
    )


UNSLID = {"use_sliding_window": (False, None)}
FAMILIES = (
    _family(
        "llama", "LlamaForCausalLM", LLAMA, {"mlp_bias": False}, lambda c: {"use_bias": bool(c.get("attention_bias"))}
    ),
    _family("mistral", "MistralForCausalLM", LLAMA, {}, lambda c: {"window": c.get("sliding_window", 4096)}),
    _family("qwen2", "Qwen2ForCausalLM", QWEN2, UNSLID, lambda c: {"use_bias": True}),
    _family(
        "qwen3",
        "Qwen3ForCausalLM",
        LLAMA,
        UNSLID,
        lambda c: {"qk_norm": True, "use_bias": bool(c.get("attention_bias"))},
    ),
)
