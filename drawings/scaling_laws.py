"""The schematics of the chapter on scaling laws."""

from drawings.sketch import SMALL, SOFT, Picture, box, column, row, words


def split() -> Picture:
    """The same work spent in three ways: three rectangles of the same area, whose height is the size of a model and
    whose width the text that it reads. A tall and narrow one loses by its short text, a low and wide one by its small
    size, and one in the middle loses least. Below each stands a bar of three parts: the floor, what is lost by size,
    and what is lost by text.
    """

    def spent(name: str, height: float, width: float, parts: tuple[float, float]) -> Picture:
        area = column(box("", "", "weights", width=width, height=height), words(name, SMALL), gap=6)
        bar = row(
            box("", "floor", size=SMALL, width=50, height=24),
            box("", "size", "marked", size=SMALL, width=parts[0], height=24),
            box("", "text", "stream", size=SMALL, width=parts[1], height=24),
            gap=0,
        )
        return column(area, bar, gap=12)

    ways = [
        spent("large model, short text", 96, 36, (36, 100)),
        spent("both", 60, 58, (58, 58)),
        spent("small model, long text", 36, 96, (100, 36)),
    ]
    return column(row(*ways, gap=26, align=1.0), words("above: size times text; below: the loss", SMALL, SOFT), gap=8)
