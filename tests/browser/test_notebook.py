"""Live figures in a notebook: what `pf.live` sends is drawn without a server, and its numbers are Python's.

anywidget is not needed: a stand-in takes what would be sent, and the page loads it as anywidget does.
"""

import base64
import json
import sys
import types
from importlib.machinery import ModuleSpec

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from tests.browser.conftest import QUIET, TIMERS

ADDRESS = "http://localhost/"
CLOSE = {"rtol": 1e-4, "atol": 1e-4}
LETTERS = pf.Vocabulary("abcdefgh", special=["<start>", "<stop>", "<mask>"])
STACK = pf.StackConfig(d_model=16, num_layers=2, num_heads=2)
# The bytes come as a view into a message of Jupyter's, which has other things in front.
SHOW = """async ([esm, values, file]) => {
    const address = URL.createObjectURL(new Blob([esm], { type: 'text/javascript' }));
    const { default: widget } = await import(address);
    URL.revokeObjectURL(address);
    const bytes = Uint8Array.from(atob(file), (c) => c.charCodeAt(0));
    const message = new Uint8Array(bytes.length + 5);
    message.set(bytes, 5);
    const given = { ...values, file: new DataView(message.buffer, 5) };
    const el = document.createElement('div');
    document.body.append(el);
    window.leave = await widget.render({ model: { get: (name) => given[name], on() {} }, el });
}"""


@pytest.fixture
def live(monkeypatch):
    """`pf.live` with a stand-in for anywidget."""
    anywidget = types.ModuleType("anywidget")
    anywidget.__spec__ = ModuleSpec("anywidget", None)
    anywidget.AnyWidget = type("AnyWidget", (), {"__init__": lambda self, **values: vars(self).update(values)})
    monkeypatch.setitem(sys.modules, "anywidget", anywidget)
    return pf.live


