"""The schematics of the chapter on efficiency."""

from drawings.sketch import Picture, arrow, box, caption, column, grid, row

NUM_BLOCKS, CELL = 6, 26.0


def _blocks(name: str, seen) -> Picture:
    """A table of blocks, coloured where `seen(n, m)` says that block m of the keys is looked at for block n."""
    places = range(NUM_BLOCKS)
    return grid(name, [["weights" if seen(n, m) else "plain" for m in places] for n in places], CELL)


def blocks() -> Picture:
    """Three tables of six by six blocks of scores. Without a mask all are coloured. In causal order those on and below
    the diagonal are. With a window, only the diagonal and the blocks beside it, below, are.
    """
    return row(
        caption(_blocks("all", lambda n, m: True), "no mask"),
        caption(_blocks("causal", lambda n, m: m <= n), "causal"),
        caption(_blocks("window", lambda n, m: n - 1 <= m <= n), "causal, window"),
        gap=44,
    )


def speculative() -> Picture:
    """One round of speculative decoding. The draft writes four tokens. The model reads all four. The first two stay,
    the third is refused and the fourth falls with it. What remains are the two and a third one, drawn by the model.
    """
    drafted = grid("drafted", [["one"] * 4], 30, ["abcd"])
    checked = grid("checked", [["one", "one", "plain", "plain"]], 30, ["abcd"])
    kept = grid("kept", [["one", "one", "marked"]], 30, ["abx"])
    picture = row(
        box("draft", "draft", "weights"),
        caption(drafted, "guessed"),
        box("model", "model", "weights"),
        caption(checked, "two stay"),
        caption(column(kept, gap=0), "written"),
        gap=40,
    )
    picture = arrow(picture, "draft.right", "drafted.left")
    picture = arrow(picture, "drafted.right", "model.left")
    picture = arrow(picture, "model.right", "checked.left")
    return arrow(picture, "checked.right", "kept.left")
