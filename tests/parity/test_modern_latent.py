"""Latent attention against DeepSeek-V3 as Hugging Face has it: odd sizes, all networks dense, the same numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import transformers
from closeness import assert_close
from torch_parameters import array, redrawn

import plainformer as pf

D_MODEL, HEADS, LAYERS, OWN, ROTARY, D_V, WIDTH = 24, 3, 2, 6, 4, 5, 7
TOKENS = np.random.default_rng(2).integers(17, size=(2, 9))


def their_model(query_width, **options):
    """All blocks have a dense network, as the first ones of DeepSeek-V3 do; and no block predicts a second token."""
    return redrawn(
        transformers.DeepseekV3ForCausalLM(
            transformers.DeepseekV3Config(
                vocab_size=17,
                hidden_size=D_MODEL,
                intermediate_size=20,
                num_hidden_layers=LAYERS,
                num_attention_heads=HEADS,
                num_key_value_heads=HEADS,
                kv_lora_rank=WIDTH,
                q_lora_rank=query_width,
                qk_rope_head_dim=ROTARY,
                qk_nope_head_dim=OWN,
                v_head_dim=D_V,
                max_position_embeddings=23,
                num_mtp_layers=0,
                rope_parameters={"rope_type": "default", "rope_theta": 50.0},
                **{"bos_token_id": None, "eos_token_id": None, "pad_token_id": None},
                **{"first_k_dense_replace": LAYERS} | options,
            )
        )
    )


def our_config(query_width):
    stack = pf.StackConfig(
        d_model=D_MODEL,
        num_layers=LAYERS,
        num_heads=HEADS,
        d_k=OWN + ROTARY,
        d_v=D_V,
        d_ff=20,
        latent=pf.attention.LatentConfig(width=WIDTH, rotary_width=ROTARY, query_width=query_width),
        norm="rms",
        norm_eps=1e-6,
        activation="swiglu",
        position_scheme="rotary",
        rope_theta=50.0,
        use_bias=False,
    )
    return pf.DecoderConfig(17, 23, stack=stack, tied_embedding=False)


def order(interleaved):
    """Their column for each of ours, of those that turn: they pair neighbours, where ours are half a width apart."""
    places = np.arange(ROTARY)
    return np.concatenate([places[::2], places[1::2]]) if interleaved else places


def attention_arrays(theirs, turned):
    """The arrays of our layer by name, from one of theirs; `turned` is the order of the columns that turn."""
    last = theirs.q_proj if theirs.q_lora_rank is None else theirs.q_b_proj
    queries = array(last.weight).T.reshape(-1, HEADS, OWN + ROTARY)
    queries = np.concatenate([queries[..., :OWN], queries[..., OWN + turned]], axis=-1)
    ups = array(theirs.kv_b_proj.weight).T.reshape(WIDTH, HEADS, OWN + D_V)
    down = array(theirs.kv_a_proj_with_mqa.weight).T
    found = {
        "query.weight": queries.reshape(len(queries), -1),
        "down.weight": down[:, :WIDTH],
        "rotary_key.weight": down[:, WIDTH + turned],
        "latent_norm.scale": array(theirs.kv_a_layernorm.weight),
        "key.weight": ups[..., :OWN].reshape(WIDTH, -1),
        "value.weight": ups[..., OWN:].reshape(WIDTH, -1),
        "output.weight": array(theirs.o_proj.weight).T,
    }
    if theirs.q_lora_rank is not None:
        found |= {
            "query_down.weight": array(theirs.q_a_proj.weight).T,
            "query_norm.scale": array(theirs.q_a_layernorm.weight),
        }
    return found


def our_model(theirs, query_width, interleaved=True):
    """A decoder with the numbers of theirs."""
    body = theirs.model
    arrays = {
        "embedding.weight": array(body.embed_tokens.weight),
        "output.weight": array(theirs.lm_head.weight).T,
        "stack.final_norm.scale": array(body.norm.weight),
    }
    for number, layer in enumerate(body.layers):
        block = f"stack.blocks.{number}."
        arrays |= {
            f"{block}attention.{name}": value
            for name, value in attention_arrays(layer.self_attn, order(interleaved)).items()
        }
        arrays[f"{block}attention_norm.scale"] = array(layer.input_layernorm.weight)
        arrays[f"{block}feed_forward_norm.scale"] = array(layer.post_attention_layernorm.weight)
        for name in ("gate", "up", "down"):
            arrays[f"{block}feed_forward.{name}.weight"] = array(getattr(layer.mlp, f"{name}_proj").weight).T
    return pf.training.with_arrays(pf.Decoder(our_config(query_width), key=jax.random.key(0)), arrays)


@pytest.mark.equation("eq-modern-latent-keys", "eq-modern-latent-values")
@pytest.mark.parametrize(("query_width", "interleaved"), [(8, True), (None, True), (8, False)])
def test_latent_decoder_has_the_logits_of_deepseek_v3(query_width, interleaved):
    theirs = their_model(query_width, rope_interleave=interleaved)
    ours = our_model(theirs, query_width, interleaved)
    with torch.no_grad():
        expected = theirs(torch.tensor(TOKENS)).logits.numpy()
    assert_close(ours(jnp.asarray(TOKENS)), expected)
    assert pf.count_parameters(ours) == sum(each.numel() for each in theirs.parameters())


@pytest.mark.equation("eq-modern-latent-absorbed", "eq-modern-latent-cache")
def test_latent_decoder_reads_on_from_its_cache_as_deepseek_v3_does():
    theirs = their_model(8)
    ours, their_cache = our_model(theirs, 8), transformers.DynamicCache()
    kept = ours.make_cache(batch=(2,))
    for part in (TOKENS[:, :4], TOKENS[:, 4:5], TOKENS[:, 5:]):
        with torch.no_grad():
            expected = theirs(torch.tensor(part), past_key_values=their_cache, use_cache=True).logits.numpy()
        rows, kept = ours.extend(jnp.asarray(part), kept)
        assert_close(ours.logits(rows), expected)
    of_theirs = their_cache.layers[1].keys.numpy()[:, 0]  # what they call keys are the short vectors
    np.testing.assert_allclose(kept[1].values[:, 0, :9], of_theirs, rtol=1e-4, atol=1e-5)
