"""Whether a story is possible: the record, its card, what the chapter says of it, and what the stored encoder does."""

import re
from functools import cache
from pathlib import Path

import jax
import numpy as np
import pytest
import story_encoder
import train_story_labels as labels

import plainformer as pf

MODELS = Path(__file__).resolve().parents[2] / "models"
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


def test_the_card_says_what_was_recorded():
    assert labels.card(recorded()) == (MODELS / "story_labels.md").read_text(encoding="utf-8")


def test_the_stored_encoder_doubts_as_recorded(few_stories):
    model, words = stored()
    assert words.to_json() == story_encoder.VOCABULARY.to_json()
    assert model.config == story_encoder.Plan().config
    some = labels.judged().first(200)
    assert labels.by_largest(labels.doubts_of_encoder(model, some), some) == pytest.approx(
        recorded()["without labels"]["encoder"], abs=7
    )


def test_the_decoder_doubts_as_recorded():
    found = labels.by_largest(labels.doubts_of_decoder(labels.judged()), labels.judged())
    assert found == pytest.approx(recorded()["without labels"]["decoder"], abs=0.3)


def test_fine_tuning_reaches_what_was_recorded():
    """One of the cases over again: the first draw of a hundred labels of either kind."""
    run = recorded()["accuracy"]["pre-trained"]["100"]
    with jax.numpy_dtype_promotion("standard"):  # optax counts in integers
        model = labels.fine_tuned(stored()[0].encoder, 100, 0, run["rate"])
    assert labels.accuracy(model, labels.judged()) == pytest.approx(run["accuracy"][0], abs=3)


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


def test_what_the_chapter_says_was_recorded():
    (chapter,) = (MODELS.parent / "chapters").glob("*_encoder.md")
    text = re.sub(r"\s+", " ", chapter.read_text(encoding="utf-8"))
    accuracies, doubts = recorded()["accuracy"], recorded()["without labels"]
    ours, fresh, count, sentences = (
        np.mean(accuracies[name]["2000"]["accuracy"])
        for name in ("pre-trained", "from scratch", "groups of words", "pairs of sentences")
    )
    assert (
        f"right for {ours:.0f} % of the stories, the fresh one for {fresh:.0f} %, and counting for "
        f"{max(count, sentences):.0f} at most" in text
    )
    longer = recorded()["longer"]
    assert f"the two have {longer['pre-trained']:.0f} and {longer['from scratch']:.0f} %" in text
    assert f"Asked about hidden words, it is right for {doubts['encoder']:.0f} % without any label" in text
    assert f"each next word it is right for {doubts['decoder']:.1f} %" in text
    for runs in accuracies.values():
        assert np.mean(runs["100"]["accuracy"]) < 55
