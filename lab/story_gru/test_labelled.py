"""What labels teach a reader of stories."""

import jax.numpy as jnp
import numpy as np
import pytest

from lab import growing
from lab.story_gru import labelled
from lab.story_labels.run import Stories, judged
from plainformer.data import load_record

LOGITS = -jnp.array([[0.0, 1, 2, 3], [0, 1, 2, 3], [0, 5, 6, 7], [0, 1, 2, 3]])  # after 2 more is doubted


def stories(words: list[list[int]], labels: list[int]) -> Stories:
    ids = jnp.array(words)
    return Stories([""] * len(words), np.array(labels), ids, ids >= 0)


def test_a_doubt_counts_where_there_is_a_word_and_the_largest_is_taken():
    reader = labelled.Doubter(lambda ids: LOGITS[ids], jnp.asarray(2.0), jnp.asarray(1.5))
    ids, is_token = jnp.array([[0, 1, 2], [0, 2, 3], [0, 2, 3]]), jnp.array([[1, 1, 1], [1, 1, 1], [1, 1, 0]], bool)
    np.testing.assert_allclose(reader.largest_doubt(ids, is_token), [2, 7, 2], atol=1e-6)
    np.testing.assert_allclose(reader(ids, is_token)[:, 0], [0.5, 5.5, 0.5], atol=1e-6)


def test_the_doubt_that_is_allowed_lies_where_as_many_stories_are_possible_as_not():
    told = stories([[0, 1]] * 4 + [[0, 3]] * 4, [1, 1, 1, 0, 0, 0, 0, 1])
    found = labelled.doubter(lambda ids: LOGITS[ids], told)
    assert float(found.allowed) == pytest.approx(2, abs=1e-3)
    assert found(told.ids, told.is_token).argmax(axis=1).tolist() == [1] * 4 + [0] * 4


def test_readers_know_every_word_of_labelled_stories():
    read = labelled.as_read(judged(number=4))
    for row, text, length in zip(read.ids, read.texts, read.is_token.sum(axis=1), strict=True):
        assert growing.VOCABULARY.decode(row[: int(length)].tolist()) == text


def test_the_rate_of_tuning_is_the_best_of_those_tried():
    for each in load_record("story_gru")["labelled"].values():
        assert each["tried"][f"{each['rate']:g}"] == max(each["tried"].values())
        assert list(map(float, each["tried"])) == list(labelled.RATES)
