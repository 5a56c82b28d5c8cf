"""Language models of a text on byte pairs, of several sizes: how they are built, trained and judged."""

import dataclasses
import json
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf

LENGTH, BATCH_SIZE = 128, 32


@dataclasses.dataclass(frozen=True)
class Size:
    """How wide a model is, how much is dropped in training, how many steps, its largest learning rate, how often it is
    judged, and the seed of its weights and batches."""

    width: int
    dropout_rate: float
    num_steps: int
    learning_rate: float = 1e-3
    judged_every: int = 250
    seed: int = 0


@dataclasses.dataclass(frozen=True)
class Text:
    """A text in two parts, to learn from and to judge by, with their ids under a tokenizer."""

    tokenizer: pf.BytePairEncoder
    parts: tuple[str, str]
    ids: tuple[list[int], list[int]]

    @classmethod
    def in_byte_pairs(cls, parts: tuple[str, str], vocab_size: int) -> "Text":
        """A text with a tokenizer that is learned from its first part."""
        tokenizer = pf.BytePairEncoder.train(parts[0], vocab_size)
        return cls(tokenizer, parts, (tokenizer.encode(parts[0]), tokenizer.encode(parts[1])))


def decoder_config(size: Size, vocab_size: int) -> pf.DecoderConfig:
    """Four blocks of today's form, with heads of 32 columns."""
    stack = pf.StackConfig(
        d_model=size.width,
        num_layers=4,
        num_heads=size.width // 32,
        d_ff=round(size.width / 3) * 8,
        norm="rms",
        activation="swiglu",
        position_scheme="rotary",
        use_bias=False,
        dropout_rate=size.dropout_rate,
    )
    return pf.DecoderConfig(vocab_size=vocab_size, context_len=LENGTH, stack=stack)


def overlapping_windows(ids: list[int]) -> pf.data.PaddedWindows:
    """Windows that begin half a window apart, of which, but for the first, only the second half counts.

    So every token is a target once, and all but the first have at least half a window before them.
    """
    half = LENGTH // 2
    starts = np.arange(0, max(len(ids) - 1 - half, 1), half)
    places = starts[:, None] + np.arange(LENGTH + 1)
    windows = np.where(places < len(ids), np.array(ids)[np.minimum(places, len(ids) - 1)], 0)
    counts = (places[:, 1:] < len(ids)) & ((np.arange(LENGTH) >= half) | (starts[:, None] == 0))
    return pf.data.PaddedWindows(*map(jnp.asarray, (windows[:, :-1], windows[:, 1:], counts)))


def nats_per_character(model, ids: list[int], num_characters: int) -> float:
    """How much a text surprises a model, by character, so that tokenizers can be compared."""
    return pf.training.corpus_loss(model, overlapping_windows(ids)) * (len(ids) - 1) / num_characters


def trained(size: Size, text: Text, folder: Path) -> tuple[pf.Decoder, dict]:
    """A model after its training, and what became of it; kept in a folder, with a file beside it."""
    (learning, held_out), begin, kept = text.ids, time.perf_counter(), folder.with_suffix(".json")
    training = pf.TrainingConfig(
        num_steps=size.num_steps,
        learning_rate=size.learning_rate,
        warmup_steps=100,
        min_lr_ratio=0.02,
        evaluate_every=size.judged_every,
    )
    model, metrics = pf.fit(
        pf.Decoder(decoder_config(size, len(text.tokenizer)), key=jax.random.key(size.seed)),
        pf.training.next_token_loss,
        pf.data.random_windows(learning, LENGTH, BATCH_SIZE, seed=size.seed),
        training,
        evaluate=lambda model: nats_per_character(model, held_out, len(text.parts[1])),
        directory=folder,
    )
    if not kept.exists():
        steps = [(m["step"], round(m["validation_loss"], 4)) for m in metrics if "validation_loss" in m]
        last = float(np.mean([m["loss"] for m in metrics[-100:]])) * len(learning) / len(text.parts[0])
        found = {"parameters": pf.count_parameters(model), "curve": steps, "training loss": round(last, 4)}
        found["minutes"] = round((time.perf_counter() - begin) / 60, 1)
        kept.write_text(json.dumps(found), encoding="utf-8")
    return model, json.loads(kept.read_text(encoding="utf-8"))


def passes(size: Size, num_tokens: int) -> float:
    """How often a training of this size reads each token of its text."""
    return size.num_steps * BATCH_SIZE * LENGTH / num_tokens


def counted(text: Text, orders: dict[str, tuple[int, ...]]) -> dict[str, dict[str, float]]:
    """Nats per character of n-gram models with modified Kneser–Ney smoothing, of characters and of byte pairs."""
    letters = pf.Vocabulary.from_characters("".join(text.parts))
    as_ids = {"characters": [letters.encode(part) for part in text.parts], "byte pairs": text.ids}
    sizes = {"characters": len(letters), "byte pairs": len(text.tokenizer)}

    def loss(kind: str, order: int) -> float:
        learning, held_out = as_ids[kind]
        model = pf.training.NgramModel(learning, order, sizes[kind], discount=None)
        return round(model.loss(held_out) * len(held_out) / len(text.parts[1]), 4)

    return {kind: {str(order): loss(kind, order) for order in orders[kind]} for kind in orders}


def written(model: pf.Decoder, tokenizer, prompt: str, seed: int = 0, **settings) -> str:
    """What a model writes after a prompt, unedited."""
    return pf.generate(model, prompt, 250, tokenizer=tokenizer, key=jax.random.key(seed), **settings).text
