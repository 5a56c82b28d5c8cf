"""The schematics of the chapter on generation."""

from itertools import pairwise

from drawings.sketch import SMALL, SOFT, Picture, arrow, box, caption, column, grid, row, space, words

PARTS = {"key": "keys", "query": "queries", "value": "values"}


def loop() -> Picture:
    """Writing as a loop. The text so far goes into the model; the model gives a distribution over the next token, drawn
    as bars; one token is drawn from it; and it is put behind the text, which goes into the model again.
    """
    bars = row(*(box("", "", "marked", width=12, height=tall) for tall in (44, 22, 14, 8, 5)), gap=3, align=1)
    picture = row(
        caption(box("text", "text so far", "stream"), " "),
        caption(box("model", "model", "weights"), " "),
        caption(bars.named("bars"), "distribution"),
        caption(box("token", "one token", "marked"), " "),
        gap=46,
    )
    for before, after in pairwise(("text", "model", "bars", "token")):
        picture = arrow(picture, f"{before}.right", f"{after}.left", label="draw" if after == "token" else "")
    corner = row(space(picture.at("text.middle")[0]), space(1, 1).named("corner"), gap=0)
    picture = column(picture, corner, gap=6, align=0)
    picture = arrow(picture, "token.bottom", "corner.right", bend="down", head=False)
    return arrow(picture, "corner.top", "text.bottom")


def cached_step() -> Picture:
    """One step of writing with a cache. The new token, on the right, gives a key, a query and a value. The key and
    the value are put behind the six that are stored. The query meets all seven keys, which gives seven weights; with
    these the seven values are added to one output, on the left.
    """
    stored, cell = 6, 26.0

    def kept(name: str, *kinds: str) -> Picture:
        return row(words(name, SMALL, SOFT), grid(name, [kinds], cell), gap=8)

    rows = column(
        kept("keys", *["plain"] * stored, "keys"),
        kept("weights", *["weights"] * (stored + 1)),
        kept("values", *["plain"] * stored, "values"),
        gap=40,
        align=1,
    )
    new = column(*(box(kind, kind, PARTS[kind]) for kind in PARTS), gap=32)
    picture = row(box("output", "output", "stream"), rows, new, box("token", "token", "stream"), gap=30)
    for part, line in zip(PARTS, ("keys", "weights", "values"), strict=True):
        picture = arrow(picture, "token.left", f"{part}.right")
        picture = arrow(picture, f"{part}.left", f"{line}.right")
    picture = arrow(picture, "keys.bottom", "weights.top")
    picture = arrow(picture, "weights.bottom", "values.top")
    corner = row(space(picture.at("output.middle")[0]), space(1, 1).named("corner"), gap=0)
    picture = column(picture, corner, gap=12, align=0)
    picture = arrow(picture, "values.bottom", "corner.right", bend="down", head=False)
    return arrow(picture, "corner.top", "output.bottom")


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
