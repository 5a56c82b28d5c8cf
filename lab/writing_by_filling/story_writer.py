"""The encoder that writes stories: how many words are hidden from it, and how it is trained to guess them."""

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.records import BUILD
from lab.story_labels.story_encoder import LENGTH, NUM_STORIES, VOCABULARY, stories_to_read
from plainformer.data import MaskedBatch

KEPT, BATCH_SIZE = BUILD / "writing_by_filling", 32
[MASK] = VOCABULARY.encode("<mask>")


class Plan(NamedTuple):
    """For how long the encoder learns, its largest rate, and a seed for what is hidden where."""

    num_steps: int = 2000
    learning_rate: float = 2e-3
    seed: int = 0


@eqx.filter_jit
def hidden(ids, key) -> MaskedBatch:
    """Stories in each of which one to all words after the first are hidden, each number of them as likely as another.

    That is as if each word were hidden with a probability that is drawn evenly from 0 to 1 for each story. The first
    word of every story is a full stop, which is always shown.
    """
    count_key, place_key = jax.random.split(key)
    counts = jax.random.randint(count_key, (len(ids), 1), 1, LENGTH)
    order = jax.random.uniform(place_key, ids.shape).at[:, 0].set(2.0)
    is_selected = order.argsort(axis=1).argsort(axis=1) < counts
    return MaskedBatch(jnp.where(is_selected, MASK, ids), ids, is_selected)


def batch_at(step: int, seed: int) -> MaskedBatch:
    """From the number of the step to stories with hidden words."""
    chosen = np.random.default_rng([seed, step]).integers(NUM_STORIES, size=BATCH_SIZE)
    return hidden(jnp.asarray(stories_to_read()[chosen], jnp.int32), jax.random.fold_in(jax.random.key(seed), step))


def bound(model, batch: MaskedBatch, key=None):
    """The mean surprise at the hidden words of a story, averaged over stories, in nats.

    What is hidden of a story of which the share u is hidden counts 1 / u. So the mean of this loss is a bound: the
    surprise per word of the stories, for the model as a writer of one word at a time in a random order, is no larger
    (Sahoo et al., 2024; with a number of hidden words in place of a share, Nie et al., 2025).
    """
    log_probs = jax.nn.log_softmax(model(batch.tokens, key=key))
    surprise = -jnp.take_along_axis(log_probs, batch.targets[..., None], axis=-1)[..., 0]
    return surprise.mean(axis=1, where=batch.is_selected).mean()


def trained(plan: Plan):
    """The stored encoder of stories after more training, and what this measured; kept under `build/models`."""
    training = pf.TrainingConfig(
        num_steps=plan.num_steps, learning_rate=plan.learning_rate, warmup_steps=100, min_lr_ratio=0.02
    )
    start, _ = pf.load_pretrained("story_encoder")
    folder = KEPT / "_".join(f"{each:g}" for each in plan)
    return pf.fit(start, bound, partial(batch_at, seed=plan.seed), training, directory=folder)
