"""The schematics of the chapter on looking inside."""

from drawings.sketch import SMALL, SOFT, Picture, arrow, box, column, row, words


def patch() -> Picture:
    """Two runs of one machine, side by side, on two stories that differ in one word. In each, boxes for words, two
    blocks and an answer. What the first block has made in the right run is carried over into the left run, in place
    of what that block made there; the second block and the answer are computed anew, and the answer turns.
    """

    def run(name: str, who: str, middle: str, answer: str, kind: str) -> Picture:
        parts = [
            box(f"{name}words", f"… {who} takes the lamp …", "stream", size=SMALL, width=190),
            box(f"{name}one", middle, kind, width=160),
            box(f"{name}two", "block 1", "weights", width=160),
            box(f"{name}answer", answer, "plain", width=160),
        ]
        picture = column(*reversed(parts), gap=26)
        for start, end in (("words", "one"), ("one", "two"), ("two", "answer")):
            picture = arrow(picture, f"{name}{start}.top", f"{name}{end}.bottom")
        return picture

    ours = column(
        run("a", "Anna", "block 0 of the other", "garden, not kitchen", "marked"), words("patched run", SMALL, SOFT)
    )
    theirs = column(run("b", "Ben", "block 0", "garden", "marked"), words("the other run", SMALL, SOFT))
    return arrow(row(ours, theirs, gap=90), "bone.left", "aone.right")
