"""The transformer on one sheet: shapes, equations with their numbers, a line of code for each, and the block.

It is drawn from the sources: equations and numbers from the chapters, as the index of the equations shows them, shapes
from the tables of letters. A line of code has to stand in a function that claims the equation.
"""

import functools
import re
import textwrap
from xml.etree import ElementTree

from book_meaning.equation_sources import claiming, equations, says
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from drawings import ROOT
from drawings.blocks import block
from drawings.sketch import COLOURS, INK, SOFT, Picture, column, element, place, row, words

WIDTH, HEIGHT = 706.0, 1030.0  # of A4 without its margins, in pixels of a browser: three quarters of a point
COLUMN, LETTERS, CODE = 346.0, 11.5, 10.0  # 7.5 points are the least
# Of each group: the label of an equation, what implements it, and a line of it.
GROUPS = {
    "Tokens and places": [
        ("tokens-look-up", "TokenEmbedding", "embed(self.weight, ids)"),
        ("positions-sinusoid", "sinusoidal_positions", "jnp.stack([jnp.sin(angles), jnp.cos(angles)], axis=-1)"),
        ("positions-rotary", "rotate_pairs", ""),
    ],
    "Attention": [
        ("self-attention-scores", "dot_product_scores", "queries @ keys.mT"),
        ("self-attention-attend", "attend", "weighted_average(weights, values)"),
        ("self-attention-causal", "causal_mask", "jnp.tril(jnp.ones((seq_len, seq_len), bool))"),
        ("efficiency-grouped", "MultiHeadAttention", ""),
    ],
    "The model and its loss": [
        ("decoder-model", "Decoder", ""),
        ("decoder-loss", "next_token_loss", ""),
        ("decoder-perplexity", "perplexity", "math.exp(nats_per_token)"),
    ],
    "The block": [
        ("blocks-feed-forward", "FeedForward", ""),
        ("blocks-rms-norm", "RMSNorm", "rows * jax.lax.rsqrt(mean_square + self.eps)"),
        ("blocks-pre-norm", "pre_norm", "x + sublayer(norm(x))"),
        ("blocks-block", "Block", ""),
    ],
    "Writing": [
        ("generation-temperature", "next_token_probabilities", ""),
        ("generation-cached-attention", "attend_to_cache", ""),
        ("efficiency-cache", "cache_bytes", ""),
    ],
    "Other models": [
        ("encoder-masked-loss", "masked_token_loss", ""),
        ("finetuning-adapter", "AdaptedLinear", "self.scale * (x @ self.adapter_in) @ self.adapter_out"),
        ("modern-experts", "mixture", ""),
        ("scaling-laws-work", "training_work", "6 * sizes * tokens"),
    ],
}
# Letters whose shapes are shown, by the chapter whose table has them.
SHAPES = {
    "self_attention": ["X", "Q", "A", "M"],
    "multi_head": ["W^{(o)}"],
    "blocks": ["W_1", "W_2", r"\gamma"],
    "decoder": ["E", "o_n"],
}


def page() -> Picture:
    """The transformer on one sheet of paper. At the top stand the letters with their names and shapes in code, and the
    two forms of the block, with the norm before and after a layer. Below, in two columns, stand the main equations of
    the book with their numbers, and below each the code that computes it: tokens and places, attention, the block, the
    model and its loss, writing, other models. The index of equations has all of them as text.
    """
    title = _line("The transformer on one sheet", 17.0)
    note = _line("Plainformer. The numbers are those of the book’s equations, the names those of its code.", CODE, SOFT)
    top = row(_shapes(), block(), gap=WIDTH - _shapes().width - block().width, align=0)
    parts = [column(*_group(name, rows), gap=5, align=0) for name, rows in GROUPS.items()]
    left, right = (column(*chosen, gap=9, align=0) for chosen in (parts[:3], parts[3:]))
    below = place(WIDTH, max(left.height, right.height), [(left, 0, 0), (right, WIDTH - COLUMN, 0)])
    whole = column(title, note, top, below, gap=9, align=0)
    if whole.height > HEIGHT or whole.width > WIDTH:
        raise ValueError(f"the sheet is {whole.width:.0f} wide and {whole.height:.0f} high: more than A4")
    return place(WIDTH, HEIGHT, [(whole, 0, 0)])


def _group(name: str, rows: list[tuple[str, str, str]]) -> list[Picture]:
    """A heading, and each equation between its number and its code."""
    head = _line(name, 13.0, COLOURS["queries"][0])
    return [head, *(_row(f"eq-{label}", implemented, line) for label, implemented, line in rows)]


