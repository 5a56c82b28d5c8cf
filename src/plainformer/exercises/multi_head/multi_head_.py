"""Exercise `multi_head`: attention by several heads, mixed by `W^(o)`."""

from functools import partial

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, draw, floats
from plainformer.exercises.self_attention.attend import ROLES, SCALE_BY_VALUES, attend
from plainformer.exercises.self_attention.scores import SCALE
from plainformer.exercises.self_attention.weights import NORMALISE, softmax


def _side_by_side(heads):
    """The right concatenation: `(heads, seq, d_v)` to `(seq, heads * d_v)`."""
    return np.concatenate(list(heads), axis=1)


def multi_head(
    x,
    query_weights,
    key_weights,
    value_weights,
    output_weights,
    *,
    choose=lambda q, k, v, o: (q, k, v, o),
    combine=lambda heads, o: _side_by_side(heads) @ np.concatenate(list(o), axis=0),
    **steps,
):
    """Return the heads' outputs side by side, times `W^(o)`."""
    w_q, w_k, w_v, w_o = choose(query_weights, key_weights, value_weights, output_weights)
    everything = np.ones((len(x), len(x)), bool)
    heads = attend(x @ w_q, x @ w_k, x @ w_v, everything, d_model=x.shape[1], num_heads=len(w_q), **steps)
    return combine(heads, w_o)


def _stacked(weights):
    return weights.reshape(-1, weights.shape[2])


def _first_only(weights):
    return np.broadcast_to(weights[:1], weights.shape)


SCALE_BY_MODEL = [
    Mistake(
        "you divide by the root of the full width (d_model, or all heads together), not by the root of d_k",
        "How long are the two vectors whose dot product one head takes?",
        scale=[lambda n: n.d_model**-0.5, lambda n: (n.num_heads * n.d_k) ** -0.5],
    ),
    Mistake(
        "you divide by the root of the number of tokens, not by the root of d_k",
        "How long are the two vectors whose dot product one head takes?",
        scale=lambda n: n.q_seq**-0.5,
    ),
]
HEADS = [
    Mistake(
        "you lay the heads side by side by a reshape alone, which cuts across tokens",
        "In memory the heads come first. Which axes must change places, before two can become one?",
        combine=lambda heads, o: heads.reshape(heads.shape[1], -1) @ _stacked(o),
    ),
    Mistake(
        "the columns of your concatenation and the rows of W^(o) are not in the same order",
        "Column j of the concatenation meets row j of W^(o). Which head does each of them belong to?",
        combine=[
            lambda heads, o: heads.transpose(1, 2, 0).reshape(heads.shape[1], -1) @ _stacked(o),
            lambda heads, o: _side_by_side(heads) @ _stacked(o.transpose(1, 0, 2)),
            lambda heads, o: _side_by_side(heads) @ _stacked(o[::-1]),
        ],
    ),
    Mistake(
        "you average the heads' contributions, where they should be added",
        "Multiply out concatenation times W^(o), block by block. Does anything divide by the number of heads?",
        combine=lambda heads, o: (heads @ o).mean(axis=0),
    ),
    Mistake(
        "you return the contribution of a single head",
        "Does your loop add to the total, or does it replace it?",
        combine=[lambda heads, o: heads[-1] @ o[-1], lambda heads, o: heads[0] @ o[0]],
    ),
    Mistake(
        "you add the heads before W^(o), where each head should meet rows of W^(o) of its own",
        "Multiply out concatenation times W^(o), block by block. Which block of W^(o) does head h meet?",
        combine=[
            lambda heads, o: heads.sum(axis=0) @ o.sum(axis=0),
            lambda heads, o: heads.sum(axis=0) @ o[0],
            lambda heads, o: heads.mean(axis=0) @ o.mean(axis=0),
        ],
    ),
    Mistake(
        "you return one output for each head, where they should be added",
        "Multiply out concatenation times W^(o), block by block. What happens to the blocks?",
        combine=lambda heads, o: heads @ o,
    ),
    Mistake(
        "you forgot W^(o): the heads are computed, but not mixed",
        "How do the heads' outputs get back to d_model numbers a token?",
        combine=[
            lambda heads, o: _side_by_side(heads),
            lambda heads, o: np.concatenate(list(heads), axis=0),
            lambda heads, o: heads,
            lambda heads, o: heads.sum(axis=0),
            lambda heads, o: heads.mean(axis=0),
        ],
    ),
    Mistake(
        "every head uses the weights of head 0",
        "What does the index of the head change in your loop?",
        choose=[
            lambda q, k, v, o: (_first_only(q), _first_only(k), _first_only(v), o),
            lambda q, k, v, o: (_first_only(q), _first_only(k), _first_only(v), _first_only(o)),
            lambda q, k, v, o: (_first_only(q), _first_only(k), v, o),
        ],
    ),
    Mistake(
        "query and key weights are swapped, so your scores are transposed",
        "The row of a score belongs to the token that asks. Which weights make its vector?",
        choose=lambda q, k, v, o: (k, q, v, o),
    ),
    Mistake(
        "queries and keys come from the same weights",
        "Which argument of yours is never used?",
        choose=[lambda q, k, v, o: (q, q, v, o), lambda q, k, v, o: (k, k, v, o)],
    ),
    Mistake(
        "your softmax runs across the heads, not over the keys",
        "Each head shares out its own unit of attention. Which axis of your scores holds the keys?",
        normalise=partial(softmax, axis=0),
    ),
]

_RNG = np.random.default_rng(2017)


def _case(name, seq, d_model, heads, d_k, d_v, is_edge=False):
    of_keys = (heads, d_model, d_k)
    inputs = draw(
        _RNG,
        3,
        x=(seq, d_model),
        query_weights=of_keys,
        key_weights=of_keys,
        value_weights=(heads, d_model, d_v),
        output_weights=(heads, d_v, d_model),
    )
    return Case(name, inputs, is_edge)


EXERCISE = Exercise(
    multi_head,
    [*SCALE, *SCALE_BY_MODEL, *SCALE_BY_VALUES, *NORMALISE, *ROLES, *HEADS],
    cases=[
        _case("heads of their own width", 5, 8, 3, 4, 2),
        _case("heads that share d_model", 4, 6, 3, 2, 2),
        _case("one head", 5, 8, 1, 4, 2, is_edge=True),
        _case("one token", 1, 8, 3, 4, 2, is_edge=True),
    ],
    examples=[
        floats(
            x=[[1], [2]],
            query_weights=[[[1, 1, 0, 0]], [[0, 0, 1, 1]]],
            key_weights=[[[2, 0, 1, 0]], [[0, 1, 0, -1]]],
            value_weights=[[[1, 2]], [[3, 4]]],
            output_weights=[[[1], [0]], [[10], [1]]],
        ),
        floats(
            x=[[1, 0], [0, 2]],
            query_weights=[[[1], [2]], [[0], [1]]],
            key_weights=[[[1], [0]], [[2], [1]]],
            value_weights=[[[1], [2]], [[3], [4]]],
            output_weights=[[[1, 0]], [[0, 1]]],
        ),
    ],
    result="(seq, d_model)",
    tried_on="{x[0]} tokens, {query_weights[0]} heads",
)
