"""How well a hidden word of a story is guessed from what stands on both sides of it.

The word is one that its neighbours leave open. The encoder sees the whole story at once. A model of the next word is
asked as counts are in the chapter on encoders: each word is put into the hole in turn, and the probabilities of the
whole stories are divided by their sum.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab import growing
from lab.story_labels.story_encoder import LENGTH, MASKING, VOCABULARY, is_open

ORDERS, NUM_ASKED = (3, 4, 5, 6), 300


def questions() -> tuple[list[str], np.ndarray]:
    """Stories that nobody has read, and the place of one open word in each."""
    told = list(pf.data.stories(NUM_ASKED, LENGTH, seed=300))
    rng = np.random.default_rng(0)
    may_be_hidden = is_open(np.array([VOCABULARY.encode(text) for text in told]))
    return told, np.array([rng.choice(np.flatnonzero(each)) for each in may_be_hidden])


def by_encoder(model: pf.MaskedLanguageModel) -> float:
    """Mean surprise at the hidden words, in nats."""
    told, places = questions()
    ids, rows = np.array([VOCABULARY.encode(text) for text in told]), np.arange(NUM_ASKED)
    hidden = ids.copy()
    hidden[rows, places] = MASKING["mask_token"]
    log_probs = np.asarray(jax.nn.log_softmax(model(jnp.asarray(hidden), jnp.ones(ids.shape, bool))))
    return round(float(-log_probs[rows, places, ids[rows, places]].mean()), 4)


@eqx.filter_jit
def of_each_word(model: Callable, story: jax.Array, place: jax.Array) -> jax.Array:
    """The logarithm of the probability of each word in the hole, by a model that gives logits of the next word."""
    stories = jnp.tile(story, (growing.WORDS, 1)).at[:, place].set(jnp.arange(growing.WORDS))
    log_probs = jax.nn.log_softmax(model(stories[:, :-1]))
    taken = jnp.take_along_axis(log_probs, stories[:, 1:, None], axis=2)[..., 0]
    return jax.nn.log_softmax(taken.sum(axis=1))


def by_reader(model: Callable) -> float:
    """The same of a model of the next word; what stands before the hole is the same for each word, and cancels."""
    told, places = questions()
    ids = jnp.array([growing.VOCABULARY.encode(text) for text in told])
    nats = [-of_each_word(model, ids[n], places[n])[ids[n, places[n]]] for n in range(NUM_ASKED)]
    return round(float(np.mean(nats)), 4)


def by_counting(order: int) -> float:
    """The same of an n-gram model of all stories of the first seed."""
    start, words = [growing.WORDS] * (order - 1), growing.WORDS
    counted = [each for story in growing.stories_of(0).tolist() for each in start + story]
    model, nats, (told, places) = pf.training.NgramModel(counted, order, words + 1, discount=None), [], questions()
    for text, place in zip(told, places + order - 1, strict=True):
        story, log_probs = start + growing.VOCABULARY.encode(text), np.zeros(words)
        right = story[place]
        for word in range(words):
            story[place] = word
            taking_part = range(place, min(place + order, len(story)))
            chances = [model.probability(story[n], story[n - order + 1 : n]) for n in taking_part]
            log_probs[word] = np.log(chances).sum() if all(chances) else -np.inf
        nats.append(np.logaddexp.reduce(log_probs) - log_probs[right])
    return round(float(np.mean(nats)), 4)
