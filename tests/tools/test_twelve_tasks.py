"""The table of twelve tasks: its numbers are those of the records, and the verdicts follow from them."""

import re
from pathlib import Path

import numpy as np
import pytest

import plainformer as pf

ROOT = Path(__file__).resolve().parents[2]
record = pf.data.load_record


def rows() -> dict[int, list[str]]:
    """The cells of each row, by its number."""
    page = (ROOT / "appendix" / "twelve_tasks.md").read_text(encoding="utf-8")
    text = re.sub(r"\{fact\}`(\w+)\.([^`]+)`", lambda match: record(match[1])["facts"][match[2]], page)
    lines = [line for line in text.splitlines() if line.startswith("| ") and line[2].isdigit()]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {int(each[0].split(".")[0]): each for each in cells}


def of_kind(name: str, kind: str) -> list[float]:
    """The losses on text of three seeds of one kind of network, or on copies."""
    return [run["judge"] for run in record("recurrent")["runs"][name] if run["kind"] == kind]


def windows(kind: str) -> list[float]:
    return [run["window"] for run in record("drifts")["one shape"]["dynamics_lengths"][kind]]


def best_gru() -> list[float]:
    """A recurrent network on the stories, at the better of two rates: nats above the lowest loss."""
    by_rate = record("story_gru")["rates"].values()
    return [each["above"] for each in min(by_rate, key=lambda seeds: seeds[0]["above"])]


def least(counted: dict) -> float:
    return min(loss for losses in counted.values() for loss in losses.values())


def tasks() -> dict[int, tuple]:
    """By row: seeds of the transformer, those of the opponent, how they are written, and whether more is better."""
    plays, stories, noise = record("shakespeare"), record("story_labels")["accuracy"], record("noise")
    noisy = [one["test"] for one in noise["shapes"]["networks"]["transformer"]["models"] if one["noise"] == 0.1]
    crossing = record("crossing_opponents")["table"]["attention by the mean of the rows, with coordinates"]
    names = record("fine_tuning")["accuracy"]
    staircase, captions = record("staircase"), record("translator")
    numbers, things = record("numbers")["all pairs"]["new_combination"], record("things_encoder")["rows"]
    bars = record("vision_crossing")["transformer"]
    assert staircase["counted"]["6"] > max(best_gru())  # counting is no stronger opponent
    return {
        1: ([run["above"] for run in staircase["rows"]["decoder"]], best_gru(), ".4f", False),
        2: ([plays["sizes"]["large"]["curve"][-1][1]], [least(plays["counted"])], ".3f", False),
        3: (stories["pre-trained"]["2000"]["accuracy"], stories["pairs of sentences"]["2000"]["accuracy"], ".1f", True),
        4: ([captions["both"]["test"]["beam"]["cased"]], [captions["counted"]["phrases"]["test"]], ".1f", True),
        5: ([100 * share for share in numbers["seeds"]], [100 * numbers["counted"]], ".1f", True),
        6: ([100 * run["held_out"] for run in bars], [100 * run["held_out"] for run in crossing], ".1f", True),
        7: (windows("ordinary"), [noise["lengths"]["simple"]["0.0"]["last point"]["test"]], None, False),
        8: (noisy, [noise["shapes"]["simple"]["0.1"]["curve"]["test"]], None, False),
        9: (of_kind("copy 80", "modern"), of_kind("copy 80 long", "gru"), None, False),
        10: (
            [things[f"encoder, seed {seed}"]["nats"] for seed in range(3)],
            [things["the same with votes"]["nats"]],
            ".3f",
            False,
        ),
        11: (names["pre-trained"]["100"], names["n-grams"]["100"], ".1f", True),
        12: (of_kind("text", "modern"), of_kind("text", "gru"), ".3f", False),
    }


def written(values: list[float], form: str) -> str:
    return (
        format(np.mean(values), form)
        if len(values) == 1
        else (f"{np.mean(values):{form}} ({min(values):{form}} to {max(values):{form}})")
    )


def spread(number: int) -> float:
    """The larger spread of a row; for what was trained once, the one that the page names."""
    if number == 2:
        return np.ptp(of_kind("text", "modern"))
    if number == 4:
        return record("translator")["bootstrap"]["both"]["half"]
    ours, theirs, *_ = tasks()[number]
    assert len(ours) > 1
    return max(np.ptp(ours), np.ptp(theirs))


def test_there_are_twelve_and_each_verdict_follows_from_the_records():
    verdicts = {number: cells[-1] for number, cells in rows().items()}
    assert list(verdicts) == list(range(1, 13))
    assert list(verdicts.values()).count("ahead") >= 6
    for number, (ours, theirs, _, more) in tasks().items():
        ahead = (np.mean(ours) - np.mean(theirs)) * (1 if more else -1)
        verdict = "level" if abs(ahead) <= 2 * spread(number) else "ahead" if ahead > 0 else "behind"
        assert verdicts[number] == verdict, number


def test_the_numbers_are_those_of_the_records():
    for number, (ours, theirs, form, _) in tasks().items():
        for values, cell in zip((ours, theirs), rows()[number][1:3], strict=True):
            words = [word.strip("(),") for word in cell.replace(" %", "").split()]
            if form:
                assert cell.replace(" %", "").startswith(written(values, form)), number
                continue
            found = [float(word) for word in words if word.replace(".", "").isdigit()]
            for value in (np.mean(values), min(values), max(values)):  # two digits of each, in its own size
                assert any(each == pytest.approx(value, rel=0.05) for each in found), number
