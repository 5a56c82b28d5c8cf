"""Train the masked autoencoder for longer, and in other sizes, than a cell can; write a record.

No weights are kept: how far the filled-in pixels are from the true ones is the result. `record.json` holds it.
"""

import dataclasses
import json
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.records import BUILD
from lab.vision.run import bright, fold_of
from plainformer.data.digits import Digits
from plainformer.models.encoder import RowEncoder

KEPT, SEEDS, RATES = BUILD / "filling", (0, 1, 2), (4e-3, 8e-3)
STEPS, LONG, BATCH_SIZE, NUM_SHOWN = 700, 3500, 64, 8
SHARPNESS, RIDGES = (0.5, 1.0, 1.5, 2.0, 3.0, 5.0), (0.001, 0.01, 0.1)


class Hidden(NamedTuple):
    """Patches, `(n, 16, 4)`, and the numbers of those that are shown, `(n, num_shown)`."""

    patches: jax.Array
    shown: jax.Array


def reader(d_in: int, width: int, num_layers: int, positions: str, key):
    """An encoder of rows; a learned table of positions is made as loud as the rows."""
    sizes: dict[str, Any] = {"d_model": width, "num_layers": num_layers, "d_ff": 2 * width, "activation": "relu"}
    stack = pf.StackConfig(**sizes, position_scheme="sinusoidal_2d" if positions == "sinusoids" else "learned")
    made = RowEncoder(pf.EncoderConfig(context_len=16, d_in=d_in, stack=stack), grid=(4, 4), key=key)
    if positions != "loud":
        return made
    return eqx.tree_at(lambda each: each.stack.scheme.table, made, replace_fn=lambda table: 50 * table)


class MaskedAutoencoder(eqx.Module):
    """An encoder reads the patches that are shown; a decoder gets its rows, and blank ones for the others."""

    encoder: RowEncoder
    decoder: RowEncoder
    blank: jax.Array
    output: pf.Linear

    def __init__(self, width: int, positions: str, *, key):
        keys = jax.random.split(key, 3)
        self.encoder = reader(4, width, 2, positions, keys[0])
        self.decoder = reader(width, width, 1, positions, keys[1])
        self.blank, self.output = jnp.zeros(width), pf.Linear(width, 4, key=keys[2])

    def __call__(self, patches, shown):
        stack, rows = self.encoder.stack, self.encoder.embed(patches)
        read = stack.normalise(stack(jnp.take_along_axis(rows, shown[:, :, None], axis=1)))
        rows = jnp.broadcast_to(self.blank, rows.shape).at[jnp.arange(len(rows))[:, None], shown].set(read)
        return self.output(self.decoder(rows))


def is_hidden(shown) -> np.ndarray:
    """Which of the 16 patches are not shown."""
    return ~(np.asarray(shown)[:, :, None] == np.arange(16)).any(axis=1)


def filling_loss(model, batch: Hidden, key=None):
    """The mean square of the error of what is hidden."""
    hidden = ~(batch.shown[:, :, None] == jnp.arange(16)).any(axis=1)
    return ((model(*batch) - batch.patches) ** 2).mean(axis=2).mean(where=hidden)


@dataclasses.dataclass(frozen=True)
class Run:
    """One training."""

    rate: float
    seed: int = 0
    steps: int = STEPS
    width: int = 64
    num_shown: int = 8
    positions: str = "loud"
    part: str = "all"  # of the training digits, or "rest", without the fold

    @property
    def name(self) -> str:
        """What it is called among those that are kept."""
        return "-".join(map(str, dataclasses.astuple(self)))


def patches_of(digits: Digits) -> np.ndarray:
    """Patches of 2 x 2 pixels, which lie from 0 to 2."""
    return np.asarray(pf.image_to_patches(bright(digits.images), 2))


