"""A learned table, one vector per position."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toy_models import drawn

import plainformer as pf

SEQ, D_MODEL, MAX_LEN = 5, 12, 13
POSITIONS = np.array([4, 0, 11, 2, 7])  # in no order, one for each of the five rows
X = np.random.default_rng(0).normal(size=(SEQ, D_MODEL)).astype(np.float32)
KEY = jax.random.key(0)


def new_scheme(max_len=MAX_LEN, d_model=D_MODEL):
    return drawn(lambda sizes, key: pf.LearnedPositions(*sizes, key=key), (max_len, d_model))


SCHEME = new_scheme()
TABLE = np.asarray(SCHEME.table)
embed = eqx.filter_jit(lambda scheme, *arguments: scheme.embed(*arguments))


@pytest.mark.equation("eq-positions-learned", "eq-positions-embed")
def test_learned_positions_are_rows_of_the_table():
    np.testing.assert_array_equal(SCHEME.embed(X), X + TABLE[:SEQ])
    for dtype in (np.int32, np.int8):
        np.testing.assert_array_equal(SCHEME.embed(X, POSITIONS.astype(dtype)), X + TABLE[POSITIONS])
    exact = new_scheme(SEQ)
    np.testing.assert_array_equal(exact.embed(X), X + np.asarray(exact.table))


@pytest.mark.equation("eq-positions-learned", "eq-positions-embed")
def test_learned_positions_of_a_batch_are_those_of_each_text():
    numbers = np.random.default_rng(0)
    x, positions = (
        numbers.normal(size=(2, 3, SEQ, D_MODEL)).astype(np.float32),
        numbers.integers(MAX_LEN, size=(2, 3, SEQ)),
    )
    np.testing.assert_array_equal(SCHEME.embed(x, positions), x + TABLE[positions])
    np.testing.assert_array_equal(SCHEME.embed(x, positions[1]), x + TABLE[positions[1]])  # shared by the first axis
    np.testing.assert_array_equal(SCHEME.embed(x), x + TABLE[:SEQ])
    np.testing.assert_array_equal(jax.vmap(jax.vmap(SCHEME.embed))(x, positions), x + TABLE[positions])


@pytest.mark.equation("eq-positions-learned")
def test_learned_positions_start_small_and_learn_only_what_they_saw(key):
    table = np.asarray(pf.LearnedPositions(400, 30, key=key).table)
    assert table.shape == (400, 30)
    assert abs(float(table.std()) - 0.02) < 0.001
    assert len(np.unique(table)) > 11_000
    gradient = eqx.filter_jit(eqx.filter_grad(lambda s: (s.embed(X, POSITIONS) ** 2).sum()))(SCHEME).table
    assert set(np.flatnonzero(np.abs(gradient).sum(axis=1))) == set(POSITIONS)


def test_learned_positions_keep_half_precision_as_it_is():
    dtype = jnp.bfloat16
    embedded = SCHEME.embed(X.astype(dtype), POSITIONS)
    assert embedded.dtype == dtype
    expected, atol = X + TABLE[POSITIONS], float(4 * jnp.finfo(dtype).eps)
    np.testing.assert_allclose(embedded.astype(jnp.float32), expected, rtol=0, atol=atol)


@pytest.mark.equation("eq-positions-learned")
@pytest.mark.parametrize(("place", "bad"), [(2, 13), (0, -1)])
@pytest.mark.run_time_check
def test_learned_positions_refuse_what_the_table_does_not_hold(place, bad):
    positions = POSITIONS.copy()
    positions[place] = bad
    with pytest.raises(ValueError, match=rf"positions\[{place}\] is {bad}"):
        SCHEME.embed(X, positions)
    message = r"An entry of positions is not allowed; expected 0 to 12\. .*make it longer"
    with pytest.raises(eqx.EquinoxRuntimeError, match=message):
        jax.block_until_ready(embed(SCHEME, X, positions))
    with pytest.raises(eqx.EquinoxRuntimeError, match=message):
        jax.block_until_ready(jax.vmap(lambda at: SCHEME.embed(X, at))(positions[None]))
    np.testing.assert_array_equal(embed(SCHEME, X, POSITIONS), X + TABLE[POSITIONS])


def test_learned_positions_refuse_a_text_that_is_too_long_even_while_tracing():
    for call in (lambda scheme, x: scheme.embed(x), embed):
        with pytest.raises(ValueError, match=r"positions\[4\] is 4"):
            call(new_scheme(4), X)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pf.LearnedPositions(0, 12, key=KEY), ValueError, r"max_len is 0"),
        (lambda: SCHEME.embed(X[:, :10]), ValueError, r"x has shape \(5, 10\)"),
        (lambda: SCHEME.embed(X, np.arange(6)), ValueError, r"positions has shape \(6,\)"),
        (lambda: SCHEME.embed(X.astype(int)), TypeError, r"x holds int64"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
