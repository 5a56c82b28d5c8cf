"""The schematics of the chapter on vision."""

from itertools import pairwise

from drawings.sketch import Picture, arrow, box, caption, column, grid, row, space


def two_words() -> Picture:
    """A picture of two rows and four columns of pixels, 1 0 0 2 twice, cut in the middle into two patches. Each patch
    is written as one row, 1 0 1 0 and 0 2 0 2. A matrix W makes tokens of them, 2 0 and 0 4.
    """
    colours = ["one", "one", "two", "two"]
    image = grid("image", [colours, colours], 34, ["1002", "1002"])
    rows = grid("rows", [["one"] * 4, ["two"] * 4], 34, ["1010", "0202"])
    tokens = grid("tokens", [["stream"] * 2] * 2, 34, ["20", "04"])
    picture = row(caption(image, "picture"), caption(rows, "R"), caption(tokens, "X = R W"), gap=70)
    picture = arrow(picture, "image.right", "rows.left", label="cut")
    return arrow(picture, "rows.right", "tokens.left", label="W")


def whole() -> Picture:
    """The vision transformer, from the left to the right. Four patches stand as rows; a matrix W makes tokens of these,
    and a class token is put in front. An encoder reads the five tokens, and from the first row that it returns a matrix
    W_C makes a logit for each class.
    """
    rows = grid("rows", [[kind] * 4 for kind in ("one", "two", "three", "four")], 20)
    picture = row(
        caption(rows, "patches"),
        caption(grid("tokens", [["weights"] * 5, *([["stream"] * 5] * 4)], 17), "tokens"),
        caption(box("encoder", "encoder", "weights", height=100.0), " "),
        caption(grid("found", [["marked"] * 5, *([["plain"] * 5] * 4)], 17), "its rows"),
        caption(column(grid("logits", [["stream"] * 4], 17), space(0, 76), gap=0), "logits"),
        gap=32,
    )
    for before, after in pairwise(("rows", "tokens", "encoder", "found")):
        picture = arrow(picture, f"{before}.right", f"{after}.left", label="W" if after == "tokens" else "")
    return arrow(picture, "found.right.0.1", "logits.left", label="W_{C}")
