"""The numbers of chapters that come of records stand in them, whatever the words around are; so do the tables."""

import re
from pathlib import Path

import asked
import numpy as np
import page_record
import pytest
import recurrent_card
import sense_record
import train_crossing_opponents
import train_docstrings
import train_drafts
import train_post_norm
import train_staircase
from growing import kept_back
from post_norm_runs import AS_PYTORCH, LONGER, OTHERS, RUNS, SHORT, SMALLER, SOME, Run, bert
from train_colours import LONGER as LONGER_COLOURS

import plainformer as pf

ROOT = Path(__file__).resolve().parents[2]
PAGE = page_record.CHAPTER.stem.partition("_")[2]
record = pf.data.load_record


def text_of(name: str) -> str:
    (file,) = [*(ROOT / "chapters").glob(f"*_{name}.md"), *(ROOT / "appendix").glob(f"{name}.md")]
    return file.read_text(encoding="utf-8")


def percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f}"


def ends(values: list[float], form: str = ".2f") -> list[str]:
    return [format(min(values), form), format(max(values), form)]


# --- Numbers ----------------------------------------------------------------------------------------------------


def of_primer() -> list[str]:
    """How often it is right to give always the same answer, the best, in each column."""
    following, kinds, shares = kept_back().ids[:, 1:], kept_back().kinds, {}
    for column, of in train_staircase.ASKED.items():
        counts = np.bincount(following[np.isin(kinds, of)])
        shares[column] = percent(counts.max() / counts.sum())
    assert shares["light"] == "50"
    return [f"{shares[column]} %" for column in ("wears", "where")]


def of_multi_head() -> list[str]:
    (layers,) = (run["layers"] for run in record("colours")["runs"] if run["name"] == LONGER_COLOURS.name)
    lengths = [f"{layer['label_length']:.0f}" for layer in layers]
    return [*(f"{layer['error']:.2f}" for layer in layers), f"{', '.join(lengths[:-1])} and {lengths[-1]}"]


def of_the_room_named_most_often() -> list[str]:
    """Whoever names it is right so often; lots are drawn among equals."""
    shares = []
    for story in pf.data.stories(400, seed=1000):
        said = story.split()
        for place, kind in enumerate(pf.data.word_kinds(story), start=1):
            if kind.startswith("where"):
                counts = {room: said[:place].count(room) for room in asked.ROOMS}
                most = [room for room, count in counts.items() if count == max(counts.values())]
                shares.append((said[place] in most) / len(most))
    return [f"{percent(np.mean(shares))} %"]


def of_the_page() -> list[str]:
    changes, numbers = record("page")["changes"], []
    for name in ("one head", "nothing", "no skips", "no network"):
        numbers += ends([each["above"] for each in changes[name + page_record.LONGER]])
    return numbers


def of_depth() -> list[str]:
    blocks, post_norm = record("blocks"), dict(zip(RUNS, record("post_norm")["runs"], strict=True))

    def of(run: Run, name: str = "validation") -> list[float]:
        return [model[name] for model in post_norm[run]["models"]]

    after = [run for run in blocks["runs"] if run["placement"] == "post" and not run["is_small"]]
    sharper = next(run for run in OTHERS if run.start == "times")
    fifth = [run for run in SMALLER if run.start == "times" and run.small == ("values",)][1]
    slow, _, from_bert, *_, pre = LONGER
    (falling,) = (loss for loss in of(slow) if loss < 2.9)
    numbers = ends([loss for run in after for loss in run["validation"]])
    numbers += [f"{loss:.2f} with n = {order}" for order, loss in blocks["counted"].items()]
    numbers += [*ends(of(Run(steps=SHORT), "apart")), *ends(of(AS_PYTORCH)), *ends(of(from_bert)), *ends(of(pre))]
    numbers += [f"{each:.2f}" for each in (of(sharper, "apart")[0], of(fifth, "apart")[0], of(fifth)[0], falling)]
    return numbers


def of_positions() -> list[str]:
    stored = record("positions")
    runs = [run for run in stored["longer"] if run["heads"] == 2]
    lines = []
    for how, name in {
        "as it is": "as it is",
        "squeezed": "positions divided by 4",
        "slower hands": "a larger base",
    }.items():
        shares = [[each["shares"][3] for each in run["found"] if each["how"] == how] for run in runs]
        lines.append(f"| {name} | {' | '.join(f'{share:.2f}' for share in np.mean(shares, axis=0))} |")
    return lines


