"""A model trained on eight devices is the model that one device trains."""

import dataclasses
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from on_devices import CONFIG, CONFIGS, LOSSES, batch_at, losses, losses_on_one, new_mesh, new_model, shard, train

import plainformer as pf
from plainformer.training.sharding import DATA, EXPERTS, FULLY_SHARDED, SEQUENCE, TENSOR, Layout
from plainformer.training.step import make_train_step

# Rows and columns of devices; what is cut; whether the mesh is as `jax.make_mesh` makes it.
WAYS = {
    "one": (1, 1, FULLY_SHARDED | TENSOR, "Explicit"),
    "data": (8, 1, DATA, "Explicit"),
    "fully sharded": (8, 1, FULLY_SHARDED, "Auto"),
    "both": (4, 2, FULLY_SHARDED | TENSOR, "Explicit"),
    "default": (2, 4, None, "Auto"),
    "sequence": (2, 4, FULLY_SHARDED | SEQUENCE, "Explicit"),
    "tensor": (1, 8, TENSOR, "Explicit"),
    "experts": (1, 8, EXPERTS, "Explicit"),
    "all three": (4, 2, FULLY_SHARDED | TENSOR | EXPERTS, "Auto"),
}


# Every model on every mesh, and the two that differ from others by their table alone with one model.
FEW = {"experts": ("both", "tensor", "experts", "all three"), "delta": ("both", "tensor")}
OTHERS = ("one", "fully sharded", "both", "sequence", "tensor")
PAIRS = [(kind, way) for kind in CONFIGS for way in FEW.get(kind, OTHERS)]
PAIRS += [("decoder", "data"), ("decoder", "default")]


@pytest.mark.parametrize(("kind", "way"), PAIRS)
def test_losses_on_a_mesh_are_those_of_one_device(kind, way):
    rows, columns, table, axes = WAYS[way]
    found = train(kind, mesh=new_mesh(rows, columns, axes), sharding=table)
    np.testing.assert_allclose(losses(found), losses_on_one(kind), rtol=0, atol=1e-5)
    assert np.ptp(losses(found)) > 0.01
    whole = sum(array.size for array in jax.tree.leaves(found.model) if hasattr(array, "size"))
    held = sum(np.prod(shard(array)) for array in jax.tree.leaves(found.model) if hasattr(array, "size"))
    most = {"one": 1, "data": 1, "fully sharded": 0.2, "both": 0.25, "default": 0.5, "sequence": 0.55, "tensor": 0.4}
    most |= {"experts": 0.55, "all three": 0.25}
    assert held <= most[way] * whole
    assert way in ("one", "data") or held < 0.6 * whole


def test_weights_heads_and_texts_are_cut_over_three_axes():
    mesh, table = jax.make_mesh((2, 2, 2), ("data", "model", "text")), FULLY_SHARDED | TENSOR | {"seq": "text"}
    found = train("grouped", mesh=mesh, sharding=table)
    np.testing.assert_allclose(losses(found), losses_on_one("grouped"), rtol=0, atol=1e-5)


def after_a_step(kind, mesh, table, config=CONFIG):
    """What devices hold after one step: the model, what the optimiser remembers, and what was measured."""
    params, static = eqx.partition(new_model(kind), eqx.is_inexact_array)
    layout, step = Layout(mesh, table), make_train_step(LOSSES[kind], static, config, mesh=mesh, sharding=table)
    params = jax.tree.map(jnp.copy, params)  # a step writes its results where its arguments lay
    state = layout.place((params, pf.training.make_optimiser(config).init(params)))
    return step(*state, layout.place_batch(batch_at(kind, 0)), 0)


def is_model(part) -> bool:
    return isinstance(part, pf.Decoder)


