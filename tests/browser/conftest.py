"""The built site, served on this machine alone, and a headless Chromium that looks at it."""

import contextlib
import functools
import gzip
import http.server
import json
import os
import re
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from book_weight.moved import MOVED
from xdist.scheduler import LoadScopeScheduling

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
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # the site needs no other host, and gets none
]
PATIENCE = 60_000  # milliseconds until a state that does not come is given up, on a machine with other things to do
POLLING = 100  # milliseconds after which a state that stays is looked at again, also where no frames come
WIDE, PHONE = {"width": 1400, "height": 900}, {"width": 390, "height": 844}


def pytest_generate_tests(metafunc):
    """Run a test that asks for `path` once for each page of the built site, unless it names the pages itself."""
    named = any("path" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if "path" in metafunc.fixturenames and not named:
        metafunc.parametrize("path", pages(), scope="session")


class ByPage(LoadScopeScheduling):
    """Give all tests of a page to one worker, which opens it once, and so the other tests of a file."""

    def _split_scope(self, nodeid: str) -> str:
        page = re.search(r"\[(.+\.html)", nodeid)
        return page[1] if page else nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config, log):
    return ByPage(config, log)


def pages() -> list[str]:
    """Every page but those that only a machine looks at; one made-up page if there is no site to test."""
    found = sorted(str(file.relative_to(SITE)) for file in SITE.rglob("*.html"))
    unread = "_static", "_modules", "whole-book-"  # the last while it is printed
    cards = [name for name in found if name.startswith("appendix/cards/")][1:]  # one stands for all
    left_out = {*cards, *MOVED}
    return [name for name in found if not name.startswith(unread) and name not in left_out] or ["index.html"]


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


# Which timers of a page have not gone off yet, with the milliseconds that each waits. And its next frame, or a second:
# a page without a window in sight may be given none for as long as one waits.
TIMERS = """{
    const later = setTimeout.bind(window);
    window.nextFrame = () => new Promise((done) => { requestAnimationFrame(done); later(done, 1000); });
    const timers = window.timers = new Map();
    for (const kind of ['Timeout', 'Interval']) {
        const [set, clear] = [window[`set${kind}`], window[`clear${kind}`]];
        window[`set${kind}`] = (work, delay = 0, ...all) => {
            const id = set(() => {
                if (kind === 'Timeout') timers.delete(id);
                work(...all);
            }, delay);
            timers.set(id, delay);
            return id;
        };
        window[`clear${kind}`] = (id) => {
            timers.delete(id);
            clear(id);
        };
    }
}"""
# All that a page has put off is done, but for what it does after seconds: takes back a word on a button, for instance.
QUIET = "() => [...window.timers.values()].every((delay) => delay >= 3000)"
FRAMES = """async (count) => {
    for (let n = 0; n < count; n++) await nextFrame();
}"""
# The page is neither scrolled nor does it change its height for ten frames.
AT_REST = """async () => {
    for (let before = null, rest = 0; rest < 10;) {
        await nextFrame();
        const now = `${scrollX} ${scrollY} ${document.documentElement.scrollHeight}`;
        rest = now === before ? rest + 1 : 0;
        before = now;
    }
}"""

# The theme fades some of its colours. In a section that waits to be laid out, a fade would never end by itself.
FADED = """() => nextFrame().then(() =>
    document.getAnimations().filter((each) => each instanceof CSSTransition).forEach((each) => each.finish()))"""

