"""Layers that keep a state, on two tasks of memory, and the training of one of them.

`run.py` trains them all. What a run found is kept under `build/models/delta`.
"""

from functools import partial
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.records import BUILD, kept
from plainformer.attention import GatedLinearAttention
from plainformer.training import learning_rate_schedule, make_optimiser

KEPT = BUILD / "delta"
Kind = Literal["softmax", "linear", "plain delta", "delta", "hybrid"]
NAMES: dict[Kind, str] = {
    "softmax": "softmax attention",
    "linear": "gated linear",
    "plain delta": "delta, no factors",
    "delta": "gated delta",
    "hybrid": "hybrid",
}
RULES: tuple[Kind, ...] = ("softmax", "linear", "plain delta", "delta")
SEEDS, RATES, BATCH_SIZE = (0, 1, 2), (0.003, 0.01, 0.03), 32
NUM_NAMES, NUM_NUMBERS, WRITTEN, ASKED = 64, 10, 64, 16  # of the first task: names, numbers, pairs and questions a text
LARGER = (0.1, 0.3, 1.0)  # rates that are tried as well while the largest is the best
SYMBOLS = 16  # of the second task, and a mark
NEVER = -30.0  # a logarithm of a rate at which no factor falls below 1 within any text


class Task(NamedTuple):
    """What is learned: the task, by models of which width, for how many steps, from texts of which length."""

    name: Literal["recall", "copy"]
    width: int = 32
    d_k: int = 16
    num_steps: int = 600
    length: int = 24  # of what is copied at most, and a third of it at least


class Texts(NamedTuple):
    """Pairs of a name and a number, then names alone; and the number that each name had last."""

    names: Any
    numbers: Any
    answers: Any


def recall_texts(seed, num: int, names_in_use: int | None = None, written: int = WRITTEN) -> Texts:
    """Texts in which so many names (`None` for 1 to 32 of them) get a number, again and again."""
    rng = np.random.default_rng(seed)
    in_use = rng.integers(1, 33, size=num) if names_in_use is None else np.full(num, names_in_use)
    order = rng.permuted(np.tile(np.arange(NUM_NAMES), (num, 1)), axis=1)
    places = rng.integers(in_use[:, None], size=(num, written))
    names, numbers = np.take_along_axis(order, places, axis=1), rng.integers(NUM_NUMBERS, size=(num, written))
    asked = np.take_along_axis(names, rng.integers(written, size=(num, ASKED)), axis=1)
    last = written - 1 - (names[:, None, ::-1] == asked[..., None]).argmax(axis=2)
    none = np.full((num, ASKED), NUM_NUMBERS)
    answers = np.take_along_axis(numbers, last, axis=1)
    both = np.concatenate([names, asked], axis=1), np.concatenate([numbers, none], axis=1), answers
    return Texts(*(array.astype(np.int32) for array in both))


def copy_texts(seed, num: int, least: int, most: int) -> pf.data.PaddedWindows:
    """Random symbols, a mark, and the symbols again, as many as are drawn for each text; marks fill up the rest."""
    rng = np.random.default_rng(seed)
    lengths, places = rng.integers(least, most + 1, size=(num, 1)), np.arange(2 * most + 1)
    symbols = rng.integers(SYMBOLS, size=(num, 2 * most + 1))
    again = np.take_along_axis(symbols, np.maximum(places - lengths - 1, 0), axis=1)
    rows = np.where(places < lengths, symbols, np.where(places <= 2 * lengths, again, SYMBOLS))
    rows = np.where(places == lengths, SYMBOLS, rows).astype(np.int32)
    is_due = (places[1:] > lengths) & (places[1:] <= 2 * lengths)
    return pf.data.PaddedWindows(*map(jnp.asarray, (rows[:, :-1], rows[:, 1:], is_due)))