def test_arrays_are_cut_by_their_names():
    params, memory, metrics = after_a_step("decoder", new_mesh(4, 2), FULLY_SHARDED | TENSOR)
    moments = [part for part in jax.tree.leaves(memory, is_leaf=is_model) if is_model(part)]
    assert len(moments) == 2
    for found in (params, *moments):
        block = found.stack.blocks[0]
        assert shard(found.embedding.weight) == (40 // 2, 32 // 4)
        assert shard(found.stack.scheme.table) == (24, 32 // 4)
        assert shard(block.attention.query.weight) == (32 // 4, 32 // 2)
        assert shard(block.attention.query.bias) == (32 // 2,)
        assert shard(block.attention.output.weight) == (32 // 2, 32 // 4)
        assert shard(block.feed_forward.up.weight) == (32 // 4, 48 // 2)
        assert shard(block.feed_forward.down.weight) == (48 // 2, 32 // 4)
        assert shard(block.feed_forward.down.bias) == (32 // 4,)
    assert metrics["loss"].sharding.is_fully_replicated


def test_experts_are_cut_by_their_number_or_within_each():
    for table, up in [(FULLY_SHARDED | TENSOR, (8, 8, 8)), (EXPERTS, (4, 32, 16)), (TENSOR | EXPERTS, (4, 32, 16))]:
        placed = Layout(new_mesh(4, 2), table).place(new_model("experts")).stack.blocks[0].feed_forward
        assert shard(placed.networks.up.weight) == up
        assert shard(placed.networks.up.bias) == (up[0], up[2])
        assert shard(placed.networks.down.weight) == (up[0], up[2], up[1])
        assert shard(placed.choice_bias) == ((4,) if "experts" in table else (8,))


def test_states_are_cut_by_heads():
    layer = Layout(new_mesh(1, 8), TENSOR).place(new_model("delta")).stack.blocks[0].attention
    assert {shard(part.weight) for part in (layer.query, layer.key, layer.value, layer.gate)} == {(32, 4)}
    assert shard(layer.beta.weight) == shard(layer.factor.weight) == (32, 1)
    assert (shard(layer.output.weight), shard(layer.log_rate)) == ((4, 32), (1,))


def test_fewer_heads_of_keys_than_of_queries_stay_whole():
    params, *_ = after_a_step("grouped", new_mesh(1, 8), TENSOR)
    attention = params.stack.blocks[0].attention
    assert [shard(part.weight) for part in (attention.query, attention.key)] == [(32, 32 // 8), (32, 8)]
    assert shard(params.output.weight) == (32, 40 // 8)


@pytest.mark.parametrize(("table", "expected"), [(DATA, (4, 24)), (DATA | SEQUENCE, (4, 12)), (SEQUENCE, (16, 12))])
def test_batches_are_cut_by_rows_and_tokens(table, expected):
    placed = Layout(new_mesh(4, 2), table).place_batch(batch_at("decoder", 0))
    assert {shard(array) for array in placed} == {expected}
    np.testing.assert_array_equal(placed.inputs, batch_at("decoder", 0).inputs)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_parts_of_a_batch_weigh_as_targets_count_on_all_devices(precision):
    config = dataclasses.replace(CONFIG, accumulation_steps=2, precision=precision, num_steps=6)
    seen = []

    def noting(model, batch, key):
        seen.append(model.embedding.weight.dtype.name)
        return LOSSES["decoder"](model, batch, key)

    on_mesh = pf.fit(
        new_model("decoder"),
        noting,
        lambda step: batch_at("decoder", step),
        config,
        progress=False,
        mesh=new_mesh(4, 2),
    )
    exact = {"float32": 1e-5, "bfloat16": 0.005}[precision]
    np.testing.assert_allclose(losses(on_mesh), losses_on_one("decoder", config), rtol=0, atol=exact)
    assert set(seen) == {precision}
    assert {leaf.dtype.name for leaf in jax.tree.leaves(on_mesh.model) if hasattr(leaf, "dtype")} == {"float32"}


def test_weights_and_moments_stay_in_32_bits_where_products_have_16():
    config = dataclasses.replace(CONFIG, precision="bfloat16")
    found = after_a_step("decoder", new_mesh(8, 1), None, config)
    floats = [leaf for leaf in jax.tree.leaves(found) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    assert {leaf.dtype.name for leaf in floats} == {"float32"}


@pytest.mark.parametrize("anew", ["blocks", "all but products"])
def test_what_is_computed_anew_gives_the_same_losses(anew):
    config = dataclasses.replace(CONFIG, rematerialise=anew)
    found = train("grouped", config, mesh=new_mesh(4, 2), sharding=FULLY_SHARDED | TENSOR)
    np.testing.assert_allclose(losses(found), losses_on_one("grouped"), rtol=0, atol=1e-5)


# --- checkpoints -----------------------------------------------------------------------------------------------


def test_a_run_goes_on_on_another_mesh(tmp_path):
    def constant(step):
        return 0.01

    def part(num_steps, **options):
        config = dataclasses.replace(CONFIG, num_steps=num_steps)
        return train("decoder", config, schedule=constant, directory=tmp_path, **options)

    whole = losses(train("decoder", schedule=constant))
    part(7, mesh=new_mesh(4, 2), sharding=FULLY_SHARDED | TENSOR)
    part(13)
    found = part(20, mesh=new_mesh(1, 8), sharding=TENSOR)
    np.testing.assert_allclose(losses(found), whole, rtol=0, atol=1e-5)
    assert shard(found.model.stack.blocks[0].attention.query.weight) == (32, 4)
    assert pf.training.list_checkpoints(tmp_path) == [7, 13, 20]


def test_what_another_optimiser_remembers_may_have_other_shapes_than_the_model():
    config, optimiser = dataclasses.replace(CONFIG, num_steps=4), optax.adafactor(0.01)
    found = train("decoder", config, optimiser=optimiser, mesh=new_mesh(4, 2), sharding=FULLY_SHARDED | TENSOR)
    np.testing.assert_allclose(losses(found), losses(train("decoder", config, optimiser=optimiser)), rtol=0, atol=1e-5)


def test_muon_on_a_mesh_is_that_of_one_device():
    config = dataclasses.replace(CONFIG, num_steps=4, optimiser="muon")
    found = train("decoder", config, mesh=new_mesh(4, 2), sharding=FULLY_SHARDED | TENSOR)
    np.testing.assert_allclose(losses(found), losses(train("decoder", config)), rtol=0, atol=1e-5)


# --- bad input -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("inputs", r"^ids\[13, 4\] is 99; expected 0 to 39, as there are 40 tokens"),
        ("targets", r"^targets\[13, 4\] is 99; expected 0 to 39, as there are 40 logits"),
    ],
)
def test_an_id_out_of_range_on_one_device_is_named_at_once_and_nothing_is_lost(tmp_path, part, message):
    at = {}

    def batches(step):
        batch, at["step"], at["time"] = batch_at("decoder", step), step, time.process_time()
        if step < 5:
            return batch
        return batch._replace(**{part: getattr(batch, part).at[13, 4].set(99)})  # one device holds rows 12 and 13

    config = dataclasses.replace(CONFIG, checkpoint_every=5)
    with pytest.raises(ValueError, match=message):
        train("decoder", config, batches=batches, mesh=new_mesh(8, 1), directory=tmp_path)

    assert time.process_time() - at["time"] < 2
    assert at["step"] == 5
    assert pf.training.list_checkpoints(tmp_path) == [5]


def test_a_label_out_of_range_on_one_device_is_named():
    def batches(step):
        batch = batch_at("vit", step)
        return batch._replace(labels=batch.labels.at[15].set(5))

    with pytest.raises(ValueError, match=r"^targets\[15\] is 5; expected 0 to 4, as there are 5 logits"):
        train("vit", batches=batches, mesh=new_mesh(4, 2))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"mesh": (4, 2)}, TypeError, r"^mesh is of type tuple; expected devices with names, such as jax.make_mesh\("),
        ({"sharding": DATA}, ValueError, r"^sharding is given without a mesh; expected mesh="),
        (
            {"mesh": (8,), "names": ("rows",)},
            ValueError,
            r"^The mesh has an axis 'rows'; expected 'data' and 'model', or a table .* sharding=\{'batch': 'rows'\}",
        ),
        (
            {"mesh": (8,), "names": ("data",), "sharding": TENSOR},
            ValueError,
            r"^sharding cuts 'heads' over 'model'; expected an axis of the mesh, which has 'data'\.",
        ),
        (
            {"mesh": (8,), "names": ("data",), "sharding": {"d_modell": "data"}},
            ValueError,
            r"^sharding names an axis 'd_modell'; expected some of batch, d_ff, d_model, experts, heads, "
            r"max_len, seq, vocab\.",
        ),
        (
            {"mesh": (8,), "names": ("data",), "sharding": "data"},
            TypeError,
            r"^sharding is of type str; expected names of axes by names of axes, such as pf.training.DATA",
        ),
        (
            {"mesh": (3,), "names": ("data",)},
            ValueError,
            r"^The axis 'batch' has size 16, which 3 devices along 'data' cannot share equally; expected a multiple of "
            r"3, such as 18, or a sharding without it\.",
        ),
        (
            {"mesh": (5,), "names": ("model",)},
            ValueError,
            r"^The axis 'heads' of stack\.blocks\.0\.attention\.query\.weight has size 8, .* such as 10",
        ),
        (
            {"mesh": (7,), "names": ("data",), "sharding": {"seq": "data"}},
            ValueError,
            r"^The axis 'seq' has size 24, which 7 devices along 'data' cannot share equally; .* such as 28",
        ),
    ],
)
def test_what_does_not_fit_a_mesh_is_named(options, error, message):
    mesh = options.get("mesh")
    if "names" in options:
        mesh = jax.make_mesh(mesh, options["names"], devices=jax.devices()[: mesh[0]])
    with pytest.raises(error, match=message):
        train("decoder", mesh=mesh, sharding=options.get("sharding"))


@pytest.mark.parametrize(("parts", "size"), [(4, 4), (16, 1)])
def test_parts_of_a_batch_that_devices_cannot_share_are_named(parts, size):
    config = dataclasses.replace(CONFIG, accumulation_steps=parts)
    with pytest.raises(ValueError, match=rf"^The axis 'batch' has size {size}, which 8 devices along 'data' cannot"):
        train("decoder", config, mesh=new_mesh(8, 1))


def test_a_model_that_lies_on_a_mesh_is_trained_on_one():
    shared = Layout(new_mesh(8, 1), FULLY_SHARDED).place(new_model("decoder"))
    with pytest.raises(ValueError, match=r"^model lies on 8 devices of a mesh, and mesh is None; expected mesh=…"):
        pf.fit(shared, pf.training.next_token_loss, lambda step: batch_at("decoder", step), CONFIG, progress=False)


def test_an_axis_that_only_some_models_have_may_be_cut():
    config = dataclasses.replace(CONFIG, num_steps=4)
    found = train("grouped", config, mesh=new_mesh(4, 2), sharding=TENSOR | {"kv_heads": "model"})
    assert shard(found.model.stack.blocks[0].attention.key.weight) == (32, 4)


@pytest.mark.parametrize(
    ("rows", "columns", "axes", "said"),
    [
        (4, 2, "Explicit", r"data=4 \(Explicit\) x model=2 \(Explicit\), and mesh is data=4 \(Auto\) x model=2"),
        (8, 1, "Auto", r"data=8 \(Auto\) x model=1 \(Auto\), and mesh is data=4 \(Auto\) x model=2 \(Auto\)"),
    ],
)
def test_a_mesh_within_another_is_refused(rows, columns, axes, said):
    with (
        jax.set_mesh(new_mesh(rows, columns, axes)),
        pytest.raises(ValueError, match=rf"^jax.set_mesh has set the mesh {said}.*; expected no mesh set"),
    ):
        train("decoder", mesh=new_mesh(4, 2))


def test_a_mesh_within_a_compiled_function_is_refused():
    with pytest.raises(ValueError, match=r"^mesh is given within a function that JAX compiles or maps; expected it"):
        jax.jit(lambda number: train("decoder", mesh=new_mesh(4, 2)).metrics[-1]["loss"] * number)(1.0)
