"""The recorded caches of chapter 21: the card, and what can be measured again in a moment."""

import caches_record
import jax.numpy as jnp
import numpy as np
import pytest
from book import ROOT

import plainformer as pf
from plainformer.attention import quantise_groups

RECORDED = pf.data.load_record("caches")


def test_card_says_what_was_recorded():
    assert caches_record.card(RECORDED) == (ROOT / "models" / "caches.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("bits", [8, 4])
def test_the_record_rounds_as_the_package_does(bits):
    numbers = jnp.asarray(np.random.default_rng(0).normal(size=(5, 3, 8)), jnp.float32)
    with_numbers = quantise_groups(numbers, bits).numbers()
    np.testing.assert_allclose(caches_record.rounded(numbers, 2.0**bits - 1), with_numbers, atol=1e-6)


def test_a_model_that_reads_by_the_package_loses_what_was_computed_at_once(monkeypatch):
    """One token at a time with a cache of 4 bits, and all at once with the newest group exact."""
    monkeypatch.setattr(caches_record, "NUM_TEXTS", 3)
    ids = caches_record.texts_of("stories", 0)
    way = caches_record.WAYS[2]
    with caches_record.jax.numpy_dtype_promotion("standard"):
        found = caches_record.losses_of("stories", 0, [way])
    (name, more) = list(found.items())[1]
    assert name == "4 bits, groups of 32, keys by channel, values by token"
    assert found["32 bits"] + more == pytest.approx(caches_record.loss_by_cache("stories", ids, *way[:2]), abs=2e-4)


def test_the_stories_lose_what_was_recorded():
    way = caches_record.WAYS[5]
    with caches_record.jax.numpy_dtype_promotion("standard"):
        found = caches_record.losses_of("stories", 1, [way])
    for name, nats in found.items():
        assert RECORDED["losses"]["stories"][1][name] == pytest.approx(nats, abs=2e-3)


def test_all_ways_and_both_samples_are_recorded():
    assert list(RECORDED["losses"]) == ["stories", "shakespeare", "docstrings"]
    for samples in RECORDED["losses"].values():
        assert [len(sample) for sample in samples] == 2 * [1 + len(caches_record.WAYS)]


def test_large_channels_leave_a_model_what_it_is(monkeypatch):
    for name in ("stories", "docstrings"):  # with ALiBi, and with rotary positions
        model, _ = pf.load_pretrained(name)
        ids = jnp.asarray(np.random.default_rng(0).integers(0, 40, (2, 11)))
        large = caches_record.with_large_channels(model)
        np.testing.assert_allclose(large(ids), model(ids), rtol=1e-3, atol=1e-3)
        keys = [pf.look(each, ids)[1]["stack.blocks.1.attention.keys"] for each in (model, large)]
        np.testing.assert_allclose(keys[1][..., 0], caches_record.FACTOR * keys[0][..., 0], rtol=1e-3, atol=1e-3)


def test_both_ways_of_serving_wrote_the_same_and_joining_took_fewer_steps():
    for seeds in RECORDED["serving"].values():
        for one in seeds.values():
            lengths, steps = one["lengths"], one["steps"]
            assert one["same texts"]
            assert len(lengths) == 36
            assert (sum(lengths) - len(lengths)) / caches_record.PLACES <= steps["joins"] < steps["waits"]
