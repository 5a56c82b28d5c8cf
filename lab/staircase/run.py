"""Train the machine of the first chapters as it grows, a part at a time, and write what each part is worth.

`record.json` holds the results, three seeds of each row, and `machines.safetensors` the weights, in 16 bits.
"""

import dataclasses
from functools import cache

import numpy as np
from safetensors.numpy import save_file

import plainformer as pf
from lab import asked, growing
from lab.growing import PARTS, ROWS, SEEDS, WORDS, Row, kept_back
from lab.records import LAB
from lab.staircase import real_text, telling
from lab.staircase.card import ASKED, card as card, facts as facts, share
from plainformer.training.arrays import named_arrays

ORDERS = 3, 4, 6  # of n-gram models
# What was changed in a row, with the first seed.
KNOBS: list[tuple[str, dict]] = [
    *(("average", {"learning_rate": rate}) for rate in (0.003, 0.03)),
    ("average", {"learning_rate": 0.03, "num_steps": 1000}),
    *(("head", {"learning_rate": rate}) for rate in (0.01, 0.1)),
    ("head", {"num_steps": 1000}),
    *(("heads", {"learning_rate": rate}) for rate in (0.01, 0.1)),
    ("heads", {"num_steps": 4000}),
    *(("norms", {"learning_rate": rate}) for rate in (0.03, 0.1)),
    *(("tying", {"learning_rate": rate}) for rate in (0.003, 0.01, 0.1)),
    *(("block", {"learning_rate": rate}) for rate in (0.003, 0.03)),
    *(("stack", {"learning_rate": rate}) for rate in (0.001, 0.01)),
    *(("positions", {"scheme": scheme}) for scheme in ("rotary", "relative", "learned", "sinusoidal")),
]


@cache
def result(row: Row, seed: int) -> dict:
    """How good a row has become, with the numbers that are stored."""
    model = growing.trained(row, seed)
    found = growing.judged(growing.expected_by(model)) | {"asked": asked.shares(model)}
    found["possible"] = telling.possible(model)
    print(row, seed, found["above"], found["possible"], flush=True)
    return found


def counted_row(table: np.ndarray) -> dict:
    """How good a row of logits for each word is."""
    judged = growing.judged(growing.expected_by_table(table))
    return judged | {"possible": telling.possible(telling.by_table(table))}


def counted(order: int) -> float:
    """Nats per word above the lowest loss, of an n-gram model that has counted all stories of the first seed."""
    model = pf.training.NgramModel(growing.stories_of(0).ravel(), order, WORDS, discount=None)
    losses = [model.loss(story) for story in kept_back().ids[:100]]
    return round(float(np.mean(losses) - kept_back().least[:100].mean()), 4)


def stored(models: dict[str, list]) -> dict[str, np.ndarray]:
    """The numbers of all models in 16 bits, by row, seed and place."""
    return {
        f"{row}.{seed}.{place}": np.asarray(array, np.float16)
        for row, each in models.items()
        for seed, model in enumerate(each)
        for place, array in named_arrays(model).items()
    }


def always_the_same() -> dict[str, float]:
    """How often the best of all answers is right if it is given always, in each column."""
    following, kinds = kept_back().ids[:, 1:], kept_back().kinds
    counts = {column: np.bincount(following[np.isin(kinds, of)]) for column, of in ASKED.items()}
    return {column: round(float(each.max() / each.sum()), 4) for column, each in counts.items()}


def named_most_often() -> float:
    """How often the room is right that a story has named most often so far; lots are drawn among equals."""
    shares = []
    for story in pf.data.stories(400, seed=1000):
        said = story.split()
        for place, kind in enumerate(pf.data.word_kinds(story), start=1):
            if kind.startswith("where"):
                counts = {room: said[:place].count(room) for room in asked.ROOMS}
                most = [room for room, count in counts.items() if count == max(counts.values())]
                shares.append((said[place] in most) / len(most))
    return round(float(np.mean(shares)), 4)


def turned(row: str, changed: dict) -> dict:
    """What comes of the first seed of a row after a change."""
    found = result(dataclasses.replace((ROWS | PARTS)[row], **changed), 0)
    shares = {name: round(float(share(found, ASKED[name])), 4) for name in ("where", "light")}
    return {
        "row": row,
        "changed": changed,
        "above": found["above"],
        "beside": result((ROWS | PARTS)[row], 0)["above"],
    } | shares


def learned() -> dict[str, list[dict]]:
    """The results of all rows, counted ones first."""
    ways = {"words": growing.counted_words, "pairs": growing.counted_pairs}
    rows = {row: [counted_row(way(seed)) for seed in SEEDS] for row, way in ways.items()}
    return rows | {row: [result(each, seed) for seed in SEEDS] for row, each in ROWS.items()}


def results() -> dict:
    """Train all rows, store weights, and return what each row is worth."""
    models = {row: [growing.trained(each, seed) for seed in SEEDS] for row, each in ROWS.items()}
    real = real_text.found()
    found = {
        "lowest": round(float(kept_back().least.mean()), 5),
        "rows": learned(),
        "parts": {row: [result(each, seed) for seed in SEEDS] for row, each in PARTS.items()},
        "real text": {row: loss for row, (loss, _) in real.items()},
        "heard": {row: text for row, (_, text) in real.items()},
        "parameters": {row: pf.count_parameters(growing.make(each, 0)) for row, each in (ROWS | PARTS).items()},
        "counted": {str(order): counted(order) for order in ORDERS},
        "knobs": [turned(*knob) for knob in KNOBS],
        "always the same": always_the_same(),
        "named most often": named_most_often(),
    }
    save_file(stored(models), LAB / "staircase" / "machines.safetensors")
    pf.save_model(LAB / "staircase" / "stories.safetensors", models["decoder"][0], growing.VOCABULARY)
    return found
