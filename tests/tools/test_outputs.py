"""Which printed outputs are wrapped, and which keep their columns."""

import pytest
from book_meaning.outputs import is_table

TABLES = [
    "steps  loss\n  100  0.25\n",
    "[[0.5 0.5]\n [1.  0. ]]\n",
    "sum [1.]\n[0.1 0.2]\n[0.3 0.4]",
    "a   1\nb   2\nin all\n",
]
WORDS = [
    "loss 0.25",
    "x has shape (3, 2); expected (..., seq, d_model=4). Are its last two axes exchanged? Try x.mT, and look again.",
    "one sentence\nand another one, after it\n",
    "the weights: [0.5 0.5]\n",
    "an indented line\n    is no table\n",
]


@pytest.mark.parametrize("printed", TABLES)
def test_columns_are_a_table(printed):
    assert is_table(printed)


@pytest.mark.parametrize("printed", WORDS)
def test_sentences_are_none(printed):
    assert not is_table(printed)
