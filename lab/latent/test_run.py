"""Keys and values that are expanded give what the absorbed form gives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from lab.latent import run as latent_run

RECORD = pf.data.load_record("latent")


def test_expanded_keys_and_values_give_what_the_absorbed_form_gives():
    stack = pf.StackConfig(**latent_run.WRITING, **latent_run.KINDS["latent"], position_scheme="rotary")
    model = pf.Decoder(pf.DecoderConfig(11, 9, stack), key=jax.random.key(0))
    expanded, tokens = latent_run.with_expanded(model), jnp.arange(6)
    found = expanded.logits(expanded.extend(tokens, expanded.make_cache())[0])
    np.testing.assert_allclose(found, expanded(tokens), rtol=1e-4, atol=1e-4)


def above(runs: list[dict], kind: str, size: int) -> np.ndarray:
    """Nats above the floor, by seed."""
    return np.array([run["above"] for run in runs if (run["kind"], run["size"]) == (kind, size)])


def knob(name: str) -> list[float]:
    """Nats above the floor of full heads, one shared head and the short vector, with a knob turned."""
    return [run["above"] for run in RECORD["knobs"][name]]


def test_two_heads_and_one_head_and_a_vector_of_28_lose_to_full_heads_with_each_seed():
    full = above(RECORD["runs"], "grouped", 8)
    for kept in (("grouped", 2), ("grouped", 1), ("latent", 28)):
        assert (above(RECORD["runs"], *kept) > full).all(), kept
    for kept in (("grouped", 4), ("latent", 60), ("latent", 12)):
        assert 0 < (above(RECORD["runs"], *kept) > full).sum() < 3, kept


@pytest.mark.parametrize("name", ["five times the steps", "half the width"])
def test_full_heads_are_ahead_after_five_times_the_steps_and_at_half_the_width(name):
    full, *others = knob(name)
    assert full + 0.01 < min(others)


def test_a_short_vector_is_level_with_one_shared_head_or_behind_it():
    level = 0.003
    for name in ("five times the steps", "half the width"):
        _, head, vector = knob(name)
        assert abs(vector - head) < level, name
    for name in ("rate 0.003", "rate 0.012"):
        _, head, vector = knob(name)
        assert vector > head + level, name


def test_a_short_vector_is_level_with_full_heads_after_twice_the_steps():
    full, vector = knob("twice the steps")
    assert abs(vector - full) < 0.003


def test_a_short_vector_writes_twice_as_fast_as_full_heads_and_slower_than_one_head():
    full, head, vector = (RECORD["writing"][way]["milliseconds"] for way in ("full", "one head", "latent"))
    assert head < vector < full / 2


def test_keys_and_values_that_are_expanded_take_thirty_times_as_long():
    vector, expanded = (RECORD["writing"][way]["milliseconds"] for way in ("latent", "latent, expanded"))
    assert expanded / vector == pytest.approx(30, abs=3)
