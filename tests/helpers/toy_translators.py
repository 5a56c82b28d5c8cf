"""Small encoder–decoders with all parameters drawn, and pairs of texts of unequal length for them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from flat import seq2seq_config
from toy_models import drawn

import plainformer as pf

VOCAB, SOURCE_VOCAB, CONTEXT, SOURCE_LEN, D_MODEL, HEADS, D_FF, ENCODERS, LAYERS = 11, 13, 8, 6, 12, 3, 10, 1, 2
START, STOP = 9, 4
OWN = {"source_vocab_size": SOURCE_VOCAB, "tied_embedding": False}
KINDS = {
    "learned": {"position_scheme": "learned"},
    "learned-post-own": {"position_scheme": "learned", "norm_placement": "post", **OWN},
    "sinusoidal-own": {"position_scheme": "sinusoidal", **OWN},
    "sinusoidal-post": {"position_scheme": "sinusoidal", "norm_placement": "post", "activation": "relu"},
    "rotary-modern": {"position_scheme": "rotary", "norm": "rms", "activation": "swiglu", "use_bias": False},
    "rotary-post": {"position_scheme": "rotary", "norm_placement": "post", "source_vocab_size": SOURCE_VOCAB},
    "relative": {"position_scheme": "relative", "tied_embedding": False},
    "alibi-post": {"position_scheme": "alibi", "norm_placement": "post"},
    "none": {"position_scheme": "none"},
}
# Three sources and targets of unequal lengths, the targets with the start token.
SOURCES = [[2, 7, 1, 8, 5], [6, 10], [3, 1, 4, 1]]
TARGETS = [[START, 5, 3, 0], [START, 8, 8, 2, 10, 1, 7], [START, 6]]
call = eqx.filter_jit(lambda model, source, target, is_source=None: model(source, target, is_source))


def new_config(kind="learned", **options):
    sizes = {
        "vocab_size": VOCAB,
        "context_len": CONTEXT,
        "source_len": SOURCE_LEN,
        "start_token": START,
        "stop_token": STOP,
        "d_model": D_MODEL,
        "num_encoder_layers": ENCODERS,
        "num_decoder_layers": LAYERS,
        "num_heads": HEADS,
        "d_ff": D_FF,
    }
    return seq2seq_config(**sizes | KINDS[kind] | options)


def new_model(key=None, kind="learned", **options):
    """All parameters are drawn: biases of zero would hide a slip, small positions an offset."""
    return drawn(pf.Seq2Seq, new_config(kind, **options), jax.random.key(5) if key is None else key)


def padded():
    """Sources, which of their ids are tokens, and targets, padded on the right with an ordinary token."""
    source, is_source = map(np.asarray, pf.data.pad_texts(SOURCES, SOURCE_LEN))
    target, is_target = map(np.asarray, pf.data.pad_texts(TARGETS))
    filled = np.where(is_source, source, 7), is_source, np.where(is_target, target, 7), is_target
    return tuple(map(jnp.asarray, filled))
