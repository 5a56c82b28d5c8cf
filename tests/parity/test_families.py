"""Models of other families, each for what is odd about it: tiny ones of Hugging Face, their weights in ours by name."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import transformers
from closeness import assert_close
from flat import decoder_config
from torch_parameters import array, redrawn

import plainformer as pf

VOCAB, CONTEXT, WIDTH, LAYERS, HEADS, KV_HEADS, D_FF, NEW = 17, 23, 24, 2, 3, 1, 20, 9
SIZES = {"d_model": WIDTH, "num_layers": LAYERS, "num_heads": HEADS, "d_ff": D_FF}
DRAW = np.random.default_rng(0)
TEXTS, SOURCES = DRAW.integers(3, VOCAB, size=(3, 12)), DRAW.integers(3, VOCAB, size=(3, 15))
PROMPTS = DRAW.integers(3, VOCAB, size=(2, 4)).tolist()
KEY = jax.random.key(0)
# As their configurations call the sizes.
THEIRS = {
    "vocab_size": VOCAB,
    "hidden_size": WIDTH,
    "intermediate_size": D_FF,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "max_position_embeddings": CONTEXT,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
    "attn_implementation": "eager",
}


def rope(fraction=1.0):
    return {"rope_type": "default", "rope_theta": 50.0, "partial_rotary_factor": fraction}


def weights(name, module, factor=1.0):
    """A linear map of theirs, by the names of ours; with a factor where theirs multiplies elsewhere."""
    found = {f"{name}.weight": array(module.weight).T * factor}
    return found if getattr(module, "bias", None) is None else {**found, f"{name}.bias": array(module.bias) * factor}


def scales(name, module, more=0.0):
    """A norm of theirs, by the names of ours; NVIDIA's code stores what is more than one."""
    found = {f"{name}.scale": array(module.weight) + more}
    return found if getattr(module, "bias", None) is None else {**found, f"{name}.bias": array(module.bias)}


def each(names, module, ours):
    """Several linear maps of one module: theirs, named in the order of ours."""
    found = {}
    for theirs, name in zip(names.split(), ours.split(), strict=True):
        found |= weights(name, getattr(module, theirs))
    return found


def in_block(layer, parts, stack="stack"):
    """The arrays of one block, by their names in the whole model."""
    return {f"{stack}.blocks.{layer}.{name}": value for part in parts for name, value in part.items()}