class Memory(eqx.Module):
    """One layer of memory with one head, and what surrounds it, the same for each rule."""

    names: jax.Array
    numbers: jax.Array
    query: pf.Linear
    key: pf.Linear
    value: pf.Linear
    beta: pf.Linear
    factor: pf.Linear
    sharpness: jax.Array
    norm: pf.RMSNorm
    readout: pf.Linear
    rule: Kind = eqx.field(static=True)

    def __init__(self, rule: Kind, width: int, d_k: int, *, key):
        keys = jax.random.split(key, 8)
        self.names = jax.random.normal(keys[0], (NUM_NAMES, width))
        self.numbers = jax.random.normal(keys[1], (NUM_NUMBERS + 1, width))
        self.query, self.key, self.value, self.beta, self.factor, self.readout = (
            pf.Linear(width, size, key=each)
            for size, each in zip((d_k, d_k, width, 1, 1, NUM_NUMBERS), keys[2:], strict=True)
        )
        self.factor = eqx.tree_at(lambda part: part.bias, self.factor, jnp.full(1, 4.0))  # keeps 98 %
        self.sharpness, self.norm, self.rule = jnp.log(4.0), pf.RMSNorm(width), rule

    def __call__(self, names, numbers):
        x = self.names[names] + self.numbers[numbers]
        q, k, v = self.query(x), self.key(x), self.value(x)
        q, k = (rows * jax.lax.rsqrt((rows**2).sum(axis=-1, keepdims=True) + 1e-6) for rows in (q, k))
        betas, factors = jax.nn.sigmoid(self.beta(x))[..., 0], jax.nn.log_sigmoid(self.factor(x))[..., 0]
        factors = jnp.zeros_like(factors) if self.rule == "plain delta" else factors
        if self.rule == "softmax":  # its scores fade as the states do, so that it may tell the last from the first
            sums = jnp.cumsum(factors, axis=-1)
            scores = jnp.exp(self.sharpness) * q @ k.mT + sums[..., :, None] - sums[..., None, :]
            out = pf.softmax(scores, pf.causal_mask(x.shape[-2])) @ v
        elif self.rule == "linear":
            out = pf.attention.gated_linear_attention(q, k, betas[..., None] * v, factors)[0]
        else:
            out = pf.attention.delta_rule(q, k, v, betas, factors)[0]
        return self.readout(self.norm(out))[..., -ASKED:, :]


