"""Exercise `stack`: blocks one after the other, and a norm at the end."""

import numpy as np

from plainformer.exercises.blocks.pre_norm_block import Function
from plainformer.exercises.model import Case, Exercise, Mistake, draw, floats


def _in_turn(x, blocks, norm=None):
    for block in blocks:
        x = block(x)
    return x


def stack(x, blocks, final_norm, *, run=_in_turn, finish=lambda rows, norm: norm(rows)):
    """Return the rows after all blocks and the norm."""
    return finish(run(x, blocks, final_norm), final_norm)


def _with_skip(block):
    return lambda rows: rows + block(rows)


MISTAKES = [
    Mistake(
        "each of your blocks reads what entered the stack, and only the last one counts",
        "What should the second block read: x, or what the first has made of it?",
        run=lambda x, blocks, norm: blocks[-1](x),
    ),
    Mistake(
        "only the first block is used: your loop returns before it comes to the others",
        "How far is the return indented?",
        run=lambda x, blocks, norm: blocks[0](x),
    ),
    Mistake(
        "your blocks come in the wrong order, the last one first",
        "Which block do the rows of the table enter?",
        run=lambda x, blocks, norm: _in_turn(x, blocks[::-1]),
    ),
    Mistake(
        "the first block is used every time",
        "Each block has parameters of its own. Which of them does each turn of your loop call?",
        run=lambda x, blocks, norm: _in_turn(x, [blocks[0]] * len(blocks)),
    ),
    Mistake(
        "you add what enters a block to what leaves it, but the skips are in the blocks already",
        "If a block returned its rows unchanged, should they leave your stack doubled?",
        run=lambda x, blocks, norm: _in_turn(x, [_with_skip(block) for block in blocks]),
    ),
    Mistake(
        "you normalise after every block, where the norm should come once, at the end",
        "What becomes of the sum that one block hands to the next, if it is normalised on the way?",
        run=lambda x, blocks, norm: _in_turn(x, [each for block in blocks for each in (block, norm)]),
        finish=lambda rows, norm: rows,
    ),
    Mistake(
        "you normalise before the first block, where the norm should come at the end",
        "Which rows does the read-out multiply?",
        run=lambda x, blocks, norm: _in_turn(norm(x), blocks),
        finish=lambda rows, norm: rows,
    ),
    Mistake(
        "you normalise before every block, and there is a norm in each of them already",
        "Where does the one norm stand that belongs to no block?",
        run=lambda x, blocks, norm: _in_turn(x, [each for block in blocks for each in (norm, block)]),
        finish=[lambda rows, norm: rows, lambda rows, norm: norm(rows)],
    ),
    Mistake(
        "you normalise twice at the end",
        "How many norms stand after the loop?",
        finish=lambda rows, norm: norm(norm(rows)),
    ),
    Mistake(
        "the norm at the end is missing",
        "Which argument have you not used?",
        finish=lambda rows, norm: rows,
    ),
]

_RNG = np.random.default_rng(2015)


def _block(seq, width):
    over_rows, over_columns = _RNG.uniform(size=(seq, seq)).round(1), _RNG.normal(size=(width, width)).round(1)
    return Function(lambda x: x + over_rows.astype(x.dtype) @ x @ over_columns.astype(x.dtype))


_NORM = Function(lambda x: 1.5 * x / ((x**2).mean(axis=-1, keepdims=True) + 1e-5) ** 0.5 + 0.25)


def _case(name, seq, width, num_blocks, is_edge=False):
    blocks = [_block(seq, width) for _ in range(num_blocks)]
    return Case(name, draw(_RNG, 1, x=(seq, width)) | {"blocks": blocks, "final_norm": _NORM}, is_edge)


EXERCISE = Exercise(
    stack,
    MISTAKES,
    cases=[
        _case("three blocks", 5, 4, 3),
        _case("four blocks", 3, 6, 4),
        _case("a single block", 4, 3, 1, is_edge=True),
        _case("no block", 4, 3, 0, is_edge=True),
    ],
    examples=[
        {
            **floats(x=[[3], [5]]),
            "blocks": [
                Function(lambda rows: 10 * rows, "lambda rows: 10 * rows"),
                Function(lambda rows: rows[::-1] + 1, "lambda rows: rows[::-1] + 1"),
            ],
            "final_norm": Function(lambda rows: rows - 2, "lambda rows: rows - 2"),
        }
    ],
    result="(seq, d_model)",
    tried_on="{x[0]} tokens and up to four blocks",
)
