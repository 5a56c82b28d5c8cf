"""Stories that are possible or not: the label is right, one answer makes it, and no word gives it away."""

from collections import Counter

import numpy as np
import pytest

import plainformer as pf
from plainformer.data.labelled_stories import SHORTEST


@pytest.fixture(scope="module")
def told():
    return pf.data.labelled_stories(1000, seed=7)


def impossible(text):
    return [sentence for sentence, possible in pf.data.possible_sentences(text) if not possible]


def test_a_story_is_possible_if_each_of_its_sentences_is(told):
    assert all(bool(impossible(story.text)) != story.is_possible for story in told)


def test_stories_are_whole_sentences_of_at_most_so_many_words(told):
    assert all(story.text.startswith(". ") and story.text.endswith(" .") for story in told)
    assert max(len(story.text.split()) for story in told) == 64
    assert min(len(story.text.split()) for story in told) > 50


def test_about_half_are_spoilt_and_words_are_as_frequent_in_either_half(told):
    halves = [[story.text.split() for story in told if story.is_possible is kind] for kind in (True, False)]
    assert 420 < len(halves[0]) < 580
    of_possible, of_spoilt = (Counter(word for words in half for word in words) for half in halves)
    assert of_possible.keys() == of_spoilt.keys()
    for word, count in of_possible.items():
        expected = np.mean([count / len(halves[0]), of_spoilt[word] / len(halves[1])])
        error = 6 * np.sqrt(max(expected, 0.05) * 8 / 1000)  # the words of a story come in clusters
        assert abs(count / len(halves[0]) - of_spoilt[word] / len(halves[1])) < error, word


def test_answers_of_each_kind_are_spoilt(told):
    endings = Counter(sentence.split()[0] for story in told for sentence in impossible(story.text)[:1])
    assert {"where", "who", "is", "the"} <= endings.keys()


def test_other_seeds_tell_other_stories_and_the_same_seed_the_same():
    assert pf.data.labelled_stories(4, seed=1) == pf.data.labelled_stories(6, seed=1)[:4]
    assert pf.data.labelled_stories(4, seed=1) != pf.data.labelled_stories(4, seed=2)


def test_stories_too_short_for_an_answer_are_refused():
    assert len(pf.data.labelled_stories(2, SHORTEST)) == 2
    with pytest.raises(ValueError, match=r"num_words is 12"):
        pf.data.labelled_stories(2, SHORTEST - 1)
