"""Sinks and windows in turn: the same numbers as gpt-oss's attention and as a Qwen3 whose layers are of two kinds."""

import jax.numpy as jnp
import numpy as np
import pytest
import torch
import transformers
from closeness import assert_close
from flat import decoder_config
from test_families import CONTEXT, KEY, MODERN, MODERN_THEIRS, SIZES, TEXTS, THEIRS, VOCAB, llamas, rope
from torch_parameters import array, redrawn
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssAttention, GptOssRotaryEmbedding

import plainformer as pf
from plainformer.positions.window import Window

SEQ, HEADS, KV_HEADS, D_K, D_MODEL, BATCH = 7, 6, 2, 8, 20, 3


def theirs_and_ours(layer: int, kernel):
    """An attention of theirs, which has a window of three in its first layer, and ours with its weights."""
    config = transformers.GptOssConfig(
        hidden_size=D_MODEL,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        head_dim=D_K,
        sliding_window=3,
        rope_parameters=rope(),
        attn_implementation="eager",
    )
    theirs = redrawn(GptOssAttention(config, layer))
    ours = pf.MultiHeadAttention(
        D_MODEL, HEADS, num_kv_heads=KV_HEADS, d_k=D_K, d_v=D_K, use_bias=True, kernel=kernel, key=KEY
    )
    arrays = {"kernel.sinks": array(theirs.sinks)}
    for name, module in zip(["query", "key", "value", "output"], ["q_proj", "k_proj", "v_proj", "o_proj"], strict=True):
        arrays[f"{name}.weight"] = array(getattr(theirs, module).weight).T
        arrays[f"{name}.bias"] = array(getattr(theirs, module).bias)
    return config, theirs, pf.training.with_arrays(ours, arrays)


@pytest.mark.parametrize(
    "kernel", [lambda sinks: pf.attention.Softmax(sinks=sinks), lambda sinks: pf.attention.Blockwise(3, sinks)]
)
@pytest.mark.parametrize("layer", [0, 1])
def test_attention_with_sinks_is_that_of_gpt_oss(layer, kernel):
    config, theirs, ours = theirs_and_ours(layer, kernel(jnp.zeros(HEADS)))
    x = np.random.default_rng(4).normal(size=(BATCH, SEQ, D_MODEL)).astype(np.float32)
    scheme = pf.RotaryPositions(base=50.0)
    if config.layer_types[layer] == "sliding_attention":
        scheme = Window(scheme, config.sliding_window)
    hidden = np.where(pf.causal_mask(SEQ), 0, -np.inf)
    near = scheme.sees(jnp.arange(SEQ), jnp.arange(SEQ))
    hidden = hidden if near is None else np.where(near, hidden, -np.inf)
    with torch.no_grad():
        turns = GptOssRotaryEmbedding(config)(torch.tensor(x), torch.arange(SEQ)[None])
        expected, weights = theirs(torch.tensor(x), turns, torch.tensor(hidden, dtype=torch.float32)[None, None])
    assert (weights.sum(dim=-1) < 0.99).any()  # a part of the attention goes to the sinks
    assert_close(ours(jnp.asarray(x), pf.attention.Mask(causal=True), scheme=scheme), expected.numpy())
    cache, rows = ours.make_cache(SEQ, batch=(BATCH,)), []
    for part in (np.s_[:4], np.s_[4:5], np.s_[5:]):
        places = jnp.broadcast_to(jnp.arange(SEQ)[part], (BATCH, len(range(SEQ)[part])))
        found, cache = ours.extend(jnp.asarray(x[:, part]), cache, places, scheme=scheme)
        rows.append(found)
    assert_close(jnp.concatenate(rows, axis=1), expected.numpy())


def test_a_pattern_of_windows_is_that_of_layer_types():
    kinds = ["sliding_attention", "full_attention", "sliding_attention"]
    config = transformers.Qwen3Config(
        **THEIRS | {"num_hidden_layers": len(kinds)},
        **MODERN_THEIRS,
        head_dim=10,
        rope_parameters=rope(),
        use_sliding_window=True,
        sliding_window=3,
        layer_types=kinds,
    )
    theirs = redrawn(transformers.Qwen3ForCausalLM(config))
    fields = {"activation": "swiglu", "d_k": 10, "d_v": 10, "qk_norm": True, "num_layers": len(kinds)}
    fields |= {"window": 3, "pattern": ("window", "full")}
    ours = pf.Decoder(decoder_config(VOCAB, CONTEXT, **SIZES | MODERN | fields), key=KEY)
    ours = pf.training.with_arrays(ours, llamas(theirs))
    with torch.no_grad():
        expected = theirs(torch.tensor(TEXTS)).logits.numpy()
    assert np.abs(expected).max() > 1
    assert_close(ours(jnp.asarray(TEXTS)), expected)
