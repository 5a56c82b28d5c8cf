"""The built site, served on this machine alone, and a headless Chromium that looks at it."""

import contextlib
import functools
import gzip
import http.server
import json
import os
import re
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest

# Another build can be named, for instance to try one page alone.
SITE = Path(os.environ.get("SITE", Path(__file__).parents[2] / "_build" / "html"))
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-first-run",
]
WIDE, PHONE = {"width": 1400, "height": 900}, {"width": 390, "height": 844}


def pytest_generate_tests(metafunc):
    """Run a test that asks for `path` once for each page of the built site, unless it names the pages itself."""
    named = any("path" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if "path" in metafunc.fixturenames and not named:
        metafunc.parametrize("path", pages(), scope="session")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Give all tests of a page to one worker, which opens it once, and so the other tests of a file."""
    for item in items:
        page = item.callspec.params.get("path") if hasattr(item, "callspec") else None
        item.add_marker(pytest.mark.xdist_group(page or item.path.stem))


def pages() -> list[str]:
    """Every page but those that only a machine looks at; one made-up page if there is no site to test."""
    found = sorted(str(file.relative_to(SITE)) for file in SITE.rglob("*.html"))
    return [name for name in found if not name.startswith(("_static", "_modules"))] or ["index.html"]


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serve the site below the path that it is published at, with its own page for what is missing."""

    protocol_version = "HTTP/1.1"

    def __init__(self, *arguments, prefix: str, **options):
        self.prefix = prefix
        super().__init__(*arguments, **options)

    def guess_type(self, path):
        return "text/javascript" if str(path).endswith(".mjs") else super().guess_type(path)

    def translate_path(self, path):
        inside = urlsplit(path).path.startswith(self.prefix)
        return super().translate_path(path[len(self.prefix) - 1 :] if inside else "/nothing-here")

    def send_error(self, code, message=None, explain=None):
        if code != 404:
            return super().send_error(code, message, explain)
        body = (SITE / "404.html").read_bytes()
        self.send_response(404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served():
    """The address of the built site on a free port of this machine, ending in a slash, and its server."""
    if not (SITE / "index.html").is_file():
        pytest.fail(f"There is no built site at {SITE}: run `make book` first.", pytrace=False)
    published = re.search(r'<link rel="canonical" href="([^"]+)"', (SITE / "index.html").read_text("utf-8"))
    prefix = urlsplit(published[1]).path.removesuffix("index.html") if published else "/"
    handler = functools.partial(Handler, directory=str(SITE), prefix=prefix)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}{prefix}", server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def site():
    with served() as (address, _):
        yield address


@pytest.fixture
def site_to_cut():
    """A site of the test's own, and a function that cuts the network between it and its readers."""
    with served() as (address, server):

        def cut():
            server.shutdown()
            server.server_close()

        yield address, cut


@pytest.fixture(scope="session")
def browser():
    """One headless Chromium for all tests."""
    if not Path(CHROMIUM).exists():
        pytest.fail(f"There is no browser at {CHROMIUM}: install Chromium or name one in CHROMIUM.", pytrace=False)
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        pytest.fail("Playwright is missing: run `make smoke` or `make browser`, which install it.", pytrace=False)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


# A section that comes into view is laid out, and its fonts are fetched, with the frame that follows.
SEE_EACH = """async (sections) => {
    for (const section of sections) {
        section.scrollIntoView();
        await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
    }
}"""


@functools.cache
def packed(file: Path) -> int:
    """The size of a file packed by gzip."""
    return len(gzip.compress(file.read_bytes()))


class Visit:
    """A page of the site in a window of its own, with a record of everything that went wrong on it."""

    def __init__(self, browser, site: str, path: str, **options):
        self.site, self.path = site, path
        self.errors: list[str] = []
        self.foreign: list[str] = []
        self.weights: dict[str, int] = {}
        self.context = browser.new_context(**{"viewport": WIDE, "service_workers": "block", **options})
        self.page = self.context.new_page()
        self.page.set_default_timeout(15_000)
        self.page.on("console", lambda message: message.type == "error" and self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("requestfailed", self._record_failure)
        self.page.on("response", self._record)
        host = urlsplit(site).netloc
        self.page.route(lambda url: urlsplit(url).netloc != host, self._refuse)
        self.page.goto(site + path)
        self.settle()

    def _refuse(self, route):
        if urlsplit(route.request.url).scheme in ("data", "blob"):
            return route.continue_()
        self.foreign.append(route.request.url)
        return route.abort()

    def _record(self, response):
        self.weights[response.url] = self._bytes_as_sent(response)
        if response.status >= 400 and not response.url.endswith("no/such/page.html"):
            self.errors.append(f"{response.url}: status {response.status}")

    def _record_failure(self, request):
        """A page that is left while it is still fetching gives up what it asked for; anything else is an error."""
        if request.failure != "net::ERR_ABORTED":
            self.errors.append(f"{request.url}: {request.failure}")

    def _bytes_as_sent(self, response) -> int:
        """The size of a file as GitHub Pages sends it: text packed by gzip, anything else as it is."""
        file = SITE / urlsplit(response.url.removeprefix(self.site)).path
        if file.is_file() and file.suffix in {".html", ".css", ".js", ".mjs", ".json", ".svg"}:
            return packed(file)
        return int(response.headers.get("content-length", 0))

    def settle(self):
        """Wait until each section has been laid out, each live figure is drawn and the fonts of both are there."""
        self.page.wait_for_load_state("networkidle")
        self.page.locator(".bd-article > section > section").evaluate_all(SEE_EACH)
        for figure in self.page.locator(".live-figure").all():
            figure.scroll_into_view_if_needed()
            figure.locator(".lf-summary:not(:empty)").wait_for()
        self.page.evaluate("window.scrollTo(0, 0)")
        self.page.evaluate("document.fonts.ready.then(() => true)")

    def theme(self, mode: str):
        """Switch between `light` and `dark`, as the theme's own button does."""
        self.page.evaluate(
            "mode => { for (const key of ['mode', 'theme']) document.documentElement.dataset[key] = mode }", mode
        )
        # The theme fades some of its colours. In a section that waits to be laid out, a fade would never end by itself.
        self.page.evaluate("""() => new Promise(requestAnimationFrame).then(() =>
            document.getAnimations().filter((each) => each instanceof CSSTransition)
                .forEach((each) => each.finish()))""")

    def close(self):
        self.context.close()


@pytest.fixture(scope="session")
def visited(browser, site, path):
    """The page at `path`, opened once for all the tests that only look at it."""
    visit = Visit(browser, site, path)
    yield visit
    visit.close()


@pytest.fixture(scope="session")
def on_phone(browser, site, path):
    """The page at `path` on a phone, all its sections laid out, for all the tests that only look at it."""
    visit = Visit(browser, site, path, viewport=PHONE)
    visit.page.add_style_tag(content=LAID_OUT)
    visit.page.evaluate("dispatchEvent(new Event('resize'))")
    yield visit.page
    visit.close()


@pytest.fixture
def open_page(browser, site):
    """A function that opens a page of the site; whatever it opens is closed after the test."""
    opened = []

    def open_one(path: str, **options) -> Visit:
        opened.append(Visit(browser, site, path, **options))
        return opened[-1]

    yield open_one
    for visit in opened:
        visit.close()


@pytest.fixture(scope="module")
def searching(browser, site):
    """A page whose search has been opened by its keys."""
    visit = Visit(browser, site, "index.html")
    visit.page.keyboard.press("Control+k")
    yield visit
    assert visit.errors == visit.foreign == []
    visit.close()


# Sections that are laid out when they come into sight would move a figure under the pointer.
LAID_OUT = "article * { content-visibility: visible !important; }"


class Figure:
    """A live figure on its page: where it is, what it says its numbers are, and how to work it."""

    def __init__(self, visit: Visit, name: str):
        self.visit, self.page, self.name = visit, visit.page, name
        self.root = self.page.locator(f'.live-figure[data-widget="{name}"] .lf').first

    def start(self) -> "Figure":
        """Have the figure fetch its model, as the reader does, and wait until it stands in the place of its picture."""
        self.root.locator(".lf-start").click()
        self.page.locator(f'.live-figure-mounted[data-widget="{self.name}"]').first.wait_for()
        return self

    @property
    def state(self) -> dict:
        return json.loads(self.root.get_attribute("data-state"))

    def settled(self) -> dict:
        """The state, once the model has answered what was asked last."""
        busy = "root => JSON.parse(root.dataset.state).busy !== true"
        self.page.wait_for_function(busy, arg=self.root.element_handle())
        return self.state

    @property
    def summary(self) -> str:
        self.settled()
        self.page.wait_for_timeout(250)  # it speaks once the reader rests
        return self.root.locator("[aria-live]").inner_text()

    def control(self, name: str):
        """The control of that name, whatever kind it is."""
        return self.root.get_by_label(name).or_(self.root.get_by_role("button", name=name)).first

    def reset(self):
        self.root.get_by_role("button", name="Reset").click()

    def press(self, locator, *keys: str):
        locator.focus()
        for key in keys:
            self.page.keyboard.press(key)


@pytest.fixture(scope="session")
def figure_page():
    """A function that names the first page which shows a given live figure, with all its parts lit."""

    def find(name: str) -> str:
        for path in pages():
            whole = rf'data-widget="{name}"(?![^>]*data-lit)'
            if (SITE / path).is_file() and re.search(whole, (SITE / path).read_text("utf-8")):
                return path
        return pytest.fail(f"No page of the built site shows the live figure {name}.", pytrace=False)

    return find


@pytest.fixture
def open_figure(open_page, figure_page):
    """A function that opens the page of a live figure; options go to the browser's window."""

    def open_one(name: str, **options) -> Figure:
        figure = Figure(open_page(figure_page(name), **options), name)
        figure.page.add_style_tag(content=LAID_OUT)
        figure.root.scroll_into_view_if_needed()
        return figure

    return open_one


@pytest.fixture(scope="module")
def shared_figures(browser, site, figure_page):
    """A function that gives a live figure, reset, on a page that this module's tests share."""
    opened: dict[str, Visit] = {}

    def get(name: str) -> Figure:
        path = figure_page(name)
        if path not in opened:
            opened[path] = Visit(browser, site, path)
            opened[path].page.add_style_tag(content=LAID_OUT)
        figure = Figure(opened[path], name)
        figure.root.scroll_into_view_if_needed()
        if figure.root.locator(".lf-start").count():
            figure.start()
        figure.reset()
        return figure

    yield get
    for visit in opened.values():
        assert not visit.errors, visit.path
        visit.close()