def of_decoder() -> list[str]:
    docs, plays = record("docstrings_losses"), record("shakespeare_losses")
    sizes, count = docs["sizes"], train_docstrings.best_count(docs, 1)
    least = min(loss for losses in plays["counted"].values() for loss in losses.values())
    numbers = [count - sizes[name]["loss"] for name in ("middle", "large", "largest")]
    numbers += [sizes["small"]["loss"] - count, least - plays["sizes"]["large"]["curve"][-1][1]]
    return [f"{each:.2f}" for each in numbers]


def of_generation() -> list[str]:
    recorded, sense = record("writing"), record("sense")
    plays, letters = recorded["plays"], recorded["letters"]
    own = [f"{np.mean(plays[name]['surprise']):.2f}" for name in ("greedy", "beam of 8", "people")]
    unknown = [1 - np.mean(plays[name]["known words"]) for name in ("people", "temperature 1", "temperature 1.3")]
    again = [np.mean(ways[name]["repeated"]) for ways in (plays, letters) for name in ("greedy", "beam of 8")]
    shares = [*again, recorded["repeated"]["greedy"][-1], *unknown]
    shares += [np.mean([each[half] for each in sense["ways"]["temperature 1"]]) for half in ("early", "late")]
    first, *others = sense["halves"]
    shares += [np.mean(each["after"]) for each in (first, *others)] + [np.mean(each["late"]) for each in others]
    return [*own, *(percent(share, 1) for share in shares)]


def of_encoder() -> list[str]:
    things, names, labels = record("holes")["things"], record("holes")["names"], record("story_labels")
    accuracies, doubts, longer = labels["accuracy"], labels["without labels"], labels["longer"]
    numbers = [np.mean(accuracies[name]["2000"]["accuracy"]) for name in ("pre-trained", "from scratch")]
    counted = [np.mean(accuracies[name]["2000"]["accuracy"]) for name in ("groups of words", "pairs of sentences")]
    numbers += [max(counted), longer["pre-trained"], longer["from scratch"], doubts["encoder"]]
    said = [f"{things['weight']:.2f}", f"{len(names['encoder'])} names", f"{doubts['decoder']:.1f} %"]
    return [*said, *(f"{number:.0f}" for number in numbers)]


def of_seq2seq() -> list[str]:
    recorded = record("translator")
    both, alone, luck = recorded["both"], recorded["alone"], recorded["bootstrap"]
    beam, greedy, last = (
        one[search]["cased"]
        for one, search in ((both["test"], "beam"), (both["test"], "greedy"), (both["test, last pass alone"], "beam"))
    )
    counted = recorded["counted"]["phrases"]["test"]
    behind = both["test, as long as alone"]["beam"]["cased"] - alone["test"]["beam"]["cased"]
    late = max(one["BLEU"] for one in alone["averaged"].values())
    numbers = [both["passes"][number]["BLEU"] for number in ("12", "20", "36")]
    numbers += [beam, beam - last, beam - greedy, both["test"]["beam"]["lower case"], *recorded["searches"].values()]
    numbers += [luck["both"]["half"], counted, beam - counted, behind, late]
    numbers = [f"{number:.1f}" for number in numbers]
    numbers += [f"p = {luck[name]['p']}" for name in ("last pass", "counted", "alone")]
    return [*numbers, f"{both['parameters']:,}", f"{alone['parameters']:,}", f"{both['minutes']:.0f} minutes"]


def of_vision() -> list[str]:
    digits, filling, towers = record("digits"), record("filling"), record("towers")
    crossing, labels = record("crossing_opponents"), pf.data.digits().test.labels
    numbers = []
    for name in (
        "vision transformer",
        "convolutional network",
        "few, convolutional network",
        "few, vision transformer",
    ):
        right = [np.mean(np.array([*answers], int) == labels) for answers in digits[name]]
        numbers.append(percent(np.mean(right), 1))
    joint = digits["image and word"]
    numbers.append(percent(np.mean(np.array([*joint["both"]]) == np.array([*joint["right"]])), 1))
    held_out = [np.mean([run["held_out"] for run in runs]) for runs in crossing["table"].values()]
    numbers += [percent(max(held_out), 2), percent(max(run["held_out"] for run in crossing["turned"].values()), 2)]
    errors = [*filling["errors"], *(filling["opponents"][name] for name in ("regression", "neighbours"))]
    numbers += [f"{each:.3f}" for each in (*errors, filling["five times the steps"], filling["sinusoids"])]
    new = np.mean([run["new"] for run in towers["runs"]], axis=0)
    numbers += [percent(each, 1) for each in (*new, *towers["five times the steps"]["new"], towers["told"])]
    return numbers + [percent(run["new"][2]) for run in towers["other numbers"]]


