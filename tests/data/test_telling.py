"""A story is continued by words that are drawn from a machine's own probabilities."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from plainformer.data.little_world import WORLD_WORDS
from plainformer.data.telling import continue_story


def by_table(table):
    """A machine that looks up a row of logits for each word."""
    return lambda ids: jnp.asarray(table, jnp.float32)[ids]


def test_each_word_is_drawn_from_the_row_of_the_word_before():
    after = np.roll(np.arange(40), 7)  # a cycle through all words
    told = continue_story(by_table(99 * np.eye(40)[after]), ". it is wet .", 60).split()
    assert " ".join(told[:5]) == ". it is wet ."
    for before, word in pairwise(told[4:]):
        assert word == WORLD_WORDS[after[WORLD_WORDS.index(before)]]


def test_words_come_as_often_as_the_machine_says_and_another_seed_draws_others():
    table = np.full((40, 40), -np.inf)
    table[:, :2] = np.log([0.75, 0.25])
    told = [continue_story(by_table(table), ".", 400, seed=seed).split()[1:] for seed in (0, 1)]
    assert told[0] != told[1]
    assert all(0.75 - 0.09 < words.count(".") / 400 < 0.75 + 0.09 for words in told)


def of_two_words(ids):
    sizes = pf.DecoderConfig(40, 2, stack=pf.StackConfig(d_model=2, num_heads=1))
    return pf.Decoder(sizes, key=jax.random.key(0))(ids)


@pytest.mark.parametrize(
    ("machine", "error", "message"),
    [
        (lambda ids: np.zeros((40, 40))[ids], TypeError, "with jax.numpy"),
        (
            lambda weights, ids: weights[ids],
            TypeError,
            "missing 1 required positional argument: 'ids'. Expected a function of ids",
        ),
        (lambda ids: jnp.zeros((len(ids), 40), int), ValueError, "int32 numbers"),
        (by_table(np.full((40, 40), np.nan)), ValueError, r"nan as the largest logit after 'is'"),
        (by_table(np.full((40, 40), -np.inf)), ValueError, "-inf as the largest logit"),
        (of_two_words, ValueError, "fails on 3 ids, 3 of the story and 0 before the last word to come: .*context_len"),
    ],
)
def test_a_machine_that_cannot_be_drawn_from_is_refused(machine, error, message, unchecked):
    with pytest.raises(error, match=message):
        continue_story(machine, ". it is", 1)


@pytest.mark.parametrize(
    ("machine", "story", "message"),
    [
        (by_table(np.zeros((40, 40))), "it is wet", "begins with 'it is wet'"),
        (by_table(np.zeros((40, 40))), ". it is Wet", "the word 'Wet'"),
        (by_table(np.zeros((40, 39))), ". it is", r"of shape \(3, 39\) of 3 ids; expected \(3, 40\)"),
        (lambda ids: (ids,), ". it is", r"a tuple of 3 ids; expected"),
        (lambda ids: jnp.zeros(40), ". it is", r"of shape \(40,\) of 3 ids; expected \(3, 40\)"),
    ],
)
def test_what_is_no_story_and_no_machine_is_refused(machine, story, message, unchecked):
    with pytest.raises(ValueError, match=message):
        continue_story(machine, story, 1)
