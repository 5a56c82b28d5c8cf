"""Trajectories of a rigid body that turns freely, made by the implicit midpoint rule in double precision."""

from typing import NamedTuple

import numpy as np

from plainformer.checks import Count, PositiveFloat, check_each

STEP = 0.2
NUM_STEPS = 100  # so that a trajectory runs from time 0 to time 20
MOST_ITERATIONS = 200


class Trajectories(NamedTuple):
    """States of several bodies, `(trajectories, points, 3)`, and the shape parameter of each, `(trajectories,)`."""

    states: np.ndarray
    kappa: np.ndarray


class TrajectorySplits(NamedTuple):
    """Three sets of `Trajectories`: for `training`, for `validation`, and for the `test`."""

    training: Trajectories
    validation: Trajectories
    test: Trajectories


def rigid_body_velocity(states, kappa=0.5) -> np.ndarray:
    r"""Return how fast the three numbers of each state change.

    Implements `eq-dynamics-rigid-body`; Hairer, Lubich and Wanner (2006), section VII.5. `kappa` says how the mass is
    spread; 1/2 gives the coefficients 1, -1/2 and -1/2.
    """
    first, second, third = np.moveaxis(_as_states(states), -1, 0)
    return np.stack([second * third, -kappa * first * third, (kappa - 1) * first * second], axis=-1)


def energy(states, kappa=0.5) -> np.ndarray:
    r"""Return the energy of each state, which the motion conserves beside the length.

    Implements `eq-dynamics-invariants`; Hairer, Lubich and Wanner (2006), section IV.1. `kappa` is a number, or an
    array that broadcasts to the axes in front of the three numbers of a state.
    """
    first, second, third = np.moveaxis(_as_states(states), -1, 0)
    return np.asarray((first**2 + kappa * second**2 + (1 + kappa) * third**2) / 2)


def implicit_midpoint(states, *, kappa=0.5, step: float = STEP, num_steps: int = NUM_STEPS) -> np.ndarray:
    r"""Follow rigid bodies from their first states, `(…, 3)`; return all points, `(…, num_steps + 1, 3)`.

    Implements `eq-dynamics-midpoint`; Hairer, Lubich and Wanner (2006), section II.1. The middle of each step is found
    by repeating its equation until nothing changes but the last digits, in double precision.

    Raises:
        ValueError: if it does not settle, as with a `step` too large for the speed of the body.
    """
    check_each(PositiveFloat, step=step)
    check_each(Count, num_steps=num_steps)
    points, kappa = [_as_states(states)], np.asarray(kappa, np.float64)
    for _ in range(num_steps):
        middle = _middle_of_step(points[-1], kappa, step)
        points.append(2 * middle - points[-1])
    return np.stack(points, axis=-2)


def _middle_of_step(states: np.ndarray, kappa: np.ndarray, step: float) -> np.ndarray:
    """The point halfway between a state and the next."""
    middle = states
    for _ in range(MOST_ITERATIONS):
        before, middle = middle, states + step / 2 * rigid_body_velocity(middle, kappa)
        change = np.abs(middle - before).max()
        if change <= 1e-15 * (1 + np.abs(middle).max()):
            return middle
        if change > 1e6:  # from there, numbers only overflow
            break
    raise ValueError(f"step is {step}; expected one so small that the implicit equation settles, such as {step / 4}.")


def first_states(angles) -> np.ndarray:
    """Return two states on the unit sphere for each angle, `(2, angles, 3)`: second number zero, first number zero."""
    angles = np.asarray(angles, np.float64)
    none = np.zeros_like(angles)
    return np.stack([
        np.stack([np.sin(angles), none, np.cos(angles)], axis=-1),
        np.stack([none, np.sin(angles), np.cos(angles)], axis=-1),
    ])  # fmt: skip


def rigid_bodies(kappas=(0.5,), *, spacing: float = 0.01, lengths=(1.0,)) -> TrajectorySplits:
    """Return trajectories from angles between 0.1 and one turn, two for each angle, `kappa` and length, in three parts.

    Of every ten angles, the fifth is for validation and the tenth for the test. Neighbouring angles lie `spacing`
    apart, so that a trajectory that is held out runs between two that are not. `lengths` are those of the angular
    momentum: the radii of the spheres on which the trajectories run.
    """
    check_each(PositiveFloat, spacing=spacing)
    for length in lengths:
        check_each(PositiveFloat, lengths=length)
    angles = np.arange(0.1, 2 * np.pi, spacing)
    places = np.arange(len(angles)) % 10
    parts = [(places != 4) & (places != 9), places == 4, places == 9]
    return TrajectorySplits(*(_followed(angles[part], kappas, lengths) for part in parts))


def _followed(angles: np.ndarray, kappas, lengths) -> Trajectories:
    """The trajectories of these angles, for each length and parameter."""
    starts = np.concatenate([length * first_states(angles).reshape(-1, 3) for length in lengths])
    of_each = np.repeat(np.asarray(kappas, np.float64), len(starts))
    states = implicit_midpoint(np.tile(starts, (len(kappas), 1)), kappa=of_each)
    return Trajectories(states, of_each)


def following_windows(trajectories, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Return windows of several points and the windows that follow them, `(windows, length, features)` each.

    A window may begin at any point; the one that follows begins where it ends.

    Raises:
        ValueError: if a trajectory holds NaN, or fewer than two windows.
    """
    check_each(Count, length=length)
    trajectories = np.asarray(trajectories)
    if trajectories.ndim != 3:
        raise ValueError(f"trajectories has shape {trajectories.shape}; expected (trajectories, points, features).")
    if not np.isfinite(trajectories).all():
        place = tuple(np.argwhere(~np.isfinite(trajectories))[0].tolist())
        raise ValueError(f"trajectories{list(place)} is {trajectories[place]}; expected numbers. Leave this one out.")
    if trajectories.shape[1] < 2 * length:
        raise ValueError(
            f"A trajectory has {trajectories.shape[1]} points; expected at least {2 * length}, a window of {length} "
            "and the one that follows. Follow it for longer, or take shorter windows."
        )
    cut = np.lib.stride_tricks.sliding_window_view(trajectories, 2 * length, axis=1).swapaxes(2, 3)
    both = cut.reshape(-1, 2 * length, trajectories.shape[2])
    return both[:, :length], both[:, length:]


def _as_states(states) -> np.ndarray:
    states = np.asarray(states, np.float64)
    if states.shape[-1:] != (3,):
        raise ValueError(f"states has shape {states.shape}; expected three numbers in its last axis.")
    if not np.isfinite(states).all():
        raise ValueError("states holds NaN or infinity; expected numbers.")
    return states
