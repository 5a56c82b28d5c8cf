"""The schematics of chapter 06."""

from itertools import pairwise

from drawings.sketch import SMALL, SOFT, Picture, arrow, box, column, row, words

WIDE = 190.0


def chain() -> Picture:
    """A text as a chain. From the start to soup with probability one half, from there to was with one quarter, to hot
    with one half, and to the end with one half. The product of the four, 1/32, is the probability of the text.
    """
    steps = {"start": "", "soup": "½", "was": "¼", "hot": "½", "end": "½"}
    picture = row(*(box(f"x{word}", word, "stream") for word in steps), gap=36)
    for before, after in pairwise(steps):
        picture = arrow(picture, f"x{before}.right", f"x{after}.left", label=steps[after])
    return column(picture, words("½ · ¼ · ½ · ½ = 1/32", SMALL, SOFT), gap=10)


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
    """Two rows of tokens. Below, what the model reads: a start token, soup, was and hot. Above, what it is to expect at
    each of them: soup, was, hot and the end.
    """
    text = ["start", "soup", "was", "hot", "end"]

    def line(name: str, tokens: list[str], kind: str) -> Picture:
        return row(*(box(f"{name}{n}", token, kind, width=70) for n, token in enumerate(tokens)), gap=12)

    expected = row(words("expected", SMALL, SOFT), line("t", text[1:], "marked"), gap=16)
    read = row(words("read", SMALL, SOFT), line("x", text[:-1], "stream"), gap=16)
    picture = column(expected, read, gap=40, align=1)
    for n in range(len(text) - 1):
        picture = arrow(picture, f"x{n}.top", f"t{n}.bottom")
    return picture
