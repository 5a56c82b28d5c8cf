"""The decoder as `transformers` has it: GPT-2, of the same sizes and, if asked for, with the same weights."""

import numpy as np
import transformers

import plainformer as pf
from benchmarks.weights import copy_weights, of_norm

# The same functions as ours; GPT-2's own name for the second, gelu_new, means the same and is slower.
ACTIVATIONS = {"gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh"}


def new_gpt2(config: pf.DecoderConfig) -> transformers.GPT2LMHeadModel:
    """GPT-2 of these sizes, with random weights and no dropout."""
    theirs = transformers.GPT2Config(
        vocab_size=config.vocab_size,
        n_positions=config.context_len,
        n_embd=config.stack.d_model,
        n_layer=config.stack.num_layers,
        n_head=config.stack.num_heads,
        activation_function=ACTIVATIONS[config.stack.activation],
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
    pairs = [(body.wte.weight, model.embedding.weight), (body.wpe.weight, model.stack.scheme.table)]
    for theirs, ours in zip(body.h, model.stack.blocks, strict=True):
        attention, network = ours.attention, ours.feed_forward
        parts = attention.query, attention.key, attention.value
        pairs += [
            (theirs.attn.c_attn.weight, np.hstack([part.weight for part in parts])),
            (theirs.attn.c_attn.bias, np.hstack([part.bias for part in parts])),
        ]
        maps = [
            (theirs.attn.c_proj, attention.output),
            (theirs.mlp.c_fc, network.up),
            (theirs.mlp.c_proj, network.down),
        ]
        for convolution, linear in maps:  # not transposed, unlike torch.nn.Linear
            pairs += [(convolution.weight, linear.weight), (convolution.bias, linear.bias)]
        pairs += of_norm(theirs.ln_1, ours.attention_norm) + of_norm(theirs.ln_2, ours.feed_forward_norm)
    copy_weights(pairs + of_norm(body.ln_f, model.stack.final_norm))
    return gpt2
