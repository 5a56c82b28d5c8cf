"""All tasks on which a transformer of this book is held against simple opponents, from their records."""

import numpy as np

import plainformer as pf
from lab import growing, language_models, things_lines
from lab.date_opponents import run as date_opponents
from lab.digits import run as digits
from lab.docstrings import run as docstrings
from lab.dynamics import run as dynamics
from lab.encoder import run as names
from lab.encoder_longer import run as encoder_longer
from lab.fine_tuning import run as fine_tuning
from lab.numbers import run as numbers
from lab.opponents.run import best_order
from lab.recurrent import runs as recurrent
from lab.recurrent.runs import COPY
from lab.recurrent_long import run as recurrent_long
from lab.seq2seq import run as dates
from lab.shakespeare import run as plays
from lab.story_gru import labelled, readers
from lab.story_gru.run import ASKED
from lab.story_labels import run as story_labels
from lab.tasks.task import Measure, Task, Training, deviation, half_way, rates_of, record
from lab.things_decoder.run import SHORTER
from lab.towers import run as towers
from lab.translator import run as captions
from lab.vision.run import BATCH_SIZE as DIGITS_A_STEP
from lab.vision_crossing import run as crossing

NATS, CLOSE_NATS, FINE_NATS = Measure(".2f"), Measure(".3f"), Measure(".4f")
SHARE, PERCENT, BLEU = Measure(".1f", 100, True), Measure(".1f", 1, True), Measure(".1f", 1, True)
ERROR, TINY_ERROR = Measure(".4f"), Measure(".1e")
NUM_DIGITS = 1442  # to learn from
KNOWS = {"the law": "a fit of the true law", "exact windows": "a mean of exact windows"}


def of_kind(runs: list[dict], kind: str, what: str = "judge") -> list[float]:
    """What the seeds of one kind of network reached."""
    return [run[what] for run in runs if run["kind"] == kind]


def least(counted: dict) -> float:
    """The least loss of all that count."""
    return min(loss for losses in counted.values() for loss in losses.values())


def of_stories(seeds: list[dict]) -> dict[str, list[float]]:
    """What the seeds of a network that reads stories reached, by what was asked."""
    where = {f"where {steps}": [each["kinds"][f"where {steps}"][1] for each in seeds] for steps in (1, 2)}
    return where | {what: [each[what] for each in seeds] for what in ("above", *ASKED)}


def stories() -> list[Task]:
    """What a decoder of stories is asked, beside a GRU that has learned for as long: more steps of less time."""
    found, how = record("story_gru"), readers.DECODER
    ours, theirs = (
        of_stories(found["longer"][readers.LONGER.index(plan)]["seeds"])
        for plan in (readers.LONG_DECODER, readers.LONG_GRU)
    )
    stored = zip(found["rates"]["decoder"][f"{how.learning_rate:g}"], found["told and doubted"]["decoder"], strict=True)
    shorter, times = of_stories([one | more for one, more in stored]), readers.LONG_DECODER.times
    passes = times * how.num_steps * growing.BATCH_SIZE / growing.NUM_STORIES
    trained = Training(passes, readers.LONG_DECODER.rate, readers.RATES["decoder"])

    def task(name: str, chapter: str, measure: Measure, what: str, told: tuple[str, float] | None = None) -> Task:
        training = trained._replace(shorter=(1 / times, float(np.mean(shorter[what]))))
        return Task(name, chapter, measure, "GRU", ours[what], theirs[what], training, told)

    place = "decoder-machine"
    return [
        task("the next word of a story: nats above the lowest loss", place, FINE_NATS, "above",
             ("the lowest loss", 0)),
        task("tell a story: possible sentences, %", place, SHARE, "possible"),
        task("one hidden word of a story: nats", place, CLOSE_NATS, "hidden word"),
        task("which half of some stories is impossible? Without labels: right, %", "encoder-fine-tuning", PERCENT,
             "by doubt"),
        task("where somebody or something is, as it was told: right, %", place, SHARE, "where 1"),
        task("where somebody or something is, over the one who has it: right, %", place, SHARE, "where 2"),
    ]  # fmt: skip


def labelled_stories() -> list[Task]:
    """Whether a story is possible, by a decoder and a GRU that have read others and then learn from labels."""
    found, number = record("story_gru")["labelled"], labelled.NUM_LABELS
    ours, theirs = found["decoder"], found["GRU"]
    passes = story_labels.NUM_STEPS[number] * story_labels.BATCH_SIZE / (2 * number)
    training = Training(passes, ours["rate"], rates_of(ours["tried"]), (0, float(np.mean(ours["allowed"]))))
    told = "counted sentences, told which belong together", float(np.mean(record("opponents")["stories"]))
    return [
        Task(f"is a story possible? {number:,} labels of either kind: right, %", "encoder-fine-tuning", PERCENT,
             "GRU", ours["tuned"], max(theirs["tuned"], theirs["allowed"], key=np.mean), training, told),
    ]  # fmt: skip


