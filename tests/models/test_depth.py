"""Chapter 05, the stack that all models share: its configuration, its position schemes, and the loop over blocks."""

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
from plainformer.models.config import make_norm, make_scheme
from plainformer.models.depth import Stack
from plainformer.models.encoder import RowEncoder
from plainformer.positions.grid import GridPositions
from plainformer.positions.positions import add_positions
from plainformer.seeing import named

SEQ, KV_SEQ, D_MODEL, HEADS, LAYERS, BATCH = 5, 7, 12, 3, 2, (2, 3)
SIZES = {"d_model": D_MODEL, "num_heads": HEADS, "num_layers": LAYERS, "d_ff": 10}
KEY = jax.random.key(0)
LATENT = pf.attention.LatentConfig(width=3, rotary_width=2)
YARN = pf.positions.YarnScaling(factor=2.0)
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


def test_stack_config_is_one_value():
    config = pf.StackConfig(**SIZES)
    assert config == pf.StackConfig(**SIZES)
    assert hash(config) == hash(pf.StackConfig(**SIZES))
    assert config != dataclasses.replace(config, norm="rms")
    with pytest.raises(AttributeError):
        config.norm = "rms"


def test_stack_config_inner_width_is_four_times_the_outer_one_unless_given():
    assert pf.StackConfig(d_model=12, num_heads=3).inner_width == 48
    assert pf.StackConfig(d_model=12, num_heads=3, d_ff=7).inner_width == 7


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"d_model": 0}, ValueError, r"d_model is 0; expected at least 1"),
        ({"d_model": 1.5}, TypeError, r"d_model is 1\.5; expected a whole number"),
        ({"d_model": 0, "d_ff": None}, ValueError, r"d_model is 0; expected at least 1"),
        ({"d_model": 13}, ValueError, r"d_model=13 is not a multiple of num_heads=3; expected heads of equal width"),
        ({"num_layers": 0}, ValueError, r"num_layers is 0; expected at least 1"),
        ({"num_layers": -1}, ValueError, r"num_layers is -1; expected at least 1"),
        ({"num_layers": 1.5}, TypeError, r"num_layers is 1\.5; expected a whole number"),
        ({"num_heads": 0}, ValueError, r"num_heads is 0; expected at least 1"),
        ({"num_heads": None}, TypeError, r"num_heads is None; expected a whole number"),
        ({"num_kv_heads": 2}, ValueError, r"num_heads=3 is not a multiple of num_kv_heads=2"),
        ({"num_kv_heads": 0}, ValueError, r"num_kv_heads is 0; expected at least 1"),
        ({"d_ff": 0}, ValueError, r"d_ff is 0; expected at least 1"),
        ({"d_ff": 2.5}, TypeError, r"d_ff is 2\.5; expected a whole number"),
        ({"norm": "batch"}, ValueError, r"norm is 'batch'; expected one of 'layer', 'rms'"),
        ({"norm_eps": -1e-5}, ValueError, r"norm_eps is -1e-05; expected finite and at least 0"),
        ({"norm_eps": "1e-5"}, TypeError, r"eps is '1e-5'; expected a number"),
        ({"norm_placement": "both"}, ValueError, r"norm_placement is 'both'; expected one of 'pre', 'post'"),
        ({"activation": "tanh"}, ValueError, r"activation is 'tanh'; expected one of 'relu'.*'swiglu'"),
        ({"position_scheme": "rope"}, ValueError, r"position_scheme is 'rope'; expected one of 'learned', 'sinu"),
        (
            {"d_model": 9, "position_scheme": "rotary"},
            ValueError,
            r"Of the 3 columns of a key, rotary_fraction=1\.0 tur",
        ),
        ({"d_k": 5, "position_scheme": "rotary"}, ValueError, r"Of the 5 columns of a key.*expected an even number"),
        (
            {"rotary_fraction": 0.1, "position_scheme": "rotary"},
            ValueError,
            r"Of the \d columns of a key, rotary_fraction=0\.1 turns 0; expected an even number above 0",
        ),
        ({"rotary_fraction": 0.0}, ValueError, r"rotary_fraction is 0\.0; expected above 0 and at most 1"),
        ({"rotary_fraction": 1.5}, ValueError, r"rotary_fraction is 1\.5; expected above 0 and at most 1"),
        ({"d_k": 0}, ValueError, r"d_k is 0; expected at least 1"),
        ({"d_v": -1}, ValueError, r"d_v is -1; expected at least 1"),
        ({"window": 0}, ValueError, r"window is 0; expected at least 1"),
        ({"pattern": "full"}, TypeError, r"pattern is 'full'; expected a tuple of kinds of blocks, such as \('window'"),
        ({"pattern": ()}, ValueError, r"pattern is \(\); expected kinds of blocks, each one of 'window', 'full'"),
        ({"pattern": ("local",), "window": 2}, ValueError, r"pattern is \('local',\); expected kinds of blocks"),
        ({"pattern": ("full", 2), "window": 2}, ValueError, r"pattern is \('full', 2\); expected kinds of blocks"),
        ({"pattern": ("window", "full")}, ValueError, r"window is None; expected a window if a block of the pattern"),
        ({"pattern": ("full",), "window": 2}, ValueError, r"window is 2; expected a window if .*and None otherwise"),
        (
            {"parallel": True, "norm_placement": "post"},
            ValueError,
            r"norm_placement is 'post'; expected 'pre' for para",
        ),
        ({"parallel": 1}, TypeError, r"parallel is 1; expected True or False"),
        (
            {"parallel": True, "norm_placement": "sandwich"},
            ValueError,
            r"norm_placement is 'sandwich'; expected 'pre' for para",
        ),
        ({"qk_norm_over": "row"}, ValueError, r"qk_norm_over is 'row', and there is no such norm; expected qk_norm=T"),
        ({"qk_norm": True, "qk_norm_over": "all"}, ValueError, r"qk_norm_over is 'all'; expected one of 'head', 'row'"),
        ({"qk_norm": "rms"}, TypeError, r"qk_norm is 'rms'; expected True or False"),
        ({"sinks": 1}, TypeError, r"sinks is 1; expected True or False"),
        (
            {"sinks": True, "attention": "linear"},
            ValueError,
            r"sinks stand beside scores, which attention='linear' has",
        ),
        (
            {"rope_scaling": pf.positions.NtkScaling(factor=2.0)},
            ValueError,
            r"^rope_scaling is given, and position_scheme 'learned' turns nothing; expected 'rotary', or",
        ),
        (
            {"sinks": True, "pattern": ("delta",), "num_layers": 2},
            ValueError,
            r"^sinks is given, and all 2 blocks are 'delta', without attention; expected sinks=False, or a",
        ),
        (
            {"latent": LATENT, "pattern": ("delta", "delta", "full"), "num_layers": 2},
            ValueError,
            r"^latent is given, and all 2 blocks are 'delta', without attention; expected latent=None, or a",
        ),
        ({"qk_norm": True, "pattern": ("delta",)}, ValueError, r"qk_norm is given, .*; expected qk_norm=False, or a p"),
        (
            {"rope_scaling": YARN, "position_scheme": "rotary", "pattern": ("delta",)},
            ValueError,
            r"^rope_scaling is given, and all 2 blocks are 'delta', without attention; expected rope_sc",
        ),
        ({"experts": 8}, TypeError, r"experts is of type int; expected an ExpertsConfig"),
        (
            {"experts": pf.blocks.ExpertsConfig(num_experts=3, per_token=2, width=5, dense_layers=9), "num_layers": 9},
            ValueError,
            r"^dense_layers is 9; expected fewer than num_layers=9, or experts=None\.$",
        ),
        ({"num_buckets": 0}, ValueError, r"num_buckets is 0; expected at least 1"),
        ({"d_model": 9, "position_scheme": "sinusoidal"}, ValueError, r"d_model is 9; expected a multiple of 2"),
        ({"d_model": 18, "position_scheme": "sinusoidal_2d"}, ValueError, r"d_model is 18; expected a multiple of 4"),
        ({"rope_theta": 0}, ValueError, r"rope_theta is 0; expected finite and above 0"),
        ({"dropout_rate": -0.1}, ValueError, r"dropout_rate is -0\.1; expected at least 0"),
        ({"dropout_rate": 1.0}, ValueError, r"dropout_rate is 1\.0; expected at least 0 and below 1"),
        ({"dropout_rate": "0.1"}, TypeError, r"dropout_rate is '0\.1'; expected a number"),
        ({"dropout_rate": True}, TypeError, r"dropout_rate is True; expected a number"),
        ({"use_bias": 1}, TypeError, r"use_bias is 1; expected True or False"),
        ({"use_bias": None}, TypeError, r"use_bias is None; expected True or False"),
        ({"use_bias": "no"}, TypeError, r"use_bias is 'no'; expected True or False"),
    ],
)
def test_stack_config_names_what_is_wrong_before_a_model_is_made(options, error, message):
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


