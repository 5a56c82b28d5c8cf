"""The live figures of what a decoder makes of a text: the stream by depth, and its surprise at each letter."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf

# What every test over all figures changes: controls with keys (`test_widgets.py`).
CHANGES = {
    "surprise": [("The cat", "Space"), ("Letter", "ArrowRight")],
    "lens": [("The cat", "Space"), ("e: the depths", "ArrowRight")],
}

MODEL, VOCABULARY = pf.load_pretrained("decoder")
ROOM = MODEL.config.context_len
RANDOM = np.random.default_rng(0)
COLUMNS = {"lens": "button.lf-pillar", "surprise": ".lf-read"}
# As in the figure of surprise: of the kind that the model has learned from; plain English about something else; the
# same words in another order; and a passage that comes twice.
TEXTS = [
    "If the object is a sequence, the method returns the number of its items.",
    "The cat sat on the wall and looked at the moon over the old town.",
    "Town moon the wall over cat the looked old on and the sat the at.",
    "Zofia paid 734 zloty. Zofia paid 734 zloty. Zofia paid 734 zloty.",
]


def close(found, wanted):
    np.testing.assert_allclose(np.asarray(found, float), np.asarray(wanted, float), rtol=1e-4, atol=1e-4)


def enter(figure, *inputs):
    """Type texts into the field, choose a letter of each, and give the model's answers."""
    states = []
    for text, place in inputs:
        figure.root.get_by_role("textbox").fill(text)
        figure.settled()
        if place is not None:
            figure.root.locator(COLUMNS[figure.name]).nth(place).click()
        states.append(figure.state)
    return states


def size(x):
    return np.sqrt(np.mean(np.square(x), axis=-1))


@functools.cache
def lenses():
    """A program for texts of all lengths, filled up: what stands after a token does not reach it."""

    def look(ids):
        stream = MODEL.residual_stream(ids)
        norms = [*(block.attention_norm for block in MODEL.stack.blocks), MODEL.stack.final_norm]
        normed = jnp.stack([norm(x) for norm, x in zip(norms, stream, strict=True)])
        return jnp.stack([*stream]), normed, jax.nn.log_softmax(jnp.stack([MODEL.logits(x) for x in stream]))

    return jax.jit(look)


def seen(ids):
    """The stream, as its norms leave it, and the log-probabilities that it would make, at each depth."""
    return [np.asarray(each)[:, : len(ids)] for each in lenses()(jnp.asarray([*ids, *[0] * (ROOM - len(ids))]))]


def random_inputs():
    """Texts with a letter of each; some are longer than the context."""
    letters = [VOCABULARY.decode([token]).replace("\n", " ") for token in range(1, len(VOCABULARY))]
    texts = ["".join(RANDOM.choice(letters, length)) for length in (2, 17, 128, 129, 300)]
    return [[text, int(RANDOM.integers(1, min(len(text), 97)))] for text in texts]


