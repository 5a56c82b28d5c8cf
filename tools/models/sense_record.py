"""Measure how much of what the stored decoder of stories writes is possible, and write it with a card.

`make models` runs it, after the training. `sense.json` holds the numbers and three of the stories.
"""

import jax
import numpy as np
from records import write_record

import plainformer as pf

BEGUN, WRITTEN, NUM_STORIES, KEYS = 33, 96, 100, (0, 1, 2)
WAYS: dict[str, dict] = {
    "greedy": {"temperature": 0.0},
    "temperature 0.5": {"temperature": 0.5},
    "temperature 0.8": {"temperature": 0.8},
    "temperature 1": {},
    "temperature 1.3": {"temperature": 1.3},
    "temperature 1.6": {"temperature": 1.6},
    "temperature 2": {"temperature": 2.0},
    "top-p 0.99": {"top_p": 0.99},
    "top-p 0.9": {"top_p": 0.9},
    "top-p 0.5": {"top_p": 0.5},
}
BEAMS = (4,)


def told_stories() -> list[str]:
    """Stories that no model has learned from."""
    return pf.data.stories(NUM_STORIES, BEGUN + WRITTEN, seed=2000)


def beginnings() -> list[str]:
    """Their beginnings, each up to a full stop."""
    cut = [" ".join(story.split()[:BEGUN]) for story in told_stories()]
    return [story[: story.rindex(" .") + 2] for story in cut]


def whole(story: str) -> list[tuple[str, bool]]:
    """The sentences of a story that have ended, and whether each is possible."""
    return [(text, possible) for text, possible in pf.data.possible_sentences(story) if text.endswith(".")]


def judged(begun: list[str], stories: list[str]) -> dict:
    """Of the sentences that were written: how many there are, and which shares of them make sense.

    `possible` is the share of possible sentences, `answers` of right answers among questions, `again` of sentences that
    stood in the same story before.
    """
    sentences, again = [], []
    for start, story in zip(begun, stories, strict=True):
        before = len(whole(start))
        all_of_it = whole(story)
        sentences += all_of_it[before:]
        texts = [text for text, _ in all_of_it]
        again += [text in texts[:place] for place, text in enumerate(texts) if place >= before]
    possible = np.array([is_possible for _, is_possible in sentences])
    asked = np.array(["?" in text for text, _ in sentences])
    return {
        "sentences": len(sentences),
        "possible": round(float(possible.mean()), 4),
        "answers": round(float(possible[asked].mean()), 4) if asked.any() else None,
        "again": round(float(np.mean(again)), 4),
    }


def written(way: dict, seed: int, begun: list[str]) -> list[str]:
    """The beginnings with what the decoder writes after each, in one of the ways."""
    model, tokenizer = pf.load_pretrained("stories")
    key = jax.random.key(seed)
    found = pf.generate(model, begun, WRITTEN, tokenizer=tokenizer, key=key, **way)
    return [f"{start} {each.text}" for start, each in zip(begun, found, strict=True)]


def searched(width: int, begun: list[str]) -> list[str]:
    """The same by beam search."""
    model, tokenizer = pf.load_pretrained("stories")
    found = pf.beam_search(model, begun, WRITTEN, beam_width=width, tokenizer=tokenizer)
    return [f"{start} {best.text}" for start, (best, *_) in zip(begun, found, strict=True)]


def measured() -> dict:
    """What each way writes, judged; a list with one entry for each key."""
    begun = beginnings()
    ways = {}
    for name, way in WAYS.items():
        keys = KEYS[:1] if name == "greedy" else KEYS
        ways[name] = [judged(begun, written(way, seed, begun)) for seed in keys]
        print(name, ways[name], flush=True)
    for width in BEAMS:
        ways[f"beam of {width}"] = [judged(begun, searched(width, begun))]
    ways["the program"] = [judged(begun, told_stories())]
    shown = {name: written(WAYS[name], 0, begun[:1])[0] for name in ("greedy", "temperature 1", "temperature 2")}
    return {"ways": ways, "shown": shown}


def line_of(name: str, found: list[dict], form: str = ".1f") -> str:
    """The line of a way in card and chapter: the mean over its keys."""
    shares = [np.mean([each[part] for each in found]) for part in ("possible", "answers", "again")]
    return f"| {name} | " + " | ".join(f"{100 * share:{form}} %" for share in shares) + " |"


def card(found: dict) -> str:
    """What was measured."""
    lines = "\n".join(line_of(name, each) for name, each in found["ways"].items())
    return f"""# How much of what the decoder of stories writes is possible

Measured of the stored model `stories` by `tools/models/sense_record.py`, which `make models` runs; the numbers, and
three of the stories, stand in `sense.json`.

- **Task.** {NUM_STORIES} stories of the little world (`pf.data.stories`, seed 2000), each cut at its last full stop
  among the first {BEGUN} words, are continued by {WRITTEN} words, with three keys where there is chance. Counted are
  whole sentences that were written: those that are possible where they stand (`pf.data.possible_sentences`), of the
  questions those answered rightly, and the sentences that stood in the same story before. The last line is the
  program that tells the stories.

| way | possible | right answers | said before |
|---|---|---|---|
{lines}

- **Limits.** One model, one seed; a sentence is judged as if impossible ones before it had not been said.
- **Licence.** The numbers and texts are under Apache-2.0, as the code.
"""


def write() -> None:
    """Write the numbers with a card."""
    found = measured()
    write_record("sense", found, card(found))


if __name__ == "__main__":
    write()
