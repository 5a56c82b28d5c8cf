"""One mask for a table, a rule, and nothing hidden."""

import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from plainformer.attention.mask import EVERYTHING, Mask

IS_TOKEN = jnp.asarray([True, True, False, True, True])
TABLE = jnp.asarray(np.random.default_rng(0).random((2, 5, 5)) < 0.7)


@pytest.mark.equation("eq-efficiency-rule")
def test_a_mask_of_several_kinds_lets_through_what_each_allows():
    mask = Mask(is_token=IS_TOKEN, causal=True, allowed=TABLE)
    expected = np.asarray(TABLE) & np.tri(5, dtype=bool) & np.asarray(IS_TOKEN)
    np.testing.assert_array_equal(mask.table(5, 5), expected)
    rows, columns = jnp.asarray([4, 1]), jnp.asarray([0, 2, 3])
    np.testing.assert_array_equal(mask(rows, columns), expected[:, [4, 1]][..., [0, 2, 3]])
    np.testing.assert_array_equal(mask.for_heads().table(5, 5), expected[:, None])


def test_mask_of_anything_is_a_mask():
    mask = Mask(causal=True)
    assert Mask.of(mask) is mask
    assert Mask.of(None).hides_nothing
    assert EVERYTHING.hides_nothing
    assert not any(each.hides_nothing for each in (mask, Mask(is_token=IS_TOKEN), Mask.of(TABLE)))
    assert Mask.of(TABLE).table(5, 5) is TABLE


def test_mask_clears_what_no_query_sees():
    rows = jnp.arange(10.0).reshape(5, 2)
    np.testing.assert_array_equal(Mask(is_token=IS_TOKEN).without_unseen(rows, 4)[2], 0)
    table = jnp.ones((3, 5), bool).at[:, 1].set(False)
    np.testing.assert_array_equal(Mask.of(table).without_unseen(rows, 3), rows.at[1].set(0))
    assert EVERYTHING.without_unseen(rows, 4) is rows
    late = jnp.ones((3, 2)).at[2].set(jnp.nan)  # two queries, in order: nobody sees the third key
    np.testing.assert_array_equal(Mask(causal=True).without_unseen(late, 2)[2], 0)
    both = Mask(causal=True, allowed=jnp.ones((3, 5), bool).at[2, 2].set(False))  # nor, of three, this one
    np.testing.assert_array_equal(both.without_unseen(rows, 3)[2:], 0)


def test_a_mask_is_of_the_texts_that_attend(key):
    layer = pf.MultiHeadAttention(8, 2, key=key)
    three = Mask(is_token=jnp.ones((3, 4), bool))
    for x in (jnp.ones((4, 8)), jnp.ones((2, 4, 8))):
        with pytest.raises(ValueError, match="is_token"):
            layer(x, three)
    assert layer(jnp.ones((3, 4, 8)), three).shape == (3, 4, 8)
    with pytest.raises(TypeError, match="positional"):
        Mask(pf.causal_mask(4))  # a table is `allowed`


def test_a_kernel_returns_a_row_for_each_query(key):
    class TwoRows(pf.attention.Softmax):
        def attend(self, queries, keys, values, mask, scheme):
            return values[..., :2, :]

    with pytest.raises(ValueError, match="TwoRows"):
        pf.MultiHeadAttention(8, 2, kernel=TwoRows(), key=key)(jnp.ones((3, 5, 8)))


@pytest.mark.parametrize(("mask", "message"), [(Mask(is_token=IS_TOKEN), "is_token"), (Mask.of(TABLE), "mask")])
def test_mask_says_for_how_many_queries_and_keys_it_is(mask, message, key):
    with pytest.raises(ValueError, match=message):
        mask.table(3, 7)
    with pytest.raises(ValueError, match=message):
        pf.MultiHeadAttention(8, num_heads=2, key=key)(jnp.ones((3, 8)), mask, context=jnp.ones((7, 8)))


def test_a_mask_of_zeros_and_minus_infinity_is_told_apart():
    with pytest.raises(TypeError, match="allowed"):
        Mask(allowed=jnp.where(pf.causal_mask(3), 0, -jnp.inf))
