"""Fit what the encoder–decoders of dates are compared with: counts, linear classifiers, a recurrent network, a rule.

All but the rule learn from the same pairs. Their settings are chosen on training pairs that are held back, never on the
test. No weights are kept: the shares of right answers stand in `record.json`.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import plainformer as pf
from lab.date_decoder.run import one_text_vocabulary
from lab.date_opponents import gru
from lab.date_opponents.copying import KINDS, ByLikeness, ByRegression, CopyingTranslator
from lab.date_opponents.linear import REACH, LinearClassifiers
from lab.records import ROOT, kept, percent
from lab.seq2seq.held_back import LANGUAGES, held_back
from lab.seq2seq.run import LONG, TRAINING
from plainformer.data.dates import DatePair, DateSplits

LENGTH = "by its length"
LETTERS = {
    f"groups of up to {longest} letters, C = {cost:g}": (LENGTH, partial(ByRegression, longest, cost))
    for longest in (2, 3, 4, 5)
    for cost in (0.01, 0.1, 1, 10, 100)
}
PLACES = {f"{kind}, up to 3 letters, C = 1": (kind, partial(ByRegression, 3, 1)) for kind in KINDS if kind != LENGTH}
LIKENESS = {f"{often:.0%} with one month": (LENGTH, partial(ByLikeness, often)) for often in (0.9, 0.5, 0.8, 0.95)}
LINEAR = {
    f"groups of up to {longest} letters{', letters among classes' * classes}, C = {cost:g}": (longest, classes, cost)
    for classes in (False, True)
    for longest in (3, 5)
    for cost in (0.1, 1.0)
}
WORDS = {
    "likeness": "copied numbers, months by likeness",
    "letters": "copied numbers, months by letters",
    "linear": "linear classifiers",
}
RATES, DECAYS, STEPS, SEEDS = (3e-3, 1e-2, 3e-2), (0.1, 0.5), (TRAINING["num_steps"], LONG), (0, 1, 2)
SIMPLE: dict[str, tuple[Callable, dict[str, tuple]]] = {
    "letters": (CopyingTranslator, LETTERS | PLACES),
    "likeness": (CopyingTranslator, LIKENESS),
    "linear": (LinearClassifiers, LINEAR),
}


def right(translate: Callable[[Sequence[str]], list[str]], pairs: Sequence[DatePair]) -> float:
    """The share of dates that are translated exactly."""
    answers = translate([pair.source for pair in pairs])
    return round(pf.generation.exact_match(answers, [pair.target for pair in pairs]), 4)


def shares(translate: Callable[[Sequence[str]], list[str]], splits: DateSplits) -> dict[str, float]:
    """The same of both parts that are kept from training."""
    return {part: right(translate, getattr(splits, part)) for part in splits._fields[1:]}


def fitted(name: str, pairs: Sequence[DatePair], setting: str):
    """One of the simple opponents, with a setting by its name."""
    make, settings = SIMPLE[name]
    return make(pairs, *settings[setting])


def simple(name: str, splits: DateSplits) -> dict[str, Any]:
    """An opponent with each setting on what is held back, and with the best of them on the test."""
    parts, settings = held_back(splits.training), SIMPLE[name][1]

    def tried(setting: str) -> dict[str, float]:
        found = shares(fitted(name, parts.training, setting).translate, parts)
        print(name, setting, found, flush=True)
        return found

    found = {setting: kept(gru.KEPT / f"{name}, {setting}.json", partial(tried, setting)) for setting in settings}
    best = max(found, key=lambda setting: sum(found[setting].values()))
    return {"tried": found, "setting": best, "right": shares(fitted(name, splits.training, best).translate, splits)}


def recurrent(splits: DateSplits) -> dict[str, Any]:
    """A GRU with each rate and decay on what is held back, and three seeds of the best, for as long and for longer."""
    parts = held_back(splits.training)

    def judged(rate: float, decay: float, run: str) -> list[float]:
        model, vocabulary = gru.trained(parts.training, STEPS[0], rate, decay, 9, run)
        return [gru.loss_on(model, vocabulary, part) for part in parts[1:]]

    def tested(steps: int, seed: int, run: str) -> dict[str, float]:
        model, vocabulary = gru.trained(splits.training, steps, best[0], best[1], seed, run)
        return {part: gru.right(model, vocabulary, getattr(splits, part)) for part in splits._fields[1:]}

    tried = {
        (rate, decay): kept(gru.KEPT / f"{rate:g}-{decay:g}.json", partial(judged, rate, decay, f"{rate:g}-{decay:g}"))
        for rate in RATES
        for decay in DECAYS
    }
    best = min(tried, key=lambda setting: sum(tried[setting]))
    runs = {
        str(steps): [
            kept(gru.KEPT / f"{steps}-{seed}.json", partial(tested, steps, seed, f"{steps}-{seed}")) for seed in SEEDS
        ]
        for steps in STEPS
    }
    parameters = pf.count_parameters(gru.model_of(one_text_vocabulary(splits.training), 0))
    losses = {f"{rate:g}, {decay:g}": loss for (rate, decay), loss in tried.items()}
    return {"parameters": parameters, "tried": losses, "setting": best, "runs": runs}


def rule(splits: DateSplits) -> dict[str, float]:
    """The rule as the chapter on encoder–decoders shows it: its cell is run on the same pairs."""
    chapter = (ROOT / "chapters" / "seq2seq.md").read_text(encoding="utf-8")
    cells = re.findall(r"```\{code-cell\} ipython3\n(?::[^\n]*\n)*(.*?)```", chapter, re.DOTALL)
    space: dict[str, Any] = {"parts": splits}
    for word in ("import difflib", "def by_rule"):
        exec(next(cell for cell in cells if word in cell), space)
    return dict(zip(splits._fields[1:], space["rule"], strict=True))


def results() -> dict[str, Any]:
    """All opponents, and what the copying one found out."""
    splits = pf.data.date_splits()
    found = {name: kept(gru.KEPT / f"{name}.json", partial(simple, name, splits)) for name in SIMPLE}
    copies = fitted("letters", splits.training, found["letters"]["setting"]).copies
    return found | {"copies": copies, "GRU": recurrent(splits), "rule": rule(splits)}


def of_part(found: dict[str, Any], part: str) -> dict[str, list[float]]:
    """What each opponent that learns has right of a part; all seeds of the GRU with more steps."""
    simple = {words: [found[name]["right"][part]] for name, words in WORDS.items()}
    return simple | {"GRU": [each[part] for each in found["GRU"]["runs"][str(LONG)]]}


def facts(found: dict[str, Any]) -> dict[str, str]:
    """What chapters say: per cent right, by counting, by linear classifiers and by the rule."""
    shares = {name: found[name]["right"] for name in ("likeness", "linear")} | {"rule": found["rule"]}
    return {f"{name}.{part}": percent(share, 1) for name, parts in shares.items() for part, share in parts.items()}


def simple_table(found: dict[str, Any]) -> str:
    """A row of the card for each setting of the simple opponents, and those of the test."""
    lines = ["| | years | languages |", "|---|---|---|"]
    for name in SIMPLE:
        for setting, shares in (
            *found[name]["tried"].items(),
            ("*test:* " + found[name]["setting"], found[name]["right"]),
        ):
            years, languages = shares.values()
            lines.append(f"| {name}: {setting} | {years:.2%} | {languages:.2%} |")
    return "\n".join(lines)


def recurrent_table(found: dict[str, Any]) -> str:
    """A row of the card for each number of steps and each seed."""
    lines = ["| steps | seed | held-out years | held-out languages |", "|---|---|---|---|"]
    for steps, runs in found["runs"].items():
        for seed, each in zip(SEEDS, runs, strict=True):
            lines.append(f"| {steps} | {seed} | {each['held_out_years']:.2%} | {each['held_out_language']:.2%} |")
    return "\n".join(lines)


def card(found: dict[str, Any]) -> str:
    """What was done, and what came out."""
    recurrent, (years, languages) = found["GRU"], found["rule"].values()
    copies = "; ".join(
        f"length {length}: field {field + 1}, behind {front!r}"
        for length, (field, front) in sorted(found["copies"].items())
    )
    losses = "; ".join(f"{setting}: {sum(loss) / 2:.4f}" for setting, loss in recurrent["tried"].items())
    return f"""# What the encoder–decoders of dates are compared with