def choices(num_images: int, num_shown: int, seed) -> np.ndarray:
    """Which patches of each image are shown."""
    random = np.random.default_rng(seed)
    return random.permuted(np.tile(np.arange(16), (num_images, 1)), axis=1)[:, :num_shown]


def parts(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Patches to learn from, and to judge by: all training digits and the test, or the rest of them and the fold."""
    training, test = pf.data.digits()
    chosen = (training, test) if name == "all" else fold_of(training)
    return patches_of(chosen[0]), patches_of(chosen[1])


def error(filled, patches, shown) -> float:
    """The mean square of the error of what is hidden."""
    return float(((np.asarray(filled) - patches) ** 2)[is_hidden(shown)].mean())


def measured(run: Run) -> float:
    """The error of a run on what it is judged by."""
    kept = KEPT / f"{run.name}.json"
    if not kept.exists():
        learned, judged = parts(run.part)

        def batch_at(step: int) -> Hidden:
            chosen = np.random.default_rng((run.seed, step)).integers(len(learned), size=BATCH_SIZE)
            return Hidden(
                jnp.asarray(learned[chosen]), jnp.asarray(choices(BATCH_SIZE, run.num_shown, (step, run.seed)))
            )

        how = pf.TrainingConfig(num_steps=run.steps, learning_rate=run.rate, warmup_steps=40, min_lr_ratio=0.01)
        model = MaskedAutoencoder(run.width, run.positions, key=jax.random.key(run.seed))
        model = pf.fit(model, filling_loss, batch_at, how, progress=False, directory=KEPT / run.name).model
        shown = choices(len(judged), run.num_shown, 0)
        found = error(eqx.filter_jit(model)(jnp.asarray(judged), jnp.asarray(shown)), judged, shown)
        print(run.name, f"{found:.4f}", flush=True)
        kept.write_text(json.dumps(found), encoding="utf-8")
    return json.loads(kept.read_text(encoding="utf-8"))


def by_regression(learned, judged, shown, ridge: float):
    """The best linear guess of what is hidden by what is shown, from means and covariances of pixels."""
    flat = learned.reshape(len(learned), 64)
    mean, covariance = flat.mean(axis=0), np.cov(flat.T) + ridge * np.eye(64)
    filled = np.empty_like(judged)
    for n, image in enumerate(judged.reshape(len(judged), 64)):
        hidden = np.repeat(is_hidden(shown[n : n + 1])[0], 4)
        slopes = np.linalg.solve(covariance[np.ix_(~hidden, ~hidden)], (image - mean)[~hidden])
        guess = image.copy()
        guess[hidden] = mean[hidden] + covariance[np.ix_(hidden, ~hidden)] @ slopes
        filled[n] = guess.reshape(16, 4)
    return filled


def by_neighbours(learned, judged, shown, sharpness: float):
    """The mean of all training images, each weighted by how near it is in what is shown: a Gaussian kernel."""
    seen = np.repeat(~is_hidden(shown), 4, axis=1).astype(np.float32)
    keys, images = learned.reshape(-1, 64), judged.reshape(-1, 64)
    distances = (seen * images**2).sum(axis=1)[:, None] - 2 * (seen * images) @ keys.T + seen @ (keys**2).T
    weights = np.asarray(pf.softmax(jnp.asarray(-sharpness * distances)))
    return (weights @ keys).reshape(judged.shape)


def opponents() -> dict[str, Any]:
    """The errors of what needs no training, on the test, with settings chosen on the fold."""
    found, (learned, judged) = {}, parts("all")
    rest, fold = parts("rest")
    shown, shown_of_fold = choices(len(judged), NUM_SHOWN, 0), choices(len(fold), NUM_SHOWN, 0)
    found["mean"] = error(np.broadcast_to(learned.mean(axis=0), judged.shape), judged, shown)
    for name, fill, values in (("regression", by_regression, RIDGES), ("neighbours", by_neighbours, SHARPNESS)):
        errors = [error(fill(rest, fold, shown_of_fold, value), fold, shown_of_fold) for value in values]
        best = values[int(np.argmin(errors))]
        found[name], found[f"{name}, setting"] = error(fill(learned, judged, shown, best), judged, shown), best
    return found


def best_rate() -> float:
    """The learning rate with the lowest error on the fold."""
    errors = [measured(Run(rate, part="rest")) for rate in RATES]
    return RATES[int(np.argmin(errors))]


def results() -> dict[str, Any]:
    """All that the card states."""
    rate = best_rate()
    return {
        "rate": rate,
        "parameters": pf.count_parameters(MaskedAutoencoder(64, "loud", key=jax.random.key(0))),
        "errors": [measured(Run(rate, seed)) for seed in SEEDS],
        "five times the steps": measured(Run(rate, steps=LONG)),
        "sinusoids": measured(Run(rate, positions="sinusoids")),
        "opponents": opponents(),
    }


def line(errors: list[float]) -> str:
    """The errors of three seeds."""
    return ", ".join(f"{each:.3f}" for each in errors)


def facts(found: dict[str, Any]) -> dict[str, str]:
    """Mean squared errors: of each seed, of what was changed, and of what needs no network."""
    errors = {f"error.{seed}": each for seed, each in enumerate(found["errors"])}
    errors |= {name: found[name] for name in ("five times the steps", "sinusoids")}
    errors |= {name: found["opponents"][name] for name in ("regression", "neighbours")}
    return {name: f"{each:.3f}" for name, each in errors.items()}


def card(found: dict[str, Any]) -> str:
    """What was done, and what came out."""
    rivals = found["opponents"]
    return f"""# The masked autoencoder of digits

How well a small masked autoencoder paints patches of digits that it is not shown, beside what needs no network. No
weights are kept: the mean squared error of the hidden pixels, which lie from 0 to 2, is the result.

- **Data.** `plainformer.data.digits()`: 1,442 images to train on, 355 held out, by the same writers. Of 16 patches of
  2 × 2 pixels 8 are shown, drawn anew for each batch.
- **Model.** {found["parameters"]:,} parameters: an encoder of two blocks of width 64 that reads the patches that are
  shown, a decoder of one block that reads its rows and one learned row in all other places. Learned positions, which
  begin 50 times as large as usual.
- **Training.** {STEPS} steps of {BATCH_SIZE} images, or {LONG:,}; AdamW; learning rate up to {found["rate"]:g}, the
  better of {" and ".join(f"{rate:g}" for rate in RATES)} on a fold of 285 training digits; seeds 0, 1, 2. All settings
  stand in `lab/filling/run.py`; `make models ONLY=filling` trains again.
- **Opponents.** Linear regression of each hidden pixel on all that are shown, from means and covariances of the
  training images, with {rivals["regression, setting"]:g} added to the variances. Neighbours: the mean of all training
  images, weighted by a Gaussian kernel of sharpness {rivals["neighbours, setting"]:g}. Both settings were chosen on the
  fold.
- **Result.** Mean squared error on the test digits:

| | 8 of 16 patches shown |
|---|---|
| mean of the training images | {rivals["mean"]:.3f} |
| linear regression | {rivals["regression"]:.3f} |
| neighbours | {rivals["neighbours"]:.3f} |
| masked autoencoder, {STEPS} steps, each seed | {line(found["errors"])} |

- **Knobs turned**, seed 0. With {LONG:,} steps: {found["five times the steps"]:.3f}. With two-dimensional sinusoids in
  place of the loud table of positions, {STEPS} steps: {found["sinusoids"]:.3f}. Not turned: the width, how many patches
  are shown, and rates beyond the larger of the two.
- **Limits.** Tiny, centred digits; a test image has near relatives among the training images, and neighbours look them
  up. Whether the encoder is a good start for naming digits was not measured.
- **Licence.** The numbers are under Apache-2.0, as the code; the images are of the UCI repository.
"""
