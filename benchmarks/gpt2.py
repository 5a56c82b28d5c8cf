"""The decoder as `transformers` has it: GPT-2, of the same sizes and, if expected, with the same weights."""

import numpy as np
import torch
import transformers

import plainformer as pf

# The same functions as ours; GPT-2's own name for the second, gelu_new, means the same and is slower.
ACTIVATIONS = {"gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh"}


def new_gpt2(config: pf.DecoderConfig) -> transformers.GPT2LMHeadModel:
    """GPT-2 of these sizes, with random weights and no dropout."""
    theirs = transformers.GPT2Config(
        vocab_size=config.vocab_size,
        n_positions=config.context_len,
        n_embd=config.d_model,
        n_layer=config.num_layers,
        n_head=config.num_heads,
        activation_function=ACTIVATIONS[config.activation],
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,  # with one, every call without a mask would stop to look for padding
    )
    return transformers.GPT2LMHeadModel(theirs)


def same_weights(model: pf.Decoder) -> transformers.GPT2LMHeadModel:
    """GPT-2 with the weights of our decoder: classic blocks, learned positions, a tied embedding."""
    gpt2 = new_gpt2(model.config).eval()
    body = gpt2.transformer
    pairs = [(body.wte.weight, model.embedding.weight), (body.wpe.weight, model.positions.table)]
    norms = [(body.ln_f, model.final_norm)]
    for theirs, ours in zip(body.h, model.blocks, strict=True):
        attention, network = ours.attention, ours.feed_forward
        parts = ("query", "key", "value")
        pairs += [
            (theirs.attn.c_attn.weight, np.hstack([getattr(attention, f"{part}_weight") for part in parts])),
            (theirs.attn.c_attn.bias, np.hstack([getattr(attention, f"{part}_bias") for part in parts])),
            (theirs.attn.c_proj.weight, attention.output_weight),
            (theirs.attn.c_proj.bias, attention.output_bias),
            (theirs.mlp.c_fc.weight, network.in_weight),
            (theirs.mlp.c_fc.bias, network.in_bias),
            (theirs.mlp.c_proj.weight, network.out_weight),
            (theirs.mlp.c_proj.bias, network.out_bias),
        ]
        norms += [(theirs.ln_1, ours.attention_norm), (theirs.ln_2, ours.feed_forward_norm)]
    for theirs, ours in norms:
        pairs += [(theirs.weight, ours.scale), (theirs.bias, ours.bias)]
    with torch.no_grad():
        for theirs, ours in pairs:
            theirs.copy_(torch.tensor(np.asarray(ours)))
    return gpt2
