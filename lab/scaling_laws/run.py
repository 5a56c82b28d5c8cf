"""Train language models of many sizes for many lengths, and write what each reached, for their law.

Each size is trained once, at a constant rate. From several places of that run a copy goes its own way, with a rate that
falls to zero over a fifth of its length (Hägele et al., 2024): several lengths of training for little more than the
price of the longest. No weights are kept: the losses stand in `record.json`.
"""

import dataclasses
import json
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

import plainformer as pf
from lab.growing import LENGTH, WORDS, kept_back, stories_of
from lab.language_models import BATCH_SIZE
from lab.records import BUILD, ends, kept
from plainformer.training.optimiser import make_optimiser

NEEDS = ("docstrings",)
KEPT = BUILD / "scaling_laws"
FALL, WARMUP = 0.2, 25  # the share of a length over which the rate falls; the steps over which it rises
NUM_LAYERS, HEAD = 4, 16  # blocks of every model, and columns of each head
TOKENS, NUM_DRAWS = LENGTH * BATCH_SIZE, 200  # tokens of a step; draws of the runs, of which intervals are made
WIDTHS = {"world": (16, 32, 48, 64, 96, 128), "docstrings": (16, 32, 64, 128)}
OTHER_SEED = {16: None, 128: 900}  # widths, trained with another seed, and the longest training
LARGE, LARGE_STEPS = 192, 900  # the width that the laws say something of before it is trained, and its steps
SHORT = 225  # steps with which rates are compared
RATES = {
    16: (0.004, 0.008, 0.016, 0.032),
    32: (0.004, 0.008, 0.016, 0.032),
    64: (0.002, 0.004, 0.008, 0.016),
    128: (0.001, 0.002, 0.004, 0.008),
}
PREDICTED = Path(__file__).with_name("predicted.json")  # written before the large run, and never again


@dataclasses.dataclass(frozen=True)
class Text:
    """Windows to learn from, each read once, and windows to judge by; the steps after which a copy is judged."""

    vocab_size: int
    windows: np.ndarray
    judged_on: np.ndarray
    lengths: tuple[int, ...]


@cache
def world() -> Text:
    """Stories of the little world."""
    return Text(WORDS, np.concatenate([stories_of(seed) for seed in (0, 1, 2)]), kept_back().ids, (225, 450, 900, 1800))


