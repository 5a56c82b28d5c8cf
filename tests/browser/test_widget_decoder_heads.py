"""The live figure of every head: its weights are those of Python, and it can be worked in every way."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf

# What every test over all figures changes: controls with keys (`test_widgets.py`).
CHANGES = {
    "decoder_heads": [
        ("block 1, head 2", "ArrowDown"),
        ("Token to follow", "Home"),
        ("Weights of the chosen", "ArrowUp"),
    ],
}

RANDOM = np.random.default_rng(0)

# Type a text, choose a head and a token, and give the state once the model has computed.
SHOW = """async ([text, layer, head, token]) => {
    const root = document.querySelector('[data-widget=decoder_heads] .lf');
    const state = () => JSON.parse(root.dataset.state);
    const field = root.querySelector('textarea');
    field.value = text;
    field.dispatchEvent(new Event('input', { bubbles: true }));
    while (state().text !== text || state().busy) await nextFrame();
    root.querySelector(`[aria-label="block ${layer + 1}, head ${head + 1}"]`).click();
    const follow = new KeyboardEvent('keydown', { key: 'Home' });
    root.querySelector('[role=listbox]').dispatchEvent(follow);
    const next = () => new KeyboardEvent('keydown', { key: 'ArrowRight' });
    for (let n = 0; n < token; n++) root.querySelector('[role=listbox]').dispatchEvent(next());
    return state();
}"""


@pytest.fixture(scope="module")
def decoder():
    return pf.load_pretrained("decoder")


def test_heads_weights_are_those_of_python(shared_figures, decoder):
    figure, (model, vocabulary) = shared_figures("decoder_heads"), decoder
    compute = eqx.filter_jit(model.attention_weights)
    for run in range(4):
        text = "".join(RANDOM.choice(vocabulary.tokens[1:], [64, 23][run % 2]))
        layer, head, token = (int(each) for each in RANDOM.integers([4, 4, len(text)]))
        wanted = compute(jnp.asarray(vocabulary.encode(text)))[layer, head, token]
        state = figure.page.evaluate(SHOW, [text, layer, head, token])
        assert [state[name] for name in ("layer", "head", "token")] == [layer, head, token]
        np.testing.assert_allclose(state["weights"], wanted, atol=1e-4)


def test_heads_do_what_the_chapter_says_of_them(decoder):
    """Measured on held-out text: three heads whose habit has a name."""
    model, vocabulary = decoder
    _, held_out = pf.data.python_reference_splits()
    texts = [held_out[start : start + 96] for start in range(0, 96 * 200, 96)]
    ids = jnp.asarray([vocabulary.encode(text) for text in texts])
    weights = np.asarray(eqx.filter_jit(model.attention_weights)(ids))[..., 8:, :]
    rows = np.arange(8, 96)
    one_back = weights[:, 3, 1, rows - 8, rows - 1].mean()
    same = np.asarray(ids)[:, 8:, None] == np.asarray(ids)[:, None, :]
    its_like, of_spaces = (weights[:, 0, 1] * same).sum(-1), np.asarray(ids)[:, 8:] == vocabulary.encode(" ")[0]
    in_word = [
        weights[text, 1, 1, n - 8, n - 4 : n + 1].sum()
        for text in range(len(texts))
        for n in rows
        if texts[text][n - 4 : n + 1].isalpha()
    ]
    np.testing.assert_allclose(
        [one_back, its_like.mean(), its_like[of_spaces].mean(), np.mean(in_word)], [0.63, 0.59, 0.96, 0.98], atol=0.03
    )
    seen = np.tril(np.ones((96, 96)), 0)[8:]
    assert (same * seen).sum() / seen.sum() / len(texts) < 0.12  # so many of the letters that are seen are its like


def test_heads_by_keyboard(shared_figures):
    figure = shared_figures("decoder_heads")
    start = figure.settled()
    figure.press(figure.root.get_by_role("radio", name="block 1, head 2"), "ArrowDown", "ArrowRight", "ArrowDown")
    assert (figure.state["layer"], figure.state["head"]) == (2, 2)
    figure.press(figure.root.get_by_role("listbox"), "End", "ArrowLeft")
    assert figure.state["token"] == len(start["letters"]) - 2
    figure.press(figure.root.locator(".lf-map-plane"), "ArrowUp")
    assert figure.state["token"] == len(start["letters"]) - 3


def test_heads_by_mouse(shared_figures):
    """The pointer over a row of the large map, or over the arcs, follows that token without a click."""
    figure = shared_figures("decoder_heads")
    figure.root.get_by_role("radio", name="block 4, head 2").click()
    assert (figure.state["layer"], figure.state["head"]) == (3, 1)
    for part, place in [(".lf-map-plane", "y"), (".lf-arc-plane", "x")]:
        node = figure.root.locator(part)
        node.scroll_into_view_if_needed()
        box = node.bounding_box()
        share = {"x": 0.01, "y": 0.01} | {place: 0.51}
        figure.page.mouse.move(box["x"] + share["x"] * box["width"], box["y"] + share["y"] * box["height"])
        assert figure.state["token"] == 18
        figure.root.get_by_role("option").nth(2).click()
    drawn = figure.root.locator(".lf-arc").count()
    assert drawn == sum(weight >= 0.01 for weight in figure.state["weights"])