def read_of(text):
    ids = VOCABULARY.encode(text)
    return ids[32 * -(-max(0, len(ids) - ROOM) // 32) :]


# --- lens -----------------------------------------------------------------------------------------------------------


def check_lens(state):
    ids, place = state["read"], state["place"]
    stream, normed, log_probs = seen(ids)
    came = ids[place + 1] if place + 1 < len(ids) else None
    assert (ids, state["came"]) == (read_of(state["text"]), came)
    for depth, found in enumerate(state["depths"]):
        row = np.exp(log_probs[depth, place])
        close(found["shares"], np.sort(row)[::-1][:5])
        close(row[found["likeliest"]], found["shares"])
        close(found["size"], size(stream[depth, place]))
        close(found["normed"], size(normed[depth, place]))
        close(found["surprise"], -np.mean(log_probs[depth, np.arange(len(ids) - 1), ids[1:]]))
        if depth:
            before, now = stream[depth - 1, place], stream[depth, place]
            close(found["added"], size(now - before))
            close(found["cosine"], before @ now / np.linalg.norm(before) / np.linalg.norm(now))


def test_lens_numbers_are_those_of_python(shared_figures):
    inputs = random_inputs()
    for (text, place), state in zip(inputs, enter(shared_figures("lens"), *inputs), strict=True):
        assert (state["text"], state["place"]) == (text, place)
        check_lens(state)


def test_lens_shows_in_each_column_what_every_depth_says(shared_figures):
    figure = shared_figures("lens")
    _, _, log_probs = seen(figure.state["read"])
    shown = figure.root.locator("button.lf-pillar").evaluate_all(
        "all => all.map((node) => [...node.querySelectorAll('i')].map((cell) => cell.textContent))"
    )
    signs = {" ": "␣", "\n": "↵", "<other>": "◦"}
    for letters, rows in zip(shown, log_probs.argmax(axis=2).T, strict=True):
        spelt = [VOCABULARY.decode([int(token)]) for token in rows]
        assert letters == [signs.get(letter, letter) for letter in spelt]


def test_lens_by_keys_and_mouse(shared_figures):
    figure = shared_figures("lens")
    columns = figure.root.locator("button.lf-pillar")
    figure.press(columns.nth(10), "ArrowRight", "ArrowRight", "ArrowLeft")
    assert figure.state["place"] == 11
    assert figure.page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("c: the depths say")
    check_lens(figure.state)
    figure.page.keyboard.press("End")
    assert (figure.state["place"], figure.state["came"]) == (columns.count() - 1, None)
    columns.nth(3).click()
    assert figure.state["place"] == 3
    assert "Depths say: 0 “t” 1.00, 1 “h”" in figure.summary
    assert figure.root.locator("button.lf-pillar[tabindex='0']").count() == 1


def test_lens_shows_what_the_chapter_says(shared_figures):
    """At depth 0 the letter itself; then less and less surprise; a stream that grows, and is read in one size."""
    stream, normed, log_probs = seen(VOCABULARY.encode(shared_figures("lens").state["text"]))
    ids = VOCABULARY.encode(shared_figures("lens").state["text"])
    assert log_probs[0].argmax(axis=1).tolist() == ids
    costs = -log_probs[:, np.arange(len(ids) - 1), ids[1:]].mean(axis=1)
    np.testing.assert_allclose(costs[1:], [2.82, 2.19, 1.37, 0.73], atol=0.01)
    np.testing.assert_allclose(size(stream).mean(axis=1)[[0, 4]], [0.11, 5.49], atol=0.02)
    assert 0.8 < size(normed).mean(axis=1).min() < size(normed).mean(axis=1).max() < 1.3
    added = size(np.diff(stream, axis=0)).mean(axis=1)
    assert added[3] > 2 * added[:3].max()
    named = [VOCABULARY.decode([int(token)]) for token in log_probs[:, 10].argmax(axis=1)]
    assert named == ["e", "r", "r", "c", "c"]


# --- surprise -------------------------------------------------------------------------------------------------------


def check_surprise(figure, state):
    ids, place = state["read"], state["place"]
    log_probs = seen(ids)[2][-1]
    surprises = -log_probs[np.arange(len(ids) - 1), ids[1:]]
    assert ids == read_of(state["text"])
    close(state["surprises"], surprises)
    close(state["mean"], surprises.mean())
    close(state["probabilities"], np.exp(log_probs[place - 1]))


def test_surprise_numbers_are_those_of_python(shared_figures):
    figure, inputs = shared_figures("surprise"), random_inputs()
    for (_, place), state in zip(inputs, enter(figure, *inputs), strict=True):
        assert state["place"] == place
        check_surprise(figure, state)


def test_surprise_shows_its_numbers(shared_figures):
    figure = shared_figures("surprise")
    figure.root.locator(".lf-examples button").nth(3).click()
    assert figure.settled()["text"] == TEXTS[3]
    figure.root.locator(".lf-read").nth(20).click()
    figure.root.locator(".lf-read").nth(0).click()
    assert figure.state["place"] == 20  # the first letter is given: nothing was expected there
    figure.press(figure.control("Letter"), "ArrowRight", "ArrowRight")
    state = figure.state
    check_surprise(figure, state)
    letters = [letter.strip().replace("␣", " ") for letter in figure.root.locator(".lf-read").all_inner_texts()]
    assert "".join(letters) == TEXTS[3]
    shares = figure.root.locator(".lf-read").evaluate_all(
        "all => all.map((node) => parseInt(node.style.getPropertyValue('--share')))"
    )
    np.testing.assert_allclose(shares, [0, *(100 * np.minimum(1, np.array(state["surprises"]) / 6))], atol=0.51)
    rows = figure.root.locator("tbody tr")
    heads = [head.replace("␣", " ").replace("↵", "\n") for head in rows.locator("th").all_inner_texts()]
    assert heads == [VOCABULARY.decode([token]) for token in state["likeliest"]]
    numbers = rows.locator("td:nth-child(2)").all_inner_texts()
    assert numbers == [f"{state['probabilities'][token]:.3f}" for token in state["likeliest"]]
    assert rows.locator("th.lf-chosen").count() == (state["came"] in state["likeliest"])


def test_surprise_is_what_the_chapter_says():
    def nats(text):
        ids = VOCABULARY.encode(text)
        return -seen(ids)[2][-1][np.arange(len(ids) - 1), ids[1:]]

    usual, english, disorder, repeated = map(nats, TEXTS)
    assert english.mean() > 2 * usual.mean()
    assert english.mean() < disorder.mean() < english.mean() + 0.5
    one, two, three = (repeated[start : start + 21].mean() for start in (0, 22, 44))
    assert min(two, three) > one - 0.1
    begins = np.array([TEXTS[0][n - 1] == " " for n in range(1, len(TEXTS[0]))])
    assert usual[begins].mean() > 3 * usual[~begins].mean()
    slip = nats(TEXTS[0].replace("j", "x")) - usual
    assert [round(float((slip + usual)[place]), 1) for place in (8, 11)] == [12.8, 5.4]
    assert np.abs(slip[19:]).max() < 0.2
    words = [sorted(text.lower().rstrip(".").split()) for text in TEXTS[1:3]]
    assert words[0] == words[1]


SAID = {"": "Type at least", "Zofia 🙂": "does not know “🙂”", "a" * 200: "the last 104 of 200"}


@pytest.mark.parametrize("name", ["lens", "surprise"])
def test_what_is_not_read_is_said(shared_figures, name):
    figure = shared_figures(name)
    for text, words in SAID.items():
        enter(figure, [text, None])
        assert words in figure.summary
