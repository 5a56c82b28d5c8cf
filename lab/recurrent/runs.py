"""The language models that the chapter on relations compares, their tasks, and the training of one of them on one task.

`run.py` trains them all. What a run found is kept under `build/models/recurrent`.
"""

from bisect import bisect_left
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab import records
from lab.decoder.run import VOCABULARY
from lab.records import BUILD
from plainformer.attention import GatedLinearAttention
from plainformer.models.recurrent import RecurrentConfig, RecurrentModel

KEPT = BUILD / "recurrent"
Kind = Literal["classic", "modern", "gated", "rnn", "lstm", "gru"]
KINDS: tuple[Kind, ...] = ("classic", "modern", "gated", "rnn", "lstm", "gru")
SEEDS, CHOOSING_SEED = (0, 1, 2), 9  # to report, and to choose learning rates by
RATES = tuple(float(f"{0.001 * 1.6**n:.2g}") for n in range(12))  # from 0.001 to 0.18, each 1.6 times the one before
STEPS, MANY_STEPS, WARMUP = 800, 4000, 50
SYMBOLS, BLANK, MARK, COPIED = 8, 8, 9, 8  # what the copying task is made of: ids 0 to 7, two more, eight to remember
DELAYS = (10, 80)
COPY_STEPS, COPY_RATES = (600, 3000), (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)


class Task(NamedTuple):
    """What is read, how much of it in a step, and by a decoder of which width and depth."""

    name: str
    vocab_size: int
    seq_len: int
    d_model: int
    num_layers: int
    batch_size: int


TEXT = Task("text", len(VOCABULARY), 64, 64, 4, 16)
HALF, TWICE = TEXT._replace(name="half", d_model=32), TEXT._replace(name="twice", d_model=128)
SHAKESPEARE = TEXT._replace(name="shakespeare")
COPY = {delay: Task(f"copy {delay}", SYMBOLS + 2, 2 * COPIED + delay, 40, 2, 32) for delay in DELAYS}
TASKS = {task.name: task for task in (TEXT, HALF, TWICE, SHAKESPEARE, *COPY.values())}


def decoder(task: Task, key, **changes) -> pf.Decoder:
    """A decoder of the task's size, with the block of 2019 but for the changes; heads are 10 wide, or 16."""
    num_heads = 4 if task.d_model == 40 else task.d_model // 16
    sizes = {"d_model": task.d_model, "num_layers": task.num_layers, "num_heads": num_heads}
    stack = pf.StackConfig(**sizes | changes)
    return pf.Decoder(pf.DecoderConfig(task.vocab_size, task.seq_len, stack=stack), key=key)


def modern(task: Task, key, d_ff: int, scheme: str = "rotary") -> pf.Decoder:
    """A decoder with today's block."""
    block = {"norm": "rms", "activation": "swiglu", "use_bias": False}
    return decoder(task, key, **block, position_scheme=scheme, d_ff=d_ff)


