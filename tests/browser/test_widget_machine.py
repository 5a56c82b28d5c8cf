"""The live figure of the whole machine: every array that it shows is the one of Python, and each box can be opened."""

import base64
import itertools
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from tests.browser.conftest import SITE, Figure

# What every test over all figures changes: controls with keys (`test_widgets.py`).
CHANGES = {
    "machine": [("norm before attention", "Enter"), ("Token to follow", "Home"), ("Step", "Space")],
}

RANDOM = np.random.default_rng(0)
IN_BLOCK = ["norm1", "queries", "keys", "values", "scores", "weights", "heads", "attention", "add1"]
IN_BLOCK += ["norm2", "hidden", "network", "add2"]
OF_HEADS = {"queries", "keys", "values", "scores", "weights", "heads"}

# Type a text, open a block, and give the state of each of some boxes, and of a head, once the model has computed.
SHOW = """async ([text, block, boxes, head]) => {
    const root = document.querySelector('[data-widget=machine] .lf');
    const state = () => JSON.parse(root.dataset.state);
    const field = root.querySelector('textarea');
    field.value = text;
    field.dispatchEvent(new Event('input', { bubbles: true }));
    while (!(state().text === text && !state().busy)) await nextFrame();
    root.querySelector(`[data-box=block${block}]`)?.click();
    return boxes.map((box) => {
        root.querySelector(`[data-box=${box}]`).click();
        root.querySelectorAll('.lf-open input[type=radio]')[head]?.click();
        return state();
    });
}"""


# Where `pf.look` finds what is in a box of a block.
PLACES = {
    "norm1": "attention_norm.output",
    **{box: f"attention.{box}" for box in ("queries", "keys", "values", "scores", "weights", "heads")},
    "attention": "attention.output",
    "add1": "after_attention",
    "norm2": "feed_forward_norm.output",
    "hidden": "feed_forward.hidden",
    "network": "feed_forward.output",
    "add2": "output",
}


@pytest.fixture(scope="module")
def decoder():
    return pf.load_pretrained("stories")


def arrays_of(model, ids, layer):
    """Every array between ids and probabilities, with one block from the inside."""
    logits, seen = pf.look(model, ids)
    return {
        "embedding": seen["stack.input"],
        **{f"block{n}": seen[f"stack.blocks.{n}.output"] for n in range(len(model.stack.blocks))},
        **{box: seen.get(f"stack.blocks.{layer}.{place}") for box, place in PLACES.items()},
        "final": seen.get("stack.final_norm.output"),
        "logits": logits,
        "probabilities": pf.softmax(logits),
    }


def test_machine_numbers_are_those_of_python(shared_figures, decoder):
    """Random texts, every box at least once, in the first and the last block."""
    figure, (model, vocabulary) = shared_figures("machine"), decoder
    outside = ["embedding", "final", "logits", "probabilities"]
    boxes = itertools.cycle([*IN_BLOCK, *outside])
    compute = eqx.filter_jit(arrays_of)
    for run in range(7):
        length, layer = [(64, 3), (23, 0)][run % 2]
        text = " ".join(RANDOM.choice(vocabulary.tokens, length))
        head, ids = int(RANDOM.integers(8)), vocabulary.encode(text)
        known = {name: np.asarray(each) for name, each in compute(model, jnp.asarray(ids), layer).items()}
        opened = list(itertools.islice(boxes, 3))
        states = figure.page.evaluate(SHOW, [text, layer, opened, head])
        for box, state in zip(opened, states, strict=True):
            assert (state["ids"], state["token"], state["open"]) == (ids, len(ids) - 1, box)
            wanted = known[box][head] if box in OF_HEADS else known[box]
            assert state["sizes"] == list(known[box].shape)
            np.testing.assert_allclose(state["row"], wanted[-1], atol=1e-4, rtol=1e-4, err_msg=f"{box} of {text!r}")
        likeliest = known["probabilities"][-1].argsort()[::-1][:5]
        np.testing.assert_allclose(
            [p for _, p in states[-1]["expected"]], known["probabilities"][-1][likeliest], atol=1e-4
        )


