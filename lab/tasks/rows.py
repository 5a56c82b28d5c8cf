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
from lab.tasks.task import Measure, Task, Training, on_the_way, rates_of, record
from lab.things_lines import TRAINING as THINGS
from lab.towers.run import RATE as TOWERS_RATE
from lab.translator import run as captions
from lab.vision_crossing import run as crossing

NATS, CLOSE_NATS, FINE_NATS = Measure(".2f"), Measure(".3f"), Measure(".4f")
SHARE, PERCENT, BLEU = Measure(".1f", 100, True), Measure(".1f", 1, True), Measure(".1f", 1, True)
SQUARES, TINY_SQUARES = Measure(".4f"), Measure(".1e")


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
    knobs = [each["changed"] for each in record("staircase")["knobs"] if each["row"] == "stack"]
    trained = Training(
        how.num_steps * growing.BATCH_SIZE / growing.NUM_STORIES,
        how.learning_rate,
        (how.learning_rate, *(changed["learning_rate"] for changed in knobs)),
    )

    def above(seeds: list[dict]) -> list[float]:
        return [each["above"] for each in seeds]

    def where(seeds: list[dict]) -> list[float]:
        return [each["kinds"]["where 1"][1] for each in seeds]

    def after_a_quarter(of) -> Training:
        return trained._replace(on_the_way=(float(np.mean(of(rows["positions"]))),))

    def asked_more(what: str) -> tuple[list[float], list[float]]:
        return [each[what] for each in more["decoder"]], [each[what] for each in more["GRU"]]

    place, encoder = "decoder-machine", "encoder-fine-tuning"
    told, doubted, hidden = map(asked_more, ("possible", "by doubt", "hidden word"))
    found, labels = record("story_labels")["accuracy"], 2000
    tuned, pairs = (found[name][str(labels)] for name in ("pre-trained", "pairs of sentences"))
    passes = story_labels.NUM_STEPS[labels] * story_labels.BATCH_SIZE / (2 * labels)
    tuning = Training(passes, tuned["rate"], story_labels.RATES)
    return [
        Task("the next word of a story: nats above the lowest loss", place, FINE_NATS, "GRU",
             (above(rows["decoder"]), above(best)), after_a_quarter(above)),
        Task("where somebody is, in a story: right, %", place, SHARE, "GRU", (where(rows["decoder"]), where(best)),
             after_a_quarter(where)),
        Task("tell a story: possible sentences, %", place, SHARE, "GRU", told, trained),
        Task("one hidden word of a story: nats", place, CLOSE_NATS, "GRU", hidden, trained),
        Task("is a story possible? Without labels: right, %", encoder, PERCENT, "GRU", doubted, trained),
        Task(f"is a story possible? {labels:,} labels of either kind: right, %", encoder, PERCENT, "counted sentences",
             (tuned["accuracy"], pairs["accuracy"]), tuning),
    ]  # fmt: skip


def texts() -> list[Task]:
    """The next letter, or piece, of real texts."""
    of_plays, largest = record("shakespeare")["sizes"]["large"], record("docstrings")["sizes"]["largest"]
    short, long = record("recurrent"), record("recurrent_long")
    counted = least(record("shakespeare")["counted"]), least(record("docstrings")["counted"]["1"])
    modern, gru = (long["docstrings"][kind] for kind in ("modern", "gru"))
    spread = float(np.ptp(recurrent_long.ends(modern["runs"])))  # of small decoders, for what was trained once
    plays_rate, docstrings_rate = plays.SIZES["large"].learning_rate, docstrings.SIZES["largest"].learning_rate
    of_plays_training = Training(None, plays_rate, (plays_rate,), on_the_way(of_plays["curve"]))
    largest_training = Training(4.3, docstrings_rate, (docstrings_rate,), on_the_way(largest["curve"]))
    modern_curve = on_the_way(recurrent_long.curve(modern["runs"]))
    long_training = Training(recurrent_long.passes(long), modern["rate"], rates_of(modern["tried"]), modern_curve)
    short_passes = recurrent.STEPS * recurrent.TEXT.batch_size * recurrent.TEXT.seq_len / short["training"]
    short_rates = tuple(rate for rate, _ in short["tried"]["modern"])
    short_training = Training(short_passes, short["rates"]["text"]["modern"], short_rates)
    runs, place = short["runs"]["text"], "relations-experiment"
    return [
        Task("the next piece of a play: nats per character", "real-text-sizes", CLOSE_NATS, "6-gram of pieces",
             ([of_plays["curve"][-1][1]], [counted[0]]), of_plays_training, spread),
        Task("the next piece of 10 MB of docstrings: nats per character", "real-text-sizes", CLOSE_NATS,
             "6-gram of pieces", ([largest["loss"]], [counted[1]]), largest_training, spread),
        Task("the next letter of docstrings, 210,000 numbers: nats", place, CLOSE_NATS, "GRU",
             (recurrent_long.ends(modern["runs"]), recurrent_long.ends(gru["runs"])), long_training),
        Task("the next letter of Python's reference, a short text: nats", place, CLOSE_NATS, "GRU",
             (of_kind(runs, "modern"), of_kind(runs, "gru")), short_training),
    ]  # fmt: skip


