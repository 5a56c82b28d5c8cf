"""Train a small decoder on the same stories packed in six ways, on stories that occur often, and on some that leaked.

No weights are kept: the losses stand in `record.json`, with what was found in the book's own texts.
"""

import dataclasses
import json
import re
import time
from collections.abc import Callable
from functools import cache
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.growing import KEPT as STAIRCASE, VOCABULARY
from lab.records import kept, percent
from lab.walk.run import after_training

KEPT = STAIRCASE.with_name("recipes_data")
SEEDS, RATES, STEPS, LONG = (0, 1, 2), (0.003, 0.01, 0.03), 300, 1500
LOWER = 0.001  # a rate that is tried where the lowest of these is best
WINDOW, WIDTH, NARROW, WIDE, NUM_HEADS = 64, 64, 32, 128, 4
END = len(VOCABULARY)  # the token behind each story
LENGTHS = 8, 11, 14, 20, 26, 35, 47, 64  # words of a story, equally many of each
NUM_OF_EACH, NUM_JUDGED = 1400, 50  # stories of each length to learn from, and to judge by

ROWS = 16  # of a batch
MORE_ROWS = 36  # rows with one story each that have as many words as 16 full ones
WAYS = "joined", "joined, masks", "whole", "whole, masks", "one a row", "one a row, more rows"
ENDS = "joined", "whole, masks"

SLOTS, SAME, KEPT_BACK = STEPS * ROWS, 24, 1000  # stories read in a training; those looked at; seed of those kept back
TIMES, SHARE, SHARES = (1, 10, 100), 0.5, (0.1, 0.9)
GROUP, LEAKED = 50, (0, 1, 4, 16)
RUNS = 13, 26, 52  # words, of which some are looked for


def config_of(width: int = WIDTH) -> pf.DecoderConfig:
    """The configuration of all machines: two blocks, with what a decoder has today."""
    stack = pf.StackConfig(
        d_model=width,
        num_layers=2,
        num_heads=NUM_HEADS,
        d_ff=width * 8 // 3,
        norm="rms",
        activation="swiglu",
        position_scheme="rotary",
        use_bias=False,
    )
    return pf.DecoderConfig(len(VOCABULARY) + 1, WINDOW, stack=stack)


def told(num_stories: int, num_words: int, seed: int) -> np.ndarray:
    """Stories as ids, a row for each; kept as a file."""
    file = KEPT / f"stories-{num_stories}-{num_words}-{seed}.npy"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        stories = pf.data.stories(num_stories, num_words, seed=seed)
        np.save(file, np.array([VOCABULARY.encode(story) for story in stories], np.int32))
    return np.load(file)


@cache
def documents(seed: int, of_each: int = NUM_OF_EACH) -> list[list[int]]:
    """Stories of all lengths, shuffled, each with the token for its end."""
    found = [row.tolist() for place, length in enumerate(LENGTHS) for row in told(of_each, length, 100 * seed + place)]
    return [[*found[place], END] for place in np.random.default_rng(seed).permutation(len(found))]


