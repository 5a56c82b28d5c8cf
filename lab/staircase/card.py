"""What the record of the machine that grows says in words: facts, tables and the card."""

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from lab import asked, growing
from lab.growing import PARTS, ROWS
from lab.records import ends, percent
from lab.staircase import telling


def share(found: dict, kinds: tuple[str, ...]) -> float:
    """The share of right answers to several kinds of questions."""
    parts = [found["kinds"][kind] for kind in kinds]
    return sum(right * number for _, right, number in parts) / sum(number for *_, number in parts)


ASKED = {"wears": ("wears",), "where": ("where 1", "where 2", "where 3"), "who": ("who",), "light": ("light",)}
QUESTIONS = "to wear", "where", "who", "light"
NONE, SIGN = "–", "\N{NO-BREAK SPACE}%"


def line_of(name: str, rate: str, found: list[dict], real: str) -> list[str]:
    """The line of a row in card and chapters.

    Its rate, nats above the lowest loss, possible sentences, shares of right answers, a real text.
    """
    above = [each["above"] for each in found]
    shares = [np.mean([share(each, kinds) for each in found]) for kinds in ASKED.values()]
    percents = [f"{100 * each:.0f}{SIGN}" for each in (np.mean([each["possible"] for each in found]), *shares)]
    return [name, rate, f"{np.mean(above):.3f} ({min(above):.3f} to {max(above):.3f})", *percents, real]


def cells(*each: str) -> str:
    """A line of a table."""
    return f"| {' | '.join(each)} |"


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
PART_NAMES = {
    "heads": "eight heads",
    "norms": "and norms, before the heads and at the end",
    "tying": "and the table as read-out",
    "block": "and the network: a block",
}


HEAD = (
    "machine",
    "rate, steps",
    "nats per word above the lowest",
    "possible sentences",
    *QUESTIONS,
    "real text, nats per letter",
)


def floor(found: dict) -> list[list[str]]:
    """What is right without a machine: the best of all answers given always, and the room that was named most often."""
    always = [f"{100 * found['always the same'][column]:.0f}{SIGN}" for column in ASKED]
    most = [f"{100 * found['named most often']:.0f}{SIGN}" if column == "where" else NONE for column in ASKED]
    rows = {"always the same answer": always, "the room named most often": most}
    return [[f"*{name}*", NONE, NONE, NONE, *shares, NONE] for name, shares in rows.items()]


def table(found: dict, rows: Iterable[str], with_rates: bool) -> str:
    """Rows of the staircase under those that need no machine."""
    lines = [list(HEAD), ["---"] * len(HEAD), *floor(found)]
    for row in rows:
        rate = f"{ROWS[row].learning_rate:g}, {ROWS[row].num_steps:,}" if row in ROWS else NONE
        lines.append(line_of(NAMES[row], rate, found["rows"][row], f"{found['real text'][row]:.2f}"))
    return "\n".join(cells(*line[:1], *line[1 if with_rates else 2 :]) for line in lines)


def parts_table(found: dict) -> str:
    """From eight heads to a block: what each part brings, at the best of the rates that were tried."""
    head = cells("machine", "rate", "nats per word above the lowest", "numbers")
    lines = [head, "|---" * 4 + "|"]
    for row in ("heads", *PARTS, "block"):
        above = [each["above"] for each in (found["rows"] | found["parts"])[row]]
        how = f"{np.mean(above):.3f} ({min(above):.3f} to {max(above):.3f})"
        rate = (ROWS | PARTS)[row].learning_rate
        lines.append(cells(PART_NAMES[row], f"{rate:g}", how, f"{found['parameters'][row]:,}"))
    return "\n".join(lines)


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
    possible = [seed["possible"] for seed in seeds]
    texts |= ends("possible", (100 * each for each in possible), ".0f") | {
        "possible": percent(float(np.mean(possible)))
    }
    return texts | {"above": f"{np.mean(above):.3f}"}


