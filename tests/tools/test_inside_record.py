"""The record of which heads follow the lamp: its stories are what it says, and a part of it comes out again."""

import numpy as np
import pytest
from inside_record import QUESTION, TAKER, TAKES, Study, laden, pairs

import plainformer as pf
from plainformer.models import patch


@pytest.fixture(scope="module")
def record():
    return pf.data.load_record("inside")


@pytest.fixture(scope="module")
def study():
    return Study("decoder.1", stride=36)


def test_stories_are_possible_and_differ_in_who_takes(study):
    assert len(set(pairs())) == len(pairs()) == 288
    differ = np.asarray(study.ours != study.theirs)
    assert differ[:, TAKER].all()
    assert differ.sum(axis=1).max() == 1
    for told, answer in [(pairs()[5][0], pairs()[5][2]), (pairs()[5][1], pairs()[5][3]), laden()[7][:2]]:
        whole = f"{told} {answer} ."
        assert all(possible for _, possible in pf.data.possible_sentences(whole))
    words = study.words.decode(study.ours[0]).split()
    assert [words[n] for n in (TAKES, QUESTION)] == ["takes", "?"]


def test_heads_of_the_record_turn_the_answer_again(record, study):
    assert all(each.all() for each in study.is_right)
    stored = np.array(record["machines"]["seed 1"]["patched"])
    for block, head in [(2, 4), (3, 6), (2, 0)]:
        name = f"stack.blocks.{block}.attention.heads"
        said = patch(study.model, study.ours, places={name: np.s_[:, head]}, source=study.source)
        assert abs(np.median(study.effect(said)) - stored[block, head, 0]) < 0.05


def test_stories_of_two_things_ask_for_either():
    for (one, *rooms), (other, *same) in zip(laden(0), laden(1), strict=True):
        assert rooms == same
        assert one.split()[:-2] == other.split()[:-2]
        assert {one.split()[-2], other.split()[-2]} == {"lamp", "ball"}
        taker, _, _, thing = one.split(" . ")[4].split()
        assert thing == one.split()[-2]
        assert f"{taker} goes to the {rooms[0]}" in one
