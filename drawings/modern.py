"""The schematics of the chapter on modern models."""

from collections.abc import Mapping
from itertools import pairwise

from drawings.sketch import Picture, arrow, box, caption, column, plus, row, space

WIDE = 178.0
FIRST = {2: ("network", "ReLU"), 1: ("attention", "8 heads of keys")}
TODAY = {
    2: ("network", "gate", "RMS norm"),
    1: ("attention", "sink", "window, in turn", "2 heads of keys", "q, k: norm, turn", "RMS norm"),
}


def walk() -> Picture:
    """Two blocks, each read from the bottom to the top, with the residual stream as a thick line. In the block of 2017
    sine waves are added to the stream first. A copy goes through attention, with eight heads of keys, and is added;
    a copy goes through a network with ReLU, and is added; behind each sum a layer norm stands on the line. In the block
    of today nothing but the two sums stands on the line, and what changed is coloured. Each copy goes through an RMS
    norm first. In attention, queries and keys are normed and turned, heads share keys, every other block has a window,
    and there is a sink. The network has a gate.
    """
    return row(caption(_block(FIRST, "post"), "2017"), caption(_block(TODAY, "pre"), "today"), gap=60, align=1)


def _block(parts: Mapping[int, tuple[str, ...]], placement: str) -> Picture:
    """A block of two sublayers, each of parts one above the other, with its norm behind each sum if it is post-norm."""
    halves = [_half(n, parts[n], placement) for n in (2, 1)]
    begin = [] if placement == "pre" else [row(plus("sum0"), box("sine", "sine waves", width=WIDE), gap=34)]
    middle = halves[1].at("sum1.middle")[0]
    ends = [row(space(middle - 4), space(8, 14).named(name), gap=0) for name in ("out", "fork", "in")]
    begin = [row(space(middle - 9), each, gap=0) for each in begin]
    picture = column(ends[0], *halves, ends[1], *begin, ends[2], gap=8, align=0)
    first = ["in"] if placement == "pre" else ["in", "sum0"]
    on_line = ["sum1", "sum2"] if placement == "pre" else ["sum1", "norm1", "sum2", "norm2"]
    for before, after in pairwise([*first, *on_line, "out"]):
        end, head = ("out.top", True) if after == "out" else (f"{after}.bottom", False)
        picture = arrow(picture, "in.bottom" if before == "in" else f"{before}.top", end, width=4, head=head)
    branches = {1: "fork.middle", 2: f"{on_line[len(on_line) // 2 - 1]}.top"}
    for n, branch in branches.items():
        picture = arrow(picture, branch, f"layer{n}.bottom", bend="across")
        picture = arrow(picture, f"layer{n}.top", f"sum{n}.right", bend="down")
    return arrow(picture, "sine.left", "sum0.right") if begin else picture


def _half(n: int, parts: tuple[str, ...], placement: str) -> Picture:
    """One sublayer beside the stream, which goes up on the left."""
    kinds = ["weights"] + ["plain" if placement == "post" else "marked"] * (len(parts) - 1)
    boxes = [box(f"{part}{n}", part, kind, width=WIDE) for part, kind in zip(parts, kinds, strict=True)]
    layer = column(*boxes, gap=3).named(f"layer{n}")
    if placement == "pre":
        return row(column(plus(f"sum{n}"), space(18, layer.height + 18)), column(space(WIDE, 8), layer, gap=10), gap=34)
    stream = column(box(f"norm{n}", "norm", "norm"), plus(f"sum{n}"), space(18, layer.height + 18))
    return row(stream, column(space(WIDE, 56), layer, gap=10), gap=34)
