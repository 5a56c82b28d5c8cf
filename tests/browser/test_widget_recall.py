"""The live figure that trains a head: its gradient is JAX's, its step optax's, and it learns as the book says.

The Python side is the chapter's own cells.
"""

import re
from pathlib import Path
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import plainformer as pf

# What every test over all figures changes: controls with keys (`test_widgets.py`).
CHANGES = {
    "recall": [
        ("One step", "Enter"),
        ("Learning rate", "ArrowRight"),
        ("Width of keys", "ArrowLeft"),
        ("scores divided", "Space"),
        ("Seed", "ArrowRight"),
    ],
}

CHAPTER = (Path(__file__).parents[2] / "chapters" / "self_attention.md").read_text("utf-8")
RANDOM = np.random.default_rng(0)
WIDTHS = [1, 2, 3, 8, 32]
CASES = [(1, "none"), (2, "root"), (3, "equal"), (8, "none"), (32, "root")]
PLACES = {
    "nameTable": lambda model: model.name_table,
    "numberTable": lambda model: model.number_table,
    "queryWeight": lambda model: model.attention.query_weight,
    "keyWeight": lambda model: model.attention.key_weight,
    "valueWeight": lambda model: model.attention.value_weight,
    "readout": lambda model: model.readout,
}
ENGINE = """async ([work, given]) => {
    const static_ = new URL('_static/widgets/engine/', document.baseURI);
    const training = await import(new URL('training.mjs', static_));
    const { matrix, rowsOf } = await import(new URL('arrays.mjs', static_));
    const made = (arrays) => Object.fromEntries(Object.entries(arrays).map(
        ([name, rows]) => [name, matrix(rows.length, rows[0].length, Float32Array.from(rows.flat()))]));
    const plain = (matrices) => Object.fromEntries(Object.entries(matrices).map(([name, m]) => [name, rowsOf(m)]));
    return eval(work)({ training, made, plain, rowsOf }, given);
}"""


@pytest.fixture(scope="module")
def chapter():
    """What the first two cells of the chapter's experiment define."""
    section = CHAPTER.partition("(sec-self-attention-recall)=")[2].partition("(sec-self-attention-sentence)=")[0]
    cells = re.findall(r"^```\{code-cell\} ipython3\n(.*?)^```", section, flags=re.DOTALL | re.MULTILINE)
    names = {"eqx": eqx, "jax": jax, "jnp": jnp, "np": np, "optax": optax, "pf": pf, "__name__": "chapter"}
    exec("\n".join(cells[:2]), names)
    return SimpleNamespace(**{name: value for name, value in names.items() if not name.startswith("__")})


