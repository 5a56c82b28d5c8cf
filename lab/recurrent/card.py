"""The card, the tables and the facts of the recurrent models: what `record.json` holds, in words."""

import numpy as np

from lab.records import ends, percent
from lab.recurrent.runs import (
    CHOOSING_SEED,
    COPIED,
    COPY,
    COPY_STEPS,
    DELAYS,
    KINDS,
    MANY_STEPS,
    STEPS,
    SYMBOLS,
    TEXT,
    Kind,
)

NAMES: dict[Kind, str] = {
    "classic": "decoder of 2019",
    "modern": "decoder of today",
    "gated": "gated linear",
    "rnn": "plain recurrent",
    "lstm": "LSTM",
    "gru": "GRU",
}
BACKS, LENGTHS, TOKENS_PER_STEP = (1, 4, 16, 48), (64, 1024), 2048
OTHERS: tuple[Kind, ...] = ("gated", "rnn", "lstm")  # those that are level with today's decoder


def runs_of(runs: list[dict], kind: Kind, number: str) -> list[float]:
    """What the seeds of one kind reached."""
    return [run[number] for run in runs if run["kind"] == kind]


def with_range(numbers: list[float]) -> str:
    """Mean, smallest and largest; of a single number, itself."""
    if len(numbers) == 1:
        return f"{numbers[0]:.2f}"
    return f"{np.mean(numbers):.2f} ({min(numbers):.2f} to {max(numbers):.2f})"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def text_table(found: dict) -> str:
    """Losses on text, a line for each kind: equal steps, equal time, five times the steps."""
    head = ["model", "rate", f"{STEPS} steps", "ms per step", "equal time", "loss then", f"{MANY_STEPS:,} steps"]
    rows = []
    for kind in KINDS:
        losses = [with_range(runs_of(found["runs"][name], kind, "judge")) for name in ("text", "equal time", "long")]
        clock = [f"{1e3 * found['seconds'][kind]:.0f}", f"{found['steps'][kind]:,} steps"]
        rows.append([NAMES[kind], f"{found['rates']['text'][kind]:g}", losses[0], *clock, *losses[1:]])
    return table(head, rows)


def other_half(found: dict) -> str:
    """The losses on the half that rates were chosen by, which orders the kinds otherwise."""
    parts = [("text", f"{STEPS} steps"), ("long", f"{MANY_STEPS:,} steps")]
    each = []
    for name, title in parts:
        losses = {kind: runs_of(found["runs"][name], kind, "choose") for kind in KINDS}
        each.append(f"{title}: " + ", ".join(f"{NAMES[kind]} {with_range(found)}" for kind, found in losses.items()))
    return "; ".join(each)


def shares(runs: list[dict], kind: Kind) -> str:
    """The shares of symbols copied rightly by the seeds of one kind; a single number if they are the same."""
    shown = [f"{share:.0%}" for share in runs_of(runs, kind, "share")]
    return ", ".join(shown if len(set(shown)) > 1 else shown[:1])


def copy_table(found: dict) -> str:
    """The share of symbols copied rightly, a line for each kind: after a short training, and after five times that."""
    names = [COPY[delay].name + end for delay in DELAYS for end in ("", " long")]
    rows = [[NAMES[kind], *(shares(found["runs"][name], kind) for name in names)] for kind in KINDS]
    heads = [f"{delay} blanks, {steps:,} steps" for delay in DELAYS for steps in COPY_STEPS]
    return table(["model", *heads], rows)


def cost_table(found: dict) -> str:
    """Milliseconds per step and per token written, by the length of a text."""
    head = ["model", *(f"{what}, length {n}" for what in ("step", "token") for n in LENGTHS)]
    rows = [
        [NAMES[kind], *(f"{ms:.0f}" for ms in cost["step"]), *(f"{ms:.2f}" for ms in cost["token"])]
        for kind, cost in found["costs"].items()
    ]
    return table(head, rows)


def reach_table(found: dict) -> str:
    """How strongly the last logits depend on earlier inputs, after training on text."""
    sizes = {run["kind"]: run["reach"] for run in found["runs"]["text"] if "reach" in run}
    rows = [[NAMES[kind], *(f"{sizes[kind][k]:.4f}" for k in BACKS)] for kind in KINDS]
    return table(["model", *(f"{k} back" for k in BACKS)], rows)


