"""Measure how much of what the stored decoder of stories writes is possible, and write it with a card.

`make models` runs it, after the training. `record.json` holds the numbers and three of the stories.
"""

import jax
import numpy as np

import plainformer as pf
from lab.records import ends, percent

NEEDS = ("staircase",)
BEGUN, WRITTEN, NUM_STORIES, KEYS = 33, 96, 100, (0, 1, 2)
WAYS: dict[str, dict] = {
    "greedy": {"temperature": 0.0},
    **{f"temperature {T:g}": {"temperature": T} for T in (0.5, 0.8, 1.0, 1.3, 1.6, 2.0)},
    **{f"top-p {p:g}": {"top_p": p} for p in (0.99, 0.9, 0.5)},
}
BEAM = 4
STORIES = ((NUM_STORIES, 2000), (200, 3000), (200, 4000))  # how many, and the seed


def told(number: int = NUM_STORIES, seed: int = 2000) -> list[str]:
    """Stories that no model has learned from, as the program tells them."""
    return pf.data.stories(number, BEGUN + WRITTEN, seed=seed)


def beginnings(num_words: int = BEGUN, *which: int) -> list[str]:
    """Their beginnings of at most so many words, each up to a full stop."""
    cut = [" ".join(story.split()[:num_words]) for story in told(*which)]
    return [story[: story.rindex(" .") + 2] for story in cut]


def sentences(story: str) -> list[tuple[str, bool]]:
    """The sentences of a story that have ended, and whether each is possible."""
    return [(text, possible) for text, possible in pf.data.possible_sentences(story) if text.endswith(".")]


def judged(begun: list[str], stories: list[str]) -> dict:
    """Of the sentences that were written: how many there are, and which shares of them make sense.

    `possible` is the share of possible sentences, `early` and `late` the same for the first and the second half of each
    story, `answers` the share of right answers among questions, `again` of sentences that stood in their story before.
    """
    possible, asked, again, late = [], [], [], []
    for start, story in zip(begun, stories, strict=True):
        before, whole = len(sentences(start)), sentences(story)
        texts = [text for text, _ in whole]
        written = range(before, len(whole))
        possible += [whole[n][1] for n in written]
        asked += ["?" in texts[n] for n in written]
        again += [texts[n] in texts[:n] for n in written]
        late += [2 * (n - before) >= len(written) for n in written]
    of, is_late, is_asked = np.array(possible), np.array(late), np.array(asked)
    shares = {"possible": of, "early": of[~is_late], "late": of[is_late], "answers": of[is_asked], "again": again}
    return {"sentences": len(of)} | {name: round(float(np.mean(each)), 4) for name, each in shares.items()}


def written(model, tokenizer, way: dict, seed: int, begun: list[str], number: int = WRITTEN) -> list[str]:
    """The beginnings with so many words that the decoder writes after each, in one of the ways."""
    found = pf.generate(model, begun, number, tokenizer=tokenizer, key=jax.random.key(seed), **way)
    return [f"{start} {each.text}" for start, each in zip(begun, found, strict=True)]


def searched(model, tokenizer, begun: list[str]) -> list[str]:
    """The same by beam search."""
    found = pf.beam_search(model, begun, WRITTEN, beam_width=BEAM, tokenizer=tokenizer)
    return [f"{start} {best.text}" for start, (best, *_) in zip(begun, found, strict=True)]


def halves_of(model, tokenizer, *which: int) -> dict[str, list[float]]:
    """Shares of possible sentences at temperature 1, for each key: of the first half of what is written, of the second,
    and of the second after the program's words."""
    begun, longer, half = beginnings(BEGUN, *which), beginnings(BEGUN + WRITTEN // 2, *which), WRITTEN // 2
    whole = [judged(begun, written(model, tokenizer, {}, seed, begun)) for seed in KEYS]
    found = {part: [each[part] for each in whole] for part in ("early", "late")}
    found["after"] = [judged(longer, written(model, tokenizer, {}, seed, longer, half))["possible"] for seed in KEYS]
    return found


def results() -> dict:
    """What each way writes, judged once for each key, and the first story of three ways."""
    (model, tokenizer), begun = pf.load_pretrained("stories"), beginnings()
    ways = {}
    for name, way in WAYS.items():
        keys = KEYS[:1] if name == "greedy" else KEYS
        ways[name] = [judged(begun, written(model, tokenizer, way, seed, begun)) for seed in keys]
    ways[f"a beam of {BEAM}"] = [judged(begun, searched(model, tokenizer, begun))]
    ways["the program itself"] = [judged(begun, told())]
    shown = ("greedy", "temperature 1", "temperature 2")
    halves = [halves_of(model, tokenizer, *which) for which in STORIES]
    examples = {name: written(model, tokenizer, WAYS[name], 0, begun[:1])[0] for name in shown}
    return {"ways": ways, "halves": halves, "shown": examples}


def line_of(name: str, found: list[dict]) -> str:
    """The line of a way in card and chapter: the mean over its keys."""
    shares = [np.mean([each[part] for each in found]) for part in ("possible", "answers", "again")]
    return f"| {name} | " + " | ".join(f"{100 * share:.1f}\N{NO-BREAK SPACE}%" for share in shares) + " |"


def table(ways: dict) -> str:
    """What each way writes, as it stands in card and chapter."""
    head = ["| way | possible sentences | right answers | said before |", "|---|---|---|---|"]
    return "\n".join([*head, *(line_of(name, each) for name, each in ways.items())])


def half_lines(halves: list[dict]) -> str:
    """The table of the halves: a line for each choice of stories."""
    lines = ["| stories, seed | first half | second half | after the program's words |", "|---|---|---|---|"]
    for (number, seed), found in zip(STORIES, halves, strict=True):
        cells = [f"{100 * np.mean(found[part]):.1f} %" for part in ("early", "late", "after")]
        lines.append(f"| {number}, {seed} | {' | '.join(cells)} |")
    return "\n".join(lines)


def facts(found: dict) -> dict[str, str]:
    """What the chapter says: its table, the shares of each way, and the halves by the seed of the stories."""
    texts = {"ways": table(found["ways"])}
    for name, each in found["ways"].items():
        for part in ("possible", "early", "late"):
            texts[f"{name}.{part}"] = percent(np.mean([one[part] for one in each]), 1)
    for (_, seed), halves in zip(STORIES, found["halves"], strict=True):
        for part, shares in halves.items():
            texts[f"halves.{seed}.{part}"] = percent(np.mean(shares), 1)
            texts |= ends(f"halves.{seed}.{part}", [100 * share for share in shares], ".1f")
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
  program that tells the stories.

{table(found["ways"])}

- **Halves.** Possible sentences in the first and in the second half of what was written: {halves}.
  At temperature 1 on other stories, too; the last column has {WRITTEN // 2} words after beginnings of
  {BEGUN + WRITTEN // 2} words by the program:

{half_lines(found["halves"])}

- **Limits.** One model, trained with one seed. A sentence is judged as if impossible ones before it had not been said.
- **Licence.** The numbers and texts are under Apache-2.0, as the code.
"""
