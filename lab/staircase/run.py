"""Train the machine of the first chapters as it grows, a part at a time, and write what each part is worth.

`record.json` holds the results, three seeds of each row, and `machines.safetensors` the weights, in 16 bits.
"""

import dataclasses
from functools import cache
from itertools import pairwise

import numpy as np
from safetensors.numpy import save_file

import plainformer as pf
from lab import asked, growing
from lab.growing import ROWS, SEEDS, WORDS, Row, kept_back
from lab.records import LAB, ends, percent
from lab.staircase import real_text
from plainformer.training.arrays import named_arrays

ORDERS = 3, 4, 6  # of n-gram models
# What was changed in a row, with the first seed.
KNOBS: list[tuple[str, dict]] = [
    *(("average", {"learning_rate": rate}) for rate in (0.003, 0.01)),
    *(("head", {"learning_rate": rate}) for rate in (0.003, 0.01, 0.1)),
    *(("heads", {"learning_rate": rate}) for rate in (0.003, 0.01)),
    ("block", {"learning_rate": 0.003}),
    *(("stack", {"learning_rate": rate}) for rate in (0.001, 0.01)),
]


@cache
def result(row: Row, seed: int) -> dict:
    """How good a row has become, with the numbers that are stored."""
    model = growing.trained(row, seed)
    found = growing.judged(growing.expected_by(model))
    if row.num_layers:
        found["asked"] = asked.shares(model)
    print(row, seed, found["above"], flush=True)
    return found


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


def share(found: dict, kinds: tuple[str, ...]) -> float:
    """The share of right answers to several kinds of questions."""
    parts = [found["kinds"][kind] for kind in kinds]
    return sum(right * number for _, right, number in parts) / sum(number for *_, number in parts)


ASKED = {"wears": ("wears",), "where": ("where 1", "where 2", "where 3"), "who": ("who",), "light": ("light",)}


def line_of(name: str, found: list[dict], real: float) -> str:
    """The line of a row in card and chapters: nats above the lowest loss, shares of right answers, a real text."""
    above = [each["above"] for each in found]
    shares = [np.mean([share(each, kinds) for each in found]) for kinds in ASKED.values()]
    percent = " | ".join(f"{100 * each:.0f}\N{NO-BREAK SPACE}%" for each in shares)
    return f"| {name} | {np.mean(above):.3f} ({min(above):.3f} to {max(above):.3f}) | {percent} | {real:.2f} |"


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


NAMES = {
    "words": "the share of each word",
    "pairs": "one matrix: the last word",
    "average": "an average of all words before",
    "head": "one head",
    "heads": "eight heads",
    "block": "a block",
    "stack": "four blocks",
    "positions": "and positions",
    "decoder": "the same, trained to the end",
}


def table(found: dict, last: str = "decoder") -> str:
    """The staircase as it stands in the card; chapters have its lines up to their own."""
    rows = list(NAMES)[: list(NAMES).index(last) + 1]
    head = "| machine | nats per word above the lowest | to wear | where | who | light | real text, nats per letter |"
    lines = [line_of(NAMES[row], found["rows"][row], found["real text"][row]) for row in rows]
    return "\n".join([head, "|---" * 7 + "|", *lines])


def asked_table(rows: dict[str, list[dict]]) -> str:
    """Right answers to the questions of `asked.py`, in per cent for each seed, as they stand in card and chapters."""
    head = ["| story | told | " + " | ".join(NAMES[row] for row in rows) + " |", "|---" * (2 + len(rows)) + "|"]
    return "\n".join([*head, *(asked.line_of(kind, rows) for kind in asked.questions())])


COLUMNS = {**ASKED, "takes": ("takes",), "switch": ("switch",), "where_3": ("where 3",)}


