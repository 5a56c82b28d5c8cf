"""One mask for a table, a rule, and nothing hidden."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from plainformer.attention.mask import EVERYTHING, Mask

IS_TOKEN = jnp.asarray([True, True, False, True, True])
TABLE = jnp.asarray(np.random.default_rng(0).random((2, 5, 5)) < 0.7)


@pytest.mark.equation("eq-efficiency-rule")
def test_a_mask_of_several_kinds_lets_through_what_each_allows():
    mask = Mask(IS_TOKEN, causal=True, allowed=TABLE)
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
    assert not any(each.hides_nothing for each in (mask, Mask(IS_TOKEN), Mask.of(TABLE)))
    assert Mask.of(TABLE).table(5, 5) is TABLE


def test_mask_clears_what_no_query_sees():
    rows = jnp.arange(10.0).reshape(5, 2)
    np.testing.assert_array_equal(Mask(IS_TOKEN).without_unseen(rows)[2], 0)
    table = jnp.ones((3, 5), bool).at[:, 1].set(False)
    np.testing.assert_array_equal(Mask.of(table).without_unseen(rows), rows.at[1].set(0))
    assert EVERYTHING.without_unseen(rows) is rows


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (Mask(IS_TOKEN), r"is_token has shape \(5,\); expected \(\.\.\., kv_seq=7\)\. One for each key\."),
        (Mask.of(TABLE), r"mask has shape \(2, 5, 5\); expected \(\.\.\., q_seq=3, kv_seq=7\)"),
    ],
)
def test_mask_says_for_how_many_queries_and_keys_it_is(mask, message):
    with pytest.raises(ValueError, match=message):
        mask.table(3, 7)
    layer = pf.MultiHeadAttention(8, num_heads=2, key=jax.random.key(0))
    with pytest.raises(ValueError, match=message):
        layer(jnp.ones((3, 8)), mask, context=jnp.ones((7, 8)))
