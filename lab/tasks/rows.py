"""All tasks on which a transformer of this book is held against a simple opponent, from their records."""

import numpy as np

import plainformer as pf
from lab import growing
from lab.digits import run as digits
from lab.docstrings import run as docstrings
from lab.encoder import run as names
from lab.fine_tuning import run as fine_tuning
from lab.numbers import run as numbers
from lab.recurrent import runs as recurrent
from lab.recurrent_long import run as recurrent_long
from lab.seq2seq import run as dates
from lab.shakespeare import run as plays
from lab.story_labels import run as story_labels
from lab.tasks.task import (
    BLEU,
    CLOSE_NATS,
    FINE_NATS,
    NATS,
    PERCENT,
    SHARE,
    SQUARES,
    TINY_SQUARES,
    Measure,
    Task,
    on_the_way,
    record,
)
from lab.things_lines import TRAINING as THINGS
from lab.towers.run import RATE
from lab.translator import run as captions
from lab.vision_crossing import run as crossing

TOLD = 100.0  # what a rule that was told has, in per cent


def rates_of(tried: dict) -> tuple[float, ...]:
    """The rates that are the names of what was tried."""
    return tuple(map(float, tried))


def of_kind(runs: list[dict], kind: str, what: str = "judge") -> list[float]:
    """What the seeds of one kind of network reached."""
    return [run[what] for run in runs if run["kind"] == kind]


def least(counted: dict) -> float:
    """The least loss of all that count."""
    return min(loss for losses in counted.values() for loss in losses.values())


def stories() -> list[Task]:
    """What is asked in the little world."""
    rows, gru, how = record("staircase")["rows"], record("story_gru"), growing.ROWS["decoder"]
    best, more = min(gru["rates"].values(), key=lambda seeds: seeds[0]["above"]), gru["told and doubted"]
    knobs = [each for each in record("staircase")["knobs"] if each["row"] == "stack"]
    rates = how.learning_rate, *(knob["changed"]["learning_rate"] for knob in knobs)
    trained = how.num_steps * growing.BATCH_SIZE / growing.NUM_STORIES, how.learning_rate, rates
    place, quarter = "decoder-machine", [np.mean([each["above"] for each in rows["positions"]])]

    def above(seeds: list[dict]) -> list[float]:
        return [each["above"] for each in seeds]

    def right(seeds: list[dict]) -> list[float]:
        return [each["kinds"]["where 1"][1] for each in seeds]

    def of_more(what: str) -> tuple[list[float], list[float]]:
        ours, theirs = ([each[what] for each in more[name]] for name in ("decoder", "GRU"))
        return ours, theirs

    return [
        Task("the next word of a story: nats above the lowest loss", place, FINE_NATS, "GRU",
             above(rows["decoder"]), above(best), *trained, (float(quarter[0]),)),
        Task("where somebody is, in a story: right, %", place, SHARE, "GRU",
             right(rows["decoder"]), right(best), *trained, (float(np.mean(right(rows["positions"]))),)),
        Task("tell a story: sentences that are possible, %", place, SHARE, "GRU", *of_more("possible"), *trained),
        Task("is this story possible? No labels: right, %", "encoder-fine-tuning", PERCENT, "GRU",
             *of_more("by doubt"), *trained),
        Task("one hidden word of a story: nats", "encoder-pretraining", CLOSE_NATS, "GRU", *of_more("hidden word"),
             *trained),
    ]  # fmt: skip


def labelled_stories() -> list[Task]:
    """What an encoder of stories is asked."""
    found = record("story_labels")["accuracy"]
    tuned, pairs = (found[name]["2000"] for name in ("pre-trained", "pairs of sentences"))
    passes = story_labels.NUM_STEPS[2000] * story_labels.BATCH_SIZE / (2 * 2000)
    return [
        Task("is this story possible? 2,000 labels of either kind: right, %", "encoder-fine-tuning", PERCENT,
             "counted sentences", tuned["accuracy"], pairs["accuracy"], passes, tuned["rate"], story_labels.RATES),
    ]  # fmt: skip


