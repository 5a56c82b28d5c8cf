"""Exercises are solved in the page, with the network cut after the first visit; the book remembers, and forgets."""

import pytest

from plainformer.exercises import ExerciseError, check
from tests.browser.conftest import SITE

FIRST = "chapters/self_attention.html"
SCORES = "def my_scores(queries, keys):\n    return queries @ keys.T / np.sqrt(queries.shape[1])\n"
SOLVED = {
    (FIRST, "ex-self-attention-weights"): f"""{SCORES}
def my_weights(queries, keys, mask):
    scores = np.where(mask, my_scores(queries, keys), -np.inf)
    powers = np.exp(scores - np.nan_to_num(scores.max(axis=1, keepdims=True), neginf=0))
    total = powers.sum(axis=1, keepdims=True)
    return powers / np.where(total == 0, 1, total)
""",
    # Which uses what was written above.
    (FIRST, "ex-self-attention-attend"): "my_attend = lambda q, k, values, mask: my_weights(q, k, mask) @ values",
    ("chapters/generation.html", "ex-generation-temperature"): """
def my_temperature(logits, temperature):
    if temperature == 0:
        is_largest = logits == logits.max()
        return is_largest / is_largest.sum()
    powers = np.exp((logits - logits.max()) / temperature)
    return powers / powers.sum()
""",
}
STARTING = 90_000  # milliseconds, on a machine that has other things to do


class Exercise:
    """An exercise of a page, opened for writing."""

    def __init__(self, page, label):
        self.row = page.locator(f"#{label} .exercise-row")
        self.place = page.locator(f"#{label} .answer")
        self.row.scroll_into_view_if_needed()
        self.row.locator(".answer-open").click()
        self.field = self.place.locator("textarea")

    def wait(self):
        self.place.locator("pre", has_text="Python is ready.").wait_for(timeout=STARTING)

    def run(self, code: str) -> str:
        self.field.fill(code)
        self.place.locator(".answer-run").click()
        self.place.locator("pre:is([data-kind=right], [data-kind=wrong])").wait_for(timeout=STARTING)
        return self.place.locator("pre").inner_text()

    def is_ticked(self) -> bool:
        return self.row.locator("input").is_checked()


@pytest.fixture
def page(browser, site_to_cut):
    """A page in a window of its own, in which a service worker may run."""
    if not list(SITE.glob("_static/python/*/pyodide.mjs")):
        pytest.fail("This site was built without a network, and so without Python: build it again.", pytrace=False)
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    page.set_default_timeout(STARTING)
    page.goto(site_to_cut[0] + FIRST)
    page.locator(".exercise-row .answer-open").first.wait_for(state="attached")
    yield page
    context.close()


# All that the page has asked for is kept by its service worker.
KEPT = """async () => {
    const asked = performance.getEntriesByType('resource').map(({ name }) => name).filter((name) => /^http/.test(name));
    const kept = await Promise.all(asked.map((name) => caches.match(name, { ignoreSearch: true })));
    return document.readyState === 'complete' && kept.every(Boolean);
}"""


def test_exercises_are_solved_without_a_network(page, site_to_cut):
    address, cut = site_to_cut
    Exercise(page, "ex-self-attention-weights").wait()
    for path in dict.fromkeys(path for path, _ in SOLVED):
        page.goto(address + path)
        page.wait_for_function(KEPT)
    cut()
    at = None
    for (path, label), code in SOLVED.items():
        if path != at:
            page.goto(address + (at := path))
        exercise = Exercise(page, label)
        assert "passed" in exercise.run(code)
        assert exercise.is_ticked()
    page.goto(address + FIRST)
    assert page.locator("#ex-self-attention-weights .answer-done input").is_checked()
    assert not page.locator("#ex-self-attention-pencil .answer-done input").is_checked()
    page.locator("#ex-self-attention-weights .answer-open").click()
    assert (
        page.locator("#ex-self-attention-weights textarea").input_value() == SOLVED[FIRST, "ex-self-attention-weights"]
    )


