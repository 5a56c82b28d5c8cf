"""Train the six language models of the chapter on relations on a longer text, for longer; write their losses.

They read docstrings for ten times as many steps as in `lab/recurrent`, each at its best rate, with three seeds; two of
them in windows four times as long, too. And the copying over 80 blanks, to the end. No weights are kept: the losses on
the way, and at the end, are the result.
"""

from functools import cache, partial
from typing import Any

import numpy as np

import plainformer as pf
from lab import records
from lab.decoder.run import VOCABULARY
from lab.records import BUILD, percent
from lab.recurrent.card import NAMES, table, with_range
from lab.recurrent.run import BEST, descend
from lab.recurrent.runs import (
    CHOOSING_SEED,
    COPY,
    KINDS,
    RATES,
    SEEDS,
    TEXT,
    WARMUP,
    Kind,
    Task,
    copy_texts,
    held_out_loss,
    new_model,
    share_copied,
)

KEPT = BUILD / "recurrent_long"
DOCSTRINGS = TEXT._replace(name="docstrings")
FAR = TEXT._replace(name="docstrings, windows of 256", seq_len=256, batch_size=4)
TRIED_STEPS, STEPS, EVERY = 2000, 8000, 500
NUM_LETTERS = {"choose": 60_000, "judge": 200_000}  # of what is held out
START: dict[Kind, float] = {"gru": 0.01, "lstm": 0.017}
COPYING, COPY_STEPS, COPY_EVERY, COPY_RATES = COPY[80], 3000, 250, (0.003, 0.01, 0.03, 0.06, 0.12)


@cache
def texts() -> dict[str, list[int]]:
    """What is learned from, and two parts of what is held out: to choose rates by, and to judge by."""
    training, held_out = pf.data.docstring_splits()
    chosen, judged = NUM_LETTERS.values()
    parts = {"training": training, "choose": held_out[:chosen], "judge": held_out[-judged:]}
    return {name: VOCABULARY.encode(part) for name, part in parts.items()}


def loss_on(part: str, task: Task, model) -> float:
    """Nats per letter on a part of what is held out."""
    windows = pf.data.consecutive_windows(texts()[part], task.seq_len)
    return round(float(pf.training.corpus_loss(model, windows)), 5)


def settings(num_steps: int, rate: float, seed: int, every: int = EVERY) -> pf.TrainingConfig:
    """How all are trained."""
    return pf.TrainingConfig(
        num_steps=num_steps, learning_rate=rate, warmup_steps=WARMUP, seed=seed, evaluate_every=every
    )


def curve_of(metrics: list[dict]) -> list[list[float]]:
    """Steps and losses on the way."""
    return [[each["step"], each["validation_loss"]] for each in metrics if "validation_loss" in each]


def run(kind: Kind, seed: int, rate: float, num_steps: int, task: Task = DOCSTRINGS) -> dict:
    """Train one model on docstrings: its losses on the way on what rates are chosen by, and the one it is judged by."""

    def find() -> dict:
        model, metrics = pf.fit(
            new_model(kind, task, seed),
            pf.training.next_token_loss,
            pf.data.random_windows(texts()["training"], task.seq_len, task.batch_size, seed=seed),
            settings(num_steps, rate, seed),
            evaluate=partial(loss_on, "choose", task),
            progress=False,
        )
        found: dict[str, Any] = {
            "seed": seed,
            "rate": rate,
            "curve": curve_of(metrics),
            "judge": loss_on("judge", task, model),
        }
        print(task.seq_len, kind, seed, rate, num_steps, found["curve"][-1], found["judge"], flush=True)
        return found

    return records.kept(KEPT / f"{task.seq_len}-{kind}-{seed}-{rate:g}-{num_steps}.json", find)


def best_of(kind: Kind) -> tuple[float, dict[str, float]]:
    """The rate whose loss is below those of both its neighbours, after a short training; and what was tried."""
    tried: dict[str, float] = {}

    def score(rate: float) -> float:
        tried[f"{rate:g}"] = run(kind, CHOOSING_SEED, rate, TRIED_STEPS)["curve"][-1][1]
        return tried[f"{rate:g}"]

    best = descend(RATES, START.get(kind, 0.0066), score)
    return best, dict(sorted(tried.items(), key=lambda each: float(each[0])))


def copied(kind: Kind, seed: int, rate: float) -> dict:
    """Train one model to copy over 80 blanks: its losses on the way, and how much it copies at the end."""

    def find() -> dict:
        model, metrics = pf.fit(
            new_model(kind, COPYING, seed),
            pf.training.next_token_loss,
            lambda step: copy_texts(80, (seed, step), COPYING.batch_size),
            settings(COPY_STEPS, rate, seed, COPY_EVERY),
            evaluate=lambda model: held_out_loss(model, COPYING, False),
            progress=False,
        )
        found: dict[str, Any] = {
            "seed": seed,
            "rate": rate,
            "curve": curve_of(metrics),
            "judge": held_out_loss(model, COPYING, True),
        }
        print("copy", kind, seed, rate, found["curve"][-1], found["judge"], flush=True)
        return found | {"share": share_copied(model, COPYING)}

    return records.kept(KEPT / f"copy-{kind}-{seed}-{rate:g}.json", find)


def copied_at_best(kind: Kind) -> dict:
    """Copying at the best of five rates, which a seed of its own chooses."""
    tried = {f"{rate:g}": copied(kind, CHOOSING_SEED, rate)["curve"][-1][1] for rate in COPY_RATES}
    best = min(COPY_RATES, key=lambda rate: tried[f"{rate:g}"])
    return {"rate": best, "tried": tried, "runs": [copied(kind, seed, best) for seed in SEEDS]}