def test_machine_leads_to_sections_of_the_book(shared_figures):
    figure = shared_figures("machine")
    links = figure.page.evaluate(
        """async () => {
            const at = new URL('../_static/widgets/machine_boxes.mjs', document.baseURI);
            const { boxesOf } = await import(at);
            const kinds = [['rms', 'pre', 'swiglu', 'rotary'], ['layer', 'pre', 'gelu', 'learned'],
                ['rms', 'pre', 'gelu', 'alibi'], ['rms', 'post', 'relu', 'none'],
            ].map(([norm, norm_placement, activation, position_scheme]) =>
                ({ num_layers: 2, norm, norm_placement, activation, position_scheme }));
            const linksOf = (kind) => boxesOf(kind, 0).map(({ link }) => (link.call ? link(kind) : link)[0]);
            return kinds.flatMap(linksOf);
        }"""
    )
    assert len(links) == 4 * 19 - 3  # with post-norm the sums hold the norms
    for link in links:
        page, anchor = link.split("#")
        assert f'id="{anchor}"' in (SITE / "chapters" / page).read_text("utf-8"), link
    href = figure.root.locator(".lf-open a").get_attribute("href")
    assert href.startswith(figure.visit.site + "chapters/self_attention.html#")


def test_machine_steps_through_the_boxes_in_order(shared_figures):
    figure = shared_figures("machine")
    step, seen = figure.control("Step"), []
    for _ in range(21):
        step.click()
        seen.append(figure.state["open"])
    assert seen == ["ids", "embedding", "block0", *IN_BLOCK, "block2", "block3", "final", "logits", "probabilities"]
    assert figure.root.locator(".lf-now").count() == 1  # the wire into it flows
    step.click()
    assert figure.state["open"] == "ids"


def test_machine_plays_until_it_is_stopped(shared_figures):
    figure = shared_figures("machine")
    figure.press(figure.control("Play"), "Enter")
    figure.until("state.open === 'embedding'")
    figure.control("Pause").click()
    state = figure.state
    figure.visit.quiet()
    assert figure.state == state


def test_machine_by_keyboard_and_mouse(shared_figures):
    figure = shared_figures("machine")
    figure.press(figure.root.get_by_role("listbox"), "Home", "ArrowRight", "ArrowRight")
    assert figure.state["token"] == 2
    figure.press(figure.root.locator("[data-box=values]"), "Enter")
    assert figure.state["open"] == "values"
    figure.press(figure.root.locator(".lf-map-plane"), "ArrowDown", "ArrowRight")
    assert figure.state["token"] == 3
    figure.press(figure.root.locator("[data-box=block3]"), "Space")
    assert (figure.state["block"], figure.state["open"]) == (3, "norm1")
    figure.root.locator("[data-box=norm2]").click()
    box = figure.root.locator(".lf-map-plane").bounding_box()
    figure.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 5)
    assert (figure.state["token"], figure.state["column"]) == (0, 32)
    value = f"{figure.state['row'][32]:.3f}".replace("-", "−")
    assert figure.root.locator(".lf-readout").inner_text() == f"“.”, column 32: {value}"
    figure.root.get_by_role("option").nth(4).click()
    assert figure.state["token"] == 4


def test_machine_shows_what_a_finger_opens(open_figure):
    figure = open_figure("machine", has_touch=True, viewport={"width": 390, "height": 800}).start()
    figure.root.locator("[data-box=keys]").tap()
    assert figure.state["open"] == "keys"
    assert figure.root.locator(".lf-open").bounding_box()["y"] < 800


def test_machine_writes_on(shared_figures, decoder):
    figure, (model, vocabulary) = shared_figures("machine"), decoder
    text = figure.state["text"]
    for _ in range(2):
        after = model(jnp.asarray(vocabulary.encode(text)))[-1]
        text += " " + vocabulary.decode([int(after.argmax())])
        figure.control("Add the likeliest word").click()
        figure.until(f"!state.busy && state.text === {json.dumps(text)}")
    assert figure.state["token"] == len(text.split()) - 1


def test_machine_says_what_it_does_not_read(shared_figures):
    figure = shared_figures("machine")
    figure.root.get_by_label("Your text").fill("🙂 " + "Anna " * 70)
    assert "not in the model's vocabulary" in figure.summary
    assert "Of 70 words the last 64 are read." in figure.summary


OWN = """async ([name, bytes, opened]) => {
    const stage = document.body.appendChild(document.createElement('div'));
    const at = new URL('../_static/widgets/machine.mjs', document.baseURI);
    const buffer = Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0)).buffer;
    await (await import(at)).mount(stage, { name, bytes: buffer });
    const field = stage.querySelector('textarea');
    field.value = 'abcab';
    field.dispatchEvent(new Event('input', { bubbles: true }));
    const state = () => JSON.parse(stage.dataset.state);
    while (state().text !== 'abcab' || state().busy) await nextFrame();
    const rows = opened.map((box) => { stage.querySelector(`[data-box=${box}]`).click(); return state().row; });
    const found = { rows, links: stage.querySelectorAll('a').length, boxes: stage.querySelectorAll('.lf-box').length };
    stage.remove();
    return found;
}"""


