"""Exercise `summed_product`: what each device computes of a product whose summed axis is cut."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, draw


def _side_by_side(size, num_devices):
    """The places of each device on an axis of this size."""
    return np.split(np.arange(size), num_devices)


def _in_turns(size, num_devices):
    return [np.arange(device, size, num_devices) for device in range(num_devices)]


def summed_product(
    x,
    weight,
    num_devices,
    *,
    places_of_x=_side_by_side,
    places_of_weight=_side_by_side,
    multiply=lambda x, weight, xs, weights: x[:, xs] @ weight[weights],
    gather=lambda parts: parts,
):
    """Return the summand of each device."""
    xs, weights = (places(len(weight), num_devices) for places in (places_of_x, places_of_weight))
    return gather(np.stack([multiply(x, weight, *pair) for pair in zip(xs, weights, strict=True)]))


def _by_rows(x, weight, xs, weights):
    return np.split(x, len(weight) // len(xs))[xs[0] // len(xs)] @ weight


def _by_columns(x, weight, xs, weights):
    return x @ np.split(weight, len(weight) // len(xs), axis=1)[xs[0] // len(xs)]


def _by_reshaping(x, weight, xs, weights):
    num_devices = len(weight) // len(xs)
    return x.reshape(num_devices, len(x), -1)[xs[0] // len(xs)] @ weight[weights]


MISTAKES = [
    Mistake(
        "you have added the summands up already",
        "Which device could know the sum, before any of them has sent something?",
        gather=lambda parts: parts.sum(axis=0),
    ),
    Mistake(
        "you return the mean of the summands",
        "What is XW in terms of the summands: their sum or their mean? And who adds them up?",
        gather=lambda parts: parts.mean(axis=0),
    ),
    Mistake(
        "each summand is divided by the number of devices",
        "Add the results of all devices. Do you get XW?",
        gather=lambda parts: parts / len(parts),
    ),
    Mistake(
        "you have cut the rows of x, and each device has the whole of weight",
        "Which axis do the two matrices have in common?",
        multiply=_by_rows,
    ),
    Mistake(
        "you have cut the columns of weight, and each device has the whole of x",
        "Which axis do the two matrices have in common?",
        multiply=_by_columns,
    ),
    Mistake(
        "the parts do not lie side by side: device 0 has every second, third, … place",
        "With 4 places and 2 devices, which two has device 0?",
        {"places_of_x": _in_turns, "places_of_weight": _in_turns},
    ),
    Mistake(
        "the columns of x lie side by side, and the rows of weight do not, so that they do not belong together",
        "Column m of x is multiplied by which row of weight?",
        places_of_weight=_in_turns,
    ),
    Mistake(
        "only x is cut: each device multiplies its columns by the first rows of weight",
        "Column m of x is multiplied by which row of weight?",
        places_of_weight=lambda size, num_devices: [_side_by_side(size, num_devices)[0]] * num_devices,
    ),
    Mistake(
        "x is cut by a reshape to (num_devices, rows, …), which cuts its rows and not its columns",
        "In which order does reshape take the numbers of x: along its rows, or along its columns?",
        multiply=_by_reshaping,
    ),
    Mistake(
        "every device computes the whole product",
        "What would the sum over the devices be then?",
        multiply=lambda x, weight, xs, weights: x @ weight,
    ),
    Mistake(
        "you return the parts of the last device first",
        "Which columns of x has device 0?",
        gather=lambda parts: parts[::-1],
    ),
]

_RNG = np.random.default_rng(1909)


def _case(name, rows, summed, columns, num_devices, is_edge=False):
    shapes = {"x": (rows, summed), "weight": (summed, columns)}
    return Case(name, draw(_RNG, 2, **shapes) | {"num_devices": num_devices}, is_edge)


EXERCISE = Exercise(
    summed_product,
    MISTAKES,
    cases=[
        _case("two devices", 4, 6, 10, 2),
        _case("three devices", 3, 12, 9, 3),
        _case("one device", 5, 4, 3, 1, is_edge=True),
    ],
    examples=[
        {
            "x": np.array([[1.0, 0, 2, 1], [0, 1, 1, 3]]),
            "weight": np.array([[1.0, 2], [3, 1], [0, 1], [2, 0]]),
            "num_devices": 2,
        }
    ],
    result="(num_devices, rows, columns)",
    tried_on="matrices of {x[0]} × {x[1]} and {weight[0]} × {weight[1]}",
)
