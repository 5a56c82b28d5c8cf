"""The schematics of the chapter on serving."""

from drawings.sketch import SMALL, SOFT, Picture, arrow, column, grid, row, words


def pages() -> Picture:
    """Two texts and the pages of their cache, which have room for two tokens each. The first text, a b c d e f, has the
    pages 0, 1 and 2. The second, a b c d x, has the pages 0, 1 and 3. So pages 0 and 1, with the common beginning, are
    held by both, and page 3 has a free slot.
    """

    def table(name: str, text: str, numbers: list[int]) -> Picture:
        cells = [grid(f"{name}{place}", [["plain"]], 26, [[str(number)]]) for place, number in enumerate(numbers)]
        return row(words(text, SMALL), *cells, gap=30)

    contents = ["ab", "cd", "ef", "x "]
    kinds = ["marked", "marked", "one", "weights"]
    held = [
        row(
            words(f"page {number}", SMALL, SOFT),
            grid(f"page{number}", [[kind, kind if text[1] != " " else "plain"]], 28, [text]),
            gap=6,
        )
        for number, (text, kind) in enumerate(zip(contents, kinds, strict=True))
    ]
    picture = column(
        table("first", "a b c d e f", [0, 1, 2]),
        row(*held, gap=22),
        table("second", "a b c d x", [0, 1, 3]),
        gap=46,
    )
    for name, numbers, side in [("first", [0, 1, 2], "bottom"), ("second", [0, 1, 3], "top")]:
        for place, number in enumerate(numbers):
            end = "top" if side == "bottom" else "bottom"
            picture = arrow(picture, f"{name}{place}.{side}", f"page{number}.{end}")
    return picture
