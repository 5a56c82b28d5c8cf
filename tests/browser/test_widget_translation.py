"""The live figure of translation: what it writes, how sure it is and what it reads are as in Python."""

import jax
import numpy as np
import pytest

import plainformer as pf

# What every test over all figures changes: controls with keys (`test_widgets.py`).
CHANGES = {
    "translation": [
        ("Freitag", "Space"),
        ("Step", "ArrowRight"),
        ("Head", "End"),
        ("Step 5, -", "Enter"),
        ("Next letter", "Space"),
    ],
}

RUNS = 4
RANDOM = np.random.default_rng(0)
MODELS = {"seq2seq": "dates", "numbers": "German numbers"}
# Types each of the texts; what the figure then says, at a step and of a head if they are given.
TYPE = """async (tries) => {
    const root = document.querySelector('.live-figure[data-widget="translation"] .lf');
    const rest = async () => {
        while (JSON.parse(root.dataset.state).busy) await nextFrame();
        return JSON.parse(root.dataset.state);
    };
    const tell = (input, value) => { input.value = value; input.dispatchEvent(new Event('input')); return rest(); };
    const field = root.querySelector('input[type=text]');
    const [step, head] = root.querySelectorAll('input[type=range]');
    const found = [];
    for (const [text, ...others] of tries) {
        let state = await tell(field, text);
        if (others.length) {
            await tell(head, others[0]);
            state = await tell(step, 1 + others[1] % state.written.length);
        }
        found.push(state);
    }
    return found;
}"""


@pytest.fixture(scope="module")
def stored():
    found = {name: pf.load_pretrained(name) for name in MODELS}
    return found.__getitem__


def switched(figure, task):
    figure.root.get_by_label(MODELS[task]).check()
    return figure.until(f"state.task === '{task}' && !state.busy")


def random_texts(task, vocabulary):
    """Texts of the test, and any letters."""
    parts = pf.data.date_splits().held_out_years if task == "seq2seq" else pf.data.number_splits().validation
    pairs = [parts[place].source for place in RANDOM.integers(0, len(parts), RUNS)]
    noise = ["".join(RANDOM.choice(vocabulary.tokens[3:], RANDOM.integers(1, 35))) for _ in range(RUNS)]
    return [pair if run % 2 else some for run, (pair, some) in enumerate(zip(pairs, noise, strict=True))]


def in_python(model, sources, written):
    """Probabilities and cross-attention weights of each step of each text, padded to one length."""
    config = model.config
    source, is_source = pf.data.pad_texts(sources, config.source_len)
    inputs, _ = pf.data.pad_texts([[config.start_token, *ids[:-1]] for ids in written], config.context_len)
    run = jax.jit(lambda *all: (jax.nn.softmax(model(*all)), model.cross_attention_weights(*all)))
    return map(np.asarray, run(source, inputs, is_source))


@pytest.mark.parametrize("task", MODELS)
def test_it_writes_and_reads_what_the_model_does(shared_figures, stored, task):
    model, vocabulary = stored(task)
    figure = shared_figures("translation")
    switched(figure, task)
    texts = random_texts(task, vocabulary)
    heads = model.config.decoder.num_layers * model.config.decoder.num_heads
    tries = [[text, int(RANDOM.integers(0, heads + 1)), int(RANDOM.integers(0, 100))] for text in texts]
    states = figure.page.evaluate(TYPE, tries)
    sources = [vocabulary.encode(text) for text in texts]
    written = [state["written"] for state in states]
    stop = model.config.stop_token
    found = [each.tokens for each in pf.translate(model, sources)]
    assert [ids[: ids.index(stop) + 1] if stop in ids else ids for ids in written] == found
    probabilities, weights = in_python(model, sources, written)
    for run, (state, (text, head, _)) in enumerate(zip(states, tries, strict=True)):
        steps, step = range(len(written[run])), state["step"]
        np.testing.assert_allclose(state["sure"], probabilities[run, steps, written[run]], atol=1e-4, err_msg=text)
        np.testing.assert_allclose(state["all"], np.prod(state["sure"]), rtol=1e-6)
        np.testing.assert_allclose(state["probabilities"], np.sort(probabilities[run, step])[::-1][:5], atol=1e-4)
        of_heads = weights[run, :, :, step, : len(text)].reshape(heads, -1)
        wanted = of_heads.mean(axis=0) if head == 0 else of_heads[head - 1]
        np.testing.assert_allclose(state["weights"], wanted, atol=1e-4, err_msg=text)