def of_efficiency() -> list[str]:
    seconds, drafts = record("seconds"), record("drafts")
    heads, size, texts, bits = seconds["heads"], seconds["megabytes"], seconds["batches"], seconds["bits"]
    alone = [sum(size[what][num] for what in ("cache", "weights")) for num in ("8", "1")]
    greedy = seconds["speculation"]["0"]
    round_of_two = greedy["ms"]["2"] * greedy["per call"]["2"] / greedy["ms"]["alone"]
    ratios = [alone[0] / alone[1], *(heads[n]["8"] / heads[n]["1"] for n in ("4096", "256"))]
    numbers = [f"{each:.1f} times" for each in (*ratios, 4 * texts["4"] / texts["1"])]
    letters = [train_drafts.letters_per_call(train_drafts.runs_of(drafts, 2000), num) for num in (4, 8)]
    ways = [*(train_drafts.runs_of(drafts, num) for num in train_drafts.STEPS), [drafts["itself"]]]
    surprise = [np.mean([run["surprise"] for run in runs]) for runs in ways]
    numbers += [f"{each:.2f}" for each in (texts["16"] / texts["1"], greedy["per call"]["2"], *letters)]
    numbers += [f"{drafts['alone']:.2f}", *ends(surprise), f"{round_of_two:.1f}", f"{size['cache']['8']} MB"]
    return [*numbers, f"{bits['bytes']['8']} bytes", f"{bits['nats']['4'] - bits['nats']['32']:.3f}"]


def of_relations() -> list[str]:
    recorded = record("recurrent")

    def reached(name: str, kind: str, number: str = "judge") -> list[float]:
        return recurrent_card.runs_of(recorded["runs"][name], kind, number)

    short = {kind: np.mean(reached("text", kind)) for kind in ("classic", "modern", "gru")}
    in_time = reached("equal time", "modern")[0] - reached("equal time", "gru")[0]
    numbers = [short["classic"] - short["modern"], short["modern"] - short["gru"], in_time]
    long = [reached("long", kind)[0] for kind in ("classic", "modern")]
    (lower,) = recorded["runs"]["long, lower rate"]
    *near, plain = sorted(reached("long", kind, "choose")[0] for kind in recurrent_card.KINDS)
    on_plays = {run["kind"]: run["judge"] for run in recorded["runs"]["shakespeare"]}
    numbers += [*long, lower["judge"], near[0], near[-1], plain, on_plays["modern"] - on_plays["gru"]]
    costs = recorded["costs"]
    numbers += [costs[kind]["token"][1] for kind in ("modern", "gated", "rnn")]
    steps = [costs[kind]["step"][0] for kind in ("rnn", "modern", "gated")]
    steps += [costs[kind]["step"][1] for kind in ("gated", "rnn", "gru", "modern")]
    slow = [percent(share) for share in recorded["slow start"]]
    return [*(f"{number:.2f}" for number in numbers), *(f"{step:.0f}" for step in steps), *slow]


