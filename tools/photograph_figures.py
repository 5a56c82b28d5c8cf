"""Photograph each live figure of the built site as it stands when it opens, into `widgets/<name>.png`.

    make frames

A figure that runs a model is started first. The picture is what print, notebooks and readers without JavaScript have
of it.
"""

import functools
import http.server
import io
import os
import re
import sys
import threading
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[1]
SITE = ROOT / "_build" / "html"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")

# What is laid out late moves what stands below it, and the picture is taken of another place.
LAID_OUT = "* { content-visibility: visible !important; }"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, and writes nothing of it."""

    def guess_type(self, path) -> str:
        """Modules are JavaScript."""
        return "text/javascript" if str(path).endswith(".mjs") else super().guess_type(path)

    def log_message(self, *_) -> None:
        """Say nothing."""


def where() -> dict[str, str]:
    """The first page that shows each live figure, by the figure's name."""
    found: dict[str, str] = {}
    for page in sorted(SITE.glob("chapters/*.html")):
        for name in re.findall(r'data-widget="(\w+)"', page.read_text("utf-8")):
            found.setdefault(name, str(page.relative_to(SITE)))
    return found


def photograph(page: Page, name: str) -> bytes:
    """The figure as a PNG of 128 colours."""
    figure = page.locator(f'.live-figure[data-widget="{name}"]')
    figure.scroll_into_view_if_needed()
    if figure.get_attribute("data-model"):
        figure.locator(".lf-start").click()
    page.wait_for_selector(f'.live-figure-mounted[data-widget="{name}"]')
    page.wait_for_timeout(1000)
    picture = Image.open(io.BytesIO(figure.locator(".live-figure-stage").screenshot(animations="disabled")))
    smaller = io.BytesIO()
    picture.convert("RGB").quantize(128).save(smaller, "PNG", optimize=True)
    return smaller.getvalue()


def main() -> int:
    """Photograph all."""
    figures = where()
    if not figures:
        print(f"there is no live figure in {SITE}: run `make book` first", file=sys.stderr)
        return 1
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=SITE))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        view = {"viewport": {"width": 1400, "height": 1600}, "device_scale_factor": 1.5, "color_scheme": "light"}
        page = browser.new_context(**view).new_page()
        for name, address in figures.items():
            page.goto(f"http://127.0.0.1:{server.server_port}/{address}")
            page.add_style_tag(content=LAID_OUT)
            part = ROOT / "widgets" / f"{name}.png.part"
            part.write_bytes(photograph(page, name))
            part.replace(part.with_suffix(""))
            print(f"widgets/{name}.png")
    server.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
