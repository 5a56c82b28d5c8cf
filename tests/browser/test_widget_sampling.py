"""The live figure of writing: what it draws from, writes, finds and keeps is what the package does."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf

# What every test over all figures changes: controls with keys (`test_widgets.py`).
CHANGES = {
    "sampling": [
        ("The object", "Space"),
        ("Temperature", "ArrowLeft"),
        ("Top-k", "Home"),
        ("Top-p", "ArrowLeft"),
        ("Min-p", "ArrowRight"),
        ("Write one", "Enter"),
        ("Another seed", "Space"),
        ("the cache", "Space"),
    ],
}

MODEL, VOCABULARY = pf.load_pretrained("decoder")
SIZE, ROOM = len(VOCABULARY), MODEL.config.context_len
RANDOM = np.random.default_rng(0)
# Reads twenty tokens and then all; of the first five the numbers are known.
HELD = """async (ids) => {
    const address = new URL(document.querySelector('script[src*="live_figure"]').src);
    const { answer } = await import(new URL('engine/host.mjs', address));
    const { rowsOf } = await import(new URL('engine/arrays.mjs', address));
    const source = new URL('../models/decoder.safetensors', address).href;
    const ask = (method, ...inputs) => answer({ name: 'decoder', method, inputs });
    await ask('load', source);
    await ask('nextWithCache', ids.slice(0, 20));
    const { known, first, blocks } = await ask('nextWithCache', ids, 5);
    return { known, first, blocks: blocks.map(({ keys, values }) => [rowsOf(keys), rowsOf(values)]) };
}"""
ANSWERED = "state.isKnown && !state.running && (state.view !== 'beam' || state.beam?.isDone)"


def close(found, wanted):
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=0, atol=1e-4)


@functools.cache
def whole_rows():
    return jax.jit(lambda ids: MODEL(ids))


def logits_after(ids):
    """Of texts of all lengths, with one compiled program: what stands after a token does not reach it."""
    return whole_rows()(jnp.asarray([*ids, *[0] * (ROOM - len(ids))]))[len(ids) - 1]


def enter(figure, *texts):
    """Type texts into the field, and give the model's answers."""
    states = []
    for text in texts:
        figure.root.get_by_role("textbox").fill(text)
        states.append(figure.until("state.isKnown || !state.read.length"))
    return states


def settle(figure):
    """Wait until the model has answered all that it was asked."""
    return figure.until(ANSWERED)


def check_distribution(state):
    logits = logits_after(state["read"])
    close(state["logits"], logits)
    close(state["model"], jax.nn.softmax(logits))
    choice = {"temperature": float(state["temperature"]), "top_k": state["topK"], "top_p": float(state["topP"])}
    choice["min_p"] = float(state["minP"]) or None
    expected = pf.next_token_probabilities(jnp.asarray(state["logits"]), **choice)
    close(state["probabilities"], expected)
    assert np.array(state["kept"])[np.asarray(expected) > 0].all()
    assert (np.array(state["probabilities"])[~np.array(state["kept"])] == 0).all()


def number(seed, n):
    """The generator of the figure, written again."""
    return seed * pow(48271, n + 2, 2**31 - 1) % (2**31 - 1) / (2**31 - 1)


def tokens_of(state):
    return [each["token"] for each in state["written"]]


