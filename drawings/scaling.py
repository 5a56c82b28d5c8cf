"""The schematics of the chapter on several devices."""

from drawings.sketch import SMALL, SOFT, Picture, box, caption, column, grid, row, words

CELL = 20.0


def _square(name: str, kind_of) -> Picture:
    return grid(name, [[kind_of(i, j) for j in range(4)] for i in range(4)], CELL)


def _product(title: str, x, weight, result) -> Picture:
    """Two matrices and their product, coloured by the device that holds each number."""
    squares = row(_square("", x), words("·"), _square("", weight), words("="), _square("", result), gap=7)
    return column(squares, words(title, SMALL, SOFT), gap=5)


def cuts() -> Picture:
    """Four products of two matrices of four by four numbers on two devices, each number in the colour of the device
    that holds it, or in a third colour if both do. Rows cut: the upper rows of X and of the product are with the first
    device, the lower with the second, and both have all of W. Columns cut: the left columns of W and of the product
    are with the first, the right with the second, and both have all of X. Summed axis cut: the left columns of X and
    the upper rows of W are with the first, the others with the second; both have a summand of the whole product.
    Weights gathered: as the rows of X, but W is cut, too, into upper and lower rows.
    """

    def upper(i, j):
        return "one" if i < 2 else "two"

    def left(i, j):
        return "one" if j < 2 else "two"

    def both(i, j):
        return "stream"

    def summand(i, j):
        return "norm"

    keys = {"one": "device 0", "two": "device 1", "stream": "both", "norm": "a summand on each"}
    legend = [
        row(box("", "", kind, width=14, height=14, round_by=0), words(name, SMALL), gap=5)
        for kind, name in keys.items()
    ]
    return column(
        row(*legend, gap=18),
        row(_product("rows of X cut", upper, both, upper), _product("columns of W cut", both, left, left), gap=30),
        row(
            _product("summed axis cut", left, upper, summand), _product("weights gathered", upper, upper, upper), gap=30
        ),
        gap=16,
    )


def pipeline() -> Picture:
    """A timetable of three devices, one below the other, and twelve places of time. Each reads parts 1 to 4 of a batch
    forward, one place later than the device before, and then back, in the opposite order of devices. Each waits for
    four places of twelve.
    """
    stages, parts = 3, 4
    steps = stages + parts - 1
    kinds = [["plain"] * 2 * steps for _ in range(stages)]
    labels = [[""] * 2 * steps for _ in range(stages)]
    for stage in range(stages):
        for part in range(parts):
            forward, back = stage + part, steps + (stages - 1 - stage) + part
            kinds[stage][forward], kinds[stage][back] = "one", "two"
            labels[stage][forward] = labels[stage][back] = str(part + 1)
    names = column(*(words(f"device {stage}", SMALL) for stage in range(stages)), gap=18)
    timetable = row(names, grid("timetable", kinds, 34, labels), gap=10)
    return caption(timetable, "time: each part goes forward, then back")
