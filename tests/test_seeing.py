"""Looking inside any model: every named array is seen, may be exchanged, and costs nothing when nobody looks."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from all_models import BATCH, DRAWS, HEADS, KINDS, LAYERS, SEQ, new_model, plain_model, texts

import plainformer as pf
from plainformer import seeing
from plainformer.models.config import KERNELS

STACKS = {"decoder": ["stack."], "encoder": ["stack."], "seq2seq": ["encoder.stack.", "stack."]}
OF_EACH_FORM = ["decoder", "vit", "seq2seq"]  # a stack, one within a model, and two
(TOKENS,) = KINDS["decoder"].inputs
PARTS = ("queries", "keys", "values", "scores", "weights", "heads", "output")


def stacks(kind):
    return STACKS.get(kind, ["encoder.stack."])


def test_arrays_have_the_names_of_their_places_and_of_the_figures():
    _, seen = pf.look(plain_model("decoder"), TOKENS)
    block = [
        *("attention_norm.output", *(f"attention.{name}" for name in PARTS), "after_attention"),
        *("feed_forward_norm.output", "feed_forward.hidden", "feed_forward.output", "output"),
    ]
    blocks = [f"stack.blocks.{layer}.{name}" for layer in range(LAYERS) for name in block]
    assert list(seen) == ["stack.input", *blocks, "stack.output", "stack.final_norm.output"]


@pytest.mark.parametrize("kind", OF_EACH_FORM)
def test_a_look_returns_what_a_call_returns_and_shows_each_block(kind):
    model, inputs = plain_model(kind), KINDS[kind].inputs
    logits, seen = pf.look(model, *inputs)
    np.testing.assert_array_equal(logits, model(*inputs))
    stack = model.stack if hasattr(model, "stack") else model.encoder.stack
    for place in stacks(kind):
        for layer in range(len(stack.blocks)):
            weights = seen[f"{place}blocks.{layer}.attention.weights"]
            assert weights.shape[-3] == HEADS
            np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)
    if kind != "seq2seq":
        streams = [seen[f"{place}input"], *(seen[f"{place}blocks.{n}.output"] for n in range(LAYERS))]
        for found, expected in zip(streams, model.residual_stream(*inputs), strict=True):
            np.testing.assert_array_equal(found, expected)
    else:
        assert {"stack.blocks.0.cross_attention.weights", "stack.blocks.0.after_cross_attention"} <= seen.keys()


@pytest.mark.parametrize("attention", KERNELS)
def test_weights_that_are_seen_are_those_that_act(attention):
    model = new_model("decoder", attention=attention)
    logits, seen = pf.look(model, TOKENS)
    np.testing.assert_allclose(logits, model(TOKENS), atol=2e-5)
    place = "stack.blocks.1.attention."
    weights, values = (np.asarray(seen[place + name]) for name in ("weights", "values"))
    np.testing.assert_allclose(seen[place + "heads"], weights @ values, atol=1e-5)


def test_what_stands_in_is_what_all_that_follows_is_computed_from():
    model, tokens = plain_model("decoder"), TOKENS
    other = (tokens + 1) % 11
    wanted, seen = pf.look(model, other)
    for name in ("stack.input", "stack.blocks.0.output", "stack.blocks.1.output"):  # whole streams, as in patching
        patched, _ = pf.look(model, tokens, replace={name: seen[name]})
        np.testing.assert_array_equal(patched, wanted)
        _, shown = pf.look(model, tokens, replace={name: np.asarray(seen[name])})
        assert list(shown) == list(seen)  # NumPy's arrays are seen as JAX's
    name = "stack.blocks.1.attention.heads"
    silenced, _ = pf.look(model, tokens, replace={name: lambda heads: heads.at[2].set(0)})
    columns = slice(2 * (24 // HEADS), 3 * (24 // HEADS))  # of the output matrix, which the third head writes by
    by_hand = eqx.tree_at(
        lambda m: m.stack.blocks[1].attention.output.weight,
        model,
        model.stack.blocks[1].attention.output.weight.at[columns].set(0),
    )
    np.testing.assert_allclose(silenced, by_hand(tokens), atol=1e-5)
    assert np.abs(silenced - model(tokens)).max() > 1e-3


@pytest.mark.parametrize("kind", OF_EACH_FORM)
def test_a_look_works_under_jit_vmap_and_grad(kind):
    model, batch = plain_model(kind), DRAWS.get(kind, lambda *shape: (texts(*shape),))(*BATCH[:1])
    alone = [pf.look(model, *(each[1] for each in batch))[1]]
    _, together = eqx.filter_jit(jax.vmap(lambda *inputs: pf.look(model, *inputs)))(*batch)
    assert together.keys() == alone[0].keys()
    for name, value in alone[0].items():
        np.testing.assert_allclose(together[name][1], value, atol=1e-4)
    name = f"{stacks(kind)[-1]}blocks.0.output"

    def total(shift):
        return pf.look(model, *KINDS[kind].inputs, replace={name: lambda x: x + shift})[0].sum()

    slope = eqx.filter_jit(jax.grad(total))(0.0)
    around = (total(1e-2) - total(-1e-2)) / 2e-2
    np.testing.assert_allclose(slope, around, rtol=0.1, atol=1e-2)


@pytest.mark.parametrize("kind", ["decoder", "seq2seq"])
def test_nobody_pays_when_nobody_looks(kind, monkeypatch):
    def program():
        jax.clear_caches()
        return jax.jit(lambda model, *inputs: model(*inputs)).lower(plain_model(kind), *KINDS[kind].inputs).as_text()

    with_see = program()
    monkeypatch.setattr(seeing, "_looking", type("Never", (), {"get": staticmethod(lambda: None)}))
    for module in ("attention.kernels", "attention.multi_head", "blocks.blocks", "blocks.layers", "models.depth"):
        monkeypatch.setattr(f"plainformer.{module}.see", lambda name, value: value)
    assert with_see == program()


def test_weights_cost_one_pass():
    model = plain_model("decoder")

    def flops(function):
        return pf.training.count_flops(function, TOKENS)

    assert flops(model.attention_weights) <= flops(model)


def test_a_part_of_ones_own_is_seen_by_its_place_and_shows_what_it_likes():
    def network(rows):
        return pf.see("squares", rows**2) / 9

    model = eqx.tree_at(lambda m: m.stack.blocks[0].feed_forward, plain_model("decoder"), network)
    logits, seen = pf.look(model, TOKENS)
    place = "stack.blocks.0.feed_forward."
    np.testing.assert_array_equal(seen[f"{place}squares"], seen["stack.blocks.0.feed_forward_norm.output"] ** 2)
    np.testing.assert_array_equal(seen[f"{place}output"], seen[f"{place}squares"] / 9)
    np.testing.assert_array_equal(logits, model(TOKENS))


def test_writing_with_a_cache_shows_the_same_stream():
    model, tokens = plain_model("decoder"), TOKENS
    _, seen = pf.look(model.extend, tokens, model.make_cache())
    for expected, layer in zip(model.residual_stream(tokens)[1:], range(LAYERS), strict=True):
        np.testing.assert_allclose(seen[f"stack.blocks.{layer}.output"], expected, atol=1e-5)
    assert seen["stack.blocks.0.attention.queries"].shape == (HEADS, SEQ, 24 // HEADS)


def test_a_look_within_a_look_sees_for_itself_and_one_that_fails_is_over():
    model, tokens = plain_model("decoder"), TOKENS
    outer = pf.look(lambda: pf.see("largest", model.attention_weights(tokens).max()))[1]
    assert list(outer) == ["largest"]
    with pytest.raises(ZeroDivisionError):
        pf.look(lambda: 1 / 0)
    assert not seeing.is_looking()


NAME = "stack.blocks.0.attention.heads"
WRONG_LOOKS = {
    "another block": (lambda m, x: pf.look(m, x, replace={"stack.blocks.7.output": 0}), "which was not seen"),
    "another shape": (lambda m, x: pf.look(m, x, replace={NAME: jnp.zeros(3)}), rf"{NAME} has shape \(3,\)"),
    "no array": (lambda m, x: pf.look(m, x, replace={NAME: lambda heads: None}), rf"{NAME} has shape None"),
    "jit within": (lambda m, x: pf.look(eqx.filter_jit(m), x), "stack.input is computed within jit"),
    "nothing named": (lambda m, x: pf.look(jnp.sin, x.astype(float)), "showed no array"),
}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("look", "message"), WRONG_LOOKS.values(), ids=WRONG_LOOKS.keys())
def test_a_look_says_what_is_wrong(look, message):
    with pytest.raises((ValueError, TypeError), match=message):
        look(plain_model("decoder"), TOKENS)


def test_a_name_is_seen_once():
    def network(x):
        for _ in range(3):
            x = pf.see("hidden", x + 1)
        return x

    with pytest.raises(ValueError, match="hidden is seen twice"):
        pf.look(network, jnp.zeros(2))


@pytest.mark.parametrize("kind", OF_EACH_FORM)
def test_what_is_seen_of_a_norm_is_called_as_its_numbers_are(kind):
    model, inputs = plain_model(kind), KINDS[kind].inputs
    norms = {name.rsplit(".", 1)[0] for name in pf.training.named_arrays(model) if "final_norm" in name}
    seen = {name.removesuffix(".output") for name in pf.look(model, *inputs)[1] if "final_norm" in name}
    assert norms == seen
