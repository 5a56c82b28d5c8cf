"""Do the ordinary blocks that are not told the shape of a body know it? A linear probe of what they compute inside."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import plainformer as pf
from lab.dynamics.run import RUNS, SHAPES_BETWEEN, WINDOW
from lab.noise.tasks import cut
from plainformer.data.rigid_body import Trajectories, rigid_bodies
from plainformer.models.dynamics import OrdinaryTransformer

STRENGTHS = np.logspace(-8, 4, 13)


def windows_and_shapes(trajectories: Trajectories) -> tuple[np.ndarray, np.ndarray]:
    """All windows of three points, and the shape of each one's body."""
    windows = cut(trajectories.states, WINDOW)
    return windows, np.repeat(trajectories.kappa, len(windows) // len(trajectories.kappa))


@eqx.filter_jit
def rows_after(model: OrdinaryTransformer, windows) -> list:
    """What stands in the rows after the first map and after each block, one line of numbers for each window."""
    inside = model.places.embed(model.first(windows))
    found = [inside]
    for block in model.blocks:
        inside = block(inside)
        found.append(inside)
    return [each.reshape(len(windows), -1) for each in found]


def explained(features: Callable, learned: tuple, asked: tuple) -> float:
    """R² of a ridge regression of the shape on trajectories that it has not seen."""
    probe = make_pipeline(StandardScaler(), RidgeCV(STRENGTHS))
    probe.fit(features(learned[0]), learned[1])
    return round(float(probe.score(features(asked[0]), asked[1])), 4)


def inside(model: OrdinaryTransformer, depth: int) -> Callable:
    """The features of a probe after so many blocks."""
    return lambda windows: np.asarray(rows_after(model, jnp.asarray(windows, jnp.float32))[depth], np.float64)


def probes() -> dict:
    """R² after each block of three trained models and three that have not learned; and of the numbers themselves.

    The probe learns from the validation trajectories of the shapes of the test, and is judged on those of the test.
    """
    splits = rigid_bodies(SHAPES_BETWEEN, spacing=RUNS["dynamics_hidden"].spacing)
    learned, asked = windows_and_shapes(splits.validation), windows_and_shapes(splits.test)
    models, config = pf.load_pretrained("dynamics_hidden")[0], RUNS["dynamics_hidden"].config
    numbers = range(config.num_models)
    trained = [models.one("ordinary", number) for number in numbers]
    fresh = [OrdinaryTransformer(config, key=jax.random.key(number)) for number in numbers]
    powers = {
        "numbers": lambda windows: windows.reshape(len(windows), -1),
        "quadratic": lambda windows: PolynomialFeatures(2).fit_transform(windows.reshape(len(windows), -1)),
    }

    def by_depth(each: list[OrdinaryTransformer]) -> list[list[float]]:
        return [[explained(inside(model, depth), learned, asked) for depth in range(3)] for model in each]

    return {
        "trained": by_depth(trained),
        "untrained": by_depth(fresh),
        "input": {name: explained(features, learned, asked) for name, features in powers.items()},
    }