def test_a_mistake_is_named_in_the_same_words(page):
    exercise = Exercise(page, "ex-self-attention-weights")
    said = exercise.run("def my_scores(queries, keys):\n    return queries @ keys.T\n")
    with pytest.raises(ExerciseError) as caught:
        check("scores", lambda queries, keys: queries @ keys.T)
    assert said == str(caught.value)
    assert "your scores are not scaled" in said
    assert not exercise.is_ticked()


def test_a_loop_without_end_can_be_stopped(page):
    exercise = Exercise(page, "ex-self-attention-weights")
    exercise.wait()
    exercise.field.fill("while True:\n    pass\n")
    button = exercise.place.locator(".answer-run")
    button.click()
    exercise.place.locator("pre", has_text="Running").wait_for()
    button.click()
    exercise.place.locator("pre", has_text="Stopped.").wait_for()
    assert exercise.run(SCORES).startswith("scores: passed 3 checks")


def test_nothing_is_fetched_or_kept_before_the_button(page):
    button = page.locator("#ex-self-attention-weights .answer-open")
    assert button.is_visible()
    assert "10 MB" in page.locator("#ex-self-attention-weights .answer-size").text_content()
    fetched = page.evaluate("performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert len(fetched) > 5
    assert not [name for name in fetched if "python" in name or "offline" in name]
    assert page.evaluate("navigator.serviceWorker.getRegistrations().then((all) => all.length)") == 0
    assert page.evaluate("[localStorage.getItem('plainformer'), caches.keys()]")[0] is None
    assert page.locator(".kept").count() == 0


def test_the_field_is_worked_by_keys(page):
    exercise = Exercise(page, "ex-self-attention-attend")
    assert exercise.field.input_value() == "def my_attend(queries, keys, values, mask):\n    ...\n"
    exercise.field.fill("def f():")
    for key in ("Enter", "x", "Enter", "Tab", "y", "Enter", "Shift+Tab", "z"):
        exercise.field.press(key)
    assert exercise.field.input_value() == "def f():\n    x\n        y\n    z"
    exercise.field.press("Escape")
    exercise.field.press("Tab")
    assert page.evaluate("document.activeElement.className") == "answer-run"


def test_ticks_and_the_place_stay_until_they_are_deleted(page, site_to_cut):
    address, _ = site_to_cut
    page.locator("#ex-self-attention-pencil .answer-done input").check()
    page.locator(".chapter-read input").check()
    section = page.locator("#masks")
    page.mouse.move(600, 500)
    section.evaluate("(section) => section.scrollIntoView()")
    page.mouse.wheel(0, 60)
    page.wait_for_function("localStorage.plainformer.includes('#masks')")
    page.reload()
    assert page.locator("#ex-self-attention-pencil .answer-done input").is_checked()
    assert page.locator(".go-on").count() == 0  # one is there
    assert page.locator("nav a.read").all_inner_texts() == ["2. Self-attention"]

    page.goto(f"{address}chapters/blocks.html")
    link = page.locator(".bd-sidebar-primary .go-on")
    assert link.inner_text() == "Go on at 2.7 Masks"
    page.goto(f"{address}index.html")
    start = page.locator(".start a").first
    assert start.inner_text() == "Go on at 2.7 Masks"
    start.click()
    assert page.url == f"{address}{FIRST}#masks"

    page.goto(f"{address}chapters/blocks.html")  # the first page has its margin folded away
    page.locator(".kept", has_text="kept in this browser and sent nowhere").wait_for()
    page.get_by_role("button", name="Delete all of it").click()
    assert page.locator(":is(.kept, .go-on, nav a.read)").count() == 0
    page.goto(f"{address}index.html")
    assert start.inner_text() == "Start reading"
    page.wait_for_function("caches.keys().then((keys) => keys.length === 0)")
    page.wait_for_function("navigator.serviceWorker.getRegistrations().then((all) => all.length === 0)")
    assert page.evaluate("localStorage.getItem('plainformer')") is None
    page.goto(address + FIRST)
    assert not page.locator("#ex-self-attention-pencil .answer-done input").is_checked()