def test_what_is_called_right_is_right(shared_figures):
    """Of the texts to start from the page knows the answers; the package knows them, too."""
    parts = pf.data.date_splits()
    known = {pair.source: pair.target for part in (parts.held_out_years, parts.held_out_language) for pair in part}
    known["12. Oktober 1492"] = "1492-10-12"
    known |= {pair.source: pair.target for part in pf.data.number_splits() for pair in part}
    known |= {
        "vierunddreißigtausendzwölf": "thirty-four thousand and twelve",
        "zweitausendfünfundvierzig": "two thousand and forty-five",
        "zwölf": "twelve",
    }
    seen = {pair.source for pair in (*parts.training, *pf.data.number_splits().training)}
    figure = shared_figures("translation")
    for task in MODELS:
        switched(figure, task)
        for button in figure.root.locator(".lf-examples button").all():
            text = button.inner_text()
            button.click()
            state = figure.settled()
            assert state["text"] == text
            assert text not in seen
            judged = "which is right" if state["answer"] == known[text] else f"right is “{known[text]}”"
            assert judged in figure.summary


def test_what_cannot_be_judged_is_not(shared_figures):
    figure = shared_figures("translation")
    field = figure.root.get_by_label("Date", exact=True)
    field.fill("17 July 1987")
    assert "right" not in figure.summary
    field.fill("31 February 1999")
    assert "there is no such day" in figure.summary
    field.fill("3/4/2020 " + 40 * "x")
    assert "lacks “/”" in figure.summary
    assert "Only the first 40" in figure.summary
    assert figure.root.locator("span.lf-letter").count() == 40
    field.fill("")
    figure.root.get_by_role("button", name="Write it").click()  # nothing to write
    figure.root.get_by_role("button", name="Next letter").click()
    assert "text" in figure.state


def test_a_step_is_drawn_with_what_it_reads(shared_figures):
    figure = shared_figures("translation")
    figure.root.get_by_role("button", name="Freitag").click()
    state = figure.settled()
    assert state["step"] == 6
    tiles = figure.root.locator("span.lf-letter")
    assert "".join(tiles.locator("b").all_inner_texts()) == "Freitag,␣26.␣Juni␣1936"
    numbers = [int(tile.get_attribute("data-share") or 0) for tile in tiles.all()]
    np.testing.assert_allclose(numbers, 100 * np.array(state["weights"]), atol=0.501)
    thick = figure.root.locator(".lf-curves path:not(.lf-faint)").count()
    assert thick == sum(weight >= 0.03 for weight in state["weights"])
    assert figure.root.locator(".lf-curves .lf-faint").count() > 4
    letters = figure.root.locator("button.lf-letter")
    assert "".join(letters.all_inner_texts()) == "1936-06-26■"
    heights = letters.locator("i").evaluate_all("bars => bars.map((bar) => parseInt(bar.style.height))")
    np.testing.assert_allclose(heights, 100 * np.array(state["sure"]), atol=0.501)


def test_it_is_led_by_mouse_and_keys(shared_figures):
    figure = shared_figures("translation")
    letters = figure.root.locator("button.lf-letter")
    letters.nth(9).hover()
    assert figure.state["step"] == 9
    letters.nth(2).click()
    figure.press(letters.nth(2), "ArrowRight", "ArrowRight")
    assert figure.state["step"] == 4
    assert letters.nth(4).get_attribute("aria-current") == "true"
    figure.press(letters.nth(4), "End", "ArrowRight")  # no further
    assert figure.state["step"] == 10
    figure.press(figure.control("Head"), "End")
    assert (figure.state["head"], figure.control("Head").get_attribute("aria-valuetext")) == (8, "block 2, head 4")


def test_it_writes_by_itself(shared_figures):
    figure = shared_figures("translation")
    figure.page.mouse.move(0, 0)
    run = figure.root.get_by_role("button", name="Write it")
    figure.press(figure.control("Step"), "End")
    assert figure.clicked(run)["step"] == 0
    assert figure.root.locator("button.lf-letter b").nth(8).evaluate("b => getComputedStyle(b).visibility") == "hidden"
    figure.until("state.step === 2")
    figure.root.get_by_role("button", name="Pause").click()
    assert figure.root.locator("button.lf-letter b").nth(8).is_visible()
    step = figure.state["step"]
    figure.root.get_by_role("button", name="Next letter").click()
    assert figure.state["step"] == step + 1


def test_a_missing_second_model_leaves_the_first(open_figure):
    figure = open_figure("translation").start()
    figure.page.route("**/numbers.safetensors*", lambda route: route.fulfill(status=404))
    figure.root.get_by_label("German numbers").click()  # it may have changed back at once
    figure.until("state.error")
    assert "status 404" in figure.summary
    assert figure.root.get_by_label("dates").is_checked()
    figure.page.unroute("**/numbers.safetensors*")
    assert switched(figure, "numbers")["answer"] == "thirty-four thousand and twelve"
