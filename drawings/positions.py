"""The schematics of the chapter on positions."""

import math

from drawings.sketch import (
    COLOURS,
    SMALL,
    SOFT,
    Mark,
    Picture,
    arrow,
    box,
    caption,
    column,
    element,
    over,
    row,
    space,
    words,
)

RATES = (1.0, 0.4, 0.16, 0.06)  # radians per position


def bag() -> Picture:
    """The six words of "The soup was hot, not cold" above those of "The soup was cold, not hot", with a line from each
    word to the same word in the other sentence. All words are in both; only hot and cold have changed places.
    """
    sentences = ["the", "soup", "was", "hot", "not", "cold"], ["the", "soup", "was", "cold", "not", "hot"]
    kinds = {"hot": "two", "cold": "one"}
    lines = [
        row(*(box(f"{word}{n}", word, kinds.get(word, "stream"), width=66) for word in sentence), gap=12)
        for n, sentence in enumerate(sentences)
    ]
    picture = column(*lines, gap=56)
    for word in sentences[0]:
        picture = arrow(picture, f"{word}0.bottom", f"{word}1.top", head=False)
    return picture


def clocks() -> Picture:
    """Eight positions, 0 to 7, as eight columns of four clocks. The hand of the first clock turns by one radian from
    each position to the next, that of the second by 0.4, of the third by 0.16 and of the fourth by 0.06. No two columns
    show the same four hands.
    """
    lines = [
        row(words(f"{rate:g}", SMALL, SOFT), *(_clock((rate * n, "queries")) for n in range(8)), gap=10)
        for rate in RATES
    ]
    numbers = row(*(over(space(42), words(str(n))) for n in range(8)), gap=10)
    return column(
        numbers, *lines, words("rows: radians per position; columns: positions", SMALL, SOFT), gap=10, align=1
    )


def rotary() -> Picture:
    """Three dials, each with the hand of a query and the hand of a key, which both turn with their position. With the
    query at 3 and the key at 1, at 5 and 3, or at 9 and 7, both hands have moved on, and the angle between them is the
    same.
    """

    def dial(m: int, n: int) -> Picture:
        hands = _clock((0.5 * m + 0.6, "queries"), (0.5 * n, "keys"), radius=46.0)
        return column(words(f"query at {m}, key at {n}", SMALL, SOFT), caption(hands, f"distance {m - n}"), gap=8)

    return row(*(dial(*pair) for pair in ((3, 1), (5, 3), (9, 7))), gap=46)


def _clock(*hands: tuple[float, str], radius: float = 21.0) -> Picture:
    """A dial with hands, each with its angle in radians, from the top and clockwise, and its kind."""

    def face(x: float, y: float):
        return element("circle", cx=x + radius, cy=y + radius, r=radius, fill="none", stroke=SOFT, stroke_width=1.2)

    def hand(angle: float, kind: str) -> Mark:
        across, down = 0.86 * radius * math.sin(angle), -0.86 * radius * math.cos(angle)

        def mark(x: float, y: float):
            path = f"M{x + radius:.1f},{y + radius:.1f} l{across:.1f},{down:.1f}"
            return element("path", d=path, stroke=COLOURS[kind][0], stroke_width=2.5, stroke_linecap="round")

        return mark

    return Picture(2 * radius, 2 * radius, (face, *(hand(*each) for each in hands)))