@pytest.fixture(scope="module")
def engine(browser, site):
    """A function that has the page's engine do `work`, the text of a function of its tools and of what is given."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(site + "404.html")
    yield lambda work, given: page.evaluate(ENGINE, [work, given])
    context.close()


def model_of(chapter, d_k, seed, size=1.0):
    """A model with every number drawn, also beyond its initial size."""
    key = jax.random.key(seed)
    attention = pf.SelfAttention(32, d_k=d_k, d_v=32, key=jax.random.fold_in(key, 1))
    model = eqx.tree_at(lambda model: model.attention, chapter.Recall(key), attention)
    return jax.tree.map(lambda x: size * x, model)


def arrays_of(tree):
    return {name: np.asarray(place(tree)).tolist() for name, place in PLACES.items()}


def batch_of(chapter, seed, count=64):
    return dict(zip(["names", "numbers", "place", "answer"], chapter.draw(seed, count), strict=True))


def python_loss(model, scale, names, numbers, place, answer):
    """The chapter's loss, with another factor on the scores; that with its own is compared with the chapter's below."""

    def logits(names, numbers, place):
        tokens, attention = model.tokens(names, numbers, place), model.attention
        queries, keys = tokens @ attention.query_weight, tokens @ attention.key_weight
        return pf.attend(scale * queries, keys, tokens @ attention.value_weight, scale=1.0)[-1] @ model.readout

    return pf.cross_entropy(jax.vmap(logits)(names, numbers, place), answer)


python_gradient = eqx.filter_jit(eqx.filter_value_and_grad(python_loss))


@eqx.filter_jit
def python_look(model, names, numbers, place, answer):
    logits = jax.vmap(model)(names, numbers, place)
    weights = model.attention.attention_weights(jax.vmap(model.tokens)(names, numbers, place))[:, -1]
    return weights, pf.cross_entropy(logits, answer), (logits.argmax(axis=1) == answer).mean()


GRADIENT = """({ training, made, plain }, { params, batch, scale }) => {
    const { loss, gradient } = training.lossAndGradient(made(params), batch, scale);
    return { loss, gradient: plain(gradient) };
}"""


def compare(found, loss, gradient):
    """Every number to 1e-4 of itself, or to 1e-5 of the largest of its array, below which float32 itself is unsure."""
    np.testing.assert_allclose(found["loss"], loss, rtol=1e-4)
    for name, wanted in arrays_of(gradient).items():
        unsure = 1e-5 * np.abs(wanted).max()
        np.testing.assert_allclose(found["gradient"][name], wanted, rtol=1e-4, atol=unsure, err_msg=name)


@pytest.mark.parametrize(("d_k", "scale"), CASES)
def test_loss_and_gradient_are_those_of_jax(chapter, engine, d_k, scale):
    factor = {"root": d_k**-0.5, "none": 1.0, "equal": 0.0}[scale]
    model, batch = model_of(chapter, d_k, seed=d_k, size=1.3), batch_of(chapter, 7 * d_k)
    given = {name: value.tolist() for name, value in batch.items()}
    found = engine(GRADIENT, {"params": arrays_of(model), "batch": given, "scale": factor})
    compare(found, *python_gradient(model, jnp.float32(factor), **batch))
    still = {name for name, slopes in found["gradient"].items() if np.abs(slopes).max() < 1e-6}
    assert still == ({"queryWeight", "keyWeight"} if scale == "equal" else set())


def test_both_models_of_the_chapter_are_meant(chapter, engine):
    """With 1/√d_k the engine has the loss of the chapter's `Recall`, and with 0 that of its `Average`."""
    for kind, factor in [(chapter.Recall, 32**-0.5), (chapter.Average, 0.0)]:
        model, batch = kind(jax.random.key(3)), batch_of(chapter, 3)
        given = {name: value.tolist() for name, value in batch.items()}
        found = engine(GRADIENT, {"params": arrays_of(model), "batch": given, "scale": factor})
        compare(found, *eqx.filter_value_and_grad(chapter.loss)(model, **batch))


def test_what_is_shown_of_a_batch_is_what_python_gives(chapter, engine):
    work = """({ training, made }, { params, batch, scale }) => training.judge(made(params), batch, scale)"""
    for run in range(5):
        model, batch = model_of(chapter, WIDTHS[run % 5], seed=run), batch_of(chapter, 100 + run)
        given = {name: value.tolist() for name, value in batch.items()}
        found = engine(work, {"params": arrays_of(model), "batch": given, "scale": WIDTHS[run % 5] ** -0.5})
        weights, loss, accuracy = python_look(model, **batch)
        np.testing.assert_allclose(found["weights"], weights, atol=1e-4)
        np.testing.assert_allclose(found["loss"], loss, rtol=1e-4)
        assert found["accuracy"] == pytest.approx(float(accuracy))


