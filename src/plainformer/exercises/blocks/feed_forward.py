"""Exercise `feed_forward`: two linear maps with a ReLU between them, for each token by itself.

The right steps are float64 NumPy and share no line with `plainformer.blocks.layers`.
"""

from math import erf

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, draw, floats


def feed_forward(
    x,
    w_in,
    b_in,
    w_out,
    b_out,
    *,
    expand=lambda x, w, b: x @ w + b,
    activate=lambda hidden, b: np.maximum(hidden, 0),
    contract=lambda hidden, w, b: hidden @ w + b,
    finish=lambda y, x: y,
):
    """Return each row, taken to `d_ff` numbers, through ReLU, and back."""
    hidden = activate(expand(x, w_in, b_in), b_in)
    return finish(contract(hidden, w_out, b_out), x)


def _relu(hidden):
    return np.maximum(hidden, 0)


def _same_hidden(hidden, b):
    return hidden


MISTAKES = [
    Mistake(
        "there is no ReLU: you apply two linear maps in a row",
        "Which single matrix does the same as w_in followed by w_out?",
        activate=_same_hidden,
    ),
    Mistake(
        "your ReLU comes after the second map, not between the two",
        "What bends the function, if nothing stands between w_in and w_out? And may the result be negative?",
        activate=_same_hidden,
        finish=lambda y, x: _relu(y),
    ),
    Mistake(
        "you apply ReLU after the second map, too",
        "What a sublayer adds to x may be negative. Can yours be?",
        finish=lambda y, x: _relu(y),
    ),
    Mistake(
        "you apply ReLU to x, before the first map, and not after it",
        "Which numbers are the hidden ones: those that go into w_in, or those that come out of it?",
        expand=lambda x, w, b: _relu(x) @ w + b,
        activate=_same_hidden,
    ),
    Mistake(
        "you take the largest number over all tokens (max along axis 0), not the larger of each number and 0",
        "Which of jnp.max and jnp.maximum compares two things, and what is 0 to the other?",
        activate=[lambda hidden, b: hidden.max(axis=0), lambda hidden, b: hidden.max(axis=0, keepdims=True)],
    ),
    Mistake(
        "your activation keeps the negative numbers and drops the positive ones",
        "ReLU of -2 is 0, and ReLU of 3 is 3. Do you need the larger or the smaller of a number and 0?",
        activate=lambda hidden, b: np.minimum(hidden, 0),
    ),
    Mistake(
        "you take the absolute value, not ReLU: negative numbers change their sign, where they should become 0",
        "What should become of a hidden -2?",
        activate=lambda hidden, b: np.abs(hidden),
    ),
    Mistake(
        "your activation is GELU, not ReLU: small negative numbers leave a trace",
        "What should become of a hidden -2?",
        activate=[
            lambda hidden, b: hidden * (1 + np.vectorize(erf, otypes=[float])(hidden / np.sqrt(2))) / 2,
            lambda hidden, b: hidden * (1 + np.tanh(np.sqrt(2 / np.pi) * (hidden + 0.044715 * hidden**3))) / 2,
        ],
    ),
    Mistake(
        "your activation is SiLU, not ReLU: small negative numbers leave a trace",
        "What should become of a hidden -2?",
        activate=lambda hidden, b: hidden / (1 + np.exp(-hidden)),
    ),
    Mistake(
        "your activation levels off (a sigmoid or tanh), where ReLU lets large numbers through as they are",
        "What should become of a hidden 3?",
        activate=[lambda hidden, b: 1 / (1 + np.exp(-hidden)), lambda hidden, b: np.tanh(hidden)],
    ),
    Mistake(
        "b_in is added after ReLU, so it cannot shift where ReLU bends",
        "For which x @ w_in should a hidden number begin to be positive?",
        expand=lambda x, w, b: x @ w,
        activate=lambda hidden, b: _relu(hidden) + b,
    ),
    Mistake("b_in plays no part", "If x is 0, what are the hidden numbers before ReLU?", expand=lambda x, w, b: x @ w),
    Mistake(
        "b_out plays no part",
        "If all hidden numbers are 0, what should come out?",
        contract=lambda hidden, w, b: hidden @ w,
    ),
    Mistake(
        "you return the hidden numbers: w_out and b_out play no part",
        "How do d_ff numbers a token become d_model again?",
        contract=lambda hidden, w, b: hidden,
    ),
    Mistake(
        "your first map mixes the tokens: it multiplies the columns of x, not its rows",
        "In x @ w_in, which axis of x is summed over? And may one token's result depend on another token?",
        {"expand": lambda x, w, b: x.T @ w + b},
        {"expand": lambda x, w, b: x.T @ w + b, "finish": lambda y, x: y.T},
        {"expand": lambda x, w, b: w @ x + b},
    ),
    Mistake(
        "your weights are transposed: they fit only where d_ff = d_model",
        "The shape of w_in is (d_model, d_ff). Which of its axes must meet the last one of x?",
        {"expand": lambda x, w, b: x @ w.T + b, "contract": lambda hidden, w, b: hidden @ w.T + b},
        {"expand": lambda x, w, b: x @ w.T + b},
        {"contract": lambda hidden, w, b: hidden @ w.T + b},
    ),
    Mistake(
        "you add x to the result: the skip belongs to the block, not to the feed-forward network",
        "The block will add x to what you return. How often is x counted then?",
        finish=lambda y, x: x + y,
    ),
]

_RNG = np.random.default_rng(2017)


def _case(name, seq, d_model, d_ff, is_edge=False):
    weights = {"w_in": (d_model, d_ff), "b_in": (d_ff,), "w_out": (d_ff, d_model), "b_out": (d_model,)}
    return Case(name, draw(_RNG, 2, x=(seq, d_model), **weights), is_edge)


EXERCISE = Exercise(
    feed_forward,
    MISTAKES,
    cases=[
        _case("d_ff twice d_model", 5, 4, 8),
        _case("as many tokens, features and hidden numbers", 4, 4, 4),
        _case("one token", 1, 4, 8, is_edge=True),
    ],
    examples=[
        floats(x=[[2], [-1]], w_in=[[1, -1]], b_in=[0, 3], w_out=[[10], [100]], b_out=[-30]),
        floats(x=[[1, 2], [3, -1]], w_in=[[1, 2], [0, -1]], b_in=[1, -1], w_out=[[1, 0], [10, 100]], b_out=[5, -7]),
    ],
    result="(seq, d_model)",
    tried_on="{x[0]} tokens, {w_in[1]} hidden",
)
