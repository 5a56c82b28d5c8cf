"""Train the one-block models of chapter 06, with each way of telling positions; write what they answer with a card.

No weights are kept: the answers are the result. `positions.json` holds them.
"""

import json
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from records import write_record

import plainformer as pf
from plainformer.blocks.blocks import Wiring

ROOT = Path(__file__).resolve().parents[2]
WIDTH, HEADS, SHORT, LONG, BACK = 32, 4, 32, 128, 3
STEPS, BATCH, NUM_TEXTS, SEEDS = 200, 8, 100, (0, 1, 2)
LOOKED_AT, ASKS_FROM = ("sinusoidal", "rotary", "relative"), 100
SCHEMES = {
    "none": lambda key: pf.NoPositions(),
    "sinusoidal": lambda key: pf.SinusoidalPositions(WIDTH),
    "learned": lambda key: pf.LearnedPositions(LONG, WIDTH, key=key),
    "rotary": lambda key: pf.RotaryPositions(),
    "relative": lambda key: pf.RelativePositions(HEADS, num_buckets=16, max_distance=SHORT, causal=True, key=key),
    "ALiBi": lambda key: pf.AlibiPositions(HEADS),
}
PLACES = [(BACK, 32), (32, 64), (64, 96), (96, 128)]
optimiser = optax.adam(optax.cosine_decay_schedule(0.015, STEPS))


class LookBack(eqx.Module):
    """One block under a causal mask, which says at every place the letter three places before."""

    letters: pf.TokenEmbedding
    scheme: pf.PositionScheme
    block: Wiring
    readout: jax.Array

    def __init__(self, name: str, seed: int):
        keys = jax.random.split(jax.random.key(seed), 4)
        self.letters = pf.TokenEmbedding(128, WIDTH, key=keys[0])
        self.scheme = SCHEMES[name](keys[1])
        stack = pf.StackConfig(
            d_model=WIDTH, num_heads=HEADS, d_ff=2 * WIDTH, norm="rms", activation="relu", use_bias=False
        )
        self.block = pf.make_block(stack, key=keys[2])
        self.readout = jax.random.normal(keys[3], (WIDTH, 128)) / WIDTH**0.5

    def __call__(self, ids):
        x = self.scheme.embed(self.letters(ids))
        return self.block(x, pf.causal_mask(ids.shape[-1]), scheme=self.scheme) @ self.readout

    def weights(self, ids):
        """Where each head looks, `(…, heads, seq, seq)`."""
        x = self.scheme.embed(self.letters(ids))
        return self.block.attention_weights(x, pf.causal_mask(ids.shape[-1]), scheme=self.scheme)[0]


