"""Mathematics without a script in the page: each formula is written as MathML, which browsers draw themselves.

MathJax reads the TeX, as it would in the page, but here, while the site is built: the package sphinx-mathjax-offline
brings its files, mini-racer the JavaScript engine, and `mathml.js` writes what MathJax has read. A formula that
cannot be read is a warning, and so fails the build.

The font is STIX Two Math, of which the site gets the glyphs that the formulas of its pages use.
"""

import html
import logging as plain_logging
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources
from pathlib import Path

from docutils import nodes
from fontTools import subset
from fontTools.ttLib import TTFont
from py_mini_racer import MiniRacer
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

LOGGER = logging.getLogger(__name__)
HERE = Path(__file__).parent
PARTS = ("loader.js", "core.js", "adaptors/liteDOM.js", "input/tex-full.js")
FONT, SUBSET = HERE / "fonts/STIXTwoMath-Regular.woff2", "_static/math.woff2"
PRIMES = "′″‴"


# --- From TeX to MathML ---------------------------------------------------------------------------------------


@cache
def engine() -> MiniRacer:
    """A JavaScript engine in which MathJax has been loaded: once, and only where there is a formula to read."""
    mathjax = resources.files("sphinx-mathjax-offline") / "static/mathjax"
    scripts = [(mathjax / part).read_text(encoding="utf-8") for part in PARTS]
    running = MiniRacer()
    # A script's last value would be brought over to Python.
    for script in ("globalThis.MathJax = {}", *scripts, (HERE / "mathml.js").read_text(encoding="utf-8")):
        running.eval(f"{script};0")
    return running


@cache
def to_mathml(tex: str, display: bool) -> str:
    """Return a formula as a `<math>` element with the TeX as its `alttext`; raise ValueError where it is no TeX."""
    answer = engine().call("mathml", tex, display)
    if "error" in answer:
        raise ValueError(answer["error"])
    return answer["markup"]


def lines_together(tex: str) -> str:
    """As Sphinx does for MathJax: a formula of several lines needs no environment, nor one of several paragraphs."""
    paragraphs = [part for part in tex.split("\n\n") if part.strip()]
    parts = [rf"\begin{{split}}{part}\end{{split}}" if r"\\" in part else part for part in paragraphs]
    together = r" \\ ".join(parts)
    return rf"\begin{{aligned}}{together}\end{{aligned}}" if len(parts) > 1 else together


def markup(node: nodes.Element, tex: str, display: bool) -> str:
    try:
        return to_mathml(tex, display)
    except ValueError as error:
        LOGGER.warning("mathematics: %s in %s", error, tex, location=node)
        return f"<code>{html.escape(tex)}</code>"


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    opening = self.starttag(node, "span", "", CLASS="math notranslate nohighlight")
    self.body.append(f"{opening}{markup(node, node.astext(), False)}</span>")
    raise nodes.SkipNode


def visit_block(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", CLASS="math notranslate nohighlight"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    tex = node.astext()
    self.body.append(markup(node, tex if node["nowrap"] else lines_together(tex), True) + "</div>\n")
    raise nodes.SkipNode


# --- The font -------------------------------------------------------------------------------------------------


def characters(page: str) -> Iterator[str]:
    """The characters that a page's formulas show: a letter alone leans, which is another character of the font."""
    for formula in re.findall(r"<math.*?</math>", page, re.DOTALL):
        for stands, text in re.findall(r"<m(?:i|n|o|s|text)\b([^>]*)>([^<]*)<", formula):
            text = html.unescape(text)
            yield from text
            if len(text) == 1 and "mathvariant" not in stands:
                yield leaning(text)
        if re.search("<m(sqrt|root)", formula):
            yield "√"  # which the browser draws by itself


def leaning(letter: str) -> str:
    """Return a letter in mathematical italics: Unicode names ℎ, which it had before, Planck's constant."""
    name = unicodedata.name(letter, "")
    name = re.sub(r"^(LATIN|GREEK) (SMALL|CAPITAL) LETTER ", r"MATHEMATICAL ITALIC \2 ", name)
    try:
        return "ℎ" if letter == "h" else unicodedata.lookup(name)
    except KeyError:
        return letter


def keep_primes_only(font: TTFont) -> None:
    """Of the shapes made for superscripts keep the primes', which are too high without; the others weigh too much."""
    primes = {font.getBestCmap()[ord(prime)] for prime in PRIMES}
    for lookup in font["GSUB"].table.LookupList.Lookup:
        for table in lookup.SubTable:
            for shapes in ("alternates", "mapping"):
                if found := getattr(table, shapes, None):
                    setattr(table, shapes, {glyph: other for glyph, other in found.items() if glyph in primes})


def narrow_roots(font: TTFont) -> None:
    """Make tall root signs, and the parts of the tallest, as wide as the plain one.

    Chromium leaves behind each root the room that the widest of them would take: a hole of 0.4 em behind √d.
    """
    plain = font.getBestCmap()[ord("√")]
    variants = font["MATH"].table.MathVariants
    signs = variants.VertGlyphConstruction[variants.VertGlyphCoverage.glyphs.index(plain)]
    tall = {sign.VariantGlyph for sign in signs.MathGlyphVariantRecord}
    tall |= {part.glyph for part in signs.GlyphAssembly.PartRecords}
    width, _ = font["hmtx"][plain]
    for name in tall:
        glyph, factor = font["glyf"][name], width / font["hmtx"][name][0]
        glyph.coordinates.scale((factor, 1))
        glyph.coordinates.toInt()
        glyph.recalcBounds(font["glyf"])
        font["hmtx"][name] = (width, glyph.xMin)


def write_font(pages: Iterable[str], target: Path) -> None:
    """Write the font with what the formulas of these pages show; none where there is no formula."""
    wanted = {character for page in pages for character in characters(page)}
    if not wanted:
        return
    plain_logging.getLogger("fontTools").setLevel("WARNING")  # it tells of every table
    font = TTFont(FONT)
    if lacking := {character for character in wanted if ord(character) not in font.getBestCmap()}:
        LOGGER.warning("mathematics: %s has no %s", FONT.name, " ".join(sorted(lacking)))
    keep_primes_only(font)
    options = subset.Options(layout_features=["ssty"], name_IDs=[0, 1, 2, 3, 4, 5, 6, 13, 14], hinting=False)
    options.drop_tables += ["GPOS", "DSIG"]
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=map(ord, wanted))
    subsetter.subset(font)
    if "√" in wanted:
        narrow_roots(font)
    font.flavor = "woff2"
    font.save(target)


def preload_font(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Have the browser fetch the font beside the styles, on pages that need it."""
    if "<math" in context.get("body", ""):
        address = context["pathto"](SUBSET, resource=True)
        context["metatags"] += f'\n<link rel="preload" href="{address}" as="font" type="font/woff2" crossorigin />'


def connect(app: Sphinx) -> None:
    app.add_html_math_renderer("mathml", inline_renderers=(visit_inline, None), block_renderers=(visit_block, None))
    app.connect("html-page-context", preload_font)
