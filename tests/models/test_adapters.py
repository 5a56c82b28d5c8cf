"""Adapters: at first they change nothing, they alone are trained, and they can be added in or saved alone."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toy_models import drawn

import plainformer as pf
from plainformer.models import AdaptedLinear, add_adapters, is_adapter, load_adapters, merge_adapters, save_adapters
from plainformer.training.arrays import read_arrays, to_bytes

KEY = jax.random.key(0)
STACK = pf.StackConfig(d_model=12, num_layers=2, num_heads=3, d_ff=10)
IDS = jnp.asarray([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])
BATCH = pf.data.Windows(IDS[:, :-1], IDS[:, 1:])


def decoder(seed=0):
    return drawn(pf.Decoder, pf.DecoderConfig(11, 16, STACK), seed)


def trained(model, num_steps=20):
    config = pf.TrainingConfig(num_steps=num_steps, learning_rate=0.03, warmup_steps=1)
    how = {"progress": False, "trainable": is_adapter}
    return pf.fit(model, pf.training.next_token_loss, lambda step: BATCH, config, **how)


def test_at_first_nothing_changes_and_then_only_adapters_do():
    model = decoder()
    adapted = add_adapters(model, 2, key=KEY)
    np.testing.assert_array_equal(adapted(IDS), model(IDS))
    found, metrics = trained(adapted)
    assert metrics[-1]["loss"] < metrics[0]["loss"] - 0.1
    before, after = pf.training.named_arrays(adapted), pf.training.named_arrays(found)
    changed = {name for name in before if not np.array_equal(before[name], after[name])}
    assert changed == {name for name in before if is_adapter(name)}
    assert len(changed) == 2 * 2 * STACK.num_layers


def test_adapters_of_any_model_with_linear_maps():
    config = pf.EncoderConfig(context_len=16, vocab_size=11, stack=STACK)
    model = pf.MaskedLanguageModel(config, key=KEY)
    adapted = add_adapters(model, 1, where="head", key=KEY)
    assert isinstance(adapted.head, AdaptedLinear)
    np.testing.assert_array_equal(adapted(IDS), model(IDS))


@pytest.mark.parametrize(
    ("where", "chosen"),
    [
        (["attention.query", "attention.value"], lambda place: "query" in place or "value" in place),
        ("up", lambda place: place.endswith(".up")),
        (("stack.blocks.1", "down"), lambda place: "blocks.1." in place or place.endswith(".down")),
        ("stack.blocks.0.attention.query", lambda place: place == "stack.blocks.0.attention.query"),
    ],
)
def test_names_mean_every_place_that_they_are_a_part_of(where, chosen):
    def adapted(where):
        return set(pf.training.named_arrays(add_adapters(decoder(), 2, where=where, key=KEY)))

    assert adapted(where) == adapted(chosen)


def test_adapters_are_saved_alone(tmp_path):
    path = tmp_path / "adapters.safetensors"
    model = decoder()
    found, _ = trained(add_adapters(model, 2, key=KEY))
    save_adapters(path, found)
    assert path.stat().st_size < 4000
    again = load_adapters(path, add_adapters(model, 2, key=jax.random.key(7)))
    np.testing.assert_array_equal(again(IDS), found(IDS))


def test_adapters_that_do_not_fit_are_refused(tmp_path):
    path, model = tmp_path / "adapters.safetensors", decoder()
    adapted = add_adapters(model, 2, key=KEY)
    save_adapters(path, adapted)
    for other in (add_adapters(decoder(1), 2, key=KEY), add_adapters(model, 3, key=KEY), model):
        with pytest.raises(ValueError, match=r"of another model|do not fit"):
            load_adapters(path, other)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ValueError, match="damaged"):
        load_adapters(path, adapted)
    pf.save_model(tmp_path / "model.safetensors", model)
    with pytest.raises(ValueError, match="holds no adapters"):
        load_adapters(tmp_path / "model.safetensors", adapted)
    with pytest.raises(FileNotFoundError, match="none"):
        load_adapters(tmp_path / "none.safetensors", adapted)


def test_adapters_of_another_scale_are_refused_and_files_that_say_none_still_load(tmp_path):
    path, adapted = tmp_path / "adapters.safetensors", add_adapters(decoder(), 2, scale=0.5, key=KEY)
    save_adapters(path, adapted)
    said = r"scale=0\.5 at stack\.blocks\.0\.attention\.query, and this model has 2\.0 there"
    with pytest.raises(ValueError, match=said):
        load_adapters(path, add_adapters(decoder(), 2, key=KEY))
    arrays, header = read_arrays(path, "config")
    config = json.loads(header["config"])
    assert set(config.pop("scales").values()) == {0.5}
    path.write_bytes(to_bytes(arrays, {"config": json.dumps(config)}))  # as it was written before
    for name, array in pf.training.named_arrays(load_adapters(path, adapted)).items():
        np.testing.assert_array_equal(array, pf.training.named_arrays(adapted)[name])


@pytest.mark.usefixtures("unchecked")
def test_what_cannot_be_adapted_is_refused(tmp_path):
    model = decoder()
    with pytest.raises(ValueError, match="No linear map is chosen"):
        add_adapters(model, 2, where=lambda place: False, key=KEY)
    with pytest.raises(ValueError, match=r"No linear map is chosen"):
        add_adapters(model, 2, where=[], key=KEY)
    with pytest.raises(ValueError, match=r"where has 'attention\.query2', .* such as \['attention\.query',"):
        add_adapters(model, 2, where=["attention.value", "attention.query2"], key=KEY)
    for wrong in (3, {"query"}, [1], b"query"):
        with pytest.raises(TypeError, match=r"where is .*; expected names, such as \['attention\.query'"):
            add_adapters(model, 2, where=wrong, key=KEY)
    with pytest.raises(ValueError, match=r"attention\.query has an adapter"):
        add_adapters(add_adapters(model, 2, key=KEY), 2, key=KEY)
    with pytest.raises(ValueError, match="rank is 11"):
        add_adapters(model, 11, where=lambda place: place.endswith(".up"), key=KEY)
    with pytest.raises(ValueError, match="has no adapters"):
        save_adapters(tmp_path / "adapters.safetensors", model)
    with pytest.raises(ValueError, match="has no adapters"):
        merge_adapters(model)


def test_experts_are_no_linear_maps_of_their_own():
    experts = pf.blocks.ExpertsConfig(num_experts=4, per_token=2, width=6, shared=1)
    stack = pf.StackConfig(d_model=12, num_layers=1, num_heads=3, experts=experts)
    model = pf.Decoder(pf.DecoderConfig(11, 9, stack), key=jax.random.key(0))
    adapted = pf.models.add_adapters(model, 2, where=lambda place: "feed_forward" in place, key=jax.random.key(1))
    places = {name.rsplit(".", 2)[0] for name in pf.training.named_arrays(adapted) if "adapter" in name}
    at = "stack.blocks.0.feed_forward"
    assert {place for place in places if "networks" in place} == set()
    assert any(place.startswith(f"{at}.shared") for place in places)
    with pytest.raises(ValueError, match="No linear map is chosen"):
        pf.models.add_adapters(model, 2, where=lambda place: "networks" in place, key=jax.random.key(1))
