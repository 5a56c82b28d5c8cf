"""The schematics' one visual language: boxes in the proportions of their shapes, one colour for each kind of thing.

A picture is put together from smaller ones by `row`, `column` and `over`; `arrow` and `arc` then join parts by their
names. Nothing has coordinates but what is computed. `svg` writes a picture on a transparent ground: in the site's
dark mode the style sheet turns lightness round and keeps the hues.
"""

import dataclasses
import functools
import math
import re
from collections.abc import Callable, Sequence
from typing import Any
from xml.etree import ElementTree

from matplotlib import font_manager, ft2font

SIZE, SMALL, GAP = 15.0, 13.0, 14.0
INK, SOFT = "#1b1f24", "#4c5560"
FONTS = "DejaVu Sans, Verdana, sans-serif"
# Outline and ground of each kind of thing.
COLOURS = {
    "queries": ("#0b6aa8", "#d3e7f6"),
    "keys": ("#a34a00", "#fbe1cc"),
    "values": ("#1c7443", "#d5eede"),
    "weights": ("#8c2f8c", "#f2daf2"),
    "norm": ("#6a5a00", "#f5eec0"),
    "stream": ("#4c5560", "#e4e8ec"),
    "plain": ("#6b7684", "none"),
    # What is pointed out, and things of one kind that are told apart by colour alone.
    "marked": ("#0a6f6f", "#cdeaea"),
    "one": ("#4b47ad", "#dedcf6"),
    "two": ("#9c2f57", "#f6d9e3"),
    "three": ("#0a6f6f", "#cdeaea"),
    "four": ("#70522f", "#ebdfd1"),
}
Spot = tuple[float, float]
Mark = Callable[[float, float], ElementTree.Element]


@dataclasses.dataclass(frozen=True)
class Box:
    """Where a part stands: its left upper corner and its size."""

    x: float
    y: float
    width: float
    height: float

    def at(self, side: str, share: float = 0.5) -> Spot:
        """A spot on its `left`, `right`, `top` or `bottom`, at a share of that side; or `middle`."""
        across = {"left": 0.0, "right": 1.0}.get(side, share)
        down = {"top": 0.0, "bottom": 1.0}.get(side, share)
        return self.x + across * self.width, self.y + down * self.height


@dataclasses.dataclass(frozen=True)
class Picture:
    """Its size; its marks, each drawn for where the picture's corner comes to stand; and where its named parts are."""

    width: float
    height: float
    marks: tuple[Mark, ...] = ()
    parts: dict[str, Box] = dataclasses.field(default_factory=dict)

    def named(self, name: str) -> "Picture":
        """The picture as a part that can be joined to others."""
        return dataclasses.replace(self, parts={**self.parts, name: Box(0, 0, self.width, self.height)})

    def drawn(self, *marks: Mark) -> "Picture":
        """The picture with further marks on it."""
        return dataclasses.replace(self, marks=(*self.marks, *marks))

    def at(self, place: str) -> Spot:
        """The spot that `"name.side"` or `"name.side.share"` names."""
        name, side, *share = place.split(".", 2)
        return self.parts[name].at(side, *map(float, share))


def element(tag: str, /, text: str | None = None, **attributes: Any) -> ElementTree.Element:
    """An SVG element; numbers are rounded, and `_` in the name of an attribute is a hyphen."""

    def written(value) -> str:
        return f"{round(value, 1):g}" if isinstance(value, float | int) else value

    found = ElementTree.Element(tag, {name.replace("_", "-"): written(value) for name, value in attributes.items()})
    found.text = text
    return found


# --- what a picture is made of --------------------------------------------------------------------------------------


def words(text: str, size: float = SIZE, colour: str = INK) -> Picture:
    """One line of text, in which `_{k}` stands lower, and `^{T}` higher; in its middle, whatever font there is."""

    def mark(x: float, y: float) -> ElementTree.Element:
        middle = x + width * size / 2
        line = element("text", x=middle, y=y + 1.05 * size, font_size=size, fill=colour, text_anchor="middle")
        shift = 0.0
        for part, level in _levels(text):
            now = -0.3 * size * level
            span = element("tspan", part, dy=now - shift, font_size=size * (0.72 if level else 1))
            shift = now
            line.append(span)
        return line

    width = sum(_width(part) * (0.72 if level else 1) for part, level in _levels(text))
    return Picture(width * size, 1.35 * size, (mark,))


