"""The numbers in the committed notebooks are those of the built site. (This needs the site, but no browser.)"""

import re
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "chapters").glob("*.ipynb"))


class Equations(HTMLParser):
    """Collects the numbers of a page's equations, in order."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.numbers: list[str] = []
        self.inside = False
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag, attributes):
        self.inside = self.inside or (tag == "span" and ("class", "eqno") in attributes)

    def handle_data(self, data):
        if self.inside and (found := re.search(r"\(([\d.]+)\)", data)):
            self.numbers.append(found[1])
            self.inside = False


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_equation_numbers_are_those_of_the_site(file):
    cells = nbformat.read(file, as_version=4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    numbers = re.findall(r"\\tag\{([\d.]+)\}", text)
    assert numbers == Equations(ROOT / f"_build/html/chapters/{file.stem}.html").numbers