def test_make_norm_takes_eps_and_bias_of_the_configuration():
    plain, bare = (make_norm(pf.StackConfig(**SIZES, norm_eps=0.5, use_bias=use_bias)) for use_bias in (True, False))
    assert (plain.eps, plain.bias.shape, bare.eps, bare.bias) == (0.5, (D_MODEL,), 0.5, None)


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


@pytest.mark.parametrize(
    "make",
    [
        lambda stack: new_scheme(stack),
        lambda stack: pf.Decoder(pf.DecoderConfig(11, 9, stack), key=KEY),
        lambda stack: RowEncoder(pf.EncoderConfig(context_len=9, d_in=4, stack=stack), key=KEY),
        lambda stack: pf.Seq2Seq(pf.Seq2SeqConfig(11, 9, 6, 9, 4, encoder=stack, decoder=stack), key=KEY),
    ],
)
def test_sinusoidal_2d_without_a_grid_is_refused(make):
    with pytest.raises(ValueError, match=r"'sinusoidal_2d' is for images, as in ViT; expected one for sequences"):
        make(pf.StackConfig(**SIZES, position_scheme="sinusoidal_2d"))


def test_add_positions_multiplies_what_would_be_drowned_by_sinusoids():
    codes = pf.sinusoidal_positions(jnp.arange(SEQ), D_MODEL)
    assert_close(add_positions(X, pf.SinusoidalPositions(D_MODEL)), X * D_MODEL**0.5 + codes)
    np.testing.assert_array_equal(add_positions(X, pf.RotaryPositions()), X)
    table = drawn(lambda max_len, key: pf.LearnedPositions(max_len, D_MODEL, key=key), 9)
    places = jnp.array([4, 8, 0, 0, 1])
    assert_close(add_positions(X, table, places), X + table.table[places])


