"""Collectives as JAX compiles them for eight devices, beside the bytes of a ring."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, PartitionSpec

import plainformer as pf

SIZE, CUT, WHOLE = 40, PartitionSpec("data"), PartitionSpec()
KINDS = {
    "all-reduce": (lambda part: jax.lax.psum(part, "data"), CUT, WHOLE, 4 * SIZE),
    "all-gather": (lambda part: jax.lax.all_gather(part, "data", tiled=True), CUT, CUT, 4 * 8 * SIZE),
    "reduce-scatter": (lambda part: jax.lax.psum_scatter(part, "data", tiled=True), WHOLE, CUT, 4 * 8 * SIZE),
}


@pytest.mark.equation("eq-scaling-sent")
@pytest.mark.parametrize("kind", KINDS)
def test_collective_bytes_are_those_of_a_compiled_program(kind):
    function, before, after, num_bytes = KINDS[kind]
    mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
    program = jax.jit(jax.shard_map(function, mesh=mesh, in_specs=before, out_specs=after))
    (found,) = pf.training.collectives(program.lower(jnp.ones((8, SIZE))).compile())
    assert found.kind == kind
    assert found.sent_bytes == pf.training.collective_bytes(kind, num_bytes, num_devices=8)


@pytest.mark.equation("eq-scaling-rows", "eq-scaling-columns", "eq-scaling-summed", "eq-scaling-gathered")
@pytest.mark.parametrize(
    ("cut", "of_x", "of_weight", "after"),
    [
        ("rows", CUT, WHOLE, CUT),
        ("columns", WHOLE, PartitionSpec(None, "data"), PartitionSpec(None, "data")),
        ("summed", PartitionSpec(None, "data"), CUT, PartitionSpec("data")),
        ("gathered", CUT, CUT, CUT),
    ],
)
def test_cut_product_is_what_each_device_computes(cut, of_x, of_weight, after):
    rng = np.random.default_rng(18)
    x, weight = (jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in ((16, 24), (24, 8)))
    mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))

    def multiply(x, weight):
        return x @ (jax.lax.all_gather(weight, "data", tiled=True) if cut == "gathered" else weight)

    product = jax.shard_map(multiply, mesh=mesh, in_specs=(of_x, of_weight), out_specs=after)
    parts = pf.training.cut_product(x, weight, 8, cut)
    whole = jnp.concatenate(parts, axis=1 if cut == "columns" else 0)
    np.testing.assert_allclose(jax.jit(product)(x, weight), whole, rtol=1e-4, atol=1e-5)
