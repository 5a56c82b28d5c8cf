"""Train the models that the chapter on relations compares, on text and on copying; write their losses with a card.

No weights are kept: the numbers are the result. `record.json` holds them.
"""

import sys
from collections.abc import Callable, Iterable
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp

import plainformer as pf
from lab.clock import seconds_in_turn
from lab.recurrent.card import LENGTHS, TOKENS_PER_STEP, card as card, facts as facts
from lab.recurrent.runs import (
    CHOOSING_SEED,
    COPY,
    COPY_RATES,
    COPY_STEPS,
    HALF,
    KINDS,
    MANY_STEPS,
    RATES,
    SEEDS,
    SHAKESPEARE,
    STEPS,
    TASKS,
    TEXT,
    TWICE,
    Kind,
    Task,
    batches,
    kept,
    new_model,
    place_of,
    run,
    settings,
    share_copied,
    texts,
)
from plainformer.models.recurrent import RecurrentModel

BEST: tuple[Kind, ...] = ("modern", "gru")  # the kinds that are tried at other widths
COPY_START: dict[int, dict[Kind, float]] = {  # of 0.003, 0.01 and 0.03 the best; from there the search goes on
    10: {"classic": 0.03, "modern": 0.03, "gated": 0.003, "rnn": 0.01, "lstm": 0.01, "gru": 0.03},
    80: {"classic": 0.03, "modern": 0.03, "gated": 0.003, "rnn": 0.003, "lstm": 0.03, "gru": 0.03},
}
LOWER = 0.0026  # a rate at which the modern decoder is trained for long as well
LOWER_FOR_LSTM = 0.003  # the same for an LSTM that copies over few blanks
SLOW_RATE = 0.01  # of an LSTM that begins with other biases
WRITTEN = 16  # tokens that are read one by one to take the time


def descend(rates: tuple[float, ...], start: float, score: Callable[[float], float]) -> float:
    """The rate whose score is below those of both its neighbours, found downhill from the one to start at."""
    n = min(range(len(rates)), key=lambda n: abs(rates[n] - start))
    while True:
        near = [m for m in (n, n - 1, n + 1) if 0 <= m < len(rates)]
        best = min(near, key=lambda m: score(rates[m]))
        if best == n:
            return rates[n]
        n = best


def best_rate(kind: Kind, task: Task) -> float:
    """The learning rate with the lowest loss on what is kept to choose by, with a seed that is not reported."""
    start = {"gru": 0.01, "lstm": 0.017}.get(kind, 0.0066)
    return descend(RATES, start, lambda rate: run(kind, task, CHOOSING_SEED, rate, STEPS)["choose"])


def copy_rate(kind: Kind, delay: int, num_steps: int) -> float:
    """The rate of copying with the lowest loss on texts to choose by, with seed 0.

    A long training begins its search where a short one ended.
    """
    start = COPY_START[delay][kind] if num_steps == COPY_STEPS[0] else copy_rate(kind, delay, COPY_STEPS[0])
    return descend(COPY_RATES, start, lambda rate: run(kind, COPY[delay], 0, rate, num_steps)["choose"])


def kernels(model) -> list:
    """How each block attends."""
    return [block.attention.kernel for block in model.stack.blocks]


def _is_kernel(part) -> bool:
    return isinstance(part, pf.attention.AttentionKernel)


def training_step(kind: Kind, seq_len: int, batch_size: int) -> Callable:
    """A function that makes a step of training, update and all; decoders attend to long texts block by block."""
    model = new_model(kind, TEXT, 0, seq_len=seq_len)
    if kind in ("classic", "modern") and seq_len > TEXT.seq_len:
        model = eqx.tree_at(kernels, model, [pf.attention.Blockwise()] * len(kernels(model)), is_leaf=_is_kernel)
    config, batch = settings(STEPS, 0.01, 0), pf.data.random_windows(texts()[0], seq_len, batch_size)(0)
    params, static = eqx.partition(model, eqx.is_inexact_array)
    step = pf.training.make_train_step(pf.training.next_token_loss, static, config)
    state = params, pf.training.make_optimiser(config).init(params)

    def action():
        nonlocal state
        *state, measured = step(*state, batch, 0)
        return measured["loss"]

    return action


