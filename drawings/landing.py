"""The pictures of the landing page: what stored models do, and the staircase that leads to the best of them."""

import functools
import json
import textwrap
from pathlib import Path
from xml.etree import ElementTree

from drawings.sketch import COLOURS, INK, SMALL, SOFT, Picture, arrow, box, column, element, row, space, words

WIDE = 270.0
LETTERS = 36  # of a line of that width


@functools.cache
def _outcomes() -> dict:
    return json.loads(Path(__file__).with_name("outcomes.json").read_text("utf-8"))


def _plain(text: str) -> str:
    """A text as letters only: `_{` and `^{` would be set lower and higher."""
    return " ".join(text.split()).replace("_{", "_ {").replace("^{", "^ {")


def _left(*lines: Picture) -> Picture:
    return column(*(row(line, space(WIDE - line.width)) for line in lines), gap=1, align=0)


def writes() -> Picture:
    """What the language model of the book writes after the word The: before its training signs at random, after a
    hundred steps of training something like words, after sixteen hundred steps a line of documentation.
    """
    parts = []
    for name, text in _outcomes()["texts"].items():
        lines = textwrap.wrap(_plain(text), LETTERS, max_lines=2, placeholder=" …", break_on_hyphens=False)
        parts.append(_left(words(name, SMALL, SOFT), *(words(line, SMALL, INK) for line in lines)))
    return column(*parts, gap=9, align=0)


def translates() -> Picture:
    """Three dates as the encoder-decoder of the book reads them, in German, Turkish and Finnish, and each as it writes
    it: year, month and day in figures.
    """
    dates = _outcomes()["dates"]
    lines = [
        column(
            box(f"reads{n}", date, "stream", size=SMALL, width=WIDE, height=24),
            box(f"writes{n}", dates[date], "marked", size=SMALL, width=110, height=24),
            gap=12,
        )
        for n, date in enumerate(sorted(dates, key=len)[-3:])
    ]
    picture = column(*lines, gap=12)
    for n in range(len(lines)):
        picture = arrow(picture, f"reads{n}.bottom", f"writes{n}.top")
    return picture


def _cells(rows: list[list[float]], size: float, colour: str) -> Picture:
    """Squares of one colour, each as dense as its number, from 0 to 1: a photograph, the same in light and dark."""

    def mark(x: float, y: float) -> ElementTree.Element:
        group = element("g", fill=colour, **{"class": "photograph"})
        for down, line in enumerate(rows):
            for across, share in enumerate(line):
                left, top = x + across * size, y + down * size
                if share > 0:
                    group.append(element("rect", x=left, y=top, width=size, height=size, fill_opacity=f"{share:.2f}"))
        return group

    return Picture(len(rows[0]) * size, len(rows) * size, (mark,))


def reads() -> Picture:
    """A handwritten digit of eight by eight pixels, and over each of its sixteen patches a tint, as deep as the weight
    that the vision transformer of the book gives it; an arrow leads to what the model says, which is right.
    """
    digit = _outcomes()["digit"]
    most = max(map(max, digit["weights"]))
    ink = _cells([[pixel / 16 for pixel in line] for line in digit["pixels"]], 19, INK)
    weights = _cells([[0.75 * weight / most for weight in line] for line in digit["weights"]], 38, COLOURS["keys"][0])
    paper = _cells([[1.0]], ink.width, "#ffffff")
    image = Picture(ink.width, ink.height, (*paper.marks, *ink.marks, *weights.marks)).named("image")
    picture = row(image, box("says", str(digit["says"]), "marked", size=34, width=58, height=58), gap=44)
    return arrow(picture, "image.right", "says.left")


STEPS = {
    "words": "how often each word comes",
    "pairs": "one matrix",
    "average": "an average of all words",
    "head": "one head of attention",
    "heads": "eight heads",
    "block": "a block",
    "stack": "four blocks",
    "positions": "and positions",
    "decoder": "trained to the end",
}


def staircase() -> Picture:
    """Nine bars, one below the other, nearly all shorter than the one above: how far the machine of this book is from
    the best that is possible, in nats per word, as it gets one part after the other, from counting words to four
    blocks with positions that are trained to the end.
    """
    record = json.loads((Path(__file__).parents[1] / "lab/staircase/record.json").read_text("utf-8"))
    heights = {row: sum(each["above"] for each in found) / len(found) for row, found in record["rows"].items()}
    lines = [_step(name, heights[row], heights["words"]) for row, name in STEPS.items()]
    return column(*lines, gap=6, align=0)


def _step(name: str, height: float, most: float) -> Picture:
    label = words(name, SMALL)
    bar = box("", "", "marked", width=max(4.0, 150 * height / most), height=18)
    return row(space(180 - label.width), label, bar, words(f"{height:.2f}", SMALL, SOFT), gap=10)
