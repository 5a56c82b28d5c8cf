"""The schematics of the chapter on tokens."""

from itertools import pairwise

from drawings.sketch import SMALL, Picture, arrow, box, caption, column, grid, row, words

CELL = 22.0
KINDS = ("one", "two", "three", "four")
PARTS = ("the", "cat", "sat", "down")


def stack() -> Picture:
    """From parts to a matrix and through the blocks. Four parts, the words the, cat, sat and down, become four rows
    of one matrix X, N by D. Block after block turns it into another matrix of the same shape, up to block L.
    """
    parts = column(*(box("", part, kind, size=SMALL, width=76) for part, kind in zip(PARTS, KINDS, strict=True)), gap=4)
    first, last = (grid(name, [[kind] * 5 for kind in KINDS], 24) for name in ("first", "last"))
    blocks = (box(f"b{n}", f"block {n}", "weights", height=104) for n in ("1", "L"))
    picture = row(
        caption(parts.named("parts"), "N parts"),
        caption(first, "X^{(0)}, N × D"),
        *(caption(each, " ") for each in blocks),
        caption(last, "X^{(L)}, N × D"),
        gap=40,
    )
    labels = {"b1": "", "bL": "…"}
    for before, after in pairwise(("parts", "first", "b1", "bL", "last")):
        picture = arrow(picture, f"{before}.right", f"{after}.left", label=labels.get(after, ""))
    return picture


def look_up() -> Picture:
    """A row of six numbers, all 0 but a 1 in the fourth place, times a table of six rows and four columns, is the
    fourth row of the table.
    """
    chosen, vocab_size, d_model = 3, 6, 4
    kinds = ["marked" if v == chosen else "plain" for v in range(vocab_size)]
    one_hot = grid("one", [kinds], CELL, [["1" if v == chosen else "0" for v in range(vocab_size)]])
    table = grid("table", [["weights" if v == chosen else "plain"] * d_model for v in range(vocab_size)], CELL)
    found = grid("found", [["weights"] * d_model], CELL)
    one_hot, table = caption(one_hot, "one-hot row, 1 × |V|"), caption(table, "table E, |V| × D")
    return row(one_hot, words("·", 22), table, words("=", 22), caption(found, "its row, 1 × D"), gap=16)
