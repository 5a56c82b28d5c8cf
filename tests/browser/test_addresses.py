"""Every figure has an address: *Copy link* names its state, and a link opens the figure in it."""

import json
import math
import random
import re
from urllib.parse import parse_qsl, quote_plus

import pytest

from tests.browser.conftest import PATIENCE, SITE, TIMERS, pages
from tests.browser.hostile import HOSTILE

STATES = 8
LETTERS = "abcdefgh ijklmnop, ABC äß 7&=?#%+"
DESK = {"width": 1280, "height": 800}
TEXTS = {"text", "prompt", "drawn"}  # keys whose value may be any text, or any word, as strokes
CLOSE = {"rel_tol": 1e-4, "abs_tol": 1e-6}
# It is drawn from numbers of 16 bits until a model is there, and small ones in a row are sums of large ones.
ROUNDED = {"stage": {"rel_tol": 1e-3, "abs_tol": 5e-4}}
HOSTILE_TO = {"machine", "positions", "sampling", "patches"}  # what is read of an address is read in one place

# What a state is reached by is no part of it: where the keys hold the pen, and how much a cache spared.
ON_THE_WAY = {"patches": {"pen"}, "sampling": {"known", "caches", "rate"}, "shakespeare": {"known", "caches", "rate"}}

# Work a figure's controls at random: `draws` are numbers between 0 and 1, `texts` what is typed.
WANDER = """([root, draws, texts]) => {
    const next = () => draws.shift() ?? 0.5;
    const tell = (node, kind) => node.dispatchEvent(new Event(kind, { bubbles: true }));
    const seen = (selector) => [...root.querySelectorAll(selector)]
        .filter((node) => node.checkVisibility() && !node.disabled);
    for (const node of seen('input, select, textarea')) {
        if (next() < 0.5 || !node.isConnected || node.closest('[hidden]')) continue;
        if (node.type === 'range') {
            const [low, high, step] = [node.min, node.max, node.step].map(Number);
            node.value = low + step * Math.floor(next() * (1 + (high - low) / step));
            tell(node, 'input');
        } else if (node.type === 'radio' || node.type === 'checkbox') {
            node.click();
        } else if (node.tagName === 'SELECT') {
            node.selectedIndex = Math.floor(next() * node.options.length);
            tell(node, 'change');
        } else if (node.type === 'text' || node.tagName === 'TEXTAREA') {
            node.value = texts.shift();
            tell(node, 'input');
        }
    }
    const idle = /^(Copy|Copied|Reset|Play|Pause|Run|Stop|Train|Go on|Write it)/;
    const parts = seen('[role=option], [role=radio], .lf-letter, .lf-pillar, .lf-patch, .lf-clickable tr, ' +
        '.lf-handle, .lf-paper[tabindex], button').filter((node) => !idle.test(node.textContent));
    for (let n = 0; n < 4; n++) {
        const node = parts[Math.floor(next() * parts.length)];
        if (!node?.isConnected) continue;
        const press = (key) => node.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
        if (node.matches('.lf-handle')) press('ArrowUp');
        else if (node.matches('.lf-patch')) press(' ');
        else if (node.matches('.lf-paper')) [' ', 'ArrowUp', 'ArrowRight', 'ArrowRight', ' '].forEach(press);
        else if (node.matches('[role=option]')) {
            const { x, y, width, height } = node.getBoundingClientRect();
            const middle = { clientX: x + width / 2, clientY: y + height / 2 };
            node.dispatchEvent(new PointerEvent('pointerdown', { bubbles: true, ...middle }));
        } else node.click();
    }
}"""

# The state of a figure once it rests for three frames, without what is no part of it.
STATE = """async ([name, without]) => {
    const root = document.querySelector(`#${name} .lf`);
    for (let before = null, rest = 0; rest < 3;) {
        await nextFrame();
        const now = root.dataset.state;
        const { busy } = JSON.parse(now);
        rest = now === before && !busy ? rest + 1 : 0;
        before = now;
    }
    return JSON.stringify(JSON.parse(root.dataset.state), (key, value) => without.includes(key) ? undefined : value);
}"""

# Tables, and whole stages, of which something lies beyond their edge. What is as long as its text scrolls, and says so.
CUT = """(name) => [...document.querySelectorAll(`#${name} .lf-stage, #${name} .lf table`)]
    .filter((node) => node.checkVisibility() && !node.closest('.lf-wide-scroll, .lf-scroll'))
    .filter((node) => {
        const room = node.closest('.lf-stage').getBoundingClientRect();
        const around = (within) => within?.closest('.lf-table, .lf-panel, .lf-wide, .lf-stage');
        let outer = around(node.parentElement);
        while (outer && !outer.getClientRects().length) outer = around(outer.parentElement); // a box of its parts
        const box = outer?.getBoundingClientRect() ?? room;
        const end = Math.min(room.right, box.right) + 1;
        return node.scrollWidth > node.clientWidth + 1 || node.getBoundingClientRect().right > end;
    })
    .map((node) => node.caption?.textContent ?? node.className)"""

# Whether half of a figure, or half a screen of it, is in sight.
SEEN = """(name) => {
    const { top, bottom, height } = document.querySelector(`#${name} .live-figure`).getBoundingClientRect();
    return Math.min(bottom, innerHeight) - Math.max(top, 0) > Math.min(height, innerHeight) / 2 - 1;
}"""


