"""The schematics of the chapter on depth."""

from drawings.sketch import SMALL, SOFT, Picture, arrow, box, column, over, row, space, words

LEFT, WIDE = 200.0, 130.0
TOLD = {
    "Anna puts the lamp in the box": "in the box",
    "Ben takes the box": "with Ben",
    "Ben goes to the cellar": "in the cellar",
}


def steps() -> Picture:
    """A stack of three blocks, read from the bottom to the top. The token that asks "where is the lamp ?" enters below.
    After the first block it knows "in the box", after the second "with Ben", after the third "in the cellar". Beside
    each block stands the sentence of the story that this step needs.
    """
    parts = [_line("", words("where is the lamp ?").named("token0"))]
    for n, (sentence, found) in enumerate(TOLD.items(), 1):
        parts.append(_line(sentence, box(f"block{n}", f"block {n}", "weights", width=WIDE), f"told{n}"))
        parts.append(_line("", words(found).named(f"token{n}")))
    picture = column(*reversed(parts), gap=20)
    for n in range(1, len(TOLD) + 1):
        picture = arrow(picture, f"told{n}.right", f"block{n}.left")
        picture = arrow(picture, f"token{n - 1}.top", f"block{n}.bottom", width=4)
        picture = arrow(picture, f"block{n}.top", f"token{n}.bottom", width=4)
    return picture


def _line(sentence: str, right: Picture, name: str = "") -> Picture:
    """A sentence on the left, in a column as wide as in every other line, and something on the right."""
    left = over(space(LEFT, 18), words(sentence, SMALL, SOFT)) if sentence else space(LEFT)
    return row(left.named(name) if name else left, over(space(WIDE + 20), right), gap=20)
