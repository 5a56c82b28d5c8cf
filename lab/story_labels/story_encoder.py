"""The encoder that reads stories of the little world: how it is built, and how it is pre-trained without labels.

It guesses hidden words. Only words that their two neighbours leave open are hidden, since the others teach nothing.
"""

from functools import cache, partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.records import BUILD
from plainformer.data.little_world import WORLD_WORDS

KEPT = BUILD / "story_encoder"
VOCABULARY = pf.Vocabulary(["<mask>", *WORLD_WORDS], separator=" ")
MASKING = {"mask_token": 0, "vocab_size": len(VOCABULARY), "first_ordinary": 1}
LENGTH, BATCH_SIZE, NUM_STORIES = 64, 64, 60_000
OPEN = 0.9  # a word is open if no word stood so often between the same two neighbours


class Plan(NamedTuple):
    """How wide the encoder is, how many open words are hidden, for how long it learns, and its largest rate."""

    width: int = 64
    num_layers: int = 4
    num_steps: int = 12_000
    learning_rate: float = 3e-3
    fraction: float = 0.3
    seed: int = 0

    @property
    def config(self) -> pf.EncoderConfig:
        """Blocks of today's form, with heads of 16 columns."""
        stack = pf.StackConfig(
            d_model=self.width,
            num_layers=self.num_layers,
            num_heads=self.width // 16,
            d_ff=round(self.width / 3) * 8,
            norm="rms",
            activation="swiglu",
            position_scheme="rotary",
        )
        return pf.EncoderConfig(vocab_size=len(VOCABULARY), context_len=LENGTH, stack=stack)


def encode(texts: list[str]) -> tuple[jax.Array, jax.Array]:
    """Ids of the stories, padded, and where there are words."""
    return pf.data.pad_texts([VOCABULARY.encode(text) for text in texts], LENGTH)


@cache
def stories_to_read() -> np.ndarray:
    """The ids of all stories that pre-training reads, without labels."""
    return np.array([VOCABULARY.encode(text) for text in pf.data.stories(NUM_STORIES, LENGTH, seed=100)], np.int8)


@cache
def is_open_between() -> np.ndarray:
    """Whether two neighbours leave open which word stands between them, by the stories to read."""
    ids, size = stories_to_read(), len(VOCABULARY)
    counts = np.zeros((size, size, size))
    np.add.at(counts, (ids[:, :-2].ravel(), ids[:, 2:].ravel(), ids[:, 1:-1].ravel()), 1)
    return counts.max(axis=2) < OPEN * counts.sum(axis=2)


def is_open(ids: np.ndarray) -> np.ndarray:
    """Where a word may be hidden: not at the ends, and not where the neighbours give it away."""
    found = np.zeros(ids.shape, bool)
    found[:, 1:-1] = is_open_between()[ids[:, :-2], ids[:, 2:]]
    return found


@eqx.filter_jit
def masked(ids, may_be_hidden, fraction: float, key) -> pf.data.MaskedBatch:
    """A batch for `masked_token_loss`."""
    corrupted, is_selected = pf.mask_tokens(ids, may_be_hidden, fraction=fraction, key=key, **MASKING)
    return pf.data.MaskedBatch(corrupted, ids, is_selected, jnp.ones(ids.shape, bool))


def masked_batch_at(step: int, plan: Plan) -> pf.data.MaskedBatch:
    """From the number of the step to stories with hidden words."""
    chosen = np.random.default_rng([plan.seed, step]).integers(NUM_STORIES, size=BATCH_SIZE)
    ids = stories_to_read()[chosen].astype(np.int32)
    key = jax.random.fold_in(jax.random.key(plan.seed), step)
    return masked(jnp.asarray(ids), jnp.asarray(is_open(ids)), plan.fraction, key)


def pre_trained(plan: Plan):
    """A masked language model of stories after its training, and what this measured; kept under `build/models`."""
    training = pf.TrainingConfig(
        num_steps=plan.num_steps, learning_rate=plan.learning_rate, warmup_steps=100, min_lr_ratio=0.02
    )
    folder = KEPT / "_".join(f"{each:g}" for each in plan)
    model = pf.MaskedLanguageModel(plan.config, key=jax.random.key(plan.seed))
    return pf.fit(model, pf.masked_token_loss, partial(masked_batch_at, plan=plan), training, directory=folder)