def gated(task: Task, key, d_ff: int, scheme: str = "rotary") -> pf.Decoder:
    """The same with gated linear attention in place of softmax attention, its last matrix as small at the start."""
    model_key, *keys = jax.random.split(key, 1 + task.num_layers)
    model = modern(task, model_key, d_ff, scheme)
    heads, small = model.stack.blocks[0].attention.num_heads, (2 * task.num_layers) ** 0.5
    layers = [
        GatedLinearAttention(task.d_model, heads, norm=pf.RMSNorm(task.d_model // heads), key=each) for each in keys
    ]
    layers = [eqx.tree_at(lambda layer: layer.output.weight, each, each.output.weight / small) for each in layers]
    return eqx.tree_at(lambda model: [block.attention for block in model.stack.blocks], model, layers)


def recurrent(cell: Literal["rnn", "lstm", "gru"], task: Task, key, width: int) -> RecurrentModel:
    """A recurrent model of this width."""
    return RecurrentModel(RecurrentConfig(task.vocab_size, width, cell), key=key)


def new_model(kind: Kind, task: Task, seed: int, scheme: str = "rotary", seq_len: int | None = None):
    """A model with about as many parameters as the task's decoder with the block of 2019, for texts of `seq_len`."""
    key, longer = jax.random.key(seed), task._replace(seq_len=seq_len or task.seq_len)
    if kind == "classic":
        return decoder(longer, key)
    size = size_for(kind, task)
    if kind == "modern":
        return modern(longer, key, size, scheme)
    return gated(longer, key, size, scheme) if kind == "gated" else recurrent(kind, task, key, size)


@cache
def size_for(kind: Kind, task: Task) -> int:
    """The inner width, or the width of the state, that gives the number of parameters of the block of 2019."""
    key, made = jax.random.key(0), {"modern": modern, "gated": gated}.get(kind)

    def parameters(make: Callable, *sizes) -> int:
        return pf.count_parameters(eqx.filter_eval_shape(make, *sizes))

    wanted = parameters(decoder, task, key)

    def surplus(size: int) -> int:
        if made is None:
            return parameters(recurrent, kind, task, key, size) - wanted
        return parameters(made, task, key, size) - wanted

    sizes = range(16, 1025)
    first_above = bisect_left(sizes, 0, key=surplus)
    return min(sizes[max(first_above - 1, 0) : first_above + 1], key=lambda size: abs(surplus(size)))


@cache
def texts(name: str = "text") -> tuple[list[int], list[int], list[int]]:
    """What is trained on; half of what is held out, to choose learning rates by; and the other half, to judge by."""
    splits = pf.data.tiny_shakespeare() if name == "shakespeare" else pf.data.python_reference_splits()
    training, held_out = (VOCABULARY.encode(text) for text in splits)
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
    if not task.name.startswith("copy"):
        return pf.data.random_windows(texts(task.name)[0], task.seq_len, task.batch_size, seed=seed)
    delay = task.seq_len - 2 * COPIED
    return lambda step: copy_texts(delay, (seed, step), task.batch_size)


def held_out_loss(model, task: Task, to_judge: bool) -> float:
    """The loss on text to choose by, or to judge by; for copying, on fresh texts."""
    if task in COPY.values():
        return float(pf.training.next_token_loss(model, copy_texts(task.seq_len - 2 * COPIED, (9, to_judge), 256)))
    windows = pf.data.consecutive_windows(texts(task.name)[1 + to_judge], task.seq_len)
    return round(float(pf.training.corpus_loss(model, windows)), 5)


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
    sizes = jnp.exp(jnp.mean(jnp.log(jnp.stack([reach(model, w) for w in windows])), 0))
    return [round(float(size), 6) for size in sizes]


def place_of(name: str) -> Path:
    """Where a finding is kept, under `build/models/recurrent`."""
    return KEPT / f"{name.replace(' ', '-')}.json"


def kept(name: str, find: Callable[[], dict]) -> dict:
    """What was found when this was first asked."""
    return records.kept(place_of(name), find)


def settings(num_steps: int, rate: float, seed: int) -> pf.TrainingConfig:
    """How all are trained."""
    return pf.TrainingConfig(num_steps=num_steps, learning_rate=rate, warmup_steps=WARMUP, seed=seed)


def run(kind: Kind, task: Task, seed: int, rate: float, num_steps: int, scheme: str = "rotary") -> dict:
    """Train one model, its rate falling along half a cosine."""

    def find() -> dict:
        model, metrics = pf.fit(
            new_model(kind, task, seed, scheme),
            pf.training.next_token_loss,
            batches(task, seed),
            settings(num_steps, rate, seed),
            progress=False,
        )
        found: dict[str, Any] = {"kind": kind, "seed": seed, "rate": rate, "num_steps": num_steps}
        found |= {"choose": held_out_loss(model, task, False), "judge": held_out_loss(model, task, True)}
        found["first"] = [round(each["loss"], 4) for each in metrics[:5]]
        if task in COPY.values():
            found["share"] = share_copied(model, task)
        if task == TEXT and seed == 0 and num_steps == STEPS:
            found["reach"] = reaches(model)
        print(task.name, kind, seed, rate, num_steps, found["choose"], found["judge"], found.get("share"), flush=True)
        return found

    suffix = "" if scheme == "rotary" else f"-{scheme}"
    return kept(f"{task.name}-{kind}-{seed}-{rate:g}-{num_steps}{suffix}", find)