def live_figures() -> list[tuple[str, str, str]]:
    """The page, the name and the module of each kind of live figure, but for machines that are lit in part.

    One that is made up if there is no site to test.
    """
    found = {}
    for path in pages():
        text = (SITE / path).read_text("utf-8") if (SITE / path).is_file() else ""
        for name, more in re.findall(r'<figure[^>]*\bid="([\w-]+)"[^>]*>\s*<div class="live-figure" ([^>]*)>', text):
            if "data-lit" not in more:
                found.setdefault(re.search(r'data-widget="(\w+)"', more)[1], (path, name))
    return [(path, name, module) for module, (path, name) in found.items()] or [("index.html", "none", "none")]


class Opened:
    """A live figure, in a window of its own, after a link to one of its states."""

    def __init__(self, context, site: str, path: str, fragment: str, module: str):
        self.name, self.without = fragment.partition("?")[0], sorted(ON_THE_WAY.get(module, ()))
        self.page, self.errors = context.new_page(), []
        self.page.set_default_timeout(PATIENCE)
        self.page.on(
            "console", lambda message: message.type in ("error", "warning") and self.errors.append(message.text)
        )
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(f"{site}{path}#{fragment}")
        self.page.locator(f"#{self.name} .live-figure-mounted").wait_for()

    @property
    def state(self) -> dict:
        return json.loads(self.page.evaluate(STATE, [self.name, self.without]))

    def wander(self, draw: random.Random):
        texts = ["".join(draw.choices(LETTERS, k=draw.randrange(1, 24))) for _ in range(4)]
        root = self.page.locator(f"#{self.name} .lf").element_handle()
        self.page.evaluate(WANDER, [root, [draw.random() for _ in range(200)], texts])

    def link(self) -> str:
        """What stands behind the # once *Copy link* was pressed."""
        return self.page.evaluate(
            "name => { document.querySelector(`#${name} .lf-link`).click(); return location.hash.slice(1) }", self.name
        )

    def follow(self, fragment: str):
        self.page.evaluate("fragment => { location.hash = fragment }", fragment)

    @property
    def cut(self) -> list[str]:
        return self.page.evaluate(CUT, self.name)


def same(one, other, close: dict) -> bool:
    """Whether two values are equal, numbers but for what float32 loses on another way to them."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(*pair, close) for pair in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and not differing(one, other, close)
    if isinstance(one, float) or isinstance(other, float):
        return isinstance(one, int | float) and isinstance(other, int | float) and math.isclose(one, other, **close)
    return one == other


def differing(one: dict, other: dict, close: dict = CLOSE) -> dict:
    keys = one.keys() | other.keys()
    return {key: (one.get(key), other.get(key)) for key in keys if not same(one.get(key), other.get(key), close)}


@pytest.mark.parametrize(("where", "name", "module"), live_figures(), ids=lambda value: value)
def test_links_open_the_figure_in_its_state(browser, site, where, name, module):
    context = browser.new_context(viewport=DESK, service_workers="block")
    context.add_init_script(TIMERS)
    try:
        check_links(context, site, where, name, module)
    finally:
        context.close()


def check_links(context, site, path, name, module):
    figure, draw = Opened(context, site, path, f"{name}?", module), random.Random(module)
    close = ROUNDED.get(module, CLOSE)
    assert figure.cut == [], "start"
    found = {}
    for _ in range(STATES):
        figure.wander(draw)
        state = figure.state
        found[figure.link()] = state
        assert figure.cut == [], state
    named = {link for link in found if "?" in link}
    assert len(named) > STATES / 4, found
    assert max(map(len, named)) < 900
    for link in named:
        figure.follow(link)
        assert not differing(figure.state, found[link], close), link
    last = sorted(named)[-1]
    fresh = Opened(context, site, path, last, module)
    assert not differing(fresh.state, found[last], close), last
    fresh.page.wait_for_function(SEEN, arg=name)
    if module in HOSTILE_TO:
        links = [parse_qsl(link.partition("?")[2], keep_blank_values=True) for link in named]
        check_hostile(fresh, last, {key for link in links for key, _ in link})
    assert figure.errors == fresh.errors == []


def check_hostile(figure, link, keys):
    """What is no value, no key or no figure changes nothing; a text that is one is shown, and nothing of it is run."""
    before = figure.state
    figure.follow(link.replace(figure.name, "fig-elsewhere"))
    figure.follow(f"{figure.name}?__proto__=1&constructor=1&nothing=1")
    for text in HOSTILE:
        words = quote_plus(text, errors="replace")
        if text:
            figure.follow(f"{figure.name}?" + "&".join(f"{key}={words}" for key in sorted(keys - TEXTS)))
    assert not differing(figure.state, before)
    for text in HOSTILE if keys & TEXTS else []:
        figure.follow(f"{figure.name}?" + "&".join(f"{key}={quote_plus(text)}" for key in sorted(keys)))
    assert figure.state
    assert figure.page.evaluate("window.alarm") is None


def test_a_link_is_put_on_the_clipboard(open_figure):
    figure = open_figure("kernel", permissions=["clipboard-read", "clipboard-write"])
    figure.press(figure.control("Query at"), "Home")
    figure.control("Copy link").click()
    figure.root.get_by_role("button", name="Copied").wait_for()
    address = figure.page.evaluate("navigator.clipboard.readText()")
    assert address == figure.page.url
    assert address.endswith("#fig-relations-kernel?query=0")
