"""Measure how much of what the stored decoder of stories writes is possible, and write it with a card.

`make models` runs it, after the training. `record.json` holds the numbers and three of the stories.
"""

from itertools import chain

import jax
import numpy as np

import plainformer as pf
from lab.records import percent
from lab.sense.judging import believing, error, marks, others, ratio, split, strict

NEEDS = ("staircase",)
BEGUN, WRITTEN, NUM_STORIES, KEYS = 33, 96, 100, (0, 1, 2)
WAYS: dict[str, dict] = {
    "greedy": {"temperature": 0.0},
    **{f"temperature {T:g}": {"temperature": T} for T in (0.5, 0.8, 1.0, 1.3, 1.6, 2.0)},
    **{f"top-p {p:g}": {"top_p": p} for p in (0.99, 0.9, 0.5)},
}
BEAM = 4
JUDGES = (strict, believing, others)
STORIES = ((NUM_STORIES, 2000), (200, 3000), (200, 4000))  # how many, and the seed


def told(number: int = NUM_STORIES, seed: int = 2000) -> list[str]:
    """Stories that no model has learned from, as the program tells them."""
    return pf.data.stories(number, BEGUN + WRITTEN, seed=seed)


def beginnings(num_words: int = BEGUN, *which: int) -> list[str]:
    """Their beginnings of at most so many words, each up to a full stop."""
    cut = [" ".join(story.split()[:num_words]) for story in told(*which)]
    return [story[: story.rindex(" .") + 2] for story in cut]


def judged(begun: list[str], stories: list[str]) -> dict:
    """Of the sentences that were written: how many there are, and which shares of them are right; see `marks`."""
    each = [marks(start, story) for start, story in zip(begun, stories, strict=True)]
    joined = {part: list(chain.from_iterable(one[part] for one in each)) for part in each[0]}
    shares = {name: round(float(np.mean(found)), 4) for name, found in joined.items()}
    return {"sentences": len(joined["possible"])} | shares


def errors(begun: list[str], draws: list[list[str]]) -> dict[str, float]:
    """The standard error of each share over the stories, each with what all keys wrote."""
    parts = {part: of_stories(begun, draws, part) for part in ("possible", "answers", "again")}
    return {part: round(error(ratio(stories)[1]), 4) for part, stories in parts.items()}


def of_stories(begun: list[str], draws: list[list[str]], part: str, judge=strict) -> list[list[bool]]:
    """The marks of each story, all keys in one list."""
    return [
        [mark for story in stories for mark in marks(start, story, judge)[part]]
        for start, *stories in zip(begun, *draws, strict=True)
    ]


def written(model, tokenizer, way: dict, seed: int, begun: list[str], number: int = WRITTEN) -> list[str]:
    """The beginnings with so many words that the decoder writes after each, in one of the ways."""
    found = pf.generate(model, begun, number, tokenizer=tokenizer, key=jax.random.key(seed), **way)
    return [f"{start} {each.text}" for start, each in zip(begun, found, strict=True)]


def searched(model, tokenizer, begun: list[str]) -> list[str]:
    """The same by beam search."""
    found = pf.beam_search(model, begun, WRITTEN, beam_width=BEAM, tokenizer=tokenizer)
    return [f"{start} {best.text}" for start, (best, *_) in zip(begun, found, strict=True)]