# --- the loop over blocks -----------------------------------------------------------------------------------


@pytest.mark.equation("eq-depth-stack")
@pytest.mark.parametrize("norm_placement", ["pre", "post", "output", "sandwich"])
@pytest.mark.parametrize("cross_attention", [False, True])
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


def test_stack_ends_in_one_norm_whichever_the_placement():
    pre, post = new_stack(), new_stack(norm_placement="post")
    assert post.final_norm is None
    assert_close(pre.normalise(pre(X)), pre.final_norm(pre(X)))
    np.testing.assert_array_equal(post.normalise(post(X)), post(X))


@pytest.mark.equation("eq-generation-cached-attention")
@pytest.mark.parametrize("cross_attention", [False, True])
@pytest.mark.parametrize("position_scheme", ["rotary", "relative", "none"])
def test_stack_extend_of_any_batch_is_a_causal_call(cross_attention, position_scheme):
    stack = new_stack(num_kv_heads=1, position_scheme=position_scheme, cross_attention=cross_attention)
    x = jnp.asarray(NUMBERS.normal(size=(*BATCH, SEQ, D_MODEL)), float)
    context = jnp.asarray(NUMBERS.normal(size=(*BATCH, KV_SEQ, D_MODEL)), float)

    @eqx.filter_jit
    def extend(stack, x, caches, positions, context):
        readers = [block.cross_attention for block in stack.blocks if cross_attention]
        kept = tuple(reader.cache_context(context) for reader in readers) or None
        return stack.extend(x, caches, jnp.broadcast_to(positions, x.shape[:-1]), kept)

    caches, pieces = stack.make_cache(SEQ, batch=BATCH), []
    for start, end in [(0, 4), (4, 5)]:
        rows, caches = extend(stack, x[..., start:end, :], caches, jnp.arange(start, end), context)
        pieces.append(rows)
    look = {"context": context[1, 2]} if cross_attention else {}
    expected = stack(x[1, 2], CAUSAL, **look)
    assert_close(np.concatenate(pieces, axis=-2)[1, 2], expected)
    assert [cache.batch for cache in caches] == [BATCH] * LAYERS
    assert [int(cache.length) for cache in caches] == [SEQ] * LAYERS


class Noting(eqx.Module):
    """A block that changes nothing, and notes the key it is called with."""

    keys: list = eqx.field(static=True)

    def __call__(self, x, *_, key, **__):
        self.keys.append(key)
        return x


def test_stack_gives_what_enters_and_each_block_a_dropout_key_of_its_own(monkeypatch):
    keys = []

    def noting(x, rate, *, key):
        keys.append(key)
        return x

    monkeypatch.setattr("plainformer.models.depth.dropout", noting)
    stack = eqx.tree_at(lambda m: m.blocks, new_stack(dropout_rate=0.5), (Noting(keys),) * 3)
    stack(X, key=KEY)
    assert len({tuple(jax.random.key_data(each).tolist()) for each in keys}) == len(keys) == 4


def test_stack_drops_entries_of_what_enters_the_first_block():
    stack = new_stack(dropout_rate=0.5)
    entering = np.asarray(pf.look(stack, X, key=KEY)[1]["input"])
    assert 0 < (entering == 0).sum() < entering.size
    np.testing.assert_allclose(entering[entering != 0], 2 * np.asarray(X)[entering != 0], rtol=1e-6)
    assert [block.dropout_rate for block in stack.blocks] == [0.5, 0.5]


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
