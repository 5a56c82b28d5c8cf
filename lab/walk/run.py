"""Train one decoder after the other on the same stories, from that of 2017 to today's, each with one change more.

Every machine is trained with three rates, and with the best of them for two further seeds. No weights are kept: the
losses stand in `record.json`.
"""

import dataclasses
import time
from functools import cache
from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.growing import KEPT as STAIRCASE, LENGTH, WORDS, expected_by, judged, stories_of
from lab.records import kept
from plainformer.models.accounting import cache_bytes

NEEDS = ("staircase", "docstrings")
KEPT = STAIRCASE.with_name("walk")
SEEDS, RATES, STEPS, LONG = (0, 1, 2), (0.001, 0.003, 0.01, 0.03), 400, 2000
LONG_RATES = (0.003, 0.01)
BATCH_SIZE, WIDTH, NUM_HEADS, WINDOW = 16, 64, 8, 32
FIRST: dict[str, Any] = {
    "norm": "layer",
    "norm_placement": "post",
    "activation": "relu",
    "position_scheme": "sinusoidal",
    "use_bias": True,
    "tied_embedding": True,
}
CHANGES: dict[str, dict[str, Any]] = {  # each machine has this, and all that stands above it
    "as in 2017": {},
    "norm before": {"norm_placement": "pre"},
    "RMS norm": {"norm": "rms"},
    "SwiGLU": {"activation": "swiglu", "d_ff": WIDTH * 8 // 3},  # two thirds of the width, as there are three matrices
    "rotary": {"position_scheme": "rotary"},
    "no biases": {"use_bias": False},
    "untied": {"tied_embedding": False},
    "norm of queries and keys": {"qk_norm": True},
    "grouped heads": {"num_kv_heads": 2},
    "windows in turn": {"window": WINDOW, "pattern": ("window", "full")},
    "sinks": {"sinks": True},
}
NAMES = list(CHANGES)
ENDS = NAMES[0], NAMES[-1]
NARROW = 32


def config_of(name: str, width: int = WIDTH, vocab_size: int = WORDS) -> pf.DecoderConfig:
    """The configuration of a machine: all changes up to that of its name."""
    fields = dict(FIRST)
    for change in NAMES[: NAMES.index(name) + 1]:
        fields |= CHANGES[change]
    if "d_ff" in fields:
        fields["d_ff"] = width * 8 // 3
    tied = fields.pop("tied_embedding")
    stack = pf.StackConfig(d_model=width, num_layers=4, num_heads=NUM_HEADS, **fields)
    return pf.DecoderConfig(vocab_size, LENGTH, stack=stack, tied_embedding=tied)


@dataclasses.dataclass(frozen=True)
class Text:
    """What is learned from and what is judged on: windows of ids, each with the token behind it."""

    vocab_size: int
    learning: np.ndarray
    judged_on: np.ndarray


@cache
def docstrings() -> Text:
    """A part of the docstrings, in the byte pairs of the stored model; encoded once, and kept under `build`."""
    _, tokenizer = pf.load_pretrained("docstrings")
    learning, held_out = pf.data.docstring_splits()
    for name, part in (("learning", learning[:2_000_000]), ("held_out", held_out[:200_000])):
        if not (file := KEPT / f"{name}.npy").exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            np.save(file, np.array(tokenizer.encode(part), np.int32))
    windows, others = (in_windows(np.load(KEPT / f"{name}.npy")) for name in ("learning", "held_out"))
    return Text(len(tokenizer), windows, others[:200])


def in_windows(ids: np.ndarray) -> np.ndarray:
    """A text cut into windows, each with the token behind it."""
    return ids[np.arange((len(ids) - 1) // LENGTH)[:, None] * LENGTH + np.arange(LENGTH + 1)]


def batches_of(windows: np.ndarray, seed: int):
    """A function from the number of steps done to the next batch of windows, drawn at random."""

    def batch_at(step: int) -> pf.data.Windows:
        return as_batch(windows[np.random.default_rng([seed, step]).integers(len(windows), size=BATCH_SIZE)])

    return batch_at


def as_batch(windows: np.ndarray) -> pf.data.Windows:
    """Windows as inputs and targets."""
    return pf.data.Windows(jnp.asarray(windows[:, :-1]), jnp.asarray(windows[:, 1:]))


def after_training(config: pf.DecoderConfig, batch_at, rate: float, steps: int, seed: int) -> tuple[Any, float]:
    """A trained model, and the milliseconds that a step took, in the median."""
    training = pf.TrainingConfig(
        num_steps=max(steps, 101), learning_rate=rate, warmup_steps=100, weight_decay=0.1, seed=seed
    )
    params, static = eqx.partition(pf.Decoder(config, key=jax.random.key(seed)), eqx.is_inexact_array)
    params = jax.tree.map(jnp.copy, params)  # norms of queries and keys begin as one array
    step = pf.training.make_train_step(pf.training.next_token_loss, static, training)
    state, times = pf.training.make_optimiser(training).init(params), []
    for done in range(steps):
        batch, begin = batch_at(done), time.perf_counter()
        params, state, measured = step(params, state, batch, done)
        measured["loss"].block_until_ready()
        times.append(time.perf_counter() - begin)
    return eqx.combine(params, static), 1000 * float(np.median(times))


def trained(name: str, rate: float, seed: int = 0, steps: int = STEPS, width: int = WIDTH) -> dict[str, Any]:
    """What a machine reached on stories kept back, in nats per word above the lowest; kept under `build`."""

    def find() -> dict:
        model, milliseconds = after_training(
            config_of(name, width), batches_of(stories_of(seed), seed), rate, steps, seed
        )
        found = {"above": judged(expected_by(model))["above"], "milliseconds": round(milliseconds, 2)}
        print(name, rate, seed, steps, width, found, flush=True)
        return found

    return kept(KEPT / f"{name}-{rate:g}-{seed}-{steps}-{width}.json", find) | {"rate": rate, "seed": seed}


def rate_of(name: str) -> float:
    """The rate that is best for the first machine, which has a norm behind each sum, or for the last, as for others."""
    end = ENDS[0] if name == ENDS[0] else ENDS[1]
    return min(RATES, key=lambda rate: trained(end, rate)["above"])


@eqx.filter_jit
def loss_on(model, batch):
    """Nats per token."""
    return pf.training.next_token_loss(model, batch)


def read(name: str, rate: float, seed: int = 0) -> dict:
    """The nats per token that a machine reached on docstrings held out; kept under `build`."""

    def find() -> dict:
        text = docstrings()
        config = config_of(name, vocab_size=text.vocab_size)
        model, _ = after_training(config, batches_of(text.learning, seed), rate, STEPS, seed)
        losses = [float(loss_on(model, as_batch(part))) for part in np.split(text.judged_on, 4)]
        found = {"loss": round(float(np.mean(losses)), 4)}
        print("docstrings", name, rate, seed, found, flush=True)
        return found

    return kept(KEPT / f"docstrings-{name}-{rate:g}-{seed}.json", find) | {"rate": rate, "seed": seed}


def read_bytes(stack: pf.StackConfig) -> int:
    """The bytes of keys and values of a whole text that are ever looked at: in a block with a window, the last ones."""
    per_block, near = cache_bytes(stack, 1) // stack.num_layers, min(LENGTH, stack.window or LENGTH)
    return per_block * sum(near if kind == "window" else LENGTH for kind in stack.kinds)


def machine(name: str) -> dict:
    """What a machine costs, and what each of its seeds reached."""
    config = config_of(name)
    model = eqx.filter_eval_shape(lambda key: pf.Decoder(config, key=key), jax.random.key(0))
    runs = [trained(name, rate_of(name), seed) for seed in SEEDS]
    return {
        "parameters": pf.count_parameters(model),
        "cache": cache_bytes(config.stack, LENGTH),
        "read": read_bytes(config.stack),
        "rate": rate_of(name),
        "milliseconds": min(run["milliseconds"] for run in runs),
        "above": [run["above"] for run in runs],
    }


def results() -> dict:
    """All that was measured."""
    return {
        "floor": pf.data.load_record("staircase")["lowest"],
        "steps": STEPS,
        "machines": {name: machine(name) for name in NAMES},
        "rates": {name: {f"{rate:g}": trained(name, rate)["above"] for rate in RATES} for name in ENDS},
        "longer": {
            name: {f"{rate:g}": trained(name, rate, steps=LONG)["above"] for rate in LONG_RATES} for name in NAMES
        },
        "narrow": {name: trained(name, rate_of(name), width=NARROW)["above"] for name in ENDS},
        "docstrings": {name: read(name, rate_of(name))["loss"] for name in ENDS},
    }


def spread(losses: list[float]) -> str:
    """The mean of the seeds, least and largest."""
    return f"{np.mean(losses):.3f} ({min(losses):.3f} to {max(losses):.3f})"


def table(found: dict) -> str:
    """A line of the card for each machine."""
    lines = ["| machine | nats above | parameters | ms a step | cache | of it read |", "|---|---|---|---|---|---|"]
    for name, each in found["machines"].items():
        costs = f"{each['parameters']:,} | {each['milliseconds']:.0f} | {each['cache']:,} | {each['read']:,}"
        lines.append(f"| {name} | {spread(each['above'])} | {costs} |")
    return "\n".join(lines)


def knobs(found: dict) -> str:
    """A line of the card for each knob that was turned."""
    lines = ["| machine | knob | result |", "|---|---|---|"]
    for name, losses in found["rates"].items():
        lines += [f"| {name} | learning rate {rate} | {loss:.3f} |" for rate, loss in losses.items()]
    for name, losses in found["longer"].items():
        lines += [f"| {name} | {LONG:,} steps, learning rate {rate} | {loss:.3f} |" for rate, loss in losses.items()]
    lines += [f"| {name} | width {NARROW} | {loss:.3f} |" for name, loss in found["narrow"].items()]
    lines += [f"| {name} | docstrings, nats per token | {loss:.3f} |" for name, loss in found["docstrings"].items()]
    return "\n".join(lines)


def card(found: dict) -> str:
    """What was done, and what came out."""
    return f"""# From the block of 2017 to today's, one change at a time

Eleven decoders, each with one change more than the one above, trained on the same stories. No weights are kept: the
numbers stand in `record.json`. Settings: `lab/walk/run.py`; `make models ONLY=walk` trains all again.

- **Data.** Stories of the little world as in `lab/staircase`, {LENGTH} words each, others for each seed; 400 are kept
  back, whose lowest possible loss is {found["floor"]:.4f} nats per word.
- **Models.** Width {WIDTH}, {NUM_HEADS} heads, 4 blocks, an inner width of {4 * WIDTH}, with a gate {WIDTH * 8 // 3}.
  Windows of {WINDOW} in every other block. The first machine: layer norms behind the sums, ReLU, sinusoidal positions,
  biases, and an output that shares the embedding's table.
- **Training.** {found["steps"]} steps of {BATCH_SIZE} stories, AdamW, a warm-up of 100 steps, then half a cosine down
  to a tenth of the rate, weight decay 0.1. Rates were chosen among {", ".join(f"{rate:g}" for rate in RATES)} for the
  first and for the last machine, with seed 0; the others have the last one's.
- **Result.** Nats per word above the lowest possible, mean of seeds {SEEDS[0]} to {SEEDS[-1]} (least to largest);
  milliseconds of one processor in the median of a run, the fastest of three; bytes of keys and values for {LENGTH}
  words that the package keeps, and those that are ever looked at:

{table(found)}

- **Knobs turned**, with seed 0; nats per word above the lowest if nothing else is said. Docstrings in the byte pairs of
  `lab/docstrings`: the first 2,000,000 characters to learn from, 200 windows of the held-out part to judge by.

{knobs(found)}

- **Limits.** {found["steps"]} steps, in which all machines still learn; one made-up world; one order of the changes, so
  that each is judged on top of those before it. The machines in between were not given a rate of their own, but for the
  {LONG:,} steps, which were made on a GPU (but for the last three machines at the rate 0.003), in 32 bits.
- **Licence.** The numbers are under Apache-2.0, as the code.
"""


def signed(number: float) -> str:
    """A difference in thousandths, with its sign."""
    return f"{number:+.3f}".replace("-", "\N{MINUS SIGN}")


def changes(found: dict) -> dict[str, str]:
    """What each change brought, seed by seed: the mean difference (least to largest), and its size."""
    texts, above = {}, [np.array(each["above"]) for each in found["machines"].values()]
    for name, (before, after) in zip(NAMES[1:], pairwise(above), strict=True):
        change = after - before
        mean, least, largest = (signed(float(each)) for each in (change.mean(), change.min(), change.max()))
        texts[f"{name}.change"] = f"{mean} ({least} to {largest})"
        texts[f"{name}.size"] = f"{abs(change.mean()):.3f}"
    return texts


def facts(found: dict) -> dict[str, str]:
    """What the chapter says of each machine, of each change, and of the gain from the first machine to the last."""
    texts, machines = changes(found), found["machines"]
    first, last = ENDS
    longer = {name: min(losses.values()) for name, losses in found["longer"].items()}
    for name, each in machines.items():
        texts[f"{name}.above"] = f"{np.mean(each['above']):.3f}"
        texts[f"{name}.milliseconds"] = f"{each['milliseconds']:.0f}"
        texts[f"{name}.read"] = f"{each['read']:,}"
        texts[f"{name}.longer"] = f"{longer[name]:.3f}"
    for name, losses in found["rates"].items():
        texts |= {f"{name}.rate.{rate}": f"{loss:.3f}" for rate, loss in losses.items()}
    gains = {
        "narrow": found["narrow"][first] - found["narrow"][last],
        "first_seed": machines[first]["above"][0] - machines[last]["above"][0],
        "longer": longer[first] - longer[last],
        "longer.at_one_rate": found["longer"][first]["0.01"] - found["longer"][last]["0.01"],
        "longer.of_six": longer[first] - longer["untied"],
    }
    texts |= {f"gain.{name}": f"{gain:.3f}" for name, gain in gains.items()}
    texts["gain.docstrings"] = f"{found['docstrings'][first] - found['docstrings'][last]:.2f}"
    texts["longer.before_windows"] = f"{longer['grouped heads']:.2f}"
    return texts | {"read.times": f"{machines[first]['read'] / machines[last]['read']:.1f}"}
