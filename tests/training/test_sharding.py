"""Names of axes: every array of every model has them, and they are those of its sizes."""

from collections import defaultdict

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import pytest
from all_models import KINDS, new_model

import plainformer as pf
from plainformer.attention import LatentConfig
from plainformer.models.low_precision import in_few_bytes
from plainformer.training.axes import axis_names
from plainformer.training.sharding import FULLY_SHARDED, SEQUENCE, TENSOR, Layout, shardings

# Further parts that models may have, and the sizes that all have.
VARIANTS = {
    "plain": {},
    "others": {"activation": "swiglu", "norm": "rms", "qk_norm": True, "d_k": 6, "d_v": 8, "num_kv_heads": 2},
    "relative": {"position_scheme": "relative", "use_bias": False},
    "norms": {"norm_placement": "sandwich", "qk_norm": True, "qk_norm_over": "row"},
    "experts": {
        "experts": pf.blocks.ExpertsConfig(num_experts=5, per_token=2, width=10, moved_bias=True),
        "activation": "swiglu",
    },
    "latent": {"latent": LatentConfig(width=7, rotary_width=2, query_width=5), "d_k": 6},
}
PARTS = {
    "decoder": {"tied_embedding": False, "output_bias": True, "embedding_norm": True},
    "seq2seq": {"tied_embedding": False, "source_vocab_size": 11},
    "encoder": {"num_segments": 3, "use_class_token": True, "embedding_norm": True},
    "masked": {"num_segments": 3},
    "classifier": {"pooler": True},
    "vit": {},
}
SIZES = {"d_model": 24, "d_ff": 10, "vocab": 11, "num_classes": 4, "num_segments": 3, "num_buckets": 32, "d_k": 6}
SIZES |= {"row": 24, "d_latent": 7, "d_rotary": 2, "d_query": 5, "experts": 5}
MODEL, MESH = new_model("decoder"), jax.make_mesh((1, 1), ("data", "model"))


def sizes_by_name(model) -> dict:
    """The sizes that axes of each name have in a model."""
    found, arrays = defaultdict(set), eqx.filter(model, eqx.is_array)

    def note(array, names):
        assert len(names) == array.ndim
        for name, size in zip(names, array.shape, strict=True):
            found[name].add(size)

    jax.tree.map(note, arrays, axis_names(arrays))
    return dict(found)


@pytest.mark.parametrize(
    ("kind", "variant"),
    [("decoder", each) for each in VARIANTS] + [(each, "others") for each in PARTS if each != "decoder"],
)
def test_every_axis_of_every_model_has_its_name(kind, variant):
    assert PARTS.keys() == KINDS.keys()
    found = sizes_by_name(new_model(kind, **VARIANTS[variant] | PARTS[kind]))
    assert found["heads"] <= {6, 24, 36, 48}  # heads alone, where each has a number, and all columns of all heads
    if kind != "vit":
        assert found.pop("max_len", {9}) <= {6, 9, 10}
    rest = found.keys() - {"heads", "kv_heads", "max_len"}
    assert rest - SIZES.keys() == ({"d_in"} if kind == "vit" else set())
    assert {name: found[name] for name in rest & SIZES.keys()} == {name: {SIZES[name]} for name in rest & SIZES.keys()}
    assert ("kv_heads" in found) == (variant == "others")


def test_every_axis_of_a_state_has_its_name():
    found = sizes_by_name(new_model("decoder", pattern=("delta",), d_k=2, d_v=3, norm="rms"))
    of_state = {"heads": {6, 12, 18}, "num_mixed": {4}, "columns": {42}, "d_v": {3}}
    assert found == of_state | {"d_model": {24}, "d_ff": {10}, "vocab": {11}, "max_len": {9}}


def test_adapters_have_the_names_of_the_map_that_they_change():
    adapted = pf.models.add_adapters(MODEL, rank=2, key=jax.random.key(0))
    names = axis_names(adapted).stack.blocks[0].attention.query
    assert (names.adapter_in, names.adapter_out) == (("d_model", "rank"), ("rank", "heads"))
    assert names.layer.weight == ("d_model", "heads")


def test_what_an_optimiser_remembers_is_cut_as_the_model_is():
    params = eqx.filter(MODEL, eqx.is_inexact_array)
    memory = optax.adam(0.1).init(params)
    found = shardings(memory, MESH, FULLY_SHARDED | TENSOR)[0]
    expected = shardings(params, MESH, FULLY_SHARDED | TENSOR)
    assert eqx.tree_equal(found.mu, expected)
    assert eqx.tree_equal(found.nu, expected)
    assert found.count.spec == jax.sharding.PartitionSpec()


def test_an_axis_of_the_mesh_serves_once_for_each_array():
    table = {"vocab": "data", "d_model": "data"}
    found = shardings(MODEL, MESH, table)
    assert found.embedding.weight.spec == jax.sharding.PartitionSpec("data", None)
    with pytest.raises(ValueError, match=r"names an axis 'head'; expected some of .*heads"):
        shardings(MODEL, MESH, {"head": "data"})


def test_arrays_without_names_stay_whole():
    tree = {"own": jnp.ones((4, 3)), "scale": jnp.ones(()), "none": None, "text": "as it is"}
    assert axis_names(tree) == {"own": (None, None), "scale": (), "none": None, "text": "as it is"}
    assert shardings(tree, MESH, TENSOR)["own"].spec == jax.sharding.PartitionSpec(None, None)


def test_a_class_of_ones_own_has_the_names_of_the_one_it_extends():
    class Mine(pf.FeedForward):
        shape: tuple = eqx.field(static=True, default=(2, 3))  # which makes no array of it

    layer = Mine(8, 12, key=jax.random.key(0))
    assert axis_names(layer).up.weight == ("d_model", "d_ff")


def test_weights_in_few_bytes_have_the_names_of_their_rows_and_columns():
    small = in_few_bytes(MODEL, "int8")
    assert axis_names(small).stack.blocks[0].feed_forward.up.stored == ("d_ff", "d_model")


def test_shapes_are_enough():
    shapes = eqx.filter_eval_shape(pf.Decoder, MODEL.config, key=jax.random.key(0))
    assert eqx.tree_equal(shardings(shapes, MESH, TENSOR), shardings(MODEL, MESH, TENSOR))
    placed = Layout(MESH, TENSOR).place(shapes)
    assert placed.embedding.weight.sharding.spec == jax.sharding.PartitionSpec("model", None)


def test_products_of_tables_are_tables():
    assert FULLY_SHARDED | SEQUENCE == {"batch": "data", "d_model": "data", "seq": "model"}
