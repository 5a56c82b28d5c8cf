"""Exercise `shared_block`: one network with PyTorch's matrices, used several times."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, draw


def _relu(numbers):
    return np.maximum(numbers, 0)


def shared_block(
    x,
    up,
    up_bias,
    down,
    down_bias,
    num_layers,
    *,
    turn_up=lambda up: up.T,
    turn_down=lambda down: down.T,
    bias=lambda rows, bias: rows + bias,
    hidden=_relu,
    add=lambda now, first, new: now + new,
    read=lambda now, first: now,
    times=lambda num_layers: num_layers,
):
    """Return what leaves the last of `num_layers` residual blocks, which are all the same."""
    now = x
    for _ in range(times(num_layers)):
        inner = hidden(bias(read(now, x) @ turn_up(up), up_bias))
        now = add(now, x, bias(inner @ turn_down(down), down_bias))
    return now


MISTAKES = [
    Mistake(
        "the matrices are not turned",
        "PyTorch stores (outputs, inputs). Which of the two axes belongs to the inputs, which x has?",
        turn_up=lambda up: up,
        turn_down=lambda down: down,
    ),
    Mistake(
        "the second matrix is not turned",
        "PyTorch stores both matrices as (outputs, inputs). Does the shape alone tell, if both sides are equal?",
        turn_down=lambda down: down,
    ),
    Mistake(
        "the first matrix is not turned",
        "PyTorch stores both matrices as (outputs, inputs). Does the shape alone tell, if both sides are equal?",
        turn_up=lambda up: up,
    ),
    Mistake(
        "you go through the block once",
        "The file has the block once, and the configuration says num_layers. How many blocks does the model have?",
        times=lambda num_layers: 1,
    ),
    Mistake(
        "you go through the block once too often",
        "How many times does a loop over range(num_layers + 1) run?",
        times=lambda num_layers: num_layers + 1,
    ),
    Mistake(
        "every block reads the tokens as they came in",
        "What does the second block read: x, or what the first one returned?",
        read=lambda now, first: first,
    ),
    Mistake(
        "you add the tokens as they came in, where you should add those that the block read",
        "The residual stream is what the block read. Is that still x in the second block?",
        add=lambda now, first, new: first + new,
    ),
    Mistake(
        "the residual connection is missing",
        "What would the block return, if its network returned zeros?",
        add=lambda now, first, new: new,
    ),
    Mistake("you forgot both biases", "What does each map return for a row of zeros?", bias=lambda rows, bias: rows),
    Mistake(
        "the activation is missing",
        "What are two linear maps in a row, with nothing between them?",
        hidden=lambda numbers: numbers,
    ),
]

_RNG = np.random.default_rng(2020)


def _case(name, seq, width, num_layers, is_edge=False):
    shapes = {"x": (seq, width), "up": (width, width), "up_bias": (width,), "down": (width, width)}
    inputs = draw(_RNG, 2, **shapes, down_bias=(width,))
    return Case(name, {**inputs, "num_layers": num_layers}, is_edge)


EXERCISE = Exercise(
    shared_block,
    MISTAKES,
    cases=[
        _case("three blocks", 5, 4, 3),
        _case("two blocks", 3, 6, 2),
        _case("as many tokens as features", 4, 4, 2),
    ],
    examples=[
        {
            "x": np.array([[1.0, 2], [0, -1], [3, 1]]),
            "up": np.array([[1.0, 2], [0, 1]]),
            "up_bias": np.array([0.5, -1]),
            "down": np.array([[1.0, 0], [3, 1]]),
            "down_bias": np.array([1.0, 2]),
            "num_layers": 2,
        }
    ],
    result="(seq, d_model)",
    tried_on="{x[0]} tokens of width {x[1]}, {num_layers} blocks",
)
