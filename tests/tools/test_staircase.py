"""The machine that grows: every row of the staircase is what was recorded, and the chapters say the same."""

import re
from functools import cache
from pathlib import Path

import asked
import equinox as eqx
import growing
import numpy as np
import pytest
import real_text
import train_staircase
from growing import ROWS, SEEDS, kept_back

import plainformer as pf

ROOT = Path(__file__).resolve().parents[2]
recorded = cache(lambda: pf.data.load_record("staircase"))
weights = cache(lambda: pf.data.load_weights("machines"))
CARD = (ROOT / "models" / "staircase.md").read_text(encoding="utf-8")
# The last row of the table at the end of each chapter.
LAST = {
    "00_primer": "pairs",
    "01_tokens": "pairs",
    "02_self_attention": "head",
    "03_multi_head": "heads",
    "04_blocks": "block",
    "05_depth": "stack",
    "06_positions": "positions",
    "07_decoder": "decoder",
}


def check(found: dict, row: str, seed: int):
    """Losses and shares of right answers are those that were recorded."""
    expected = recorded()["rows"][row][seed]
    assert found["above"] == pytest.approx(expected["above"], abs=2e-4)
    assert found["kinds"].keys() == expected["kinds"].keys()
    for kind, (above, right, number) in expected["kinds"].items():
        assert found["kinds"][kind][0] == pytest.approx(above, abs=2e-3), kind
        assert found["kinds"][kind][1] == pytest.approx(right, abs=5e-3), kind
        assert found["kinds"][kind][2] == number


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("row", ROWS)
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


@pytest.mark.parametrize("row", real_text.COUNTED)
def test_letters_of_the_real_text_are_counted_as_recorded(row):
    assert real_text.counted(row) == pytest.approx(recorded()["real text"][row], abs=0.02)  # other Pythons, other text


def test_the_machines_of_the_real_text_are_those_of_the_stories_but_for_their_tokens():
    for row in ROWS.values():
        ours, theirs = (eqx.filter_eval_shape(growing.make, row, 0, size) for size in (97, growing.WORDS))
        per_token = 64 if row.num_layers else 2 * 64  # the table is the read-out, too, where there are blocks
        assert pf.count_parameters(ours) - pf.count_parameters(theirs) == (97 - growing.WORDS) * per_token


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("row", "counted"), [("words", growing.counted_words), ("pairs", growing.counted_pairs)])
def test_counted_rows_are_as_far_above_the_lowest_loss_as_recorded(row, counted, seed):
    check(growing.judged(counted(seed)), row, seed)


def test_the_stored_decoder_is_the_last_row():
    model, tokenizer = pf.load_pretrained("stories")
    assert tokenizer.to_json() == growing.VOCABULARY.to_json()
    check(growing.judged(growing.expected_by(model)), "decoder", 0)


def test_every_part_lowers_the_loss_but_one_head_alone():
    """With every seed; chapter 02 says why a single head is no better than an average."""
    rows = {name: found for name, found in recorded()["rows"].items() if name != "head"}
    for above, below in zip(list(rows)[:-1], list(rows)[1:], strict=True):
        assert max(each["above"] for each in rows[below]) < min(each["above"] for each in rows[above]), below


def test_the_lowest_loss_is_computed_from_the_probabilities_of_the_program():
    assert kept_back().least.mean() == pytest.approx(recorded()["lowest"], abs=1e-4)


def test_cards_say_what_was_recorded():
    assert train_staircase.card(recorded()) == CARD
    assert train_staircase.stories_card(recorded()) == (ROOT / "models" / "stories.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("chapter", "rows"),
    [
        ("05_depth", ("block", "stack")),
        ("06_positions", ("stack", "positions")),
        ("07_decoder", ("positions", "decoder")),
    ],
)
def test_the_chapter_says_of_the_questions_what_was_recorded(chapter, rows):
    text = (ROOT / "chapters" / f"{chapter}.md").read_text(encoding="utf-8")
    table = train_staircase.asked_table({row: recorded()["rows"][row] for row in rows})
    assert table in text, f"the table of {chapter} should be\n{table}"


def test_chapter_06_says_of_each_seed_what_was_recorded():
    seeds = recorded()["rows"]["positions"]
    text = " ".join((ROOT / "chapters" / "06_positions.md").read_text(encoding="utf-8").split())
    light, where = (
        [round(100 * train_staircase.share(seed, train_staircase.ASKED[column])) for seed in seeds]
        for column in ("light", "where")
    )
    assert light[0] == light[1]
    assert f"({light[0]} %), and where somebody or something is ({where[0]} and {where[1]} %)." in text
    assert f"has learned neither in 1,000 steps ({light[2]} and {where[2]} %)." in text


def test_the_primer_says_how_often_one_answer_is_right():
    """Of each column: always the same answer, the best."""
    text = " ".join((ROOT / "chapters" / "00_primer.md").read_text(encoding="utf-8").split())
    following, kinds = kept_back().ids[:, 1:], kept_back().kinds
    best = {}
    for column, of in train_staircase.ASKED.items():
        counts = np.bincount(following[np.isin(kinds, of)])
        best[column] = f"{100 * counts.max() / counts.sum():.0f} %"
    assert f"right in {best['wears']} of the cases, with one room always in {best['where']}," in text
    assert f"with *nobody* always in {best['who']}, and with *no* always in half." in text
    assert best["light"] == "50 %"


