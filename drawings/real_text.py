"""The schematics of the chapter on real text."""

from itertools import pairwise

from drawings.sketch import SMALL, SOFT, Picture, arrow, box, column, row, words

CONTEXTS = {
    "obj": "after obj",
    "bj": "after bj",
    "j": "after j",
    "none": "after anything",
    "alike": "all letters alike",
}


def contexts() -> Picture:
    """How an n-gram model of four letters is smoothed, from the left to the right: the counts after obj, after bj,
    after j, after anything, and all letters alike. Each hands what it has taken from its counts on to the next.
    """
    boxes = [box(name, label, "marked" if name == "obj" else "stream") for name, label in CONTEXTS.items()]
    picture = row(*boxes, gap=24)
    for before, after in pairwise(CONTEXTS):
        picture = arrow(picture, f"{before}.right", f"{after}.left")
    return column(picture, words("what is taken from the counts goes to the shorter context", SMALL, SOFT), gap=12)