def fused(name, module):
    """Queries, keys and values of one matrix, which holds those of the first head first."""
    found, weight, bias = {}, array(module.weight), array(module.bias)
    for number, kind in enumerate(("query", "key", "value")):
        rows = weight.reshape(HEADS, 3, WIDTH // HEADS, WIDTH)[:, number].reshape(WIDTH, WIDTH)
        found |= {f"{name}.{kind}.weight": rows.T, f"{name}.{kind}.bias": bias.reshape(HEADS, 3, -1)[:, number].ravel()}
    return found


ATTENTION = "attention.query attention.key attention.value attention.output"
GATED = "feed_forward.gate feed_forward.up feed_forward.down"
PLAIN = "feed_forward.up feed_forward.down"


def llamas(theirs):
    """The arrays of a decoder that is built as Llama's."""
    found = scales("stack.final_norm", theirs.model.norm) | weights("output", theirs.lm_head)
    found["embedding.weight"] = array(theirs.model.embed_tokens.weight)
    for number, layer in enumerate(theirs.model.layers):
        parts = [
            each("q_proj k_proj v_proj o_proj", layer.self_attn, ATTENTION),
            each("gate_proj up_proj down_proj", layer.mlp, GATED),
            scales("attention_norm", layer.input_layernorm),
            scales("feed_forward_norm", layer.post_attention_layernorm),
        ]
        if hasattr(layer.self_attn, "q_norm"):
            norms = {"attention.query_norm": layer.self_attn.q_norm, "attention.key_norm": layer.self_attn.k_norm}
            parts += [scales(name, norm) for name, norm in norms.items()]
        found |= in_block(number, parts)
    return found


MODERN = {
    "norm": "rms",
    "norm_eps": 1e-3,
    "use_bias": False,
    "position_scheme": "rotary",
    "rope_theta": 50.0,
    "tied_embedding": False,
    "num_kv_heads": KV_HEADS,
}
MODERN_THEIRS = {"num_key_value_heads": KV_HEADS, "rms_norm_eps": 1e-3, "tie_word_embeddings": False}


def gpt_neox():
    config = transformers.GPTNeoXConfig(
        **THEIRS, layer_norm_eps=1e-3, hidden_act="gelu", use_parallel_residual=True, rope_parameters=rope(0.25)
    )
    theirs = redrawn(transformers.GPTNeoXForCausalLM(config))
    body, found = theirs.gpt_neox, weights("output", theirs.lm_head)
    found |= scales("stack.final_norm", body.final_layer_norm) | {"embedding.weight": array(body.embed_in.weight)}
    for number, layer in enumerate(body.layers):
        parts = [
            fused("attention", layer.attention.query_key_value),
            weights("attention.output", layer.attention.dense),
            each("dense_h_to_4h dense_4h_to_h", layer.mlp, PLAIN),
            scales("attention_norm", layer.input_layernorm),
            scales("feed_forward_norm", layer.post_attention_layernorm),
        ]
        found |= in_block(number, parts)
    fields = {"position_scheme": "rotary", "rope_theta": 50.0, "rotary_fraction": 0.25, "tied_embedding": False}
    return theirs, fields | {"norm_eps": 1e-3, "parallel": True, "activation": "gelu"}, found


def bloom():
    names = {"num_hidden_layers": "n_layer", "num_attention_heads": "n_head"}
    sizes = {names.get(name, name): value for name, value in THEIRS.items() if name != "intermediate_size"}
    theirs = redrawn(transformers.BloomForCausalLM(transformers.BloomConfig(**sizes, layer_norm_epsilon=1e-3)))
    body, found = theirs.transformer, {"embedding.weight": array(theirs.transformer.word_embeddings.weight)}
    found |= scales("stack.final_norm", body.ln_f) | scales("embedding_norm", body.word_embeddings_layernorm)
    for number, layer in enumerate(body.h):
        parts = [
            fused("attention", layer.self_attention.query_key_value),
            weights("attention.output", layer.self_attention.dense),
            each("dense_h_to_4h dense_4h_to_h", layer.mlp, PLAIN),
            scales("attention_norm", layer.input_layernorm),
            scales("feed_forward_norm", layer.post_attention_layernorm),
        ]
        found |= in_block(number, parts)
    fields = {"position_scheme": "alibi", "norm_eps": 1e-3, "activation": "gelu_tanh", "d_ff": None}
    return theirs, fields | {"embedding_norm": True}, found


FAMILIES = {make.__name__: make for make in (gpt_neox, bloom)}


@pytest.fixture(params=FAMILIES)
def pair(request):
    """Theirs, and ours with its weights."""
    theirs, fields, arrays = FAMILIES[request.param]()
    config = decoder_config(VOCAB, CONTEXT, **SIZES | fields)
    return theirs, pf.training.with_arrays(pf.Decoder(config, key=KEY), arrays)


def test_decoder_gives_the_logits_of_every_family(pair):
    theirs, ours = pair
    with torch.no_grad():
        expected = theirs(torch.tensor(TEXTS)).logits.numpy()
    assert np.abs(expected).max() > 1
    assert_close(ours(jnp.asarray(TEXTS)), expected)


def test_generate_writes_the_greedy_texts_of_every_family(pair):
    theirs, ours = pair
    found = pf.generate(ours, PROMPTS, NEW, temperature=0.0)
    tokens = torch.tensor(PROMPTS)
    options = {"attention_mask": torch.ones_like(tokens), "max_new_tokens": NEW, "do_sample": False, "pad_token_id": 0}
    expected = theirs.generate(tokens, **options)
    assert [text.tokens for text in found] == expected[:, len(PROMPTS[0]) :].tolist()


def half_of_t5(theirs, stack, d_k, factor=1.0):
    """The arrays of T5's encoder or decoder; `factor` is what it multiplies its last rows by."""
    found = {f"{stack}.final_norm.scale": array(theirs.final_layer_norm.weight) * factor}
    table = theirs.block[0].layer[0].SelfAttention.relative_attention_bias  # the first block's, for all
    found[f"{stack}.scheme.table"] = array(table.weight)
    for number, block in enumerate(theirs.block):
        names = ["attention", "cross"][: len(block.layer) - 1]
        parts = [scales("feed_forward_norm", block.layer[-1].layer_norm)]
        network = block.layer[-1].DenseReluDense
        has_gate = hasattr(network, "wi_0")
        parts.append(each("wi_0 wi_1 wo" if has_gate else "wi wo", network, GATED if has_gate else PLAIN))
        for layer, name in zip(block.layer, names, strict=False):
            attention = layer.SelfAttention if name == "attention" else layer.EncDecAttention
            place = "attention" if name == "attention" else "cross_attention"
            # It does not divide its scores by the root of d_k: ours gets queries that are larger by that.
            parts += [weights(f"{place}.query", attention.q, d_k**0.5), scales(f"{name}_norm", layer.layer_norm)]
            parts += [each("k v o", attention, f"{place}.key {place}.value {place}.output")]
        found |= in_block(number, parts, stack)
    return found


@pytest.mark.parametrize(
    ("activation", "theirs_calls_it", "multiplies"), [("relu", "relu", True), ("geglu_tanh", "gated-gelu", False)]
)
def test_seq2seq_gives_the_logits_of_t5(activation, theirs_calls_it, multiplies):
    d_k, buckets = 5, {"num_buckets": 8, "max_distance": 11}
    config = transformers.T5Config(
        vocab_size=VOCAB,
        d_model=WIDTH,
        d_kv=d_k,
        d_ff=D_FF,
        num_layers=LAYERS,
        num_heads=HEADS,
        relative_attention_num_buckets=buckets["num_buckets"],
        relative_attention_max_distance=buckets["max_distance"],
        layer_norm_epsilon=1e-3,
        feed_forward_proj=theirs_calls_it,
        tie_word_embeddings=multiplies,  # the first version multiplies what it compares with its table
        decoder_start_token_id=0,
    )
    theirs = redrawn(transformers.T5ForConditionalGeneration(config))
    kinds = {"norm": "rms", "norm_eps": 1e-3, "use_bias": False, "position_scheme": "relative", **buckets}
    stack = pf.StackConfig(**SIZES, **kinds, activation=activation, d_k=d_k, d_v=d_k)
    sizes = pf.Seq2SeqConfig(VOCAB, CONTEXT, CONTEXT, start_token=0, stop_token=1, encoder=stack, decoder=stack)
    found = {"encoder.embedding.weight": array(theirs.shared.weight)}
    found |= half_of_t5(theirs.encoder, "encoder.stack", d_k)
    found |= half_of_t5(theirs.decoder, "stack", d_k, WIDTH**-0.5 if multiplies else 1.0)
    ours = pf.training.with_arrays(pf.Seq2Seq(sizes, key=KEY), found)
    targets = np.concatenate([np.zeros((3, 1), int), TEXTS], axis=1)
    with torch.no_grad():
        expected = theirs(input_ids=torch.tensor(SOURCES), decoder_input_ids=torch.tensor(targets)).logits.numpy()
    assert np.abs(expected).max() > 0.1
    assert_close(ours(jnp.asarray(SOURCES), jnp.asarray(targets)), expected)