def facts(found: dict) -> dict[str, str]:
    """What chapters say: of each row, on a real text, of counting and guessing; and tables."""
    texts = {f"{row}.{name}": text for row, seeds in found["rows"].items() for name, text in facts_of(seeds).items()}
    texts |= {f"{row}.real": f"{loss:.2f}" for row, loss in found["real text"].items()}
    texts["most_often"] = percent(found["named most often"])
    texts |= {
        f"scheme.{each['changed']['scheme']}": f"{each['above']:.3f}"
        for each in found["knobs"]
        if "scheme" in each["changed"]
    }
    texts |= {f"counted.{order}": f"{above:.3f}" for order, above in found["counted"].items()}
    rows = list(NAMES)
    texts |= {f"rows.{row}": table(found, rows[max(place - 1, 0) : place + 1], False) for place, row in enumerate(rows)}
    texts |= {"whole": table(found, rows, True), "parts": parts_table(found)}
    texts |= {f"{row}.heard": f"```text\n{text}\n```" for row, text in found["heard"].items()}
    for before, after in pairwise(("block", "stack", "positions", "decoder")):
        texts[f"asked.{after}"] = asked_table({row: found["rows"][row] for row in (before, after)})
    return texts


def asked_lines(rows: dict[str, list[dict]]) -> str:
    """What the card says of the questions."""
    return f"""- **Questions.** Short stories told with all people, rooms and things, and walks that are drawn
  (`lab/asked.py`); right answers in per cent, seeds 0, 1 and 2. A line that begins with *the same* has the stories of
  the line above it, and counts the wrong answers that name the room to which the other person went:

{asked_table(rows)}"""


def knob_lines(knobs: list[dict]) -> str:
    """A line for each change that was tried in a row, what came out, and how the row stands."""
    lines = ["| row | changed | nats above the lowest | as it stands | where | light |", "|---|---|---|---|---|---|"]
    for knob in knobs:
        changed = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in knob["changed"].items())
        shares = (f"{100 * knob[name]:.0f}\N{NO-BREAK SPACE}%" for name in ("where", "light"))
        numbers = f"{knob['above']:.3f} | {knob['beside']:.3f} | {' | '.join(shares)}"
        lines.append(f"| {(PART_NAMES | NAMES)[knob['row']]} | {changed} | {numbers} |")
    return "\n".join(lines)


def card(found: dict) -> str:
    """What was done, and what came out."""
    grams = ", ".join(f"{above:.3f} with n = {order}" for order, above in found["counted"].items())
    sizes = "; ".join(f"{NAMES[row]}: {number:,}" for row, number in found["parameters"].items() if row in NAMES)
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
  of the rate, weight decay 0.1; the table has rates and steps. All settings stand in `lab/growing.py`; `make models`
  trains them again.
- **Result.** Nats per word above the lowest possible, mean of the seeds (least to largest), possible sentences, and
  right answers to what is worn, where somebody or something is, who has a thing, and whether it is light:

{table(found, NAMES, True)}

{asked_lines({row: found["rows"][row] for row in ("block", "stack", "positions", "decoder")})}

- **Real text.** Each machine has learned the Python reference, too, a letter at a time, with 97 tokens instead of 40
  and all else as for the stories, once: {growing.BATCH_SIZE} windows of {growing.LENGTH} letters a step
  (`lab/staircase/real_text.py`). The last column is its loss on whole topics that were held out. Letters and pairs of
  letters are counted, with Kneser–Ney smoothing.
- **Parts of a block.** From eight heads to the block, a part at a time, three seeds each:

{parts_table(found)}

- **Opponents.** n-gram models with modified Kneser–Ney smoothing, which have counted all stories of seed 0, are on
  100 of the stories kept back, in nats per word above the lowest: {grams}.
- **Knobs turned.** One change in a row, with the first seed:

{knob_lines(found["knobs"])}

- **Possible sentences.** The beginning `{telling.BEGINNING}` is continued {telling.NUM_STORIES} times by
  {telling.NUM_WORDS} words; of the whole sentences that were added, the share that is possible where it stands.
- **Limits.** One made-up world, one batch size; the knobs with one seed. The runs of 1,000 steps are short: with blocks
  they still learn.
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