def test_adam_steps_as_optax_does(engine):
    params = {"table": RANDOM.normal(size=(5, 3)).tolist()}
    slopes = [{"table": (RANDOM.normal(size=(5, 3)) * 10.0**power).tolist()} for power in (-9, -3, 0, 2, -3)]
    work = """({ training, made, plain }, { params, slopes }) => {
        const own = made(params), adam = new training.Adam(own);
        return slopes.map((gradient) => { adam.step(own, made(gradient), 0.005); return plain(own).table; });
    }"""
    adam, wanted = optax.adam(5e-3), jnp.asarray(params["table"], jnp.float32)
    state = adam.init(wanted)
    for gradient, found in zip(slopes, engine(work, {"params": params, "slopes": slopes}), strict=True):
        with jax.numpy_dtype_promotion("standard"):  # which optax relies on
            updates, state = adam.update(jnp.asarray(gradient["table"], jnp.float32), state)
        wanted = optax.apply_updates(wanted, updates)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)


def test_a_new_model_has_the_chapters_size_and_examples_its_form(engine):
    work = """({ training, plain }) => {
        const random = training.generator(0);
        return { params: plain(training.newParams(random, 8)), batch: training.draw(random, 2000) };
    }"""
    found = engine(work, None)
    variances = {"nameTable": 1, "numberTable": 1, "queryWeight": 2 / 40, "keyWeight": 2 / 40, "valueWeight": 2 / 64}
    for name, variance in {**variances, "readout": 1 / 32}.items():
        values = np.array(found["params"][name])
        assert abs(values.mean()) < 4 * np.sqrt(variance / values.size), name
        assert abs(values.var() / variance - 1) < 4 * np.sqrt(2 / values.size), name
    names, numbers, place, answer = (np.array(found["batch"][name]) for name in ("names", "numbers", "place", "answer"))
    assert (np.sort(names, axis=1)[:, 1:] > np.sort(names, axis=1)[:, :-1]).all()  # no name twice
    for values, kinds in [(names, 16), (numbers, 10), (place, 8)]:
        assert np.abs(np.bincount(values.ravel(), minlength=kinds) / values.size - 1 / kinds).max() < 0.025
    np.testing.assert_array_equal(answer, numbers[np.arange(2000), place])


def test_it_learns_what_the_chapter_says(engine):
    """At least 99 % right with attention, and at most 35 % with equal weights, as the chapter asserts; two seeds."""
    work = """({ training }) => [1, 2].map((seed) => {
        const model = new training.Recall({ seed, dK: 32, scaled: true, tests: 2000 });
        return model.advance(250, 0.005, true);
    })"""
    for look in engine(work, None):
        attention, equal, bet = look["accuracies"]
        assert attention >= 0.99
        assert 0.25 < equal <= 0.35
        assert bet == pytest.approx(0.3, abs=0.02)
        assert look["losses"][1] > look["losses"][2]
        assert sum(np.argmax(look["matches"], axis=1) == np.arange(16)) >= 15


@pytest.mark.parametrize(
    ("options", "rate", "low", "high"),
    [
        ({"dK": 1, "scaled": True}, 0.005, 0.4, 0.5),  # too narrow: the chapter's last exercise
        ({"dK": 32, "scaled": False}, 0.005, 0.9, 0.985),
        ({"dK": 32, "scaled": True}, 0.1, 0.05, 0.25),
    ],
)
def test_what_the_chapter_says_goes_wrong(engine, options, rate, low, high):
    work = """({ training }, { options, rate }) =>
        new training.Recall({ seed: 0, tests: 2000, ...options }).advance(250, rate, true).accuracies[0]"""
    assert low < engine(work, {"options": options, "rate": rate}) < high


def resting(figure):
    """The figure's numbers, once it has come to rest."""
    return figure.until("state.ready && state.step >= state.target", timeout=60_000)


