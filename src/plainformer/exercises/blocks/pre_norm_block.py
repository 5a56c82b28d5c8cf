"""Exercise `pre_norm_block`: attention and feed-forward, each on normalised rows and with a skip.

The right steps are float64 NumPy and share no line with `plainformer.blocks.blocks`.
"""

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, floats


def pre_norm_block(
    x,
    attention,
    feed_forward,
    attention_norm,
    feed_forward_norm,
    *,
    norms=lambda attention_norm, feed_forward_norm: (attention_norm, feed_forward_norm),
    first=lambda x, f: x + f.attention(f.attention_norm(x)),
    second=lambda x, y, f: y + f.feed_forward(f.feed_forward_norm(y)),
):
    """Return the rows after both sublayers."""
    attention_norm, feed_forward_norm = norms(attention_norm, feed_forward_norm)
    f = SimpleNamespace(
        attention=attention,
        feed_forward=feed_forward,
        attention_norm=attention_norm,
        feed_forward_norm=feed_forward_norm,
    )
    return second(x, first(x, f), f)


def _in_each(diagnosis: str, hint: str, sublayer: Callable) -> list[Mistake]:
    """A fault of both sublayers, of the first alone, of the second alone; `sublayer(x, f, norm)` has it."""

    def first(x, f):
        return sublayer(x, f.attention, f.attention_norm)

    def second(x, y, f):
        return sublayer(y, f.feed_forward, f.feed_forward_norm)

    return [
        Mistake(f"in both sublayers {diagnosis}", hint, first=first, second=second),
        Mistake(f"in the attention sublayer {diagnosis}", hint, first=first),
        Mistake(f"in the feed-forward sublayer {diagnosis}", hint, second=second),
    ]


MISTAKES = [
    *_in_each(
        "you normalise after the skip, norm(x + f(x)): that is post-norm",
        "If both sublayers return zeros, x should pass the block unchanged. Does it pass yours?",
        lambda x, f, norm: norm(x + f(x)),
    ),
    *_in_each(
        "the skip carries the normalised rows, norm(x) + f(norm(x))",
        "If both sublayers return zeros, x should pass the block unchanged. Does it pass yours?",
        lambda x, f, norm: norm(x) + f(norm(x)),
    ),
    *_in_each(
        "there is no skip: you return f(norm(x))",
        "A sublayer says what to change. What is its output added to?",
        lambda x, f, norm: f(norm(x)),
    ),
    *_in_each(
        "you normalise what the sublayer returns, x + norm(f(x)), not what it reads",
        "Which rows grow from block to block, and should the sublayer see them as they are?",
        lambda x, f, norm: x + norm(f(x)),
    ),
    *_in_each(
        "there is no norm: you return x + f(x)",
        "Which argument have you not used?",
        lambda x, f, norm: x + f(x),
    ),
    *_in_each(
        "you normalise twice, what the sublayer reads and then the sum",
        "If both sublayers return zeros, x should pass the block unchanged. Does it pass yours?",
        lambda x, f, norm: norm(x + f(norm(x))),
    ),
    Mistake(
        "your feed-forward sublayer reads x, not the sum that attention has changed",
        "When the feed-forward runs, attention has already spoken. Through which variable does it hear?",
        second=[
            lambda x, y, f: y + f.feed_forward(f.feed_forward_norm(x)),
            lambda x, y, f: y + f.feed_forward(f.attention_norm(x)),
        ],
    ),
    Mistake(
        "your second skip carries x, so what attention added gets no further than the feed-forward",
        "The second sublayer changes what the first has made. To what should its output be added?",
        second=lambda x, y, f: x + f.feed_forward(f.feed_forward_norm(y)),
    ),
    Mistake(
        "one skip spans both sublayers: x is added only once, at the end",
        "How many sublayers are there, and how many sums?",
        first=lambda x, f: f.attention(f.attention_norm(x)),
        second=lambda x, y, f: x + f.feed_forward(f.feed_forward_norm(y)),
    ),
    Mistake(
        "what attention returns is never used",
        "Could one token learn of another in your block?",
        second=lambda x, y, f: x + f.feed_forward(f.feed_forward_norm(x)),
    ),
    Mistake("your feed-forward plays no part", "What follows the attention sublayer?", second=lambda x, y, f: y),
    Mistake(
        "both of your sublayers are attention",
        "Which argument have you not used?",
        second=lambda x, y, f: y + f.attention(f.feed_forward_norm(y)),
    ),
    Mistake(
        "the sublayers are in the wrong order: your feed-forward comes before attention",
        "Tokens first gather from one another, then each works alone. Which function does the gathering?",
        {
            "first": lambda x, f: x + f.feed_forward(f.feed_forward_norm(x)),
            "second": lambda x, y, f: y + f.attention(f.attention_norm(y)),
        },
        {
            "first": lambda x, f: x + f.feed_forward(f.attention_norm(x)),
            "second": lambda x, y, f: y + f.attention(f.feed_forward_norm(y)),
        },
    ),
    Mistake(
        "you use the first norm twice",
        "Each sublayer has a norm with its own scale and bias. Which argument have you not used?",
        norms=lambda attention_norm, feed_forward_norm: (attention_norm, attention_norm),
    ),
    Mistake(
        "you use the second norm twice",
        "Each sublayer has a norm with its own scale and bias. Which argument have you not used?",
        norms=lambda attention_norm, feed_forward_norm: (feed_forward_norm, feed_forward_norm),
    ),
    Mistake(
        "the two norms are swapped",
        "Which sublayer does attention_norm prepare the rows for?",
        norms=lambda attention_norm, feed_forward_norm: (feed_forward_norm, attention_norm),
    ),
]


