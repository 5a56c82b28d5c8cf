"""Write the card of each recorded run as a page of the appendix, `appendix/cards/<name>.md`: `make book` does it.

A card is said of its record alone, so that nothing of it is kept. A page that would be the same is left as it is, and
Sphinx need not read it again.
"""

import json

from lab.records import LAB, ROOT, measured
from lab.run import runs

PAGES = ROOT / "appendix" / "cards"


def write() -> None:
    """Write the pages of all cards, and take away those of runs that are gone."""
    PAGES.mkdir(exist_ok=True)
    chosen = runs()
    for page in PAGES.glob("*.md"):
        if page.stem not in chosen:
            page.unlink()
    for name, run in chosen.items():
        found = measured(json.loads((LAB / name / "record.json").read_text(encoding="utf-8")))
        page, text = PAGES / f"{name}.md", f"(card-{name})=\n{run.card(found)}"
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