def test_sampling_distributions_are_those_of_python(shared_figures):
    """Random prompts, some longer than the context, and for two of them other settings."""
    figure = shared_figures("sampling")
    letters = [VOCABULARY.decode([token]) for token in range(1, SIZE)]
    lengths = [1, 17, 128, 129, 300]
    # A field holds one line.
    prompts = ["".join(RANDOM.choice(letters, length)).replace("\n", " ") for length in lengths]
    keys = ["Home", "ArrowRight", "ArrowRight", "ArrowLeft", "End", "PageUp", "PageDown"]
    for prompt, state in zip(prompts, enter(figure, *prompts), strict=True):
        assert state["prompt"] == prompt
        ids = VOCABULARY.encode(prompt)
        cut = 32 * -(-max(0, len(ids) - ROOM) // 32)
        assert (state["read"], state["cut"]) == (ids[cut:], cut)
        check_distribution(state)
    for prompt in prompts[:2]:
        enter(figure, prompt)
        for label in ("Temperature", "Top-k", "Top-p", "Min-p"):
            figure.press(figure.control(label), *RANDOM.choice(keys, 2))
            check_distribution(figure.state)


def test_sampling_at_its_limits(shared_figures):
    """Temperature 0, which the box ticks, and top-k 1 leave the likeliest letter alone, at any other setting."""
    figure = shared_figures("sampling")
    likeliest = int(np.argmax(figure.state["logits"]))
    figure.press(figure.control("greedy"), "Space")
    assert figure.state["temperature"] == 0
    assert np.flatnonzero(figure.state["probabilities"]).tolist() == [likeliest]
    figure.press(figure.control("Temperature"), "End")
    assert not figure.control("greedy").is_checked()
    figure.press(figure.control("Top-k"), "Home")
    assert (figure.state["topK"], figure.state["temperature"]) == (1, 2)
    assert np.flatnonzero(figure.state["probabilities"]).tolist() == [likeliest]
    check_distribution(figure.state)


def test_sampling_table_shows_the_numbers(shared_figures):
    figure = shared_figures("sampling")
    figure.press(figure.control("Top-k"), "Home", "ArrowRight", "ArrowRight")
    state, rows = figure.state, figure.root.locator("tbody tr")
    assert state["shown"] == np.argsort(-np.array(state["logits"]), kind="stable")[:12].tolist()
    names = [name.replace("␣", " ").replace("↵", "\n") for name in rows.locator("th").all_inner_texts()]
    assert names == [*(VOCABULARY.decode([token]) for token in state["shown"]), f"{SIZE - 12} others"]
    model, now = (rows.locator(f"td:nth-child({column})").all_inner_texts() for column in (2, 3))
    assert model[:12] == [f"{state['model'][token]:.3f}" for token in state["shown"]]
    assert now == [*(f"{state['probabilities'][token]:.3f}" for token in state["shown"][:3]), *["out"] * 10]
    bars = rows.locator(".lf-bar:visible").evaluate_all(
        "bars => bars.map((bar) => [bar.matches('.lf-removed'), bar.style.width])"
    )
    assert [removed for removed, _ in bars] == [False] * 3 + [True] * 10
    widths = np.array([float(width.removesuffix("%")) for _, width in bars])
    full = widths[0] / state["probabilities"][state["shown"][0]]
    close(widths[:3] / full, [state["probabilities"][token] for token in state["shown"][:3]])
    close(widths[3:12] / full, [state["model"][token] for token in state["shown"][3:]])  # at temperature 1


def test_sampling_writes_what_the_seed_says_and_the_same_again(shared_figures):
    figure = shared_figures("sampling")
    for _ in range(3):
        before = settle(figure)
        figure.control("Write one").click()
        after = settle(figure)
        token = tokens_of(after)[-1]
        ends = np.cumsum(before["probabilities"])
        wanted = int(np.searchsorted(ends, number(before["seed"], len(before["written"])), side="right"))
        assert token == wanted
        assert after["written"][-1]["probability"] == pytest.approx(before["model"][token])
        check_distribution(after)
    figure.control("Clear").click()
    for _ in range(3):
        settle(figure)
        figure.control("Write one").click()
    assert tokens_of(settle(figure)) == tokens_of(after)
    figure.control("Another seed").click()
    assert (figure.state["seed"], figure.state["written"]) == (2, [])


def test_sampling_runs_greedily_beyond_the_context(shared_figures):
    """Run and stop by keyboard. While the text fits the context, each letter is the likeliest; then some go."""
    figure = shared_figures("sampling")
    figure.press(figure.control("greedy"), "Space")
    figure.press(figure.control("Run"), "Enter")
    figure.until("state.cut > 0", timeout=60_000)
    rate = figure.state["rate"]
    figure.press(figure.control("Stop"), "Enter")
    state = settle(figure)
    assert rate > 0  # how large it is depends on what else the machine does
    prompt = VOCABULARY.encode(state["prompt"])
    ids = [*prompt, *tokens_of(state)][:ROOM]
    likeliest = np.argmax(whole_rows()(jnp.asarray(ids)), axis=1)
    assert ids[len(prompt) :] == likeliest[len(prompt) - 1 : -1].tolist()
    assert ROOM * 3 // 4 < len(state["read"]) <= ROOM
    check_distribution(state)
    assert f"reads the last {len(state['read'])} of" in figure.summary


def beam_search(prompt, beams, depth):
    """As `pf.beam_search`, whose loop takes long to compile."""
    beam = [(0.0, [])]
    for _ in range(depth):
        rows = [jax.nn.log_softmax(logits_after([*prompt, *written])) for _, written in beam]
        longer = [
            (log_prob + float(row[token]), [*written, int(token)])
            for (log_prob, written), row in zip(beam, rows, strict=True)
            for token in np.argsort(-row)[:beams]
        ]
        beam = sorted(longer, reverse=True)[:beams]
    return beam


@pytest.mark.parametrize(
    ("prompt", "beams", "depth"), [("You can ", 2, 8), ("A string is ", 2, 8), ("A string is ", 3, 6)]
)
def test_sampling_searches_as_python_does(shared_figures, prompt, beams, depth):
    figure = shared_figures("sampling")
    enter(figure, prompt)
    figure.press(figure.control("beam search"), "Space")
    figure.press(figure.control("Beams"), "Home", *["ArrowRight"] * (beams - 2))
    figure.press(figure.control("Depth"), "End", *["ArrowLeft"] * (8 - depth))
    found, ids = settle(figure)["beam"], VOCABULARY.encode(prompt)
    for texts, width in ((found["texts"], beams), ([found["greedy"]], 1)):
        wanted = beam_search(ids, width, depth)
        assert [text["tokens"] for text in texts] == [written for _, written in wanted]
        close([text["logProb"] for text in texts], [log_prob for log_prob, _ in wanted])
    if prompt == "You can ":
        for text, hypothesis in zip(found["texts"], pf.beam_search(MODEL, ids, 8, beam_width=2), strict=True):
            assert text["tokens"] == hypothesis.tokens
            close(text["logProb"], hypothesis.log_prob)
    best = VOCABULARY.decode(found["texts"][0]["tokens"]).replace(" ", "␣").replace("\n", "↵")
    assert f"The best that {beams} beams found after {depth}: “{best}”" in figure.summary
    assert figure.root.locator(".lf-tree .lf-node.lf-kept").count() == depth * beams
    if prompt == "You can ":  # as the chapter says
        assert (best, round(np.exp(found["texts"][0]["logProb"]), 3)) == ("be␣used␣", 0.063)
    if (prompt, beams) == ("A string is ", 2):
        assert found["greedy"]["logProb"] > found["texts"][0]["logProb"] + 1


def test_sampling_tree_by_keys_mouse_and_button(shared_figures):
    figure = shared_figures("sampling")
    figure.control("beam search").check()
    best = settle(figure)["beam"]["texts"][0]["tokens"]
    tree = figure.root.locator(".lf-tree")
    figure.press(tree, "ArrowLeft", "ArrowLeft")
    assert figure.state["beam"]["chosen"]["step"] == 5
    spelt = VOCABULARY.decode(best[:6]).replace(" ", "␣")
    assert f"“{spelt}” has the probability" in figure.root.locator(".lf-way").inner_text()
    figure.press(tree, "ArrowRight")
    assert figure.state["beam"]["chosen"]["step"] == 6
    tree.locator(".lf-node").first.click()
    assert figure.state["beam"]["chosen"] == {"step": 0, "place": 0}
    figure.control("Write the best").click()
    assert tokens_of(figure.state) == best


def test_sampling_cache_holds_pythons_keys_and_values(shared_figures):
    """A text that grows, changes in the middle, and is cut: what is read anew, and the numbers and bytes held."""
    figure = shared_figures("sampling")
    figure.control("the cache").check()
    text = "If the object is a sequence"
    steps = [(text, 0), (text + ".", 27), (text.replace("object", "obvious"), 9), ("Y" + text, 0)]
    for (prompt, known), state in zip(steps, enter(figure, *(prompt for prompt, _ in steps)), strict=True):
        held = state["caches"]
        assert (held["held"], held["known"]) == (len(prompt), known)
        assert held["bytes"] == [4 * 2 * 128 * len(prompt)] * 4
    assert held["read"] == 8 + sum(len(prompt) - known for prompt, known in steps)
    assert held["without"] == 8 + sum(len(prompt) for prompt, _ in steps)
    assert f"{len(text) + 1} of them were read anew" in figure.summary
    ids = VOCABULARY.encode(text)
    found = figure.page.evaluate(HELD, ids)
    assert (found["known"], found["first"]) == (20, 5)
    stream = MODEL.residual_stream(jnp.asarray(ids))
    for block, x, (keys, values) in zip(MODEL.stack.blocks, stream, found["blocks"], strict=False):
        rows = block.attention_norm(x)
        wanted = MODEL.stack.scheme.rotate(pf.split_heads(block.attention.key(rows), 4))
        close(keys, jnp.concatenate([*wanted], axis=-1)[5:])
        close(values, block.attention.value(rows)[5:])


def test_sampling_takes_a_letter_that_is_pressed(shared_figures):
    figure = shared_figures("sampling")
    wanted = settle(figure)["shown"][2]
    figure.root.locator(".lf-take").nth(2).click()
    assert tokens_of(settle(figure)) == [wanted]
    figure.root.get_by_role("button", name="The for statem").click()
    state = settle(figure)
    assert (state["prompt"], state["written"]) == ("The for statem", [])


def test_sampling_says_what_it_does_not_read(shared_figures):
    figure = shared_figures("sampling")
    for text, words in [("Zofia 🙂", "does not know “🙂”"), ("a" * 200, "the last 104 of 200")]:
        enter(figure, text)
        assert words in figure.summary
    figure.control("Write one").click()
    check_distribution(settle(figure))
