"""Models whose axes eight devices can share, batches for them, and meshes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType

import plainformer as pf

STEPS = 20
CONFIG = pf.TrainingConfig(num_steps=STEPS, learning_rate=0.003, warmup_steps=3)
BATCH, SEQ, SOURCE_SEQ, VOCAB, CLASSES = 16, 24, 8, 40, 5
SIZES = {"d_model": 32, "num_layers": 1, "num_heads": 8, "d_ff": 48}


def stack(**fields):
    """Blocks of sizes that eight devices can share."""
    return pf.StackConfig(**SIZES | fields)


CONFIGS = {
    "decoder": (pf.Decoder, pf.DecoderConfig(VOCAB, SEQ, stack=stack(dropout_rate=0.1))),
    "grouped": (
        pf.Decoder,
        pf.DecoderConfig(
            VOCAB,
            SEQ,
            tied_embedding=False,
            stack=stack(num_kv_heads=2, attention="blockwise", position_scheme="rotary", activation="swiglu"),
        ),
    ),
    "experts": (
        pf.Decoder,
        pf.DecoderConfig(
            VOCAB,
            SEQ,
            stack=stack(
                experts=pf.blocks.ExpertsConfig(num_experts=8, per_token=2, width=16, shared=1, moved_bias=True)
            ),
        ),
    ),
    "delta": (pf.Decoder, pf.DecoderConfig(VOCAB, SEQ, stack=stack(pattern=("delta",), norm="rms"))),
    "encoder": (pf.MaskedLanguageModel, pf.EncoderConfig(vocab_size=VOCAB, context_len=SEQ, stack=stack(norm="rms"))),
    "seq2seq": (
        pf.Seq2Seq,
        pf.Seq2SeqConfig(VOCAB, SEQ, SOURCE_SEQ, start_token=0, stop_token=1, encoder=stack(), decoder=stack()),
    ),
    "vit": (pf.ViT, pf.ViTConfig(image_size=(16, 8), patch_size=4, num_classes=CLASSES, stack=stack())),
}
LOSSES = {
    "decoder": pf.training.next_token_loss,
    "grouped": pf.training.next_token_loss,
    "experts": pf.training.next_token_loss,
    "delta": pf.training.next_token_loss,
    "encoder": pf.masked_token_loss,
    "seq2seq": pf.translation_loss,
    "vit": pf.classification_loss,
}


@functools.cache
def new_model(kind):
    """A model of one kind."""
    model, config = CONFIGS[kind]
    return model(config, key=jax.random.key(3))


def batch_at(kind, step):
    """A batch of random numbers, of which not all targets count where a loss allows it."""
    return jax.tree.map(jnp.asarray, _drawn_batch(kind, np.random.default_rng([17, step])))


def _drawn_batch(kind, numbers):
    ids = numbers.integers(2, VOCAB, size=(BATCH, SEQ + 1), dtype=np.int32)
    counts = np.arange(SEQ) < numbers.integers(1, SEQ + 1, size=(BATCH, 1))
    if kind == "vit":
        images = numbers.random((BATCH, 16, 8, 1), dtype=np.float32)
        return pf.data.LabelledBatch(images, numbers.integers(CLASSES, size=BATCH, dtype=np.int32))
    if kind == "encoder":
        return pf.data.MaskedBatch(ids[:, :-1], ids[:, 1:], counts)
    if kind == "seq2seq":
        source = numbers.integers(2, VOCAB, size=(BATCH, SOURCE_SEQ), dtype=np.int32)
        inputs = np.where(np.arange(SEQ) == 0, 0, ids[:, :-1])
        return pf.data.TranslationBatch(source, source > 3, inputs, ids[:, :-1], counts)
    return pf.data.PaddedWindows(ids[:, :-1], ids[:, 1:], counts)


def new_mesh(rows, columns, kind="Explicit"):
    """Devices in rows, along `"data"`, and columns, along `"model"`."""
    return jax.make_mesh((rows, columns), ("data", "model"), axis_types=(getattr(AxisType, kind),) * 2)


def train(kind, config=CONFIG, *, batches=None, **options):
    """Train a model of one kind on random batches."""
    batches = batches or functools.partial(batch_at, kind)
    return pf.fit(new_model(kind), LOSSES[kind], batches, config, progress=False, **options)


def losses(found):
    """The losses of a run."""
    return np.asarray([row["loss"] for row in found.metrics])


@functools.cache
def losses_on_one(kind, config=CONFIG):
    """The losses of a run on one device."""
    return losses(train(kind, config))


def ids_of(continuations):
    """What was written, for one prompt or several."""
    return [one.tokens for one in (continuations if isinstance(continuations, list) else [continuations])]


def shard(array) -> tuple[int, ...]:
    """The shape of what the first device holds of an array."""
    return array.addressable_shards[0].data.shape
