"""The exercises of chapter 04: layer norm, the feed-forward network and the pre-norm block.

The right steps are float64 NumPy and share no line with `plainformer.blocks.layers` and `plainformer.blocks.blocks`.
"""

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

from plainformer.exercises import layer_mistakes as wrong
from plainformer.exercises.block_mistakes import BLOCK
from plainformer.exercises.exercise import Case, Exercise


class Function:
    """An argument that is a function itself, with the words that stand for it in a message."""

    def __init__(self, call: Callable, text: str = "a function"):
        self.call, self.text = call, text

    def __call__(self, rows):
        """The function's value, in the precision of the rows that come."""
        return self.call(rows)

    def __repr__(self) -> str:
        return self.text


def _layer_norm(
    x,
    scale,
    bias,
    eps,
    *,
    mean=lambda x: x.mean(axis=-1, keepdims=True),
    centre=lambda x, mean: x - mean(x),
    variance=lambda x, centred, mean: mean(centred**2),
    divide=lambda centred, variance, eps: centred / np.sqrt(variance + eps),
    affine=lambda z, scale, bias: z * scale + bias,
):
    centred = centre(x, mean)
    return affine(divide(centred, variance(x, centred, mean), eps), scale, bias)


def _feed_forward(
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
    hidden = activate(expand(x, w_in, b_in), b_in)
    return finish(contract(hidden, w_out, b_out), x)


def _pre_norm_block(
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
    attention_norm, feed_forward_norm = norms(attention_norm, feed_forward_norm)
    f = SimpleNamespace(
        attention=attention,
        feed_forward=feed_forward,
        attention_norm=attention_norm,
        feed_forward_norm=feed_forward_norm,
    )
    return second(x, first(x, f), f)


def _layer_norm_cases() -> list[Case]:
    rng = np.random.default_rng(2016)

    def case(name, seq, d_model, eps, x=None, is_edge=False):
        drawn = 3 * rng.normal(size=(seq, d_model)).round(2) + 1
        scale, bias = rng.normal(size=(2, d_model)).round(2)
        inputs = {"x": drawn if x is None else x, "scale": scale, "bias": bias, "eps": eps}
        return Case(name, inputs, is_edge)

    # The squares of these cannot be told apart in float32, their differences can.
    far_out = 8192 + np.array([[-1, 1, -0.5, 0.5], [0.5, -1, 1, -0.5], [1, 0.5, -0.5, -1]])
    return [
        case("more tokens than features", 5, 4, 0.001),
        case("as many tokens as features, and an eps large enough to see", 4, 4, 0.5),
        case("one token", 1, 4, 0.001, is_edge=True),
        case("a token whose numbers are all alike", 2, 4, 0.001, x=np.array([[2.0] * 4, [1, 2, 3, 5]]), is_edge=True),
        case("numbers near 8192", 3, 4, 0.001, x=far_out, is_edge=True),
    ]


def _layer_norm_examples() -> list[dict]:
    plain = {"x": [[1, 3], [2, 6], [9, 5]], "scale": [1, 1], "bias": [0, 0], "eps": 0.0}
    stretched = {"x": [[1, 3], [2, 6]], "scale": [10, 20], "bias": [1, 5], "eps": 0.0}
    with_eps = {"x": [[1, 3], [8, 6]], "scale": [1, 1], "bias": [0, 0], "eps": 3.0}
    far_out = {"x": [[8191, 8193]], "scale": [1, 1], "bias": [0, 0], "eps": 3.0}
    return [_as_arrays(example) for example in (plain, stretched, with_eps, far_out)]


def _feed_forward_cases() -> list[Case]:
    rng = np.random.default_rng(2017)

    def case(name, seq, d_model, d_ff, is_edge=False):
        shapes = {
            "x": (seq, d_model),
            "w_in": (d_model, d_ff),
            "b_in": (d_ff,),
            "w_out": (d_ff, d_model),
            "b_out": (d_model,),
        }
        return Case(name, {each: rng.normal(size=shape).round(2) for each, shape in shapes.items()}, is_edge)

    return [
        case("d_ff twice d_model", 5, 4, 8),
        case("as many tokens, features and hidden numbers", 4, 4, 4),
        case("one token", 1, 4, 8, is_edge=True),
    ]


def _feed_forward_examples() -> list[dict]:
    one_wide = {"x": [[2], [-1]], "w_in": [[1, -1]], "b_in": [0, 3], "w_out": [[10], [100]], "b_out": [-30]}
    two_wide = {
        "x": [[1, 2], [3, -1]],
        "w_in": [[1, 2], [0, -1]],
        "b_in": [1, -1],
        "w_out": [[1, 0], [10, 100]],
        "b_out": [5, -7],
    }
    return [_as_arrays(one_wide), _as_arrays(two_wide)]


def _block_cases() -> list[Case]:
    rng = np.random.default_rng(2018)

    def norm(width):
        scale, bias = rng.normal(size=(2, width)).round(2) + 1

        def standardise(rows):
            centred = rows - rows.mean(axis=-1, keepdims=True)
            root = ((centred**2).mean(axis=-1, keepdims=True) + 1e-5) ** 0.5
            return centred / root * _each_row(scale, rows) + _each_row(bias, rows)

        return Function(standardise)

    def mixer(seq, width):
        over_rows, over_columns = rng.uniform(size=(seq, seq)).round(2), rng.normal(size=(width, width)).round(2)
        return Function(lambda rows: _like(over_rows, rows) @ rows @ _like(over_columns, rows))

    def feed(width):
        matrix, offset = rng.normal(size=(width, width)).round(2), rng.normal(size=width).round(2)

        def bend(rows):
            return (rows @ _like(matrix, rows) + _each_row(offset, rows)).clip(0)

        return Function(bend)

    def case(name, seq, width, is_edge=False, **others):
        inputs = {
            "x": 2 * rng.normal(size=(seq, width)).round(2) + 1,
            "attention": mixer(seq, width),
            "feed_forward": feed(width),
            "attention_norm": norm(width),
            "feed_forward_norm": norm(width),
        }
        return Case(name, inputs | others, is_edge)

    nothing = Function(lambda rows: 0 * rows, "lambda rows: 0 * rows")
    silent = {"attention": nothing, "feed_forward": nothing}
    return [
        case("more tokens than features", 5, 4),
        case("more features than tokens", 3, 6),
        case("one token", 1, 4, is_edge=True),
        case("sublayers that return zeros", 5, 4, is_edge=True, **silent),
    ]


def _block_examples() -> list[dict]:
    # Units, tens and hundreds show where a number came from; the norms only have to differ.
    return [
        {
            "x": np.array([[3.0], [5.0]]),
            "attention": Function(lambda rows: 10 * rows[::-1], "lambda rows: 10 * rows[::-1]"),
            "feed_forward": Function(lambda rows: 100 * rows, "lambda rows: 100 * rows"),
            "attention_norm": Function(lambda rows: rows - 2, "lambda rows: rows - 2"),
            "feed_forward_norm": Function(lambda rows: rows - 3, "lambda rows: rows - 3"),
        }
    ]


def _as_arrays(example: dict) -> dict:
    return {name: value if name == "eps" else np.array(value, np.float64) for name, value in example.items()}


def _like(matrix, rows):
    """The matrix in the precision of the rows, which are NumPy's for us and JAX's for the reader."""
    return matrix.astype(rows.dtype)


def _each_row(vector, rows):
    """The vector for every row: JAX can be told to refuse a sum of a vector and a matrix."""
    return np.broadcast_to(vector, rows.shape).astype(rows.dtype)


EXERCISES = {
    "layer_norm": Exercise(
        _layer_norm,
        wrong.LAYER_NORM,
        _layer_norm_cases,
        _layer_norm_examples,
        "(seq, d_model)",
        "{x[0]} tokens, {x[1]} features",
    ),
    "feed_forward": Exercise(
        _feed_forward,
        wrong.FEED_FORWARD,
        _feed_forward_cases,
        _feed_forward_examples,
        "(seq, d_model)",
        "{x[0]} tokens, {w_in[1]} hidden",
    ),
    "pre_norm_block": Exercise(
        _pre_norm_block,
        BLOCK,
        _block_cases,
        _block_examples,
        "(seq, d_model)",
        "{x[0]} tokens, {x[1]} features",
    ),
}
