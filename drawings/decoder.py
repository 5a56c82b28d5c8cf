"""The schematics of the chapter on the decoder."""

from itertools import pairwise

from drawings.sketch import SMALL, SOFT, Picture, arrow, box, column, row, words

WIDE = 190.0


def chain() -> Picture:
    """A story as a chain. From a full stop to Anna with probability one ninth, to is, in and the with probability one,
    to hall with one quarter, and to a full stop with one. The product, 1/36, is the probability of the story.
    """
    story, chances = [".", "Anna", "is", "in", "the", "hall", "."], ["⅑", "1", "1", "1", "¼", "1"]
    picture = row(*(box(f"x{n}", word, "stream") for n, word in enumerate(story)), gap=32)
    for n, chance in enumerate(chances):
        picture = arrow(picture, f"x{n}.right", f"x{n + 1}.left", label=chance)
    return column(picture, words("⅑ · 1 · 1 · 1 · ¼ · 1 = 1/36", SMALL, SOFT), gap=10)


def whole() -> Picture:
    """The whole decoder, from the bottom to the top: ids of N tokens; for each its row of the table E, to which some
    schemes add a position; three blocks, each with attention and a network; a norm; the table E once more, transposed;
    and logits, a row of V numbers per token.
    """
    chain = [
        ("output", "E^{T}", "weights"),
        ("norm", "norm", "norm"),
        *((f"block{n}", f"block {n}", "weights") for n in (3, 2, 1)),
        ("embed", "row of E (+ position)", "weights"),
    ]
    boxes = [box(name, label, kind, width=WIDE) for name, label, kind in chain]
    picture = column(words("logits, N × |V|").named("logits"), *boxes, words("ids, N").named("ids"), gap=20)
    for before, after in pairwise(["ids", *(name for name, *_ in reversed(chain)), "logits"]):
        picture = arrow(picture, f"{before}.top", f"{after}.bottom", width=2.5)
    aside = column(
        words("attention, then a network,", SMALL, SOFT), words("each with a norm and a sum", SMALL, SOFT), gap=2
    )
    return row(picture, aside, gap=24)


def shift() -> Picture:
    """Two rows of tokens. Below, what the model reads: a full stop, Anna, is and in. Above, what it is to expect at
    each of them: Anna, is, in and the.
    """
    text = [".", "Anna", "is", "in", "the"]

    def line(name: str, tokens: list[str], kind: str) -> Picture:
        return row(*(box(f"{name}{n}", token, kind, width=70) for n, token in enumerate(tokens)), gap=12)

    expected = row(words("expected", SMALL, SOFT), line("t", text[1:], "marked"), gap=16)
    read = row(words("read", SMALL, SOFT), line("x", text[:-1], "stream"), gap=16)
    picture = column(expected, read, gap=40, align=1)
    for n in range(len(text) - 1):
        picture = arrow(picture, f"x{n}.top", f"t{n}.bottom")
    return picture
