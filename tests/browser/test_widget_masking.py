"""The live figure of hidden letters: what it shows of a hole is what the stored model gives in Python."""

import json

import jax
import numpy as np
import pytest

import plainformer as pf

# What every test over all figures changes: controls with keys (`test_widgets.py`).
CHANGES = {
    "masking": [
        ("North Korea", "Space"),
        ("Head", "ArrowRight"),
        ("Hide letter 5", "Enter"),
        ("several holes", "Space"),
    ],
}

RUNS, LENGTH = 6, 32
RANDOM = np.random.default_rng(0)
# Types a text, chooses holes, the last of which is asked about, and a head; what the figure then says.
TRY = """async ([text, holes, head]) => {
    const root = document.querySelector('.live-figure[data-widget="masking"] .lf');
    const rest = async () => {
        while (JSON.parse(root.dataset.state).busy) await nextFrame();
        return JSON.parse(root.dataset.state);
    };
    const tell = (input, value) => { input.value = value; input.dispatchEvent(new Event('input')); return rest(); };
    const [field, several, slider] = root.querySelectorAll('input');
    if (several.checked) several.click();
    await tell(field, text);
    for (const hole of holes) {
        if (hole === holes[1]) several.click();
        root.querySelectorAll('button.lf-letter')[hole].click();
        await rest();
    }
    return tell(slider, head);
}"""


@pytest.fixture(scope="module")
def stored():
    return pf.load_pretrained("encoder")


@pytest.fixture(scope="module")
def read(stored):
    """Probabilities, and attention weights, of rows of ids, padded to one length."""
    model, _ = stored
    run = jax.jit(lambda *inputs: (jax.nn.softmax(model(*inputs)), model.attention_weights(*inputs)))
    return lambda rows: map(np.asarray, run(*pf.data.pad_texts(rows, LENGTH)))


def random_questions(vocabulary):
    """Names of the test, and any letters; one hole, or three."""
    names = [name.text for name in pf.data.name_splits().test if len(name.text) > 4]
    for run in range(RUNS):
        letters = list(RANDOM.choice(vocabulary.tokens[2:], RANDOM.integers(5, 45)))
        text = str(RANDOM.choice(names)) if run % 2 else "".join(letters).strip(" ,_") + "e"
        holes = RANDOM.choice(min(len(text), LENGTH), 3 if run % 3 == 0 else 1, replace=False)
        yield text, holes.tolist(), int(RANDOM.integers(0, 13))


def test_it_shows_what_the_model_gives(shared_figures, stored, read):
    _, vocabulary = stored
    figure, mask = shared_figures("masking"), vocabulary.special["<mask>"]
    questions = list(random_questions(vocabulary))
    lines = [vocabulary.encode(text)[:LENGTH] for text, _, _ in questions]
    holes = [set(some) for _, some, _ in questions]
    both, left = [], []
    for line, (_, some, _) in zip(lines, questions, strict=True):
        both.append([mask if n in some else token for n, token in enumerate(line)])
        left.append(both[-1][: some[-1]] + [mask] * (len(line) - some[-1]))
    (from_both, weights), (from_left, _) = read(both), read(left)
    for run, question in enumerate(questions):
        state = figure.page.evaluate(TRY, question)
        asked, head = question[1][-1], question[2]
        assert (state["asked"], set(state["hidden"])) == (asked, holes[run])
        ids = [vocabulary.tokens.index(token) for token in state["shown"]]
        assert lines[run][asked] in ids
        assert set(from_both[run, asked].argsort()[-3:]) <= set(ids)
        for found, wanted in [("both", from_both), ("left", from_left)]:
            np.testing.assert_allclose(state[found][:-1], wanted[run, asked, ids], atol=1e-4, err_msg=str(question))
            np.testing.assert_allclose(sum(state[found]), 1, atol=1e-6)
        of_heads = weights[run, :, :, asked + 1, : len(lines[run]) + 1].reshape(12, -1)
        wanted = of_heads.mean(axis=0) if head == 0 else of_heads[head - 1]
        np.testing.assert_allclose(state["weights"], wanted, atol=1e-4)


