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


def test_pad_texts_gives_back_every_token():
    random = np.random.default_rng(3)
    texts = [random.integers(0, 5, size).tolist() for size in random.integers(1, 12, 40)]
    ids, is_token = (np.asarray(array) for array in pad_texts(texts, 13))
    assert [row[kept].tolist() for row, kept in zip(ids, is_token, strict=True)] == texts
    assert not ids[~is_token].any()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pad_texts([]), ValueError, r"^texts is empty; expected at least one list of token ids"),
        (lambda: pad_texts([[1], []]), ValueError, r"^texts\[1\] is empty; expected at least one token"),
        (
            lambda: pad_texts([[1], [1, 2, 3], [1, 2, 3, 4]], 2),
            ValueError,
            r"^texts\[1\] has 3 tokens; expected at most 2.*length=4, which holds all texts",
        ),
        (lambda: pad_texts([[1]], 0), ValueError, r"^length is 0; expected at least 1"),
        (lambda: pad_texts([[1]], 2.0), TypeError, r"^length is 2.0; expected a whole number"),
        (lambda: pad_texts([[1], [2, -3]]), ValueError, r"^texts\[1\]\[1\] is -3; expected 0 to"),
        (lambda: pad_texts([1, 2]), ValueError, r"^texts\[0\] has shape \(\); expected \(seq,\)"),
        (lambda: pad_texts([[1.5]]), TypeError, r"^texts\[0\] are float64; expected whole numbers"),
        (lambda: pad_texts(["abc"]), TypeError, r"^texts\[0\] is a string.*Encode it first"),
        (lambda: pad_texts("abc"), TypeError, r"^texts is a string; expected a list of texts"),
        (lambda: pad_texts(3), TypeError, r"^texts is 3; expected a list of texts"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_pad_texts_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