# A section that comes into view is laid out, and its fonts are fetched, with the frame that follows.
SEE_EACH = """async (sections) => {
    for (const section of sections) {
        section.scrollIntoView();
        for (let n = 0; n < 2; n++) await nextFrame();
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
        self.pending: set = set()
        self.context = browser.new_context(**{"viewport": WIDE, "service_workers": "block", **options})
        self.context.add_init_script(TIMERS)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", lambda message: message.type == "error" and self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", self._ask)
        self.page.on("requestfinished", lambda request: self.pending.discard(request))
        self.page.on("requestfailed", self._record_failure)
        self.page.on("response", self._record)
        self.page.goto(site + path)
        self.settle()

    def _ask(self, request):
        self.pending.add(request)
        address = urlsplit(request.url)
        if address.scheme not in ("data", "blob") and address.netloc != urlsplit(self.site).netloc:
            self.foreign.append(request.url)

    def _record(self, response):
        self.weights[response.url] = self._bytes_as_sent(response)
        if response.status >= 400 and not response.url.endswith("no/such/page.html"):
            self.errors.append(f"{response.url}: status {response.status}")

    def _record_failure(self, request):
        """A page that is left while it is still fetching gives up what it asked for; anything else is an error."""
        self.pending.discard(request)
        if request.failure != "net::ERR_ABORTED":
            self.errors.append(f"{request.url}: {request.failure}")

    def _bytes_as_sent(self, response) -> int:
        """The size of a file as GitHub Pages sends it: text packed by gzip, anything else as it is."""
        file = SITE / urlsplit(response.url.removeprefix(self.site)).path
        if file.is_file() and file.suffix in {".html", ".css", ".js", ".mjs", ".json", ".svg"}:
            return packed(file)
        return int(response.headers.get("content-length", 0))

    def settle(self):
        """Wait until each section has been laid out, each live figure is drawn, and all that was asked for is there."""
        self.page.locator(".bd-article > section > section").evaluate_all(SEE_EACH)
        for figure in self.page.locator(".live-figure").all():
            figure.scroll_into_view_if_needed()
            figure.locator(".lf-summary:not(:empty)").wait_for()
        self.page.evaluate("window.scrollTo(0, 0)")
        self.page.evaluate("document.fonts.ready.then(() => true)")
        self.fetched()

    def fetched(self):
        """Wait until nothing is on its way any more, nor is anything asked for in the two frames that follow."""
        begin, rest = time.monotonic(), 0
        while rest < 2:
            self.page.evaluate(FRAMES, 1)
            rest = 0 if self.pending else rest + 1
            assert time.monotonic() - begin < 60, f"still on its way: {[each.url for each in self.pending]}"

    def quiet(self):
        """Wait until all is done that the page has put off, and for two frames more, in which it would go on."""
        self.page.wait_for_function(QUIET, polling=POLLING)
        self.page.evaluate(FRAMES, 2)

    def theme(self, mode: str):
        """Switch between `light` and `dark`, as the theme's own button does."""
        self.page.evaluate(
            "mode => { for (const key of ['mode', 'theme']) document.documentElement.dataset[key] = mode }", mode
        )
        self.page.evaluate(FADED)

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

    def laid_out(self) -> "Figure":
        """Have the sections of its page laid out, and the figure in sight."""
        self.page.add_style_tag(content=LAID_OUT)
        self.root.scroll_into_view_if_needed()
        return self

    def start(self) -> "Figure":
        """Have the figure fetch its model, if it needs one, and wait until it stands in the place of its picture."""
        if self.root.locator(".lf-start").count():
            self.root.locator(".lf-start").press("Enter")  # a mouse would rest on what comes, and choose of it
        self.page.locator(f'.live-figure-mounted[data-widget="{self.name}"]').first.wait_for()
        return self

    @property
    def state(self) -> dict:
        return json.loads(self.root.get_attribute("data-state"))

    def settled(self) -> dict:
        """The state, once the model has answered what was asked last."""
        return self.until("state.busy !== true", polling=POLLING)

    @property
    def summary(self) -> str:
        self.settled()
        self.visit.quiet()  # it speaks once the reader rests
        return self.root.locator("[aria-live]").inner_text()

    def until(self, condition: str, timeout: int = PATIENCE, polling: int | str = "raf") -> dict:
        """The state, once a condition on it, a piece of JavaScript, is true."""
        holds = f"root => {{ const state = JSON.parse(root.dataset.state); return {condition} }}"
        self.page.wait_for_function(holds, arg=self.root.element_handle(), timeout=timeout, polling=polling)
        return self.state

    def control(self, name: str):
        """The control of that name, whatever kind it is."""
        return self.root.get_by_label(name).or_(self.root.get_by_role("button", name=name)).first

    def clicked(self, button) -> dict:
        """Click a button, and return the state of the next frame, before anything that plays has gone on."""
        return button.evaluate(
            "async (node) => { node.click(); await nextFrame(); return JSON.parse(node.closest('.lf').dataset.state) }"
        )

    def reset(self):
        self.root.get_by_role("button", name="Reset").press("Enter")

    def press(self, locator, *keys: str):
        locator.focus()
        for key in keys:
            self.page.keyboard.press(key)


@functools.cache
def figures_of(path: str) -> list[str]:
    """The live figures of a page that have all their parts lit, in order."""
    text = (SITE / path).read_text("utf-8") if (SITE / path).is_file() else ""
    return list(dict.fromkeys(re.findall(r'data-widget="(\w+)"(?![^>]*data-lit)', text)))


def first_pages() -> dict[str, str]:
    """The first page that shows each live figure, by the figure's name."""
    found: dict[str, str] = {}
    for path in pages():
        for name in figures_of(path):
            found.setdefault(name, path)
    return found


@pytest.fixture(scope="session")
def figure_page():
    """A function that names the first page which shows a given live figure, with all its parts lit."""
    found = first_pages()

    def find(name: str) -> str:
        return found.get(name) or pytest.fail(f"No page of the built site shows the live figure {name}.", pytrace=False)

    return find


@pytest.fixture
def open_figure(open_page, figure_page):
    """A function that opens the page of a live figure; options go to the browser's window."""

    def open_one(name: str, **options) -> Figure:
        return Figure(open_page(figure_page(name), **options), name).laid_out()

    return open_one


@pytest.fixture(scope="module")
def shared_figures(browser, site, figure_page):
    """A function that gives a live figure, reset, on a page that this module's tests share."""
    opened: dict[str, Visit] = {}

    def get(name: str) -> Figure:
        path = figure_page(name)
        if path not in opened:
            opened[path] = Visit(browser, site, path)
        figure = Figure(opened[path], name).laid_out().start()
        figure.reset()
        return figure

    yield get
    for visit in opened.values():
        assert not visit.errors, visit.path
        visit.close()
