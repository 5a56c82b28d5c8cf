"""The stories of the record are what it says, and a part of it comes out again."""

import itertools
from functools import partial

import numpy as np
import pytest

import plainformer as pf
from lab.asked import PEOPLE, ROOMS
from lab.inside.run import BY_NAMES, SEEDS
from lab.inside.side_by_side import SideBySide
from lab.inside.study import QUESTION, TAKER, TAKES, Study, laden, pairs
from plainformer.models import heads_at, patch

FIRST_ROOM = 29


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


def test_with_the_lamp_taken_and_not_put_in_the_box_the_room_of_the_box_is_named(study):
    form = (
        ". {one} is in the {here} . {other} is in the {here} . the box is in the {here} . the lamp is in the {here} . "
        "{one} takes the lamp . {other} takes the box . {other} goes to the {there} . where is the lamp ?"
    )
    told = [
        (*people, *rooms) for people in itertools.permutations(PEOPLE, 2) for rooms in itertools.permutations(ROOMS, 2)
    ]
    texts = [form.format(one=one, other=other, here=here, there=there) for one, other, here, there in told]
    said = study.model(np.array([study.words.encode(text) for text in texts]))[:, -1].argmax(axis=-1)
    rooms = np.array([study.words.encode(there)[0] for *_, there in told])
    assert len(told) == 72
    assert (np.asarray(said) == rooms).mean() > 0.95


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


def test_marks_taken_away_move_the_answer_whatever_is_asked_for(record):
    """The control: the silence that brings one answer back takes the other, so that nothing is repaired."""
    laden = record["laden"]
    first, other = (laden["seed 1"][thing] for thing in ("the first one's", "the other's"))
    first_silent, second_silent = (f"without the mark at the {room} room" for room in ("first", "second"))
    assert first["whole"][0] < 0.2 < 0.9 < first[second_silent][0]
    assert other[second_silent][1] < 0.1 < 0.8 < other["whole"][1]
    assert first[first_silent][0] < first["whole"][0]
    for name, thing in itertools.product(("seed 0", "seed 1, a quarter"), ("the first one's", "the other's")):
        before, after = (laden[name][thing][how] for how in ("whole", second_silent))
        assert after[0] > before[0] + 0.1
        assert after[1] < before[1] - 0.1
    for thing in ("the first one's", "the other's"):  # the third machine does not read its marks
        assert laden["seed 2"][thing]["whole"] == pytest.approx(laden["seed 2"][thing][second_silent], abs=0.01)


def test_labels_without_meaning_are_learned_in_three_of_four_cases_and_more(record):
    assert min(each["control"] for each in record["probes"]) > 0.75


def test_a_probe_learns_the_name_better_than_labels_at_takes_and_guesses_at_the_question(record):
    for each in record["probes"]:
        if each["at"] == TAKES:
            assert each["accuracy"] > each["control"] + 0.1
        if each["at"] == QUESTION:
            assert each["control"] > each["accuracy"] == pytest.approx(0.5, abs=0.05)


def told_and_read(record, at: int, depth: int) -> tuple[float, float]:
    """How well a probe tells the name there, and how far a patch there moves the answer."""
    (probe,) = (each for each in record["probes"] if (each["at"], each["depth"]) == (at, depth))
    return probe["accuracy"], record["machines"]["seed 1"]["stream"][depth][record["words"].index(at)][0]


def test_takes_still_tells_the_name_after_block_2_and_nothing_reads_it_there(record):
    told, read = told_and_read(record, TAKES, depth=3)
    assert abs(read) < 0.01 < 0.9 < told
    assert told_and_read(record, TAKES, depth=2)[1] > 0.9


def test_the_first_room_tells_the_name_before_block_2_and_nothing_reads_it_there(record):
    told, read = told_and_read(record, FIRST_ROOM, depth=2)
    assert abs(read) < 0.01 < 0.9 < told
    assert told_and_read(record, FIRST_ROOM, depth=3)[1] > 0.4


def test_with_all_other_heads_silent_every_story_of_both_kinds_is_answered_right(record):
    circuit = record["circuit"]
    assert circuit["all others silent"] == circuit["all others silent, the other story"] == 1
    assert abs(circuit["the five patched"][0] - 1) < 0.05


def test_without_the_five_it_ranks_one_room_for_both_stories_mostly_that_of_the_second_to_leave(record):
    """So that the right one stands higher in about half of all stories, and in far from half of either kind."""
    circuit = record["circuit"]
    of_one, of_other = circuit["the five silent"], circuit["the five silent, the other story"]
    assert circuit["the five silent, the same room in both"] > 0.95
    assert of_one < 0.35 < 0.65 < of_other
    assert (of_one + of_other) / 2 == pytest.approx(0.5, abs=0.02)


def test_head_0_0_is_missed_most_by_zeros_and_by_means_after_2_4_alone(record):
    second = record["machines"]["seed 1"]
    zero, mean = (np.array(second[how]) for how in ("zero", "mean"))
    assert np.unravel_index(zero.argmin(), zero.shape) == (0, 0)
    least = [np.unravel_index(each, mean.shape) for each in np.argsort(mean, axis=None)[:2]]
    assert least == [(2, 4), (0, 0)]
    assert abs(second["patched"][0][0][0]) < 0.2