def facts_of(seeds: list[dict]) -> dict[str, str]:
    """What chapters say of a row: per cent right and nats above the lowest, by seed, in the mean, at the ends."""
    right = {column: [share(seed, kinds) for seed in seeds] for column, kinds in COLUMNS.items()}
    for kind in seeds[0].get("asked", {}):
        right[kind.partition(":")[0]] = [seed["asked"][kind] for seed in seeds]
    texts = {f"{column}.{seed}": percent(each) for column, shares in right.items() for seed, each in enumerate(shares)}
    for column, shares in right.items():
        texts |= ends(column, [100 * each for each in shares], ".0f") | {
            f"{column}.mean": percent(float(np.mean(shares)))
        }
    surprise, above = [seed["kinds"]["wears"][0] for seed in seeds], [seed["above"] for seed in seeds]
    texts |= ends("wears.nats", surprise, ".2f" if max(surprise) > 0.01 else ".3f") | ends("above", above)
    texts |= {f"above.{seed}": f"{each:.3f}" for seed, each in enumerate(above)}
    return texts | {"above": f"{np.mean(above):.3f}"}


def facts(found: dict) -> dict[str, str]:
    """What chapters say: of each row, on a real text, of counting and guessing; and tables."""
    texts = {f"{row}.{name}": text for row, seeds in found["rows"].items() for name, text in facts_of(seeds).items()}
    texts |= {f"{row}.real": f"{loss:.2f}" for row, loss in found["real text"].items()}
    others = [[seed["kinds"]["other"][0] for seed in found["rows"][row]] for row in ("head", "average")]
    texts |= ends("head.worse", (head - average for head, average in zip(*others, strict=True)))
    texts |= {f"always.{column}": percent(right) for column, right in found["always the same"].items()}
    texts["most_often"] = percent(found["named most often"])
    texts |= {f"counted.{order}": f"{above:.3f}" for order, above in found["counted"].items()}
    texts |= {f"rows.{row}": table(found, row) for row in found["rows"]}
    for before, after in pairwise(("block", "stack", "positions", "decoder")):
        texts[f"asked.{after}"] = asked_table({row: found["rows"][row] for row in (before, after)})
    return texts


def asked_lines(rows: dict[str, list[dict]]) -> str:
    """What the card says of the questions."""
    return f"""- **Questions.** Short stories told with all people, rooms and things, and walks that are drawn
  (`lab/asked.py`); right answers in per cent, seeds 0, 1 and 2. The third line has the
  stories of the second, and counts the wrong answers that name the room to which the other person went:

{asked_table(rows)}"""


def knob_lines(knobs: list[dict]) -> str:
    """A line for each change that was tried in a row, what came out, and how the row stands."""
    lines = ["| row | changed | nats above the lowest | as it stands | where | light |", "|---|---|---|---|---|---|"]
    for knob in knobs:
        changed = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in knob["changed"].items())
        shares = (f"{100 * knob[name]:.0f}\N{NO-BREAK SPACE}%" for name in ("where", "light"))
        numbers = f"{knob['above']:.3f} | {knob['beside']:.3f} | {' | '.join(shares)}"
        lines.append(f"| {NAMES[knob['row']]} | {changed} | {numbers} |")
    return "\n".join(lines)