def test_it_trains(shared_figures):
    figure = shared_figures("recall")
    check_table(figure, resting(figure))
    assert figure.state["step"] == 0
    figure.press(figure.control("One step"), "Enter")
    assert resting(figure)["step"] == 1
    figure.control("Train").or_(figure.control("Go on to 250")).click()
    figure.until("state.step >= 20")
    figure.control("Pause").click()
    paused = resting(figure)
    assert 20 <= paused["step"] < 250
    assert f"After {paused['step']} steps" in figure.summary
    assert figure.state == paused
    figure.control("Go on to 250").click()
    state = resting(figure)
    assert state["step"] == 250
    assert state["accuracies"][0] >= 0.99
    assert state["accuracies"][1] <= 0.35
    assert state["found"] >= 15
    assert f"attention has {100 * state['accuracies'][0]:.1f} % of 2,000 fresh examples right" in figure.summary
    check_table(figure, state)


def check_table(figure, state):
    letters, examples = "ABCDEFGHIJKLMNOP", state["examples"]
    for n, row in enumerate(figure.root.locator(".lf-tight tbody tr").all()):
        cells = row.locator("td.lf-cell").all_inner_texts()
        pairs = [letters[a] + str(b) for a, b in zip(examples["names"][n], examples["numbers"][n], strict=True)]
        assert [cell.split()[0] for cell in cells] == [*pairs, "?"]
        shown = [int(cell.split()[1]) for cell in cells]
        np.testing.assert_allclose(shown, 100 * np.array(state["weights"][n]), atol=0.51)
        assert row.locator("th").inner_text() == f"{letters[examples['names'][n][examples['place'][n]]]}?"
        mark = "✓" if state["answers"][n] == examples["answer"][n] else "✗"
        assert row.locator("td").last.inner_text() == f"{state['answers'][n]} {mark}"


def test_every_setting_reaches_the_model(shared_figures, engine):
    """The numbers in sight are those of a run of the engine with the same settings."""
    figure = shared_figures("recall")
    for label, key in [("Width of keys", "Home"), ("scores divided", "Space"), ("Seed", "ArrowRight")]:
        figure.press(figure.control(label), key)
    resting(figure)
    figure.press(figure.control("Learning rate"), "ArrowRight")
    figure.press(figure.control("One step"), "Enter")
    found = resting(figure)
    work = """({ training }) =>
        new training.Recall({ seed: 1, dK: 1, scaled: false, tests: 2000 }).advance(1, 0.01, true)"""
    wanted = engine(work, None)
    assert {name: found[name] for name in wanted} == wanted


def test_a_weight_of_the_map_is_read_off_by_keys_and_pointer(shared_figures):
    figure = shared_figures("recall")
    state = resting(figure)
    names = figure.root.locator("svg[tabindex]")
    figure.press(names, "ArrowDown", "ArrowRight", "ArrowRight", "ArrowUp", "ArrowUp")
    note = figure.root.locator("svg[tabindex] + p")
    assert note.inner_text() == f"Query of A, key of C: weight {state['matches'][0][2]:.3f}"
    box = names.bounding_box()
    side = box["width"] / 346
    figure.page.mouse.move(box["x"] + (40 + 18 * 5.5) * side, box["y"] + (38 + 18 * 7.5) * side)
    assert note.inner_text() == f"Query of H, key of F: weight {state['matches'][7][5]:.3f}"


def test_it_trains_without_a_worker(open_figure):
    figure = open_figure("recall")
    figure.page.add_init_script("delete window.Worker")
    figure.page.reload()
    figure.visit.settle()
    figure.press(figure.control("One step"), "Enter")
    assert resting(figure)["step"] == 1


def test_a_worker_that_stops_is_said_and_the_figure_goes_on(open_figure):
    figure = open_figure("recall")
    figure.page.add_init_script(
        """{ const Real = Worker;
             window.Worker = class extends Real { constructor(...all) { super(...all); window.worker = this; } }; }"""
    )
    figure.page.reload()
    figure.visit.settle()
    figure.control("Train").click()
    figure.page.evaluate("window.worker.terminate(); window.worker.dispatchEvent(new Event('error'))")
    figure.until("state.error")
    assert "The model stopped" in figure.summary