def in_windows(ids: np.ndarray, at_most: int | None = None) -> np.ndarray:
    """A text cut into windows, each with the token behind it."""
    number = min((len(ids) - 1) // LENGTH, at_most or len(ids))
    return ids[np.arange(number)[:, None] * LENGTH + np.arange(LENGTH + 1)]


@cache
def docstrings() -> Text:
    """Docstrings in the byte pairs of the stored model; encoded once, and kept under `build`."""
    _, tokenizer = pf.load_pretrained("docstrings")
    for name, part in zip(("learning", "held_out"), pf.data.docstring_splits(), strict=True):
        if not (file := KEPT / f"{name}.npy").exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            np.save(file, np.array(tokenizer.encode(part), np.int32))
    learning, held_out = (np.load(KEPT / f"{name}.npy") for name in ("learning", "held_out"))
    return Text(len(tokenizer), in_windows(learning), in_windows(held_out, 800), (100, 200, 400, 800))


TEXTS: dict[str, Callable[[], Text]] = {"world": world, "docstrings": docstrings}


def make(width: int, vocab_size: int, seed: int) -> pf.Decoder:
    """A decoder of four blocks, with heads of sixteen columns."""
    stack = pf.StackConfig(
        d_model=width,
        num_layers=NUM_LAYERS,
        num_heads=width // HEAD,
        norm="rms",
        position_scheme="rotary",
        use_bias=False,
    )
    return pf.Decoder(pf.DecoderConfig(vocab_size, LENGTH, stack=stack), key=jax.random.key(seed))


def as_batch(windows: np.ndarray) -> pf.data.Windows:
    """Windows as inputs and targets."""
    return pf.data.Windows(jnp.asarray(windows[:, :-1]), jnp.asarray(windows[:, 1:]))


def batches_of(text: Text, seed: int) -> Callable[[int], pf.data.Windows]:
    """From the number of steps done to the next batch: every window once, in an order of the seed's own, then again."""
    order = np.random.default_rng(seed).permutation(len(text.windows))

    def batch_at(step: int) -> pf.data.Windows:
        places = np.arange(step * BATCH_SIZE, (step + 1) * BATCH_SIZE)
        return as_batch(text.windows[order[places % len(order)]])

    return batch_at


@eqx.filter_jit
def loss_on(model, batch):
    """Nats per token."""
    return pf.training.next_token_loss(model, batch)


def judged(model, text: Text) -> float:
    """Nats per token on all windows kept back."""
    parts = np.split(text.judged_on, len(text.judged_on) // 100)
    return float(np.mean([loss_on(model, as_batch(part)) for part in parts]))


class Run:
    """A model in training, whose rate is said before each step; a copy of it can go its own way."""

    def __init__(self, width: int, text: Text, seed: int):
        model = make(width, text.vocab_size, seed)
        self.num_parameters = pf.count_parameters(model)
        self.params, self.static = eqx.partition(model, eqx.is_inexact_array)
        config = pf.TrainingConfig(num_steps=max(text.lengths), seed=seed)
        optimiser = optax.inject_hyperparams(lambda rate: make_optimiser(config, lambda count: rate))(rate=0.0)
        self.step = pf.training.make_train_step(pf.training.next_token_loss, self.static, config, optimiser=optimiser)
        self.state, self.batch_at = optimiser.init(self.params), batches_of(text, seed)

    def train(self, rates: dict[int, float]) -> None:
        """Take the steps of these numbers, each at its rate."""
        for done, rate in rates.items():
            self.state.hyperparams["rate"] = jnp.float32(rate)
            self.params, self.state, _ = self.step(self.params, self.state, self.batch_at(done), done)

    def model_after(self, rates: dict[int, float]) -> pf.Decoder:
        """What the model would be after these steps; the run itself stays where it is."""
        here = jax.tree.map(jnp.copy, (self.params, self.state))
        self.train(rates)
        (self.params, self.state), after = here, self.params
        return eqx.combine(after, self.static)


def trained(of: str, width: int, rate: float, seed: int = 0, longest: int | None = None) -> dict:
    """The losses of one size by length of training; kept under `build`."""

    def find() -> dict:
        text, begin = TEXTS[of](), time.perf_counter()
        run, losses, before = Run(width, text, seed), {}, 0
        for length in text.lengths:
            if length <= (longest or length):
                turn = round(length * (1 - FALL))
                run.train({step: rate * min(1, (step + 1) / WARMUP) for step in range(before, turn)})
                fall = {step: rate * (length - step) / (length - turn) for step in range(turn, length)}
                losses[str(length)], before = round(judged(run.model_after(fall), text), 5), turn
        minutes = round((time.perf_counter() - begin) / 60, 2)
        found = {"parameters": run.num_parameters, "losses": losses, "minutes": minutes}
        print(of, width, rate, seed, found, flush=True)
        return found

    return kept(KEPT / f"{of}-{width}-{rate:g}-{seed}-{longest or 'all'}.json", find) | {"width": width, "rate": rate}


def rule(width: int) -> float:
    """The rate of a width: the wider a model, the smaller its best rate."""
    return 0.4 / width


def arrays_of(runs: list[dict]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each size and length: how many numbers, how many tokens, the loss."""
    rows = [(run["parameters"], int(length) * TOKENS, loss) for run in runs for length, loss in run["losses"].items()]
    sizes, tokens, losses = np.array(rows, float).T
    return sizes, tokens, losses


def interval(runs: list[dict], size: int, floor: float | None) -> dict:
    """What the law of some runs says of another size, by length: 5, 50 and 95 per cent of draws.

    Each draw is a law of runs drawn with replacement, times the error of a run that was drawn, too.
    """
    sizes, tokens, losses = arrays_of(runs)
    laws = pf.training.bootstrap_power_laws(sizes, tokens, losses, floor=floor, num_draws=NUM_DRAWS)
    law = pf.training.fit_power_law(sizes, tokens, losses, floor=floor)
    errors = np.log(losses) - np.log(pf.training.power_law_loss(sizes, tokens, law))
    drawn = np.random.default_rng(0).choice(errors, NUM_DRAWS)
    found = {}
    for length in runs[0]["losses"]:
        expected = [pf.training.power_law_loss(size, int(length) * TOKENS, each) for each in laws]
        found[length] = [round(float(each), 4) for each in np.percentile(expected * np.exp(drawn), [5, 50, 95])]
    return found


def predict(of: str) -> None:
    """Write what the law says of a size that is not trained yet: to be kept before it is."""
    runs, size = runs_of(of), pf.count_parameters(eqx.filter_eval_shape(make, LARGE, TEXTS[of]().vocab_size, 0))
    floors = {"known floor": least()} if of == "world" else {}
    said = {name: interval(runs, size, floor) for name, floor in (floors | {"fitted floor": None}).items()}
    before = json.loads(PREDICTED.read_text(encoding="utf-8")) if PREDICTED.exists() else {}
    PREDICTED.write_text(json.dumps(before | {of: {"parameters": size} | said}, indent=1) + "\n", encoding="utf-8")


def least() -> float:
    """The lowest loss possible on the stories that are kept back, in nats per word."""
    return round(float(kept_back().least.mean()), 5)


def runs_of(of: str, seed: int = 0) -> list[dict]:
    """The runs that the law is fitted to."""
    return [trained(of, width, rule(width), seed) for width in WIDTHS[of]]


def results() -> dict:
    """All runs, and what was predicted of the large one before it was trained."""
    return {
        "floor": least(),
        "tokens": TOKENS,
        "characters per token": round(len(pf.data.docstring_splits()[1]) / len(np.load(KEPT / "held_out.npy")), 4),
        "widths": WIDTHS,
        "runs": {of: runs_of(of) for of in TEXTS},
        "other seed": [trained("world", width, rule(width), 1, longest) for width, longest in OTHER_SEED.items()],
        "rates": [trained("world", width, rate, 0, SHORT) for width, rates in RATES.items() for rate in rates],
        "predicted": json.loads(PREDICTED.read_text(encoding="utf-8")),
        "large": trained("world", LARGE, rule(LARGE), 0, LARGE_STEPS),
    }


def loss_table(runs: list[dict], base: float) -> str:
    """A line of the card for each size: losses above a base, by length."""
    lengths = list(runs[0]["losses"])
    lines = [f"| width | numbers | rate | {' | '.join(lengths)} | minutes |", "|---" * (4 + len(lengths)) + "|"]
    for run in runs:
        losses = [f"{run['losses'][length] - base:.3f}" if length in run["losses"] else "" for length in lengths]
        head = f"{run['width']} | {run['parameters']:,} | {run['rate']:.4f}"
        lines.append(f"| {head} | {' | '.join(losses)} | {run['minutes']:.1f} |")
    return "\n".join(lines)


def said_lines(found: dict) -> str:
    """A line of the card for each length of the large run: what was predicted, and what came."""
    lines = ["| steps | known floor | fitted floor | trained |", "|---|---|---|---|"]
    for length, loss in found["large"]["losses"].items():
        said = [found["predicted"]["world"][name][length] for name in ("known floor", "fitted floor")]
        cells = [f"{middle:.3f} ({low:.3f} to {high:.3f})" for low, middle, high in said]
        lines.append(f"| {length} | {' | '.join(cells)} | {loss:.3f} |")
    return "\n".join(lines)


def by_rate(found: dict, width: int) -> dict[float, float]:
    """The losses of a width after a short training, by rate."""
    return {run["rate"]: run["losses"][str(SHORT)] for run in found["rates"] if run["width"] == width}


def rate_table(found: dict) -> str:
    """A line of the card for each width: nats above the floor after a short training, by rate."""
    rates = sorted({run["rate"] for run in found["rates"]})
    lines = [f"| width | {' | '.join(f'{rate:g}' for rate in rates)} |", "|---" * (1 + len(rates)) + "|"]
    for width in RATES:
        losses = by_rate(found, width)
        cells = [f"{losses[rate] - found['floor']:.3f}" if rate in losses else "" for rate in rates]
        lines.append(f"| {width} | {' | '.join(cells)} |")
    return "\n".join(lines)


def of_rates(found: dict) -> dict[str, str]:
    """The best rate of each width; at two widths, how far some losses are above others."""
    tried = {width: by_rate(found, width) for width in RATES}
    best = {width: min(losses, key=losses.__getitem__) for width, losses in tried.items()}
    first, _, third, _ = sorted(tried[16].values())
    (as_trained,) = (run["losses"][str(SHORT)] for run in found["runs"]["world"] if run["width"] == 16)
    return {
        **{f"rates.{width}.best": f"{rate:g}" for width, rate in best.items()},
        "rates.16.best_three.apart": f"{third - first:.3f}",
        "rates.16.as_trained.above": f"{as_trained - first:.2f}",
        "rates.32.doubled.above": f"{tried[32][2 * best[32]] - tried[32][best[32]]:.2f}",
    }


def facts(found: dict) -> dict[str, str]:
    """What the chapter says of losses, in nats per word: their floor, some differences, the forecast; and of rates."""
    runs, large, said = found["runs"]["world"], found["large"]["losses"], found["predicted"]["world"]["known floor"]
    texts = {"floor": f"{found['floor']:.3f}", "lowest": f"{arrays_of(runs)[2].min():.3f}"}
    texts["widest_three.apart"] = f"{np.ptp([run['losses']['900'] for run in runs[-3:]]):.3f}"
    texts["other_seed.128.lower"] = f"{runs[-1]['losses']['900'] - found['other seed'][-1]['losses']['900']:.3f}"
    texts |= {f"large.{length}": f"{loss:.3f}" for length, loss in large.items()}
    texts |= ends("forecast.above", [said[length][1] - loss for length, loss in large.items()], ".3f")
    return texts | of_rates(found)


def setting(floor: float) -> str:
    """What the card says of data, models and training."""
    return f"""- **Data.** Stories of `pf.data.stories`, {LENGTH} words each, every one read once, judged on 400 others,
  whose lowest possible loss is {floor:.4f} nats per word. Docstrings of `pf.data.docstring_splits()` in the byte pairs
  of `lab/docstrings`, in windows of {LENGTH}, none read twice; judged on the first 800 of the held-out part.
- **Models.** {NUM_LAYERS} blocks, heads of {HEAD} columns, RMS norm, gelu, an inner width of four times the outer,
  rotary positions, no biases, tied output.
- **Training.** {BATCH_SIZE} windows a step, AdamW, weight decay 0.1, {WARMUP} steps of warm-up, then a constant rate of
  0.4 divided by the width. At each length a copy goes its own way, whose rate falls linearly to zero over the last
  fifth of its steps. Seed 0, for weights and for the order of the windows."""


def card(found: dict) -> str:
    """What was done, and what came out."""
    runs, floor = found["runs"], found["floor"]
    return f"""# How the loss falls with size and text

Decoders of many widths, each trained for several lengths, on stories of the little world, whose lowest loss is known,
and on docstrings; and one that is twice as large as any of these, of which a law fitted to the others was asked before
it was trained. No weights are kept: the numbers stand in `record.json`. Settings:
`lab/scaling_laws/run.py`; `make models ONLY=scaling_laws` trains all again.

{setting(floor)}
- **Result**, little world: nats per word above {floor:.4f}, by steps; minutes of one processor for all
  lengths together.

{loss_table(runs["world"], floor)}

- **Docstrings**: nats per token, by steps.

{loss_table(runs["docstrings"], 0.0)}

- **Forecast** for width {LARGE}, in nats per word: the middle of {NUM_DRAWS} draws of the trainings, and between where
  nine of ten lie. `lab/scaling_laws/predicted.json` was kept before the model was trained.

{said_lines(found)}

- **Rates.** Nats per word above the floor after {SHORT} steps:

{rate_table(found)}

- **Knobs turned.** Another seed, for some widths. What it does to the law, and what it does to leave out a size or the
  shortest trainings, and to take squares in the place of Huber's loss, {{ref}}`sec-scaling-laws` computes.

{loss_table(found["other seed"], floor)}

- **Limits.** Four blocks at every width. The rates were compared in short trainings alone, with one seed, where the
  losses of the narrow models go up and down by some hundredths of a nat from one rate to the next. One seed of most
  trainings.
- **Licence.** The numbers are under Apache-2.0, as the code.
"""
