"""Draw the picture that a shared link to the book shows, `_static/card.png`: its name, its promise and its map.

    make frames

The letters, the colours and the map are the site's own.
"""

import io
import os
import re
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
CARD = ROOT / "_static" / "card.png"
WIDTH, HEIGHT = 1200, 630
LOOK = """
* { margin: 0; }
body { box-sizing: border-box; height: 630px; padding: 64px 60px 0; font-family: var(--pst-font-family-base);
  background: var(--pf-paper); color: var(--pf-ink); }
header { display: flex; gap: 32px; align-items: center; }
header svg { width: 116px; }
h1 { font-size: 92px; font-weight: 700; letter-spacing: -0.02em; }
p { margin: 40px 0 56px; font-size: 42px; line-height: 1.3; }
main svg { width: 1080px; height: auto; font-size-adjust: 0.547; }
a rect { fill: var(--pf-accent-wash); stroke: var(--pf-accent); }
"""


def promise() -> str:
    """The sentence that the landing page begins with."""
    found = re.search(r":::\{div\} lead\n(.*?)\n:::", (ROOT / "index.md").read_text("utf-8"), re.DOTALL)
    if not found:
        raise LookupError("index.md has no lead")
    return " ".join(found[1].split())


def page() -> str:
    """The card as a page of its own; its style lies beside it."""
    drawings = [(ROOT / name).read_text("utf-8") for name in ("_static/logo.svg", "drawings/map_wide.svg")]
    logo, machine = (re.sub(r'font-family="[^"]*"', "", text) for text in drawings)
    return f"""<!doctype html><html data-theme="light"><meta charset="utf-8"><link rel="stylesheet" href="look.css">
<style>{LOOK}</style><header>{logo}<h1>Plainformer</h1></header><p>{promise()}</p><main>{machine}</main></html>"""


def main() -> None:
    """Photograph it."""
    source = CARD.with_suffix(".html")
    source.write_text(page(), encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        view = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        view.goto(source.as_uri())
        view.evaluate("document.fonts.ready")
        picture = Image.open(io.BytesIO(view.screenshot()))
    source.unlink()
    picture.convert("RGB").quantize(64).save(CARD, "PNG", optimize=True)
    print(f"{CARD.name}: {CARD.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
