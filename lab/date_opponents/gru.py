"""A recurrent network on dates: it reads source and answer as one text, as the decoder of `lab/date_decoder` does."""

from collections.abc import Sequence

import equinox as eqx
import jax
import numpy as np

import plainformer as pf
from lab.date_decoder.run import one_text_batch, one_text_batches, one_text_vocabulary
from lab.records import BUILD
from plainformer.data.dates import DatePair
from plainformer.models.recurrent import RecurrentConfig, RecurrentModel

WIDTH, CLIP_NORM = 155, 1.0  # as many numbers as the encoder–decoder
KEPT = BUILD / "date_opponents"


def model_of(vocabulary: pf.Vocabulary, seed: int) -> RecurrentModel:
    """A GRU, untrained."""
    return RecurrentModel(RecurrentConfig(len(vocabulary), WIDTH, "gru"), key=jax.random.key(seed))


def trained(pairs: list[DatePair], num_steps: int, rate: float, decay: float, seed: int, run: str):
    """A GRU after its training, with its vocabulary."""
    vocabulary = one_text_vocabulary(pairs)
    how = pf.TrainingConfig(
        num_steps=num_steps,
        learning_rate=rate,
        warmup_steps=50,
        min_lr_ratio=0.02,
        weight_decay=decay,
        clip_norm=CLIP_NORM,
        seed=seed,
    )
    batches = one_text_batches(pairs, vocabulary, seed)
    return pf.fit(
        model_of(vocabulary, seed), pf.training.next_token_loss, batches, how, directory=KEPT / run
    ).model, vocabulary


def loss_on(model, vocabulary: pf.Vocabulary, pairs: Sequence[DatePair]) -> float:
    """The mean surprise at a letter of the answers, in nats."""
    batch = one_text_batch(pairs, vocabulary)
    return round(float(eqx.filter_jit(pf.training.next_token_loss)(model, batch)), 5)


def right(model, vocabulary: pf.Vocabulary, pairs: Sequence[DatePair]) -> float:
    """The share of answers that a greedy search writes exactly: those in which each letter is the likeliest."""
    batch = one_text_batch(pairs, vocabulary)
    letters = np.asarray(eqx.filter_jit(model)(batch.inputs)).argmax(axis=2)
    return round(float((np.asarray(letters == batch.targets) | ~np.asarray(batch.is_token)).all(axis=1).mean()), 4)
