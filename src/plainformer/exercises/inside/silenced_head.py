"""Exercise `silenced_head`: what attention adds to the stream when one head is silent."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake


def _merged(heads):
    """The heads side by side, in each row."""
    return np.swapaxes(heads, 0, 1).reshape(heads.shape[1], -1)


def _zeroed(heads, head):
    return np.where(np.arange(len(heads))[:, None, None] == head, 0, heads)


def silenced_head(
    heads,
    weight,
    bias,
    head,
    *,
    silence=_zeroed,
    merge=_merged,
    finish=lambda out, bias, head, heads: out + bias,
):
    """Return what attention adds to the stream, one head being silent."""
    return finish(merge(silence(heads, head)) @ weight, bias, head, heads)


def _columns_zeroed(out, bias, head, heads):
    """The columns of the output that have the head's numbers, zeroed."""
    out, width = out + bias, heads.shape[2]
    out[:, width * head : width * (head + 1)] = 0
    return out


def _same(heads, head):
    return heads


MISTAKES = [
    Mistake(
        "you silence columns after the output map, where the heads are mixed already",
        "Each column of the result is a sum over all heads. Where do the numbers of one head still stand alone?",
        silence=_same,
        finish=_columns_zeroed,
    ),
    Mistake(
        "no head is silent",
        "What has the argument head to do with the result?",
        silence=_same,
    ),
    Mistake(
        "the other heads are silent, and this one speaks",
        "Is there a != too many, or too few?",
        silence=lambda heads, head: np.where(np.arange(len(heads))[:, None, None] == head, heads, 0),
    ),
    Mistake(
        "you silence the head before: heads count from 0",
        "Which head is heads[0]?",
        silence=lambda heads, head: _zeroed(heads, (head - 1) % len(heads)),
    ),
    Mistake(
        "you silence a token, not a head",
        "Axes are heads, tokens, features. Along which does head count?",
        silence=lambda heads, head: np.where(np.arange(heads.shape[1])[:, None] == head, 0, heads),
    ),
    Mistake(
        "you silence the bias, too, which belongs to no head",
        "Which head does the bias come from?",
        finish=lambda out, bias, head, heads: out,
    ),
    Mistake(
        "you put the mean of the other heads in its place",
        "Silent means zeros here. What does the mean of other heads say?",
        silence=lambda heads, head: np.where(
            np.arange(len(heads))[:, None, None] == head, np.delete(heads, head, axis=0).mean(axis=0), heads
        ),
    ),
    Mistake(
        "you reshape without swapping heads and tokens, so that rows mix tokens",
        "After heads come tokens. Which axis has to stand in front before two are made one?",
        merge=lambda heads: heads.reshape(heads.shape[1], -1),
    ),
]

_RNG = np.random.default_rng(16)


def _case(name, num_heads, seq, width, d_model, head, is_edge=False):
    inputs = {
        "heads": _RNG.normal(size=(num_heads, seq, width)).round(1),
        "weight": _RNG.normal(size=(num_heads * width, d_model)).round(1),
        "bias": _RNG.normal(size=d_model).round(1),
        "head": head,
    }
    return Case(name, inputs, is_edge)


EXERCISE = Exercise(
    silenced_head,
    MISTAKES,
    cases=[_case("3 heads", 3, 5, 4, 12, 1), _case("4 heads", 4, 6, 2, 8, 3), _case("the first head", 2, 7, 3, 6, 0)],
    examples=[
        {
            "heads": np.array([[[1.0], [2.0], [0.0]], [[3.0], [5.0], [1.0]]]),
            "weight": np.array([[1.0, 1.0], [2.0, -1.0]]),
            "bias": np.array([0.5, 0.25]),
            "head": 1,
        },
    ],
    result="(seq, d_model)",
    tried_on="{heads[0]} heads, {heads[1]} tokens",
)
