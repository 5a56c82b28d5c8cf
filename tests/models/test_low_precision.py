"""Weights of two bytes and of one."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toy_models import drawn

import plainformer as pf
from plainformer.models.low_precision import SmallLinear, in_few_bytes, quantise

WEIGHT = jnp.asarray(np.random.default_rng(0).normal(size=(5, 7)), jnp.float32)


@pytest.mark.equation("eq-efficiency-int8")
def test_quantise_is_off_by_half_a_step_at_most():
    numbers, step = quantise(WEIGHT)
    assert numbers.dtype == jnp.int8
    assert np.abs(numbers.astype(float)).max(axis=0).tolist() == [127] * 7
    assert (np.abs(numbers.astype(float) * step - WEIGHT) <= 0.5001 * step).all()


@pytest.mark.equation("eq-efficiency-small-linear")
@pytest.mark.parametrize(("stored_in", "bytes_per_number", "off"), [("bfloat16", 2, 2**-8), ("int8", 1, 1 / 254)])
def test_small_linear_is_nearly_the_layer(stored_in, bytes_per_number, off):
    layer = drawn(lambda sizes, key: pf.Linear(*sizes, key=key), (5, 7))
    small, x = SmallLinear(layer, stored_in), jnp.asarray(np.random.default_rng(1).normal(size=(2, 3, 5)), jnp.float32)
    assert small.stored.nbytes == bytes_per_number * 5 * 7
    largest = np.abs(np.asarray(layer.weight)).max(axis=0) * np.abs(np.asarray(x)).sum(axis=-1, keepdims=True)
    assert (np.abs(small(x) - layer(x)) <= off * largest + 1e-6).all()
    assert np.abs(small(x) - layer(x)).max() > 0
    np.testing.assert_allclose(small(x[0, :1]), small(x)[0, :1], rtol=1e-5, atol=1e-6)  # one row goes another way


@pytest.mark.parametrize("tied", [True, False])
def test_small_decoder_is_nearly_the_decoder_and_writes(tied):
    config = pf.DecoderConfig(11, 40, tied_embedding=tied, stack=pf.StackConfig(d_model=8, num_layers=2, num_heads=2))
    model, tokens = drawn(pf.Decoder, config), jnp.arange(9)
    for stored_in in ("bfloat16", "int8"):
        small = in_few_bytes(model, stored_in)
        matrices = [leaf for leaf in jax.tree.leaves(small.stack.blocks) if leaf.ndim == 2]
        assert {str(leaf.dtype) for leaf in [*matrices, small.output.stored]} == {stored_in}
        np.testing.assert_allclose(small(tokens), model(tokens), atol=0.05 * np.abs(model(tokens)).max())
        assert len(pf.generate(small, [[1, 2]], 5, temperature=0)[0].tokens) == 5
    assert eqx.tree_equal(model, drawn(pf.Decoder, config))  # the model itself is as it was


def test_experts_stay_as_they_are_in_few_bytes():
    experts = pf.blocks.ExpertsConfig(num_experts=4, per_token=2, width=6)
    stack = pf.StackConfig(d_model=12, num_layers=1, num_heads=3, experts=experts)
    model, tokens = pf.Decoder(pf.DecoderConfig(11, 9, stack), key=jax.random.key(0)), jnp.arange(5)
    small = in_few_bytes(model, "int8")
    kept = [decoder.stack.blocks[0].feed_forward.networks for decoder in (small, model)]
    assert eqx.tree_equal(*kept)
    assert isinstance(small.stack.blocks[0].feed_forward.router, SmallLinear)
    np.testing.assert_allclose(small(tokens), model(tokens), atol=0.05)
