"""A model that devices share writes, reads and is read from files as on one."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify
from jax.sharding import PartitionSpec
from on_devices import SEQ, VOCAB, batch_at, ids_of, new_mesh, new_model, shard

import plainformer as pf
from plainformer.training.sharding import FULLY_SHARDED, TENSOR, Layout

PROMPTS = [[3, 1, 4], [1], [5, 9], [2, 6, 5, 3]]


@pytest.mark.parametrize("shape", [(4, 2, "Explicit"), (1, 8, "Auto")])
@pytest.mark.parametrize("prompts", [PROMPTS[0], PROMPTS, PROMPTS[:3]], ids=["one", "four", "three"])
def test_texts_are_those_of_one_device(shape, prompts):
    model, mesh = (
        jax.tree.map(lambda leaf: 3 * leaf if eqx.is_array(leaf) else leaf, new_model("grouped")),
        new_mesh(*shape),
    )
    for options in ({"temperature": 0.0}, {"key": jax.random.key(5)}):
        alone = pf.generate(model, prompts, 12, **options)
        assert ids_of(pf.generate(model, prompts, 12, mesh=mesh, **options)) == ids_of(alone)
    steps = list(pf.generate(model, prompts, 12, mesh=mesh, stream=True, key=jax.random.key(5)))
    assert steps == list(pf.generate(model, prompts, 12, stream=True, key=jax.random.key(5)))


def test_a_model_is_read_to_where_devices_hold_it(tmp_path):
    model, mesh, path = new_model("decoder"), new_mesh(4, 2), tmp_path / "decoder.safetensors"
    pf.save_model(path, model)
    found = pf.load_model(path, pf.Decoder, mesh=mesh, sharding=FULLY_SHARDED | TENSOR)
    assert shard(found.embedding.weight) == (20, 8)
    assert eqx.tree_equal(jax.device_get(found), jax.device_get(model))
    assert ids_of(pf.generate(found, PROMPTS, 9, temperature=0)) == ids_of(
        pf.generate(model, PROMPTS, 9, temperature=0)
    )
    again = tmp_path / "again.safetensors"
    pf.save_model(again, found)
    assert again.read_bytes() == path.read_bytes()
    odd = jax.make_mesh((5,), ("model",), devices=jax.devices()[:5])
    with pytest.raises(
        ValueError,
        match=r"^The axis 'd_ff' of stack.blocks.0.feed_forward.up.weight has size 48, which 5 devices",
    ):
        pf.load_model(path, pf.Decoder, mesh=odd, sharding={"d_ff": "model"})


def test_the_mean_loss_is_that_of_one_device_and_an_id_out_of_range_is_named():
    model, batches = new_model("decoder"), [batch_at("decoder", 0), batch_at("decoder", 1)]
    shared = Layout(new_mesh(4, 2), FULLY_SHARDED | TENSOR).place(model)
    alone = pf.training.mean_loss(model, pf.training.next_token_loss, batches)
    assert pf.training.mean_loss(shared, pf.training.next_token_loss, batches) == pytest.approx(alone, abs=1e-6)
    batches[1] = batches[1]._replace(inputs=batches[1].inputs.at[3, 2].set(-1))
    with pytest.raises(ValueError, match="An entry of ids is not allowed; expected 0 to 39"):
        pf.training.mean_loss(shared, pf.training.next_token_loss, batches)


def test_accuracy_is_that_of_one_device_and_an_id_out_of_range_is_named():
    model, batch = new_model("decoder"), batch_at("decoder", 0)
    shared = Layout(new_mesh(4, 2), FULLY_SHARDED | TENSOR).place(model)
    assert pf.training.accuracy(shared, [batch]) == pytest.approx(pf.training.accuracy(model, [batch]), abs=1e-6)
    with pytest.raises(ValueError, match="An entry of ids is not allowed; expected 0 to 39"):
        pf.training.accuracy(shared, [batch._replace(inputs=batch.inputs.at[3, 2].set(-1))])


@pytest.fixture(scope="module")
def mapped():
    """A model mapped over rows of tokens, a device each, with its numbers."""
    arrays, rest = eqx.partition(new_model("decoder"), eqx.is_array)
    batch, mesh = PartitionSpec("data"), new_mesh(8, 1, "Auto")

    def logits(arrays, tokens):
        return eqx.combine(arrays, rest)(tokens)

    return jax.shard_map(logits, mesh=mesh, in_specs=(PartitionSpec(), batch), out_specs=batch), arrays


def test_a_model_is_mapped_over_devices_with_its_checks(mapped):
    function, arrays = mapped
    tokens = jnp.asarray(np.random.default_rng(1).integers(VOCAB, size=(16, SEQ)))
    alone = new_model("decoder")(tokens)
    np.testing.assert_allclose(jax.jit(function)(arrays, tokens), alone, rtol=0, atol=1e-5)
    error, _ = jax.jit(checkify.checkify(function))(arrays, tokens.at[9, 1].set(77))
    with pytest.raises(checkify.JaxRuntimeError, match="An entry of ids is not allowed; expected 0 to 39"):
        error.throw()


def test_a_model_called_on_a_mesh_with_explicit_axes_says_which_it_expects():
    mesh = new_mesh(4, 2)
    ids = jax.device_put(jnp.ones((8, SEQ), jnp.int32), jax.NamedSharding(mesh, PartitionSpec("data")))
    with jax.set_mesh(mesh), pytest.raises(ValueError, match=r"^ids are cut as .*data.* Explicit; expected Auto axes"):
        new_model("decoder")(ids)


def test_the_map_of_devices_names_who_holds_each_part():
    mesh = new_mesh(4, 2)
    cuts = {("data", "model"): "01234567", (None, "model"): ["0, 2, 4, 6", "1, 3, 5, 7"], ("data",): None}
    for axes, expected in cuts.items():
        array = jax.device_put(jnp.ones((8, 4)), jax.NamedSharding(mesh, PartitionSpec(*axes)))
        ax = pf.plots.device_map(array)
        expected = list(expected or ["0, 1", "2, 3", "4, 5", "6, 7"])
        assert [text.get_text() for text in ax.texts] == expected
        for box, text in zip(ax.patches, ax.texts, strict=True):
            rows, columns = (box.get_y(), box.get_y() + box.get_height()), (box.get_x(), box.get_x() + box.get_width())
            held = {
                part.device.id
                for part in array.addressable_shards
                if [each.indices(size)[:2] for each, size in zip(part.index, (8, 4), strict=True)] == [rows, columns]
            }
            assert held == {int(number) for number in text.get_text().split(", ")}


def test_targets_may_be_cut_over_explicit_axes():
    rows = jax.NamedSharding(new_mesh(8, 1), PartitionSpec("data"))
    found = pf.cross_entropy(jnp.ones((16, 5)), jax.device_put(jnp.zeros(16, jnp.int32), rows))
    np.testing.assert_allclose(found, np.log(5), rtol=1e-5)
