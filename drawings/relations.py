"""The schematics of the chapter on relations."""

from drawings.sketch import SMALL, SOFT, Picture, arc, arrow, box, caption, column, grid, row, space, words

EDGES = [(0, 1), (0, 2), (2, 1), (3, 2), (4, 3), (1, 4)]
# From which side of its sender to which side of its receiver each of these arrows runs.
ENDS = [
    ("right", "left"),
    ("bottom", "top"),
    ("right.0.3", "bottom.0.3"),
    ("left", "bottom"),
    ("left.0.9", "right"),
    ("bottom.0.8", "top"),
]


def graph() -> Picture:
    """On the left a graph of five nodes, numbered 0 to 4, with arrows from 0 to 1, from 0 to 2, from 2 to 1, from 3
    to 2, from 4 to 3 and from 1 to 4. On the right its mask, five rows of five cells: in row 1 the cells of columns 0
    and 2 are filled, in row 2 those of 0 and 3, in row 3 that of 4, in row 4 that of 1, and in row 0 none.
    """

    def node(n: int) -> Picture:
        return box(f"n{n}", f"{n}", "stream", width=34, height=34, round_by=17)

    nodes = column(row(node(0), node(1), gap=80), row(node(2), space(46), node(4), gap=34), node(3), gap=40)
    for (sender, receiver), (start, end) in zip(EDGES, ENDS, strict=True):
        nodes = arrow(nodes, f"n{sender}.{start}", f"n{receiver}.{end}")
    cells = [["marked" if (m, n) in EDGES else "plain" for m in range(5)] for n in range(5)]
    labels = column(*(words(f"{n}", SMALL, SOFT) for n in range(5)), gap=6.5)
    table = row(labels, grid("mask", cells), gap=8)
    head = row(*(words(f"{m}", SMALL, SOFT) for m in range(5)), gap=15.5)
    return row(nodes, column(row(space(16), head, gap=0), caption(table, "row reads column"), gap=4), gap=90)


def unrolled() -> Picture:
    """Above, a recurrent network over five tokens: each token points up to a state, each state points right to the
    next, and the last one to the output; from the first token to the output it is five steps. Below, attention over
    five tokens: from each of them an arc goes to the output directly, one step.
    """
    states = row(*(box(f"h{n}", f"h_{{{n}}}", "marked", width=44) for n in range(5)), gap=40)
    tokens = row(*(box(f"x{n}", f"x_{{{n}}}", "stream", width=44) for n in range(5)), gap=40)
    picture = row(column(states, tokens, gap=34), column(box("o", "output"), space(10, 68.5), gap=0), gap=40)
    for n in range(5):
        picture = arrow(picture, f"x{n}.top", f"h{n}.bottom")
        picture = arrow(picture, f"h{n}.right", f"h{n + 1}.left" if n < 4 else "o.left")
    rows = row(*(box(f"y{n}", f"x_{{{n}}}", "stream", width=44) for n in range(5)), gap=40)
    below = column(space(10, 70), row(rows, box("p", "output"), gap=40), gap=0)
    for n in range(5):
        below = arc(below, f"y{n}.top", f"p.top.{0.1 + 0.2 * n:.1f}", 0.17)
    return column(caption(picture, "recurrent network"), caption(below, "attention"), gap=22, align=0)
