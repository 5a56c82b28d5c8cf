"""Train one block with each way of telling positions; write what they answer with a card.

No weights are kept: the answers are the result. `record.json` holds them.
"""

import dataclasses
import itertools
import json
import re
import sys
from collections.abc import Callable
from functools import cache, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

import plainformer as pf
from lab.records import BUILD, ends
from plainformer.blocks.blocks import Wiring
from plainformer.positions.sinusoidal import clock_angles

SHORT, LONG, BACK, TIMES = 32, 128, 3, 4
BATCH, NUM_TEXTS, SEEDS = 8, 100, (0, 1, 2)
HEADS, TEXTS, STEPS, RATE = (8, 2), ("reference", "random"), (200, 2000), 0.01
STRETCHES, FURTHER = ("as it is", "squeezed", "slower hands"), (0, 10, 100, 1000)
LOOKED_AT, ASKS_FROM = ("sinusoidal", "rotary", "relative"), 100
BASES = (1000.0, 100.0, 16.0, 8.0, 4.0, 2.0)
PLACES = [(BACK, 32), (32, 64), (64, 96), (96, 128)]


class SqueezedPositions(pf.RotaryPositions):
    """Rotary positions, all divided by `TIMES` (Chen et al., 2023): a long text has the angles of a short one."""

    def rotate(self, rows, positions=None):
        """Turn queries or keys by a part of their angles."""
        positions = jnp.arange(rows.shape[-2]) if positions is None else positions
        angles = clock_angles(positions, rows.shape[-1], self.base) / TIMES
        first, second = jnp.split(rows, 2, axis=-1)
        sines, cosines = jnp.sin(angles), jnp.cos(angles)
        return jnp.concatenate([first * cosines - second * sines, first * sines + second * cosines], axis=-1)


def rotary_with(base: float, run: "Run", key) -> pf.RotaryPositions:
    """Rotary positions with another base."""
    return pf.RotaryPositions(base=base)


SCHEMES: dict[str, Callable[..., pf.PositionScheme]] = {
    "none": lambda run, key: pf.NoPositions(),
    "sinusoidal": lambda run, key: pf.SinusoidalPositions(run.width),
    "learned": lambda run, key: pf.LearnedPositions(LONG, run.width, key=key),
    "rotary": lambda run, key: pf.RotaryPositions(),
    "relative": lambda run, key: pf.RelativePositions(
        run.heads, num_buckets=16, max_distance=SHORT, causal=True, key=key
    ),
    "ALiBi": lambda run, key: pf.AlibiPositions(run.heads),
    **{f"rotary, base {base:g}": partial(rotary_with, base) for base in BASES},
}


@dataclasses.dataclass(frozen=True)
class Run:
    """One training: which scheme, how many heads in which width, on what and for how long."""

    scheme: str
    heads: int = 2
    width: int = 64
    text: str = "reference"
    steps: int = 2000
    seed: int = 0

    @property
    def name(self) -> str:
        """What it is called among those that are kept."""
        return "-".join(map(str, dataclasses.astuple(self)))


def grid() -> list[Run]:
    """The trainings that the chapter shows: both widths of a head, both texts, a short training and a long one."""
    choices = itertools.product(list(SCHEMES)[:6], HEADS, TEXTS, STEPS, SEEDS)
    return [Run(scheme, heads, 64, text, steps, seed) for scheme, heads, text, steps, seed in choices]


def knobs() -> dict[str, list[Run]]:
    """What else was turned, with rotary positions where nothing else is said: five times the steps, other widths."""
    turned = {
        **{
            f"base {base:g}, heads of {64 // heads}{end}": Run(f"rotary, base {base:g}", heads, text=text)
            for (text, end), base, heads in itertools.product(
                {"reference": "", "random": ", random letters"}.items(), BASES, HEADS
            )
        },
        "heads of 16": Run("rotary", 4),
        "one head of 64": Run("rotary", 1),
        "width 32, heads of 8": Run("rotary", 4, 32),
        "width 32, one head of 32": Run("rotary", 1, 32),
        "width 128, heads of 8": Run("rotary", 16, 128),
        "width 128, heads of 32": Run("rotary", 4, 128),
        "10,000 steps, heads of 8": Run("rotary", 8, steps=10_000),
        "ALiBi, 10,000 steps, heads of 8": Run("ALiBi", 8, steps=10_000),
        "ALiBi, 10,000 steps, heads of 8, random letters": Run("ALiBi", 8, text="random", steps=10_000),
        "10,000 steps, heads of 32": Run("rotary", 2, steps=10_000),
        "relative, 10,000 steps, heads of 32": Run("relative", 2, steps=10_000),
        "none, width 128": Run("none", 4, 128),
        "none, 10,000 steps": Run("none", 2, steps=10_000),
    }
    return {name: [dataclasses.replace(run, seed=seed) for seed in SEEDS] for name, run in turned.items()}


