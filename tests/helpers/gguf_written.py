"""Models of ours as GGUF files, written by the library, as llama.cpp's own script would."""

import gguf
import numpy as np

from plainformer.training.arrays import named_arrays

BLOCK = {
    "attention_norm.scale": "attn_norm.weight",
    "attention.query": "attn_q",
    "attention.key": "attn_k",
    "attention.value": "attn_v",
    "attention.output": "attn_output",
    "attention.query_norm.scale": "attn_q_norm.weight",
    "attention.key_norm.scale": "attn_k_norm.weight",
    "feed_forward_norm.scale": "ffn_norm.weight",
    "feed_forward.gate": "ffn_gate",
    "feed_forward.up": "ffn_up",
    "feed_forward.down": "ffn_down",
}
WHOLE = {"embedding.weight": "token_embd.weight", "stack.final_norm.scale": "output_norm.weight"}
TOKENS = [*map(chr, range(97, 123)), "Ġ", "th", "<start>", "<end>"]


def gguf_name(ours: str) -> str:
    """What GGUF calls an array of ours."""
    if ours in WHOLE or not ours.startswith("stack.blocks."):
        return WHOLE.get(ours, ours)
    _, _, layer, *rest = ours.split(".")
    name = ".".join(rest)
    if name not in BLOCK:
        part, _, suffix = name.rpartition(".")
        name = f"{BLOCK[part]}.{suffix}"
    else:
        name = BLOCK[name]
    return f"blk.{layer}.{name}"


def side_by_side(rows: np.ndarray, heads: int) -> np.ndarray:
    """Rows of heads whose rotary pairs lie half a head apart, as they are where they lie side by side."""
    return rows.reshape(heads, 2, -1, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def tensors_of(model, architecture: str) -> dict[str, np.ndarray]:
    """The arrays of a decoder, as such a file has them."""
    stack, found = model.config.stack, {}
    heads = {"attn_q": stack.num_heads, "attn_k": stack.num_kv_heads or stack.num_heads}
    for ours, array in named_arrays(model).items():
        name, tensor = gguf_name(ours), np.asarray(array, np.float32)
        if tensor.ndim == 2 and ours != "embedding.weight":
            tensor = tensor.T
        if name == "output.weight" or not name.endswith("attn_output.bias"):
            part = name.split(".")[-2]
            turned = architecture == "llama" and part in heads
            found[name] = np.ascontiguousarray(side_by_side(tensor, heads[part]) if turned else tensor)
    return found


def write_gguf(path, model, architecture="llama", *, tensors=None, kind=None, more=(), eos=29, template=None) -> None:
    """Write a decoder; with other `tensors`, of a `kind` with few bits, or with `more` fields than it needs."""
    config, stack = model.config, model.config.stack
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(config.context_len)
    writer.add_embedding_length(stack.d_model)
    writer.add_block_count(stack.num_layers)
    writer.add_head_count(stack.num_heads)
    writer.add_head_count_kv(stack.num_kv_heads or stack.num_heads)
    writer.add_key_length(stack.key_width)
    writer.add_value_length(stack.value_width)
    writer.add_feed_forward_length(stack.inner_width)
    writer.add_layer_norm_rms_eps(stack.norm_eps)
    writer.add_rope_freq_base(stack.rope_theta)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(TOKENS)
    writer.add_token_types([1] * (len(TOKENS) - 2) + [3, 3])
    writer.add_token_merges(["t h"])
    writer.add_eos_token_id(eos)
    if template is not None:
        writer.add_chat_template(template)
    for name, value in more:
        (writer.add_float32 if isinstance(value, float) else writer.add_string)(name, value)
    for name, tensor in (tensors_of(model, architecture) if tensors is None else tensors).items():
        if kind is None or tensor.ndim == 1:
            writer.add_tensor(name, tensor)
        else:
            writer.add_tensor(name, gguf.quants.quantize(tensor, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
