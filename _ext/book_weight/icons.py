"""The theme's fonts of icons, without the two thousand that no page shows.

Which ones are left says the site's style sheet, in which `style_sheet.py` has kept the rules of those that occur.
"""

from pathlib import Path

import pydata_sphinx_theme
from fontTools import subset
from fontTools.ttLib import TTFont

from .style_sheet import SHEET

# What has been cut down in the site would lack what a new page needs, so it is always made from the theme's own.
THEME = Path(pydata_sphinx_theme.__file__).parent / "theme/pydata_sphinx_theme/static"
FONTS = "vendor/fontawesome/webfonts"


def shrink(source: Path, target: Path, characters: set[int]) -> None:
    """Write a font with the given characters only."""
    font = TTFont(source)
    subsetter = subset.Subsetter(subset.Options(hinting=False))
    subsetter.populate(unicodes=characters)
    subsetter.subset(font)
    font.flavor = "woff2"
    font.save(target)


def write_icons(static: Path) -> None:
    sheet = (static / SHEET).read_text(encoding="utf-8")
    characters = {ord(sign) for sign in sheet if "\ue000" <= sign <= "\uf8ff"}  # signs of no language
    for file in (THEME / FONTS).glob("*.woff2"):
        shrink(file, static / FONTS / file.name, characters)