def of_dynamics() -> list[str]:
    recorded = record("drifts")
    short, long, several = ("dynamics_short", "dynamics", "dynamics_lengths")

    def of(name: str, kind: str, column: str) -> list[float]:
        return [one[column] for one in recorded["one shape"][name][kind]]

    numbers = [f"{np.mean(of(long, 'ordinary', 'window')):.5f}", f"{np.median(of(long, 'residual', 'length')):.3f}"]
    away = [np.mean(of(several, kind, "distance")) for kind in recorded["one shape"][several] if kind != "standard"]
    away += [np.mean(of(name, "turning", "distance")) for name in (long, short)]
    away += [recorded["opponents"][long]["nothing moves"]["distance"], np.median(of(long, "network", "length"))]
    numbers += [f"{each:.2f}" for each in away]
    lost = [sum(of(name, kind, "lost")) for name, kind in ((long, "ordinary"), (short, "volume_preserving"))]
    numbers += [f"{lost[0]} of their 610", f"{lost[1]} of 610", f"{sum(of(short, 'residual', 'lost'))} of 610"]
    for kind in ("ordinary", "residual"):
        numbers.append(f"{sum(of('dynamics_lengths_short', kind, 'lost'))} of 480")
    shapes = {how: recorded["several shapes"][f"dynamics_{how}"] for how in ("hidden", "told")}
    mean = {(how, kind): np.mean(each) for how, kinds in shapes.items() for kind, each in kinds.items()}
    three = [mean["hidden", "volume_preserving"], mean["hidden", "placed"]]
    four = [mean["told", "network"], mean["hidden", "network"], mean["hidden", "ordinary"]]
    return [*numbers, *(f"{each:.3f}" for each in three), *(f"{each:.4f}" for each in four)]


def of_modern() -> list[str]:
    recorded = record("delta")
    plain, hybrid = recorded["stories"]["all attention"], recorded["stories"]["hybrid"]
    step = f"{hybrid['milliseconds']['step'][0]:.0f} milliseconds"
    last = [run["right"]["32 names, 64 pairs"] for run in recorded["recall"]["linear"]["runs"]]
    more = percent(hybrid["parameters"] / plain["parameters"] - 1)
    return [step, f"{more} % more", f"{percent(min(last))} to {percent(max(last))} %", "a quarter of the bytes"]


def of_twelve_tasks() -> list[str]:
    luck, runs = record("translator")["bootstrap"], record("recurrent")["runs"]
    of = {name: next(run["judge"] for run in runs[name] if run["kind"] == "modern") for name in ("long", "equal time")}
    halves = [np.mean([run["choose"] for run in runs["text"] if run["kind"] == kind]) for kind in ("gru", "modern")]
    level = [run["choose"] for run in runs["long"] if run["kind"] in ("gru", "modern")]
    (copied,) = (run["share"] for run in runs["copy 80 long"] if run["kind"] == "gru")
    other = record("crossing_opponents")["turned"]["attention by the mean of the rows, with coordinates, rate 0.004"]
    numbers = [f"{each:.2f}" for each in (*of.values(), *halves, *level)]
    said = [f"± {luck['both']['half']:.1f}", f"p is {luck['counted']['p']}"]
    return [*numbers, *said, f"{percent(copied, 1)} %", f"{percent(other['held_out'], 1)} %"]


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("primer", of_primer),
        ("multi_head", of_multi_head),
        ("multi_head", of_the_room_named_most_often),
        (PAGE, of_the_page),
        ("depth", of_depth),
        ("positions", of_positions),
        ("decoder", of_decoder),
        ("generation", of_generation),
        ("encoder", of_encoder),
        ("seq2seq", of_seq2seq),
        ("vision", of_vision),
        ("efficiency", of_efficiency),
        ("relations", of_relations),
        ("dynamics", of_dynamics),
        ("modern", of_modern),
        ("twelve_tasks", of_twelve_tasks),
    ],
)
def test_numbers_of_a_chapter_are_those_of_the_records(name, numbers):
    text = " ".join(text_of(name).split())
    lacking = [each for each in numbers() if not re.search(rf"(?<![\d.]){re.escape(each)}(?!\.?\d)", text)]
    assert not lacking, f"the chapter lacks {lacking}"


# --- Tables -----------------------------------------------------------------------------------------------------


def test_tables_of_chapters_are_those_of_the_records():
    recurrent, post_norm = record("recurrent"), record("post_norm")["runs"]
    tables = [("relations", table(recurrent)) for table in (recurrent_card.text_table, recurrent_card.copy_table)]
    tables.append((PAGE, page_record.table(record("page"), page_record.SHOWN)))
    tables.append(("generation", sense_record.table(record("sense")["ways"])))
    for name, runs in record("crossing_opponents")["table"].items():
        tables.append(("vision", train_crossing_opponents.row(f"convolutions, {name}", runs)))
    lines = dict(zip(RUNS, map(train_post_norm.line_of, post_norm), strict=True))
    tables += [("depth", lines[run]) for run in (Run(steps=SHORT), *(bert(small=small, steps=SHORT) for small in SOME))]
    for name, table in tables:
        assert table in text_of(name), f"the table of {name} should be\n{table}"
