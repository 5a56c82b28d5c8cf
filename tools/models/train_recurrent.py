"""Train the recurrent language models of chapter 13 beside a decoder, on text and on copying; write losses with a card.

No weights are kept: the numbers are the result. `recurrent.json` holds them.
"""

import json
import sys
import time
from bisect import bisect_left
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from records import write_record
from train_decoder import VOCABULARY

import plainformer as pf
from plainformer.models.recurrent import RecurrentConfig, RecurrentModel

ROOT = Path(__file__).resolve().parents[2]
Kind = Literal["decoder", "rnn", "lstm", "gru"]
KINDS: tuple[Kind, ...] = ("decoder", "rnn", "lstm", "gru")
SEEDS = (0, 1, 2)
RATES = (3e-3, 1e-2, 3e-2)
SYMBOLS, BLANK, MARK, COPIED = 8, 8, 9, 8  # what the copying task is made of: ids 0 to 7, two more, eight to remember


class Task(NamedTuple):
    """What is read, how much of it in a step, for how long, and by a decoder of which size."""

    name: str
    vocab_size: int
    seq_len: int
    stack: pf.StackConfig
    num_steps: int
    batch_size: int = 16


def copying(delay: int) -> Task:
    """The task of remembering symbols over a delay of so many blanks."""
    small = pf.StackConfig(d_model=40, num_layers=2, num_heads=4)
    return Task(f"copy {delay}", SYMBOLS + 2, 2 * COPIED + delay, small, num_steps=600, batch_size=32)


TEXT = Task("text", len(VOCABULARY), 64, pf.StackConfig(d_model=64, num_layers=4, num_heads=4), num_steps=800)
DELAYS = (10, 80)
TASKS = (TEXT, *map(copying, DELAYS))


def new_model(kind: Kind, task: Task, seed: int):
    """A decoder, or a recurrent model of the width with which it has as many parameters as that decoder."""
    key = jax.random.key(seed)
    if kind == "decoder":
        return pf.Decoder(pf.DecoderConfig(task.vocab_size, task.seq_len, stack=task.stack), key=key)
    return RecurrentModel(RecurrentConfig(task.vocab_size, width_for(kind, task), kind), key=key)


@cache
def width_for(kind: Literal["rnn", "lstm", "gru"], task: Task) -> int:
    """The width at which a recurrent model has about as many parameters as the decoder of the task."""
    wanted = pf.count_parameters(eqx.filter_eval_shape(new_model, "decoder", task, 0))

    def surplus(width: int) -> int:
        config = RecurrentConfig(task.vocab_size, width, kind)
        return pf.count_parameters(eqx.filter_eval_shape(RecurrentModel, config, key=jax.random.key(0))) - wanted

    widths = range(16, 513)
    first_above = bisect_left(widths, 0, key=surplus)
    return min(widths[max(first_above - 1, 0) : first_above + 1], key=lambda width: abs(surplus(width)))


@cache
def texts() -> tuple[list[int], list[int], list[int]]:
    """What is trained on; half of what is held out, to choose learning rates by; and the other half, to judge by."""
    training, held_out = (VOCABULARY.encode(text) for text in pf.data.python_reference_splits())
    half = len(held_out) // 2
    return training, held_out[:half], held_out[half:]


def copy_texts(delay: int, seed: tuple[int, ...], num: int) -> pf.data.PaddedWindows:
    """Eight symbols, blanks, a mark, and the eight again: inputs, targets, and where the answer is due."""
    symbols = np.random.default_rng(seed).integers(SYMBOLS, size=(num, COPIED))
    blanks, mark = np.full((num, delay), BLANK), np.full((num, 1), MARK)
    rows = np.concatenate([symbols, blanks, mark, symbols], axis=1).astype(np.int32)
    is_due = np.broadcast_to(np.arange(rows.shape[1] - 1) >= COPIED + delay, rows[:, 1:].shape)
    return pf.data.PaddedWindows(*map(jnp.asarray, (rows[:, :-1], rows[:, 1:], is_due)))


def batches(task: Task, seed: int):
    """The function from a step to its batch."""
    if task == TEXT:
        return pf.data.random_windows(texts()[0], task.seq_len, task.batch_size, seed=seed)
    delay = task.seq_len - 2 * COPIED
    return lambda step: copy_texts(delay, (seed, step), task.batch_size)


