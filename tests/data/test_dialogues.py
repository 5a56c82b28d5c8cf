"""Dialogues of the little world, and its stories with the verb at the end."""

from collections import Counter

import pytest

import plainformer as pf


def test_dialogues_ask_what_the_story_answers():
    found = pf.data.dialogues(150, num_words=64, seed=1000)
    assert found == pf.data.dialogues(150, num_words=64, seed=1000)
    assert len(set(found)) > 140
    for each in found:
        whole = f"{each.story} {each.question} ? {each.answer} ."
        assert all(possible for _, possible in pf.data.possible_sentences(whole))
        assert each.kind == pf.data.word_kinds(whole)[-2]
        assert each.story.endswith(".")
        assert len(each.story.split()) <= 64
    assert set(Counter(each.kind for each in found)) >= {"where 1", "where 2", "who", "light"}


def test_dialogues_too_short_are_refused():
    with pytest.raises(ValueError, match=r"num_words is 12"):
        pf.data.dialogues(1, num_words=12)


def test_world_after_a_story():
    story = ". the lamp is in the hall . Anna is in the hall . Anna takes the lamp . Anna goes to the cellar . Ben is"
    assert pf.data.world_after(story) == {"lamp": "Anna", "Anna": "cellar"}


@pytest.mark.parametrize(
    ("said", "verb_last"),
    [
        ("Anna puts the ball in the box .", "Anna the ball in the box puts ."),
        ("is it light ? no .", "it light is ? no ."),
        ("it is wet .", "it wet is ."),
    ],
)
def test_verbs_last(said, verb_last):
    assert pf.data.verbs_last(f". {said}") == f". {verb_last}"


def test_verbs_last_keeps_every_word_and_tells_stories_apart():
    told = pf.data.stories(30, 60, seed=2)
    moved = [pf.data.verbs_last(story) for story in told]
    assert [Counter(story.split()) for story in told] == [Counter(story.split()) for story in moved]
    assert len(set(moved)) == len(set(told))
