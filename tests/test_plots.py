"""The pictures that several chapters draw."""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest

from plainformer.plots import attention_map

WEIGHTS = jnp.array([[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]])


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def test_attention_map_draws_queries_as_rows_and_keys_as_columns():
    ax = attention_map(WEIGHTS, ["a", "b"], ["x", "y", "z"], title="head")
    np.testing.assert_array_equal(ax.images[0].get_array(), np.asarray(WEIGHTS))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["x", "y", "z"]
    assert (ax.get_ylabel(), ax.get_xlabel(), ax.get_title()) == ("query", "key", "head")
    written = {text.get_position(): text.get_text() for text in ax.texts}
    assert written[2, 1] == "0.50"  # (column, row)
    assert written[0, 0] == "0.90"


def test_attention_map_numbers_are_left_out_of_wide_maps():
    assert not attention_map(jnp.full((2, 9), 1 / 9)).texts
    assert len(attention_map(jnp.full((2, 9), 1 / 9), numbers=True).texts) == 18


@pytest.mark.usefixtures("unchecked")
def test_attention_map_takes_labels_as_an_array_and_uses_them_for_both_sides_of_a_square():
    ax = attention_map(jnp.eye(3), np.array(list("abc")))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "b", "c"]


def test_attention_map_shows_dollar_signs_as_they_are(tmp_path):
    attention_map(jnp.eye(2), ["$x_$", "b"]).figure.savefig(tmp_path / "map.png")


def test_attention_map_bad_input():
    with pytest.raises(ValueError, match=r"weights has shape \(3, 2, 2\).*weights\[0\]"):
        attention_map(jnp.ones((3, 2, 2)))
    with pytest.raises(ValueError, match=r"weights has shape \(3,\); expected \(q_seq, kv_seq\)"):
        attention_map(jnp.ones(3))
    with pytest.raises(ValueError, match=r"rows holds 3 labels; expected 2"):
        attention_map(WEIGHTS, ["a", "b", "c"])
    with pytest.raises(ValueError, match=r"columns holds 2 labels; expected 3"):
        attention_map(WEIGHTS, None, ["x", "y"])
