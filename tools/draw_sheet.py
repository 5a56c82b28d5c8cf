"""Print the one sheet, `drawings/sheet_page.svg`, on a page of A4: `assets/sheet.pdf`.

    make frames

The checksum of what was printed stands in the file, so that a test can tell whether the two are the same.
"""

import hashlib
import os
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
SHEET, PDF = ROOT / "drawings" / "sheet_page.svg", ROOT / "assets" / "sheet.pdf"


def main() -> None:
    """Print the sheet; a comment at the end of a PDF is read by nobody but the test."""
    drawn = SHEET.read_text("utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.set_content(f"<title>The transformer on one sheet</title><style>body {{ margin: 0 }}</style>{drawn}")
        page.pdf(path=PDF, format="A4", margin=dict.fromkeys(("top", "bottom", "left", "right"), "9.5mm"))
        browser.close()
    with PDF.open("ab") as file:
        file.write(f"% {hashlib.sha256(drawn.encode()).hexdigest()}\n".encode())


if __name__ == "__main__":
    main()
