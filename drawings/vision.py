"""The schematics of chapter 10."""

from itertools import pairwise

from drawings.sketch import Picture, arrow, box, caption, grid, row


def whole() -> Picture:
    """The vision transformer, from the left to the right. Four patches stand as rows; a matrix W makes tokens of these,
    and a class token is put in front. An encoder reads the five tokens, and from the first row that it returns a matrix
    U makes a logit for each class.
    """
    rows = grid("rows", [[kind] * 4 for kind in ("one", "two", "three", "four")], 20)
    picture = row(
        caption(rows, "patches"),
        caption(grid("tokens", [["weights"] * 5, *([["stream"] * 5] * 4)], 17), "tokens"),
        box("encoder", "encoder", "weights", height=100.0),
        caption(grid("found", [["marked"] * 5, *([["plain"] * 5] * 4)], 17), "first row"),
        caption(grid("logits", [["stream"] * 4], 17), "logits"),
        gap=36,
    )
    labels = {"tokens": "W", "logits": "U"}
    for before, after in pairwise(("rows", "tokens", "encoder", "found", "logits")):
        picture = arrow(picture, f"{before}.right", f"{after}.left", label=labels.get(after, ""))
    return picture
