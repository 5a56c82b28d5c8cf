"""Every model of the package: its configuration, inputs for it, and the loops in NumPy that it shall agree with."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import reference
from flat import classifier_config, decoder_config, encoder_config, seq2seq_config, vit_config
from toy_models import drawn

import plainformer as pf

SEQ, SOURCE_SEQ, D_MODEL, HEADS, LAYERS, BATCH = 7, 5, 24, 6, 2, (2, 3)
STACK = {"d_model": D_MODEL, "num_heads": HEADS, "num_layers": LAYERS, "d_ff": 10}
TEXT = {"vocab_size": 11, "context_len": 9}
START = 9
NUMBERS = np.random.default_rng(6)


class Kind(NamedTuple):
    """A model, its configuration, one input for it, and the loops that it shall agree with."""

    model: type
    config: Callable
    fields: dict
    inputs: tuple
    logits: Callable
    inside: Callable


def of_encoder(inputs, model, *rest):
    return reference.inside_encoder(inputs, model.encoder, *rest)


def of_image(image, model):
    return reference.inside_encoder(reference.patches(image, model.config.patch_size), model.encoder)


def texts(*shape, seq=SEQ):
    return jnp.asarray(NUMBERS.integers(11, size=(*shape, seq)))


def images(*shape):
    return jnp.asarray(NUMBERS.random((*shape, 6, 8, 3)), float)


def pairs(*shape):
    return texts(*shape, seq=SOURCE_SEQ), texts(*shape).at[..., 0].set(START)


CLASSES, IMAGES = {"num_classes": 4}, {"image_size": (6, 8), "patch_size": (3, 2), "channels": 3, "num_classes": 4}
PAIRS = {**TEXT, "source_len": 6, "start_token": START, "stop_token": 4}
KINDS = {
    "decoder": Kind(pf.Decoder, decoder_config, TEXT, (texts(),), reference.decoder, reference.inside_decoder),
    "encoder": Kind(pf.Encoder, encoder_config, TEXT, (texts(),), reference.encoder, reference.inside_encoder),
    "masked": Kind(
        pf.MaskedLanguageModel, encoder_config, TEXT, (texts(),), reference.masked_language_model, of_encoder
    ),
    "classifier": Kind(
        pf.EncoderClassifier, classifier_config, TEXT | CLASSES, (texts(),), reference.classifier, of_encoder
    ),
    "vit": Kind(pf.ViT, vit_config, IMAGES, (images(),), reference.vision_transformer, of_image),
    "seq2seq": Kind(pf.Seq2Seq, seq2seq_config, PAIRS, pairs(), reference.seq2seq, reference.inside_seq2seq),
}
DRAWS = {"vit": lambda *shape: (images(*shape),), "seq2seq": pairs}


def new_model(kind, seed=0, *, config=None, **fields):
    """A model with all its parameters drawn: biases of zero would hide a slip, small positions an offset."""
    if kind == "seq2seq" and "num_layers" in fields:
        fields["num_encoder_layers"] = fields["num_decoder_layers"] = fields.pop("num_layers")
    if config is None:
        config = KINDS[kind].config(**STACK | KINDS[kind].fields | fields)
    return drawn(KINDS[kind].model, config, seed)


plain_model = functools.cache(new_model)  # one without any option


@functools.cache
def plain_logits(kind):
    return plain_model(kind)(*KINDS[kind].inputs)
