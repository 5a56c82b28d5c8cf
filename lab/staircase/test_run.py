"""The machine that grows: every row of the staircase is what was recorded."""

import itertools
from functools import cache

import equinox as eqx
import numpy as np
import pytest

import plainformer as pf
from lab import asked, growing
from lab.growing import ROWS, SEEDS
from lab.staircase import card, real_text, run as staircase_run, telling

recorded = cache(lambda: pf.data.load_record("staircase"))


def check(found: dict, row: str, seed: int):
    """Losses and shares of right answers are those that were recorded."""
    expected = recorded()["rows"][row][seed]
    assert found["above"] == pytest.approx(expected["above"], abs=2e-4)
    assert found["kinds"].keys() == expected["kinds"].keys()
    for kind, (above, right, number) in expected["kinds"].items():
        assert found["kinds"][kind][0] == pytest.approx(above, abs=2e-3), kind
        assert found["kinds"][kind][1] == pytest.approx(right, abs=5e-3), kind
        assert found["kinds"][kind][2] == number


@pytest.mark.parametrize(("row", "seed"), [(row, SEEDS[place % len(SEEDS)]) for place, row in enumerate(ROWS)])
def test_stored_machines_are_as_far_above_the_lowest_loss_as_recorded(row, seed):
    model = growing.stored(row, seed)
    check(growing.judged(growing.expected_by(model)), row, seed)
    expected = recorded()["rows"][row][seed]
    assert telling.possible(model) == pytest.approx(expected["possible"], abs=0.02)
    for kind, share in asked.shares(model).items():  # but for two stories at most
        assert share == pytest.approx(expected["asked"][kind], abs=2.5 / len(asked.questions()[kind])), kind


def test_questions_have_one_answer_and_the_wrong_one_is_wrong():
    kinds = dict(asked.questions())
    wrong = {"then another leaves": kinds.pop(asked.WRONG), "with something else": kinds.pop(asked.WRONG_TOO)}
    for kind in kinds.values():
        for story, answer in list(kind.items())[::7]:
            assert pf.data.next_words(story) == {answer: 1.0}, story
    for kind, stories in wrong.items():
        assert kinds[kind].keys() == stories.keys()
        assert all(kinds[kind][story] != answer for story, answer in stories.items())


def test_guesses_without_a_machine_are_as_good_as_recorded():
    assert staircase_run.always_the_same() == recorded()["always the same"]
    assert staircase_run.named_most_often() == recorded()["named most often"]


def test_letters_of_the_real_text_are_counted_as_recorded():
    row = list(real_text.COUNTED)[-1]
    loss, _ = real_text.counted(row)
    assert loss == pytest.approx(recorded()["real text"][row], abs=0.02)  # other Pythons, other text


def test_the_machines_of_the_real_text_are_those_of_the_stories_but_for_their_tokens():
    for row in ROWS.values():
        ours, theirs = (eqx.filter_eval_shape(growing.make, row, 0, size) for size in (97, growing.WORDS))
        per_token = 64 if row.num_layers else 2 * 64  # the table is the read-out, too, where there are blocks
        assert pf.count_parameters(ours) - pf.count_parameters(theirs) == (97 - growing.WORDS) * per_token


@pytest.mark.parametrize(("row", "counted"), [("words", growing.counted_words), ("pairs", growing.counted_pairs)])
def test_counted_rows_are_as_far_above_the_lowest_loss_as_recorded(row, counted):
    found = staircase_run.counted_row(counted(1))
    check(found, row, 1)
    assert found["possible"] == pytest.approx(recorded()["rows"][row][1]["possible"], abs=0.02)


def test_the_stored_decoder_is_the_last_row():
    model, tokenizer = pf.load_pretrained("stories")
    assert tokenizer.to_json() == growing.VOCABULARY.to_json()
    check(growing.judged(growing.expected_by(model)), "decoder", 0)


def test_every_part_lowers_the_loss_with_every_seed():
    for over, under in itertools.pairwise(recorded()["rows"]):
        assert max(above(under)) < min(above(over)), under


def test_most_of_the_gain_of_several_heads_is_in_words_that_are_no_answers():
    head, heads = (recorded()["rows"][row] for row in ("head", "heads"))
    pairs = list(zip(head, heads, strict=True))
    gain = np.mean([old["above"] - new["above"] for old, new in pairs])
    others = np.mean([old["kinds"]["other"][0] - new["kinds"]["other"][0] for old, new in pairs])
    of_all = head[0]["kinds"]["other"][2] / sum(number for *_, number in head[0]["kinds"].values())
    assert of_all * others / gain == pytest.approx(0.82, abs=0.01)


def above(row: str) -> np.ndarray:
    """Nats per word above the lowest loss, of each seed."""
    return np.array([seed["above"] for seed in recorded()["rows"][row]])


def right(row: str, column: str) -> np.ndarray:
    """The share of right answers in a column, of each seed."""
    return np.array([card.share(seed, card.COLUMNS[column]) for seed in recorded()["rows"][row]])