def of_names() -> list[Task]:
    """Names of things, letter by letter."""
    decoder, encoder = record("things_decoder"), record("things_encoder")["rows"]
    accuracy, holes, slips = record("fine_tuning")["accuracy"], record("holes")["names"], record("encoder")["slips"]
    fourth = [nats[3] for name, nats in decoder["names"].items() if name.startswith("decoder")]
    hidden = [row["nats"] for name, row in encoder.items() if name.startswith("encoder") and "alone" not in name]
    lines = Training(None, THINGS.learning_rate, (THINGS.learning_rate,))
    passes = names.TRAINING.num_steps * names.BATCH_SIZE / record("encoder")["names"][0]
    alone = Training(passes, names.TRAINING.learning_rate, (names.TRAINING.learning_rate,))
    read = fine_tuning.NUM_STEPS[100] * fine_tuning.BATCH_SIZE / (100 * 20)
    tuning = Training(read, fine_tuning.RATES["pre-trained"][100], (0.001, 0.003, 0.01))
    place, both_sides = "encoder-pretraining", "5-gram, on both sides"
    return [
        Task("the fourth name of a thing, after three in other languages: nats", "relations-copying", NATS,
             "6-gram with votes", (fourth, [decoder["counted by votes"]]), lines),
        Task("a hidden letter, with the name in other languages: nats", "encoder-other-names", CLOSE_NATS,
             "6-gram with votes", (hidden, [encoder["the same with votes"]["nats"]]), lines),
        Task("a hidden letter of a name: nats", place, NATS, both_sides,
             ([float(np.mean(holes["encoder"]))], [float(np.mean(holes["5-gram"]))]), alone, 0.04),
        Task("the wrong letter in a name: found, %", place, SHARE, both_sides,
             ([slips["found in some"]], [slips["counted in some"]]), alone, 0.02),
        Task("the language of a name, 100 labels each: right, %", "encoder-fine-tuning", PERCENT, "groups of letters",
             (accuracy["pre-trained"]["100"], accuracy["n-grams"]["100"]), tuning),
    ]  # fmt: skip


def translations() -> list[Task]:
    """From one text to another."""
    of_dates, of_numbers, of_captions = record("seq2seq"), record("numbers"), record("translator")
    steps, rate, longer = dates.TRAINING["num_steps"], dates.TRAINING["learning_rate"], of_numbers["longer"]
    of_dates_training = Training(steps * dates.BATCH_SIZE / of_dates["pairs"]["training"], rate, (rate,))
    read = numbers.passes(numbers.LONG, of_numbers["pairs"]["training"])
    of_numbers_training = Training(read, longer["rate"], rates_of(longer["tried"]))
    captions_rate, both = captions.LEARNING_RATE, of_captions["both"]
    bleu = [both["test"]["beam"]["cased"]], [of_captions["counted"]["phrases"]["test"]]
    of_captions_training = Training(captions.PASSES["both"], captions_rate, (captions_rate,))

    def dated(part: str, told: float) -> tuple[list[float], list[float]]:
        return [each[part] for each in of_dates["models"].values()], [told]

    def put(part: str) -> tuple[list[float], list[float]]:
        return [each[part] for each in longer["runs"]], [of_numbers["all pairs"][part]["counted"]]

    rule, counted, place = "a rule that is told", "counted pieces", "seq2seq-numbers"
    return [
        Task("a date into ISO 8601, years held out: right, %", "seq2seq", SHARE, rule, dated("held_out_years", 1.0),
             of_dates_training),
        Task("a date into ISO 8601, languages held out: right, %", "seq2seq", SHARE, rule,
             dated("held_out_language", 0.994), of_dates_training),
        Task("a German number into English, new combinations: right, %", place, SHARE, counted, put("new_combination"),
             of_numbers_training),
        Task("a German number into English, six digits: right, %", place, SHARE, counted, put("longer"),
             of_numbers_training),
        Task("a caption from German into English: BLEU", "seq2seq-captions", BLEU, "counted phrases", bleu,
             of_captions_training, of_captions["bootstrap"]["both"]["half"]),
    ]  # fmt: skip