def pieces() -> list[Task]:
    """The next piece of real texts, by what was trained once."""
    of_plays, largest = record("shakespeare")["sizes"]["large"], record("docstrings")["sizes"]["largest"]
    sizes = plays.SIZES["large"], docstrings.SIZES["largest"]
    tokens = record("shakespeare")["tokens"][0], record("docstrings")["tokens"][0]
    by_plays, by_docstrings = (
        Training(
            language_models.passes(size, number), size.learning_rate, (size.learning_rate,), half_way(one["curve"])
        )
        for size, number, one in zip(sizes, tokens, (of_plays, largest), strict=True)
    )
    counted = least(record("shakespeare")["counted"]), least(record("docstrings")["counted"]["1"])
    spread = deviation(of_kind(record("recurrent")["runs"]["text"], "modern"))  # of small decoders
    place, opponent = "real-text-sizes", "6-gram"
    return [
        Task("the next piece of a play: nats per character", place, CLOSE_NATS, opponent, [of_plays["curve"][-1][1]],
             [counted[0]], by_plays, spread=spread),
        Task("the next piece of 10 MB of docstrings: nats per character", place, CLOSE_NATS, opponent,
             [largest["loss"]], [counted[1]], by_docstrings, spread=spread),
    ]  # fmt: skip


def letters() -> list[Task]:
    """The next letter of real texts, by small decoders."""
    short, long, place = record("recurrent"), record("recurrent_long"), "relations-experiment"
    modern, runs = long["docstrings"]["modern"], short["runs"]["text"]
    order, counted = best_order(record("opponents")), record("opponents")["letters"]
    of_long = Training(recurrent_long.passes(long), modern["rate"], rates_of(modern["tried"]))
    passes = recurrent.STEPS * recurrent.TEXT.batch_size * recurrent.TEXT.seq_len / short["training"]
    of_short = Training(passes, short["rates"]["text"]["modern"], tuple(rate for rate, _ in short["tried"]["modern"]))
    return [
        Task("the next letter of docstrings, by 210,000 numbers: nats", place, CLOSE_NATS, "8-gram of letters",
             recurrent_long.ends(modern["runs"]), [long["counted"]["judge"]], of_long),
        Task("the next letter of Python's reference, by 210,000 numbers: nats", place, CLOSE_NATS,
             f"{order}-gram of letters", of_kind(runs, "modern"), [counted[order]["judge"]], of_short),
    ]  # fmt: skip


def of_things() -> list[Task]:
    """Names of things, with those in other languages."""
    decoder, encoder, how = record("things_decoder"), record("things_encoder")["rows"], things_lines.TRAINING
    fourth = [nats[3] for name, nats in decoder["names"].items() if name.startswith("decoder")]
    hidden = [row["nats"] for name, row in encoder.items() if name.startswith("encoder") and "alone" not in name]
    num_things, longer = record("things_encoder")["things"][0], record("encoder_longer")
    reading, rereading = (
        Training(steps * things_lines.BATCH_SIZE / num_things, how.learning_rate, rates_of(longer["rates"][kind]))
        for kind, steps in (("decoder", SHORTER.num_steps), ("things", encoder_longer.LONGER.num_steps))
    )
    share = how.num_steps / encoder_longer.LONGER.num_steps
    votes = "6-gram with votes"
    return [
        Task("the fourth name of a thing, after three in other languages: nats", "relations-copying", NATS, votes,
             fourth, [decoder["counted by votes"]], reading),
        Task("a hidden letter, with the name in other languages: nats", "encoder-other-names", CLOSE_NATS, votes,
             encoder_longer.nats_of(longer), [encoder["the same with votes"]["nats"]],
             rereading._replace(shorter=(share, float(np.mean(hidden))))),
    ]  # fmt: skip