def texts() -> list[Task]:
    """The next letter, or piece, of real texts."""
    of_plays, largest = record("shakespeare")["sizes"]["large"], record("docstrings")["sizes"]["largest"]
    short, long, place = record("recurrent"), record("recurrent_long"), "relations-experiment"
    spread = float(np.ptp([run["judge"] for run in long["docstrings"]["modern"]["runs"]]))
    modern, gru = (long["docstrings"][kind] for kind in ("modern", "gru"))
    of_plays_rate, of_docstrings_rate = plays.SIZES["large"].learning_rate, docstrings.SIZES["largest"].learning_rate
    passes = recurrent.STEPS * recurrent.TEXT.batch_size * recurrent.TEXT.seq_len / short["training"]
    return [
        Task("the next piece of a play: nats per character", "real-text-sizes", CLOSE_NATS, "6-gram of pieces",
             [of_plays["curve"][-1][1]], [least(record("shakespeare")["counted"])], None, of_plays_rate,
             (of_plays_rate,), on_the_way(of_plays["curve"]), spread),
        Task("the next piece of 10 MB of docstrings: nats per character", "real-text-sizes", CLOSE_NATS,
             "6-gram of pieces", [largest["loss"]], [least(record("docstrings")["counted"]["1"])], 4.3,
             of_docstrings_rate, (of_docstrings_rate,), on_the_way(largest["curve"]), spread),
        Task("the next letter of docstrings, 210,000 numbers: nats", place, CLOSE_NATS, "GRU",
             recurrent_long.ends(modern["runs"]), recurrent_long.ends(gru["runs"]),
             recurrent_long.passes(long), modern["rate"], rates_of(modern["tried"]),
             on_the_way(recurrent_long.curve(modern["runs"]))),
        Task("the next letter of Python's reference, a short text: nats", place, CLOSE_NATS, "GRU",
             of_kind(short["runs"]["text"], "modern"), of_kind(short["runs"]["text"], "gru"), passes,
             short["rates"]["text"]["modern"], tuple(rate for rate, _ in short["tried"]["modern"])),
    ]  # fmt: skip


def of_names() -> list[Task]:
    """Names of things, letter by letter."""
    decoder, encoder = record("things_decoder"), record("things_encoder")["rows"]
    accuracy, holes, slips = record("fine_tuning")["accuracy"], record("holes")["names"], record("encoder")["slips"]
    fourth = [nats[3] for name, nats in decoder["names"].items() if name.startswith("decoder")]
    hidden = [row["nats"] for name, row in encoder.items() if name.startswith("encoder") and "alone" not in name]
    of_things = None, THINGS.learning_rate, (THINGS.learning_rate,)
    passes = names.TRAINING.num_steps * names.BATCH_SIZE / record("encoder")["names"][0]
    alone = passes, names.TRAINING.learning_rate, (names.TRAINING.learning_rate,)
    tuned = fine_tuning.NUM_STEPS[100] * fine_tuning.BATCH_SIZE / (100 * 20), fine_tuning.RATES["pre-trained"][100]
    return [
        Task("the fourth name of a thing, after three in other languages: nats", "relations-copying", NATS,
             "6-gram with votes", fourth, [decoder["counted by votes"]], *of_things),
        Task("a hidden letter, with the name in other languages: nats", "encoder-other-names", CLOSE_NATS,
             "6-gram with votes", hidden, [encoder["the same with votes"]["nats"]], *of_things),
        Task("a hidden letter of a name: nats", "encoder-pretraining", NATS, "5-gram, on both sides",
             [float(np.mean(holes["encoder"]))], [float(np.mean(holes["5-gram"]))], *alone, spread=0.04),
        Task("the wrong letter in a name: found, %", "encoder-pretraining", SHARE, "5-gram, on both sides",
             [slips["found in some"]], [slips["counted in some"]], *alone, spread=0.02),
        Task("the language of a name, 100 labels each: right, %", "encoder-fine-tuning", PERCENT, "groups of letters",
             accuracy["pre-trained"]["100"], accuracy["n-grams"]["100"], *tuned, (1e-3, 3e-3, 1e-2)),
    ]  # fmt: skip


def translations() -> list[Task]:
    """From one text to another."""
    of_dates, of_numbers, of_captions = record("seq2seq")["models"], record("numbers"), record("translator")
    steps, rate = dates.TRAINING["num_steps"], dates.TRAINING["learning_rate"]
    read = steps * dates.BATCH_SIZE / record("seq2seq")["pairs"]["training"], rate, (rate,)
    longer, counted = of_numbers["longer"], of_numbers["all pairs"]
    trained = numbers.LONG.num_steps * numbers.BATCH_SIZE / of_numbers["pairs"]["training"], longer["rate"]
    trained_so = *trained, rates_of(longer["tried"])
    captions_rate, both = captions.LEARNING_RATE, of_captions["both"]

    def dated(part: str) -> list[float]:
        return [each[part] for each in of_dates.values()]

    def put(part: str) -> tuple[list[float], list[float]]:
        return [each[part] for each in longer["runs"]], [counted[part]["counted"]]

    return [
        Task("a date into ISO 8601, years held out: right, %", "seq2seq", SHARE, "a rule that is told",
             dated("held_out_years"), [TOLD / 100], *read),
        Task("a date into ISO 8601, languages held out: right, %", "seq2seq", SHARE, "a rule that is told",
             dated("held_out_language"), [0.994], *read),
        Task("a German number into English, new combinations: right, %", "seq2seq-numbers", SHARE, "counted pieces",
             *put("new_combination"), *trained_so),
        Task("a German number into English, six digits: right, %", "seq2seq-numbers", SHARE, "counted pieces",
             *put("longer"), *trained_so),
        Task("a caption from German into English: BLEU", "seq2seq-captions", BLEU, "counted phrases",
             [both["test"]["beam"]["cased"]], [of_captions["counted"]["phrases"]["test"]], captions.PASSES["both"],
             captions_rate, (captions_rate,), spread=of_captions["bootstrap"]["both"]["half"]),
    ]  # fmt: skip


