"""Configurations and blocks from one flat list of fields: a test names the one that it is about."""

import dataclasses

import plainformer as pf

STACK = {field.name for field in dataclasses.fields(pf.StackConfig)}


def stack_config(fields: dict) -> pf.StackConfig:
    """The fields of a stack, taken out of those of a whole model."""
    return pf.StackConfig(**{name: fields.pop(name) for name in sorted(STACK & fields.keys())})


def decoder_config(*sizes, **fields) -> pf.DecoderConfig:
    return pf.DecoderConfig(*sizes, stack=stack_config(fields), **fields)


def encoder_config(**fields) -> pf.EncoderConfig:
    return pf.EncoderConfig(stack=stack_config(fields), **fields)


def classifier_config(*, num_classes, pooling="class", pooler=False, **fields) -> pf.ClassifierConfig:
    kinds = {"num_classes": num_classes, "pooling": pooling, "pooler": pooler}
    return pf.ClassifierConfig(encoder=encoder_config(**fields), **kinds)


def vit_config(**fields) -> pf.ViTConfig:
    return pf.ViTConfig(stack=stack_config(fields), **fields)


def seq2seq_config(*sizes, num_encoder_layers=2, num_decoder_layers=2, **fields) -> pf.Seq2SeqConfig:
    stack = stack_config(fields)
    halves = {"encoder": num_encoder_layers, "decoder": num_decoder_layers}
    halves = {name: dataclasses.replace(stack, num_layers=number) for name, number in halves.items()}
    return pf.Seq2SeqConfig(*sizes, **halves, **fields)


def make_block(d_model, num_heads, d_ff=None, *, cross_attention=False, key, **fields) -> pf.Block:
    config = pf.StackConfig(d_model=d_model, num_heads=num_heads, d_ff=d_ff, **fields)
    return pf.make_block(config, cross_attention=cross_attention, key=key)
