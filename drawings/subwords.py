"""The schematics of the chapter on real text and its tokens."""

from drawings.sketch import Picture, arrow, box, caption, column, grid, place, row
from drawings.tokens import KINDS


def merges() -> Picture:
    """A tree over the letters of singer, from the bottom to the top. The letters i and n are joined to in, then in and
    g to ing, s and ing to sing, e and r to er, and last sing and er to singer.
    """
    side = 34.0
    letters = row(*(box(letter, letter, "plain", width=side) for letter in "singer"), gap=14)
    middles = {letter: letters.at(f"{letter}.middle")[0] for letter in "singer"}
    joins = {"in": "i n", "ing": "in g", "sing": "s ing", "er": "e r", "singer": "sing er"}
    for whole, parts in joins.items():
        middles[whole] = sum(middles[part] for part in parts.split()) / 2

    def level(*names: str) -> Picture:
        tokens = [(box(name, name, "marked"), middles[name]) for name in names]
        places = [(token, middle - token.width / 2, 0.0) for token, middle in tokens]
        return place(letters.width, tokens[0][0].height, places)

    picture = column(level("singer"), level("sing"), level("ing"), level("in", "er"), letters, gap=24)
    for whole, parts in joins.items():
        for part in parts.split():
            picture = arrow(picture, f"{part}.top", f"{whole}.bottom", head=False)
    return picture


def patches() -> Picture:
    """An image of four by four pixels is cut into four patches of two by two. Each patch becomes a row of four numbers,
    and a matrix W turns each row into a token of width D.
    """
    image = grid("image", [[KINDS[2 * (r // 2) + c // 2] for c in range(4)] for r in range(4)], 26)
    rows, tokens = grid("rows", [[kind] * 4 for kind in KINDS], 26), grid("tokens", [["stream"] * 6 for _ in KINDS], 26)
    parts = caption(image, "image"), caption(rows, "a row per patch"), caption(tokens, "a token per patch")
    picture = row(*parts, gap=80)
    picture = arrow(picture, "image.right", "rows.left", label="cut")
    return arrow(picture, "rows.right", "tokens.left", label="W")