def held_out_loss(model, task: Task, to_judge: bool) -> float:
    """The loss on text to choose by, or to judge by; for copying, on fresh texts."""
    if task == TEXT:
        return float(pf.training.corpus_loss(model, pf.data.consecutive_windows(texts()[1 + to_judge], task.seq_len)))
    return float(pf.training.next_token_loss(model, copy_texts(task.seq_len - 2 * COPIED, (9, to_judge), 256)))


def share_copied(model, task: Task) -> float:
    """The share of symbols that are most likely where they are due."""
    inputs, targets, is_due = copy_texts(task.seq_len - 2 * COPIED, (9, True), 256)
    return float((model(inputs).argmax(axis=-1) == targets)[is_due].mean())


class Nudged(eqx.Module):
    """An embedding whose rows can be moved, to ask what follows from that."""

    embedding: pf.TokenEmbedding
    nudge: jax.Array

    @property
    def weight(self) -> jax.Array:
        """The table itself, which a decoder's output uses."""
        return self.embedding.weight

    def __call__(self, ids):
        return self.embedding(ids) + self.nudge


@eqx.filter_jit
def reach(model, tokens) -> jax.Array:
    """How strongly the last logits depend on the input so many steps back, relative to the last input itself."""

    def last_logits(nudge):
        return eqx.tree_at(lambda m: m.embedding, model, Nudged(model.embedding, nudge))(tokens)[-1]

    slopes = jax.jacrev(last_logits)(jnp.zeros((len(tokens), model.embedding.weight.shape[1])))
    sizes = jnp.sqrt((slopes**2).sum(axis=(0, 2)))[::-1]
    return sizes / sizes[0]


def reaches(model) -> list[float]:
    """Their geometric mean over windows of the text to judge by."""
    windows = pf.data.consecutive_windows(texts()[2], TEXT.seq_len).inputs[:8]
    return [
        round(float(size), 6) for size in jnp.exp(jnp.mean(jnp.log(jnp.stack([reach(model, w) for w in windows])), 0))
    ]


def run(kind: Kind, task: Task, seed: int, rate: float, num_steps: int) -> dict:
    """Train one model, or read what was found when it was; kept under `build/models/recurrent`."""
    name = f"{task.name}-{kind}-{seed}-{rate:g}-{num_steps}-{len(texts()[0])}".replace(" ", "-")
    kept = ROOT / "build" / "models" / "recurrent" / f"{name}.json"
    if not kept.exists():
        settings = pf.TrainingConfig(num_steps=num_steps, learning_rate=rate, warmup_steps=50, seed=seed)
        model, metrics = pf.fit(
            new_model(kind, task, seed), pf.training.next_token_loss, batches(task, seed), settings, progress=False
        )
        losses = [each["loss"] for each in metrics]
        found: dict = {"kind": kind, "seed": seed, "rate": rate, "num_steps": num_steps}
        found |= {"choose": held_out_loss(model, task, False), "judge": held_out_loss(model, task, True)}
        found["first"] = [round(loss, 4) for loss in losses[:5]]
        found |= {"reach": reaches(model)} if task == TEXT else {"share": share_copied(model, task)}
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(found), encoding="utf-8")
        print(name, round(found["judge"], 4), round(found.get("share", 0), 3), flush=True)
    return json.loads(kept.read_text(encoding="utf-8"))


def best_rate(kind: Kind, task: Task) -> float:
    """The learning rate with which seed 0 has the lowest loss on what is kept to choose by."""
    return min(RATES, key=lambda rate: run(kind, task, 0, rate, task.num_steps)["choose"])


def fastest(action, repeats: int = 5) -> float:
    """The shortest time that an action takes, in seconds, after one that compiles."""
    action()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return min(times)


def step_time(kind: Kind, seq_len: int, batch_size: int) -> float:
    """Seconds for a loss with its gradient, of a model for text."""
    model = new_model(kind, TEXT._replace(seq_len=seq_len), 0)
    inputs, targets = pf.data.random_windows(texts()[0], seq_len, batch_size)(0)
    both = eqx.filter_jit(eqx.filter_value_and_grad(lambda model: pf.cross_entropy(model(inputs), targets)))
    return fastest(lambda: jax.block_until_ready(both(model)[0]))


