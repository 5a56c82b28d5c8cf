"""What `plan` says of memory and of what is sent, against programs compiled for eight devices."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flat import decoder_config
from jax.sharding import NamedSharding, PartitionSpec

import plainformer as pf
from plainformer.models import Hardware, plan
from plainformer.training import DATA, FULLY_SHARDED, TENSOR, collectives
from plainformer.training.sharding import Layout

HOST = Hardware(1e11, 1e10, 1e10, 1e10, None, 8, joins_sums=False)
SIZES = {"d_model": 64, "num_layers": 2, "num_heads": 8, "position_scheme": "rotary", "norm": "rms", "use_bias": False}
ALL_BIASES = {"norm": "layer", "use_bias": True, "position_scheme": "learned"}
CASES = {
    "activations": ((8, 1), DATA, {}, (16, 64)),
    "gradients": ((8, 1), DATA, {}, (8, 16)),
    "weights gathered": ((8, 1), FULLY_SHARDED, {"attention": "blockwise", "activation": "relu"}, (16, 64)),
    "few keys": ((1, 8), TENSOR, {"num_kv_heads": 2, **ALL_BIASES}, (16, 64)),
    "both": ((4, 2), FULLY_SHARDED | TENSOR, {"activation": "swiglu", "tied_embedding": False}, (16, 64)),
}


def compiled_step(config, shape, table, batch_shape):
    """The step of `fit`, compiled for shapes alone."""
    mesh, training = jax.make_mesh(shape, ("data", "model")), pf.TrainingConfig(num_steps=10)
    layout = Layout(mesh, table)
    model = eqx.filter_eval_shape(lambda key: pf.Decoder(config, key=key), jax.random.key(0))
    params, static = eqx.partition(model, lambda leaf: jnp.issubdtype(getattr(leaf, "dtype", bool), jnp.inexact))
    state = layout.place((params, jax.eval_shape(pf.training.make_optimiser(training).init, params)))
    ids = jax.ShapeDtypeStruct(batch_shape, jnp.int32)
    step = pf.training.make_train_step(pf.training.next_token_loss, static, training, mesh=mesh, sharding=table)
    arguments = *step.args, *state, layout.place_batch(pf.data.Windows(ids, ids)), 0
    return step.func.lower(*arguments).compile()


@pytest.mark.parametrize("case", CASES)
def test_plan_agrees_with_a_compiled_program(case):
    shape, table, fields, (batch_size, seq_len) = CASES[case]
    config = decoder_config(512, seq_len, **{**SIZES, **fields})
    compiled = compiled_step(config, shape, table, (batch_size, seq_len))
    mesh = dict(zip(("data", "model"), shape, strict=True))
    found = plan(config, mesh, HOST, batch_size=batch_size, sharding=table)
    used, sent = compiled.memory_analysis(), sum(each.sent_bytes for each in collectives(compiled))
    assert found.parameters + found.moments == pytest.approx(used.argument_size_in_bytes, rel=0.05)  # and the batch
    assert found.memory == pytest.approx(used.argument_size_in_bytes + used.temp_size_in_bytes, rel=0.07)
    assert found.sent_bytes == pytest.approx(sent, rel=0.01)


@pytest.mark.parametrize(
    ("before", "after", "kind", "sent"),
    [
        (("rows", None), (None, None), "all-gather", 7 / 8),
        (("rows", None), (None, "rows"), "all-to-all", 7 / 8 / 8),
    ],
)
def test_collectives_of_moving_an_array(before, after, kind, sent):
    mesh = jax.make_mesh((8,), ("rows",))
    here, there = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in (before, after))
    move = jax.jit(lambda x: x, in_shardings=here, out_shardings=there)
    found = collectives(move.lower(jax.ShapeDtypeStruct((16, 24), np.float32)).compile())
    assert [each.kind for each in found] == [kind]
    assert sum(each.sent_bytes for each in found) == sent * 4 * 16 * 24


def test_collectives_of_a_product_whose_inner_axis_is_cut():
    mesh = jax.make_mesh((2, 4), ("outer", "inner"))
    left, right, whole = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((None, "inner"), ("inner", None), ()))
    product = jax.jit(jnp.matmul, in_shardings=(left, right), out_shardings=whole)
    shapes = jax.ShapeDtypeStruct((16, 24), np.float32), jax.ShapeDtypeStruct((24, 8), np.float32)
    (found,) = collectives(product.lower(*shapes).compile())
    assert found == ("all-reduce", 4 * 16 * 8, 4)
    assert found.sent_bytes == 2 * 3 / 4 * 4 * 16 * 8