class Notebook:
    """A page that has no server: whatever it asks of one is noted, and refused."""

    def __init__(self, browser, without=""):
        self.context = browser.new_context(viewport={"width": 900, "height": 900})
        self.page = self.context.new_page()
        self.page.set_default_timeout(30_000)
        self.asked, self.errors = [], []
        self.page.route("**/*", self._answer)
        self.page.on("console", lambda message: message.type == "error" and self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.add_init_script(TIMERS + without)
        self.page.goto(ADDRESS)

    def _answer(self, route):
        url = route.request.url
        if url == ADDRESS:
            return route.fulfill(body="<!doctype html><title>Notebook</title>", content_type="text/html")
        if url.startswith(("blob:", "data:")):
            return route.continue_()
        self.asked.append(url)
        return route.abort()

    def show(self, widget):
        values = vars(widget)
        kept = {name: values[name] for name in ("modules", "figure", "name", "values")}
        self.page.add_style_tag(content=widget._css.read_text("utf-8"))
        self.page.evaluate(SHOW, [widget._esm.read_text("utf-8"), kept, base64.b64encode(values["file"]).decode()])
        return self

    @property
    def root(self):
        return self.page.locator(".lf").last

    @property
    def state(self):
        """The figure's numbers, once it has come to rest."""
        self.page.wait_for_function("root => !JSON.parse(root.dataset.state).busy", arg=self.root.element_handle())
        return json.loads(self.root.get_attribute("data-state"))

    @property
    def sentence(self):
        self.page.wait_for_function(QUIET)
        return self.root.locator("[aria-live]").inner_text()

    def type(self, text):
        self.root.locator("input[type=text], textarea").first.fill(text)
        return self.state


@pytest.fixture
def notebook(browser):
    """A function that opens such a page; afterwards nothing may have been asked for, and nothing have gone wrong."""
    opened = []

    def open_one(without=""):
        opened.append(Notebook(browser, without))
        return opened[-1]

    yield open_one
    for each in opened:
        each.context.close()
        assert (each.asked, each.errors) == ([], [])


def encoder():
    config = pf.EncoderConfig(vocab_size=len(LETTERS), context_len=12, stack=STACK)
    return pf.MaskedLanguageModel(config, key=jax.random.key(0))


def seq2seq():
    config = pf.Seq2SeqConfig(len(LETTERS), 12, 12, 0, 1, encoder=STACK, decoder=STACK)
    return pf.Seq2Seq(config, key=jax.random.key(1))


def decoder():
    return pf.Decoder(pf.DecoderConfig(len(LETTERS), 12, stack=STACK), key=jax.random.key(2))


def vit():
    return pf.ViT(pf.ViTConfig(image_size=(4, 6), patch_size=2, num_classes=3, stack=STACK), key=jax.random.key(3))


def test_encoder(live, notebook):
    model, mask = encoder(), LETTERS.special["<mask>"]
    state = notebook().show(live.encoder(model, LETTERS)).type("abcdef")
    ids = LETTERS.encode("abcdef")
    asked = state["asked"]
    probabilities = jax.nn.softmax(model(jnp.asarray([*ids[:asked], mask, *ids[asked + 1 :]])))[asked]
    shown = [LETTERS.tokens.index(token) for token in state["shown"]]
    np.testing.assert_allclose(state["both"][:-1], probabilities[jnp.asarray(shown)], **CLOSE)


def test_seq2seq(live, notebook):
    model = seq2seq()
    page = notebook().show(live.seq2seq(model, LETTERS))
    state = page.type("gacebad")
    source, written = LETTERS.encode("gacebad"), state["written"]
    logits = model(jnp.asarray(source), jnp.asarray([0, *written[:-1]]))
    np.testing.assert_array_equal(written, logits.argmax(axis=-1))
    wanted = jax.nn.softmax(logits).max(axis=-1)
    np.testing.assert_allclose(state["sure"], wanted, **CLOSE)


@pytest.mark.parametrize("figure", ["writing", "machine", "surprise"])
def test_decoder(live, notebook, figure):
    model, text = decoder(), LETTERS.encode("cabbage")
    state = notebook().show(live.decoder(model, LETTERS, figure)).type("cabbage")
    begun = [LETTERS.special["<start>"]] if figure == "machine" else []  # where the vocabulary has one
    ids = jnp.asarray([*begun, *text])
    logits = model(ids)
    following = jax.nn.softmax(logits[-1])
    if figure == "writing":
        np.testing.assert_allclose(state["logits"], logits[-1], **CLOSE)
    elif figure == "machine":
        wanted = np.sort(following)[::-1]
        np.testing.assert_allclose([share for _, share in state["expected"]], wanted[: len(state["expected"])], **CLOSE)
    else:
        surprises = -jax.nn.log_softmax(logits)[np.arange(6), np.asarray(text[1:])]
        np.testing.assert_allclose(state["surprises"], surprises, **CLOSE)


def test_predictions(live, notebook):
    widget = live.predictions(decoder(), LETTERS, ["cab", "cabbage"])
    state = notebook().show(widget).state
    assert state["answer"] == ["a", "b"]
    assert state["said"] == [token for token, _ in vars(widget)["values"]["asked"][0]["after"][-1]]


def test_a_figure_that_leaves_the_notebook_gives_back_its_model(live, notebook):
    shown = notebook().show(live.decoder(decoder(), LETTERS, "machine"))
    shown.page.evaluate("window.leave()")
    shown.root.get_by_label("Your text").fill("cab")
    assert "There is no model" in shown.sentence


def test_vit(live, notebook):
    model, ink = vit(), 1.5
    state = notebook().show(live.vit(model, ink=ink)).state
    image = jnp.asarray(state["pixels"], jnp.float32)[..., None] * (ink / 16)
    assert image.shape == (4, 6, 1)
    assert image.max() > 0
    np.testing.assert_allclose(state["whole"], jax.nn.softmax(model(image)), **CLOSE)


def test_attention(live, notebook):
    weights = np.random.default_rng(0).dirichlet(np.ones(5), (3, 2, 5)).astype(np.float32)
    page = notebook().show(live.attention(weights, "abcde"))
    state = page.state
    np.testing.assert_allclose(state["weights"], weights[state["layer"], state["head"], state["token"]], **CLOSE)
    assert page.page.workers == []


def test_all_figures_of_a_notebook_share_one_worker(live, notebook):
    page = notebook()
    for number, seed in enumerate((4, 5)):
        model = pf.MaskedLanguageModel(encoder().config, key=jax.random.key(seed))
        page.show(live.encoder(model, LETTERS))
        assert page.type("abcdef")["both"]
        assert page.page.locator(".lf").count() == number + 1
        assert len(page.page.workers) == 1
    first, second = [json.loads(each.get_attribute("data-state"))["both"] for each in page.page.locator(".lf").all()]
    assert np.abs(np.subtract(first[:-1], second[:-1])).max() > 0.01


@pytest.mark.parametrize(
    "without",
    [
        "delete window.Worker",
        # As where a policy forbids it: the error comes as an event.
        "window.Worker = class extends EventTarget {"
        " constructor() { super(); setTimeout(() => this.dispatchEvent(new Event('error'))); } postMessage() {} }",
    ],
)
def test_without_a_worker_the_page_computes(live, notebook, without):
    page = notebook(without)
    page.show(live.encoder(encoder(), LETTERS))
    assert sum(page.type("abcdef")["both"]) == pytest.approx(1)
    assert page.page.workers == []


def test_a_letter_that_the_readers_vocabulary_lacks(live, notebook):
    page = notebook().show(live.encoder(encoder(), LETTERS))
    assert page.type("abZ🙂c_")["letters"] == ["a", "b", "c", "_"]
    assert "“Z🙂”" in page.sentence


def test_dark_notebooks_have_dark_figures(live, notebook):
    page = notebook().show(live.encoder(encoder(), LETTERS))
    paper = "root => getComputedStyle(root).backgroundColor"
    for node, name, value in [
        ("documentElement", "data-theme", "dark"),
        ("body", "data-jp-theme-light", "false"),
        ("body", "class", "vscode-dark"),
    ]:
        assert page.root.evaluate(paper) == "rgb(255, 255, 255)"
        page.page.evaluate(f"document.{node}.setAttribute('{name}', '{value}')")
        assert page.root.evaluate(paper) == "rgb(20, 24, 29)"
        page.page.evaluate(f"document.{node}.removeAttribute('{name}')")


def test_what_the_page_cannot_read_is_said(live, notebook):
    widget = live.encoder(encoder(), LETTERS)
    vars(widget)["file"] = vars(widget)["file"][:-8]
    page = notebook().show(widget)
    assert "The model's file is damaged" in page.page.locator("body > div").inner_text()
