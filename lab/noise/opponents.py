"""Simple opponents on noisy windows: polynomials by least squares and ridge regression, and nothing that is trained.

Degree, strength and the number of noisy windows that they learn from are chosen on the validation trajectories.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.linalg
from sklearn.preprocessing import PolynomialFeatures

from lab.noise.tasks import AHEAD, Task, asked, drawn, error

STRENGTHS = (0.0, 1e-10, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)  # 0: least squares
SIZES = (15_000, 60_000)  # noisy windows
VALIDATION_SEED, TEST_SEED = 101, 102


def powers(windows: np.ndarray, degree: int, points: int = 0) -> np.ndarray:
    """All products of the numbers of the last `points` points, or of all, up to a degree."""
    flat = windows[:, -points:].reshape(len(windows), -1)
    return PolynomialFeatures(degree, include_bias=False).fit_transform(flat)


def in_time(seq: int, degree: int) -> np.ndarray:
    """The matrix that fits a polynomial in time to a window of points by least squares: coefficients, highest first."""
    return np.linalg.pinv(np.vander(np.linspace(-1, 0, seq), degree + 1))


def powers_of_fit(windows: np.ndarray, degree: int, time_degree: int) -> np.ndarray:
    """All products of the coefficients of a polynomial in time that is fitted to the window."""
    coefficients = in_time(windows.shape[1], time_degree) @ windows
    return powers(coefficients, degree)


FEATURES: dict[str, dict[str, dict[str, Callable]]] = {
    "lengths": {
        "last point": {f"degree {degree}": partial(powers, degree=degree, points=1) for degree in range(1, 8)},
        "window": {f"degree {degree}": partial(powers, degree=degree) for degree in range(1, 4)},
    },
    "shapes": {
        "linear": {"degree 1": partial(powers, degree=1)},
        "quadratic": {"degree 2": partial(powers, degree=2)},
        "curve": {
            f"degree {degree} of degree {time} in time": partial(powers_of_fit, degree=degree, time_degree=time)
            for degree, time in ((2, 2), (3, 2), (4, 2), (2, 3), (3, 3), (2, 4))
        },
    },
}


def by_strength(features: np.ndarray, targets: np.ndarray) -> Callable[[np.ndarray, float], np.ndarray]:
    """What ridge regression on standardised features says, for any features and strength; least squares with 0."""
    mean, scale, middle = features.mean(axis=0), features.std(axis=0), targets.mean(axis=0)
    both = np.concatenate([(features - mean) / scale, targets - middle], axis=1) / len(features) ** 0.5
    triangle = scipy.linalg.qr(both, mode="r", overwrite_a=True, check_finite=False)[0]
    size = features.shape[1]
    left, values, right = np.linalg.svd(triangle[:size, :size])
    turned = left.T @ triangle[:size, size:]
    values_kept = np.maximum(values, 1e-14 * values[0])

    def guess(asked: np.ndarray, strength: float) -> np.ndarray:
        weights = right.T @ ((values_kept / (values_kept**2 + strength))[:, None] * turned)
        return middle + (asked - mean) / scale @ weights

    return guess


def best_polynomial(task: Task, kinds: dict[str, Callable], sigma: float) -> dict:
    """The setting with the least error on the validation trajectories, and its error in the test."""
    given, wanted = asked(task.validation, task.seq, sigma, VALIDATION_SEED)
    test, truth = asked(task.test, task.seq, sigma, TEST_SEED)
    best: dict = {"validation": np.inf}
    for kind, features in kinds.items():
        for size in SIZES:
            before, after = drawn(task.training, task.seq, sigma, size, 0)
            guess = by_strength(features(before), after.reshape(len(after), -1))
            seen = features(given)
            errors = [error(guess(seen, strength), wanted) for strength in STRENGTHS]
            at = int(np.argmin(errors))
            if errors[at] < best["validation"]:
                chosen = {"kind": kind, "windows": size, "strength": STRENGTHS[at]}
                best = {
                    "validation": errors[at],
                    "test": error(guess(features(test), STRENGTHS[at]), truth),
                    "least squares": errors[0],
                } | chosen
    return best


def onward(seq: int, points: int, degree: int) -> np.ndarray:
    """The matrix that goes on with a polynomial in time, fitted to the last points of a window: `(AHEAD, seq)`."""
    times = np.arange(points)
    ahead = np.vander(points + np.arange(AHEAD), degree + 1) @ np.linalg.pinv(np.vander(times, degree + 1))
    return np.concatenate([np.zeros((AHEAD, seq - points)), ahead], axis=1)


def best_extrapolation(task: Task, sigma: float) -> dict:
    """A polynomial in time through the last points, of the degree and over as many as is best in the validation."""
    given, wanted = asked(task.validation, task.seq, sigma, VALIDATION_SEED)
    test, truth = asked(task.test, task.seq, sigma, TEST_SEED)
    settings = [(points, degree) for degree in range(6) for points in range(degree + 1, task.seq + 1)]
    errors = [error(onward(task.seq, *setting) @ given, wanted) for setting in settings]
    at = int(np.argmin(errors))
    points, degree = settings[at]
    return {
        "validation": errors[at],
        "test": error(onward(task.seq, points, degree) @ test, truth),
        "points": points,
        "degree": degree,
    }


def still(task: Task, sigma: float) -> dict:
    """The last point, once more and once more."""
    test, truth = asked(task.test, task.seq, sigma, TEST_SEED)
    return {"test": error(np.repeat(test[:, -1:], AHEAD, axis=1), truth)}