def test_chapter_02_says_of_average_and_head_what_was_recorded():
    text = " ".join((ROOT / "chapters" / "02_self_attention.md").read_text(encoding="utf-8").split())
    rows = {row: recorded()["rows"][row] for row in ("average", "head")}
    where = {
        row: [round(100 * train_staircase.share(seed, train_staircase.ASKED["where"])) for seed in seeds]
        for row, seeds in rows.items()
    }
    assert "{}, {} and {} % in the column *where*".format(*where["head"]) in text
    assert "against {}, {} and {} %.".format(*where["average"]) in text
    wears, other = (
        {row: [seed["kinds"][kind][0] for seed in seeds] for row, seeds in rows.items()} for kind in ("wears", "other")
    )
    assert f"{min(wears['average']):.2f} to {max(wears['average']):.2f} nats, and the head" in text
    assert f"{min(wears['head']):.3f} to {max(wears['head']):.3f}, because" in text
    worse = [head - average for head, average in zip(other["head"], other["average"], strict=True)]
    assert f"worse than the average, by {min(worse):.2f} to {max(worse):.2f} nats" in text


def test_chapter_03_says_of_the_gain_what_was_recorded():
    """Nearly nine tenths of it are in words that are no answers."""
    head, heads = recorded()["rows"]["head"], recorded()["rows"]["heads"]
    gain = np.mean([old["above"] - new["above"] for old, new in zip(head, heads, strict=True)])
    others = np.mean(
        [old["kinds"]["other"][0] - new["kinds"]["other"][0] for old, new in zip(head, heads, strict=True)]
    )
    of_all = head[0]["kinds"]["other"][2] / sum(number for *_, number in head[0]["kinds"].values())
    assert of_all * others / gain == pytest.approx(0.87, abs=0.01)
    text = (ROOT / "chapters" / "03_multi_head.md").read_text(encoding="utf-8")
    assert "Nearly nine tenths of the gain are in words that are no answers" in " ".join(text.split())


def test_whoever_names_the_room_named_most_often_is_right_as_often_as_chapter_03_says():
    shares = []  # draws lots among equals
    for story in pf.data.stories(400, seed=1000):
        said = story.split()
        for place, kind in enumerate(pf.data.word_kinds(story), start=1):
            if kind.startswith("where"):
                counts = {room: said[:place].count(room) for room in asked.ROOMS}
                most = [room for room, count in counts.items() if count == max(counts.values())]
                shares.append((said[place] in most) / len(most))
    assert f"you are right in {100 * np.mean(shares):.0f} %." in (ROOT / "chapters" / "03_multi_head.md").read_text(
        "utf-8"
    )


def test_chapter_04_says_what_the_block_knows_better():
    text = " ".join((ROOT / "chapters" / "04_blocks.md").read_text(encoding="utf-8").split())
    ranges = {}
    for row in ("heads", "block"):
        for kind in ("takes", "switch"):
            right = [round(100 * train_staircase.share(seed, (kind,))) for seed in recorded()["rows"][row]]
            ranges[row, kind] = min(right), max(right)
    for kind in ("takes", "switch"):
        (low, high), (old_low, old_high) = ranges["block", kind], ranges["heads", kind]
        assert f"({low} to {high} % instead of {old_low} to {old_high})" in text


def test_chapters_say_of_the_real_text_what_was_recorded():
    real = recorded()["real text"]
    text = {n: " ".join((ROOT / "chapters" / f"{n}.md").read_text(encoding="utf-8").split()) for n in LAST}
    assert f"with {real['head']:.2f} against {real['average']:.2f} nats per letter" in text["02_self_attention"]
    assert f"from {real['block']:.2f} to {real['stack']:.2f} nats per letter" in text["05_depth"]
    assert f"from {real['stack']:.2f} to {real['positions']:.2f} nats per letter" in text["06_positions"]
    assert f"has a loss of {real['positions']:.2f} nats after 1,000 steps." in text["07_decoder"]
    assert f"did harm, {real['decoder']:.2f} instead of {real['positions']:.2f}:" in text["07_decoder"]


def test_chapter_07_says_of_the_switch_what_was_recorded():
    switch = [round(100 * train_staircase.share(seed, ("switch",))) for seed in recorded()["rows"]["decoder"]]
    text = " ".join((ROOT / "chapters" / "07_decoder.md").read_text(encoding="utf-8").split())
    assert switch[0] == 100
    assert f"know it in only {switch[1]} and {switch[2]} % of the cases, hardly more often" in text


@pytest.mark.parametrize("chapter", LAST)
def test_the_chapter_says_of_the_machine_so_far_what_was_recorded(chapter):
    text = (ROOT / "chapters" / f"{chapter}.md").read_text(encoding="utf-8")
    table = train_staircase.table(recorded(), LAST[chapter])
    assert table in text, f"the table of {chapter} should be\n{table}"


def test_the_chapters_name_no_row_that_the_record_has_not():
    names = set(train_staircase.NAMES.values())
    for chapter in LAST:
        text = (ROOT / "chapters" / f"{chapter}.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\| ([^|]+) \| \d\.\d{3} \(\d\.\d{3} to \d\.\d{3}\)", text, re.MULTILINE)
        assert set(rows) <= names
