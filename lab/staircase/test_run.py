"""The machine that grows: every row of the staircase is what was recorded."""

import itertools
from functools import cache

import equinox as eqx
import numpy as np
import pytest

import plainformer as pf
from lab import asked, growing
from lab.growing import ROWS, SEEDS
from lab.staircase import real_text, run as staircase_run

recorded = cache(lambda: pf.data.load_record("staircase"))
weights = cache(lambda: pf.data.load_weights("machines"))


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
    prefix = f"{row}.{seed}."
    arrays = {name.removeprefix(prefix): array for name, array in weights().items() if name.startswith(prefix)}
    model = pf.training.with_arrays(eqx.filter_eval_shape(growing.make, ROWS[row], 0), arrays)
    check(growing.judged(growing.expected_by(model)), row, seed)
    if "asked" in recorded()["rows"][row][seed]:
        for kind, share in asked.shares(model).items():  # but for two stories at most
            expected = recorded()["rows"][row][seed]["asked"][kind]
            assert share == pytest.approx(expected, abs=2.5 / len(asked.questions()[kind])), kind


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
    assert real_text.counted(row) == pytest.approx(recorded()["real text"][row], abs=0.02)  # other Pythons, other text


def test_the_machines_of_the_real_text_are_those_of_the_stories_but_for_their_tokens():
    for row in ROWS.values():
        ours, theirs = (eqx.filter_eval_shape(growing.make, row, 0, size) for size in (97, growing.WORDS))
        per_token = 64 if row.num_layers else 2 * 64  # the table is the read-out, too, where there are blocks
        assert pf.count_parameters(ours) - pf.count_parameters(theirs) == (97 - growing.WORDS) * per_token


@pytest.mark.parametrize(("row", "counted"), [("words", growing.counted_words), ("pairs", growing.counted_pairs)])
def test_counted_rows_are_as_far_above_the_lowest_loss_as_recorded(row, counted):
    check(growing.judged(counted(1)), row, 1)


def test_the_stored_decoder_is_the_last_row():
    model, tokenizer = pf.load_pretrained("stories")
    assert tokenizer.to_json() == growing.VOCABULARY.to_json()
    check(growing.judged(growing.expected_by(model)), "decoder", 0)


def test_every_part_lowers_the_loss_but_one_head_alone():
    """With every seed; the chapter on self-attention says why a single head is no better than an average."""
    rows = {name: found for name, found in recorded()["rows"].items() if name != "head"}
    for above, below in itertools.pairwise(rows):
        assert max(each["above"] for each in rows[below]) < min(each["above"] for each in rows[above]), below


def test_most_of_the_gain_of_several_heads_is_in_words_that_are_no_answers():
    head, heads = (recorded()["rows"][row] for row in ("head", "heads"))
    pairs = list(zip(head, heads, strict=True))
    gain = np.mean([old["above"] - new["above"] for old, new in pairs])
    others = np.mean([old["kinds"]["other"][0] - new["kinds"]["other"][0] for old, new in pairs])
    of_all = head[0]["kinds"]["other"][2] / sum(number for *_, number in head[0]["kinds"].values())
    assert of_all * others / gain == pytest.approx(0.87, abs=0.01)


def above(row: str) -> np.ndarray:
    """Nats per word above the lowest loss, of each seed."""
    return np.array([seed["above"] for seed in recorded()["rows"][row]])


def right(row: str, column: str) -> np.ndarray:
    """The share of right answers in a column, of each seed."""
    return np.array([staircase_run.share(seed, staircase_run.COLUMNS[column]) for seed in recorded()["rows"][row]])


def test_an_average_is_level_with_the_best_counts():
    average, counted = above("average"), recorded()["counted"]
    assert max(average) < min(above("pairs"))
    assert counted["6"] == min(counted.values())
    assert abs(np.mean(average) - counted["6"]) < 2 * np.ptp(average)


def test_on_real_text_a_head_is_ahead_of_an_average():
    assert recorded()["real text"]["head"] < recorded()["real text"]["average"]


def test_on_stories_a_head_is_a_little_worse_than_an_average_with_each_seed():
    assert max(above("average")) < min(above("head"))
    assert np.mean(above("head")) < 1.1 * np.mean(above("average"))


def test_every_head_is_worse_than_the_average_on_words_that_are_no_answers():
    head, average = ([seed["kinds"]["other"][0] for seed in recorded()["rows"][row]] for row in ("head", "average"))
    assert min(head) > max(average)


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