def card(found: dict) -> str:
    """What was done, and what came out."""
    grams = ", ".join(f"{above:.3f} with n = {order}" for order, above in found["counted"].items())
    sizes = "; ".join(f"{NAMES[row]}: {number:,}" for row, number in found["parameters"].items())
    rates = "; ".join(f"{NAMES[row]}: {each.learning_rate:g}" for row, each in ROWS.items())
    return f"""# The machine of stories, a part at a time

Each row has a part more than the row above. The numbers stand in `record.json`, the weights of the rows that are
trained, for each of three seeds, in `machines.safetensors`, rounded to 16 bits; the last row with the first seed is the
stored model `stories`, too.

- **Data.** Stories of the little world (`pf.data.stories`), {growing.LENGTH} words after the first full stop.
  {growing.NUM_STORIES:,} to learn from, others for each seed; words and pairs are counted in
  {growing.NUM_COUNTED:,} of them. {growing.NUM_KEPT_BACK} others are kept back, whose lowest possible loss, computed
  from the program's own probabilities, is {found["lowest"]:.4f} nats per word.
- **Models.** Width 64, 8 heads where there are several, blocks with RMS norms before the sublayers, gelu, an inner
  width of 256, no biases; positions by ALiBi. Learned numbers: {sizes}.
- **Training.** {growing.BATCH_SIZE} stories a step, AdamW, a warm-up of 100 steps, then half a cosine down to a tenth
  of the rate, weight decay 0.1; 1,000 steps, and {ROWS["decoder"].num_steps:,} in the last row. Rates:
  {rates}. All settings
  stand in `lab/growing.py`; `make models` trains them again.
- **Result.** Nats per word above the lowest possible, mean of the seeds (least to largest), and right answers to what
  is worn, where somebody or something is, who has a thing, and whether it is light; seeds 0, 1 and 2:

{table(found)}

{asked_lines({row: found["rows"][row] for row in ("block", "stack", "positions", "decoder")})}

- **Real text.** Each machine has learned the Python reference, too, a letter at a time, with 97 tokens instead of 40
  and all else as for the stories, once: {growing.BATCH_SIZE} windows of {growing.LENGTH} letters a step
  (`lab/staircase/real_text.py`). The last column is its loss on whole topics that were held out. Letters and pairs of
  letters are counted, with Kneser–Ney smoothing.
- **Opponents.** n-gram models with modified Kneser–Ney smoothing, which have counted all stories of seed 0, are on
  100 of the stories kept back, in nats per word above the lowest: {grams}.
- **Knobs turned.** One change in a row, with the first seed:

{knob_lines(found["knobs"])}

- **Limits.** One made-up world, one batch size; the knobs with one seed. Average, heads and block learn best at the
  largest rate but one, or the largest, that was tried. The runs of 1,000 steps are short: with blocks they still learn.
- **Licence.** The weights and numbers are Apache-2.0, as the code.

{of_stories(found)}"""


def of_stories(found: dict) -> str:
    """The part of the card on the last row's first model, which live figures run."""
    last = found["rows"]["decoder"][0]
    kinds = "\n".join(
        f"| {kind} | {right:.1%} | {above:.4f} | {number:,} |" for kind, (above, right, number) in last["kinds"].items()
    )
    return f"""## The decoder of stories

The last row with the first seed is stored for itself: the machine with all its parts, four blocks of width 64 that tell
stories of the little world.

- **Model.** `stories.json`, {found["parameters"]["decoder"]:,} parameters; its tokens are the world's forty words.
- **Result.** Seed 0, on {growing.NUM_KEPT_BACK} stories kept back: {last["above"]:.4f} nats per word above the lowest
  loss possible, which is {found["lowest"]:.4f}. By kind of word, the share of right guesses, the nats above the lowest,
  and how many such words there are ("other" words are no answers, and may be one of several):

| kind | right | nats above | words |
|---|---|---|---|
{kinds}

- **Limits.** It knows nothing but this world.
- **Licence.** The weights are Apache-2.0, as the code.
"""


def turned(row: str, changed: dict) -> dict:
    """What comes of the first seed of a row after a change."""
    found = result(dataclasses.replace(ROWS[row], **changed), 0)
    shares = {name: round(float(share(found, ASKED[name])), 4) for name in ("where", "light")}
    return {"row": row, "changed": changed, "above": found["above"], "beside": result(ROWS[row], 0)["above"]} | shares


def learned(models: dict[str, list]) -> dict[str, list[dict]]:
    """The results of all rows, counted ones first."""
    ways = {"words": growing.counted_words, "pairs": growing.counted_pairs}
    rows = {row: [growing.judged(way(seed)) for seed in SEEDS] for row, way in ways.items()}
    rows |= {row: [result(ROWS[row], seed) for seed in SEEDS] for row in models}
    return rows


def results() -> dict:
    """Train all rows, store weights, and return what each row is worth."""
    models = {row: [growing.trained(ROWS[row], seed) for seed in SEEDS] for row in ROWS}
    found = {
        "lowest": round(float(kept_back().least.mean()), 5),
        "rows": learned(models),
        "real text": real_text.losses(),
        "parameters": {row: pf.count_parameters(each[0]) for row, each in models.items()},
        "counted": {str(order): counted(order) for order in ORDERS},
        "knobs": [turned(*knob) for knob in KNOBS],
        "always the same": always_the_same(),
        "named most often": named_most_often(),
    }
    save_file(stored(models), LAB / "staircase" / "machines.safetensors")
    pf.save_model(LAB / "staircase" / "stories.safetensors", models["decoder"][0], growing.VOCABULARY)
    return found
