"""Points measured with noise: two tasks, and the noise.

All points of a window are measured, those that are read and those that follow. Models are judged by how far what they
make of measured points is from the true points that follow.
"""

from typing import NamedTuple

import jax
import numpy as np

from lab.dynamics.run import RUNS

NOISES = (0.0, 0.003, 0.01, 0.03, 0.1)  # standard deviations; a body's angular momentum has a length of about 1
AHEAD = 3  # points to predict
NUM_VALIDATION = 3000


class Task(NamedTuple):
    """True windows, `(windows, seq + AHEAD, 3)`: to learn from, to choose by, and to test; `seq` points are read."""

    seq: int
    training: np.ndarray
    validation: np.ndarray
    test: np.ndarray


SEQ = {"lengths": 3, "shapes": 12}
OF = {"lengths": "dynamics_lengths", "shapes": "dynamics_hidden"}


def cut(states: np.ndarray, length: int) -> np.ndarray:
    """All windows of some trajectories, `(windows, length, 3)`."""
    view = np.lib.stride_tricks.sliding_window_view(states, length, axis=1)
    return np.ascontiguousarray(view.swapaxes(2, 3).reshape(-1, length, 3))


def task(name: str) -> Task:
    """Bodies of one shape and several lengths, windows of three; or of several shapes on one sphere, of twelve."""
    run, length = RUNS[OF[name]], SEQ[name] + AHEAD
    splits = run.splits()
    validation = cut(splits.validation.states, length)
    chosen = np.random.default_rng(0).permutation(len(validation))[:NUM_VALIDATION]
    return Task(SEQ[name], cut(splits.training.states, length), validation[chosen], cut(run.tested().states, length))


def measured(windows, sigma, key):
    """Windows as an instrument shows them: to every number of every point Gaussian noise is added."""
    windows = jax.numpy.asarray(windows)
    return windows + sigma * jax.random.normal(key, windows.shape, windows.dtype)


def drawn(windows: np.ndarray, seq: int, sigma: float, number: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """So many windows, drawn at random and measured: what is read, and what follows."""
    rng = np.random.default_rng(seed)
    chosen = windows[rng.integers(len(windows), size=number)]
    seen = chosen + sigma * rng.normal(size=chosen.shape)
    return seen[:, :seq], seen[:, seq:]


def asked(windows: np.ndarray, seq: int, sigma: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """All these windows: the points that are read, as measured, and those that follow, as they are."""
    noise = np.random.default_rng(seed).normal(size=(len(windows), seq, 3))
    return windows[:, :seq] + sigma * noise, windows[:, seq:]


def error(guess: np.ndarray, wanted: np.ndarray) -> float:
    """Root mean square error of a number."""
    return float(((guess.reshape(wanted.shape) - wanted) ** 2).mean() ** 0.5)