def extend_gated(model, tokens, states, positions):
    """Read further tokens by a decoder with gated linear attention; as `Decoder.extend`, with states for a cache."""
    x, longer = model.embedding(tokens), []
    for block, state in zip(model.stack.blocks, states, strict=True):
        x, state = block.extend(x, state, positions, scheme=model.stack.scheme)
        longer.append(state)
    return x, longer


def reading(kind: Kind, seq_len: int) -> Callable:
    """A function that reads the last tokens of a text of this length, one by one, as a model does that writes."""
    model, text = new_model(kind, TEXT, 0, seq_len=seq_len), jnp.asarray(texts()[0][:seq_len])
    starts = {"gated": lambda: [block.attention.start() for block in model.stack.blocks]}
    start = model.start if kind in ("rnn", "lstm", "gru") else starts.get(kind, lambda: model.make_cache())

    def extend(model, memory, n, tokens):
        if kind == "gated":
            return extend_gated(model, tokens, memory, n + jnp.arange(len(tokens)))
        return model.extend(tokens, memory)

    memory = eqx.filter_jit(lambda model, memory: extend(model, memory, 0, text[:-WRITTEN])[1])(model, start())

    @eqx.filter_jit
    def read(model, memory):
        def step(memory, n):
            rows, memory = extend(model, memory, n, text[n][None])
            return memory, rows

        return jax.lax.scan(step, memory, jnp.arange(seq_len - WRITTEN, seq_len))[1]

    return partial(read, model, memory)


def seconds() -> dict[str, float]:
    """Processor seconds of a step of training on text, for each kind."""
    return seconds_in_turn(
        {kind: training_step(kind, TEXT.seq_len, TEXT.batch_size) for kind in KINDS}, rounds=7, calls=5
    )