def results() -> dict:
    """Train all of them where they are not kept."""
    found: dict[str, Any] = {}
    for kind in KINDS:
        rate, tried = best_of(kind)
        found[kind] = {"rate": rate, "tried": tried, "runs": [run(kind, seed, rate, STEPS) for seed in SEEDS]}
    return {
        "letters": len(texts()["training"]),
        "docstrings": found,
        "windows of 256": {kind: run(kind, 0, found[kind]["rate"], STEPS, FAR) for kind in BEST},
        "copying": {kind: copied_at_best(kind) for kind in KINDS},
    }


def ends(runs: list[dict]) -> list[float]:
    """The losses that runs are judged by."""
    return [run["judge"] for run in runs]


def curve(runs: list[dict]) -> list[list[float]]:
    """Steps and the mean of the seeds' losses."""
    steps = [step for step, _ in runs[0]["curve"]]
    losses = np.mean([[loss for _, loss in run["curve"]] for run in runs], axis=0)
    return [[step, float(loss)] for step, loss in zip(steps, losses, strict=True)]


def passes(found: dict) -> float:
    """How often each letter was read."""
    return STEPS * DOCSTRINGS.batch_size * DOCSTRINGS.seq_len / found["letters"]


def text_table(found: dict) -> str:
    """A line for each kind: its rate, the losses of the seeds, and on the way."""
    steps = (STEPS // 8, STEPS // 4, STEPS // 2)
    head = ["model", "rate", *(f"{step:,} steps" for step in steps), f"{STEPS:,} steps"]
    rows = []
    for kind in KINDS:
        each = found["docstrings"][kind]
        on_the_way = {int(step): loss for step, loss in curve(each["runs"])}
        losses = [f"{on_the_way[step]:.2f}" for step in steps]
        rows.append([NAMES[kind], f"{each['rate']:g}", *losses, f"**{with_range(ends(each['runs']))}**"])
    return table(head, rows)


def copy_table(found: dict) -> str:
    """A line for each kind: its rate, and the share of symbols copied rightly, seed by seed."""
    rows = [
        [NAMES[kind], f"{each['rate']:g}", ", ".join(percent(run["share"]) for run in each["runs"])]
        for kind, each in found["copying"].items()
    ]
    return table(["model", "rate", "symbols right, %"], rows)


def facts(found: dict) -> dict[str, str]:
    """What chapters say: the tables, by how much today's decoder is ahead, and in longer windows."""
    modern, gru = (ends(found["docstrings"][kind]["runs"]) for kind in BEST)
    far = {kind: run["judge"] for kind, run in found["windows of 256"].items()}
    return {
        "table.text": text_table(found),
        "table.copying": copy_table(found),
        "modern": f"{np.mean(modern):.3f}",
        "gru": f"{np.mean(gru):.3f}",
        "ahead": f"{np.mean(gru) - np.mean(modern):.2f}",
        "far.modern": f"{far['modern']:.2f}",
        "far.gru": f"{far['gru']:.2f}",
        "far.ahead": f"{far['gru'] - far['modern']:.2f}",
        "passes": f"{passes(found):.1f}",
    }


def tried(found: dict) -> str:
    """The rates of each kind, with the losses that they were judged by."""
    return "; ".join(
        f"{NAMES[kind]} " + ", ".join(f"{rate}: {loss:.3f}" for rate, loss in each["tried"].items())
        for kind, each in found.items()
    )


def card(found: dict) -> str:
    """What was done, and what came out."""
    of_text, of_copying = (tried(found[name]) for name in ("docstrings", "copying"))
    far = ", ".join(f"{NAMES[kind]} {run['judge']:.3f}" for kind, run in found["windows of 256"].items())
    return f"""# Recurrent networks beside decoders, on a longer text and for longer

The six kinds of `lab/recurrent`, with as many numbers, on docstrings, and on copying over {COPYING.seq_len - 16}
blanks, to the end. No weights are kept: the losses on the way and at the end are the result, and stand in
`record.json`.

- **Data.** `plainformer.data.docstring_splits()`, one token per character of `lab/decoder`'s vocabulary:
  {found["letters"]:,} to learn from. Of what is held out the first {NUM_LETTERS["choose"]:,} choose learning rates,
  the last {NUM_LETTERS["judge"]:,} judge.
- **Training.** {STEPS:,} steps of {DOCSTRINGS.batch_size} windows of {DOCSTRINGS.seq_len}, AdamW with warm-up and half
  a cosine, the same for all; seeds 0 to 2. The rate is below both its neighbours, each 1.6 times the one before, after
  {TRIED_STEPS:,} steps with seed {CHOOSING_SEED}: {of_text}.
- **Text.** Loss in nats per character; on the way on what rates are chosen by, mean of the seeds; at the end on what
  judges, mean and range:

{text_table(found)}

- **Windows of {FAR.seq_len}**, {FAR.batch_size} in a batch, as many steps, the same rates, seed 0: {far}.
- **Copying.** {COPY_STEPS:,} steps of {COPYING.batch_size} texts; the best of five rates after as many steps with seed
  {CHOOSING_SEED}, with the loss: {of_copying}. Symbols right with seeds 0, 1, 2; chance is 12.5%:

{copy_table(found)}

- **Limits.** One layer of each older network; no dropout; less than one pass over the text, and all still fall.
- **Licence.** The numbers are under Apache-2.0, as the code; the texts have the licences of their packages.
"""