class Function:
    """An argument that is a function itself, with the words that stand for it in a message."""

    def __init__(self, call: Callable, text: str = "a function"):
        self.call, self.text = call, text

    def __call__(self, rows):
        """Return the function's value, in the precision of the rows that come."""
        return self.call(rows)

    def __repr__(self) -> str:
        return self.text


_RNG = np.random.default_rng(2018)


def _like(array, rows):
    """The array in the precision of the rows, which are NumPy's for us and JAX's for the reader."""
    return array.astype(rows.dtype)


def _each_row(vector, rows):
    """The vector for every row: JAX can be told to refuse a sum of a vector and a matrix."""
    return _like(np.broadcast_to(vector, rows.shape), rows)


def _norm(width):
    scale, bias = _RNG.normal(size=(2, width)).round(2) + 1

    def standardise(rows):
        centred = rows - rows.mean(axis=-1, keepdims=True)
        root = ((centred**2).mean(axis=-1, keepdims=True) + 1e-5) ** 0.5
        return centred / root * _each_row(scale, rows) + _each_row(bias, rows)

    return Function(standardise)


def _mixer(seq, width):
    over_rows, over_columns = _RNG.uniform(size=(seq, seq)).round(2), _RNG.normal(size=(width, width)).round(2)
    return Function(lambda rows: _like(over_rows, rows) @ rows @ _like(over_columns, rows))


def _feed(width):
    matrix, offset = _RNG.normal(size=(width, width)).round(2), _RNG.normal(size=width).round(2)
    return Function(lambda rows: (rows @ _like(matrix, rows) + _each_row(offset, rows)).clip(0))


def _case(name, seq, width, is_edge=False, **others):
    inputs = {
        "x": 2 * _RNG.normal(size=(seq, width)).round(2) + 1,
        "attention": _mixer(seq, width),
        "feed_forward": _feed(width),
        "attention_norm": _norm(width),
        "feed_forward_norm": _norm(width),
    }
    return Case(name, inputs | others, is_edge)


_NOTHING = Function(lambda rows: 0 * rows, "lambda rows: 0 * rows")

EXERCISE = Exercise(
    pre_norm_block,
    MISTAKES,
    cases=[
        _case("more tokens than features", 5, 4),
        _case("more features than tokens", 3, 6),
        _case("one token", 1, 4, is_edge=True),
        _case("sublayers that return zeros", 5, 4, is_edge=True, attention=_NOTHING, feed_forward=_NOTHING),
    ],
    examples=[
        # Units, tens and hundreds show where a number came from; the norms only have to differ.
        {
            **floats(x=[[3], [5]]),
            "attention": Function(lambda rows: 10 * rows[::-1], "lambda rows: 10 * rows[::-1]"),
            "feed_forward": Function(lambda rows: 100 * rows, "lambda rows: 100 * rows"),
            "attention_norm": Function(lambda rows: rows - 2, "lambda rows: rows - 2"),
            "feed_forward_norm": Function(lambda rows: rows - 3, "lambda rows: rows - 3"),
        }
    ],
    result="(seq, d_model)",
    tried_on="{x[0]} tokens, {x[1]} features",
)
