"""Adapters: at first they change nothing, they alone are trained, and they can be added in or saved alone."""

import dataclasses
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toy_models import drawn

import plainformer as pf
from plainformer.models import AdaptedLinear, add_adapters, is_adapter, load_adapters, merge_adapters, save_adapters
from plainformer.training.arrays import named_arrays, read_arrays, to_bytes, with_arrays

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


def drawn_adapters(model):
    """The model with other numbers in its adapters."""
    numbers = np.random.default_rng(3)
    drawn = {name: 0.3 * numbers.normal(size=a.shape) for name, a in named_arrays(model).items() if is_adapter(name)}
    cast = {name: jnp.asarray(array, named_arrays(model)[name].dtype) for name, array in drawn.items()}
    return with_arrays(model, named_arrays(model) | cast)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_beside_16_bits_adapters_change_nothing_at_first_and_merge_into_16_bits(dtype):
    model = in_dtype(decoder(), dtype)
    with jax.numpy_dtype_promotion("standard"):
        adapted = add_adapters(model, 2, where="stack", key=KEY)
        said = adapted(IDS)
        assert said.dtype == dtype
        np.testing.assert_array_equal(said, model(IDS))
        tuned = drawn_adapters(adapted)
        merged = merge_adapters(tuned)
        assert {array.dtype for array in named_arrays(merged).values()} == {jnp.dtype(dtype)}
        beside, inside = (np.asarray(each(IDS), np.float64) for each in (tuned, merged))
    assert np.abs(beside - np.asarray(said, np.float64)).max() > 0.1 * np.abs(beside).max()
    assert np.abs(inside - beside).max() <= 8 * float(jnp.finfo(dtype).eps) * np.abs(beside).max()


def in_dtype(model, dtype, chosen=lambda place: True):
    """The model with arrays of another dtype in places of which a function says so."""

    def cast(path, leaf):
        is_meant = eqx.is_inexact_array(leaf) and chosen(jax.tree_util.keystr(path))
        return leaf.astype(dtype) if is_meant else leaf

    return jax.tree_util.tree_map_with_path(cast, model)


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
    for other, says in (
        (add_adapters(decoder(1), 2, key=KEY), "of another model"),
        (add_adapters(model, 3, key=KEY), r"do not fit: .* Were rank and `where` others\?"),
        (in_dtype(adapted, jnp.bfloat16, is_adapter), r"do not fit: .* Only dtypes differ"),
        (model, r"This Decoder has no adapters; expected some\. Try add_adapters\(model, rank=2, …\) first"),
    ):
        with pytest.raises(ValueError, match=says):
            load_adapters(path, other)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ValueError, match="damaged"):
        load_adapters(path, adapted)
    pf.save_model(tmp_path / "model.safetensors", model)
    with pytest.raises(ValueError, match="holds no adapters"):
        load_adapters(tmp_path / "model.safetensors", adapted)
    with pytest.raises(FileNotFoundError, match="none"):
        load_adapters(tmp_path / "none.safetensors", adapted)


def test_adapters_of_a_model_with_the_same_numbers_and_another_configuration_are_refused(tmp_path):
    path, model = tmp_path / "adapters.safetensors", decoder()
    save_adapters(path, add_adapters(model, 2, key=KEY))
    other = dataclasses.replace(model.config, stack=dataclasses.replace(STACK, activation="relu"))
    same = with_arrays(pf.Decoder(other, key=KEY), named_arrays(model))
    with pytest.raises(ValueError, match=r"another configuration: stack\.activation was .* and is relu; expected"):
        load_adapters(path, add_adapters(same, 2, key=KEY))


def test_no_other_file_is_replaced_by_adapters_and_none_of_theirs_is_taken_for_a_model(tmp_path):
    path, model = tmp_path / "model.safetensors", decoder()
    adapted = add_adapters(model, 2, key=KEY)
    pf.save_model(path, model)
    with pytest.raises(FileExistsError, match=r"model\.safetensors holds no adapters; expected a new file"):
        save_adapters(path, adapted)
    np.testing.assert_array_equal(pf.load_model(path, pf.Decoder)(IDS), model(IDS))
    for each in (adapted, drawn_adapters(adapted)):  # the second in place of the first
        save_adapters(tmp_path / "adapters.safetensors", each)
    with pytest.raises(FileExistsError, match=r"adapters\.safetensors holds adapters; expected a new file"):
        pf.save_model(tmp_path / "adapters.safetensors", model)
    with pytest.raises(
        ValueError, match=r"holds adapters; expected the model Decoder\. .* by load_adapters\(path, add_"
    ):
        pf.load_model(tmp_path / "adapters.safetensors", pf.Decoder)


def test_adapters_of_another_scale_are_refused_and_files_that_say_none_still_load(tmp_path):
    path, adapted = tmp_path / "adapters.safetensors", add_adapters(decoder(), 2, scale=0.5, key=KEY)
    save_adapters(path, adapted)
    said = r"scale=0\.5 at stack\.blocks\.0\.attention\.query, and this model has 2\.0 there"
    with pytest.raises(ValueError, match=said):
        load_adapters(path, add_adapters(decoder(), 2, key=KEY))
    arrays, header = read_arrays(path, "config")
    config = json.loads(header["config"])
    assert set(config.pop("scales").values()) == {0.5}
    assert config.pop("config")["vocab_size"] == 11
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
    for close in ("", "weight"):
        with pytest.raises(ValueError, match=r"where has .* such as \['stack\.blocks\.0\.attention\.query',"):
            add_adapters(model, 2, where=close, key=KEY)
    with pytest.raises(ValueError, match="This LayerNorm has no linear map"):
        add_adapters(model.stack.final_norm, 2, key=KEY)
    with pytest.raises(TypeError, match="layer is of type TokenEmbedding; expected a Linear"):
        AdaptedLinear(model.embedding, 2, 1.0, key=KEY)
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
    with pytest.raises(ValueError, match=r"layer has matrices of shape \(4, 12, 6\); expected a single one"):
        AdaptedLinear(model.stack.blocks[0].feed_forward.networks.up, 2, 1.0, key=KEY)