def memory() -> list[Task]:
    """What has to be kept, and found again."""
    copying, recall = record("recurrent_long")["copying"], record("delta")["recall"]
    modern, others = copying["modern"], [copying[kind] for kind in ("rnn", "lstm", "gru")]
    best = min(others, key=lambda each: np.mean(recurrent_long.ends(each["runs"])))
    modern_curve = on_the_way(recurrent_long.curve(modern["runs"]))
    copying_training = Training(None, modern["rate"], rates_of(modern["tried"]), modern_curve)
    recall_training = Training(None, recall["softmax"]["rate"], rates_of(recall["softmax"]["losses"]))

    def right(kind: str) -> list[float]:
        return [run["right"]["32 names, 64 pairs"] for run in recall[kind]["runs"]]

    return [
        Task("copy symbols from 80 places back: nats", "relations-experiment", Measure(".1g"), "recurrent network",
             (recurrent_long.ends(modern["runs"]), recurrent_long.ends(best["runs"])), copying_training),
        Task("the last value of one of 32 names: right, %", "modern-delta", SHARE, "delta rule",
             (right("softmax"), right("plain delta")), recall_training),
    ]  # fmt: skip


def shares(answers: list[str]) -> list[float]:
    """The share of test digits that each string of answers names rightly."""
    labels = np.asarray(pf.data.digits().test.labels)
    return [float(np.mean([int(each) for each in one] == labels)) for one in answers]


def pictures() -> list[Task]:
    """Digits, and what is asked about them."""
    found, filling, towers = record("digits"), record("filling")["at their best"], record("towers")
    few, few_by_convolution = (found["few, moved"][name] for name in ("vision transformer", "convolutional network"))
    passes, rates = digits.HOW.num_steps * 64 / 1442, rates_of(found["vision transformer, rates on the fold"])
    all_training = Training(passes, digits.HOW.learning_rate, rates)
    few_curve = on_the_way([*few["curve"].values()])
    few_training = Training(few["passes"], few["rate"], rates_of(few["rates"]), few_curve)
    ours, plain, which = filling["masked autoencoder"], filling["perceptron"], "errors, twice the steps"
    filling_curve = on_the_way([*ours["fold, twice the steps"].values()])
    filling_rates = rates_of(ours["fold"]["as they are"]["rates"])
    filling_training = Training(2 * ours["passes"], ours["rate"], filling_rates, filling_curve)
    towers_training = Training(None, TOWERS_RATE, (TOWERS_RATE / 2, TOWERS_RATE, 2 * TOWERS_RATE))
    all_shares = shares(found["vision transformer"]), shares(found["convolutional network"])
    return [
        Task("one digit of 1,442: named, %", "vision", SHARE, "convolutions", all_shares, all_training),
        Task("one digit, 289 to learn from, moved: named, %", "vision", SHARE, "convolutions",
             (shares(few["answers"]), shares(few_by_convolution["answers"])), few_training),
        Task("hidden patches of a digit: squared error", "vision", SQUARES, "a plain network",
             (ours[which], plain[which]), filling_training),
        Task("the English name of a number, never met together: right, %", "vision", SHARE,
             "a machine told where each digit is", ([run["new"][0] for run in towers["runs"]], [towers["told"]]),
             towers_training),
    ]  # fmt: skip


def crossings() -> list[Task]:
    """The digit where two bars cross."""
    bars, place, name = record("vision_crossing"), "vision-crossing", "the digit where two bars cross"
    others = record("crossing_opponents")["table"]["attention by the mean of the rows, with coordinates"]
    training = Training(None, crossing.TRAINING.learning_rate, rates_of(bars["rates on the fold"]))

    def asked(part: str) -> tuple[list[float], list[float]]:
        return [run[part] for run in bars["transformer"]], [run[part] for run in others]

    opponent = "convolutions with attention"
    return [
        Task(f"{name}, as in training: right, %", place, SHARE, opponent, asked("asked"), training),
        Task(f"{name}, in places never asked for: right, %", place, SHARE, opponent, asked("held_out"), training),
    ]  # fmt: skip


def bodies() -> list[Task]:
    """A body that turns."""
    noise, exact = record("noise"), record("drifts")["one shape"]["dynamics_lengths"]["ordinary"]
    kind, networks = record("dynamics")["kinds"]["ordinary"], noise["shapes"]["networks"]["transformer"]
    noisy = [one for one in networks["models"] if one["noise"] == 0.1]
    curve = np.mean([[error for _, error in one["curve"]] for one in noisy], axis=0)
    windows = [one["window"] for one in exact], [noise["lengths"]["simple"]["0.0"]["last point"]["test"]]
    errors = [one["test"] for one in noisy], [noise["shapes"]["simple"]["0.1"]["curve"]["test"]]
    passes = float(noise["facts"]["shapes.passes"])
    noisy_training = Training(passes, noisy[0]["rate"], tuple(networks["rates"]), on_the_way(curve))
    return [
        Task("three points of a turning body, exact: squared error", "dynamics", TINY_SQUARES,
             "a polynomial of degree 7", windows, Training(267, kind["rate"], rates_of(kind["errors"]))),
        Task("three points of a body of unknown shape, noisy: squared error", "dynamics-noise", SQUARES,
             "polynomials of a fitted curve", errors, noisy_training),
    ]  # fmt: skip


def tasks() -> list[Task]:
    """All of them."""
    groups = stories, texts, of_names, translations, memory, pictures, crossings, bodies
    return [task for group in groups for task in group()]
