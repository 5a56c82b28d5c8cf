"""Texts padded to arrays, images of digits, and files of the reader's own."""

import jax.numpy as jnp
import numpy as np

from plainformer.datasets import pad_texts


def test_pad_texts_fills_up_on_the_right():
    ids, is_token = pad_texts([[5, 0], [7], [1, 2, 3]])
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