def writing_time(kind: Kind, seq_len: int, num: int = 16) -> float:
    """Seconds for reading one more token of a text of this length."""
    model = new_model(kind, TEXT._replace(seq_len=seq_len), 0)
    text = jnp.asarray(texts()[0][:seq_len])
    memory = model.make_cache() if kind == "decoder" else model.start()
    memory = eqx.filter_jit(lambda model, memory: model.extend(text[:-num], memory)[1])(model, memory)

    @eqx.filter_jit
    def read(model, memory):
        for n in range(seq_len - num, seq_len):
            rows, memory = model.extend(text[n : n + 1], memory)
        return rows

    return fastest(lambda: jax.block_until_ready(read(model, memory))) / num


LENGTHS, TOKENS_PER_STEP = (64, 256, 1024), 2048


def costs() -> dict[str, dict[str, list[float]]]:
    """Milliseconds per step of 2,048 tokens and per token written, for each length of text, and floats remembered."""
    return {
        kind: {
            "step": [round(1e3 * step_time(kind, n, TOKENS_PER_STEP // n), 1) for n in LENGTHS],
            "token": [round(1e3 * writing_time(kind, n), 3) for n in LENGTHS],
        }
        for kind in KINDS
    }


def steps_in_equal_time(seconds: dict[str, float]) -> dict[str, int]:
    """How many steps of each kind take as long as the decoder's."""
    return {kind: round(TEXT.num_steps * seconds["decoder"] / seconds[kind] / 10) * 10 for kind in KINDS}


def results() -> dict:
    """All numbers of the card, trained anew where they are not kept."""
    rates = {task.name: {kind: best_rate(kind, task) for kind in KINDS} for task in TASKS}
    runs = {
        task.name: [run(kind, task, seed, rates[task.name][kind], task.num_steps) for kind in KINDS for seed in SEEDS]
        for task in TASKS
    }
    timed = ROOT / "build" / "models" / "recurrent" / "costs.json"
    if not timed.exists():  # kept, as the number of steps in equal time follows from it
        seconds = {kind: step_time(kind, TEXT.seq_len, TEXT.batch_size) for kind in KINDS}
        timed.write_text(json.dumps({"seconds": seconds, "costs": costs()}), encoding="utf-8")
    found = json.loads(timed.read_text(encoding="utf-8"))
    steps = steps_in_equal_time(found["seconds"])
    runs["text in equal time"] = [
        run(kind, TEXT, seed, rates["text"][kind], steps[kind]) for kind in KINDS for seed in SEEDS
    ]
    parameters = {
        task.name: {kind: pf.count_parameters(eqx.filter_eval_shape(new_model, kind, task, 0)) for kind in KINDS}
        for task in TASKS
    }
    training = len(texts()[0])
    return {"training": training, "parameters": parameters, "rates": rates, "runs": runs, "steps": steps} | found


def mean_and_spread(numbers: list[float], digits: int = 2) -> str:
    """Mean and standard deviation of the seeds."""
    return f"{np.mean(numbers):.{digits}f} ± {np.std(numbers, ddof=1):.{digits}f}"


def runs_of(runs: list[dict], kind: Kind, number: str) -> list[float]:
    """What the three seeds of one kind reached."""
    return [run[number] for run in runs if run["kind"] == kind]


def text_table(found: dict) -> str:
    """Losses on text after equal steps and in equal time, a line for each kind."""
    lines = [
        "| model | learning rate | equal steps | seeds 0, 1, 2 | steps in equal time | loss then | seeds 0, 1, 2 |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind in KINDS:
        cells: list[str] = [kind, f"{found['rates']['text'][kind]:g}"]
        for name in ("text", "text in equal time"):
            losses = runs_of(found["runs"][name], kind, "judge")
            cells += [mean_and_spread(losses), ", ".join(f"{loss:.2f}" for loss in losses)]
        cells.insert(4, f"{found['steps'][kind]:,}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def copy_table(found: dict) -> str:
    """The share of symbols copied rightly, a line for each kind."""
    titles = " | ".join(f"over {delay} blanks | seeds 0, 1, 2" for delay in DELAYS)
    lines = [f"| model | {titles} |", "|---" * (1 + 2 * len(DELAYS)) + "|"]
    for kind in KINDS:
        cells: list[str] = [kind]
        for delay in DELAYS:
            shares = [100 * share for share in runs_of(found["runs"][f"copy {delay}"], kind, "share")]
            cells += [f"{mean_and_spread(shares, 1)}%", ", ".join(f"{share:.1f}%" for share in shares)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def cost_table(found: dict) -> str:
    """Milliseconds per step and per token written, by the length of a text."""
    titles = " | ".join(f"{what}, length {n}" for what in ("step", "token") for n in LENGTHS)
    lines = [f"| model | {titles} |", "|---" * (1 + 2 * len(LENGTHS)) + "|"]
    for kind, cost in found["costs"].items():
        cells = [f"{ms:.0f}" for ms in cost["step"]] + [f"{ms:.2f}" for ms in cost["token"]]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join(lines)


def reach_table(found: dict) -> str:
    """How strongly the last logits depend on earlier inputs, after training on text."""
    backs = (1, 4, 16, 48)
    lines = [f"| model | {' | '.join(f'{k} back' for k in backs)} |", "|---" * (1 + len(backs)) + "|"]
    for kind in KINDS:
        sizes = np.exp(np.mean(np.log(np.maximum(runs_of(found["runs"]["text"], kind, "reach"), 1e-6)), axis=0))
        lines.append(f"| {kind} | {' | '.join(f'{sizes[k]:.4f}' for k in backs)} |")
    return "\n".join(lines)


def costs_of_card(found: dict) -> str:
    """What the card says of time."""
    return f"""- **Cost.** Milliseconds on two cores of one x86-64 machine, on which others were at work: for a loss
  with its gradient on {TOKENS_PER_STEP:,} tokens, and for reading one more token at the end of a text, the decoder
  from its cache:

{cost_table(found)}"""


def rates_of_card(found: dict) -> str:
    """The chosen learning rates, task by task."""
    return "; ".join(
        f"{name}: " + ", ".join(f"{kind} {rate:g}" for kind, rate in each.items())
        for name, each in found["rates"].items()
    )


LIMITS = """- **Limits.** One size, one text, few steps, one layer, no dropout; a decay of weights that suits a
  decoder. Where the best rate is the largest tried, a larger one may be better still. Times, and with them the steps in
  equal time, are of one machine; an accelerator would favour the decoder, which reads all tokens of a text at once. On
  other versions of Python the text differs a little, and so do the losses.
- **Licence.** The numbers are under Apache-2.0, as the code; the text is part of CPython and has its licence."""


def card(found: dict) -> str:
    """What was done, and what came out."""
    counts = "; ".join(
        f"{name}: " + ", ".join(f"{kind} {number:,}" for kind, number in each.items())
        for name, each in found["parameters"].items()
    )
    rates = rates_of_card(found)
    return f"""# The recurrent models of chapter 13

A plain recurrent network, an LSTM and a GRU beside a decoder of equal size, on text and on copying. No weights are
kept: the numbers are the result, and stand in `recurrent.json`.

- **Data.** Text: `plainformer.data.python_reference_splits()` of Python {found["python"]}, one token per character,
  {found["training"]:,} to train on; of what is held out one half to choose learning rates by, the other to judge by.
  Copying: {COPIED} random symbols of {SYMBOLS}, blanks, a mark, and the symbols again, which alone count; fresh texts.
- **Models.** One layer of one cell, tokens as wide as the state, the gate that keeps with a bias of one, the plain
  network with an orthogonal matrix; decoders with learned positions, {TEXT.stack.num_layers} blocks of width
  {TEXT.stack.d_model} for text and 2 of width 40 for copying. Parameters, {counts}.
- **Training.** AdamW with warm-up and half a cosine, the same for all. Text: {TEXT.num_steps} steps of
  {TEXT.batch_size} windows of {TEXT.seq_len}. Copying: {copying(10).num_steps} steps of {copying(10).batch_size} texts.
  Seeds 0 to 2 for weights and batches. Of the rates {", ".join(f"{rate:g}" for rate in RATES)} each has the best of
  seed 0: {rates}. All settings stand in `tools/models/train_recurrent.py`; `make models` trains again.
- **Text.** Loss in nats per character, mean and standard deviation of three seeds; in equal time each is trained for as
  long as the decoder's {TEXT.num_steps} steps take:

{text_table(found)}

- **Copying.** Symbols right, mean and standard deviation of three seeds; chance is 12.5%:

{copy_table(found)}

- **Reach.** Size of the derivative of the last logits by the input so many steps back, relative to the last input, in
  the models trained on text; geometric mean of eight windows and three seeds, nothing below 0.000001 told apart:

{reach_table(found)}

{costs_of_card(found)}

{LIMITS}
"""


def train() -> None:
    """Train all models, and write what they reached with a card."""
    found = results() | {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    write_record("recurrent", found, card(found))


if __name__ == "__main__":
    train()