def of_names() -> list[Task]:
    """Names alone, letter by letter."""
    accuracy, holes, slips = record("fine_tuning")["accuracy"], record("holes")["names"], record("encoder")["slips"]
    passes = names.TRAINING.num_steps * names.BATCH_SIZE / record("encoder")["names"][0]
    alone = Training(passes, names.TRAINING.learning_rate, rates_of(record("encoder_longer")["rates"]["names"]))
    read = fine_tuning.NUM_STEPS[100] * fine_tuning.BATCH_SIZE / (100 * 20)
    tuning = Training(read, fine_tuning.RATES["pre-trained"][100], (0.001, 0.003, 0.01))
    ours, theirs = np.array(holes["encoder"]), np.array(holes["5-gram"])
    error = float((ours - theirs).std() / len(ours) ** 0.5)  # the standard error of the difference
    other = [row["slips"] for row in record("things_encoder")["rows"].values() if "slips" in row][:3]
    place, both_sides = "encoder-pretraining", "5-gram, on both sides"
    return [
        Task("a hidden letter of a name: nats", place, NATS, both_sides, [float(ours.mean())], [float(theirs.mean())],
             alone, spread=error),
        Task("the wrong letter in a name: found, %", place, SHARE, both_sides, [slips["found in some"]],
             [slips["counted in some"]], alone, spread=deviation(other)),
        Task("the language of a name, 100 labels each: right, %", "encoder-fine-tuning", PERCENT, "groups of letters",
             accuracy["pre-trained"]["100"], accuracy["n-grams"]["100"], tuning),
    ]  # fmt: skip


def translations() -> list[Task]:
    """From one text to another."""
    of_numbers, of_captions, place = record("numbers"), record("translator"), "seq2seq-numbers"
    longer, rate, both = of_numbers["longer"], captions.LEARNING_RATE, of_captions["both"]
    read = numbers.passes(numbers.LONG, of_numbers["pairs"]["training"])
    training, opponent = Training(read, longer["rate"], rates_of(longer["tried"])), "counted pieces"
    bleu = [both["test"]["beam"]["cased"]], [of_captions["counted"]["phrases"]["test"]]
    found = [
        Task("a caption from German into English: BLEU", "seq2seq-captions", BLEU, "counted phrases", *bleu,
             Training(captions.PASSES["both"], rate, (rate,)), spread=of_captions["bootstrap"]["both"]["half"]),
    ]  # fmt: skip
    for part, words in (("new_combination", "new combinations"), ("longer", "six digits")):
        name = f"a German number into English, {words}: right, %"
        ours, theirs = [each[part] for each in longer["runs"]], [of_numbers["all pairs"][part]["counted"]]
        found.append(Task(name, place, SHARE, opponent, ours, theirs, training, ("the grammar of numbers", 1)))
    return found


def of_dates() -> list[Task]:
    """Dates, beside what learns from the same pairs, and beside a rule that is told what a date is."""
    found, others = record("seq2seq"), record("date_opponents")
    longer, told = found["longer"], others["rule"]
    passes = dates.passes(longer["steps"], found["pairs"]["training"])
    tasks = []
    for part, words in (("held_out_years", "years"), ("held_out_language", "languages")):
        opponent, theirs = max(date_opponents.of_part(others, part).items(), key=lambda each: np.mean(each[1]))
        shorter = (
            dates.TRAINING["num_steps"] / longer["steps"],
            float(np.mean([m[part] for m in found["models"].values()])),
        )
        training = Training(passes, longer["rate"], rates_of(longer["tried"]), shorter)
        name, ours = f"a date into ISO 8601, {words} held out: right, %", [each[part] for each in longer["runs"]]
        tasks.append(Task(name, "seq2seq", SHARE, opponent, ours, theirs, training, ("a rule", told[part])))
    return tasks


def memory() -> list[Task]:
    """What has to be kept, and found again."""
    short, recall, place = record("recurrent"), record("delta")["recall"], "relations-experiment"
    tried = short["tried with copying"]["copy 80"]["modern"]
    copying = Training(None, short["rates"]["copy 80"]["modern"], tuple(rate for rate, _ in tried))
    recalling = Training(None, recall["softmax"]["rate"], rates_of(recall["softmax"]["losses"]))

    def right(kind: str) -> list[float]:
        return [run["right"]["32 names, 64 pairs"] for run in recall[kind]["runs"]]

    copied = of_kind(short["runs"][COPY[80].name], "modern", "share")
    return [
        Task("copy eight symbols from 80 places back: right, %", place, SHARE, "a count at the best distance", copied,
             [record("opponents")["copying"]["share"]], copying),
        Task("the last value of one of 32 names: right, %", "modern", SHARE, "delta rule", right("softmax"),
             right("plain delta"), recalling, ("a table of last values", 1)),
    ]  # fmt: skip


def shares(answers: list[str]) -> list[float]:
    """The share of test digits that each string of answers names rightly."""
    labels = np.asarray(pf.data.digits().test.labels)
    return [float(np.mean([int(each) for each in one] == labels)) for one in answers]


