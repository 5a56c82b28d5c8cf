"""The machine on the landing page: drawn before a model is fetched, it tells its story and reads the reader's text."""

import json
import time

import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from tests.browser.test_widget_machine import IN_BLOCK

# What every test over all figures changes: controls with keys (`test_widgets.py`).
CHANGES = {
    "stage": [("norm before attention", "Enter"), ("Token to follow", "Home"), ("Step", "Space")],
}
STORY = "Anna takes the lamp . Anna goes to the garden . where is the lamp ?"
OWN = "Ben goes to the cellar . where is Ben ?"
BOXES = ["ids", "embedding", "block0", *IN_BLOCK, "block2", "block3", "final", "logits", "probabilities"]
LAPTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
FETCHED = "performance.getEntriesByType('resource').map(({ name }) => name).filter((name) => name.includes('/models/'))"


@pytest.fixture
def stage(open_figure):
    """The machine as the page opens."""
    return open_figure("stage")


def test_stage_draws_before_a_model_is_fetched(stage):
    """Every box has its array, and the answer stands there."""
    assert stage.page.locator(".live-figure-mounted[data-widget=stage]").count() == 1
    state = stage.settled()
    assert (state["text"], state["expected"][0][0]) == (STORY, "garden")
    sizes = stage.root.locator(".lf-box canvas").evaluate_all("all => all.map(({ width, height }) => width * height)")
    assert len(sizes) > 40
    assert min(sizes) > 1
    assert stage.page.evaluate(FETCHED) == []


def test_recorded_answer_is_that_of_the_engine(open_page):
    """Within the rounding: the page's own run of the stored model gives the arrays of the file, name by name."""
    visit = open_page("index.html")
    found = visit.page.evaluate("""async () => {
        const at = (name) => new URL(`_static/${name}`, document.baseURI).href;
        const { readRecorded } = await import(at('widgets/engine/recorded.mjs'));
        const { loadModel } = await import(at('widgets/engine/client.mjs'));
        const { text, arrays, tokenizer } = await readRecorded(at('widgets/stage.safetensors'));
        const model = await loadModel('stories', at('models/stories.safetensors'));
        const computed = await model.ask('intermediates', 'call', tokenizer.encode(text));
        return Object.entries(arrays).map(([name, parts]) => {
            const [own, theirs] = [parts, computed[name]].map((each) => [each].flat());
            const largest = Math.max(...theirs.flatMap(({ data }) => [...data].map(Math.abs)));
            const shape = (all) => all.map(({ rows, columns }) => `${rows} ${columns}`).join();
            const far = own.flatMap(({ data }, h) => [...data].map((value, i) => Math.abs(value - theirs[h].data[i])));
            return [name, shape(own) === shape(theirs), Math.max(...far) / largest];
        });
    }""")
    assert len(found) > 17
    for name, same_shape, error in found:
        assert same_shape, name
        assert error < 1e-4, name


def test_stage_shows_all_on_the_first_screen_of_a_laptop(open_figure):
    """The drawing, the open box and the bars; what it is, that it is free, and what it has to do with ChatGPT."""
    stage = open_figure("stage", viewport=LAPTOP)
    stage.page.evaluate("scrollTo(0, 0)")
    for part in (".lf-machine", ".lf-open", ".lf-forecast", ".lf-walk"):
        box = stage.root.locator(part).bounding_box()
        assert box["y"] > 0
        assert box["y"] + box["height"] <= 800, part
    assert stage.root.bounding_box()["width"] >= 1100
    lead = stage.page.locator(".lead").inner_text()
    assert all(words in lead for words in ("ChatGPT", "free", "browser", "account"))
    menu = stage.page.locator("#pst-primary-sidebar")
    assert not menu.is_visible()
    stage.page.locator(".primary-toggle").click()
    menu.get_by_role("link", name="1. Tokens").wait_for()


