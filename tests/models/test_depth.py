"""The stack that all models share: its configuration, its position schemes, and the loop over blocks."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from closeness import assert_close
from toy_models import drawn

import plainformer as pf
from plainformer.blocks.blocks import CrossBlock
from plainformer.models.config import make_scheme
from plainformer.models.depth import Stack
from plainformer.models.encoder import RowEncoder
from plainformer.positions.grid import GridPositions
from plainformer.positions.positions import add_positions
from plainformer.seeing import named

SEQ, KV_SEQ, D_MODEL, HEADS, LAYERS = 5, 7, 12, 3, 2
SIZES = {"d_model": D_MODEL, "num_heads": HEADS, "num_layers": LAYERS, "d_ff": 10}
KEY = jax.random.key(0)
LATENT = pf.attention.LatentConfig(width=3, rotary_width=2)
YARN = pf.positions.YarnScaling(factor=2.0)
EXPERTS = pf.blocks.ExpertsConfig(num_experts=3, per_token=2, width=5, dense_layers=9)
NUMBERS = np.random.default_rng(3)
CAUSAL = jnp.asarray(np.tri(SEQ, dtype=bool))
X = jnp.asarray(NUMBERS.normal(size=(SEQ, D_MODEL)), float)
CONTEXT = jnp.asarray(NUMBERS.normal(size=(KV_SEQ, D_MODEL)), float)


def new_scheme(config, max_len=9, *, causal=True, **places):
    return make_scheme(config, max_len, causal=causal, **places, key=KEY)


def new_stack(*, cross_attention=False, **fields):
    """A stack with all its parameters drawn."""
    config = pf.StackConfig(**SIZES | fields)

    def make(config, key):
        keys = [key] * config.num_layers
        scheme = make_scheme(config, 9, causal=True, key=key)
        return Stack(config, scheme, keys=keys, cross_attention=cross_attention)

    return drawn(make, config)


# --- the configuration --------------------------------------------------------------------------------------


def test_stack_config_inner_width_is_four_times_the_outer_one_unless_given():
    assert pf.StackConfig(d_model=12, num_heads=3).inner_width == 48
    assert pf.StackConfig(d_model=12, num_heads=3, d_ff=7).inner_width == 7


DELTA = {"pattern": ("delta", "delta", "full"), "num_layers": 2}  # all blocks that there are have no attention


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"d_model": 13}, ValueError, "d_model=13"),
        ({"num_kv_heads": 2}, ValueError, "num_kv_heads=2"),
        ({"d_model": 9, "position_scheme": "rotary"}, ValueError, "3 columns of a key"),
        ({"d_k": 5, "position_scheme": "rotary"}, ValueError, "5 columns of a key"),
        ({"rotary_fraction": 0.1, "position_scheme": "rotary"}, ValueError, r"rotary_fraction=0\.1 turns 0"),
        ({"rotary_fraction": 1.5}, ValueError, "rotary_fraction"),
        ({"pattern": "full"}, TypeError, "pattern"),
        ({"pattern": ()}, ValueError, "pattern"),
        ({"pattern": ("full", 2), "window": 2}, ValueError, "pattern"),
        ({"pattern": ("window", "full")}, ValueError, "window is None"),
        ({"pattern": ("full",), "window": 2}, ValueError, "window is 2"),
        ({"parallel": True, "norm_placement": "sandwich"}, ValueError, "norm_placement"),
        ({"qk_norm_over": "row"}, ValueError, "qk_norm_over"),
        ({"sinks": True, "attention": "linear"}, ValueError, "sinks stand beside scores"),
        ({"rope_scaling": pf.positions.NtkScaling(factor=2.0)}, ValueError, "rope_scaling"),
        ({"sinks": True, **DELTA}, ValueError, "^sinks is given"),
        ({"latent": LATENT, **DELTA}, ValueError, "^latent is given"),
        ({"qk_norm": True, **DELTA}, ValueError, "^qk_norm is given"),
        ({"rope_scaling": YARN, "position_scheme": "rotary", **DELTA}, ValueError, "^rope_scaling is given"),
        ({"experts": EXPERTS, "num_layers": 9}, ValueError, "dense_layers is 9"),
        ({"d_model": 9, "position_scheme": "sinusoidal"}, ValueError, "d_model is 9"),
        ({"d_model": 18, "position_scheme": "sinusoidal_2d"}, ValueError, "d_model is 18"),
    ],
)
def test_stack_config_names_what_does_not_go_together(options, error, message):
    with pytest.raises(error, match=message):
        pf.StackConfig(**SIZES | options)


# --- what is made of it -------------------------------------------------------------------------------------


@pytest.mark.parametrize("cross_attention", [False, True])
def test_make_block_gives_every_part_what_the_configuration_says(cross_attention):
    fields = {"norm": "rms", "norm_eps": 0.5, "norm_placement": "post", "dropout_rate": 0.3, "num_kv_heads": 1}
    config = pf.StackConfig(**SIZES | fields, activation="relu", use_bias=False)
    block = eqx.filter_eval_shape(pf.make_block, config, cross_attention=cross_attention, key=KEY)
    assert (block.norm_placement, block.dropout_rate, block.d_model) == ("post", 0.3, D_MODEL)
    norms = [block.attention_norm, block.feed_forward_norm] + ([block.cross_norm] if cross_attention else [])
    assert all(isinstance(norm, pf.RMSNorm) and norm.eps == 0.5 for norm in norms)
    for attention in [block.attention] + ([block.cross_attention] if cross_attention else []):
        assert (attention.num_heads, attention.num_kv_heads) == (HEADS, 1)
        assert attention.query.bias is attention.output.bias is None
    assert (block.feed_forward.activation, block.feed_forward.up.weight.shape) == ("relu", (D_MODEL, 10))
    assert block.feed_forward.up.bias is None
    assert isinstance(block, CrossBlock if cross_attention else pf.Block)


def test_make_block_puts_sublayers_side_by_side_only_without_a_context():
    with pytest.raises(ValueError, match="parallel=True is for blocks that read no context"):
        pf.make_block(pf.StackConfig(**SIZES, parallel=True), cross_attention=True, key=KEY)


def test_make_scheme_makes_what_the_configuration_names():
    fields = {"rope_theta": 500.0, "rotary_fraction": 0.5, "num_buckets": 8, "max_distance": 5}
    config = pf.StackConfig(**SIZES, **fields)

    def scheme(name, **options):
        return new_scheme(dataclasses.replace(config, position_scheme=name), **options)

    assert scheme("learned").table.shape == (9, D_MODEL)
    assert scheme("sinusoidal").d_model == D_MODEL
    assert (scheme("rotary").base, scheme("rotary").fraction) == (500.0, 0.5)
    relative = scheme("relative", causal=False)
    assert (relative.table.shape, relative.max_distance) == ((8, HEADS), 5)
    assert (relative.causal, scheme("relative").causal) == (False, True)
    assert scheme("alibi").num_heads == HEADS
    assert type(scheme("none")) is pf.NoPositions
    grid = scheme("sinusoidal_2d", grid=(2, 4), class_token=True)
    assert isinstance(grid, GridPositions)
    assert (grid.grid_height, grid.grid_width, grid.d_model, grid.class_token) == (2, 4, D_MODEL, True)


def test_sinusoidal_2d_without_a_grid_is_refused():
    stack = pf.StackConfig(**SIZES, position_scheme="sinusoidal_2d")
    with pytest.raises(ValueError, match="'sinusoidal_2d' is for images"):
        pf.Decoder(pf.DecoderConfig(11, 9, stack), key=KEY)
    with pytest.raises(ValueError, match="'sinusoidal_2d' is for images"):
        RowEncoder(pf.EncoderConfig(context_len=9, d_in=4, stack=stack), key=KEY)


def test_add_positions_multiplies_what_would_be_drowned_by_sinusoids():
    codes = pf.sinusoidal_positions(jnp.arange(SEQ), D_MODEL)
    assert_close(add_positions(X, pf.SinusoidalPositions(D_MODEL)), X * D_MODEL**0.5 + codes)
    np.testing.assert_array_equal(add_positions(X, pf.RotaryPositions()), X)
    table = drawn(lambda max_len, key: pf.LearnedPositions(max_len, D_MODEL, key=key), 9)
    places = jnp.array([4, 8, 0, 0, 1])
    assert_close(add_positions(X, table, places), X + table.table[places])


# --- the loop over blocks -----------------------------------------------------------------------------------


@pytest.mark.equation("eq-depth-stack")
@pytest.mark.parametrize(
    ("norm_placement", "cross_attention"), [("pre", True), ("post", False), ("output", False), ("sandwich", True)]
)
def test_stack_agrees_with_a_loop_in_float64(norm_placement, cross_attention):
    stack = new_stack(norm_placement=norm_placement, position_scheme="rotary", cross_attention=cross_attention)
    look = {"context": CONTEXT} if cross_attention else {}
    expected = reference.inside(np.asarray(X, np.float64), stack, CAUSAL, **look)
    _, seen = pf.look(lambda x: named("stack", stack)(x, CAUSAL, **look), X)
    for found, of_loop in zip(stack.stream_in(seen), expected.stream, strict=True):
        assert_close(found, of_loop)
    assert_close(stack.normalise(stack(X, CAUSAL, **look)), reference.leaving(expected.stream, stack))
    np.testing.assert_allclose(stack.weights_in(seen), expected.weights, atol=1e-5)
    if cross_attention:
        np.testing.assert_allclose(stack.weights_in(seen, "cross_attention"), expected.cross_weights, atol=1e-5)


@pytest.mark.parametrize("cross_attention", [False, True])
def test_stack_that_starts_small_has_its_last_matrices_divided_by_the_root_of_its_sublayers(cross_attention):
    config = pf.StackConfig(**SIZES | {"num_layers": 3})
    options = {"keys": list(jax.random.split(KEY, 3)), "cross_attention": cross_attention}
    plain, small = (Stack(config, pf.NoPositions(), **options, small_start=start) for start in (False, True))
    factor = (3 * (2 + cross_attention)) ** 0.5
    for block, smaller in zip(plain.blocks, small.blocks, strict=True):
        pairs = [(block.attention, smaller.attention)]
        pairs += [(block.cross_attention, smaller.cross_attention)] if cross_attention else []
        ends = [(one.output, other.output) for one, other in pairs]
        for one, other in [*ends, (block.feed_forward.down, smaller.feed_forward.down)]:
            np.testing.assert_allclose(one.weight, other.weight * factor, rtol=1e-5)
        np.testing.assert_array_equal(block.feed_forward.up.weight, smaller.feed_forward.up.weight)
        np.testing.assert_array_equal(block.attention.query.weight, smaller.attention.query.weight)
