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

HOST = Hardware(1e11, 1e10, 1e10, 1e10, None, 8, joins_sums=False)
SIZES = {"d_model": 64, "num_layers": 2, "num_heads": 8, "position_scheme": "rotary", "norm": "rms", "use_bias": False}
ALL_BIASES = {"norm": "layer", "use_bias": True, "position_scheme": "learned"}
CASES = {
    "activations": ((8, 1), DATA, {}, (16, 64)),
    "gradients": ((8, 1), DATA, {}, (8, 16)),
    "weights gathered": ((8, 1), FULLY_SHARDED, {"attention": "blockwise", "activation": "relu"}, (16, 64)),
    "few gathered": ((8, 1), FULLY_SHARDED, {"d_model": 256, "d_ff": 64, "vocab_size": 64}, (8, 128)),
    "attention": ((8, 1), DATA, {"d_ff": 64, "vocab_size": 64}, (16, 256)),
    "attention by blocks": ((8, 1), DATA, {"attention": "blockwise", "d_ff": 64, "vocab_size": 64}, (8, 512)),
    "one head": ((1, 8), TENSOR, {"attention": "blockwise", "d_ff": 64, "vocab_size": 64, "num_layers": 1}, (8, 256)),
    "network": ((8, 1), DATA, {"activation": "geglu", "d_ff": 1024, "vocab_size": 64}, (16, 64)),
    "table": ((8, 1), FULLY_SHARDED, {"vocab_size": 4096}, (16, 64)),
    "few keys": ((1, 8), TENSOR, {"num_kv_heads": 2, **ALL_BIASES}, (16, 64)),
    "both": ((4, 2), FULLY_SHARDED | TENSOR, {"activation": "swiglu", "tied_embedding": False}, (16, 64)),
}


@pytest.mark.parametrize(
    ("case", "anew"),
    [
        *((case, "nothing") for case in CASES),
        *((case, "blocks") for case in ("few gathered", "attention", "network", "table", "both")),
    ],
)
def test_plan_agrees_with_a_compiled_program(case, anew):
    shape, table, fields, (batch_size, seq_len) = CASES[case]
    config = decoder_config(**{"vocab_size": 512, "context_len": seq_len, **SIZES, **fields})
    model = eqx.filter_eval_shape(lambda key: pf.Decoder(config, key=key), jax.random.key(0))
    ids = jax.ShapeDtypeStruct((batch_size, seq_len), jnp.int32)
    on = {"mesh": jax.make_mesh(shape, ("data", "model")), "sharding": table}
    batch, training = pf.data.Windows(ids, ids), pf.TrainingConfig(num_steps=10, rematerialise=anew)
    compiled = pf.training.compile_step(model, pf.training.next_token_loss, batch, training, **on)
    mesh = dict(zip(("data", "model"), shape, strict=True))
    found = plan(config, mesh, HOST, batch_size=batch_size, sharding=table, rematerialise=anew)
    used, sent = compiled.memory_analysis(), sum(each.sent_bytes for each in collectives(compiled))
    ids = 2 * 4 * batch_size // (mesh["data"] if "batch" in table else 1) * seq_len
    assert found.parameters + found.moments + ids == pytest.approx(used.argument_size_in_bytes, rel=0.01)
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
