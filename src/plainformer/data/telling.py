"""A story of the little world, continued by a machine of the reader's."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from plainformer.checks import Natural, Positive, checked
from plainformer.data.little_world import WORLD_WORDS
from plainformer.data.stories import word_surprises


@checked
def continue_story(machine: Callable, story: str, num_words: Positive, seed: Natural = 0) -> str:
    """Continue a story of the little world: each word is drawn from the probabilities that a machine gives to it.

    Args:
        machine: a function from ids, `(seq,)`, places in `WORLD_WORDS`, to the logits of what comes after each,
            `(seq, 40)`. A row of logits depends on no later id.
        story: how it begins, with a full stop.
        num_words: how many words to add.
        seed: another one draws other words.

    Raises:
        ValueError: if the story does not begin with a full stop, has another word than the forty, or the machine makes
            something else of ids.

    Example:
        A machine that finds a full stop likeliest after anything.

        >>> pf.data.continue_story(lambda ids: pf.one_hot(0 * ids, 40) * 99, ". it is wet", 3)
        '. it is wet . . .'
    """
    word_surprises(story)
    said = story.split(" ")
    if unknown := [word for word in said if word not in WORLD_WORDS]:
        raise ValueError(f"story has the word {unknown[0][:20]!r}; expected words of pf.data.little_world.WORLD_WORDS.")
    ids = np.zeros(len(said) + num_words, np.int32)
    ids[: len(said)] = [WORLD_WORDS.index(word) for word in said]
    logits = jax.eval_shape(machine, jnp.asarray(ids))
    wanted = (len(ids), len(WORLD_WORDS))
    if getattr(logits, "shape", None) != wanted:
        what = f"an array of shape {logits.shape}" if hasattr(logits, "shape") else f"a {type(logits).__name__}"
        raise ValueError(
            f"machine makes {what} of {len(ids)} ids; expected {wanted}, a logit for each word after each."
        )
    key, row_of = jax.random.key(seed), jax.jit(lambda ids, place: machine(ids)[place])
    for place in range(len(said), len(ids)):
        ids[place] = jax.random.categorical(jax.random.fold_in(key, place), row_of(ids, place - 1))
    return " ".join(WORLD_WORDS[number] for number in ids)
