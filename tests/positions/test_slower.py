"""Rotary positions made slower: against pencil, what each way promises, and the models that keep it."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from plainformer.models.config import StackConfig

LINEAR, NTK = pf.positions.LinearScaling(factor=4.0), pf.positions.NtkScaling(factor=4.0)
PARTS = pf.positions.RotaryScaling(factor=4.0, trained_len=128)
YARN = pf.positions.YarnScaling(factor=4.0, trained_len=128)
ALL = [LINEAR, NTK, PARTS, YARN]
SPEEDS = np.array([1.0, 0.1, 0.01, 0.001])  # of heads of 8 columns; 20, 2, 0.2 and 0.02 turns in 128 places


@pytest.mark.equation("eq-serving-interpolation")
def test_linear_scaling_is_a_division_of_positions():
    np.testing.assert_allclose(LINEAR.slowed(SPEEDS), SPEEDS / 4, rtol=1e-15)
    rows = np.random.default_rng(0).normal(size=(5, 8)).astype(np.float32)
    places = np.array([0, 4, 8, 40, 400])
    squeezed = pf.rotate_pairs(rows, places, scaling=LINEAR)
    np.testing.assert_allclose(squeezed, pf.rotate_pairs(rows, places // 4), rtol=0, atol=1e-5)
    assert np.abs(squeezed - pf.rotate_pairs(rows, places)).max() > 0.5


@pytest.mark.equation("eq-serving-ntk")
def test_ntk_scaling_is_a_larger_base():
    # The last of four pairs turns slower by 4, those between by the cube roots of 4 and of 16: 1.5874 and 2.5198.
    np.testing.assert_allclose(NTK.slowed(SPEEDS), SPEEDS / [1, 1.5874, 2.5198, 4], rtol=1e-4)
    base = NTK.base(10_000.0, 8)
    assert abs(base - 10_000 * 4 ** (8 / 6)) < 1e-6
    np.testing.assert_allclose(base ** -(np.arange(0, 8, 2) / 8), NTK.slowed(SPEEDS), rtol=1e-12)
    assert NTK.slowed(np.ones(1)) == 1
    assert NTK.base(50.0, 2) == 50.0  # the only pair is the fastest


@pytest.mark.equation("eq-serving-parts")
def test_scaling_by_parts_keeps_fast_pairs_and_slows_slow_ones():
    # 2.04 turns lie 0.346 of the way from 1 to 4, so 0.346 of the speed is kept, and 0.654 / 4 of it besides.
    np.testing.assert_allclose(PARTS.slowed(SPEEDS), SPEEDS * [1, 0.50931, 0.25, 0.25], rtol=1e-4)


@pytest.mark.equation("eq-serving-yarn")
def test_yarn_falls_from_pair_to_pair():
    # Twenty turns are fewer than 32, so the passage begins at pair 0; a single turn lies between pairs 1 and 2.
    np.testing.assert_allclose(YARN.slowed(SPEEDS), SPEEDS * [1, 0.625, 0.25, 0.25], rtol=1e-12)
    exact = dataclasses.replace(YARN, truncate=False, fast_turns=10.0)
    # log10(20.372 / 10) = 0.309 is the first, log10(20.372) = 1.309 the last.
    np.testing.assert_allclose(exact.slowed(SPEEDS), SPEEDS * [1, 0.48177, 0.25, 0.25], rtol=1e-4)
    # Where both ends round to one pair, that pair keeps its speed and the next does not.
    sudden = dataclasses.replace(YARN, trained_len=6284, slow_turns=1000.02, fast_turns=1000.1)
    np.testing.assert_allclose(sudden.slowed(SPEEDS), SPEEDS * [1, 0.25, 0.25, 0.25], rtol=1e-12)


@pytest.mark.equation("eq-serving-attention-factor")
def test_yarn_sharpens_attention():
    assert abs(YARN.magnitude - 1.1386) < 1e-4  # 0.1 ln 4 + 1
    assert dataclasses.replace(YARN, factor=1.0).magnitude == 1
    assert dataclasses.replace(YARN, attention_factor=0.7).magnitude == 0.7
    assert {each.magnitude for each in ALL[:3]} == {1.0}
    query, key = np.random.default_rng(1).normal(size=(2, 1, 8)).astype(np.float32)
    place = jnp.asarray([3])
    one = dataclasses.replace(YARN, attention_factor=1.0)
    plain, sharper = (
        pf.rotate_pairs(query, place, scaling=how) @ pf.rotate_pairs(key, place, scaling=how).T for how in (one, YARN)
    )
    np.testing.assert_allclose(sharper, 1.1386294**2 * plain, rtol=1e-5)


def test_a_factor_of_one_changes_nothing():
    for scaling in ALL:
        np.testing.assert_allclose(type(scaling)(factor=1.0).slowed(SPEEDS), SPEEDS, rtol=1e-12)


@pytest.mark.equation("eq-serving-yarn")
def test_yarn_keeps_the_speed_of_a_pair_that_is_alone():
    """As of the first of several; so that keys of two columns turn, too."""
    np.testing.assert_array_equal(YARN.slowed(np.ones(1)), [1.0])
    stack = StackConfig(d_model=6, num_heads=3, num_layers=1, position_scheme="rotary", rope_scaling=YARN)
    assert np.isfinite(pf.Decoder(pf.DecoderConfig(5, 4, stack), key=jax.random.key(0))(jnp.asarray([3, 1, 4]))).all()


@pytest.mark.parametrize("scaling", [PARTS, YARN])
def test_scores_depend_on_distances_alone(scaling):
    query, key = np.random.default_rng(2).normal(size=(2, 1, 8)).astype(np.float32)
    scheme = pf.RotaryPositions(scaling=scaling)

    def score(n, m):
        return float((scheme.rotate(query, jnp.asarray([n])) @ scheme.rotate(key, jnp.asarray([m])).T)[0, 0])

    assert abs(score(40, 13) - score(67, 40)) < 1e-4
    assert abs(score(40, 13) - score(40, 14)) > 1e-2


@pytest.mark.parametrize("scaling", [NTK, YARN])
def test_a_model_with_a_cache_agrees_with_one_without_and_is_loaded_as_it_was(scaling, tmp_path):
    stack = StackConfig(d_model=24, num_layers=2, num_heads=3, position_scheme="rotary", rope_scaling=scaling)
    model = pf.Decoder(pf.DecoderConfig(11, 20, stack=stack), key=jax.random.key(0))
    ids = jnp.asarray([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8])
    rows, cache = model.extend(ids[:7], model.make_cache())
    following, _ = model.extend(ids[7:], cache)
    np.testing.assert_allclose(model.logits(jnp.concatenate([rows, following])), model(ids), rtol=1e-4, atol=1e-5)
    pf.save_model(tmp_path / "model.safetensors", model)
    again = pf.load_model(tmp_path / "model.safetensors", pf.Decoder)
    assert again.config == model.config
    np.testing.assert_array_equal(again(ids), model(ids))


@pytest.mark.parametrize(
    "call",
    [
        *(functools.partial(type(each), factor=0.5) for each in ALL),
        lambda: pf.positions.YarnScaling(factor=2.0, slow_turns=40.0),
        lambda: pf.positions.YarnScaling(factor=2.0, attention_factor=0.0),
    ],
)
def test_scaling_that_makes_no_sense_is_refused(call):
    with pytest.raises(ValueError, match=r"factor|slow_turns"):
        call()


@pytest.mark.usefixtures("unchecked")
def test_something_else_is_no_scaling():
    for call in (
        lambda: StackConfig(position_scheme="rotary", rope_scaling=4.0),
        lambda: pf.RotaryPositions(scaling={"factor": 4.0}),
        lambda: pf.rotate_pairs(np.ones((5, 12), np.float32), np.arange(5), scaling=4),
    ):
        with pytest.raises(TypeError, match="scaling is of type"):
            call()
