"""How the machine that grows tells stories, how many of its sentences are possible, and a line of the real text."""

import re
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.growing import VOCABULARY

BEGINNING, NUM_STORIES, NUM_WORDS = ". it is wet . Anna is in the hall .", 100, 64
READ, NUM_LETTERS = "If the object is ", 80  # how a line of the real text begins, and how it goes on


@eqx.filter_jit
def continued(model: Callable, ids: jax.Array, length: int, key: jax.Array) -> jax.Array:
    """Each row of ids, and `length` more that are drawn from the model, one after the other."""

    def draw(n, ids):
        logits = jnp.take(model(ids), n - 1, axis=1)
        return ids.at[:, n].set(jax.random.categorical(jax.random.fold_in(key, n), logits))

    begun = ids.shape[1]
    return jax.lax.fori_loop(begun, begun + length, draw, jnp.pad(ids, ((0, 0), (0, length))))


def by_table(logits: np.ndarray) -> Callable:
    """A model that looks up a row of logits for each id."""
    return lambda ids: jnp.asarray(logits)[ids]


def stories(model: Callable) -> list[str]:
    """The beginning, continued many times."""
    ids = jnp.tile(jnp.array(VOCABULARY.encode(BEGINNING)), (NUM_STORIES, 1))
    return [VOCABULARY.decode(story) for story in continued(model, ids, NUM_WORDS, jax.random.key(0)).tolist()]


def possible(model: Callable) -> float:
    """Of the whole sentences that a model adds to the beginning, the share that is possible where it stands."""
    given = BEGINNING.count(".") - 1
    told = [story[: story.rindex(".") + 1] for story in stories(model)]
    judged = [right for story in told for _, right in pf.data.possible_sentences(story)[given:]]
    return round(float(np.mean(judged)), 4)


def line(model: Callable, vocabulary: pf.Vocabulary) -> str:
    """What a model of letters writes of the real text."""
    ids = jnp.array([vocabulary.encode(READ)])
    (letters,) = continued(model, ids, NUM_LETTERS, jax.random.key(0)).tolist()
    return re.sub(r"\s+", " ", vocabulary.decode(letters)).strip()
