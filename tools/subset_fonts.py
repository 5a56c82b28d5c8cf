"""Make the site's fonts, `_static/fonts/*.woff2`, from IBM Plex: only the letters that the book needs.

    npm pack @ibm/plex-sans-variable @ibm/plex-mono     # and unpack both into FOLDER
    python tools/subset_fonts.py FOLDER                 # with fonttools and brotli

The licence of Plex reserves its name for whole copies, so the parts are called Plainformer Sans and Plainformer Mono.
"""

import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont
from fontTools.varLib import instancer

FONTS = Path(__file__).parents[1] / "_static" / "fonts"
# What every page needs, and what some pages need: a browser fetches the second only for a letter of it.
# `_static/look.css` repeats both ranges.
RANGES = {
    "latin": "U+0020-007E, U+00A0-00FF, U+2010-2015, U+2018-201E, U+2020-2022, U+2026, U+2032-2033, "
    "U+2190-2194, U+2212, U+221A",
    "more": "U+0100-017F, U+0218-021B, U+02BC, U+0390-03CE, U+2070-2089, U+2113, U+2202, U+2206, U+220F, U+2211, "
    "U+221E, U+2248, U+2260, U+2264-2265",
}
# Each font's file in the npm packages, how bold it can be, and whether it comes in both ranges.
SOURCES = {
    "sans": ("IBM Plex Sans Var-Roman.woff2", (400, 700), True),
    "sans-italic": ("IBM Plex Sans Var-Italic.woff2", (400, 700), True),
    "mono": ("IBMPlexMono-Regular.woff2", None, True),
    "mono-bold": ("IBMPlexMono-SemiBold.woff2", None, False),
}
FEATURES = ["kern", "liga", "ccmp", "locl", "mark", "rvrn", "lnum", "tnum", "subs", "sups"]


def part(source: Path, unicodes: str, weights: tuple[int, int] | None) -> TTFont:
    """Only these letters of a font, without its name, and of its axes only the weight."""
    options = subset.Options(layout_features=FEATURES, hinting=False, name_IDs=[], notdef_outline=True)
    font = TTFont(source)
    letters = subset.parse_unicodes(unicodes.replace("U+", "").replace(" ", ""))
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=letters)
    subsetter.subset(font)
    if weights:
        font = instancer.instantiateVariableFont(font, {"wdth": 100, "wght": weights})
    font.flavor = "woff2"
    return font


def main(folder: Path) -> None:
    """Write all."""
    for name, (file, weights, both) in SOURCES.items():
        (source,) = [path for path in folder.rglob(file) if path.parent.name == "woff2"]
        for range_name, unicodes in RANGES.items():
            if range_name == "latin" or both:
                made = FONTS / f"{name}-{range_name}.woff2"
                part(source, unicodes, weights).save(made)
                print(f"{made.name}: {made.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
