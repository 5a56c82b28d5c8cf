"""Models that others have published: as many parameters as their classes at Hugging Face, in small the same logits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import transformers
from closeness import assert_close
from test_families import ATTENTION, GATED, each, in_block, scales, weights
from torch_parameters import array, redrawn

import plainformer as pf

PUBLISHED = pf.models.PUBLISHED
KEY = jax.random.key(0)


def of_bert(**sizes):
    """Sizes in the order of a table, as most configurations name them."""
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size")
    table = dict(zip(names, sizes.pop("table"), strict=True))
    return table | sizes


def gpt2(n_embd, n_layer, n_head):
    return transformers.GPT2Config(n_embd=n_embd, n_layer=n_layer, n_head=n_head)


# As the files say that were released. Where nothing is given, the defaults of the class are those of the model.
CONFIGS = {
    "GPT-2 small": gpt2(768, 12, 12),
    "GPT-2 medium": gpt2(1024, 24, 16),
    "GPT-2 large": gpt2(1280, 36, 20),
    "GPT-2 XL": gpt2(1600, 48, 25),
    "Mistral 7B": transformers.MistralConfig(),
    "Mixtral 8x7B": transformers.MixtralConfig(),
    "Llama 3 8B": transformers.LlamaConfig(**of_bert(table=(4096, 32, 32, 8, 14_336), vocab_size=128_256)),
    "Llama 3 70B": transformers.LlamaConfig(**of_bert(table=(8192, 80, 64, 8, 28_672), vocab_size=128_256)),
    "OLMo 2 7B": transformers.Olmo2Config(vocab_size=100_352),
    "DeepSeek-V3": transformers.DeepseekV3Config(),
    "SmolLM2 135M": transformers.LlamaConfig(
        **of_bert(table=(576, 30, 9, 3, 1536), vocab_size=49_152, tie_word_embeddings=True)
    ),
    "Gemma 3 1B": transformers.Gemma3TextConfig(
        **of_bert(table=(1152, 26, 4, 1, 6912), vocab_size=262_144, head_dim=256)
    ),
    "Gemma 3 4B": transformers.Gemma3TextConfig(
        **of_bert(table=(2560, 34, 8, 4, 10_240), vocab_size=262_144, head_dim=256)
    ),
    "Qwen3 0.6B": transformers.Qwen3Config(
        **of_bert(table=(1024, 28, 16, 8, 3072), head_dim=128, tie_word_embeddings=True)
    ),
    "Qwen3 8B": transformers.Qwen3Config(**of_bert(table=(4096, 36, 32, 8, 12_288), head_dim=128)),
    "Qwen3 30B-A3B": transformers.Qwen3MoeConfig(num_hidden_layers=48, head_dim=128),
    "gpt-oss 20b": transformers.GptOssConfig(num_hidden_layers=24, num_local_experts=32),
    "gpt-oss 120b": transformers.GptOssConfig(),
}


# What our experts of gpt-oss lack; and what the experts of DeepSeek-V3 have as no parameter there.
LACKING, MOVED = ("gate_up_proj_bias", "down_proj_bias"), "e_score_correction_bias"


def their_count(config) -> int:
    """The learned numbers of their class, of shapes alone, biases of experts left out."""
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    found = [*model.named_parameters(), *(pair for pair in model.named_buffers() if pair[0].endswith(MOVED))]
    return sum(one.numel() for name, one in found if not name.endswith(LACKING))


def test_every_published_model_has_a_configuration_of_theirs():
    assert CONFIGS.keys() == PUBLISHED.keys()


@pytest.mark.equation("eq-blocks-parameters")
@pytest.mark.parametrize("name", CONFIGS)
def test_published_model_has_as_many_parameters_as_their_class(name):
    assert pf.models.planned_parameters(PUBLISHED[name].config) == their_count(CONFIGS[name])


def compare(ours, theirs):
    tokens = np.random.default_rng(0).integers(3, ours.config.vocab_size, size=(2, 9))
    with torch.no_grad():
        expected = theirs(torch.tensor(tokens)).logits.numpy()
    assert np.abs(expected).max() > 0.3
    assert_close(ours(jnp.asarray(tokens)), expected)
    assert sum(one.numel() for one in theirs.parameters()) == pf.count_parameters(ours)


def their_sizes(config, **fields):
    """A shrunk configuration of ours, as theirs name its sizes."""
    stack = config.stack
    kv_heads = stack.num_kv_heads or stack.num_heads
    table = (stack.d_model, stack.num_layers, stack.num_heads, kv_heads, stack.inner_width)
    named = {"vocab_size": config.vocab_size, "max_position_embeddings": config.context_len}
    none = {"pad_token_id": None, "bos_token_id": None, "eos_token_id": None, "attn_implementation": "eager"}
    return of_bert(table=table) | named | none | {"rms_norm_eps": stack.norm_eps, "head_dim": stack.key_width} | fields


@pytest.mark.equation("eq-modern-output-norm", "eq-modern-norm-across-heads")
def test_olmo2_in_small_has_the_logits_of_their_class():
    config = pf.models.shrunk(PUBLISHED["OLMo 2 7B"].config, width=64, depth=16)
    rope = {"rope_type": "default", "rope_theta": config.stack.rope_theta}
    theirs = redrawn(
        transformers.Olmo2ForCausalLM(transformers.Olmo2Config(**their_sizes(config, rope_parameters=rope)))
    )
    found = scales("stack.final_norm", theirs.model.norm) | weights("output", theirs.lm_head)
    found["embedding.weight"] = array(theirs.model.embed_tokens.weight)
    for number, layer in enumerate(theirs.model.layers):
        parts = [
            each("q_proj k_proj v_proj o_proj", layer.self_attn, ATTENTION),
            each("gate_proj up_proj down_proj", layer.mlp, GATED),
            scales("attention.query_norm.norm", layer.self_attn.q_norm),
            scales("attention.key_norm.norm", layer.self_attn.k_norm),
            scales("attention_norm", layer.post_attention_layernorm),
            scales("feed_forward_norm", layer.post_feedforward_layernorm),
        ]
        found |= in_block(number, parts)
    compare(pf.training.with_arrays(pf.Decoder(config, key=KEY), found), theirs)


@pytest.mark.equation("eq-modern-sandwich-norm")
def test_gemma3_in_small_has_the_logits_of_their_class_with_one_base_of_positions():
    """Their table is ours where it predicts, and times the root of the width where it embeds."""
    small = pf.models.shrunk(PUBLISHED["Gemma 3 1B"].config, width=32, depth=32)
    config = pf.DecoderConfig(small.vocab_size, small.context_len, small.stack, tied_embedding=False)
    rope = {"rope_type": "default", "rope_theta": config.stack.rope_theta}
    both = {"sliding_attention": rope, "full_attention": rope}
    fields = {"rope_parameters": both, "query_pre_attn_scalar": config.stack.key_width}
    sizes = their_sizes(config, **fields, sliding_window=config.stack.window)
    theirs = redrawn(transformers.Gemma3ForCausalLM(transformers.Gemma3TextConfig(**sizes)))
    assert theirs.config.layer_types == 5 * ["sliding_attention"] + ["full_attention"]
    table = array(theirs.model.embed_tokens.weight)
    found = {"embedding.weight": table * config.stack.d_model**0.5, "output.weight": table.T}
    found |= scales("stack.final_norm", theirs.model.norm, 1.0)
    for number, layer in enumerate(theirs.model.layers):
        parts = [
            each("q_proj k_proj v_proj o_proj", layer.self_attn, ATTENTION),
            each("gate_proj up_proj down_proj", layer.mlp, GATED),
            scales("attention.query_norm", layer.self_attn.q_norm, 1.0),
            scales("attention.key_norm", layer.self_attn.k_norm, 1.0),
            scales("attention_norm", layer.input_layernorm, 1.0),
            scales("attention_output_norm", layer.post_attention_layernorm, 1.0),
            scales("feed_forward_norm", layer.pre_feedforward_layernorm, 1.0),
            scales("feed_forward_output_norm", layer.post_feedforward_layernorm, 1.0),
        ]
        found |= in_block(number, parts)
    ours = pf.training.with_arrays(pf.Decoder(config, key=KEY), found)
    tokens = np.random.default_rng(0).integers(3, config.vocab_size, size=(2, 24))  # longer than the window of 16
    with torch.no_grad():
        expected = theirs(torch.tensor(tokens)).logits.numpy()
    assert np.abs(expected).max() > 0.3
    assert_close(ours(jnp.asarray(tokens)), expected)
