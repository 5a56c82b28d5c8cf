"""What holds for every live figure: it can be worked without a mouse, reset, read aloud, and fits a phone."""

import pytest

NAMES = [
    "notation",
    "bpe",
    "attention",
    "recall",
    "heads",
    "blocks",
    "runs",
    "positions",
    "descent",
    "machine",
    "decoder_heads",
    "surprise",
    "lens",
    "sampling",
    "masking",
    "patches",
    "translation",
    "costs",
    "kernel",
    "dynamics",
]

# One control of each figure with keys that change something.
CHANGES = {
    "notation": [("slip: softmax", "Space")],
    "bpe": [
        ("Merges", "End"),
        ("the Python reference", "Space"),
        ("other vocabularies", "Space"),
        ("other languages", "Space"),
    ],
    "attention": [
        ("Query q", "ArrowUp"),
        ("Key 3", "ArrowLeft"),
        ("Value 1", "ArrowDown"),
        ("Score multiplier", "ArrowRight"),
        ("May attend to token 2", "Space"),
        ("Mistake", "ArrowDown"),
        ("five", "Space"),
    ],
    "recall": [
        ("One step", "Enter"),
        ("Learning rate", "ArrowRight"),
        ("Width of keys", "ArrowLeft"),
        ("scores divided", "Space"),
        ("Seed", "ArrowRight"),
    ],
    "heads": [("Head 2", "Space")],
    "blocks": [("pre-norm", "Space"), ("Scale of f", "ArrowRight"), ("Layers", "ArrowLeft")],
    "runs": [("post-norm", "Space"), ("200 steps", "Space"), ("Up to step", "End")],
    "positions": [
        ("rotary", "Space"),
        ("letters", "Space"),
        ("First token at", "ArrowRight"),
        ("Play", "Enter"),
        ("Offset n − m", "End"),
        ("Base", "Home"),
    ],
    "descent": [("Learning rate", "ArrowRight"), ("One step", "Enter"), ("Ten steps", "Space")],
    "machine": [("norm before attention", "Enter"), ("Token to follow", "Home"), ("Step", "Space")],
    "decoder_heads": [
        ("block 1, head 2", "ArrowDown"),
        ("Token to follow", "Home"),
        ("Weights of the chosen", "ArrowUp"),
    ],
    "surprise": [("The cat", "Space"), ("Letter", "ArrowRight")],
    "lens": [("The cat", "Space"), ("e: the depths", "ArrowRight")],
    "sampling": [
        ("The object", "Space"),
        ("Temperature", "ArrowLeft"),
        ("Top-k", "Home"),
        ("Top-p", "ArrowLeft"),
        ("Write one", "Enter"),
        ("Another seed", "Space"),
        ("the cache", "Space"),
    ],
    "masking": [
        ("North Korea", "Space"),
        ("Head", "ArrowRight"),
        ("Hide letter 5", "Enter"),
        ("several holes", "Space"),
    ],
    "patches": [
        ("test digit 18", "Space"),
        ("block 2, head 3", "Space"),
        ("Paper", "Space"),
        ("Patch in row 2, column 2", "Enter"),
    ],
    "costs": [("Tokens", "Home"), ("Heads", "End"), ("KV heads", "Home"), ("Window", "End")],
    "translation": [
        ("Freitag", "Space"),
        ("Step", "ArrowRight"),
        ("Head", "End"),
        ("Step 5, -", "Enter"),
        ("Next letter", "Space"),
    ],
    "kernel": [("Query at", "ArrowRight"), ("Width", "ArrowLeft"), ("Point 3", "Space"), ("Value", "ArrowRight")],
    "dynamics": [("without y₁", "Space"), ("at the angle", "ArrowRight"), ("Points", "Home")],
}


@pytest.mark.parametrize("name", NAMES)
def test_reset_undoes_every_change(shared_figures, name):
    figure = shared_figures(name)
    start, words = figure.state, figure.summary
    for label, keys in CHANGES[name]:
        figure.press(figure.control(label), keys)
        assert figure.state != start
        figure.reset()
        assert figure.state == start
    assert figure.summary == words


@pytest.mark.parametrize("name", NAMES)
def test_summary_says_what_changed(shared_figures, name):
    figure = shared_figures(name)
    before = figure.summary
    for label, keys in CHANGES[name]:
        figure.press(figure.control(label), keys)
    assert before != figure.summary != ""
    assert figure.root.locator("[aria-live=polite]").count() == 1


@pytest.mark.parametrize("name", NAMES)
def test_tab_reaches_every_control(shared_figures, name):
    """Radio buttons of one name are one stop, as everywhere."""
    figure = shared_figures(name)
    stops = figure.root.evaluate("""root => {
        const isShown = (node) => node.offsetParent !== null || node instanceof SVGElement;
        const isStop = (node) => node.tabIndex >= 0 && isShown(node); // of a row of letters, one
        const all = [...root.querySelectorAll('input, button, select, [tabindex="0"]')].filter(isStop);
        all.forEach((node, i) => { node.dataset.stop = node.type === 'radio' ? node.name : i; });
        return [...new Set(all.map((node) => node.dataset.stop))];
    }""")
    seen = set()
    figure.root.locator("[data-stop]").first.focus()
    for _ in range(len(stops) + 1):
        seen.add(figure.page.evaluate("document.activeElement.dataset.stop"))
        figure.page.keyboard.press("Tab")
    assert set(stops) <= seen


@pytest.mark.parametrize("name", NAMES)
def test_figure_fits_a_phone(open_figure, name):
    figure = open_figure(name, viewport={"width": 360, "height": 800})
    if figure.root.locator(".lf-start").count():
        figure.start()
    for label, keys in [(None, None), *CHANGES[name]]:
        if label is not None:
            figure.press(figure.control(label), keys)
            figure.settled()
        outside = figure.root.evaluate("""root => {
            const edge = root.getBoundingClientRect().right;
            const isCut = (node) => node.matches('.lf-table') && node.scrollWidth > node.clientWidth;
            const all = [...root.querySelectorAll('*')];
            const isOut = (node) => node.getBoundingClientRect().right > edge + 1 || isCut(node);
            return all.filter(isOut).map((node) => `${node.tagName} ${node.textContent.slice(0, 40)}`);
        }""")
        assert outside == [], f"after {label}"
    small = figure.root.evaluate("""root => {
        const isSmall = (node) => node.firstChild?.nodeType === 3 && parseFloat(getComputedStyle(node).fontSize) < 11;
        return [...root.querySelectorAll('*')].filter(isSmall).map((node) => node.textContent);
    }""")
    assert small == []


def test_figures_keep_still_for_those_who_ask(open_figure):
    figure = open_figure("attention", reduced_motion="reduce")
    assert (
        figure.root.locator(".lf-gauge i").first.evaluate("node => getComputedStyle(node).transitionProperty") == "none"
    )