@cache
def packed(seed: int, way: str) -> Any:
    """All windows of a way of packing, as the loss reads them."""
    texts, kinds = documents(seed), cast(Any, pf.data)  # their arrays are NumPy's, of which a batch takes some
    if way == "joined":
        run = np.concatenate(texts)
        places = np.arange((len(run) - 1) // WINDOW)[:, None] * WINDOW + np.arange(WINDOW + 1)
        return kinds.Windows(run[places][:, :-1], run[places][:, 1:])
    if way.startswith("one a row"):
        ids, is_token = map(np.asarray, pf.data.pad_texts(texts, WINDOW + 1))
        return kinds.PaddedWindows(ids[:, :-1], ids[:, 1:], is_token[:, 1:])
    inputs, targets, numbers = map(np.asarray, pf.data.pack(texts, WINDOW, cut=way.startswith("joined")))
    if way.endswith("masks"):
        return kinds.PackedWindows(inputs, targets, numbers)
    return kinds.PaddedWindows(inputs, targets, numbers >= 0)


def rows_of(way: str) -> int:
    """How many rows a batch has."""
    return MORE_ROWS if way.endswith("more rows") else ROWS


def drawn(windows, num_rows: int, seed: int):
    """A function from the number of steps done to the next batch of windows, drawn at random."""

    def batch_at(step: int):
        rows = np.random.default_rng([seed, step]).integers(len(windows.inputs), size=num_rows)
        return type(windows)(*(jnp.asarray(each[rows]) for each in windows))

    return batch_at


@dataclasses.dataclass(frozen=True)
class Judged:
    """Stories that a model is judged by, as padded windows, and the least surprise of each word."""

    inputs: np.ndarray
    targets: np.ndarray
    is_word: np.ndarray
    least: np.ndarray


def judged(stories: list[list[int]]) -> Judged:
    """Stories, without an end, with the lowest loss of each word."""
    ids, is_token = map(np.asarray, pf.data.pad_texts(stories))
    least = np.zeros(ids.shape)
    for row, story in zip(least, stories, strict=True):
        row[1 : len(story)] = pf.data.word_surprises(VOCABULARY.decode(story))
    return Judged(ids[:, :-1], ids[:, 1:], is_token[:, 1:], least[:, 1:])


@cache
def judges() -> Judged:
    """Stories of all lengths, whole and alone, that nothing was learned from."""
    return judged([row[:-1] for row in documents(KEPT_BACK, NUM_JUDGED)])


@eqx.filter_jit
def log_probabilities(model, ids):
    """The logarithm of what a model gives to each word, the token for the end left out."""
    return jax.nn.log_softmax(model(ids)[..., :END])


def above(model, stories: Judged) -> np.ndarray:
    """Nats above the lowest loss of each word, zeros where there is none; more than a text a row never."""
    parts = np.split(np.arange(len(stories.inputs)), range(50, len(stories.inputs), 50))
    logs = np.concatenate([np.asarray(log_probabilities(model, stories.inputs[part])) for part in parts])
    found = -np.take_along_axis(logs, stories.targets[..., None], axis=2)[..., 0]
    return np.where(stories.is_word, found - stories.least, 0)


def mean_above(model, stories: Judged, rows: slice | np.ndarray = slice(None)) -> float:
    """Nats per word above the lowest loss, of some rows."""
    return round(float(above(model, stories)[rows].sum() / stories.is_word[rows].sum()), 4)


def read_packed(way: str, rate: float, seed: int = 0, steps: int = STEPS, width: int = WIDTH) -> dict[str, Any]:
    """What a machine reached that read stories packed in one way; kept under `build`."""

    def find() -> dict:
        batches = drawn(packed(seed, way), rows_of(way), seed)
        model, milliseconds = after_training(config_of(width), batches, rate, steps, seed)
        is_long = judges().is_word.sum(axis=1) > 25
        found = {
            "above": mean_above(model, judges()),
            "short": mean_above(model, judges(), ~is_long),
            "long": mean_above(model, judges(), is_long),
            "milliseconds": round(milliseconds, 2),
        }
        print("packed", way, rate, seed, steps, width, found, flush=True)
        return found

    return kept(KEPT / f"packed-{way}-{rate:g}-{seed}-{steps}-{width}.json", find)


def fresh(seed: int) -> np.ndarray:
    """Stories of one length, as many as a training reads, of which the first are those looked at."""
    return told(SLOTS, WINDOW + 1, 10 + seed)


@cache
def kept_back() -> Judged:
    """Stories of one length that nothing was learned from, unless they leak."""
    return judged(told(GROUP * len(LEAKED), WINDOW + 1, KEPT_BACK).tolist())


@cache
def looked_at(seed: int) -> Judged:
    """The stories that occur in every training, once or more."""
    return judged(fresh(seed)[:SAME].tolist())


def num_copied(times: int, share: float) -> int:
    """How many stories occur so many times, if they are a share of what is read."""
    return max(round(share * SLOTS) // times, 1)


def with_copies(seed: int, times: int, share: float) -> np.ndarray:
    """Stories to read, a share of which are few, each of them so many times."""
    stories, num_copies = fresh(seed), round(share * SLOTS)
    few = stories[: num_copied(times, share)]
    return np.concatenate([np.resize(few, (num_copies, WINDOW + 1)), stories[num_copies:]])


def with_leaks(seed: int) -> np.ndarray:
    """Stories to read, in the place of some those kept back: the second fifty once, the third four times, …"""
    stories = told(GROUP * len(LEAKED), WINDOW + 1, KEPT_BACK)
    leaks = np.repeat(stories, np.repeat(LEAKED, GROUP), axis=0)
    return np.concatenate([leaks, fresh(seed)[len(leaks) :]])


def in_turn(stories: np.ndarray, seed: int):
    """A function from the number of steps done to the next batch: all stories in a new order, then all again."""

    def batch_at(step: int) -> pf.data.Windows:
        again, place = divmod(step, len(stories) // ROWS)
        order = np.random.default_rng([seed, again]).permutation(len(stories))
        rows = stories[order[place * ROWS : (place + 1) * ROWS]]
        return pf.data.Windows(jnp.asarray(rows[:, :-1]), jnp.asarray(rows[:, 1:]))

    return batch_at


def read_copies(
    times: int, rate: float, seed: int = 0, steps: int = STEPS, width: int = WIDTH, share: float = SHARE
) -> dict[str, Any]:
    """What a machine reached that read some stories many times, on stories kept back and on those; kept."""

    def find() -> dict:
        batches = in_turn(with_copies(seed, times, share), seed)
        model, _ = after_training(config_of(width), batches, rate, steps, seed)
        rows = slice(min(SAME, num_copied(times, share)))
        found = {"above": mean_above(model, kept_back()), "copied": mean_above(model, looked_at(seed), rows)}
        print("copies", times, rate, seed, steps, width, share, found, flush=True)
        return found

    return kept(KEPT / f"copies-{times}-{rate:g}-{seed}-{steps}-{width}-{share}.json", find)


def read_leaks(rate: float, seed: int = 0, steps: int = STEPS, width: int = WIDTH, leaking: bool = True) -> list[float]:
    """What a machine reached on each fifty of the stories kept back, some of which it had read if they leak; kept."""

    def find() -> list:
        batches = in_turn(with_leaks(seed) if leaking else fresh(seed), seed)
        model, _ = after_training(config_of(width), batches, rate, steps, seed)
        groups = [slice(GROUP * place, GROUP * (place + 1)) for place in range(len(LEAKED))]
        found = [mean_above(model, kept_back(), rows) for rows in groups]
        print("leaks" if leaking else "no leaks", rate, seed, steps, width, found, flush=True)
        return found

    name = "leaks" if leaking else "clean"
    return kept(KEPT / f"{name}-{rate:g}-{seed}-{steps}-{width}.json", find)


def tried(find: Callable[[float], Any], loss: Callable[[Any], float]) -> dict[float, Any]:
    """What three rates reached, and, if the lowest of them is best, a lower one."""
    found = {rate: find(rate) for rate in RATES}
    if min(found, key=lambda rate: loss(found[rate])) == RATES[0]:
        found[LOWER] = find(LOWER)
    return dict(sorted(found.items()))


@cache
def rates_of(way: str) -> dict[float, float]:
    """What a way of packing reached with each rate."""
    return tried(lambda rate: read_packed(way, rate)["above"], float)


@cache
def copies_by_rate(times: int) -> dict[float, dict]:
    """What was reached with each rate where some stories occur so many times."""
    return tried(lambda rate: read_copies(times, rate), lambda found: found["above"])


@cache
def leaks_by_rate() -> dict[float, list[float]]:
    """What was reached with each rate where some stories leaked."""
    return tried(read_leaks, lambda found: found[0])


def best(found: dict[float, Any], loss: Callable[[Any], float] = float) -> float:
    """The rate with the lowest loss."""
    return min(found, key=lambda rate: loss(found[rate]))


def rate_of(way: str) -> float:
    """The best rate of a way of packing."""
    return best(rates_of(way))


def rate_with_copies(times: int) -> float:
    """The best rate where some stories occur so many times."""
    return best(copies_by_rate(times), lambda found: found["above"])


def milliseconds(rounds: int = 12) -> dict[str, float]:
    """What a step takes with each way of packing: the least of some, each way in turn."""
    training = pf.TrainingConfig(num_steps=101, learning_rate=RATES[0], warmup_steps=100)
    params, static = eqx.partition(pf.Decoder(config_of(), key=jax.random.key(0)), eqx.is_inexact_array)
    step = pf.training.make_train_step(pf.training.next_token_loss, static, training)
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    for done in range(rounds):
        for way in WAYS:
            batch, own = drawn(packed(0, way), rows_of(way), 0)(done), jax.tree.map(jnp.copy, params)
            state = pf.training.make_optimiser(training).init(own)
            begin = time.perf_counter()
            step(own, state, batch, done)[2]["loss"].block_until_ready()
            times[way].append(1000 * (time.perf_counter() - begin))
    return {way: round(min(taken[1:]), 1) for way, taken in times.items()}


def packing() -> dict:
    """What each way of packing costs and reaches."""
    runs = {way: [read_packed(way, rate_of(way), seed) for seed in SEEDS] for way in WAYS}
    ends = {way: rate_of(way) for way in ENDS}
    return {
        "read": {way: round(float(np.asarray(packed(0, way).counts).mean()), 4) for way in WAYS},
        "milliseconds": kept(KEPT / "milliseconds.json", milliseconds),
        "rates": {way: rates_of(way) for way in WAYS},
        **{part: {way: [run[part] for run in runs[way]] for way in WAYS} for part in ("above", "short", "long")},
        "longer": {way: read_packed(way, rate, steps=LONG)["above"] for way, rate in ends.items()},
        "widths": {
            way: {width: read_packed(way, rate, width=width)["above"] for width in (NARROW, WIDE)}
            for way, rate in ends.items()
        },
    }


def copies() -> dict:
    """What stories that occur often cost, and how well they are known."""
    ends = {times: rate_with_copies(times) for times in (TIMES[0], TIMES[-1])}

    def both(*args, **options) -> list[float]:
        found = read_copies(*args, **options)
        return [found["above"], found["copied"]]

    return {
        "rates": {
            times: {rate: list(found.values()) for rate, found in copies_by_rate(times).items()} for times in TIMES
        },
        "runs": {times: [both(times, rate_with_copies(times), seed) for seed in SEEDS] for times in TIMES},
        "longer": {times: both(times, rate, steps=LONG) for times, rate in ends.items()},
        "widths": {
            times: {width: both(times, rate, width=width) for width in (NARROW, WIDE)} for times, rate in ends.items()
        },
        "shares": {share: both(TIMES[-1], ends[TIMES[-1]], share=share) for share in SHARES},
    }


def leaks() -> dict:
    """What the loss says of stories that were kept back, and of those that were not quite."""
    rate = best(leaks_by_rate(), lambda found: found[0])
    return {
        "times": LEAKED,
        "rates": leaks_by_rate(),
        "runs": [read_leaks(rate, seed) for seed in SEEDS],
        "clean": [read_leaks(rate, seed, leaking=False) for seed in SEEDS],
        "longer": read_leaks(rate, steps=LONG),
        "widths": {width: read_leaks(rate, width=width) for width in (NARROW, WIDE)},
        "known": {n: known_runs(n) for n in RUNS},
    }


def known_runs(n: int) -> list[float]:
    """The share of known runs of so many words in each fifty of the stories kept back, with and without leaks."""

    def texts(rows: np.ndarray) -> list[list[str]]:
        return [VOCABULARY.decode(row.tolist()).split() for row in rows]

    shares = pf.data.shared_ngrams(texts(told(GROUP * len(LEAKED), WINDOW + 1, KEPT_BACK)), texts(with_leaks(0)), n)
    return [round(float(part.mean()), 4) for part in np.split(shares, len(LEAKED))]


def num_words(text: str) -> int:
    """How many words a text has for what looks for copies."""
    return len(re.findall(r"\w+", text))


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a text with a run of 13 words at least."""
    return [part for part in text.split("\n\n") if num_words(part) >= 13]


def in_splits(training: list[str], held_out: list[str]) -> dict:
    """How many paragraphs occur twice, exactly and nearly, and how many held-out ones have a run of training's."""
    both, shares = training + held_out, pf.data.shared_ngrams(held_out, training)
    pairs = pf.data.near_duplicates(both)
    border = len(training)
    return {
        "paragraphs": [len(training), len(held_out)],
        "exact": sum(len(group) - 1 for group in pf.data.exact_duplicates(both)),
        "near": len(pairs),
        "in pairs": len({place for pair in pairs for place in (pair.one, pair.other)}),
        "near across": len({pair.other for pair in pairs if pair.one < border <= pair.other}),
        "with a known run": int((shares > 0).sum()),
        "known throughout": int((shares == 1).sum()),
    }


def in_letters(training: list[str], held_out: list[str]) -> dict:
    """How many short texts that were held out are in training, and how many share 13 letters with one."""
    known = {text.casefold() for text in training}
    ours, theirs = ([list(text.casefold()) for text in texts] for texts in (held_out, training))
    long = np.array([len(text) >= 13 for text in ours])
    return {
        "texts": [len(training), len(held_out)],
        "equal": sum(text.casefold() in known for text in held_out),
        "of 13 letters": int(long.sum()),
        "with a known run": int((pf.data.shared_ngrams(ours, theirs)[long] > 0).sum()),
    }


def texts() -> dict:
    """What there is of copies in the book's own texts."""
    splits = {"docstrings": pf.data.docstring_splits(), "Python reference": pf.data.python_reference_splits()}
    found: dict[str, dict] = {name: in_splits(*map(paragraphs, both)) for name, both in splits.items()}
    names = pf.data.name_splits()
    found["names"] = in_letters(*([name.text for name in part] for part in (names.training, names.test)))
    numbers = pf.data.number_splits()
    found["numbers"] = in_letters(*([pair.source for pair in part] for part in (numbers.training, numbers.validation)))
    dates = pf.data.date_splits()
    found["dates"] = in_letters(*([pair.source for pair in part] for part in (dates.training, dates.held_out_years)))
    return found


def results() -> dict:
    """All that was measured."""
    stories = judges()
    return json.loads(
        json.dumps(
            {
                "steps": STEPS,
                "lowest": round(float(stories.least.sum() / stories.is_word.sum()), 4),
                "packing": packing(),
                "copies": copies(),
                "leaks": leaks(),
                "texts": kept(KEPT / "texts.json", texts),
            }
        )
    )


def spread(losses: list[float]) -> str:
    """The mean of the seeds, least and largest."""
    return f"{np.mean(losses):.3f} ({min(losses):.3f} to {max(losses):.3f})"


def packing_table(found: dict) -> str:
    """A line of the card for each way of packing."""
    lines = ["| way | places with a target | ms a step | nats above | short stories | long stories |"]
    lines.append("|---|---|---|---|---|---|")
    for way, losses in found["above"].items():
        costs = f"{100 * found['read'][way]:.1f} % | {found['milliseconds'][way]:.0f}"
        parts = " | ".join(spread(each) for each in (losses, found["short"][way], found["long"][way]))
        lines.append(f"| {way} | {costs} | {parts} |")
    return "\n".join(lines)


def copies_table(found: dict, leaked: dict) -> str:
    """A line of the card for each number of copies, and for each group of stories that leaked."""
    lines = ["| stories of the training | kept back | those that occur so often |", "|---|---|---|"]
    for times, runs in found["runs"].items():
        kept_back_, copied = zip(*runs, strict=True)
        lines.append(f"| half of them {times} times | {spread(list(kept_back_))} | {spread(list(copied))} |")
    with_, without = (zip(*leaked[runs], strict=True) for runs in ("runs", "clean"))
    for times, losses, others in zip(leaked["times"], with_, without, strict=True):
        both = f"{spread(list(losses))}; in a training without them {spread(list(others))}"
        lines.append(f"| fifty kept back, read {times} times | {both} | |")
    return "\n".join(lines)


def knobs(found: dict) -> str:
    """A line of the card for each knob that was turned."""
    lines = ["| what | knob | nats above |", "|---|---|---|"]

    def add(what: str, knob: str, losses: float | list[float]) -> None:
        numbers = losses if isinstance(losses, list) else [losses]
        lines.append(f"| {what} | {knob} | {', '.join(f'{loss:.3f}' for loss in numbers)} |")

    def add_all(part: dict, name: Callable[[str], str]) -> None:
        for way, losses in part["rates"].items():
            for rate, loss in losses.items():
                add(name(way), f"learning rate {rate}", loss)
        for way, loss in part["longer"].items():
            add(name(way), f"{LONG:,} steps", loss)
        for way, widths in part["widths"].items():
            for width, loss in widths.items():
                add(name(way), f"width {width}", loss)

    add_all(found["packing"], str)
    add_all(found["copies"], lambda times: f"half {times} times: kept back, copied")
    for share, loss in found["copies"]["shares"].items():
        add("100 times: kept back, copied", f"share {share}", loss)
    groups = f"read {', '.join(map(str, LEAKED))} times"
    for rate, loss in found["leaks"]["rates"].items():
        add(groups, f"learning rate {rate}", loss)
    add(groups, f"{LONG:,} steps", found["leaks"]["longer"])
    for width, loss in found["leaks"]["widths"].items():
        add(groups, f"width {width}", loss)
    return "\n".join(lines)


def texts_table(found: dict) -> str:
    """A line of the card for each of the book's own texts."""
    lines = ["| text | what | number |", "|---|---|---|"]
    for name, counts in found.items():
        for what, number in counts.items():
            shown = " and ".join(f"{each:,}" for each in (number if isinstance(number, list) else [number]))
            lines.append(f"| {name} | {what} | {shown} |")
    return "\n".join(lines)


def done(found: dict) -> str:
    """What was done, for the card."""
    return f"""# Documents in windows, copies, and a held-out text that leaked

The same small decoder, trained on stories packed in six ways; on stories of which half occur often; and on some that it
is judged by. No weights are kept: the numbers stand in `record.json`. Settings:
`lab/recipes_data/run.py`; `make models ONLY=recipes_data` trains all again.

- **Data.** Stories of the little world. For packing they have {", ".join(map(str, LENGTHS))} words, {NUM_OF_EACH:,}
  of each length and seed, each with a token for its end, in windows of {WINDOW}; {NUM_JUDGED} of each length are kept
  back, and read alone from the beginning, the token for the end left out. Their lowest possible loss is
  {found["lowest"]} nats per word. For copies and leaks all stories have {WINDOW} words to foretell, {SLOTS:,} are
  read, and {GROUP * len(LEAKED)} are kept back.
- **Model.** Width {WIDTH}, {NUM_HEADS} heads, 2 blocks, a gated network of width {WIDTH * 8 // 3}, RMS norms, rotary
  positions, no biases, tied.
- **Training.** {found["steps"]} steps of {ROWS} windows ({MORE_ROWS} for "more rows", so that as many words are read as
  in full windows), AdamW, a warm-up of 100 steps, then half a cosine down to a tenth of the rate, weight decay 0.1. Of
  the rates {", ".join(f"{rate:g}" for rate in RATES)} each row has its own best with seed 0; where the lowest was best,
  {LOWER:g} was tried, too.
- **Ways.** *joined*: one run of stories and tokens for their end, cut into windows. *joined, masks*: cut where a window
  is full, each story read alone. *whole*: best fit, none cut. *one a row*: padded. Short stories have 25 words or
  fewer."""


def facts(found: dict) -> dict[str, str]:
    """What the chapter says: nats above the lowest loss of packing, copies and leaks; counts of texts."""
    return (
        of_packing(found["packing"]) | of_copies(found["copies"]) | of_leaks(found["leaks"]) | of_texts(found["texts"])
    )


def ends_of(found: dict, nats: Callable[[Any], float] = float) -> dict[str, str]:
    """What was reached with more steps and at other widths, by way or number of copies."""
    texts = {f"{name}.longer": f"{nats(each):.3f}" for name, each in found["longer"].items()}
    for name, widths in found["widths"].items():
        texts |= {f"{name}.width.{width}": f"{nats(each):.3f}" for width, each in widths.items()}
    return texts


def of_packing(found: dict) -> dict[str, str]:
    """Of each way of packing: nats, milliseconds of a step, and per cent of places that are read."""
    texts = {f"packing.{name}": text for name, text in ends_of(found).items()}
    for way, losses in found["above"].items():
        place = f"packing.{way}"
        texts[place] = f"{np.mean(losses):.3f}"
        texts[f"{place}.milliseconds"] = f"{found['milliseconds'][way]:.0f}"
        texts[f"{place}.read"] = percent(found["read"][way])
    return texts


def of_copies(found: dict) -> dict[str, str]:
    """Nats of stories kept back, by how often half of the others come; how far below the lowest loss copies are."""
    texts = {f"copies.{name}": text for name, text in ends_of(found, lambda both: both[0]).items()}
    for times, runs in found["runs"].items():
        texts |= {f"copies.{times}": f"{np.mean(runs, axis=0)[0]:.3f}", f"copies.{times}.seed_0": f"{runs[0][0]:.3f}"}
    most = str(TIMES[-1])
    texts |= {f"copies.{most}.share.{share}": f"{both[0]:.3f}" for share, both in found["shares"].items()}
    return texts | {f"copies.{most}.below": f"{-np.mean(found['runs'][most], axis=0)[1]:.2f}"}


def of_leaks(found: dict) -> dict[str, str]:
    """By how many nats reading makes stories easier, what is left at the ends, and per cent of known runs of words."""
    texts = {f"leaks.known.{n}": percent(shares[0]) for n, shares in found["known"].items()}
    easier = np.mean(found["clean"], axis=0) - np.mean(found["runs"], axis=0)
    for place, times in enumerate(found["times"]):
        texts[f"leaks.{times}.easier"] = f"{easier[place]:.3f}"
        texts[f"leaks.{times}.longer"] = f"{found['longer'][place]:.3f}".replace("-", "−")
        texts |= {f"leaks.{times}.width.{width}": f"{each[place]:.3f}" for width, each in found["widths"].items()}
    return texts


def of_texts(found: dict) -> dict[str, str]:
    """What was counted in the book's own texts."""
    texts = {}
    for name, counts in found.items():
        for what, number in counts.items():
            last = number[-1] if isinstance(number, list) else number  # of two numbers, that of what is held out
            texts[f"texts.{name}.{what}"] = f"{last:,}"
    return texts | {"texts.docstrings.paragraphs.all": f"{sum(found['docstrings']['paragraphs']):,}"}


def card(found: dict) -> str:
    """What was done, and what came out."""
    known = "; ".join(
        f"{n} words: {', '.join(f'{share:.2f}' for share in shares)}" for n, shares in found["leaks"]["known"].items()
    )
    return f"""{done(found)}
- **Result of packing.** Nats per word above the lowest possible, mean of seeds {SEEDS[0]} to {SEEDS[-1]} (least to
  largest); milliseconds are the least of eleven steps on one processor, each way in turn:

{packing_table(found["packing"])}

- **Result of copies and leaks.** Half of what is read are few stories; in the second column the first {SAME} of
  them, which are in every training. Below 0, a model knows more than the rules of the world:

{copies_table(found["copies"], found["leaks"])}

- **Runs of words** that stories kept back share with the training, seed 0, for those read
  {", ".join(map(str, LEAKED))} times: {known}.
- **Knobs turned**, with seed 0; nats per word above the lowest possible. With {LONG:,} steps the stories of copies and
  leaks are read five times as often:

{knobs(found)}

- **The book's own texts**, as they came with the packages installed here. Paragraphs have 13 words or more, for
  training and held out. *exact*: further copies of one, but for case and white space; *near*: pairs with a similarity
  of 0.8 or more, and how many paragraphs are *in pairs*; *near across*: held-out ones that are one of a pair with one
  to train on; *known*: runs of 13 words, or, for names, numbers and dates, of 13 letters, that occur in both parts.

{texts_table(found["texts"])}

- **Limits.** {found["steps"]} steps, in which all machines still learn; one made-up world of {END} words, and one
  distribution of lengths. Other mixtures of lengths, windows of other sizes and longer documents than a window were not
  tried, nor copies that differ a little.
- **Licence.** The numbers are under Apache-2.0, as the code.
"""
