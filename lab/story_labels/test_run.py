"""Whether a story is possible: what the stored encoder does, and how it was trained and judged."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from lab import growing
from lab.story_labels import hidden_words, run as labels, story_encoder

recorded = cache(lambda: pf.data.load_record("story_labels"))
stored = cache(lambda: pf.load_pretrained("story_encoder"))


@pytest.fixture
def few_stories():
    """So many stories to pre-train on are only told for a training."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(story_encoder, "NUM_STORIES", 3000)
        forget()
        yield
    forget()


def forget():
    for kept in (story_encoder.stories_to_read, story_encoder.is_open_between):
        kept.cache_clear()


def test_the_stored_encoder_doubts_as_recorded(few_stories):
    model, words = stored()
    assert words.to_json() == story_encoder.VOCABULARY.to_json()
    assert model.config == story_encoder.Plan().config
    some = labels.judged().first(200)
    assert labels.by_largest(labels.doubts_of_encoder(model, some), some) == pytest.approx(
        recorded()["without labels"]["encoder"], abs=7
    )


def test_counting_reaches_what_was_recorded():
    for name, what in (("groups of words", None), ("pairs of sentences", labels.pairs_of_sentences)):
        found = labels.counted(what, labels.learning(0).first(200))
        assert found == pytest.approx(recorded()["accuracy"][name]["100"]["accuracy"][0], abs=1)


def test_labelled_stories_are_of_either_kind_in_turn_and_others_than_those_that_judge():
    told = labels.learning(0)
    assert told.labels[:6].tolist() == [1, 0, 1, 0, 1, 0]
    assert len(told.texts) == 2 * max(labels.NUM_STEPS)
    assert len(set(told.texts) & set(labels.judged().texts)) < 5


def test_words_that_their_neighbours_give_away_are_never_hidden(few_stories):
    batch = story_encoder.masked_batch_at(0, story_encoder.Plan())
    words = np.array([story_encoder.VOCABULARY.decode([each]) for each in range(len(story_encoder.VOCABULARY))])
    hidden = set(words[np.asarray(batch.targets)[np.asarray(batch.is_selected)]])
    assert {"Anna", "hall", "nobody", "right"} <= hidden
    assert not {".", "the", "in"} & hidden
    may = story_encoder.is_open(np.asarray(batch.targets))
    assert 0.3 < may.mean() < 0.45
    assert (np.asarray(batch.is_selected) <= may).all()
    assert batch.is_selected.sum() / may.sum() == pytest.approx(0.3, abs=0.05)


def test_a_doubt_is_how_much_likelier_the_likeliest_word_is():
    log_probs = np.log([[[0.7, 0.2, 0.1], [0.7, 0.2, 0.1]]])
    np.testing.assert_allclose(labels.doubts(log_probs, np.array([[0, 2]])), [[0, np.log(7)]], atol=1e-6)


def test_by_largest_calls_the_half_with_the_larger_values_impossible():
    stories = labels.Stories.of(
        [pf.data.labelled_stories(1)[0]._replace(is_possible=kind) for kind in (True, False) * 2]
    )
    assert labels.by_largest(np.array([1.0, 5.0, 2.0, 6.0]), stories) == 100
    assert labels.by_largest(np.array([1.0, 2.0, 5.0, 6.0]), stories) == 50


def test_the_encoder_knows_without_labels_about_as_much_as_it_learns_from_4_000():
    learned = recorded()["accuracy"]["pre-trained"]["2000"]["accuracy"]
    assert abs(recorded()["without labels"]["encoder"] - np.mean(learned)) < np.ptp(learned)


def test_a_word_in_the_hole_is_judged_by_what_stands_on_both_sides():
    rng = np.random.default_rng(0)
    table = jax.nn.log_softmax(jnp.asarray(rng.normal(size=(growing.WORDS, growing.WORDS))))
    found = hidden_words.of_each_word(lambda ids: table[ids], jnp.asarray([3, 1, 4, 1, 5]), jnp.asarray(2))
    expected = jax.nn.log_softmax(table[1] + table[:, 1])  # after the second word, and before the fourth
    np.testing.assert_allclose(found, expected, atol=1e-4)
