"""The schematics of the primer."""

from itertools import pairwise

from drawings.sketch import SMALL, Picture, arrow, box, caption, column, grid, matrix, over, row, space, words


def machine() -> Picture:
    """From left to right: the words "where is the lamp ?", the numbers 37, 19, 32, 22 and 1 that stand for them, a box
    with two matrices, and some of the forty words that may come next, garden, hall, kitchen, wears and so on. Below
    these stands: a probability for each.
    """
    story = column(*(words(word) for word in ("where", "is", "the", "lamp", "?")), gap=4).named("story")
    ids = grid("ids", [["stream"]] * 5, 24, [["37"], ["19"], ["32"], ["22"], ["1"]])
    inside = row(matrix("one", "W_{1}", "weights", 54, 76), matrix("two", "W_{2}", "weights", 76, 54), gap=22)
    inside = arrow(inside, "one.right", "two.left")
    learned = over(box("machine", width=inside.width + 40, height=inside.height + 30), inside)
    following = column(*(words(word) for word in ("garden", "hall", "kitchen", "wears", "…")), gap=4)
    following = over(space(following.width + 16), following).named("next")
    parts = (
        (story, "the story"),
        (ids, "as numbers"),
        (learned, "learned matrices"),
        (following, "a probability for each"),
    )
    picture = row(*(caption(part, below) for part, below in parts), gap=44)
    for before, behind in pairwise(("story", "ids", "machine", "next")):
        picture = arrow(picture, f"{before}.right", f"{behind}.left")
    return picture


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


def backward() -> Picture:
    """Two lines of numbers. Above, read to the right: the row 1, 1 goes through the matrix W1 with the rows 1, 1 and
    1, −2 and becomes 2, −1; through relu it becomes 2, 0; through W2 with the rows ½, 0 and 1, 2 it becomes 1, 0.
    Below, read to the left: −0.27, 0.27 at the logits becomes −0.13, 0.27 at the hidden units, and −0.13, 0 before the
    bend. Below the two matrices stand their gradients: for W1 twice −0.13, 0; for W2 −0.54, 0.54 and 0, 0.
    """
    there = [
        _numbers("x", [("1", "1")]),
        _numbers("w1", [("1", "1"), ("1", "−2")], "weights"),
        _numbers("u", [("2", "−1")]),
        box("relu", "relu", "norm", size=SMALL),
        _numbers("h", [("2", "0")]),
        _numbers("w2", [("½", "0"), ("1", "2")], "weights"),
        _numbers("o", [("1", "0")]),
    ]
    back = [
        space(1).named("end"),
        _numbers("for w1", [("−0.13", "0"), ("−0.13", "0")], "marked"),
        _numbers("at u", [("−0.13", "0")], "marked"),
        box("gate", "open, shut", "norm", size=SMALL),
        _numbers("at h", [("−0.13", "0.27")], "marked"),
        _numbers("for w2", [("−0.54", "0.54"), ("0", "0")], "marked"),
        _numbers("at o", [("−0.27", "0.27")], "marked"),
    ]
    names = ("x", "W_{1}", "u", "", "h", "W_{2}", "o")
    below = ("", "for W_{1}", "at u", "", "at h", "for W_{2}", "at o")
    columns = [
        column(caption(_of_height(above), name), caption(_of_height(under), word), gap=26)
        for above, name, under, word in zip(there, names, back, below, strict=True)
    ]
    picture = row(*columns, gap=24)
    for before, behind in pairwise(("x", "w1", "u", "relu", "h", "w2", "o")):
        picture = arrow(picture, f"{before}.right", f"{behind}.left")
    for before, behind in pairwise(("at o", "for w2", "at h", "gate", "at u", "for w1")):
        picture = arrow(picture, f"{before}.left", f"{behind}.right")
    return picture


def _numbers(name: str, rows, kind: str = "stream") -> Picture:
    lines = [
        row(*(box("", text, kind, size=SMALL, width=54, height=27, round_by=1.5) for text in line), gap=2)
        for line in rows
    ]
    return column(*lines, gap=2).named(name)


def _of_height(picture: Picture) -> Picture:
    """The picture in the middle of a height in which two rows of numbers fit, so that all arrows are level."""
    return over(space(picture.width, 58), picture)
