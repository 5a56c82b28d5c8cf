"""The schematics of the chapter on deep stacks."""

from itertools import pairwise

from drawings.sketch import SMALL, SOFT, Picture, arrow, box, column, place, plus, row, space, words

WIDE = 76.0


def wirings() -> Picture:
    """Four ways to wire a layer f, each from the left to the right. No skip, no norm: f stands on the line itself.
    Skip, no norm: the line goes straight on, and what f makes of it is added. Post-norm: the same, and a norm stands on
    the line behind the sum. Pre-norm: the norm stands beside the line, before f.
    """
    parts = {"skip, no norm": (["f"], []), "post-norm": (["f"], ["norm"]), "pre-norm": (["norm", "f"], [])}
    labels = [words(name, SMALL, SOFT) for name in ("no skip, no norm", *parts)]
    width = max(label.width for label in labels)
    wired = [_plain(), *(_with_skip(*each) for each in parts.values())]
    rows = [
        row(place(width, label.height, [(label, width - label.width, 0)]), picture, gap=24)
        for label, picture in zip(labels, wired, strict=True)
    ]
    return column(*rows, gap=30, align=0)


def _plain() -> Picture:
    ends = words("X").named("in"), box("f", "f", "weights", width=WIDE), words("next X").named("out")
    picture = row(*ends, gap=60)
    picture = arrow(picture, "in.right", "f.left", width=4, head=False)
    return arrow(picture, "f.right", "out.left", width=4)


def _with_skip(branch: list[str], on_line: list[str]) -> Picture:
    """What stands in the branch, and what on the line behind the sum."""
    kinds = {"f": "weights", "norm": "norm"}
    above = row(space(40), *(box(each, each, kinds[each], width=WIDE) for each in branch), gap=18)
    after = [box(f"then {each}", each, kinds[each], width=WIDE) for each in on_line]
    line = row(words("X").named("in"), space(above.width - 10, 1), plus("sum"), gap=10)
    line = row(line, *after, words("next X").named("out"), gap=40)
    picture = column(above, line, gap=16, align=0)
    picture = arrow(picture, "in.right", "sum.left", width=4, head=False)
    for each in on_line:
        picture = arrow(picture, "sum.right", f"then {each}.left", width=4, head=False)
    last = f"then {on_line[0]}" if on_line else "sum"
    picture = arrow(picture, f"{last}.right", "out.left", width=4)
    picture = arrow(picture, "in.top", f"{branch[0]}.left", bend="down")
    for before, following in pairwise(branch):
        picture = arrow(picture, f"{before}.right", f"{following}.left")
    return arrow(picture, f"{branch[-1]}.right", "sum.top", bend="across")