def _row(label: str, name: str, line: str) -> Picture:
    equation = _equations()[label]
    where, node = claiming(ROOT, label, name)
    if line and not says(node, line):
        raise LookupError(f"{where.file}: {name} has no line {line}")
    number = _line(f"({equation.number})", CODE, SOFT)
    lines = _in_lines(equation.tex, COLUMN - 44)
    code = textwrap.wrap(f"{name}: {line}" if line else name, 50, subsequent_indent="  ", break_long_words=False)
    shown = column(*lines, *(_line(part, CODE, SOFT, "mono") for part in code), gap=2.5, align=0)
    return place(COLUMN, shown.height, [(number, 0, 0.5), (shown, 44, 0)])


def _shapes() -> Picture:
    """The letters with their names and shapes in code, as the chapters' tables give them."""
    lines = [_line("Letters and shapes", 13.0, COLOURS["queries"][0])]
    for chapter, letters in SHAPES.items():
        table = (ROOT / f"chapters/{chapter}.md").read_text(encoding="utf-8")
        for letter in letters:
            (found,) = re.findall(rf"^\| (\${re.escape(letter)}\$[^|]*)\| ([^|]*)\| ([^|]*)\|", table, re.MULTILINE)
            symbols, names, shapes = (part.replace("`", "").strip() for part in found)
            code = column(
                _line(names, CODE, INK, "mono"),
                *(_line(part, CODE, SOFT, "mono") for part in textwrap.wrap(shapes, 23)),
                gap=0,
                align=0,
            )
            symbol = _formula(symbols.replace("$, $", r",\ ").strip("$"))
            lines.append(place(204, code.height, [(symbol, 0, 4), (code, 62, 0)]))
    return column(*lines, gap=3, align=0)


@functools.cache
def _equations():
    return equations(ROOT)


def _line(text: str, size: float, colour: str = INK, kind: str = "") -> Picture:
    """One line of text from its left edge; code in letters of one width."""
    width = 0.602 * size * len(text) if kind else words(text, size).width

    def mark(x: float, y: float) -> ElementTree.Element:
        look = {"font_family": "DejaVu Sans Mono, monospace"} if kind else {}
        return element("text", text, x=x, y=y + size, font_size=size, fill=colour, **look)

    return Picture(width, 1.25 * size, (mark,))


def _in_lines(tex: str, width: float) -> list[Picture]:
    """An equation, broken where it has room and goes over its width."""
    inside = re.sub(r"\\(begin|end)\{(aligned|gathered)\}|&", "", tex)
    lines: list[str] = []
    for part in inside.split(r"\\"):
        for number, clause in enumerate(re.split(r"\\qquad|\\quad", part)):
            joined = f"{lines[-1]} \\quad {clause}" if lines else ""
            if number and _formula(joined).width <= width:
                lines[-1] = joined
            else:
                lines.append(clause)
    found = [_formula(line) for line in lines if line.strip()]
    if widest := [one.width for one in found if one.width > width]:
        raise ValueError(f"{max(widest):.0f} are wider than {width:.0f}: {tex}")
    return found


def _formula(tex: str) -> Picture:
    """Typeset mathematics, as outlines; `mathtext` wants braces around every argument."""
    plain = re.sub(r"\\[bB]igg?[lr]?(?![a-zA-Z])|\\!|\\limits", "", tex).strip().rstrip(".,").strip()
    for old, new in {
        r"\lvert": "|",
        r"\rvert": "|",
        r"\le ": r"\leq ",
        r"\dfrac": r"\frac",
        r"\tfrac": r"\frac",
    }.items():
        plain = plain.replace(old, new)
    plain = re.sub(r"\\(mathcal|mathsf|mathbb|bar|hat|tilde|frac) ?([A-Za-z0-9])", r"\\\1{\2}", plain)
    plain = re.sub(r"\\frac\{(\w)\} ?([A-Za-z0-9])(?!\w*\{)", r"\\frac{\1}{\2}", plain).replace(r"\frac", r"\dfrac")
    font = FontProperties(size=LETTERS, math_fontfamily="stix")
    path = TextPath((0, 0), f"${plain}$", prop=font)
    box = path.get_extents()

    def mark(x: float, y: float) -> ElementTree.Element:
        return element("path", d=_outline(path, x - box.x0, y + box.y1), fill=INK)

    return Picture(box.width, box.height + 2, (mark,))


def _outline(path: TextPath, left: float, top: float) -> str:
    """A path of matplotlib, whose y goes up, as one of SVG."""
    signs = {1: "M", 2: "L", 3: "Q", 4: "C"}
    parts = []
    for points, sign in path.iter_segments(curves=True, simplify=False):
        numbers = [f"{left + x:.1f} {top - y:.1f}" for x, y in points.reshape(-1, 2)]
        parts.append("Z" if sign == path.CLOSEPOLY else signs[int(sign)] + " ".join(numbers))
    return "".join(parts)
