"""A formula becomes MathML that says what its TeX says, spaced as TeX would space it."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from book_weight.mathematics import leaning, lines_together, to_mathml, write_font
from fontTools.ttLib import TTFont


def tree(tex: str, display: bool = False) -> ElementTree.Element:
    return ElementTree.fromstring(to_mathml(tex, display))


def spaces(tex: str) -> dict[str, tuple[str, str]]:
    """The room on the left and on the right of each operator."""
    return {mo.text: (mo.get("lspace"), mo.get("rspace")) for mo in tree(tex).iter("mo")}


def test_to_mathml_keeps_the_tex():
    tex = r"a < \text{``b''} \& c"
    assert tree(tex).get("alttext") == tex


def test_to_mathml_builds_the_formula():
    root = tree(r"\frac{q \cdot k}{\sqrt{d_k}}", display=True)
    assert root.get("display") == "block"
    (fraction,) = root
    assert [child.tag for child in fraction] == ["mrow", "msqrt"]
    assert [part.text for part in fraction.iter() if part.text] == ["q", "⋅", "k", "d", "k"]


def test_to_mathml_spaces_as_tex_does():
    assert spaces("a = b + c")["="] == ("0.278em", "0.278em")
    assert spaces("-b") == {"−": ("0", "0")}  # a sign
    assert spaces("a - b") == {"−": ("0.222em", "0.222em")}  # the operation
    assert spaces("x_{a=b}")["="] == ("0", "0")  # an index
    assert spaces("(a, b)")[","] == ("0", "0.167em")
    assert spaces("a/b") == {"/": ("0", "0")}
    # Where no operator stands, an empty box: 2 sin x.
    assert [part.tag for part in tree(r"2 \sin x")] == ["mn", "mspace", "mi", "mo", "mi"]


def test_to_mathml_writes_alphabets_as_characters():
    shown = {r"\mathbb{R}": "ℝ", r"\mathbb{I}": "𝕀", r"\mathcal{L}": "ℒ", r"\mathsf{T}": "𝖳", r"\mathbf{h}": "𝐡"}
    assert {tex: "".join(tree(tex).itertext()) for tex in shown} == shown


def test_to_mathml_leaves_upright_what_stands():
    assert tree(r"\mathrm{d}")[0].get("mathvariant") == "normal"
    assert tree(r"d")[0].get("mathvariant") is None
    assert tree(r"\Pi")[0].get("mathvariant") == "normal"


def test_to_mathml_sets_columns_and_keeps_accents_large():
    cells = tree(r"\begin{aligned} a &= b \\ cc &= d \end{aligned}").iter("mtd")
    assert [cell.get("class") for cell in cells] == ["right", "left"] * 2
    assert tree(r"\bar x")[0].get("accent") == "true"
    assert tree(r"\hat x")[0][1].text == "ˆ"


@pytest.mark.parametrize("tex", [r"\frac{1", r"\undefined x", "a_b_c"])
def test_to_mathml_refuses_what_it_cannot_read(tex):
    with pytest.raises(ValueError, match=r"\w"):
        to_mathml(tex, False)


def test_lines_together():
    assert lines_together(r"a \\ b") == r"\begin{split}a \\ b\end{split}"
    assert lines_together("a\n\nb") == r"\begin{aligned}a \\ b\end{aligned}"
    assert lines_together("a") == "a"


def test_leaning():
    assert [leaning(letter) for letter in "xhAθΠ1+"] == ["𝑥", "ℎ", "𝐴", "𝜃", "𝛱", "1", "+"]


def test_font_has_what_the_pages_show_and_little_else(tmp_path: Path):
    formula = to_mathml(r"\sum_{n} x'_n \mathbb{R} \sqrt{2}", True)
    file = tmp_path / "math.woff2"
    write_font([f"<p>zebra {formula}</p>"], file)
    shown = set(map(chr, TTFont(file).getBestCmap()))
    assert {"∑", "𝑥", "𝑛", "′", "ℝ", "√"} <= shown
    assert not shown & {"z", "𝑧"}
    assert file.stat().st_size < 10_000


def test_roots_of_every_height_are_as_wide_as_the_plain_one(tmp_path: Path):
    """The room that a browser keeps behind a root is what the widest has more than the one that is drawn."""
    file = tmp_path / "math.woff2"
    write_font([to_mathml(r"\sqrt{2}", True)], file)
    font = TTFont(file)
    (signs,) = font["MATH"].table.MathVariants.VertGlyphConstruction
    tall = [sign.VariantGlyph for sign in signs.MathGlyphVariantRecord]
    tall += [part.glyph for part in signs.GlyphAssembly.PartRecords]
    assert len(tall) > 5
    assert {font["hmtx"][name][0] for name in tall} == {font["hmtx"][font.getBestCmap()[ord("√")]][0]}
    for name in tall:
        assert font["glyf"][name].xMin == font["hmtx"][name][1]
        assert font["glyf"][name].xMax <= 1.1 * font["hmtx"][name][0]


def test_font_warns_of_what_it_lacks(tmp_path: Path, caplog):
    write_font(["<math><mi>漢</mi></math>"], tmp_path / "math.woff2")
    assert re.search("has no 漢", caplog.text)
