"""The schematics of chapter 06."""

from itertools import pairwise

from drawings.sketch import SMALL, SOFT, Picture, arrow, box, caption, column, grid, row, words

WIDE = 190.0


def whole() -> Picture:
    """The whole decoder, from the bottom to the top: ids of N tokens; for each its row of the table E, to which some
    schemes add a position; three blocks, each with attention and a network; a norm; the table E once more, transposed;
    and logits, a row of V numbers per token.
    """
    chain = [
        ("output", "E^{T}", "weights"),
        ("norm", "norm", "norm"),
        *((f"block{n}", f"block {n}", "weights") for n in (2, 1, 0)),
        ("embed", "row of E (+ position)", "weights"),
    ]
    boxes = [box(name, label, kind, width=WIDE) for name, label, kind in chain]
    picture = column(words("logits, N × V").named("logits"), *boxes, words("ids, N").named("ids"), gap=20)
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


def cached_step() -> Picture:
    """One step of writing with a cache. The new token gives one query, one key and one value. The key and the value are
    put behind the six that are stored. The query meets all seven keys, which gives seven weights; with these the seven
    values are added to one output.
    """
    stored, cell = 6, 26.0

    def kept(name: str, kind: str, text: str) -> Picture:
        return caption(grid(name, [["plain"] * stored + [kind]], cell), text, gap=2)

    token = column(box("q", "query", "queries"), box("k", "key", "keys"), box("v", "value", "values"), gap=28)
    weights = caption(grid("a", [["stream"] * (stored + 1)], cell), "weights", gap=2)
    cache = column(weights, kept("ks", "keys", "keys"), kept("vs", "values", "values"), gap=18)
    picture = row(box("x", "new token", "stream"), token, cache, box("y", "output", "stream"), gap=50)
    for name, room in (("q", "a"), ("k", "ks"), ("v", "vs")):
        picture = arrow(picture, "x.right", f"{name}.left")
        picture = arrow(picture, f"{name}.right", f"{room}.left")
    picture = arrow(picture, "a.right", "y.top", bend="across")
    return arrow(picture, "vs.right", "y.bottom", bend="across")


def beam() -> Picture:
    """A tree of continuations, with the probability of each whole text. From the start go a, 0.6, and b, 0.4; the beam
    of two keeps both. From a go aa and ab, 0.30 each, from b go ba, 0.36, and bb, 0.04. The beam keeps ba and aa. The
    likeliest text, ba, does not begin with the likeliest token.
    """
    levels = [
        {"start": "stream"},
        {"a: 0.6": "marked", "b: 0.4": "marked"},
        {"aa: 0.30": "marked", "ab: 0.30": "plain", "ba: 0.36": "marked", "bb: 0.04": "plain"},
    ]
    columns = [column(*(box(text[:2], text, kind) for text, kind in level.items()), gap=16) for level in levels]
    picture = row(*columns, gap=70)
    for before, following in {"st": ("a:", "b:"), "a:": ("aa", "ab"), "b:": ("ba", "bb")}.items():
        for after in following:
            picture = arrow(picture, f"{before}.right", f"{after}.left")
    return picture
