"""What every position scheme has in common, and what one is told whose scheme does not fit."""

import jax.numpy as jnp
import numpy as np
import pytest
from flat import make_block
from toy_models import drawn

import plainformer as pf
from plainformer.positions import schemes
from plainformer.positions.positions import Place, PositionScheme, places_in

SEQ, KV_SEQ, D_MODEL, HEADS = 5, 7, 12, 3
X = np.random.default_rng(0).normal(size=(SEQ, D_MODEL)).astype(np.float32)
PLACE = Place(SEQ, causal=False, grid=(1, SEQ))


def made(name):
    """A scheme of the registry for a model of three heads; learned numbers are drawn large enough to be seen."""
    config = pf.StackConfig(d_model=D_MODEL, num_layers=1, num_heads=HEADS, position_scheme=name)
    return drawn(lambda place, key: schemes.SCHEMES[name].made_for(config, place, key=key), PLACE)


SCHEMES = {name: made(name) for name in schemes.SCHEMES}
# Which schemes say something of their own by each of the three methods.
ACTS_ON = {
    act: [name for name, scheme in SCHEMES.items() if getattr(type(scheme), act) is not getattr(PositionScheme, act)]
    for act in ("embed", "rotate", "bias")
}


@pytest.mark.parametrize("name", SCHEMES)
def test_schemes_act_in_one_place_and_do_nothing_in_the_others(name):
    scheme = SCHEMES[name]
    x, positions = jnp.asarray(X), jnp.arange(SEQ)
    assert [name in names for names in ACTS_ON.values()].count(True) == (name != "none")
    assert scheme.acts_on_scores == (name in ACTS_ON["rotate"] + ACTS_ON["bias"])
    bias = scheme.bias(positions, jnp.arange(KV_SEQ))
    for act in (scheme.embed, scheme.rotate):
        if name in ACTS_ON[act.__name__]:
            assert np.abs(act(x) - X).max() > 0.1
            np.testing.assert_array_equal(act(x, positions), act(x))  # `None` counts from 0
        else:
            assert act(x) is act(x, positions) is x
    assert (None if bias is None else bias.shape) == ((HEADS, SEQ, KV_SEQ) if name in ACTS_ON["bias"] else None)


@pytest.mark.equation("eq-positions-relative", "eq-positions-alibi")
@pytest.mark.parametrize("name", ACTS_ON["bias"])
def test_biases_are_unmoved_by_a_translation(name):
    scheme, q_positions, kv_positions = SCHEMES[name], np.array([3, 0, 8, 40, 5]), np.array([0, 50, 2, 9, 4, 6, 3])
    bias = np.asarray(scheme.bias(q_positions, kv_positions))
    for shift in (1, 1000, 32_000):
        np.testing.assert_array_equal(scheme.bias(q_positions + shift, kv_positions + shift), bias)
    # A query that moves, and keys that do not, get something else.
    assert np.abs(scheme.bias(q_positions + 3, kv_positions) - bias).max() > 1e-3
    # Positions without a sign are subtracted as if they had one, small ones as if they were large.
    for dtype in (np.uint8, np.uint32, np.int8):
        np.testing.assert_array_equal(scheme.bias(q_positions.astype(dtype), kv_positions.astype(dtype)), bias)


@pytest.mark.parametrize("name", ["learned", "rotary", "relative"])
def test_schemes_take_no_tokens_at_all(name):
    scheme, x = SCHEMES[name], jnp.asarray(X[:0])
    assert scheme.embed(x).shape == scheme.rotate(x).shape == (0, D_MODEL)
    bias = scheme.bias(jnp.arange(SEQ), jnp.arange(0))
    assert bias is None or bias.shape == (HEADS, SEQ, 0)


def test_places_begin_anew_with_each_document():
    documents = jnp.asarray([[0, 0, 0, 1, 1, 2, -1, -1], [3, 3, 3, 3, 3, 3, 3, 0]])
    np.testing.assert_array_equal(places_in(documents), [[0, 1, 2, 0, 1, 0, 0, 1], [0, 1, 2, 3, 4, 5, 6, 0]])


LAYER = drawn(lambda sizes, key: pf.MultiHeadAttention(*sizes, key=key), (D_MODEL, HEADS))
BLOCK = drawn(lambda sizes, key: make_block(*sizes, key=key), (D_MODEL, HEADS))


@pytest.mark.parametrize(
    ("scheme", "error", "message"),
    [
        (pf.RotaryPositions, TypeError, r"scheme is the class RotaryPositions"),
        (None, TypeError, r"scheme is of type NoneType"),
        (pf.AlibiPositions(4), ValueError, r"The bias of AlibiPositions has shape \(4"),
    ],
)
def test_bad_schemes_are_named(scheme, error, message):
    for call in (LAYER, LAYER.attention_weights, BLOCK):
        with pytest.raises(error, match=message):
            call(X, scheme=scheme)
    cache = LAYER.make_cache(5)
    with pytest.raises(error, match=message):
        LAYER.extend(X, cache, np.arange(SEQ), scheme=scheme)
