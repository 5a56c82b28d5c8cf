"""The whole decoder against Hugging Face: GPT-2 and Llama with the same weights, logits, gradients and greedy text."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import transformers
from closeness import assert_close
from flat import decoder_config
from torch_parameters import CLOSE, array, redrawn

import plainformer as pf

VOCAB, CONTEXT, WIDTH, LAYERS, HEADS, KV_HEADS, D_FF, NEW = 17, 13, 24, 2, 6, 2, 20, 5
SIZES = {"d_model": WIDTH, "num_layers": LAYERS, "num_heads": HEADS, "d_ff": D_FF}
TEXTS = np.random.default_rng(0).integers(VOCAB, size=(3, 8))
PROMPTS = [[3, 1, 4, 1, 5], [9, 2], [6, 5, 3]]


def gpt2():
    """Theirs."""
    return redrawn(
        transformers.GPT2LMHeadModel(
            transformers.GPT2Config(
                vocab_size=VOCAB,
                n_positions=CONTEXT,
                n_embd=WIDTH,
                n_layer=LAYERS,
                n_head=HEADS,
                n_inner=D_FF,
                activation_function="gelu_new",
                resid_pdrop=0.0,
                embd_pdrop=0.0,
                attn_pdrop=0.0,
                bos_token_id=None,
                eos_token_id=None,
                attn_implementation="eager",
            )
        )
    )


def arrays_of_gpt2(theirs, grad=False):
    """Its parameters, or their gradients, in the order of `arrays_of`."""
    body, found = theirs.transformer, []
    for layer in body.h:
        attention, network = layer.attn, layer.mlp
        found += jnp.split(array(attention.c_attn.weight, grad), 3, axis=1)
        found += jnp.split(array(attention.c_attn.bias, grad), 3)
        modules = (attention.c_proj, network.c_fc, network.c_proj, layer.ln_1, layer.ln_2)
        found += [array(each, grad) for module in modules for each in (module.weight, module.bias)]
    ends = (body.ln_f.weight, body.ln_f.bias, body.wte.weight, body.wpe.weight)
    return found + [array(each, grad) for each in ends]


def arrays_of(model):
    """Ours."""
    found = []
    for block in model.stack.blocks:
        attention, network = block.attention, block.feed_forward
        found += [attention.query.weight, attention.key.weight, attention.value.weight]
        found += [attention.query.bias, attention.key.bias, attention.value.bias]
        found += [attention.output.weight, attention.output.bias]
        found += [network.up.weight, network.up.bias, network.down.weight, network.down.bias]
        found += [block.attention_norm.scale, block.attention_norm.bias]
        found += [block.feed_forward_norm.scale, block.feed_forward_norm.bias]
    return [
        *found,
        model.stack.final_norm.scale,
        model.stack.final_norm.bias,
        model.embedding.weight,
        model.stack.scheme.table,
    ]


def our_gpt2(theirs):
    config = decoder_config(VOCAB, CONTEXT, **SIZES, activation="gelu_tanh")
    return eqx.tree_at(arrays_of, pf.Decoder(config, key=jax.random.key(0)), arrays_of_gpt2(theirs))


def llama():
    """Theirs."""
    return redrawn(
        transformers.LlamaForCausalLM(
            transformers.LlamaConfig(
                vocab_size=VOCAB,
                max_position_embeddings=CONTEXT,
                hidden_size=WIDTH,
                intermediate_size=D_FF,
                num_hidden_layers=LAYERS,
                num_attention_heads=HEADS,
                num_key_value_heads=KV_HEADS,
                rms_norm_eps=1e-3,
                rope_parameters={"rope_type": "default", "rope_theta": 50.0},
                tie_word_embeddings=False,
                bos_token_id=None,
                eos_token_id=None,
                pad_token_id=None,
                attn_implementation="eager",
            )
        )
    )


def our_llama(theirs):
    config = decoder_config(
        VOCAB,
        CONTEXT,
        **SIZES,
        num_kv_heads=KV_HEADS,
        norm="rms",
        norm_eps=1e-3,
        activation="swiglu",
        position_scheme="rotary",
        rope_theta=50.0,
        tied_embedding=False,
        use_bias=False,
    )

    def arrays(model):
        found = []
        for block in model.stack.blocks:
            attention, network = block.attention, block.feed_forward
            found += [attention.query.weight, attention.key.weight, attention.value.weight, attention.output.weight]
            found += [network.gate.weight, network.up.weight, network.down.weight]
            found += [block.attention_norm.scale, block.feed_forward_norm.scale]
        return [*found, model.stack.final_norm.scale, model.embedding.weight, model.output.weight]

    found = []
    for layer in theirs.model.layers:
        attention, network = layer.self_attn, layer.mlp
        modules = (attention.q_proj, attention.k_proj, attention.v_proj, attention.o_proj)
        found += [array(each.weight).T for each in (*modules, network.gate_proj, network.up_proj, network.down_proj)]
        found += [array(layer.input_layernorm.weight), array(layer.post_attention_layernorm.weight)]
    found += [array(theirs.model.norm.weight), array(theirs.model.embed_tokens.weight), array(theirs.lm_head.weight).T]
    return eqx.tree_at(arrays, pf.Decoder(config, key=jax.random.key(0)), found)


PAIRS = {"gpt2": (gpt2, our_gpt2), "llama": (llama, our_llama)}


@pytest.fixture(params=PAIRS)
def pair(request):
    """Theirs, and ours with its weights."""
    make, convert = PAIRS[request.param]
    theirs = make()
    return theirs, convert(theirs)


def test_decoder_gives_the_logits_of_hugging_face(pair):
    theirs, ours = pair
    with torch.no_grad():
        expected = theirs(torch.tensor(TEXTS)).logits.numpy()
    assert np.abs(expected).max() > 1
    assert_close(ours(jnp.asarray(TEXTS)), expected)


def test_next_token_loss_has_the_gradients_of_gpt2_in_hugging_face():
    theirs = gpt2()
    ours = our_gpt2(theirs)
    loss = theirs(torch.tensor(TEXTS), labels=torch.tensor(TEXTS)).loss  # it shifts the targets itself
    loss.backward()
    batch = pf.data.Windows(jnp.asarray(TEXTS[:, :-1]), jnp.asarray(TEXTS[:, 1:]))
    found, gradients = eqx.filter_value_and_grad(pf.training.next_token_loss)(ours, batch)
    np.testing.assert_allclose(found, loss.item(), **CLOSE)
    for number, (mine, other) in enumerate(zip(arrays_of(gradients), arrays_of_gpt2(theirs, grad=True), strict=True)):
        np.testing.assert_allclose(mine, other, **CLOSE, err_msg=f"parameter {number}")


def test_generate_writes_the_greedy_text_of_hugging_face(pair):
    theirs, ours = pair
    (found,) = pf.generate(ours, PROMPTS[:1], NEW, temperature=0.0)
    tokens = torch.tensor(PROMPTS[:1])
    expected = theirs.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=NEW, do_sample=False)
    assert found.tokens == expected[0, len(PROMPTS[0]) :].tolist()


def test_generate_writes_the_greedy_texts_of_hugging_face_for_prompts_of_unequal_length(pair):
    theirs, ours = pair
    found = pf.generate(ours, PROMPTS, NEW, temperature=0.0)
    tokens, mask = np.zeros((3, 5), int), np.zeros((3, 5), int)
    for row, prompt in enumerate(PROMPTS):
        tokens[row, 5 - len(prompt) :], mask[row, 5 - len(prompt) :] = prompt, 1
    expected = theirs.generate(
        torch.tensor(tokens),
        attention_mask=torch.tensor(mask),
        max_new_tokens=NEW,
        do_sample=False,
        pad_token_id=0,
    )
    assert [each.tokens for each in found] == expected[:, 5:].tolist()
