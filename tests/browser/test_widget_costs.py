"""The live figure of the chapter on efficiency: what a layer of attention costs, beside what the package counts."""

import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from plainformer.models.accounting import cache_bytes

# What every test over all figures changes: controls with keys (`test_widgets.py`).
CHANGES = {
    "costs": [("Tokens", "Home"), ("Heads", "End"), ("KV heads", "Home"), ("Window", "End")],
}

WIDTH = 64


def check(state):
    """Operations and bytes as the package counts them, by tracing the layer itself."""
    length, heads, window = state["length"], state["heads"], state["window"]
    rows = 3 * [np.zeros((heads, length, WIDTH), np.float32)]
    shapes = 3 * [jax.ShapeDtypeStruct((heads, length, WIDTH), jnp.float32)]
    costs = state["costs"]
    np.testing.assert_allclose(costs["direct"]["operations"], pf.training.count_flops(pf.attend, *shapes), rtol=1e-4)
    for name, form in (("direct", pf.attend), ("blockwise", pf.attention.blockwise_attention)):
        kept = pf.training.count_kept_bytes(form, *rows)
        np.testing.assert_allclose(costs[name]["kept"], kept, rtol=0.03)  # without a few numbers per query
    mask = np.tri(length, dtype=bool)
    per_pair = costs["direct"]["operations"] / length**2
    np.testing.assert_allclose(costs["blockwise"]["operations"], per_pair * mask.sum(), rtol=1e-4)
    np.testing.assert_allclose(
        costs["window"]["operations"], per_pair * (mask ^ np.tri(length, k=-window, dtype=bool)).sum()
    )
    stack = pf.StackConfig(d_model=heads * WIDTH, num_layers=1, num_heads=heads, num_kv_heads=state["kvHeads"])
    np.testing.assert_allclose(costs["direct"]["cache"], cache_bytes(stack, length), rtol=1e-4)
    np.testing.assert_allclose(costs["window"]["cache"], cache_bytes(stack, min(length, window)), rtol=1e-4)


def test_costs_are_those_of_python(shared_figures):
    figure = shared_figures("costs")
    figure.press(figure.control("Tokens"), "Home")
    check(figure.state)
    for label, key in (("Tokens", "ArrowRight"), ("KV heads", "ArrowLeft"), ("Tokens", "ArrowRight"),
                       ("Heads", "ArrowLeft"), ("Window", "Home"), ("Tokens", "ArrowRight")):  # fmt: skip
        figure.press(figure.control(label), key)
        check(figure.state)
    assert figure.state["length"] == 512
    assert "512 tokens" in figure.summary


def test_costs_never_has_more_heads_of_keys_than_heads(shared_figures):
    figure = shared_figures("costs")
    figure.press(figure.control("Heads"), "Home")
    assert (figure.state["heads"], figure.state["kvHeads"]) == (1, 1)