def of_rows(row: str, name: str) -> np.ndarray:
    """What was recorded of each seed under a name."""
    return np.array([seed[name] for seed in recorded()["rows"][row]])


def test_a_head_is_ahead_of_an_average_with_each_seed():
    assert max(above("head")) < min(above("average"))
    assert growing.ROWS["head"].num_steps == growing.ROWS["average"].num_steps


def test_a_head_is_surer_of_clothes_than_an_average_with_each_seed():
    nats = {row: [seed["kinds"]["wears"][0] for seed in recorded()["rows"][row]] for row in ("head", "average")}
    assert max(nats["head"]) < min(nats["average"])


def test_a_head_knows_who_has_a_thing_less_often_than_whoever_says_nobody():
    assert max(right("head", "who")) < recorded()["always the same"]["who"]


def test_no_machine_without_positions_tells_two_people_apart():
    for row in ("average", "head", "heads", "block", "stack"):
        assert max(seed["one of two"] for seed in of_rows(row, "asked")) < 0.6, row


def test_with_positions_two_seeds_of_three_tell_two_people_apart():
    least, *others = sorted(seed["one of two"] for seed in of_rows("positions", "asked"))
    assert least < 0.9 < 1 == min(others)
    assert {seed["one of two"] for seed in of_rows("decoder", "asked")} == {1}


def test_after_a_thousand_steps_a_head_is_behind_an_average():
    of_1000 = {knob["row"]: knob["above"] for knob in recorded()["knobs"] if knob["changed"].get("num_steps") == 1000}
    assert of_1000["head"] > of_1000["average"]


def test_every_part_adds_possible_sentences():
    shares = [np.mean(of_rows(row, "possible")) for row in recorded()["rows"]]
    assert all(np.diff(shares) > 0)


def test_eight_heads_know_no_better_where_than_the_room_named_most_often():
    assert max(right("heads", "where")) < recorded()["named most often"]


def test_norms_and_network_help_with_each_seed_and_tying_does_not():
    norms, tied = (np.array([seed["above"] for seed in recorded()["parts"][part]]) for part in ("norms", "tying"))
    assert max(norms) < min(above("heads"))
    assert np.mean(tied) > np.mean(norms)
    assert max(above("block")) < min(tied)
    assert np.mean(tied) - np.mean(above("block")) > np.mean(above("heads")) - np.mean(norms)


def test_an_average_is_ahead_of_the_best_counts_with_each_seed():
    average, counted = above("average"), recorded()["counted"]
    assert max(average) < min(above("pairs"))
    assert counted["6"] == min(counted.values())
    assert max(average) < counted["6"]


def test_on_real_text_a_head_is_ahead_of_an_average():
    assert recorded()["real text"]["head"] < recorded()["real text"]["average"]


def test_eight_heads_beat_one_with_each_seed():
    assert max(above("heads")) < min(above("head"))


def test_eight_heads_are_well_ahead_of_the_best_counts():
    counted = min(recorded()["counted"].values())
    assert counted - max(above("heads")) > 2 * np.ptp(above("heads"))


def test_eight_heads_know_whether_it_is_light_little_better_than_a_guess():
    assert 0 < np.mean(right("heads", "light")) - recorded()["always the same"]["light"] < 0.1


def test_a_block_removes_nearly_half_of_what_eight_heads_left():
    assert 0.4 < 1 - np.mean(above("block")) / np.mean(above("heads")) < 0.5


def test_most_of_the_gain_of_a_block_is_in_words_that_are_no_answers():
    for old, new in zip(recorded()["rows"]["heads"], recorded()["rows"]["block"], strict=True):
        of_all = new["kinds"]["other"][2] / sum(number for *_, number in new["kinds"].values())
        gain = of_all * (old["kinds"]["other"][0] - new["kinds"]["other"][0])
        assert gain > 0.8 * (old["above"] - new["above"])


@pytest.mark.parametrize("column", ["takes", "switch"])
def test_a_block_knows_better_than_eight_heads_what_is_taken_and_which_way_a_switch_goes(column):
    assert min(right("block", column)) > max(right("heads", column))


def test_a_block_knows_no_better_than_eight_heads_where_things_are():
    assert np.mean(right("block", "where")) < np.mean(right("heads", "where")) + np.ptp(right("heads", "where"))


def test_a_block_knows_with_one_seed_of_three_whether_it_is_light_and_else_guesses():
    *guesses, knows = sorted(right("block", "light"))
    assert max(guesses) < recorded()["always the same"]["light"] + 0.05 < 0.75 < knows


def test_four_blocks_know_with_one_seed_of_three_whether_it_is_light():
    *others, knows = sorted(right("stack", "light"))
    assert max(others) < 0.7 < 0.9 < knows


def test_with_the_first_seed_alibi_ends_nearest_to_the_lowest_loss():
    others = [knob["above"] for knob in recorded()["knobs"] if "scheme" in knob["changed"]]
    assert len(others) == 4
    assert recorded()["rows"]["positions"][0]["above"] + 0.02 < min(others)
    assert 0 < recorded()["rows"]["stack"][0]["above"] - max(others) < 0.002
