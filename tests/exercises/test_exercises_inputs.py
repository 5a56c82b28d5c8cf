"""Inputs of single exercises that a mistake could hide behind, and the package's answers where they are another way."""

import equinox as eqx
import jax
import numpy as np
import pytest
from exercise_checks import complaint, in_numpy
from readers_answers_modern_published import counted_by
from readers_answers_serving_caches import in_loops

import plainformer as pf
from plainformer.attention import quantise_groups
from plainformer.exercises.registry import load_exercise


def test_inputs_show_every_fate_of_every_kind_of_token():
    inputs = load_exercise("mask_tokens").cases[0].inputs
    chosen = inputs["is_token"] & (inputs["tokens"] >= 3) & (inputs["select"] < 0.15)
    fates = inputs["fate"][chosen]
    assert [((fates >= low) & (fates < high)).any() for low, high in [(0, 0.8), (0.8, 0.9), (0.9, 1)]] == [True] * 3
    assert (inputs["select"][inputs["tokens"] < 3] < 0.15).all()
    assert (inputs["select"][~inputs["is_token"]] < 0.15).any()


def test_heads_have_several_atoms_to_choose_from():
    for case in load_exercise("atom_map").cases:
        elements, arrow = case.inputs["elements"], case.inputs["arrow"]
        choices = [np.sum(elements[:arrow] == element) for element in elements[arrow + 1 :] if element]
        assert min(choices) >= 1
        assert max(choices) >= 2


def test_a_target_holds_the_id_zero_which_is_no_padding():
    assert 0 in load_exercise("teacher_forcing").cases[0].inputs["target"]


def test_a_device_may_have_no_token():
    by_device = in_numpy(lambda losses, is_token: np.average(losses.mean(axis=1), weights=is_token.sum(axis=1)))
    assert "batch_loss" in complaint("batch_loss", by_device)


def test_shift_takes_codes_to_codes():
    codes, shift = (load_exercise(name).answer for name in ("sinusoid", "shift"))
    np.testing.assert_allclose(codes(np.arange(5), 6) @ shift(3, 6), codes(np.arange(5) + 3, 6), atol=1e-12)


def test_numbers_rounded_by_groups_are_those_that_the_package_keeps():
    numbers = np.random.default_rng(0).normal(size=(8, 6)).astype(np.float32)
    groups = quantise_groups(numbers.T.reshape(6, 2, 4), 4)
    found = np.asarray(groups.numbers()).reshape(6, 8).T
    np.testing.assert_allclose(found, in_loops()(numbers, 4, 4), atol=2e-3)  # whose steps are of 16 bits


def test_the_packages_softmax_with_a_sink_passes():
    pf.exercises.check("sink_weights", pf.attention.softmax_with_sink)


@pytest.mark.parametrize("name", ["Llama 3 8B", "SmolLM2 135M", "gpt-oss 20b"])
def test_the_right_answer_counts_published_models(name):
    """One whose embedding is its own, one that ties it, and one with experts."""
    config = pf.models.PUBLISHED[name].config
    stack = config.stack
    heads = stack.num_heads, stack.num_kv_heads, stack.key_width
    given = config.vocab_size, stack.d_model, stack.num_layers, *heads, stack.inner_width
    found = int(counted_by()(*given, stack.use_bias, config.tied_embedding))
    if stack.experts is None:
        assert found == pf.models.planned_parameters(config)
        return
    # All but the experts: their networks in place of one, the router with its biases, and the sinks.
    block = eqx.filter_eval_shape(pf.make_block, stack, key=jax.random.key(0))
    experts, network = pf.count_parameters(block.feed_forward), 3 * stack.d_model * stack.inner_width
    assert found + stack.num_layers * (experts - network + stack.num_heads) == pf.models.planned_parameters(config)
