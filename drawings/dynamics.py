"""The schematics of the chapter on dynamics."""

from drawings.sketch import Picture, arrow, box, caption, column, grid, plus, row, space, words

ABOVE = [["plain", "weights", "weights"], ["plain", "plain", "weights"], ["plain"] * 3]
BELOW = [["plain"] * 3, ["weights", "plain", "plain"], ["weights", "weights", "plain"]]


def triangles() -> Picture:
    """Two residual steps, from the left to the right, on a thick line. In the first, a copy of the row x goes through a
    matrix of three by three that has numbers above its diagonal alone, then through tanh, and is added to the line. In
    the second the matrix has numbers below its diagonal alone.
    """
    first, second = _step("1", ABOVE, "reads what stands before"), _step("2", BELOW, "reads what stands after")
    ends = (
        column(space(10, 66), words("x").named("in"), gap=26),
        column(space(10, 66), words("x′").named("out"), gap=26),
    )
    picture = row(ends[0], first, second, ends[1], gap=20, align=1)
    for start, end in (("in", "sum1"), ("sum1", "sum2")):
        picture = arrow(picture, f"{start}.right", f"{end}.left", width=4, head=False)
    return arrow(picture, "sum2.right", "out.left", width=4)


def _step(name: str, cells: list[list[str]], says: str) -> Picture:
    layers = row(grid(f"matrix{name}", cells, 20), box(f"tanh{name}", "tanh", "weights"), gap=26)
    above = column(words(says, 12), row(space(34), layers, gap=0), gap=8)
    below = row(space(4, 18).named(f"branch{name}"), plus(f"sum{name}"), gap=above.width + 8)
    picture = column(above, below, gap=26, align=0)
    picture = arrow(picture, f"branch{name}.middle", f"matrix{name}.left", bend="down")
    picture = arrow(picture, f"matrix{name}.right", f"tanh{name}.left")
    return arrow(picture, f"tanh{name}.right", f"sum{name}.top", bend="across")


def units() -> Picture:
    """Two units, read from the bottom to the top; a model has three of one kind. The standard one: attention with a
    softmax, then residual layers. The one that keeps volumes: attention with the Cayley transform, then triangular
    layers.
    """
    return row(_standard(), _preserving(), gap=80, align=1)


def _standard() -> Picture:
    picture = column(
        words("window").named("end 1"),
        box("layers 1", "residual layers", "weights", width=150),
        box("attention 1", "softmax attention", "weights", width=150),
        words("window").named("start 1"),
        gap=32,
    )
    picture = arrow(picture, "start 1.top", "attention 1.bottom", width=3)
    picture = arrow(picture, "attention 1.top", "layers 1.bottom", width=3)
    return caption(arrow(picture, "layers 1.top", "end 1.bottom", width=3), "standard")


def _preserving() -> Picture:
    picture = column(
        words("window").named("end 2"),
        box("layers 2", "triangular layers", "weights", width=150),
        box("attention 2", "Cayley attention", "weights", width=150),
        words("window").named("start 2"),
        gap=32,
    )
    picture = arrow(picture, "start 2.top", "attention 2.bottom", width=3)
    picture = arrow(picture, "attention 2.top", "layers 2.bottom", width=3)
    return caption(arrow(picture, "layers 2.top", "end 2.bottom", width=3), "keeps volumes")
