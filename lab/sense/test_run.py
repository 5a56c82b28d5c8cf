"""What the decoder of stories writes is as often possible as recorded."""

from functools import cache

import numpy as np
import pytest

import plainformer as pf
from lab.sense import judging, run as sense_run

recorded = cache(lambda: pf.data.load_record("sense"))


def test_the_program_itself_makes_sense():
    begun, told = sense_run.beginnings(), sense_run.told()
    assert sense_run.judged(begun, told) == recorded()["ways"]["the program itself"][0]


def test_an_impossible_sentence_and_one_said_before_are_counted():
    start = ". Anna is in the hall ."
    asked = "where is Anna ? hall ."
    story = f"{start} Anna is in the cellar . {asked} Anna goes to the cellar . Anna goes to the hall . {asked}"
    found = sense_run.judged([start], [story])
    expected = {"sentences": 5, "possible": 0.8, "early": 0.6667, "late": 1.0, "answers": 1.0, "again": 0.2}
    assert found == expected


def test_greedy_search_writes_what_was_recorded():
    (model, tokenizer), begun = pf.load_pretrained("stories"), sense_run.beginnings()
    found = sense_run.judged(begun, sense_run.written(model, tokenizer, {"temperature": 0.0}, 0, begun))
    (expected,) = recorded()["ways"]["greedy"]
    for part in ("possible", "answers", "again"):
        assert found[part] == pytest.approx(expected[part], abs=0.02), part


@pytest.mark.parametrize(
    ("slip", "later", "possible"),
    [
        ("Anna is in the cellar .", "where is Anna ? cellar .", True),
        ("Anna takes the box .", "where is the box ? hall .", True),
        ("the lamp is in the hall .", "who has the lamp ? nobody .", True),
        ("Anna wears boots .", "Ben wears boots .", True),
        ("who has the lamp ? nobody .", "Ben takes the lamp .", True),
        ("is it light ? no .", "is it light ? no .", False),
        ("lamp the the .", "where is the lamp ? hall .", False),
    ],
)
def test_what_agrees_with_a_slip_is_possible_to_a_judge_who_believes_it_and_does_not_count_if_it_names_the_same(
    slip, later, possible
):
    begun = ". the lamp is in the kitchen . Ben is in the kitchen . Ben takes the lamp . Anna is in the hall ."
    news = "the box is in the kitchen . it is cold . the left switch is up . the right switch is down ."
    story = f"{begun} {news} {slip} {later} Clara is in the hall ."
    expected = [(slip, False, True), (later, possible, False), ("Clara is in the hall .", True, True)]
    assert judging.others(story)[-3:] == expected
    assert judging.believing(story)[-2] == (later, possible, True)
    assert judging.strict(story)[-2] == (later, False, True)


def test_an_error_over_stories_by_hand():
    """Four stories of two sentences each, of which the first is all wrong: as four sentences, not as eight."""
    share, parts = judging.ratio([[False, False], *3 * [[True, True]]])
    assert share == 0.75
    assert judging.error(parts) == pytest.approx((0.75 * 0.25 / 4) ** 0.5)


def test_what_is_lost_after_right_words_too_is_not_the_model_s_own_text():
    early, late, after = 4 * [[True] * 10], 4 * [[True] * 6 + [False] * 4], 4 * [[True] * 9 + [False]]
    found = {name: value for name, (value, _) in judging.split(early, late, after).items()}
    assert found == {"early": 1.0, "late": 0.6, "after": 0.9, "length": 0.1, "own": 0.3, "part": 0.75}


def beyond(way: str, part: str, other: str = "temperature 1") -> float:
    """How many standard errors of the difference the share of one way lies above that of another."""
    ways, errors = (recorded()[name] for name in ("ways", "errors"))
    more = np.mean([each[part] for each in ways[way]]) - np.mean([each[part] for each in ways[other]])
    return more / np.hypot(errors[way][part], errors[other][part])


def test_only_three_ways_are_possible_more_often_than_at_temperature_1_beyond_twice_the_error():
    ways = {*sense_run.WAYS, "a beam of 4"} - {"temperature 1"}
    assert {way for way in ways if beyond(way, "possible") > 2} == {"greedy", "a beam of 4", "top-p 0.5"}
    assert {way for way in ways if beyond(way, "possible") < -2} == {f"temperature {T}" for T in ("1.3", "1.6", "2")}


def test_a_top_p_of_0_9_gives_more_right_answers_than_temperature_1_beyond_twice_the_error():
    assert beyond("top-p 0.9", "answers") > 2
    for way in ("temperature 0.8", "top-p 0.99"):
        assert abs(beyond(way, "answers")) < 2


def test_those_three_repeat_themselves_more_than_twice_as_often_as_the_program():
    again = {way: np.mean([each["again"] for each in found]) for way, found in recorded()["ways"].items()}
    assert min(again[way] for way in ("greedy", "a beam of 4", "top-p 0.5")) > 2 * again["the program itself"]


def test_whoever_judges_more_than_half_of_the_loss_comes_from_the_length():
    for part, error in (found["part"] for found in recorded()["split"].values()):
        assert part + 2 * error < 0.5


def test_two_judges_find_a_loss_by_its_own_text_beyond_twice_the_error():
    own = {judge: share / error for judge, found in recorded()["split"].items() for share, error in [found["own"]]}
    assert min(own["strict"], own["believing"]) > 2 > own["others"]