def test_bars_of_each_letter_say_how_likely_it_was_by_itself(shared_figures, stored, read):
    _, vocabulary = stored
    figure, mask = shared_figures("masking"), vocabulary.special["<mask>"]
    figure.page.wait_for_function("() => document.querySelector('.lf[data-survey]')")
    ids = vocabulary.encode("Tschechisch")
    places = range(len(ids))
    left = [ids[:n] + [mask] * (len(ids) - n) for n in places]
    both = [[*ids[:n], mask, *ids[n + 1 :]] for n in places]
    wanted = [next(iter(read(rows)))[places, places, ids] for rows in (left, both)]
    np.testing.assert_allclose(np.transpose(json.loads(figure.root.get_attribute("data-survey"))), wanted, atol=1e-4)
    heights = figure.root.locator(".lf-likely i").evaluate_all("bars => bars.map((bar) => parseInt(bar.style.height))")
    np.testing.assert_allclose(np.reshape(heights, (-1, 2)).T, 100 * np.array(wanted), atol=0.51)
    assert figure.root.locator(".lf-note", has_text="at 8 of 11").count() == 1


def test_from_the_left_it_is_better_to_hide_what_follows_than_to_cut_it_off(stored, read):
    """So the figure hides it; the chapter says so."""
    _, vocabulary = stored
    mask = vocabulary.special["<mask>"]
    names = [name.text for name in pf.data.name_splits().test if 5 <= len(name.text) <= 20][::40]
    texts = [vocabulary.encode(name) for name in names]
    holes = [(ids, n) for ids in texts for n in range(len(ids))]
    surprises = []
    for length in (lambda ids, n: len(ids) - n, lambda ids, n: 1):
        rows = [ids[:n] + [mask] * length(ids, n) for ids, n in holes]
        places, right = [n for _, n in holes], [ids[n] for ids, n in holes]
        probabilities, _ = read(rows)
        surprises.append(-np.log(probabilities[range(len(rows)), places, right]).mean())
    assert surprises[0] < surprises[1] - 0.03


def test_letters_are_hidden_by_mouse_and_keys_and_several_holes_come_and_go(shared_figures):
    figure = shared_figures("masking")
    letters = figure.root.locator("button.lf-letter")
    letters.nth(4).click()
    assert (figure.settled()["asked"], figure.state["right"]) == (4, "e")
    figure.press(letters.nth(4), "ArrowRight", "ArrowRight")
    assert figure.settled()["hidden"] == [6]
    assert letters.nth(6).evaluate("node => node === document.activeElement")
    figure.press(letters.nth(6), "Home")
    assert figure.settled()["hidden"] == [0]
    assert letters.nth(0).inner_text() == "□"
    unseen = letters.evaluate_all("nodes => nodes.map((node) => getComputedStyle(node).borderStyle)")
    assert unseen == ["solid"] + ["dashed"] * 10
    figure.reset()
    figure.settled()
    figure.control("several holes").check()
    letters.nth(1).click()
    letters.nth(8).click()
    assert (figure.settled()["hidden"], figure.state["asked"]) == ([1, 5, 8], 8)
    letters.nth(8).click()  # shown again
    assert figure.settled()["hidden"] == [1, 5]
    figure.press(letters.nth(2), "ArrowRight")  # only leads on
    assert figure.settled()["hidden"] == [1, 5]
    figure.control("several holes").uncheck()
    assert len(figure.settled()["hidden"]) == 1
    letters.nth(7).click(modifiers=["Shift"])
    assert len(figure.settled()["hidden"]) == 2


def test_a_gap_is_a_hole_without_an_answer(shared_figures):
    figure = shared_figures("masking")
    figure.root.get_by_role("button", name="Afri_a").click()
    state = figure.settled()
    assert (state["hidden"], state["right"], state["shown"][0]) == ([4], None, "k")
    assert figure.root.locator("th.lf-chosen").count() == 0


def test_what_the_vocabulary_lacks_and_what_is_too_long_is_said(shared_figures):
    figure = shared_figures("masking")
    field = figure.control("Name")
    field.fill("Ł東dź")
    assert figure.settled()["letters"] == [*"Ł東dź"]
    assert figure.root.locator("button.lf-letter").nth(1).inner_text() == "<other>"
    assert "lacks “東”" in figure.summary
    figure.root.locator("button.lf-letter").nth(1).click()
    assert "which the model cannot write" in figure.summary
    field.fill("a" * 50)
    assert len(figure.settled()["letters"]) == 32
    assert "Only the first 32" in figure.summary
