"""Exercise `split_heads`: the columns of each row shared out among the heads."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, draw, floats


def split_heads(x, num_heads, *, cut=lambda x, h: x.reshape(len(x), h, -1).transpose(1, 0, 2)):
    """Return neighbouring columns of every row for each head, `(num_heads, seq, d_head)`."""
    return cut(x, num_heads)


MISTAKES = [
    Mistake(
        "you reshape to (num_heads, seq, d_head) in one go, which cuts across tokens",
        "In memory a token's numbers lie together. Which axis does a row's own reshape give, and where should it go?",
        cut=lambda x, h: x.reshape(h, len(x), -1),
    ),
    Mistake(
        "your heads are still inside the tokens: the axes are (seq, num_heads, d_head)",
        "Which two axes must change places, so that x[h] is all of head h?",
        cut=lambda x, h: x.reshape(len(x), h, -1),
    ),
    Mistake(
        "your heads take turns along a row: head h gets every num_heads-th column, not a run of neighbours",
        "In reshape the last axis runs fastest. Which of num_heads and d_head should that be?",
        cut=[lambda x, h: x.reshape(len(x), -1, h).transpose(2, 0, 1), lambda x, h: x.reshape(len(x), -1, h)],
    ),
    Mistake(
        "each head is transposed: its rows are no longer tokens",
        "Which axis of your result counts tokens, and which one should?",
        cut=lambda x, h: x.reshape(len(x), h, -1).transpose(1, 2, 0),
    ),
    Mistake(
        "you make pieces that are num_heads wide, not num_heads pieces",
        "How wide is one head, if num_heads of them share a row?",
        cut=lambda x, h: x.reshape(len(x), -1, h).transpose(1, 0, 2),
    ),
    Mistake(
        "you share out the tokens among the heads, not the columns",
        "Every head sees every token. Which axis of x is cut, then?",
        cut=lambda x, h: x.reshape(h, -1, x.shape[1]),
    ),
]

_RNG = np.random.default_rng(2017)


def _case(name, seq, width, num_heads, is_edge=False):
    return Case(name, {**draw(_RNG, 3, x=(seq, width)), "num_heads": num_heads}, is_edge)


EXERCISE = Exercise(
    split_heads,
    MISTAKES,
    cases=[
        _case("heads narrower than their number", 5, 12, 6),
        _case("as many tokens as can be shared out", 6, 12, 3),
        _case("one head", 5, 12, 1, is_edge=True),
        _case("heads one number wide", 5, 12, 12, is_edge=True),
    ],
    examples=[
        {**floats(x=[[11, 12, 13, 14, 15, 16], [21, 22, 23, 24, 25, 26]]), "num_heads": 2},
        {**floats(x=[[11, 12, 13, 14], [21, 22, 23, 24]]), "num_heads": 2},
    ],
    result="(num_heads, seq, d_head)",
    tried_on="{x[0]} tokens, {num_heads} heads",
)
