"""A story of the little world, continued by a machine of the reader's."""

import inspect
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
            `(seq, 40)`. A row of logits depends on no later id. It is compiled, so it computes with `jax.numpy`.
        story: how it begins, with a full stop.
        num_words: how many words to add.
        seed: another one draws other words.

    Raises:
        TypeError: if the machine cannot be called with ids alone, or computes with NumPy.
        ValueError: if the story does not begin with a full stop, has another word than the forty, or the machine makes
            something else of ids, or logits of which none is the largest.

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
    _check_logits(machine, ids[:-1], len(said))
    key, row_of = jax.random.key(seed), jax.jit(lambda ids, place: jnp.asarray(machine(ids))[place])
    for place in range(len(said), len(ids)):
        row = row_of(ids[:-1], place - 1)  # nothing is asked after the last word
        if not jnp.isfinite(row.max()):
            word, largest = WORLD_WORDS[ids[place - 1]], row.max()
            raise ValueError(f"machine gives {largest} as the largest logit after {word!r}; expected a number.")
        ids[place] = jax.random.categorical(jax.random.fold_in(key, place), row)
    return " ".join(WORLD_WORDS[number] for number in ids)


def _check_logits(machine: Callable, ids: np.ndarray, num_said: int) -> None:
    """Raise an error if the machine does not make a logit for each word after each id."""
    try:
        logits = jax.eval_shape(machine, jnp.asarray(ids))
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        what = f"{len(ids)} ids, {num_said} of the story and {len(ids) - num_said} before the last word to come"
        reason = (str(error).strip() or type(error).__name__).partition("\n")[0].rstrip(".")
        raise kind(f"machine fails on {what}: {reason}. {_expected_of(machine, error)}".rstrip()) from error
    wanted = (len(ids), len(WORLD_WORDS))
    what = f"an array of shape {logits.shape}" if hasattr(logits, "shape") else f"a {type(logits).__name__}"
    if getattr(logits, "shape", None) != wanted:
        raise ValueError(
            f"machine makes {what} of {len(ids)} ids; expected {wanted}, a logit for each word after each."
        )
    if not jnp.issubdtype(logits.dtype, jnp.floating):
        raise ValueError(f"machine makes {logits.dtype} numbers of ids; expected logits, which are real numbers.")


def _expected_of(machine: Callable, error: Exception) -> str:
    """What would have been right, where the call itself was wrong, or the machine computes with NumPy."""
    if isinstance(error, jax.errors.TracerArrayConversionError):
        return "Expected a function that computes with jax.numpy."
    try:
        inspect.signature(machine).bind(None)
    except (TypeError, ValueError):
        return "Expected a function of ids alone."
    return ""
