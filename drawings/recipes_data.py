"""Schematics of the chapter on recipes: documents in a window."""

from drawings.sketch import Picture, caption, column, grid, row, space


def packing() -> Picture:
    """A window of eight tokens holds three of the first document, four of the second and one of the third. Beside it
    its mask, eight rows of eight cells, in which a filled cell says that the token of its row may look at the token of
    its column. Filled are three triangles along the diagonal, one of three rows, one of four and one of a single cell,
    each in the colour of its document. Nothing is filled outside them.
    """
    numbers, kinds = [0, 0, 0, 1, 1, 1, 1, 2], ["one", "stream", "marked"]
    labels = ["a", "b", "c", "d", "e", "f", "g", "h"]
    cells = [
        [kinds[number] if number == other and m <= n else "plain" for m, other in enumerate(numbers)]
        for n, number in enumerate(numbers)
    ]
    line = [kinds[number] for number in numbers]
    column_of_tokens = grid("queries", [[kind] for kind in line], labels=[[label] for label in labels])
    picture = row(column_of_tokens, grid("mask", cells), gap=8)
    tokens = row(space(22), grid("keys", [line], labels=[labels]), gap=8)
    return caption(column(tokens, picture, gap=8, align=0), "each token sees its own document, up to itself")