class LookBack(eqx.Module):
    """One block under a causal mask, which says at every place the letter three places before."""

    letters: pf.TokenEmbedding
    scheme: pf.PositionScheme
    block: Wiring
    readout: jax.Array

    def __init__(self, run: Run):
        keys = jax.random.split(jax.random.key(run.seed), 4)
        self.letters = pf.TokenEmbedding(128, run.width, key=keys[0])
        self.scheme = SCHEMES[run.scheme](run, keys[1])
        stack = pf.StackConfig(
            d_model=run.width, num_heads=run.heads, d_ff=2 * run.width, norm="rms", activation="relu", use_bias=False
        )
        self.block = pf.make_block(stack, key=keys[2])
        self.readout = jax.random.normal(keys[3], (run.width, 128)) / run.width**0.5

    def __call__(self, ids):
        x = self.scheme.embed(self.letters(ids))
        return self.block(x, pf.causal_mask(ids.shape[-1]), scheme=self.scheme) @ self.readout

    def weights(self, ids):
        """Where each head looks, `(…, heads, seq, seq)`."""
        x = self.scheme.embed(self.letters(ids))
        return self.block.attention_weights(x, pf.causal_mask(ids.shape[-1]), scheme=self.scheme)[0]


@cache
def parts(text: str = "reference") -> tuple[np.ndarray, np.ndarray]:
    """The bytes to learn from, and those to test on: the Python reference, or letters drawn at random."""
    if text == "reference":
        letters = np.frombuffer(pf.data.python_reference().encode("ascii", "replace"), np.uint8).astype(np.int32)
    else:
        letters = np.random.default_rng(0).integers(ord("a"), ord("z") + 1, size=400_000).astype(np.int32)
    to_learn, to_test = np.split(letters, [len(letters) * 9 // 10])
    return to_learn, to_test


def windows(text: np.ndarray, length: int, count: int, seed: int) -> np.ndarray:
    """Pieces of the text that begin anywhere."""
    starts = np.random.default_rng(seed).integers(len(text) - length, size=count)
    return text[starts[:, None] + np.arange(length)]


def batches(run: Run, length: int, steps: int) -> np.ndarray:
    """What a run learns from, a batch for each step."""
    return windows(parts(run.text)[0], length, steps * BATCH, run.seed).reshape(steps, BATCH, length)


def texts(run: Run) -> jax.Array:
    """What a run is tested on."""
    return jnp.asarray(windows(parts(run.text)[1], LONG, NUM_TEXTS, seed=1000))


def loss(model: LookBack, batch):
    """The surprise at the letter three places before, at every place that has one."""
    return pf.cross_entropy(model(batch)[:, BACK:], batch[:, :-BACK])


@eqx.filter_jit
def learn(model: LookBack, batches, rate: float, steps: int):
    """The model after a step of Adam for every batch, and the losses before each."""
    optimiser = optax.adam(optax.cosine_decay_schedule(rate, steps))

    def step(carry, batch):
        model, state = carry
        value, slopes = eqx.filter_value_and_grad(loss)(model, batch)
        updates, state = optimiser.update(slopes, state)
        return (eqx.apply_updates(model, updates), state), value

    start = (model, optimiser.init(eqx.filter(model, eqx.is_inexact_array)))
    (model, _), losses = jax.lax.scan(step, start, batches)
    return model, losses


def trained(run: Run, num_steps: int | None = None) -> tuple[LookBack, np.ndarray]:
    """One model after its training, or after the first steps of it, and its losses."""
    todo = jnp.asarray(batches(run, SHORT, run.steps)[:num_steps])
    model, losses = learn(eqx.filter_jit(LookBack)(run), todo, RATE, run.steps)
    return model, np.asarray(losses)


@eqx.filter_jit
def num_right(model: LookBack, texts):
    """How many of the texts are answered rightly, at every place that has an answer."""
    return (model(texts)[:, BACK:].argmax(axis=2) == texts[:, :-BACK]).sum(axis=0)


@eqx.filter_jit
def look_back(model: LookBack, texts):
    """How the head that looks three places back best divides its attention over the distances 0, 1, 2, …"""
    weights = model.weights(texts).mean(axis=0)
    best = weights[:, 30, 30 - BACK].argmax()
    return weights[best, ASKS_FROM, ASKS_FROM::-1]


def kept(name: str, make) -> dict:
    """What a run found: read from `build/models/positions` if it is there, or else made and written."""
    path = BUILD / "positions" / f"{name}-{len(parts()[0])}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(make()), encoding="utf-8")
        print(name, flush=True)
    return json.loads(path.read_text(encoding="utf-8"))


def outcome(run: Run) -> dict:
    """What one model has learned: its first losses, its right answers and, of some, where its best head looks."""
    model, losses = trained(run)
    found = dataclasses.asdict(run) | {"losses": [round(float(each), 3) for each in losses[:5]]}
    found["right"] = num_right(model, texts(run)).tolist()
    if run.scheme in LOOKED_AT and run.text == "reference" and run.steps == STEPS[-1]:
        found["looks"] = [round(float(weight), 4) for weight in look_back(model, texts(run))]
    return found


def stretched(model: LookBack, how: str, width: int) -> LookBack:
    """A trained model whose angles are made for texts `TIMES` as long."""
    scheme = {
        "as it is": pf.RotaryPositions(),
        "squeezed": SqueezedPositions(base=10_000.0, fraction=1.0),
        "slower hands": pf.RotaryPositions(base=10_000.0 * TIMES ** (width / (width - 2))),
    }[how]
    return eqx.tree_at(lambda model: model.scheme, model, scheme)


def longer(run: Run) -> dict:
    """Right answers of a model whose angles are changed, at once and after some steps on long texts."""
    model, _ = trained(run)
    found = []
    for how, steps in itertools.product(STRETCHES, FURTHER):
        changed = stretched(model, how, run.width // run.heads)
        if steps:
            todo = jnp.asarray(batches(run, LONG, steps))
            changed, _ = learn(changed, todo, RATE / 3, steps)
        found.append({"how": how, "steps": steps, "shares": quarters(num_right(changed, texts(run)).tolist())})
    return dataclasses.asdict(run) | {"found": found}


def quarters(right: list[int]) -> list[float]:
    """The share of right answers in each quarter of the test windows; the first three places have no answer."""
    shares = np.array(right) / NUM_TEXTS
    return [round(float(shares[start - BACK : end - BACK].mean()), 4) for start, end in PLACES]


def line(name: str, of_seeds: list[list[float]]) -> str:
    """A line of a table: mean, least and largest share of the seeds in each quarter."""
    shares = 100 * np.array(of_seeds)
    cells = zip(shares.mean(axis=0), shares.min(axis=0), shares.max(axis=0), strict=True)
    return f"| {name} | " + " | ".join(f"{m:.0f} ({low:.0f}–{high:.0f})" for m, low, high in cells) + " |"


def table(lines: list[str]) -> str:
    """A table with a column for each quarter of the test windows."""
    head = "| | " + " | ".join(f"places {p} to {q - 1}" for p, q in PLACES) + " |"
    return "\n".join([head, "|---" * 5 + "|", *lines])


def grouped(found: dict) -> tuple[dict[str, list], ...]:
    """What the seeds found, by name: of the trainings of the chapter, the knobs that were turned, the longer texts."""
    groups: dict[str, list] = {}
    for run in found["runs"]:
        name = f"{run['text']}, {run['steps']:,} steps, heads of {run['width'] // run['heads']}: {run['scheme']}"
        groups.setdefault(name, []).append(quarters(run["right"]))
    longer: dict[str, list] = {}
    for run in found["longer"]:
        for each in run["found"]:
            name = f"heads of {run['width'] // run['heads']}: {each['how']}, {each['steps']} more steps"
            longer.setdefault(name, []).append(each["shares"])
    return groups, found["knobs"], longer


def tables(found: dict) -> tuple[str, ...]:
    """The trainings of the chapter, the knobs that were turned, and the longer texts."""
    return tuple(table([line(*item) for item in of.items()]) for of in grouped(found))


def stretched_table(longer: dict[str, list]) -> str:
    """Right answers of heads of 32 at the last places, as they stand in the chapter."""
    names = dict(zip(STRETCHES, ("as it is", f"positions divided by {TIMES}", "a larger base"), strict=True))
    head = "| | no more steps | " + " | ".join(f"{steps:,} steps" for steps in FURTHER[1:]) + " |"
    lines = [head, "|---" * (1 + len(FURTHER)) + "|"]
    for how, name in names.items():
        shares = [np.mean(longer[f"heads of 32: {how}, {steps} more steps"], axis=0)[-1] for steps in FURTHER]
        lines.append(f"| {name} | {' | '.join(f'{share:.2f}' for share in shares)} |")
    return "\n".join(lines)


def bases_table(texts: dict[str, str]) -> str:
    """Right answers at the last places by the base of rotary positions, and how many hands go all the way round."""
    head = ("heads of", "base", "hands that go round", "random letters", "the Python reference")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for width, base in itertools.product((32, 8), (10_000, 100, 16, 8, 4, 2)):
        turns = 2 * np.pi * base ** (np.arange(0, width, 2) / width)  # places that a whole turn takes
        whole = f"{(turns < SHORT).sum()} of {width // 2}"
        names = (
            (f"{text}.2000 steps.heads of {width}.rotary.far" for text in ("random", "reference"))
            if base == 10_000
            else (f"base {base}.heads of {width}.{end}far" for end in ("random letters.", ""))
        )
        lines.append(f"| {width} | {base:,} | {whole} | {' | '.join(texts[name] for name in names)} |")
    return "\n".join(lines)


def facts(found: dict) -> dict[str, str]:
    """What the chapter says: shares of right answers as near as in training, and at the last places; and tables."""
    groups = grouped(found)
    texts = {"stretched": stretched_table(groups[-1])}
    for name, of_seeds in itertools.chain(*(group.items() for group in groups)):
        place = re.sub(r"[:,] ", ".", name).replace(",", "")
        near, *_, far = np.transpose(of_seeds)
        texts |= {f"{place}.near": f"{near.mean():.2f}", f"{place}.far": f"{far.mean():.2f}"}
        texts |= ends(f"{place}.far", far)
    return texts | {"bases": bases_table(texts)}


def card(found: dict) -> str:
    """What was done, and what came out."""
    runs, turned, longer = tables(found)
    return f"""# One block, and each way of telling positions

Six models that differ in how they are told where a token stands, trained on short texts and tested on longer ones. No
weights are kept: the answers are the result, and stand in `record.json`.

- **Data.** `plainformer.data.python_reference()` of Python {found["python"]}, as bytes: nine tenths,
  {found["to_learn"]:,}, to learn from in windows of {SHORT}; of the rest {NUM_TEXTS} windows of {LONG} to test on. Or
  `random`: 400,000 of the 26 small letters, drawn at random, so that nothing can be guessed from the letters around.
- **Task.** At each place, the letter {BACK} places before.
- **Model.** One pre-norm block, 64 wide, inner width 128, RMS norm, relu, no biases, a causal mask;
  {found["parameters"]:,} parameters, and those of the scheme. Eight heads of 8 columns or two of 32, with as many
  parameters. The learned table has {LONG} rows; there are 16 relative buckets, and the last begins within {SHORT}
  places.
- **Training.** 200 or 2,000 steps of {BATCH} windows, seeds 0 to 2 for weights and windows; Adam, learning rate
  {RATE:g} falling to 0 along a cosine. All settings stand in `lab/positions/run.py`; `make models` trains
  them again.
- **Result.** Right answers in per cent, mean of three seeds (least to largest). In the reference the commonest letter
  would be right in {100 * found["commonest"]:.0f} %, of random letters in 4 %.

{runs}

- **Knobs turned.** On the reference, 2,000 steps and rotary positions where nothing else is said:

{turned}

- **Longer texts.** Rotary positions after 2,000 steps on the reference, then tested as they are, with all positions
  divided by {TIMES} (Chen et al., 2023), or with a larger base, so that the slowest hand turns {TIMES} times as slowly
  and the fastest as before; at once, and after some more steps on windows of {LONG}, learning rate {RATE / 3:.4f}:

{longer}

- **Limits.** One block, one task made for exact places. On other versions of Python the text differs a little, and so
  do the answers.
- **Licence.** The answers are under Apache-2.0, as the code; the text is part of CPython and has its licence.
"""


def results() -> dict:
    """Train all models and return what they answer."""
    test = np.asarray(texts(Run("none")))
    answers = {
        name: [quarters(kept(run.name, partial(outcome, run))["right"]) for run in runs]
        for name, runs in knobs().items()
    }
    rotary = [Run("rotary", heads, seed=seed) for heads in HEADS for seed in SEEDS]
    return {
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "to_learn": len(parts()[0]),
        "parameters": pf.count_parameters(eqx.filter_eval_shape(LookBack, Run("none"))),
        "commonest": round(float(np.bincount(test.ravel()).max() / test.size), 4),
        "runs": [kept(run.name, partial(outcome, run)) for run in grid()],
        "knobs": answers,
        "longer": [kept(f"longer-{run.name}", partial(longer, run)) for run in rotary],
    }