def halves() -> tuple[list[dict], dict]:
    """How often sentences at temperature 1 are possible in the first half of what is written, in the second, and in the
    second after the program's words: shares for each choice of stories and each key, and over all stories by judge."""
    model, tokenizer = pf.load_pretrained("stories")
    shares, names = [], ("early", "late", "after")
    pooled: dict[str, dict[str, list]] = {judge.__name__: {part: [] for part in names} for judge in JUDGES}
    for which in STORIES:
        begun, longer = beginnings(BEGUN, *which), beginnings(BEGUN + WRITTEN // 2, *which)
        whole = [written(model, tokenizer, {}, seed, begun) for seed in KEYS]
        after = [written(model, tokenizer, {}, seed, longer, WRITTEN // 2) for seed in KEYS]
        found = [judged(begun, stories) for stories in whole]
        of_keys = {part: [each[part] for each in found] for part in ("early", "late")}
        shares.append(of_keys | {"after": [judged(longer, stories)["possible"] for stories in after]})
        for judge in JUDGES:
            parts = pooled[judge.__name__]
            parts["early"] += of_stories(begun, whole, "early", judge)
            parts["late"] += of_stories(begun, whole, "late", judge)
            parts["after"] += of_stories(longer, after, "possible", judge)
    return shares, {name: split(**parts) for name, parts in pooled.items()}


def results() -> dict:
    """What each way writes, judged once for each key, its errors over stories, and the first story of three ways."""
    (model, tokenizer), begun = pf.load_pretrained("stories"), beginnings()
    draws = {
        name: [written(model, tokenizer, way, seed, begun) for seed in (KEYS[:1] if name == "greedy" else KEYS)]
        for name, way in WAYS.items()
    }
    draws |= {f"a beam of {BEAM}": [searched(model, tokenizer, begun)], "the program itself": [told()]}
    of_stories, of_judges = halves()
    return {
        "ways": {name: [judged(begun, stories) for stories in each] for name, each in draws.items()},
        "errors": {name: errors(begun, each) for name, each in draws.items()},
        "halves": of_stories,
        "split": of_judges,
        "shown": {name: draws[name][0][0] for name in ("greedy", "temperature 1", "temperature 2")},
    }


def line_of(name: str, found: list[dict], errors: dict[str, float]) -> str:
    """The line of a way in card and chapter: the mean over its keys, with its standard error over the stories."""
    cells = [
        f"{100 * np.mean([each[part] for each in found]):.1f} ± {100 * errors[part]:.1f}\N{NO-BREAK SPACE}%"
        for part in ("possible", "answers", "again")
    ]
    return f"| {name} | {' | '.join(cells)} |"


def table(found: dict) -> str:
    """What each way writes, as it stands in card and chapter."""
    head = ["| way | possible sentences | right answers | said before |", "|---|---|---|---|"]
    return "\n".join([*head, *(line_of(name, each, found["errors"][name]) for name, each in found["ways"].items())])


def split_table(split: dict) -> str:
    """A line of the card for each judge: shares of possible sentences, and what becomes of the loss; with errors."""
    head = ["judge", "first half", "second half", "after the program's words", "length", "own text", "part of own text"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for judge, found in split.items():
        cells = [f"{100 * share:.1f} ± {100 * off:.1f} %" for share, off in found.values()]
        lines.append(f"| {judge} | {' | '.join(cells)} |")
    return "\n".join(lines)


def half_lines(halves: list[dict]) -> str:
    """The table of the halves: a line for each choice of stories."""
    lines = ["| stories, seed | first half | second half | after the program's words |", "|---|---|---|---|"]
    for (number, seed), found in zip(STORIES, halves, strict=True):
        cells = [f"{100 * np.mean(found[part]):.1f} %" for part in ("early", "late", "after")]
        lines.append(f"| {number}, {seed} | {' | '.join(cells)} |")
    return "\n".join(lines)


def facts(found: dict) -> dict[str, str]:
    """What the chapter says: its table, the share of possible sentences of each way, and what each judge finds."""
    texts = {"ways": table(found)}
    for name, each in found["ways"].items():
        texts[f"{name}.possible"] = percent(np.mean([one["possible"] for one in each]), 1)
    for judge, of_judge in found["split"].items():
        for part, (share, off) in of_judge.items():
            digits = 0 if part == "part" else 1
            texts |= {f"{judge}.{part}": percent(share, digits), f"{judge}.{part}.error": percent(off, digits)}
    return texts


def card(found: dict) -> str:
    """What was measured."""
    halves = ", ".join(
        f"{name} {100 * np.mean([e['early'] for e in each]):.1f} and {100 * np.mean([e['late'] for e in each]):.1f} %"
        for name, each in found["ways"].items()
    )
    return f"""# How much of what the decoder of stories writes is possible

Measured of the stored model `stories` by `lab/sense/run.py`, which `make models` runs; the numbers, and
three of the stories, stand in `record.json`.

- **Task.** {NUM_STORIES} stories of the little world (`pf.data.stories`, seed 2000), each cut at its last full stop
  among the first {BEGUN} words, are continued by {WRITTEN} words, with three keys where there is chance. Counted are
  whole sentences that were written: those that are possible where they stand (`pf.data.possible_sentences`), of the
  questions those answered rightly, and the sentences that stood in the same story before. The last line is the
  program that tells the stories. Means over the keys, with standard errors over the stories.

{table(found)}

- **Halves.** Possible sentences in the first and in the second half of what was written: {halves}.
  At temperature 1 on other stories, too; the last column has {WRITTEN // 2} words after beginnings of
  {BEGUN + WRITTEN // 2} words by the program:

{half_lines(found["halves"])}

- **Judges.** Of all {sum(number for number, _ in STORIES)} stories, with standard errors over them. To the strict judge
  an impossible sentence is as good as unsaid; to the believing one the world is from then on as it says; for the third,
  who believes, too, nothing counts that names a person, thing or switch which an impossible sentence named before.
  *Length* is the first half less what is possible after the program's words; *own text* is that less the second half:

{split_table(found["split"])}

- **Limits.** One model, trained with one seed. But for the judges of the last table, a sentence is judged as if
  impossible ones before it had not been said.
- **Licence.** The numbers and texts are under Apache-2.0, as the code.
"""
