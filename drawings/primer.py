"""The schematics of the primer."""

from drawings.sketch import Picture, caption, matrix, row, words


def product() -> Picture:
    """A matrix product in the proportions of its shapes: X, with N rows of width D, times W, with D rows of width d,
    gives XW, with N rows of width d. The inner size D is in both, and not in the result.
    """
    n, d_in, d_out = 66.0, 88.0, 44.0
    return row(
        caption(matrix("x", "X", "stream", n, d_in), "N × D"),
        words("·", 24),
        caption(matrix("w", "W", "weights", d_in, d_out), "D × d"),
        words("=", 24),
        caption(matrix("y", "XW", "stream", n, d_out), "N × d"),
        gap=18,
    )
