"""An opponent that is told the law: it fits the shape and the first state to a window through the true equation."""

import numpy as np
import scipy.sparse
from scipy.optimize import least_squares

from lab.noise.opponents import TEST_SEED
from lab.noise.tasks import AHEAD, Task, asked, error
from plainformer.data.rigid_body import implicit_midpoint

WINDOWS, ON_SPHERE = 300, 1e-3  # of the test; how near the length of 1, which it is told, is kept
SHAPES = 0.1, 0.9  # what it is told of the shape


def fitted(given: np.ndarray, sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """Shape and first state of each window, `(windows,)` and `(windows, 3)`, by one sparse problem for all of them."""
    number, seq, _ = given.shape
    rows = 3 * seq + 1

    def residuals(unknown: np.ndarray) -> np.ndarray:
        kappa, first = np.split(unknown.reshape(number, 4), [1], axis=1)
        points = implicit_midpoint(first, kappa=kappa[:, 0], num_steps=seq - 1)
        away = (points - given).reshape(number, -1) / sigma
        length = (np.linalg.norm(first, axis=1, keepdims=True) - 1) / ON_SPHERE
        return np.concatenate([away, length], axis=1).ravel()

    start = np.concatenate([np.full((number, 1), 0.5), given[:, 0] / np.linalg.norm(given[:, 0], axis=1)[:, None]], 1)
    lowest, highest = np.tile([SHAPES[0], -2, -2, -2], number), np.tile([SHAPES[1], 2, 2, 2], number)
    sparsity = scipy.sparse.kron(scipy.sparse.identity(number), np.ones((rows, 4)))
    found = least_squares(
        residuals, start.ravel(), bounds=(lowest, highest), jac_sparsity=sparsity, x_scale="jac", max_nfev=60
    )
    kappa, first = np.split(found.x.reshape(number, 4), [1], axis=1)
    return kappa[:, 0], first


def told(task: Task, sigma: float) -> dict:
    """The error on some windows of the test."""
    chosen = np.random.default_rng(0).permutation(len(task.test))[:WINDOWS]
    given, wanted = (each[chosen] for each in asked(task.test, task.seq, sigma, TEST_SEED))
    kappa, first = fitted(given, sigma)
    points = implicit_midpoint(first, kappa=kappa, num_steps=task.seq + AHEAD - 1)
    return {"test": error(points[:, task.seq :], wanted)}
