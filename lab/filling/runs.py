"""What fills in the patches of digits that are not shown: two networks, linear regression and neighbours."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.records import BUILD, kept
from lab.vision.run import bright, fold_of, shifted_batches
from plainformer.data.digits import Digits
from plainformer.models.encoder import RowEncoder

KEPT, SEEDS, STEPS, BATCH_SIZE, NUM_SHOWN = BUILD / "filling", (0, 1, 2), 700, 64, 8
EVERY = 500  # steps between points of a curve
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


class Perceptron(eqx.Module):
    """A plain network: of all pixels, those of hidden patches 0, and of which patches are shown, to all pixels."""

    layers: eqx.nn.MLP

    def __init__(self, width: int, *, key):
        self.layers = eqx.nn.MLP(16 * 4 + 16, 16 * 4, width, depth=2, key=key)

    def __call__(self, patches, shown):
        seen = (shown[:, :, None] == jnp.arange(16)).any(axis=1)
        rows = jnp.where(seen[:, :, None], patches, 0).reshape(len(patches), -1)
        return jax.vmap(self.layers)(jnp.concatenate([rows, seen], axis=1)).reshape(patches.shape)


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
    moved: bool = False  # each image by up to a pixel, whenever it is drawn
    plain: bool = False  # a perceptron in place of the autoencoder

    @property
    def name(self) -> str:
        """What it is called among those that are kept."""
        return "-".join(map(str, dataclasses.astuple(self)))

    def start(self):
        """The network before training."""
        key = jax.random.key(self.seed)
        return Perceptron(self.width, key=key) if self.plain else MaskedAutoencoder(self.width, self.positions, key=key)


def patches_of(digits: Digits) -> np.ndarray:
    """Patches of 2 x 2 pixels, which lie from 0 to 2."""
    return np.asarray(pf.image_to_patches(bright(digits.images), 2))


def choices(num_images: int, num_shown: int, seed) -> np.ndarray:
    """Which patches of each image are shown."""
    random = np.random.default_rng(seed)
    return random.permuted(np.tile(np.arange(16), (num_images, 1)), axis=1)[:, :num_shown]


def digits_of(part: str) -> tuple[Digits, Digits]:
    """Digits to learn from, and to judge by: all for training and the test, or the rest of them and the fold."""
    training, test = pf.data.digits()
    return (training, test) if part == "all" else fold_of(training)


def parts(name: str) -> tuple[np.ndarray, np.ndarray]:
    """The patches of both."""
    learned, judged = digits_of(name)
    return patches_of(learned), patches_of(judged)


def batches(run: Run) -> Callable[[int], Hidden]:
    """For each step, images drawn at random, and which of their patches are shown."""
    digits, _ = digits_of(run.part)
    learned, moved_at = patches_of(digits), shifted_batches(digits, BATCH_SIZE, run.seed)

    def batch_at(step: int) -> Hidden:
        if run.moved:
            patches = pf.image_to_patches(moved_at(step)[0], 2)
        else:
            chosen = np.random.default_rng((run.seed, step)).integers(len(learned), size=BATCH_SIZE)
            patches = jnp.asarray(learned[chosen])
        return Hidden(patches, jnp.asarray(choices(BATCH_SIZE, run.num_shown, (step, run.seed))))

    return batch_at


def error(filled, patches, shown) -> float:
    """The mean square of the error of what is hidden."""
    return float(((np.asarray(filled) - patches) ** 2)[is_hidden(shown)].mean())


def trained(run: Run, **how) -> pf.training.FitResult:
    """A network trained as a run says."""
    settings: dict[str, Any] = {
        "num_steps": run.steps,
        "learning_rate": run.rate,
        "warmup_steps": 40,
        "min_lr_ratio": 0.01,
    }
    config = pf.TrainingConfig(**settings, evaluate_every=EVERY)
    return pf.fit(run.start(), filling_loss, batches(run), config, progress=False, directory=KEPT / run.name, **how)


def judge(run: Run) -> Callable[[Any], float]:
    """From a network to its error on what the run is judged by."""
    _, judged = parts(run.part)
    shown = choices(len(judged), run.num_shown, 0)
    return lambda model: error(eqx.filter_jit(model)(jnp.asarray(judged), jnp.asarray(shown)), judged, shown)


def measured(run: Run) -> float:
    """The error of a run on what it is judged by."""

    def find() -> float:
        found = judge(run)(trained(run).model)
        print(run.name, f"{found:.4f}", flush=True)
        return found

    return kept(KEPT / f"{run.name}.json", find)


def on_the_way(run: Run) -> dict[str, float]:
    """The error of a run on what it is judged by, by steps."""

    def find() -> dict[str, float]:
        metrics = trained(run, evaluate=lambda model: {"error": judge(run)(model)}).metrics
        return {str(each["step"]): each["error"] for each in metrics if each.get("error") is not None}

    return kept(KEPT / f"{run.name}-curve.json", find)


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
