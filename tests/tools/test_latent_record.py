"""The recorded trainings of chapter 20 with grouped heads and short vectors: the card, and sizes."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import train_latent
from book import ROOT

import plainformer as pf
from plainformer.models.accounting import cache_bytes

RECORDED = pf.data.load_record("latent")
ALL = RECORDED["runs"] + [run for runs in RECORDED["knobs"].values() for run in runs]


def test_card_says_what_was_recorded():
    assert train_latent.card(RECORDED) == (ROOT / "models" / "latent.md").read_text(encoding="utf-8")


def test_every_run_of_the_script_is_recorded():
    asked = train_latent.grid() + [run for runs in train_latent.knobs().values() for run in runs]
    assert [dataclasses.asdict(run) for run in asked] == [
        {name: run[name] for name in dataclasses.asdict(asked[0])} for run in ALL
    ]
    assert RECORDED["writing"].keys() == train_latent.KINDS.keys()


@pytest.mark.parametrize("found", ALL[::3])
def test_recorded_sizes_are_those_of_the_models(found):
    run = train_latent.Run(**{field.name: found[field.name] for field in dataclasses.fields(train_latent.Run)})
    config = pf.DecoderConfig(train_latent.WORDS, train_latent.LENGTH + 1, run.stack)
    model = eqx.filter_eval_shape(lambda key: pf.Decoder(config, key=key), jax.random.key(0))
    assert pf.count_parameters(model) == found["parameters"]
    assert cache_bytes(run.stack, 1) == found["cache"]


def test_models_differ_by_the_norms_of_short_vectors_alone():
    sizes = {(run["kind"], run["size"]): run["parameters"] for run in RECORDED["runs"]}
    full = sizes["grouped", 8]
    for (kind, size), found in sizes.items():
        assert found - full == (train_latent.LAYERS * size if kind == "latent" else 0)
    assert max(sizes.values()) - full == RECORDED["norms"]


def test_expanded_keys_and_values_give_what_the_absorbed_form_gives():
    stack = pf.StackConfig(**train_latent.WRITING, **train_latent.KINDS["latent"], position_scheme="rotary")
    model = pf.Decoder(pf.DecoderConfig(11, 9, stack), key=jax.random.key(0))
    expanded, tokens = train_latent.with_expanded(model), jnp.arange(6)
    found = expanded.logits(expanded.extend(tokens, expanded.make_cache())[0])
    np.testing.assert_allclose(found, expanded(tokens), rtol=1e-4, atol=1e-4)
