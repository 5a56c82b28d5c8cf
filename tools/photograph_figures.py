"""Photograph each live figure of the built site as it stands when it opens, into `widgets/<name>.png`.

    make frames

A figure that runs a model is started first. The picture is what print, notebooks and readers without JavaScript have
of it. The README shows the chapter on self-attention at its figure, `assets/screenshot.png`.
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
sys.path.append(str(ROOT / "_ext"))

from book_meaning.order import chapters  # noqa: E402

SITE = ROOT / "_build" / "html"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")

# What is laid out late moves what stands below it, and the picture is taken of another place.
LAID_OUT = "* { content-visibility: visible !important; }"

# Its model has answered, its letters are there, and for thirty frames nothing of it changes, nor does it move.
AT_REST = """async (figure) => {
    await document.fonts.ready;
    for (let before = null, rest = 0; rest < 30;) {
        await new Promise((done) => { requestAnimationFrame(done); setTimeout(done, 1000); });
        const { busy } = JSON.parse(figure.querySelector(".lf").dataset.state);
        const now = figure.innerHTML + figure.getBoundingClientRect().top;
        rest = now === before && !busy ? rest + 1 : 0;
        before = now;
    }
}"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, and writes nothing of it."""

    def guess_type(self, path) -> str:
        """Modules are JavaScript."""
        return "text/javascript" if str(path).endswith(".mjs") else super().guess_type(path)

    def log_message(self, *_) -> None:
        """Say nothing."""


def where() -> dict[str, str]:
    """The first page that shows each live figure, with all its parts lit, by the figure's name."""
    found: dict[str, str] = {}
    for page in [*(SITE / f"{page}.html" for page in chapters(ROOT)), SITE / "index.html"]:
        for name in re.findall(r'data-widget="(\w+)"(?![^>]*data-lit)', page.read_text("utf-8")):
            found.setdefault(name, str(page.relative_to(SITE)))
    return found


def photograph(page: Page, name: str) -> bytes:
    """The figure, and nothing around it."""
    figure = page.locator(f'.live-figure[data-widget="{name}"]')
    figure.scroll_into_view_if_needed()
    if figure.get_attribute("data-model") and figure.get_attribute("data-recorded") is None:
        figure.locator(".lf-start").click()
    page.wait_for_selector(f'.live-figure-mounted[data-widget="{name}"]')
    figure.evaluate(AT_REST)
    return smaller(figure.locator(".live-figure-stage").screenshot(animations="disabled"))


def smaller(picture: bytes) -> bytes:
    """A PNG of 128 colours."""
    made = io.BytesIO()
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(128).save(made, "PNG", optimize=True)
    return made.getvalue()


def write(path: Path, picture: bytes) -> None:
    """Put a picture in place of the old one."""
    part = path.with_suffix(".png.part")
    part.write_bytes(picture)
    part.replace(path)
    print(path.relative_to(ROOT))


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
            write(ROOT / f"widgets/{name}.png", photograph(page, name))
        page = browser.new_page(**{**view, "viewport": {"width": 1280, "height": 900}})
        page.goto(f"http://127.0.0.1:{server.server_port}/{figures['attention']}")
        figure = page.locator('.live-figure[data-widget="attention"]')
        figure.evaluate("figure => figure.scrollIntoView()")
        figure.locator(".lf-summary:not(:empty)").wait_for()
        figure.evaluate(AT_REST)
        write(ROOT / "assets/screenshot.png", smaller(page.screenshot()))
    server.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
