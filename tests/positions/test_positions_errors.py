"""Chapter 05 at its edges: what a reader is told when positions, widths, heads or schemes do not fit."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf

KEY = jax.random.key(0)
X = jnp.ones((5, 12))
Q, K, V = jnp.ones((5, 4)), jnp.ones((7, 4)), jnp.ones((7, 3))


def attention(num_heads=3, d_model=12):
    return pf.MultiHeadAttention(d_model, num_heads, key=KEY)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: pf.sinusoidal_positions(jnp.arange(5), 7),
            ValueError,
            r"d_model is 7, an odd number; expected an even",
        ),
        (lambda: pf.sinusoidal_positions(jnp.arange(5), 0), ValueError, r"d_model is 0; expected at least 1"),
        (
            lambda: pf.sinusoidal_positions([0, 1], 4),
            TypeError,
            r"positions is a list; expected .*\(seq,\).*jnp\.asarray",
        ),
        (lambda: pf.sinusoidal_positions(jnp.ones((2, 5), int), 4), ValueError, r"positions has .*\(seq,\).*jax\.vmap"),
        (
            lambda: pf.sinusoidal_positions(jnp.arange(5.0), 4),
            TypeError,
            r"positions holds float32; expected whole numb",
        ),
        (
            lambda: pf.sinusoidal_positions(jnp.ones(5, bool), 4),
            TypeError,
            r"positions holds bool; expected whole numb",
        ),
        (lambda: pf.sinusoidal_positions(jnp.arange(5), 4, base=0), ValueError, r"base is 0; expected a finite number"),
        (lambda: pf.shift_matrix(1, 3), ValueError, r"d_model is 3, an odd number"),
        (lambda: pf.shift_matrix(1.5, 4), TypeError, r"offset holds float32; expected whole numbers"),
        (lambda: pf.shift_matrix(jnp.arange(2), 4), ValueError, r"offset has shape \(1, 2\); expected \(seq=1,\)"),
        (lambda: pf.shift_matrix(1, 4, base=-2.0), ValueError, r"base is -2\.0; expected a finite number above 0"),
        (
            lambda: pf.rotate_pairs(jnp.ones((5, 3)), jnp.arange(5)),
            ValueError,
            r"d_k is 3, an odd number; expected an e",
        ),
        (lambda: pf.rotate_pairs(X, jnp.arange(4)), ValueError, r"positions has shape \(4,\); expected \(seq=5,\)"),
        (
            lambda: pf.rotate_pairs(X, jnp.arange(5.0)),
            TypeError,
            r"positions holds float32; expected whole numbers, such",
        ),
        (
            lambda: pf.rotate_pairs(X[0], jnp.arange(12)),
            ValueError,
            r"rows has shape \(12,\); expected \(seq, d_k\).*few",
        ),
        (
            lambda: pf.rotate_pairs([[1.0, 2.0]], jnp.arange(1)),
            TypeError,
            r"rows is a list; expected an array with axes",
        ),
        (lambda: pf.SinusoidalPositions(7), ValueError, r"d_model is 7, an odd number"),
        (lambda: pf.SinusoidalPositions(12, base=float("nan")), ValueError, r"base is nan; expected a finite number"),
        (lambda: pf.SinusoidalPositions(12).embed(X[None]), ValueError, r"x has .*\(seq, d_model=12\).*jax\.vmap"),
        (
            lambda: pf.SinusoidalPositions(10).embed(X),
            ValueError,
            r"x has shape \(5, 12\); expected \(seq, d_model=10\)",
        ),
        (
            lambda: pf.SinusoidalPositions(12).embed(X, jnp.arange(6)),
            ValueError,
            r"positions has .*expected \(seq=5,\)",
        ),
        (lambda: pf.LearnedPositions(0, 12, key=KEY), ValueError, r"max_len is 0; expected at least 1"),
        (lambda: pf.LearnedPositions(7, 12.0, key=KEY), TypeError, r"d_model is 12\.0; expected a whole number"),
        (lambda: pf.LearnedPositions(7, 10, key=KEY).embed(X), ValueError, r"x has .*expected \(seq, d_model=10\)"),
        (lambda: pf.LearnedPositions(7, 12, key=KEY).embed(X, jnp.ones(5)), TypeError, r"positions holds float32"),
        (
            lambda: pf.LearnedPositions(7, 12, key=KEY).embed(X, jnp.arange(6)),
            ValueError,
            r"positions has .*\(seq=5,\)",
        ),
        (lambda: pf.RotaryPositions(base=0.0), ValueError, r"base is 0\.0; expected a finite number above 0, such as"),
        (lambda: pf.RotaryPositions(base=float("nan")), ValueError, r"base is nan; expected a finite number"),
        (lambda: pf.RotaryPositions(base=float("inf")), ValueError, r"base is inf; expected a finite number"),
        (
            lambda: pf.RotaryPositions().rotate(X[0]),
            ValueError,
            r"rows has shape \(12,\).*one axis too few.*rows\[None",
        ),
        (lambda: pf.RotaryPositions().rotate(X, jnp.arange(6)), ValueError, r"positions has shape \(6,\); expected"),
    ],
)
def test_bad_positions_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pf.relative_buckets(jnp.ones((2, 3))), TypeError, r"offsets holds float32; expected whole numbers"),
        (
            lambda: pf.relative_buckets(jnp.arange(3)),
            ValueError,
            r"offsets has shape \(3,\); expected \(q_seq, kv_seq\)",
        ),
        (
            lambda: pf.RelativePositions(3, num_buckets=6, key=KEY),
            ValueError,
            r"num_buckets is 6; expected a multiple of 4: half for near.*, both before and after the query\.",
        ),
        (
            lambda: pf.RelativePositions(3, num_buckets=7, causal=True, key=KEY),
            ValueError,
            r"num_buckets is 7; expected a multiple of 2: half for near distances, half for far ones\.",
        ),
        (lambda: pf.RelativePositions(3, num_buckets=0, key=KEY), ValueError, r"num_buckets is 0; expected at least 1"),
        (
            lambda: pf.RelativePositions(3, max_distance=8, key=KEY),
            ValueError,
            r"max_distance is 8; expected more than 8, since distances 0 to 7 have a bucket each if num_buckets is 32",
        ),
        (
            lambda: pf.RelativePositions(3, max_distance=16, causal=True, key=KEY),
            ValueError,
            r"max_distance is 16; expected more than 16, .*Take a larger distance, or fewer buckets",
        ),
        (lambda: pf.RelativePositions(0, key=KEY), ValueError, r"num_heads is 0; expected at least 1"),
        (
            lambda: pf.RelativePositions(2, key=KEY).bias([0], [0]),
            TypeError,
            r"q_positions is a list; expected an array",
        ),
        (
            lambda: pf.RelativePositions(2, key=KEY).bias(jnp.arange(5), jnp.arange(7.0)),
            TypeError,
            r"kv_positions holds float32; expected whole numbers",
        ),
        (lambda: pf.alibi_slopes(0), ValueError, r"num_heads is 0; expected at least 1"),
        (lambda: pf.AlibiPositions(2.0), TypeError, r"num_heads is 2\.0; expected a whole number"),
        (
            lambda: pf.AlibiPositions(2).bias(jnp.ones((2, 5), int), jnp.arange(7)),
            ValueError,
            r"q_positions has shape \(2, 5\); expected \(q_seq,\).*jax\.vmap",
        ),
        (lambda: pf.attend(Q, K, V, bias=jnp.ones((7, 5))), ValueError, r"bias has .*expected \(q_seq=5, kv_seq=7\)"),
        (lambda: pf.attend(Q, K, V, bias=jnp.ones((3, 5, 7))), ValueError, r"bias has .*one head.*jax\.vmap"),
        (lambda: pf.attention_weights(Q, K, bias=[[0.0]]), TypeError, r"bias is a list; expected an array"),
        (lambda: pf.scaled_scores(Q, K, bias=jnp.ones(7)), ValueError, r"bias has shape \(7,\); expected \(q_seq=5"),
        (lambda: pf.attend(Q, K, V, bias=jnp.ones((5, 7), bool)), TypeError, r"bias is an array of bool;.*as mask"),
    ],
)
def test_bad_biases_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("position", "error", "message"),
    [
        (
            pf.RotaryPositions,
            TypeError,
            r"position is the class RotaryPositions; expected an object.*RotaryPositions\(",
        ),
        (pf.AlibiPositions, TypeError, r"position is the class AlibiPositions; expected an object of it"),
        ("rotary", TypeError, r"position is of type str; expected a scheme of chapter 05, such as RotaryPositions\(\)"),
        (jnp.arange(5), TypeError, r"position is of type ArrayImpl; expected a scheme"),
        (
            pf.AlibiPositions(4),
            ValueError,
            r"The bias of AlibiPositions has shape \(4, 5, 5\); expected \(heads=3, .*Make it for the 3 heads here",
        ),
        (
            pf.RelativePositions(1, key=KEY),
            ValueError,
            r"The bias of RelativePositions has shape \(1, 5, 5\); expected \(heads=3, q_seq=5, kv_seq=5\)",
        ),
    ],
)
def test_bad_schemes_are_named(position, error, message):
    for call in (attention(), attention().weights, pf.TransformerBlock(12, 3, key=KEY)):
        with pytest.raises(error, match=message):
            call(X, position=position)


@pytest.mark.usefixtures("unchecked")
def test_rotary_positions_in_heads_of_odd_width_are_named():
    with pytest.raises(
        ValueError, match=r"d_k is 3, an odd number; expected an even one, since columns are taken in p"
    ):
        attention(4)(X, position=pf.RotaryPositions())


@pytest.mark.equation("eq-positions-learned")
@pytest.mark.parametrize(("positions", "bad"), [(None, 4), ([0, 1, 9, 7, 2], 9), ([0, 3, -1, 2, 1], -1)])
def test_learned_positions_refuse_what_the_table_does_not_hold(positions, bad):
    scheme = pf.LearnedPositions(4, 12, key=KEY)
    positions = None if positions is None else jnp.array(positions)
    with pytest.raises(ValueError, match=rf"Position {bad} is out of range; expected 0 to 3\. .*make it longer"):
        scheme.embed(X, positions)
    compiled = eqx.filter_jit(lambda scheme, positions: scheme.embed(X, positions))
    if positions is None:  # the number of rows is known while tracing
        with pytest.raises(ValueError, match=r"Position 4 is out of range; expected 0 to 3"):
            compiled(scheme, None)
    else:
        with pytest.raises(eqx.EquinoxRuntimeError, match=r"A position is out of range; expected 0 to 3\."):
            jax.block_until_ready(compiled(scheme, positions))
        with pytest.raises(eqx.EquinoxRuntimeError, match=r"A position is out of range; expected 0 to 3\."):
            jax.vmap(lambda at: scheme.embed(X, at))(positions[None])
    fine = jnp.array([3, 0, 1, 0, 2])
    np.testing.assert_array_equal(compiled(scheme, fine), X + scheme.table[fine])


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        # Sines and table rows as whole numbers would all be 0.
        (lambda x: pf.rotate_pairs(x, jnp.arange(5)), r"rows holds int32; expected floats.*rows\.astype\(float\)"),
        (lambda x: pf.SinusoidalPositions(12).embed(x), r"x holds int32; expected floats"),
        (lambda x: pf.LearnedPositions(5, 12, key=KEY).embed(x), r"x holds int32; expected floats"),
        (lambda x: pf.RotaryPositions(base="10000"), r"base is '10000'; expected a number, such as 10000"),
        (lambda x: pf.RotaryPositions(base=True), r"base is True; expected a number"),
    ],
)
def test_whole_numbers_in_the_place_of_floats_are_named(call, message):
    with pytest.raises(TypeError, match=message):
        call(jnp.ones((5, 12), int))


@pytest.mark.usefixtures("unchecked")
def test_numpy_arrays_in_double_precision_are_taken_without_a_warning():
    x = np.ones((5, 12))  # warnings are errors here
    for scheme in (pf.SinusoidalPositions(12), pf.LearnedPositions(5, 12, key=KEY), pf.RotaryPositions()):
        assert pf.LayerNorm(12)(scheme.rotate(scheme.embed(x))).dtype == jnp.float32
    assert pf.RMSNorm(12)(x).dtype == pf.standardise(x).dtype == pf.attend(x, x, x).dtype == jnp.float32


def test_schemes_take_no_tokens_at_all():
    for scheme in (pf.SinusoidalPositions(12), pf.LearnedPositions(4, 12, key=KEY), pf.RotaryPositions()):
        assert scheme.embed(X[:0]).shape == scheme.rotate(X[:0]).shape == (0, 12)
    for scheme in (pf.AlibiPositions(3), pf.RelativePositions(3, key=KEY)):
        assert scheme.bias(jnp.arange(5), jnp.arange(0)).shape == (3, 5, 0)
