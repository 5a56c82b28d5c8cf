"""Answers to `document_mask` as readers would write them, right ones and wrong ones."""

import jax.numpy as jnp
import numpy as np
from exercise_checks import in_jax, in_numpy

import plainformer as pf


def by_loops(sees):
    """The mask of a reader who asks for each pair of tokens."""

    def answer(documents):
        places = range(len(documents))
        return np.array([[sees(documents, row, column) for column in places] for row in places], int)

    return answer


def in_one_line(documents):
    return jnp.tril(documents[:, None] == documents[None, :]).astype(int)


def from_the_package(documents):
    seq = len(documents)
    return pf.attention.Mask.of_documents(jnp.asarray(documents)).table(seq, seq).astype(int)


DOCUMENT_MASK = [
    (by_loops(lambda documents, row, column: documents[row] == documents[column]), "sees what follows it"),
    (lambda documents: np.tril(np.ones((len(documents), len(documents)), int)), "the documents before its own"),
    (lambda documents: np.tril(documents[:, None] == documents, -1).astype(int), "does not see itself"),
    (lambda documents: np.triu(documents[:, None] == documents).astype(int), "the mask is transposed"),
    (lambda documents: np.tril(documents[:, None] >= documents).astype(int), "with a smaller number"),
    (
        by_loops(lambda documents, row, column: documents[row] == documents[column] or column <= row),
        "joined by or",
    ),
    (lambda documents: 1 - np.tril(documents[:, None] == documents), "1 is what is hidden"),
]
RIGHT = [
    ("document_mask", in_numpy(by_loops(lambda d, row, column: d[row] == d[column] and column <= row))),
    ("document_mask", in_jax(in_one_line)),
    ("document_mask", from_the_package),
]
WRONG = [("document_mask", in_numpy(function), words) for function, words in DOCUMENT_MASK]