def parts() -> tuple[np.ndarray, np.ndarray]:
    """The bytes to learn from, and those to test on."""
    letters = np.frombuffer(pf.data.python_reference().encode("ascii", "replace"), np.uint8).astype(np.int32)
    to_learn, to_test = np.split(letters, [len(letters) * 9 // 10])
    return to_learn, to_test


def windows(text: np.ndarray, length: int, count: int, seed: int) -> np.ndarray:
    """Pieces of the text that begin anywhere."""
    starts = np.random.default_rng(seed).integers(len(text) - length, size=count)
    return text[starts[:, None] + np.arange(length)]


def loss(model: LookBack, batch):
    """The surprise at the letter three places before, at every place that has one."""
    return pf.cross_entropy(model(batch)[:, BACK:], batch[:, :-BACK])


@eqx.filter_jit
def learn(model: LookBack, batches):
    """The model after a step of Adam for every batch, and the losses before each."""

    def step(carry, batch):
        model, state = carry
        value, slopes = eqx.filter_value_and_grad(loss)(model, batch)
        updates, state = optimiser.update(slopes, state)
        return (eqx.apply_updates(model, updates), state), value

    start = (model, optimiser.init(eqx.filter(model, eqx.is_inexact_array)))
    (model, _), losses = jax.lax.scan(step, start, batches)
    return model, losses


def trained(name: str, seed: int, to_learn: np.ndarray, num_steps: int = STEPS) -> tuple[LookBack, np.ndarray]:
    """One model, and its losses."""
    batches = windows(to_learn, SHORT, STEPS * BATCH, seed).reshape(STEPS, BATCH, SHORT)[:num_steps]
    model, losses = learn(eqx.filter_jit(LookBack)(name, seed), jnp.asarray(batches))
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


def run(name: str, seed: int, to_learn: np.ndarray, texts: np.ndarray) -> dict:
    """What one model has learned, kept under `build/models/positions`, where it is read if it is there."""
    kept = ROOT / "build" / "models" / "positions" / f"{name}-{seed}-{len(to_learn)}.json"
    if not kept.exists():
        model, losses = trained(name, seed, to_learn)
        found: dict = {"scheme": name, "seed": seed, "losses": [round(float(each), 3) for each in losses]}
        found["right"] = num_right(model, texts).tolist()
        if name in LOOKED_AT:
            found["looks"] = [round(float(weight), 4) for weight in look_back(model, texts)]
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(found), encoding="utf-8")
        print(name, seed, found["losses"][-1], flush=True)
    return json.loads(kept.read_text(encoding="utf-8"))


def quarters(run: dict) -> list[float]:
    """The share of right answers in each quarter of the test windows; the first three places have no answer."""
    right = np.array(run["right"]) / NUM_TEXTS
    return [float(right[start - BACK : end - BACK].mean()) for start, end in PLACES]


def table(runs: list[dict]) -> str:
    """A line of the card for each scheme: mean, least and largest share of the seeds."""
    lines = ["| scheme | " + " | ".join(f"places {p} to {q - 1}" for p, q in PLACES) + " |", "|---" * 5 + "|"]
    for name in SCHEMES:
        shares = 100 * np.array([quarters(run) for run in runs if run["scheme"] == name])
        cells = zip(shares.mean(axis=0), shares.min(axis=0), shares.max(axis=0), strict=True)
        lines.append(
            f"| {name} | " + " | ".join(f"{m:.0f} % ({low:.0f} to {high:.0f})" for m, low, high in cells) + " |"
        )
    return "\n".join(lines)


def card(results: dict) -> str:
    """What was done, and what came out."""
    return f"""# The one-block models of chapter 06

Six models that differ in how they are told where a token stands, trained on short texts and tested on longer ones. No
weights are kept: the answers are the result, and stand in `positions.json`.

- **Data.** `plainformer.data.python_reference()` of Python {results["python"]}, as bytes: nine tenths,
  {results["to_learn"]:,}, to learn from in windows of {SHORT}; of the rest {NUM_TEXTS} windows of {LONG} to test on.
- **Task.** At each place, the letter {BACK} places before.
- **Model.** One pre-norm block of width {WIDTH} with {HEADS} heads, inner width {2 * WIDTH}, RMS norm, relu, no biases,
  a causal mask; {results["parameters"]:,} parameters, and those of the scheme. The learned table has {LONG} rows;
  there are 16 relative buckets, and the last begins within {SHORT} places.
- **Training.** {STEPS} steps of {BATCH} windows, seeds 0 to 2 for weights and windows; Adam, learning rate 0.015
  falling to 0 along a cosine. All settings stand in `tools/models/train_positions.py`; `make models` trains them again.
- **Result.** Right answers, mean of three seeds (least to largest); always the commonest letter is right in
  {100 * results["commonest"]:.0f} % of cases:

{table(results["runs"])}

  `positions.json` has, for each model, the loss at every step, how many of the {NUM_TEXTS} windows are answered rightly
  at each place from {BACK} on and, for {", ".join(LOOKED_AT)}, how the head that looks {BACK} places back best divides
  its attention when it asks from place {ASKS_FROM}.
- **Limits.** One block, one width, one task made for exact places, {STEPS} steps; nothing was tuned. On other versions
  of Python the text differs a little, and so do the answers.
- **Licence.** The answers are under Apache-2.0, as the code; the text is part of CPython and has its licence.
"""


def train() -> None:
    """Train all models, and write what they answer with a card."""
    to_learn, to_test = parts()
    texts = windows(to_test, LONG, NUM_TEXTS, seed=1000)
    results = {
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "to_learn": len(to_learn),
        "parameters": pf.count_parameters(eqx.filter_eval_shape(LookBack, "none", 0)),
        "commonest": round(float(np.bincount(texts.ravel()).max() / texts.size), 4),
        "runs": [run(name, seed, to_learn, texts) for name in SCHEMES for seed in SEEDS],
    }
    write_record("positions", results, card(results))


if __name__ == "__main__":
    train()
