"""The schematics of the appendix on notation."""

from drawings.sketch import Picture, caption, column, grid, row, words

CELL = 26.0
TOKENS = {"one": "10", "two": "02", "three": "11"}


def two_ways() -> Picture:
    """The same three tokens twice, each in a colour of its own. As rows they make a matrix of three rows and two
    columns, N by D, as in this book; as columns they make one of two rows and three columns, D by N.
    """
    rows = grid("rows", [[kind] * 2 for kind in TOKENS], CELL, list(TOKENS.values()))
    columns = grid("columns", [list(TOKENS)] * 2, CELL, ["".join(pair) for pair in zip(*TOKENS.values(), strict=True)])
    pictures = caption(rows, "tokens as rows, N × D"), caption(columns, "tokens as columns, D × N")
    return row(pictures[0], column(words("transpose"), words("↔"), gap=0), pictures[1], gap=40)