def costs() -> dict[str, dict[str, list[float]]]:
    """Milliseconds per step of 2,048 tokens and per token written, for each length of text."""
    found: dict[str, dict[str, list[float]]] = {kind: {"step": [], "token": []} for kind in KINDS}
    for length in LENGTHS:
        writers = {kind: training_step(kind, length, TOKENS_PER_STEP // length) for kind in KINDS}
        steps = seconds_in_turn(writers, rounds=5)
        tokens = seconds_in_turn({kind: reading(kind, length) for kind in KINDS}, rounds=7, calls=3)
        for kind in KINDS:
            found[kind]["step"].append(round(1e3 * steps[kind], 1))
            found[kind]["token"].append(round(1e3 * tokens[kind] / WRITTEN, 3))
    return found


def text_runs(rates: dict[Kind, float], equal: dict[Kind, int]) -> dict[str, list[dict]]:
    """All runs on text that are reported."""
    return {
        "text": [run(kind, TEXT, seed, rates[kind], STEPS) for seed in SEEDS for kind in KINDS],
        "equal time": [run(kind, TEXT, 0, rates[kind], equal[kind]) for kind in KINDS],
        "long": [run(kind, TEXT, 0, rates[kind], MANY_STEPS) for kind in KINDS],
        "no positions": [run("gated", TEXT, 0, rates["gated"], STEPS, "none")],
        "shakespeare": [run(kind, SHAKESPEARE, 0, rates[kind], STEPS) for kind in (*BEST, "gated")],
        "long, lower rate": [run("modern", TEXT, 0, LOWER, MANY_STEPS)],
        "widths": [run(kind, task, 0, rates[kind], STEPS) for task in (HALF, TWICE) for kind in BEST],
    }


def copy_runs() -> dict[str, list[dict]]:
    """Copying after a short training, and what was not learned then, after five times the steps."""
    runs = {}
    short, long = COPY_STEPS

    def of_all_seeds(kinds: Iterable[Kind], delay: int, num_steps: int) -> list[dict]:
        rates = {kind: copy_rate(kind, delay, num_steps) for kind in kinds}
        return [run(kind, COPY[delay], seed, rates[kind], num_steps) for seed in SEEDS for kind in rates]

    for delay, task in COPY.items():
        runs[task.name] = of_all_seeds(KINDS, delay, short)
        open_ones = {found["kind"] for found in runs[task.name] if found["share"] < 0.99}
        runs[f"{task.name} long"] = of_all_seeds([kind for kind in KINDS if kind in open_ones], delay, long)
    return runs


def lower_lstm() -> list[dict]:
    """The LSTM after a long training of copying over few blanks, at a lower rate than the best of the first seed."""
    return [run("lstm", COPY[min(COPY)], seed, LOWER_FOR_LSTM, COPY_STEPS[1]) for seed in SEEDS]


def slow_lstm(seed: int) -> RecurrentModel:
    """An LSTM whose gates begin with the biases of Tallec and Ollivier (2018): each number is kept for another time."""
    task = COPY[max(COPY)]
    model = new_model("lstm", task, seed)
    biases = model.cell.bias.reshape(4, -1)  # of the gates that write and keep, of what is written, of the output gate
    times = jax.random.uniform(jax.random.key(1000 + seed), biases.shape[1:], minval=1, maxval=task.seq_len)
    biases = biases.at[0].set(-jnp.log(times)).at[1].set(jnp.log(times))
    return eqx.tree_at(lambda model: model.cell.bias, model, biases.reshape(-1))


def slow_share(seed: int) -> dict[str, float]:
    """The share of symbols that it copies after a short training."""
    task = COPY[max(COPY)]
    how = settings(COPY_STEPS[0], SLOW_RATE, seed)
    model, _ = pf.fit(slow_lstm(seed), pf.training.next_token_loss, batches(task, seed), how, progress=False)
    return {"share": share_copied(model, task)}


def results() -> dict:
    """All numbers of the card, trained anew where they are not kept."""
    rates = {kind: best_rate(kind, TEXT) for kind in KINDS}
    timed = kept("seconds", seconds)
    equal = {kind: round(STEPS * max(timed.values()) / timed[kind] / 10) * 10 for kind in KINDS}
    parameters = {
        name: {kind: pf.count_parameters(eqx.filter_eval_shape(new_model, kind, task, 0)) for kind in KINDS}
        for name, task in TASKS.items()
    }
    copied = copy_runs()
    rates_of_copying = {name: {run["kind"]: run["rate"] for run in runs} for name, runs in copied.items()}
    return {
        "training": len(texts()[0]),
        "parameters": parameters,
        "rates": {"text": rates} | rates_of_copying,
        "tried": {kind: tried_rates(kind, TEXT, CHOOSING_SEED, STEPS, RATES) for kind in KINDS},
        "tried with copying": {name: tried_copying(name, of) for name, of in rates_of_copying.items()},
        "runs": text_runs(rates, equal) | copied | {"copy, lower rate": lower_lstm()},
        "slow start": [kept(f"slow-{seed}", partial(slow_share, seed))["share"] for seed in SEEDS],
        "steps": equal,
        "seconds": timed,
        "costs": kept("costs", costs),
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
    }


def tried_rates(kind: Kind, task: Task, seed: int, num_steps: int, rates: tuple[float, ...]) -> list[list[float]]:
    """The rates tried, each with the loss that it was judged by."""
    found: list[list[float]] = []
    for rate in rates:
        if place_of(name := f"{task.name}-{kind}-{seed}-{rate:g}-{num_steps}").exists():
            found.append([rate, kept(name, dict)["choose"]])
    return found


def tried_copying(name: str, kinds: Iterable[Kind]) -> dict[Kind, list[list[float]]]:
    """The rates tried for copying, of some kinds, after the training of this name."""
    task, num_steps = TASKS[name.removesuffix(" long")], COPY_STEPS[name.endswith(" long")]
    return {kind: tried_rates(kind, task, 0, num_steps, COPY_RATES) for kind in kinds}
