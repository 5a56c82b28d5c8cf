"""The schematics of the chapter on blocks."""

from itertools import pairwise

from drawings.sketch import Picture, arrow, box, column, plus, row, space, words

WIDE = 118.0


def residual() -> Picture:
    """One residual step, from the left to the right. The tokens go straight on along a thick line. A copy of them goes
    through a layer f, and what it returns is added to the line.
    """
    layer = row(space(66), box("f", "f", "weights", width=90), gap=0)
    ends = words("X^{(ℓ−1)}").named("in"), plus("sum"), words("X^{(ℓ)}").named("out")
    picture = column(layer, row(*ends, gap=140), gap=26, align=0)
    picture = arrow(picture, "in.right", "sum.left", width=4, head=False)
    picture = arrow(picture, "sum.right", "out.left", width=4)
    picture = arrow(picture, "in.top", "f.left", bend="down")
    return arrow(picture, "f.right", "sum.top", bend="across")


def network() -> Picture:
    """From left to right: the two numbers a and b of a token; two hidden units, relu of a + b and relu of a + b − 1,
    each with a line from a and from b; and the output, either, not both, with a line from each hidden unit.
    """
    token = column(box("a", "a", "stream", width=44), box("b", "b", "stream", width=44), gap=34)
    hidden = column(
        box("one", "relu(a + b)", "norm", width=140), box("two", "relu(a + b − 1)", "norm", width=140), gap=34
    )
    picture = row(token, hidden, box("out", "either, not both", "marked", width=140), gap=76)
    for start, end in [("a", "one"), ("a", "two"), ("b", "one"), ("b", "two"), ("one", "out"), ("two", "out")]:
        picture = arrow(picture, f"{start}.right", f"{end}.left")
    return picture


def block() -> Picture:
    """Two transformer blocks, read from the bottom to the top. The residual stream is a thick straight line. Pre-norm:
    a copy of the stream goes through a norm and then attention, and is added to the stream; then a copy goes through a
    norm and the network, and is added. Nothing stands on the line but the two sums. Post-norm: the copy goes through
    attention alone, and behind each sum a norm stands on the line itself.
    """
    return row(_block("pre"), _block("post"), gap=110, align=1)


def _block(placement: str) -> Picture:
    halves = column(_half(2, "network", placement), _half(1, "attention", placement), gap=22)
    middle = halves.at("sum1.middle")[0]
    ends = [row(space(middle - 4), space(8, 14).named(name), gap=0) for name in ("out", "in")]
    picture = column(column(ends[0], halves, ends[1], gap=6, align=0), words(f"{placement}-norm"), gap=6)
    on_line = ["sum1", "sum2"] if placement == "pre" else ["sum1", "norm1", "sum2", "norm2"]
    stream = ["in", *on_line, "out"]
    for before, after in pairwise(stream):
        ends_there = ("out.top", True) if after == "out" else (f"{after}.bottom", False)
        start = "in.bottom" if before == "in" else f"{before}.top"
        picture = arrow(picture, start, ends_there[0], width=4, head=ends_there[1])
    branches = {1: "in.middle", 2: f"{on_line[len(on_line) // 2 - 1]}.top"}
    for n, branch in branches.items():
        if placement == "pre":
            picture = arrow(picture, f"norm{n}.top", f"layer{n}.bottom")
        first = f"norm{n}" if placement == "pre" else f"layer{n}"
        picture = arrow(picture, branch, f"{first}.bottom", bend="across")
        picture = arrow(picture, f"layer{n}.top", f"sum{n}.right", bend="down")
    return picture


def _half(n: int, label: str, placement: str) -> Picture:
    """One sublayer with its norm and its sum; the stream goes up on the left."""
    layer = box(f"layer{n}", label, "weights", width=WIDE)
    if placement == "pre":
        beside = column(layer, box(f"norm{n}", "norm", "norm", width=WIDE), gap=20)
        stream = column(plus(f"sum{n}"), space(18, beside.height + 18))
    else:
        beside = column(space(WIDE, 38), layer, gap=20)
        stream = column(box(f"norm{n}", "norm", "norm"), plus(f"sum{n}"), space(18, layer.height + 24))
    return row(stream, beside, gap=34)