Opponents that learn from the same pairs as the models of `lab/seq2seq`, and a rule that is told what a date is. Nothing
is kept but `record.json`.

- **Data.** `plainformer.data.date_splits()`. Settings are chosen by the mean share of exact matches on training pairs
  that are held back for it: about one year in ten, and {" and ".join(LANGUAGES)} as languages. No answer of the test
  occurs in training, so the answer of the most similar training text is never right.
- **Copied numbers.** Texts are cut into runs of digits and runs of letters. For each kind of number, such as those of
  two digits, it is counted in which field of the answer they are found, and behind what; what holds for nearly all
  becomes a rule. It found, for numbers of each length: {copies}. A field that gets no number is guessed from the words:
  *by letters*, which is logistic regression on groups of letters that do not cross the ends of words, or *by likeness*,
  with a dictionary of the words that nearly always come with one month, in which an unknown word counts as the most
  similar one.
- **Linear.** A linear support-vector machine for each letter of the answer, on groups of letters of the source, on
  letters with their place from both ends, and on each letter with the classes (digit, letter, other) of up to
  {REACH - 1} letters on either side.

{simple_table(found)}

- **GRU.** {recurrent["parameters"]:,} parameters; source and answer are one text, as in `lab/date_decoder`, with the
  same batches. Rate and weight decay are chosen after {STEPS[0]} steps, by nats per letter of what is held back, the
  mean of years and languages: {losses}. Exact match:

{recurrent_table(recurrent)}

- **Told.** The dictionary and rule of {{ref}}`sec-seq2seq`, its cell run on the same pairs: {years:.2%} and
  {languages:.2%}.
- **Limits.** Which reader of words is the better hangs on the languages: of those held back from training, letters have
  more months right, of those of the test, likeness. The GRU has the largest rate and decay that were tried. All dates
  exist and lie between 1900 and 2049, and the month is always a word.
- **Licence.** The numbers are under Apache-2.0, as the code.
"""
