"""The live figure of the block from 2017 to today counts what the package counts, and marks what a change touches."""

import json
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest

import plainformer as pf
from plainformer.models.accounting import cache_bytes, forward_flops

# What every test over all figures changes: controls with keys (`test_widgets.py`).
CHANGES = {"modern": [("Change", "End"), ("Change", "ArrowRight")]}

NUMBERS = json.loads((Path(__file__).parents[2] / "widgets" / "modern.json").read_text("utf-8"))


def config_of(machine: dict) -> pf.DecoderConfig:
    """The configuration of a machine, of what the page has of it."""
    fields = ("norm", "norm_placement", "activation", "position_scheme", "use_bias", "qk_norm", "num_kv_heads", "sinks")
    kinds = {name: machine[name] for name in (*fields, "d_ff", "window")}
    sizes = {name: NUMBERS[name] for name in ("d_model", "num_layers", "num_heads")}
    pattern = None if machine["window"] is None else ("window", "full")
    stack = pf.StackConfig(**sizes, **kinds, pattern=pattern)
    return pf.DecoderConfig(NUMBERS["vocab_size"], NUMBERS["context_len"], stack, tied_embedding=machine["tied"])


def check(state):
    machine = NUMBERS["machines"][state["machine"]]
    config = config_of(machine)
    model = eqx.filter_eval_shape(pf.Decoder, config, key=jax.random.key(0))
    assert state["parameters"] == pf.count_parameters(model)
    assert state["operations"] == forward_flops(config, 1)
    assert state["cache"] == cache_bytes(config.stack, config.context_len)
    length, stack = config.context_len, config.stack
    seen = sum(min(length, stack.window) if kind == "window" else length for kind in stack.kinds)
    assert state["looked"] == seen * cache_bytes(stack, 1) // stack.num_layers
    assert state["loss"] == pytest.approx(np.mean(machine["losses"]))


MARKED = {"norm before": {"layer norm", "+"}, "SwiGLU": {"network"}, "rotary": {"embedding", "attention"}}


def test_modern_counts_what_the_package_counts_and_marks_what_a_change_touches(shared_figures):
    figure = shared_figures("modern")
    kinds = [label for label, _ in figure.state["boxes"]]
    assert kinds == ["embedding", "attention", "+", "layer norm", "network", "+", "layer norm", "output"]
    for machine in NUMBERS["machines"]:
        state = figure.state
        check(state)
        marked = {label for label, is_new in state["boxes"] if is_new}
        assert marked == MARKED.get(machine["name"], marked)
        assert figure.root.locator("svg .lf-new").count() == sum(is_new for _, is_new in state["boxes"])
        figure.press(figure.control("Change"), "ArrowRight")
    assert figure.state["machine"] == len(NUMBERS["machines"]) - 1