# Press Play and write down, for each box that is opened, what is said beside it, whether the bars are seen, and when.
WATCH = """() => {
    const root = document.querySelector('[data-widget=stage] .lf');
    const [start, bars] = [Date.now(), root.querySelector('.lf-forecast tbody')];
    window.seen = [];
    new MutationObserver(() => {
        const { open } = JSON.parse(root.dataset.state);
        if (window.seen.at(-1)?.open === open) return;
        const told = root.querySelector('.lf-told').textContent;
        window.seen.push({ open, told, bars: getComputedStyle(bars).visibility === 'visible', at: Date.now() - start });
    }).observe(root, { attributeFilter: ['data-state'] });
    [...root.querySelectorAll('button')].find((each) => each.textContent === 'Play').click();
}"""


def test_play_is_a_story_of_half_a_minute(stage):
    """One sentence a box, and the answer at the end."""
    stage.page.clock.install()
    stage.page.evaluate(WATCH)
    stage.page.clock.run_for(40_000)
    seen = stage.page.evaluate("window.seen")
    assert [each["open"] for each in seen] == BOXES
    assert len({each["told"] for each in seen}) == len(BOXES)
    assert all(len(each["told"].split()) > 3 and each["told"].endswith(".") for each in seen)
    assert 25_000 < seen[-1]["at"] < 35_000
    assert [each["bars"] for each in seen] == [False] * (len(BOXES) - 1) + [True]
    assert "All 4 blocks do the same" in seen[2]["told"]
    assert "“garden”, with 0.996." in seen[-1]["told"]
    assert stage.page.evaluate(FETCHED) == []


def test_play_pauses_steps_and_begins_again(stage):
    stage.control("Play").click()
    stage.until("state.open === 'embedding'")
    stage.control("Pause").click()
    stage.visit.quiet()
    assert stage.state["open"] == "embedding"
    assert not stage.root.locator(".lf-forecast tbody").is_visible()
    stage.control("Step").click()
    assert stage.state["open"] == "block0"
    stage.control("Restart").click()
    assert stage.state["open"] == "ids"
    stage.root.locator("[data-box=values]").click()
    assert stage.control("Play").is_visible()
    assert stage.root.locator(".lf-forecast tbody").is_visible()


def test_a_block_that_was_not_recorded_says_how_to_see_inside(stage):
    stage.root.locator("[data-box=block3]").click()
    assert stage.state["open"] == "block3"
    words = stage.root.locator(".lf-told").inner_text()
    assert "To look inside it, press “Your own text (0.8 MB)”." in words
    stage.control("Your own text").click()
    stage.page.wait_for_function("() => performance.getEntriesByType('resource').length")
    stage.root.get_by_role("button", name="Your own text").wait_for(state="hidden")
    stage.settled()
    stage.root.locator("[data-box=block3]").click()
    assert (stage.state["block"], stage.state["open"]) == (3, "norm1")


def probabilities(name, text):
    model, tokenizer = pf.load_pretrained(name)
    return np.asarray(pf.softmax(model(jnp.asarray(tokenizer.encode(text))))[-1])


@pytest.mark.parametrize("by", ["field", "button"])
def test_ones_own_text_needs_one_press_and_what_is_typed_arrives(browser, site, by):
    """The model comes slowly; meanwhile the reader types."""
    context = browser.new_context(service_workers="block", viewport=LAPTOP)
    context.route("**/stories.safetensors*", lambda route: (time.sleep(1), route.continue_()))
    page = context.new_page()
    page.goto(f"{site}index.html")
    root = page.locator(".live-figure-mounted[data-widget=stage] .lf")
    field = root.get_by_label("Your text")
    if by == "field":
        field.click()
    else:
        root.get_by_role("button", name="Your own text").click()
    page.keyboard.press("Control+a")
    page.keyboard.type(OWN)
    page.wait_for_function(
        "text => { const { dataset } = document.querySelector('[data-widget=stage] .lf');"
        " const state = JSON.parse(dataset.state); return state.text === text && !state.busy }",
        arg=OWN,
    )
    state = json.loads(root.get_attribute("data-state"))
    assert page.evaluate("document.activeElement.tagName") == "TEXTAREA"
    np.testing.assert_allclose(state["expected"][0][1], probabilities("stories", OWN).max(), atol=1e-4)
    context.close()


