"""The figure of writing with byte pairs: it reads, expects and writes what the stored model of Shakespeare does."""

import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf

# What every test over all figures changes: controls with keys (`test_widgets.py`).
CHANGES = {
    "shakespeare": [
        ("My lord", "Space"),
        ("Temperature", "ArrowLeft"),
        ("Top-p", "ArrowLeft"),
        ("Write one", "Enter"),
    ],
}

MODEL, TOKENIZER = pf.load_pretrained("shakespeare")
ROOM = MODEL.config.context_len
PROMPTS = ["What light through yonder window breaks?", "ünheard, 日本 🙂", "The king is dead " * 20]


def test_shakespeare_reads_and_expects_what_python_does(shared_figures):
    figure = shared_figures("shakespeare")
    whole_rows = jax.jit(lambda ids: MODEL(ids))
    for prompt in PROMPTS:
        figure.root.get_by_role("textbox").fill(prompt)
        state = figure.until("state.isKnown")
        ids = TOKENIZER.encode(prompt)
        cut = 32 * -(-max(0, len(ids) - ROOM) // 32)
        assert (state["read"], state["cut"]) == (ids[cut:], cut)
        logits = whole_rows(jnp.asarray([*state["read"], *[0] * (ROOM - len(state["read"]))]))[len(state["read"]) - 1]
        np.testing.assert_allclose(state["logits"], logits, atol=1e-4)


def test_shakespeare_writes_whole_tokens_and_says_so(shared_figures):
    figure = shared_figures("shakespeare")
    figure.press(figure.control("greedy"), "Space")
    for _ in range(3):
        figure.settled()
        figure.press(figure.control("Write one"), "Enter")
    state = figure.settled()
    written = [each["token"] for each in state["written"]]
    prompt, greedy = TOKENIZER.encode("What is love"), []
    for _ in range(3):
        greedy.append(int(MODEL(jnp.asarray(prompt + greedy))[-1].argmax()))
    assert written == greedy
    page = figure.root.locator(".lf-page").text_content()
    assert page.replace("↵", "").startswith("What is love" + TOKENIZER.decode(greedy))
    assert "of 512 tokens" in figure.summary
    assert figure.root.get_by_text("next token", exact=True).is_visible()