POST = {"num_kv_heads": 2, "norm_placement": "post", "activation": "relu"}
ROTARY = {"norm": "rms", "activation": "swiglu", "position_scheme": "rotary", "use_bias": False}


@pytest.mark.parametrize(("options", "num_boxes"), [(POST, 17), (ROTARY, 20)])  # with post-norm the sums hold the norms
def test_machine_of_ones_own(shared_figures, tmp_path, options, num_boxes):
    """In a notebook: norms after the sums, another network, learned positions, shared keys; and as Llama has it."""
    figure = shared_figures("machine")
    sizes = pf.StackConfig(d_model=16, num_layers=3, **options)
    vocabulary = pf.Vocabulary.from_characters("abc", special=["<other>"], unknown="<other>")
    model = pf.Decoder(pf.DecoderConfig(4, 9, stack=sizes, tied_embedding=False), key=jax.random.key(0))
    pf.save_model(tmp_path / "own.safetensors", model, vocabulary)
    data = base64.b64encode((tmp_path / "own.safetensors").read_bytes()).decode()
    opened = ["embedding", "queries", "hidden", "add1", "add2", "logits"]
    found = figure.page.evaluate(OWN, [f"own {num_boxes}", data, opened])
    known = arrays_of(model, jnp.asarray(vocabulary.encode("abcab")), 1)
    for box, row in zip(opened, found["rows"], strict=True):
        wanted = known[box][0] if box in OF_HEADS else known[box]
        np.testing.assert_allclose(row, wanted[-1], atol=1e-4, err_msg=box)
    assert (found["links"], found["boxes"]) == (0, num_boxes)


def test_start_says_what_went_wrong_and_tries_again(open_figure):
    figure = open_figure("machine")
    figure.page.route("**/*.safetensors*", lambda route: route.fulfill(status=404))
    figure.root.locator(".lf-start").click()
    figure.root.get_by_text("status 404").wait_for()
    figure.page.unroute("**/*.safetensors*")
    figure.root.get_by_role("button", name="Try again").click()
    figure.page.locator(".live-figure-mounted[data-widget=machine]").wait_for()
    assert figure.until("state.sizes !== undefined")["letters"][:3] == [".", "Anna", "takes"]


STORY = ". Ben is in the cellar . where is Ben ?"
ANSWER = {"logits", "probabilities"}
SO_FAR = {
    "tokens": ("embedding", {"ids", "embedding", *ANSWER}),
    "positions": ("scores", {"ids", "embedding", *IN_BLOCK, "block0", "block2", "block3", "final", *ANSWER}),
}
# What each begins with, as its chapter's first lines ask.
ASKED = {
    "tokens": ". Anna is in the hall . where is Anna ?",
    "positions": ". Anna goes to the cellar . Anna goes to the garden . where is Anna ?",
}


@pytest.mark.parametrize("chapter", SO_FAR)
def test_machine_so_far_lights_what_is_built_and_reads_words(open_page, decoder, chapter):
    """What is lit, what is open, that words are read, and that the numbers are those of Python."""
    opened, lit = SO_FAR[chapter]
    figure = Figure(open_page(f"chapters/{chapter}.html"), "machine").laid_out().start()
    boxes = figure.root.locator(".lf-box")
    found = {box.get_attribute("data-box") for box in boxes.all() if "lf-unlit" not in box.get_attribute("class")}
    assert found == lit
    assert figure.settled()["open"] == opened
    assert figure.state["text"] == ASKED[chapter]
    model, words = decoder
    (state,) = figure.page.evaluate(SHOW, [STORY, 2, [opened], 1])
    assert state["letters"] == STORY.split()
    ids = jnp.asarray(words.encode(STORY))
    assert state["ids"] == ids.tolist()
    _, seen = pf.look(model, ids)
    wanted = {"embedding": seen["stack.input"], "scores": seen["stack.blocks.2.attention.scores"][1]}[opened][-1]
    np.testing.assert_allclose(state["row"], wanted, atol=1e-4, rtol=1e-4)
