"""Train the six language models of the chapter on relations on a longer text, for longer; write their losses.

They read docstrings for ten times as many steps as in `lab/recurrent`, each at its best rate, with three seeds. No
weights are kept: the losses on the way, and at the end, are the result.
"""

from functools import cache, partial
from typing import Any

import numpy as np

import plainformer as pf
from lab import records
from lab.decoder.run import VOCABULARY
from lab.records import BUILD
from lab.recurrent.card import NAMES, table
from lab.recurrent.run import BEST, descend
from lab.recurrent.runs import CHOOSING_SEED, KINDS, RATES, SEEDS, TEXT, WARMUP, Kind, new_model

KEPT = BUILD / "recurrent_long"
TRIED_STEPS, STEPS, EVERY = 2000, 8000, 500
ORDER = 8  # of the count beside them
NUM_LETTERS = {"choose": 60_000, "judge": 200_000}  # of what is held out
START: dict[Kind, float] = {"gru": 0.01, "lstm": 0.017}


@cache
def texts() -> dict[str, list[int]]:
    """What is learned from, and two parts of what is held out: to choose rates by, and to judge by."""
    training, held_out = pf.data.docstring_splits()
    chosen, judged = NUM_LETTERS.values()
    parts = {"training": training, "choose": held_out[:chosen], "judge": held_out[-judged:]}
    return {name: VOCABULARY.encode(part) for name, part in parts.items()}


def loss_on(part: str, model) -> float:
    """Nats per letter on a part of what is held out."""
    windows = pf.data.consecutive_windows(texts()[part], TEXT.seq_len)
    return round(float(pf.training.corpus_loss(model, windows)), 5)


def run(kind: Kind, seed: int, rate: float, num_steps: int) -> dict:
    """Train one model on docstrings: its losses on the way on what rates are chosen by, and the one it is judged by."""

    def find() -> dict:
        model, metrics = pf.fit(
            new_model(kind, TEXT, seed),
            pf.training.next_token_loss,
            pf.data.random_windows(texts()["training"], TEXT.seq_len, TEXT.batch_size, seed=seed),
            pf.TrainingConfig(
                num_steps=num_steps, learning_rate=rate, warmup_steps=WARMUP, seed=seed, evaluate_every=EVERY
            ),
            evaluate=partial(loss_on, "choose"),
            progress=False,
        )
        curve = [[each["step"], each["validation_loss"]] for each in metrics if "validation_loss" in each]
        found: dict[str, Any] = {"seed": seed, "rate": rate, "curve": curve, "judge": loss_on("judge", model)}
        print(kind, seed, rate, num_steps, found["curve"][-1], found["judge"], flush=True)
        return found

    return records.kept(KEPT / f"{TEXT.seq_len}-{kind}-{seed}-{rate:g}-{num_steps}.json", find)


def best_of(kind: Kind) -> tuple[float, dict[str, float]]:
    """The rate whose loss is below those of both its neighbours, after a short training; and what was tried."""
    tried: dict[str, float] = {}

    def score(rate: float) -> float:
        tried[f"{rate:g}"] = run(kind, CHOOSING_SEED, rate, TRIED_STEPS)["curve"][-1][1]
        return tried[f"{rate:g}"]

    best = descend(RATES, START.get(kind, 0.0066), score)
    return best, dict(sorted(tried.items(), key=lambda each: float(each[0])))


def counted() -> dict[str, float]:
    """Nats per letter of a count on both parts of what is held out."""
    model = pf.training.NgramModel(texts()["training"], ORDER, TEXT.vocab_size, discount=None)
    return {part: round(float(np.mean(model.loss(texts()[part]))), 5) for part in NUM_LETTERS}


def results() -> dict:
    """Train all of them where they are not kept, and count."""
    found: dict[str, Any] = {}
    for kind in KINDS:
        rate, tried = best_of(kind)
        found[kind] = {"rate": rate, "tried": tried, "runs": [run(kind, seed, rate, STEPS) for seed in SEEDS]}
    count = records.kept(KEPT / "counted.json", counted)
    return {"letters": len(texts()["training"]), "docstrings": found, "counted": count}


def ends(runs: list[dict]) -> list[float]:
    """The losses that runs are judged by."""
    return [run["judge"] for run in runs]


def curve(runs: list[dict]) -> list[list[float]]:
    """Steps and the mean of the seeds' losses."""
    return np.mean([run["curve"] for run in runs], axis=0).tolist()


def passes(found: dict) -> float:
    """How often each letter was read."""
    return STEPS * TEXT.batch_size * TEXT.seq_len / found["letters"]


def text_table(found: dict) -> str:
    """A line for a count, and for each kind its rate, its losses on the way, and those of its seeds on what judges."""
    steps = (STEPS // 8, STEPS // 4, STEPS // 2, STEPS)
    head = ["model", "rate", *(f"{step:,} steps" for step in steps), "judged"]
    rows = [
        [
            f"count of {ORDER} letters",
            *[""] * 4,
            f"{found['counted']['choose']:.2f}",
            f"{found['counted']['judge']:.3f}",
        ]
    ]
    for kind in KINDS:
        each = found["docstrings"][kind]
        judged = ends(each["runs"])
        losses = [f"{loss:.2f}" for step, loss in curve(each["runs"]) if step in steps]
        last = f"{np.mean(judged):.3f} ({min(judged):.3f} to {max(judged):.3f})"
        rows.append([NAMES[kind], f"{each['rate']:g}", *losses, last])
    return table(head, rows)


def facts(found: dict) -> dict[str, str]:
    """What chapters say: the table, by how much today's decoder is ahead of the GRU, and passes over the text."""
    modern, gru = (np.mean(ends(found["docstrings"][kind]["runs"])) for kind in BEST)
    return {"table": text_table(found), "ahead": f"{gru - modern:.2f}", "passes": f"{passes(found):.1f}"}


def card(found: dict) -> str:
    """What was done, and what came out."""
    tried = "; ".join(
        f"{NAMES[kind]} " + ", ".join(f"{rate}: {loss:.3f}" for rate, loss in each["tried"].items())
        for kind, each in found["docstrings"].items()
    )
    return f"""# Recurrent networks beside decoders, on a longer text and for longer

The six kinds of `lab/recurrent`, with as many numbers, on docstrings. No weights are kept: the losses on the way and at
the end are the result, and stand in `record.json`.

- **Data.** `plainformer.data.docstring_splits()`, one token per character of `lab/decoder`'s vocabulary:
  {found["letters"]:,} to learn from. Of what is held out the first {NUM_LETTERS["choose"]:,} choose learning rates,
  the last {NUM_LETTERS["judge"]:,} judge.
- **Training.** {STEPS:,} steps of {TEXT.batch_size} windows of {TEXT.seq_len}, {passes(found):.1f} passes, AdamW with
  warm-up and half a cosine, the same for all; seeds {SEEDS[0]} to {SEEDS[-1]}. The rate is below both its neighbours,
  each 1.6 times the one before, after {TRIED_STEPS:,} steps with seed {CHOOSING_SEED}: {tried}.
- **Result.** Nats per letter: on the way, and after all steps, on what rates are chosen by, mean of the seeds; and on
  what judges, mean and range:

{text_table(found)}

- **Limits.** One layer of each older network; no dropout; windows of {TEXT.seq_len}, across which a recurrent network
  carries nothing; less than one pass over the text, and all still fall. A count of eight letters is ahead of all six.
- **Licence.** The numbers are under Apache-2.0, as the code; the texts have the licences of their packages.
"""