def _levels(text: str) -> list[tuple[str, int]]:
    parts = re.split(r"([_^])\{(.*?)\}", text)
    raised = [(part, 1 if sign == "^" else -1) for sign, part in zip(parts[1::3], parts[2::3], strict=True)]
    plain = [(part, 0) for part in parts[::3]]
    return [each for pair in zip(plain, [*raised, ("", 0)], strict=True) for each in pair if each[0]]


@functools.cache
def _width(text: str) -> float:
    """The width of a text in DejaVu Sans, in its own size."""
    font = ft2font.FT2Font(font_manager.findfont("DejaVu Sans"))
    font.set_size(100, 72)
    font.set_text(text, flags=ft2font.LoadFlags.NO_HINTING)
    return font.get_width_height()[0] / 6400


def box(
    name: str, label: str = "", kind: str = "plain", *, size: float = SIZE, width=0.0, height=0.0, round_by=4.0
) -> Picture:
    """A part: a box of a certain size, or as large as its label needs, which stands in its middle."""
    inside = words(label, size)
    width, height = width or inside.width + 2 * GAP, height or inside.height + GAP
    outline, ground = COLOURS[kind]

    def mark(x: float, y: float) -> ElementTree.Element:
        look = {"fill": ground, "stroke": outline, "stroke_width": 1.5, "rx": round_by}
        return element("rect", x=x, y=y, width=width, height=height, **look)

    outside = Picture(width, height, (mark,)).named(name)
    return over(outside, inside) if label else outside


def matrix(name: str, label: str, kind: str, rows: float, columns: float, shape: str = "") -> Picture:
    """A matrix as a box with its shape below it; rows and columns are in points."""
    found = box(name, label, kind, width=columns, height=rows, round_by=1.5)
    return caption(found, shape, gap=3) if shape else found


def grid(
    name: str, cells: Sequence[Sequence[str]], size: float = 22.0, labels: Sequence[Sequence[str]] = ()
) -> Picture:
    """A grid of small boxes, each of a kind, with a label in each if there are any."""
    texts = labels or [[""] * len(line) for line in cells]

    def cell(kind: str, text: str) -> Picture:
        return box("", text, kind, size=SMALL, width=size, height=size, round_by=1.5)

    lines = [row(*map(cell, *pair), gap=2) for pair in zip(cells, texts, strict=True)]
    return dataclasses.replace(column(*lines, gap=2), parts={}).named(name)


def plus(name: str) -> Picture:
    """A sum: a circle with a cross."""

    def mark(x: float, y: float) -> ElementTree.Element:
        circle = f"M{x},{y + 9} a9,9 0 1,0 18,0 a9,9 0 1,0 -18,0 M{x + 4},{y + 9} h10 M{x + 9},{y + 4} v10"
        return element("path", d=circle, fill="none", stroke=INK, stroke_width=1.5)

    return Picture(18, 18, (mark,)).named(name)


def space(width: float, height: float = 0.0) -> Picture:
    """Nothing, of a certain size."""
    return Picture(width, height)


# --- putting pictures together ---------------------------------------------------------------------------------------


def place(width: float, height: float, placed: Sequence[tuple[Picture, float, float]]) -> Picture:
    """Pictures at places of their own in one of this size."""
    marks, parts = [], {}
    for picture, left, top in placed:
        for mark in picture.marks:
            marks.append(lambda x, y, mark=mark, left=left, top=top: mark(x + left, y + top))
        for name, part in picture.parts.items():
            parts[name] = dataclasses.replace(part, x=part.x + left, y=part.y + top)
    return Picture(width, height, tuple(marks), parts)


def row(*pictures: Picture, gap: float = GAP, align: float = 0.5) -> Picture:
    """Pictures side by side; aligned at the top (0), the middle (0.5) or the bottom (1)."""
    height = max(each.height for each in pictures)
    left, placed = 0.0, []
    for each in pictures:
        placed.append((each, left, align * (height - each.height)))
        left += each.width + gap
    return place(left - gap, height, placed)


