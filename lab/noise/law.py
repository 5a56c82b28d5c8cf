"""Opponents that are told more: the law, through which a shape and a first state are fitted; or exact windows."""

import numpy as np
import scipy.sparse
from scipy.optimize import least_squares
from scipy.spatial.distance import cdist
from scipy.special import softmax

from lab.noise.opponents import TEST_SEED
from lab.noise.tasks import AHEAD, Task, asked, error
from plainformer.data.rigid_body import implicit_midpoint

ON_SPHERE, AT_ONCE = 1e-3, 1000  # how near the length of 1, which it is told, is kept; windows in one problem
SHAPES = 0.1, 0.9  # what it is told of the shape


def fitted(given: np.ndarray, sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """Shape and first state of each window, `(windows,)` and `(windows, 3)`, by one sparse problem for all of them.

    Of too many windows at once the search stops before each of them is fitted.
    """
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


def averaged(exact: np.ndarray, given: np.ndarray, sigma: float) -> np.ndarray:
    """The mean of what follows in exact windows, each weighed by how likely it is to be measured as what is given.

    For windows without number it is the guess with the least mean square error (Bishop, 2006, equation 1.89).
    """
    windows, read = exact.reshape(len(exact), -1).astype(np.float32), given[0].size
    before, after = windows[:, :read], windows[:, read:]
    guesses = []
    for part in np.array_split(given.reshape(len(given), -1).astype(np.float32), max(1, len(given) // 200)):
        nats = -cdist(part, before, "sqeuclidean") / (2 * sigma**2)
        guesses.append(softmax(nats, axis=1) @ after)
    return np.concatenate(guesses)


def told(task: Task, sigma: float) -> dict[str, dict[str, float]]:
    """The errors of who is told the law, and of who is told exact windows."""
    given, wanted = asked(task.test, task.seq, sigma, TEST_SEED)
    parts = [fitted(part, sigma) for part in np.array_split(given, -(-len(given) // AT_ONCE))]
    kappa, first = map(np.concatenate, zip(*parts, strict=True))
    points = implicit_midpoint(first, kappa=kappa, num_steps=task.seq + AHEAD - 1)
    guesses = {"told the law": points[:, task.seq :], "told exact windows": averaged(task.training, given, sigma)}
    return {kind: {"test": error(guess, wanted)} for kind, guess in guesses.items()}
