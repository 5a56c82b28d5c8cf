"""Caches are rounded as the package rounds them, and both ways of serving write the same."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from lab.caches import run as caches_run
from plainformer.attention import quantise_groups

record = pf.data.load_record
LOSSES = record("caches")["losses"]
CHANNEL, TOKEN = (f"keys by {axis}, values by token" for axis in ("channel", "token"))


def test_caches_are_rounded_as_the_package_does_and_lose_what_was_computed_at_once(monkeypatch):
    """One token at a time with a cache of 4 bits, and all at once with the newest group exact."""
    numbers = jnp.asarray(np.random.default_rng(0).normal(size=(5, 3, 8)), jnp.float32)
    np.testing.assert_allclose(caches_run.rounded(numbers, 15.0), quantise_groups(numbers, 4).numbers(), atol=1e-6)
    monkeypatch.setattr(caches_run, "NUM_TEXTS", 3)
    ids, way = caches_run.texts_of("stories", 0), caches_run.WAYS[2]
    with jax.numpy_dtype_promotion("standard"):
        whole, more = caches_run.losses_of("stories", 0, [way]).values()
    assert whole + more == pytest.approx(caches_run.loss_by_cache("stories", ids, *way[:2]), abs=2e-4)


@pytest.mark.parametrize("name", ["stories", "docstrings"])  # with ALiBi, and with rotary positions
def test_large_channels_leave_a_model_what_it_is(name):
    model, _ = pf.load_pretrained(name)
    ids = jnp.asarray(np.random.default_rng(0).integers(0, 40, (2, 11)))
    large = caches_run.with_large_channels(model)
    np.testing.assert_allclose(large(ids), model(ids), rtol=1e-3, atol=1e-3)
    keys = [pf.look(each, ids)[1]["stack.blocks.1.attention.keys"] for each in (model, large)]
    np.testing.assert_allclose(keys[1][..., 0], caches_run.FACTOR * keys[0][..., 0], rtol=1e-3, atol=1e-3)


def test_both_ways_of_serving_wrote_the_same_and_joining_took_fewer_steps():
    for one in (one for seeds in record("caches")["serving"].values() for one in seeds.values()):
        assert one["same texts"]
        assert one["steps"]["joins"] < one["steps"]["waits"]


def cost(name: str, way: str) -> np.ndarray:
    """By how many nats per token a way of keeping raises the loss of a model, for each of the two samples."""
    bits, _, rest = way.partition(" bits, ")
    return np.array([sample[f"{bits} bits, groups of 32, {rest}"] for sample in LOSSES[name]])


def test_8_bits_move_no_loss_and_4_bits_raise_none_by_channel():
    for sample in (sample for samples in LOSSES.values() for sample in samples):
        assert all(abs(found) <= 1e-4 for way, found in sample.items() if way.startswith("8 bits"))
        assert all(found < 0.004 for way, found in sample.items() if way.startswith("4 bits") and CHANNEL in way)


def test_with_2_bits_keys_by_token_cost_more_than_keys_by_channel():
    assert all((cost(name, f"2 bits, {TOKEN}") > cost(name, f"2 bits, {CHANNEL}")).all() for name in LOSSES)


def test_most_of_what_keys_by_token_cost_goes_if_the_newest_are_exact():
    whole, exact = (cost("docstrings", f"2 bits, {TOKEN}{newest}") for newest in ("", ", newest exact"))
    assert (exact < whole / 10).all()


def test_with_the_newest_exact_keys_by_channel_lose_half_as_much_in_two_models_of_three():
    ratios = {
        name: cost(name, f"2 bits, {CHANNEL}, newest exact") / cost(name, f"2 bits, {TOKEN}, newest exact")
        for name in LOSSES
    }
    assert max(ratios[name].max() for name in ("shakespeare", "docstrings")) < 0.55
    assert ratios["stories"].min() < 1 < ratios["stories"].max()


def test_values_by_channel_make_no_clear_difference():
    by_token, by_channel = (
        np.stack([cost(name, f"2 bits, keys by channel, values by {axis}, newest exact") for name in LOSSES])
        for axis in ("token", "channel")
    )
    assert 0 < (by_channel < by_token).sum() < by_token.size