def column(*pictures: Picture, gap: float = GAP, align: float = 0.5) -> Picture:
    """Pictures one below the other; aligned at the left (0), the middle (0.5) or the right (1)."""
    width = max(each.width for each in pictures)
    top, placed = 0.0, []
    for each in pictures:
        placed.append((each, align * (width - each.width), top))
        top += each.height + gap
    return place(width, top - gap, placed)


def caption(picture: Picture, text: str, gap: float = 6.0) -> Picture:
    """A picture with a line of small text below it."""
    return column(picture, words(text, SMALL, SOFT), gap=gap)


def over(*pictures: Picture) -> Picture:
    """Pictures on top of each other, by their middles."""
    width, height = (max(getattr(each, size) for each in pictures) for size in ("width", "height"))
    return place(width, height, [(each, (width - each.width) / 2, (height - each.height) / 2) for each in pictures])


# --- joining parts ---------------------------------------------------------------------------------------------------


def arrow(
    picture: Picture, start: str, end: str, *, label: str = "", bend: str = "", head: bool = True, width: float = 1.5
) -> Picture:
    """An arrow between places such as `"scores.right"`, with a label over its middle, or left of it.

    With `bend`, it goes `"across"` and then down, or `"down"` and then across.
    """
    (x0, y0), (x1, y1) = spots = [picture.at(start), picture.at(end)]
    if bend:
        spots.insert(1, (x1, y0) if bend == "across" else (x0, y1))
    (x0, y0), (x1, y1) = spots[-2:]
    length = math.hypot(x1 - x0, y1 - y0) or 1.0
    along = (x1 - x0) / length, (y1 - y0) / length
    tip = spots[-1]
    if head:
        spots[-1] = tip[0] - 6 * along[0], tip[1] - 6 * along[1]

    def line(x: float, y: float) -> ElementTree.Element:
        path = " L".join(f"{x + across:.1f},{y + down:.1f}" for across, down in spots)
        return element("path", d=f"M{path}", fill="none", stroke=SOFT, stroke_width=float(width))

    def point(x: float, y: float) -> ElementTree.Element:
        back = tip[0] - 8 * along[0], tip[1] - 8 * along[1]
        corners = [tip, *((back[0] - side * along[1], back[1] + side * along[0]) for side in (4, -4))]
        return element("polygon", points=" ".join(f"{x + a:.1f},{y + d:.1f}" for a, d in corners), fill=SOFT)

    picture = picture.drawn(line, point) if head else picture.drawn(line)
    if not label:
        return picture
    text = words(label, SMALL, SOFT)
    across, down = ((spots[0][axis] + spots[1][axis]) / 2 for axis in (0, 1))
    left, top = across - text.width / 2, down - text.height - 3
    if abs(y1 - y0) > abs(x1 - x0):  # beside a steep arrow, not over it
        left, top = across - text.width - 8, down - text.height / 2
    return picture.drawn(lambda x, y: text.marks[0](x + left, y + top))


def arc(picture: Picture, start: str, end: str, rise: float) -> Picture:
    """An arc between two places, which rises above them by a share of their distance."""
    (x0, y0), (x1, y1) = picture.at(start), picture.at(end)
    high = min(y0, y1) - rise * abs(x1 - x0)

    def mark(x: float, y: float) -> ElementTree.Element:
        bends = [(x0, y0), (x0, high), (x1, high), (x1, y1)]
        first, *others = (f"{x + across:.1f},{y + down:.1f}" for across, down in bends)
        path = f"M{first} C{' '.join(others)}"
        return element("path", d=path, fill="none", stroke=SOFT, stroke_width=1.5)

    return picture.drawn(mark)


def svg(picture: Picture, title: str) -> str:
    """The picture as a file; its title is read out by screen readers."""
    picture = place(picture.width + 12, picture.height + 12, [(picture, 6, 6)])
    size = f"0 0 {picture.width:.1f} {picture.height:.1f}"
    root = element("svg", xmlns="http://www.w3.org/2000/svg", viewBox=size, role="img", font_family=FONTS)
    root.attrib |= {"width": f"{picture.width:.1f}", "height": f"{picture.height:.1f}"}
    root.append(element("title", title))
    root.extend(mark(0.0, 0.0) for mark in picture.marks)
    for part in root:
        part.tail = "\n"
    return ElementTree.tostring(root, encoding="unicode") + "\n"
