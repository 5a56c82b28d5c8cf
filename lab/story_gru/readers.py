"""The two networks that read stories, a decoder and a GRU, and how each is trained."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax

import plainformer as pf
from lab import growing
from lab.growing import WORDS
from lab.records import BUILD
from plainformer.models.recurrent import RecurrentConfig, RecurrentModel

KEPT = BUILD / "story_gru"
WIDTH, CLIP_NORM = 176, 1.0
SEEDS = (*growing.SEEDS, 3, 4)
DECODER = growing.ROWS["decoder"]
RATES = {"decoder": (0.001, 0.003, 0.01), "GRU": (0.003, 0.01, 0.03, 0.1)}


class Longer(NamedTuple):
    """A network that is trained for several times as many steps as the stored decoder."""

    network: str
    times: int
    rate: float
    seeds: tuple[int, ...] = growing.SEEDS


# A step of the GRU takes less time: it takes five times as many steps in the time that the decoder takes twice as many.
LONG_DECODER, LONG_GRU = Longer("decoder", 2, 0.003, SEEDS), Longer("GRU", 5, 0.03)
LONGER = (LONG_DECODER, LONG_GRU, LONG_GRU._replace(times=2), LONG_GRU._replace(rate=0.01, seeds=(0,)))


def model_of(seed: int) -> RecurrentModel:
    """A GRU with as many numbers as the decoder, untrained."""
    return RecurrentModel(RecurrentConfig(WORDS, WIDTH, "gru"), key=jax.random.key(seed))


def named(rate: float, seed: int, times: int) -> str:
    """How a training is called where it is kept."""
    return "-".join([f"{rate:g}", str(seed), *([f"{times}-times"] if times > 1 else [])])


def gru(rate: float, seed: int, times: int = 1) -> RecurrentModel:
    """The network after as many steps as the decoder, on the same batches."""
    training = pf.TrainingConfig(
        num_steps=times * DECODER.num_steps,
        learning_rate=rate,
        warmup_steps=100,
        weight_decay=0.1,
        clip_norm=CLIP_NORM,
        seed=seed,
    )
    loss, directory = pf.training.next_token_loss, KEPT / named(rate, seed, times)
    return pf.fit(model_of(seed), loss, growing.batches_of(seed), training, directory=directory).model


def decoder(rate: float, seed: int, times: int = 1) -> pf.Decoder:
    """The decoder as it is stored, or trained in the same way with another rate or seed, or for longer."""
    row = dataclasses.replace(DECODER, learning_rate=rate, num_steps=times * DECODER.num_steps)
    return growing.stored("decoder", seed) if row == DECODER and seed in growing.SEEDS else growing.trained(row, seed)


TRAINED: dict[str, Callable[[float, int, int], Callable]] = {"decoder": decoder, "GRU": gru}
