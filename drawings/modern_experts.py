"""The schematic of experts, in the chapter on modern models."""

from drawings.sketch import SMALL, Picture, arrow, box, column, plus, row, space, words


def router() -> Picture:
    """Read from the left to the right. A token goes to a router, whose three weights are bars: 0.67, 0.24 and 0.09. The
    first two experts are chosen, and the token goes through each of them. What they return is multiplied by their
    gates, 0.73 and 0.27, and added up. The third expert is not chosen: no arrow leads to it, and it is pale.
    """
    token = box("token", "token", "stream", width=70)
    weights = column(
        box("first", "0.67", "weights", size=SMALL, width=120, height=26),
        box("second", "0.24", "weights", size=SMALL, width=48, height=26),
        box("third", "0.09", "weights", size=SMALL, width=36, height=26),
        gap=28,
        align=0,
    )
    experts = column(
        box("one", "expert 0", "marked", width=90, height=34),
        box("two", "expert 1", "marked", width=90, height=34),
        box("three", "expert 2", width=90, height=34),
        gap=20,
    )
    gates = column(
        box("high", "× 0.73", "weights", size=SMALL, width=60, height=26),
        box("low", "× 0.27", "weights", size=SMALL, width=60, height=26),
        space(60, 26),
        gap=28,
    )
    picture = row(token, weights, experts, gates, plus("sum"), words("output").named("out"), gap=34)
    for end in ("first", "second", "third"):
        picture = arrow(picture, "token.right", f"{end}.left")
    for start, end in [("first", "one"), ("one", "high"), ("second", "two"), ("two", "low"), ("low", "sum")]:
        picture = arrow(picture, f"{start}.right", f"{end}.left")
    picture = arrow(picture, "high.right", "sum.top", bend="across")
    return arrow(picture, "sum.right", "out.left")