def tried(kinds: dict[Kind, list[list[float]]], form: str = ".3f") -> str:
    """The rates tried, kind by kind, and the loss that each was judged by."""
    return "; ".join(
        f"{NAMES[kind]} " + ", ".join(f"{rate:g}: {loss:{form}}" for rate, loss in each) for kind, each in kinds.items()
    )


def tried_copying(found: dict) -> str:
    """The same for copying, a line for each number of blanks and of steps."""
    return "\n".join(
        f"  - *Rates of copying*, {delay} blanks, {steps:,} steps, seed 0: {tried(kinds, '.3g')}."
        for delay in DELAYS
        for steps, end in zip(COPY_STEPS, ("", " long"), strict=True)
        if (kinds := found["tried with copying"][COPY[delay].name + end])
    )


def losses_of(runs: list[dict]) -> str:
    """What some runs reached, kind by kind."""
    return ", ".join(f"{NAMES[run['kind']]} {run['judge']:.2f}" for run in runs)


def counts_of(found: dict) -> str:
    """The parameters, task by task."""
    return "; ".join(
        f"{name}: " + ", ".join(f"{NAMES[kind]} {number:,}" for kind, number in each.items())
        for name, each in found["parameters"].items()
    )


def knobs(found: dict) -> str:
    """What was tried to make the conclusion fall."""
    runs = found["runs"]
    (lower,) = runs["long, lower rate"]
    half, twice = (
        ", ".join(f"{NAMES[run['kind']]} {run['judge']:.2f}" for run in part)
        for part in (runs["widths"][: len(runs["widths"]) // 2], runs["widths"][len(runs["widths"]) // 2 :])
    )
    return f"""- **Knobs turned.** What changes the order is said in {{ref}}`sec-relations`, too.
  - *Rates*, each 1.6 times the one before, with the loss to choose by: {tried(found["tried"])}.
{tried_copying(found)}
  - *Five times the steps*, one seed, and *equal time*, one seed: in the table above.
  - *Five times the steps at a rate of {lower["rate"]:g}*, {NAMES["modern"]}: {lower["judge"]:.2f}, and
    {lower["choose"]:.2f} on the other half.
  - *Half the width*: {half}. *Twice*: {twice}. One seed, the same rates.
  - *Another text*, Tiny Shakespeare by characters, one seed, the same rates: {losses_of(runs["shakespeare"])}.
  - *The other half* of the held-out text, by which the rates were chosen with another seed: {other_half(found)}.
  - *Gated linear attention without rotary positions*, one seed: {runs["no positions"][0]["judge"]:.2f}.
  - *Copying over {min(DELAYS)} blanks at a lower rate*, LSTM, {COPY_STEPS[1]:,} steps at a rate of
    {runs["copy, lower rate"][0]["rate"]:g}: {shares(runs["copy, lower rate"], "lstm")} of the symbols right.
  - *Another start for the LSTM*, which copies over {max(DELAYS)} blanks: with the biases of Tallec and Ollivier (2018),
    which keep for 1 to {COPY[max(DELAYS)].seq_len} steps, at a rate of 0.01, it has after {COPY_STEPS[0]} steps
    {", ".join(f"{share:.0%}" for share in found["slow start"])} of the symbols right."""


def losses_said(found: dict) -> dict[str, str]:
    """By how much losses on text differ, as facts: today's block from that of 2019, the GRU and the others from it."""
    losses = {
        name: {kind: float(np.mean(runs_of(found["runs"][name], kind, "judge"))) for kind in KINDS}
        for name in ("text", "equal time")
    }
    text = losses["text"]
    apart = {
        "text.block": text["classic"] - text["modern"],
        "text.others.apart": max(abs(text[kind] - text["modern"]) for kind in OTHERS),
    } | {f"{name}.gru.ahead": each["modern"] - each["gru"] for name, each in losses.items()}
    return {name: f"{loss:.2f}" for name, loss in apart.items()}


def facts(found: dict) -> dict[str, str]:
    """What chapters say: the tables, losses, reaches, what a better start brings, and milliseconds."""
    reach = {run["kind"]: run["reach"][BACKS[-1]] for run in found["runs"]["text"] if "reach" in run}
    texts = {"table.text": text_table(found), "table.copying": copy_table(found)} | losses_said(found)
    texts["reach.decoders"] = f"{max(reach['classic'], reach['modern']):.2f}"
    texts["reach.others"] = f"{max(reach[kind] for kind in KINDS[2:]):.3f}"
    texts |= {f"slow_start.{seed}": percent(share) for seed, share in enumerate(found["slow start"])}
    for place, length in enumerate(LENGTHS):
        for kind, cost in found["costs"].items():
            texts[f"costs.{kind}.step.{length}"] = f"{cost['step'][place]:.0f}"
            texts[f"costs.{kind}.token.{length}"] = f"{cost['token'][place]:.2f}"
    long = [found["costs"][kind]["step"][-1] for kind in ("rnn", "lstm", "gru")]
    return texts | ends(f"costs.recurrent.step.{LENGTHS[-1]}", long, ".0f")


def what_was_done(found: dict) -> str:
    """Texts, models and training."""
    short, long = COPY_STEPS
    of_copying = "; ".join(
        f"{name}: " + ", ".join(f"{NAMES[kind]} {rate:g}" for kind, rate in rates.items())
        for name, rates in found["rates"].items()
        if name != "text" and rates
    )
    return f"""\
- **Data.** Text: `plainformer.data.python_reference_splits()` of Python {found["python"]}, one token per character,
  {found["training"]:,} to train on; of what is held out one half to choose learning rates by, the other to judge by.
  Copying: {COPIED} random symbols of {SYMBOLS}, blanks, a mark, and the symbols again, which alone count; fresh texts.
- **Models.** The recurrent ones: one layer of one cell, tokens as wide as the state, the gate that keeps with a bias of
  one, the plain network with an orthogonal matrix. Decoders: {TEXT.num_layers} blocks of width {TEXT.d_model} for text,
  2 of width 40 for copying, 4 heads; with LayerNorm, GELU and learned positions, or with RMSNorm, SwiGLU and rotary
  ones: of 2019 and of today. Gated linear: the second with `GatedLinearAttention` for attention, queries and keys
  turned alike.
  Parameters, {counts_of(found)}.
- **Training.** AdamW with warm-up and half a cosine, the same for all. Text: {TEXT.batch_size} windows of
  {TEXT.seq_len} in a batch; the rate with the lowest loss on what is kept to choose by, with seed {CHOOSING_SEED};
  seeds 0 to 2 are reported. Copying: {short} steps of 32 texts, and {long:,} for what was not learned then; of
  the rates tried the one with the lowest loss to choose by, with seed 0: {of_copying}."""


def card(found: dict) -> str:
    """What was done, and what came out."""
    return f"""# Recurrent networks beside decoders, on text and on copying

A plain recurrent network, an LSTM, a GRU and gated linear attention beside two decoders of equal size, on text and on
copying. No weights are kept: the numbers are the result, and stand in `record.json`.

{what_was_done(found)}
- **Text.** Loss in nats per character, mean and range of three seeds; of one seed in equal time and after
  {MANY_STEPS:,} steps. In equal time each is trained as long as {STEPS} steps of the slowest take:

{text_table(found)}

- **Copying.** Symbols right with seeds 0, 1, 2; chance is 12.5%:

{copy_table(found)}

{knobs(found)}
- **Reach.** Size of the derivative of the last logits by the input so many steps back, relative to the last input, in
  the models trained on text with seed 0; geometric mean of eight windows, nothing below 0.000001 told apart:

{reach_table(found)}

- **Clock.** Milliseconds of processor time on one core, all kinds in turn, medians: for a step of training on
  {TOKENS_PER_STEP:,} tokens, and for reading one more token at the end of a text, the decoders from their caches. Other
  programs were at work and share caches and memory, so only ratios mean anything:

{cost_table(found)}

- **Limits.** One layer of each older network, which nobody would build so today; no dropout; a decay of weights that
  suits a decoder. Where the best rate of copying is at the end of those tried, nothing was learned at any of them. An
  accelerator would favour what reads all tokens of a text at once. On other versions of Python the text differs a
  little, and so do the losses.
- **Licence.** The numbers are under Apache-2.0, as the code; the text is part of CPython and has its licence.
"""