def memory() -> list[Task]:
    """What has to be kept, and found again."""
    copying, recall = record("recurrent_long")["copying"], record("delta")["recall"]
    modern, others = copying["modern"], [copying[kind] for kind in ("rnn", "lstm", "gru")]
    best = min(others, key=lambda each: np.mean(recurrent_long.ends(each["runs"])))

    def right(kind: str) -> list[float]:
        return [run["right"]["32 names, 64 pairs"] for run in recall[kind]["runs"]]

    return [
        Task("copy symbols from 80 places back: nats", "relations-experiment", Measure(".1g"),
             "the best recurrent network", recurrent_long.ends(modern["runs"]), recurrent_long.ends(best["runs"]),
             None, modern["rate"], rates_of(modern["tried"]), on_the_way(recurrent_long.curve(modern["runs"]))),
        Task("the last value of one of 32 names: right, %", "modern-delta", SHARE, "delta rule", right("softmax"),
             right("plain delta"), None, recall["softmax"]["rate"], rates_of(recall["softmax"]["losses"])),
    ]  # fmt: skip


def shares(answers: list[str]) -> list[float]:
    """The share of test digits that each string of answers names rightly."""
    labels = np.asarray(pf.data.digits().test.labels)
    return [float(np.mean([int(each) for each in one] == labels)) for one in answers]


def pictures() -> list[Task]:
    """Digits, and what is asked about them."""
    found, few, filling = record("digits"), record("digits")["few, moved"], record("filling")["at their best"]
    bars, towers = record("vision_crossing"), record("towers")
    opponent = record("crossing_opponents")["table"]["attention by the mean of the rows, with coordinates"]
    ours, plain, all_rates = filling["masked autoencoder"], filling["perceptron"], digits.HOW.learning_rate
    least_few = few["vision transformer"]
    crossed = None, crossing.TRAINING.learning_rate, rates_of(bars["rates on the fold"])

    def asked(part: str) -> tuple[list[float], list[float]]:
        ours, theirs = ([run[part] for run in runs] for runs in (bars["transformer"], opponent))
        return ours, theirs

    return [
        Task("one digit of 1,442: named, %", "vision", SHARE, "convolutions", shares(found["vision transformer"]),
             shares(found["convolutional network"]), 44, all_rates,
             rates_of(found["vision transformer, rates on the fold"])),
        Task("one digit, 289 to learn from, moved: named, %", "vision", SHARE, "convolutions",
             shares(least_few["answers"]), shares(few["convolutional network"]["answers"]), least_few["passes"],
             least_few["rate"], rates_of(least_few["rates"]), on_the_way([*least_few["curve"].values()])),
        Task("hidden patches of a digit: squared error", "vision", SQUARES, "a plain network",
             ours["errors, twice the steps"], plain["errors, twice the steps"], 2 * ours["passes"], ours["rate"],
             rates_of(ours["fold"]["as they are"]["rates"]), on_the_way([*ours["fold, twice the steps"].values()])),
        Task("the digit where two bars cross, as in training: right, %", "vision-crossing", SHARE,
             "convolutions with attention", *asked("asked"), *crossed),
        Task("the digit where two bars cross, in places never asked for: right, %", "vision-crossing", SHARE,
             "convolutions with attention", *asked("held_out"), *crossed),
        Task("the English name of a number in a picture, never met together: right, %", "vision", SHARE,
             "a machine told where each digit is", [run["new"][0] for run in towers["runs"]], [towers["told"]], None,
             RATE, (RATE / 2, RATE, 2 * RATE)),
    ]  # fmt: skip


def bodies() -> list[Task]:
    """A body that turns."""
    noise, exact = record("noise"), record("drifts")["one shape"]["dynamics_lengths"]["ordinary"]
    kind, networks = record("dynamics")["kinds"]["ordinary"], noise["shapes"]["networks"]["transformer"]
    noisy = [one for one in networks["models"] if one["noise"] == 0.1]
    curve = np.mean([[error for _, error in one["curve"]] for one in noisy], axis=0)
    return [
        Task("three points of a turning body, exact: error", "dynamics", TINY_SQUARES, "a polynomial of degree 7",
             [one["window"] for one in exact], [noise["lengths"]["simple"]["0.0"]["last point"]["test"]], 267,
             kind["rate"], rates_of(kind["errors"])),
        Task("three points of a body of unknown shape, noisy: error", "dynamics-noise", SQUARES,
             "polynomials of a fitted curve", [one["test"] for one in noisy],
             [noise["shapes"]["simple"]["0.1"]["curve"]["test"]], float(noise["facts"]["shapes.passes"]),
             noisy[0]["rate"], tuple(networks["rates"]), on_the_way(curve)),
    ]  # fmt: skip


def tasks() -> list[Task]:
    """All of them."""
    return [
        *stories(),
        *labelled_stories(),
        *texts(),
        *of_names(),
        *translations(),
        *memory(),
        *pictures(),
        *bodies(),
    ]
