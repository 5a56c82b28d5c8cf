"""The live figure of residuals: what its stack does to tokens and gradients is what the package's blocks do."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf

# What every test over all figures changes: controls with keys (`test_widgets.py`).
CHANGES = {
    "blocks": [("pre-norm", "Space"), ("Scale of f", "ArrowRight"), ("Layers", "ArrowLeft")],
}

TOKENS, WIDTH, INNER, DEPTH = 6, 16, 64, 24
LAYERS = {
    "none": lambda x, norm, sublayer: sublayer(x),
    "residual": lambda x, norm, sublayer: x + sublayer(x),
    "pre": pf.pre_norm,
    "post": pf.post_norm,
}


@functools.cache
def drawn():
    """Tokens, the gradient at the output, and the weights of every layer, drawn as the figure says that it draws."""
    state = 7

    def matrix(rows, columns, variance=1.0):
        nonlocal state
        numbers = []
        for _ in range(rows * columns):
            state = 48271 * state % (2**31 - 1)
            numbers.append(2 * state / (2**31 - 1) - 1)
        return np.sqrt(3 * variance) * np.reshape(numbers, (rows, columns))

    tokens, gradient = matrix(TOKENS, WIDTH), matrix(TOKENS, WIDTH)
    weights = [(matrix(WIDTH, INNER, 2 / WIDTH), matrix(INNER, WIDTH, 1 / INNER)) for _ in range(DEPTH)]
    return tokens, gradient / size(gradient), weights


def size(a) -> float:
    return float(np.sqrt(np.mean(np.square(np.asarray(a)))))


def network(weights, scale):
    new = pf.FeedForward(WIDTH, INNER, activation="relu", use_bias=False, key=jax.random.key(0))
    first, second = (jnp.asarray(matrix) for matrix in weights)
    return eqx.tree_at(lambda each: (each.up.weight, each.down.weight), new, (first, scale * second))


def follow(layer, depth, scale, skips_alone):
    """The sizes of the tokens, and those of the gradient from the output back to the input."""
    tokens, gradient, weights = drawn()
    hide = jax.lax.stop_gradient if skips_alone else lambda rows: rows

    @jax.jit
    def step(x, sublayer):
        return layer(x, pf.standardise, lambda rows: hide(sublayer(rows)))

    @jax.jit
    def back(x, sublayer, gradient):
        return jax.vjp(lambda rows: step(rows, sublayer), x)[1](gradient)[0]

    stack = [network(pair, scale) for pair in weights[:depth]]
    xs = [pf.standardise(jnp.asarray(tokens))]
    for sublayer in stack:
        xs.append(step(xs[-1], sublayer))
    gradients = [jnp.asarray(gradient)]
    for x, sublayer in zip(reversed(xs[:-1]), reversed(stack), strict=True):
        gradients.append(back(x, sublayer, gradients[-1]))
    return [size(x) for x in xs], [size(each) for each in gradients]


def check_blocks(state):
    """Sizes run over many powers of ten, so each is compared in proportion to itself."""
    assert state["scale"] == 2 ** state["power"]
    for name, layer in LAYERS.items():
        sizes, gradients = follow(layer, state["depth"], state["scale"], skips_alone=False)
        _, skips = follow(layer, state["depth"], state["scale"], skips_alone=True)
        for got, expected in ((state[name]["sizes"], sizes), (state[name]["gradients"], gradients)):
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=0)
        np.testing.assert_allclose(state[name]["skips"], skips, rtol=1e-4, atol=0)


def read(text: str) -> float:
    """A number as the figure writes it, such as 9.8·10⁻⁵."""
    digits, _, power = text.partition("·10")
    return float(digits) * 10.0 ** int(power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")) or 0)


def check_table(figure):
    for row, name in zip(figure.root.locator("tbody tr").all(), LAYERS, strict=True):
        ends = [figure.state[name][each][-1] for each in ("sizes", "gradients", "skips")]
        np.testing.assert_allclose([read(cell) for cell in row.locator("td").all_inner_texts()], ends, rtol=0.06)


def test_blocks_follow_the_keyboard(shared_figures, x64):
    figure = shared_figures("blocks")
    start = figure.state
    check_blocks(start)
    check_table(figure)
    figure.press(figure.control("Layers"), "End")
    figure.press(figure.control("Scale of f"), "ArrowRight", "ArrowRight", "ArrowRight")
    assert (figure.state["depth"], figure.state["power"]) == (DEPTH, start["power"] + 0.75)
    figure.press(figure.root.get_by_role("radio", name="no residual"), "ArrowDown", "ArrowDown")
    assert figure.state["wiring"] == "pre"
    assert figure.root.locator("th.lf-chosen").inner_text() == "pre-norm"
    check_blocks(figure.state)
    check_table(figure)


@pytest.mark.parametrize(("key", "direction"), [("Home", -1), ("End", 1)])
def test_blocks_show_why_skips_and_norms_are_used(shared_figures, key, direction):
    """Without a skip, sizes and gradients vanish or explode with the scale; with one and a norm inside they do not."""
    figure = shared_figures("blocks")
    figure.press(figure.control("Layers"), "End")
    figure.press(figure.control("Scale of f"), key)
    state = figure.state
    for quantity in ("sizes", "gradients"):
        assert direction * np.log10(state["none"][quantity][-1]) > 6
        assert abs(np.log10(state["pre"][quantity][-1])) < 1.3
    np.testing.assert_allclose(state["post"]["sizes"], 1, atol=1e-4)
    # What takes the skips alone arrives whole, unless a norm stands in its way.
    for name in ("residual", "pre"):
        np.testing.assert_allclose(state[name]["skips"], 1, atol=1e-12)
    assert state["none"]["skips"][-1] == 0
    assert state["post"]["skips"][-1] < 0.7