def test_head_0_1_moves_the_answer_by_anna_and_1_0_by_ben_and_clara_and_the_mean_fits_hardly_a_story(record):
    """One text in ten at most is near the mean of head 0.1, which is a mean over two things that it does."""
    names = record["names"]
    early, late, both = (names[heads] for heads in ("0.1", "1.0", "both"))
    for who in ("Ben, Anna", "Clara, Anna"):  # the run that is patched in tells of Anna
        assert early["patched"][who][0] > 0.95
    for who in ("Anna, Ben", "Anna, Clara"):
        assert early["back"][who][0] > 0.8
    for way, who in itertools.product(("patched", "back"), ("Ben, Clara", "Clara, Ben")):
        assert abs(early[way][who][0]) < 0.05 < 0.8 < late[way][who][0]
    for way, who in itertools.product(("patched", "back"), both["patched"]):
        assert abs(both[way][who][0] - 1) < 0.02
    assert np.mean([each[3] for each in early["patched"].values()]) == pytest.approx(0.44, abs=0.01)
    assert early["patched, near the mean"] < 0.1 < 0.95 < both["patched, near the mean"]


def test_head_0_1_looks_at_every_taker_with_seven_tenths_and_more(record):
    assert min(record["names"]["looks"].values()) > 0.7


def test_effects_by_names_are_those_of_the_whole_and_come_again(record, study):
    names = record["names"]
    for heads in ("0.1", "1.0"):
        ((block, head),) = BY_NAMES[heads]
        for way in ("patched", "back"):
            means = [each[3] for each in names[heads][way].values()]
            whole = record["machines"]["seed 1"][way][block][head][3]
            assert np.mean(means) == pytest.approx(whole, abs=1e-3)
    whose = [", ".join(story.split()[TAKER] for story in pair[:2]) for pair in pairs()[::36]]
    assert {who for pair in whose for who in pair.split(", ")} == set(PEOPLE)
    for heads, places in BY_NAMES.items():
        moved = study.effect(patch(study.model, study.ours, places=heads_at(study.seen, places), source=study.source))
        for who, each in zip(whose, moved, strict=True):
            _, low, high, _ = names[heads]["patched"][who]
            assert low - 0.2 < each < high + 0.2


def test_machines_are_as_often_right_as_the_chapter_on_the_decoder_says(record):
    asked = [each["asked"] for each in pf.data.load_record("staircase")["rows"]["decoder"]]
    for each, found in zip(record["seeds"].values(), asked, strict=True):
        (right, wrong), _ = each["named"]["whole"]
        assert [right, wrong] == [found["then another leaves"], found["the same: the other's room, which is wrong"]]


def test_all_three_mark_the_room_of_who_takes_and_the_reader_of_the_third_stands_beside_its_marker(record):
    """A head reads what blocks before it have written, so that the third reader cannot read the mark."""
    for each, later in zip(record["seeds"].values(), (1, 1, 0), strict=True):
        for room, ours, theirs in (("first", 0, 1), ("second", 1, 0)):
            assert each["marks"][room][ours] > each["marks"][room][theirs] + 0.45
        assert each["reader"][0] == each["marker"][0] + later


def test_what_stands_at_the_rooms_of_the_third_machine_moves_nothing(record):
    first, second, third = (each["marking"] for each in record["seeds"].values())
    assert np.abs(third).max() < 0.3 < 1 < np.max(first) < 2 < 12 < np.max(second)
    assert np.max(record["seeds"]["seed 2"]["stream"]) < 0.05 < 0.5 < np.max(record["seeds"]["seed 0"]["stream"])


def test_the_third_reader_looks_at_the_last_room_whoever_takes(record):
    reads = record["seeds"]["seed 2"]["reads"]
    assert min(reads["second"]) > 0.7 > 0.3 > max(reads["first"])
    assert abs(np.subtract(*reads["second"])) < 0.02


def test_the_third_machine_is_right_once_its_reader_is_turned_to_the_mark(record):
    """And the second without it: the weights of two heads, not their numbers, make the difference."""
    named = record["seeds"]["seed 2"]["named"]
    assert named["whole"][0][0] < 0.1 < 0.9 < named["reader turned to the mark"][0][0]
    assert named["reader turned to the mark"][1][1] > 0.9
    assert named["reader turned away"][0][0] < 0.15
    second = record["seeds"]["seed 1"]["named"]
    assert second["whole"][0][0] == 1
    assert second["reader turned away"][0] == [0, 1]


def test_the_first_reader_sees_a_marked_hall_and_no_other_room(record):
    found = record["seeds"]["seed 0"]
    assert found["reads by room"]["hall"] > 0.9
    assert max(found["reads by room"][room] for room in ROOMS if room != "hall") < 0.1
    hall, others = found["by hall"]["with the hall"], found["by hall"]["without"]
    assert hall["right"] > 0.95 > 0.55 > others["right"]
    assert others["the same room in both"] > 0.9 > 0.1 > hall["the same room in both"]
    assert min(hall["marks"], others["marks"]) > 0.8


def test_silence_of_the_marker_costs_answers_but_in_the_third_machine(record):
    first, second, third = (each["named"] for each in record["seeds"].values())
    for each in (first, second):
        assert each["marker silent"][0][0] < each["whole"][0][0] - 0.1
        assert each["reader silent"][0][0] < each["whole"][0][0] - 0.2
    assert abs(third["marker silent"][0][0] - third["whole"][0][0]) < 0.05


def test_answers_with_a_reader_turned_come_again(record):
    found, both = record["seeds"]["seed 2"], SideBySide(SEEDS["seed 2"], stride=36)
    turned = partial(both.turned, marker=tuple(found["marker"]), reader=tuple(found["reader"]))
    assert both.shares(both.model) == found["named"]["whole"]
    assert both.shares(partial(turned, to_marked=True)) == found["named"]["reader turned to the mark"]
