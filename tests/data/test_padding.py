"""Texts of unequal length as rows of one array."""

import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.data.padding import pad_texts


def test_pad_texts_fills_up_on_the_right():
    padded = pad_texts([[5, 0], [7], [1, 2, 3]])
    ids, is_token = padded.ids, padded.is_token
    assert ids.tolist() == [[5, 0, 0], [7, 0, 0], [1, 2, 3]]
    assert is_token.tolist() == [[True, True, False], [True, False, False], [True, True, True]]
    assert ids.dtype == jnp.int32
    assert is_token.dtype == bool


def test_pad_texts_to_a_length_asked_for():
    ids, is_token = pad_texts([np.array([4, 6]), (9,)], 4)
    assert ids.tolist() == [[4, 6, 0, 0], [9, 0, 0, 0]]
    assert is_token.sum(axis=1).tolist() == [2, 1]


def test_pad_texts_cuts_when_asked():
    ids, is_token = pad_texts([[4, 6, 5], [9]], 2, cut=True)
    assert ids.tolist() == [[4, 6], [9, 0]]
    assert is_token.tolist() == [[True, True], [True, False]]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pad_texts([]), ValueError, r"^texts is empty"),
        (lambda: pad_texts([[1], []]), ValueError, r"^texts\[1\] is empty"),
        (lambda: pad_texts([[1], [1, 2, 3], [1, 2, 3, 4]], 2), ValueError, r"^texts\[1\] has 3 tokens"),
        (lambda: pad_texts([[1], [2, -3]]), ValueError, r"^texts\[1\]\[1\] is -3"),
        (lambda: pad_texts([1, 2]), ValueError, r"^texts\[0\] has shape \(\)"),
        (lambda: pad_texts(["abc"]), TypeError, r"^texts\[0\] is a string"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_pad_texts_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
