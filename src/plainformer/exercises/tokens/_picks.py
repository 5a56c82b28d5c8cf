"""How windows are picked from a long row, and what may stand where it has no more numbers."""

import numpy as np


def pick(series, starts, offsets):
    """Return the numbers at starts plus offsets, all of which must exist."""
    where = starts[:, None] + offsets
    if where.size and where.max() >= len(series):
        raise IndexError("a window runs beyond the end")
    return series[where]


def repeat_last(series, starts, offsets):
    """Take the last number for all that follow, as JAX does."""
    return series[np.minimum(starts[:, None] + offsets, len(series) - 1)]


def go_round(series, starts, offsets):
    """Begin again at the start."""
    return series[(starts[:, None] + offsets) % len(series)]


def fill_with_zeros(series, starts, offsets):
    """Take zeros."""
    where = starts[:, None] + offsets
    return np.where(where < len(series), series[np.minimum(where, len(series) - 1)], 0)
