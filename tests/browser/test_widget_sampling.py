"""The live figure of sampling: what it draws from is what the package draws from."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf

NUMBERS = json.loads((Path(__file__).parents[2] / "widgets" / "sampling.json").read_text("utf-8"))
SIZE = len(NUMBERS["vocabulary"])
PROMPTS = [prompt["text"] for prompt in NUMBERS["prompts"]]
MARGIN = 1e-4


def assert_close(got, expected):
    np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=0, atol=MARGIN)


def check_sampling(state):
    prompt = NUMBERS["prompts"][state["prompt"]]
    assert (state["text"], state["logits"]) == (prompt["text"], prompt["logits"])
    logits = jnp.asarray(prompt["logits"])
    temperature, top_p = float(state["temperature"]), float(state["topP"])
    expected = pf.next_token_probabilities(logits, temperature=temperature, top_k=state["topK"], top_p=top_p)
    assert_close(state["model"], jax.nn.softmax(logits))
    assert_close(state["probabilities"], expected)
    assert np.array(state["kept"])[np.asarray(expected) > 0].all()
    assert (np.array(state["probabilities"])[~np.array(state["kept"])] == 0).all()
    if state["temperature"] > 0.2:  # below, numbers too small for float32 are 0 in Python
        assert sum(state["kept"]) == int((expected > 0).sum())


def drawn(state):
    """How often each token comes: the generator written again, with whole numbers."""
    counts, seed = [0] * SIZE, 2019
    ends = np.cumsum(state["probabilities"])
    for _ in range(state["draws"]):
        seed = 48271 * seed % (2**31 - 1)
        counts[int(np.searchsorted(ends, seed / (2**31 - 1), side="right"))] += 1
    return counts


def choose(figure, prompt):
    figure.root.get_by_role("radio").nth(prompt).check()
    return figure


@pytest.mark.parametrize("prompt", range(len(PROMPTS)), ids=PROMPTS)
def test_sampling_probabilities_are_those_of_python(shared_figures, prompt):
    figure = choose(shared_figures("sampling"), prompt)
    assert_close(figure.state["probabilities"], figure.state["model"])
    check_sampling(figure.state)
    for label, keys in [
        ("Temperature", ["ArrowLeft"] * 6),
        ("Top-k", ["Home", *["ArrowRight"] * 9]),
        ("Top-p", ["ArrowLeft"] * 3),
        ("Temperature", ["End"]),
        ("Top-k", ["End"]),
        ("Top-p", ["Home"]),
        ("Temperature", ["Home", "ArrowRight", "ArrowRight"]),
    ]:
        figure.press(figure.control(label), *keys)
        check_sampling(figure.state)
        assert sum(figure.state["probabilities"]) == pytest.approx(1)


def test_sampling_follows_the_mouse(shared_figures):
    figure = shared_figures("sampling")
    box = figure.control("Top-p").bounding_box()
    figure.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert 0.4 < figure.state["topP"] < 0.6
    check_sampling(figure.state)


def test_sampling_at_its_limits(shared_figures):
    """Temperature 0 and top-k 1 leave the likeliest token alone, at any other setting."""
    figure = choose(shared_figures("sampling"), 2)
    likeliest = int(np.argmax(figure.state["logits"]))
    figure.press(figure.control("Temperature"), "Home")
    assert np.flatnonzero(figure.state["probabilities"]).tolist() == [likeliest]
    check_sampling(figure.state)
    figure.reset()
    choose(figure, 2)
    figure.press(figure.control("Top-k"), "Home")
    figure.press(figure.control("Temperature"), "End")
    assert (figure.state["topK"], figure.state["temperature"]) == (1, 2)
    assert np.flatnonzero(figure.state["probabilities"]).tolist() == [likeliest]
    check_sampling(figure.state)


def test_sampling_draws_what_stays_as_often_as_it_should(shared_figures):
    figure = choose(shared_figures("sampling"), 1)
    figure.press(figure.control("Top-k"), "Home", *["ArrowRight"] * 7)
    for _ in range(4):
        figure.control("Draw 100").click()
    figure.press(figure.control("Draw one"), "Enter")
    state = figure.state
    assert state["draws"] == sum(state["counts"]) == 401
    assert state["counts"] == drawn(state)
    probabilities = np.array(state["probabilities"])
    spread = np.sqrt(probabilities * (1 - probabilities) / 401)
    assert (np.abs(np.array(state["counts"]) / 401 - probabilities) <= 4 * spread).all()
    assert f"401 drawn; the last is “{NUMBERS['vocabulary'][state['last']]}”".replace(" ”", "␣”") in figure.summary
    # Another distribution begins a tally of its own, and the same one gives the same tokens.
    figure.press(figure.control("Top-p"), "ArrowLeft", "ArrowRight")
    assert figure.state["draws"] == 0
    for _ in range(4):
        figure.control("Draw 100").click()
    figure.control("Draw one").click()
    assert figure.state == state


def test_sampling_table_shows_the_numbers(shared_figures):
    figure = choose(shared_figures("sampling"), 1)
    figure.press(figure.control("Top-k"), "Home", "ArrowRight", "ArrowRight")
    figure.control("Draw 100").click()
    state = figure.state
    rows = figure.root.locator("tbody tr")
    assert rows.count() == len(state["shown"]) + 1 == 13
    assert state["shown"] == np.argsort(-np.array(state["logits"]), kind="stable")[:12].tolist()
    names = [name.replace("␣", " ").replace("↵", "\n") for name in rows.locator("th").all_inner_texts()]
    assert names == [*(NUMBERS["vocabulary"][token] for token in state["shown"]), f"{SIZE - 12} others"]
    model, now, tally = (rows.locator(f"td:nth-child({column})").all_inner_texts() for column in (2, 3, 4))
    assert model[:12] == [f"{state['model'][token]:.3f}" for token in state["shown"]]
    assert now == [*(f"{state['probabilities'][token]:.3f}" for token in state["shown"][:3]), *["out"] * 10]
    assert tally[:3] == [
        f"{state['counts'][token]}: {state['counts'][token] / 100:.2f}" for token in state["shown"][:3]
    ]
    shown = rows.locator(".lf-bar:visible").evaluate_all(
        "bars => bars.map((bar) => [bar.matches('.lf-removed'), bar.style.width])"
    )
    assert [removed for removed, _ in shown] == [False] * 3 + [True] * 10
    widths = np.array([float(width.removesuffix("%")) for _, width in shown])
    full = widths[0] / state["probabilities"][state["shown"][0]]
    assert_close(widths[:3] / full, [state["probabilities"][token] for token in state["shown"][:3]])
    assert_close(widths[3:12] / full, [state["model"][token] for token in state["shown"][3:]])  # at temperature 1