def test_second_model_is_one_press_away(stage):
    stage.root.get_by_label("Shakespeare").check()
    state = stage.until("state.model === 'shakespeare' && !state.busy")
    np.testing.assert_allclose(state["expected"][0][1], probabilities("shakespeare", state["text"]).max(), atol=1e-4)
    stage.control("Add the likeliest token").click()
    assert stage.settled()["text"].endswith("art thou")
    stage.root.get_by_label("stories").check()
    assert stage.settled()["text"] == STORY


def test_a_model_that_does_not_come_is_said_and_the_first_stays(browser, site):
    context = browser.new_context(service_workers="block")
    context.route(
        "**/*.safetensors*", lambda route: route.continue_() if "stage" in route.request.url else route.abort()
    )
    page = context.new_page()
    page.goto(f"{site}index.html")
    root = page.locator(".live-figure-mounted[data-widget=stage] .lf")
    root.get_by_label("Shakespeare").check()
    root.get_by_text("there is no connection").wait_for()
    assert root.get_by_label("stories").is_checked()
    root.get_by_role("button", name="Your own text").click()
    root.get_by_text("there is no connection").wait_for()
    context.close()


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_emptied_field_keeps_height_and_picture(open_figure, size):
    stage = open_figure("stage", viewport=size)
    before = stage.root.bounding_box()["height"]
    stage.root.get_by_label("Your text").fill("")
    assert stage.summary == "There is nothing to read yet: type a word."
    assert abs(stage.root.bounding_box()["height"] - before) <= 24  # the sentence may be of another length
    assert float(stage.root.locator(".lf-stage").evaluate("node => getComputedStyle(node).opacity")) < 0.6
    assert stage.root.locator(".lf-box canvas").count() > 40


UNREADABLE = "text=%ff&box=constructor"
LINKS = {
    "box=weights&head=2": {"open": "weights", "head": 1, "text": STORY},
    "text=Ben+is&block=3&box=keys&head=5": {"text": "Ben is", "block": 2, "open": "keys", "head": 4},
    "model=shakespeare&text=My+lord": {"model": "shakespeare", "text": "My lord"},
    "box=block4": {"open": "block3", "text": STORY},
    UNREADABLE: {"open": "weights", "text": "\ufffd"},
    "word=3": {"token": 2},
    "box=%3Cimg%20src=x%20onerror=alert(1)%3E": {"open": "weights"},
    "model=__proto__&head=-1&block=99": {"model": "stories", "head": 3, "block": 1},
}


def test_link_opens_the_machine_in_its_state(stage):
    """What no reader could have made changes nothing; a link that is copied names what differs."""
    for link, wanted in LINKS.items():
        stage.page.goto("about:blank")
        stage.page.goto(f"{stage.visit.site}index.html#fig-landing-machine?{link}")
        stage.visit.settle()
        stage.visit.quiet()
        is_wanted = [f"state.{key} === {json.dumps(value)}" for key, value in wanted.items()]
        has_answer = "!state.sizes" if link == UNREADABLE else "state.sizes"
        stage.until(" && ".join(["!state.busy", has_answer, *is_wanted]))
    assert stage.visit.errors == []
    stage.root.locator("[data-box=queries]").click()
    stage.control("Copy link").click()
    stage.page.wait_for_function("() => location.hash.endsWith('box=queries')")


def test_what_the_stage_is_drawn_from_is_little_and_asked_for_at_once(stage):
    """The page names every module and the recorded answer in its head, so that one wait brings them all."""
    named = stage.page.locator("link[rel=modulepreload], link[as=fetch]").evaluate_all(
        "all => all.map(({ href }) => href)"
    )
    kinds = (".mjs", ".safetensors")
    fetched = {name: size for name, size in stage.visit.weights.items() if "/widgets/" in name and name.endswith(kinds)}
    assert len(fetched) > 10
    assert set(fetched) <= set(named)
    assert sum(fetched.values()) < 120_000