def decoder(kind: Kind, width: int, vocab_size: int, length: int, *, key) -> pf.Decoder:
    """Two blocks of today, or with another layer in place of attention; one of each in the hybrid."""
    pattern: Any = {"plain delta": ("delta",), "delta": ("delta",), "hybrid": ("delta", "full")}.get(kind)
    block: dict[str, Any] = {"norm": "rms", "activation": "swiglu", "use_bias": False, "position_scheme": "rotary"}
    stack = pf.StackConfig(d_model=width, num_layers=2, num_heads=4, d_ff=2 * width, pattern=pattern, **block)
    model = pf.Decoder(pf.DecoderConfig(vocab_size, length, stack=stack), key=key)
    layers: list[Any] = [block.attention for block in model.stack.blocks]
    if kind == "plain delta":
        rates = [jnp.full_like(layer.log_rate, NEVER) for layer in layers]
        model = eqx.tree_at(lambda m: [block.attention.log_rate for block in m.stack.blocks], model, rates)
    if kind == "linear":
        norm, keys = pf.RMSNorm(width // 4), jax.random.split(jax.random.fold_in(key, 1), 2)
        made = [GatedLinearAttention(width, 4, norm=norm, key=each) for each in keys]
        made = [eqx.tree_at(lambda layer: layer.output.weight, each, each.output.weight / 2) for each in made]
        model = eqx.tree_at(lambda m: [block.attention for block in m.stack.blocks], model, made)
    return model


def new_model(kind: Kind, task: Task, key):
    """The model of this kind for a task, with first numbers of this key."""
    if task.name == "recall":
        return Memory(kind, task.width, task.d_k, key=key)
    return decoder(kind, task.width, SYMBOLS + 1, 4 * task.length, key=key)


def texts_of(task: Task, seed, num: int = BATCH_SIZE):
    """Texts to learn from, or others."""
    return recall_texts(seed, num) if task.name == "recall" else copy_texts(seed, num, task.length // 3, task.length)


def answered(model, batch) -> tuple[jax.Array, jax.Array, jax.Array | None]:
    """What a model says, what it should say, and where it is asked: nowhere but in the second half of a copied text."""
    if isinstance(batch, Texts):
        return model(batch.names, batch.numbers), batch.answers, None
    return model(batch.inputs), batch.targets, batch.is_token


@eqx.filter_jit
def right(model, batch) -> jax.Array:
    """The share of answers that are most likely where they are due."""
    logits, answers, is_due = answered(model, batch)
    return jnp.mean(logits.argmax(axis=-1) == answers, where=is_due)


@partial(jax.jit, static_argnums=(0, 1))
def trained(kind: Kind, task: Task, key, rate, batches):
    """The model after its training, as one program for all rates and seeds; and the loss of each step."""
    shape = learning_rate_schedule(pf.TrainingConfig(num_steps=task.num_steps, learning_rate=1.0, warmup_steps=50))
    optimiser = make_optimiser(pf.TrainingConfig(num_steps=task.num_steps), lambda step: rate * shape(step))
    params, static = eqx.partition(new_model(kind, task, key), eqx.is_inexact_array)

    def loss_of(params, batch):
        return pf.cross_entropy(*answered(eqx.combine(params, static), batch))

    def step(carry, batch):
        params, state = carry
        loss, slopes = jax.value_and_grad(loss_of)(params, batch)
        updates, state = optimiser.update(slopes, state, params)
        return (eqx.apply_updates(params, updates), state), loss

    (params, _), losses = jax.lax.scan(step, (params, optimiser.init(params)), batches)
    return eqx.filter(eqx.combine(params, static), eqx.is_array), losses


def judged(model, task: Task) -> dict[str, float]:
    """The share of right answers by number of names and of pairs, or by length of what is copied."""
    found = {}
    if task.name == "recall":
        for in_use, written in ((4, 64), (8, 64), (16, 64), (24, 64), (32, 64), (8, 512)):
            found[f"{in_use} names, {written} pairs"] = right(model, recall_texts((9, in_use), 256, in_use, written))
    else:
        for length in (task.length // 2, task.length, 2 * task.length):
            found[f"{length} symbols"] = right(model, copy_texts((9, length), 256, length, length))
    return {name: round(float(share), 4) for name, share in found.items()}


def run(kind: Kind, task: Task, seed: int, rate: float) -> dict:
    """Train one model and judge it, or read what it has become before."""

    def find() -> dict:
        steps = [texts_of(task, (seed, step)) for step in range(task.num_steps)]
        batches = jax.tree.map(lambda *each: jnp.asarray(np.stack(each)), *steps)
        arrays, losses = trained(kind, task, jax.random.key(seed), rate, batches)
        model = eqx.combine(arrays, eqx.filter_eval_shape(new_model, kind, task, jax.random.key(0)))
        found = {"loss": round(float(losses[-50:].mean()), 4), "first": [round(float(x), 4) for x in losses[:5]]}
        found["right"] = judged(model, task)
        print(kind, *task, seed, rate, found, flush=True)
        return found

    name = "-".join(map(str, (kind.replace(" ", "-"), *task, seed, rate)))
    return kept(KEPT / f"{name}.json", find)


def losses(kind: Kind, task: Task) -> dict[float, float]:
    """The loss of the last steps at each rate, with the first seed; larger rates are tried until one is worse."""
    found = {rate: run(kind, task, 0, rate)["loss"] for rate in RATES}
    for rate in LARGER:
        if min(found, key=found.__getitem__) < max(found):
            break
        found[rate] = run(kind, task, 0, rate)["loss"]
    return found


def parameters(kind: Kind, task: Task) -> int:
    """How many numbers a model learns."""
    return pf.count_parameters(eqx.filter_eval_shape(new_model, kind, task, jax.random.key(0)))