def pictures() -> list[Task]:
    """Digits, and what is asked about them."""
    found, filling = record("digits"), record("filling")["at their best"]["masked autoencoder"]
    few, few_by_convolution = (found["few, moved"][name] for name in ("vision transformer", "convolutional network"))
    passes, rates = digits.HOW.num_steps * DIGITS_A_STEP / NUM_DIGITS, found["vision transformer, rates on the fold"]
    of_filling = Training(2 * filling["passes"], filling["rate"], rates_of(filling["fold"]["as they are"]["rates"]))
    return [
        Task("one digit of 1,442: named, %", "vision", SHARE, "support-vector machine, digits moved",
             shares(found["vision transformer"]), [record("opponents")["digits"]["share"]],
             Training(passes, digits.HOW.learning_rate, rates_of(rates))),
        Task("one digit, 289 to learn from, moved: named, %", "vision", SHARE, "convolutions", shares(few["answers"]),
             shares(few_by_convolution["answers"]),
             Training(few["passes"], few["rate"], rates_of(few["rates"]))),
        Task("hidden patches of a digit: mean square error", "vision", ERROR, "linear regression, on similar digits",
             filling["errors, twice the steps"], [record("opponents")["patches"]["error"]], of_filling),
    ]  # fmt: skip


def composed() -> list[Task]:
    """Pictures that are put together from digits."""
    bars, place, how = record("vision_crossing"), "vision-crossing", crossing.TRAINING
    others = record("crossing_opponents")["table"]["attention by the mean of the rows, with coordinates"]
    rates, passes = rates_of(bars["rates on the fold"]), how.num_steps * crossing.BATCH_SIZE * 9 / NUM_DIGITS
    named, passes_of_towers = record("towers"), towers.STEPS * towers.BATCH_SIZE * 2 / NUM_DIGITS
    found = [
        Task("the English name of a number, never met together: right, %", "vision", SHARE,
             "regression on similar pictures", [run["new"][0] for run in named["runs"]],
             [run["new"][0] for run in named["by parts"]["runs"]],
             Training(passes_of_towers, towers.RATE, (towers.RATE / 2, towers.RATE, 2 * towers.RATE)),
             ("a machine that knows where each digit is", named["told"])),
    ]  # fmt: skip
    for part, words in (("asked", "as in training"), ("held_out", "in places never asked for")):
        ours, theirs = [run[part] for run in bars["transformer"]], [run[part] for run in others]
        told = "a cell that is told where the bars cross", bars["told"][part]
        name, training = (
            f"the digit where two bars cross, {words}: right, %",
            Training(passes, how.learning_rate, rates),
        )
        found.append(Task(name, place, SHARE, "convolutions with attention", ours, theirs, training, told))
    return found


def of_noise(models: list[dict], size: float) -> list[float]:
    """The errors in the test of the networks that learned with this noise."""
    return [one["test"] for one in models if one["noise"] == size]


def bodies() -> list[Task]:
    """A body that turns."""
    noise, exact = record("noise"), record("drifts")["one shape"]["dynamics_lengths"]["ordinary"]
    rate = record("dynamics")["kinds"]["ordinary"]["rate"] / 2  # as `lab/dynamics` halves it for a long training
    passes = dynamics.passes("dynamics_lengths", record("dynamics"))
    simple, networks = noise["shapes"]["simple"], noise["shapes"]["networks"]
    found = [
        Task("three points of a turning body, exact: root mean square error", "dynamics", TINY_ERROR,
             "a polynomial of degree 7",
             [one["window"] for one in exact], [noise["lengths"]["simple"]["0.0"]["last point"]["test"]],
             Training(passes, rate, (rate,))),
    ]  # fmt: skip
    shorter, longer = (
        noise["knobs"][knob] for knob in ("transformer, a fifth of the steps", "GRU, five times the steps")
    )
    for size in (0.03, 0.1):
        ours, by_gru = (of_noise(networks[kind]["models"], size) for kind in ("transformer", "GRU"))
        others = {"a fitted curve and polynomials": [simple[str(size)]["curve"]["test"]], "GRU": by_gru}
        others["GRU, five times the steps"] = of_noise(longer, size)
        opponent, theirs = min(others.items(), key=lambda each: np.mean(each[1]))
        how = networks["transformer"]
        rate, fifth = how["models"][0]["rate"], (0.2, of_noise(shorter, size)[0])
        training = Training(how["passes"], rate, tuple(how["rates"]), fifth)
        name = f"three points of a body of unknown shape, noise of {size}: root mean square error"
        knows = {of: simple[str(size)][f"told {what}"]["test"] for what, of in KNOWS.items()}
        told = min(knows.items(), key=lambda each: each[1])
        found.append(Task(name, "dynamics-noise", ERROR, opponent, ours, theirs, training, told))
    return found


def tasks() -> list[Task]:
    """All of them."""
    groups = (stories, labelled_stories, pieces, letters, of_things, of_names, translations, of_dates, memory, pictures)
    return [task for group in (*groups, composed, bodies) for task in group()]
