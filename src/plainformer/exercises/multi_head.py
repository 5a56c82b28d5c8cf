"""The exercises of chapter 03: several heads, and how a row is split among them."""

from functools import partial

import numpy as np

from plainformer.exercises import attention_mistakes as wrong
from plainformer.exercises.attention import attend
from plainformer.exercises.exercise import Case, Exercise, Mistake


def _side_by_side(heads):
    """The right concatenation: `(heads, seq, d_v)` to `(seq, heads * d_v)`."""
    return np.concatenate(list(heads), axis=1)


def _stacked(weights):
    return weights.reshape(-1, weights.shape[2])


def _first_only(weights):
    return np.broadcast_to(weights[:1], weights.shape)


def _multi_head(
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
    w_q, w_k, w_v, w_o = choose(query_weights, key_weights, value_weights, output_weights)
    everything = np.ones((len(x), len(x)), bool)
    heads = attend(x @ w_q, x @ w_k, x @ w_v, everything, d_model=x.shape[1], num_heads=len(w_q), **steps)
    return combine(heads, w_o)


def _split_heads(x, num_heads, *, cut=lambda x, h: x.reshape(len(x), h, -1).transpose(1, 0, 2)):
    return cut(x, num_heads)


def _multi_head_cases() -> list[Case]:
    rng = np.random.default_rng(2017)

    def case(name, seq, d_model, heads, d_k, d_v, is_edge=False):
        shapes = {
            "x": (seq, d_model),
            "query_weights": (heads, d_model, d_k),
            "key_weights": (heads, d_model, d_k),
            "value_weights": (heads, d_model, d_v),
            "output_weights": (heads, d_v, d_model),
        }
        return Case(name, {each: rng.normal(size=shape).round(3) for each, shape in shapes.items()}, is_edge)

    return [
        case("heads of their own width", 5, 8, 3, 4, 2),
        case("heads that share d_model", 4, 6, 3, 2, 2),
        case("one head", 5, 8, 1, 4, 2, is_edge=True),
        case("one token", 1, 8, 3, 4, 2, is_edge=True),
    ]


def _multi_head_examples() -> list[dict]:
    one_wide = {
        "x": [[1], [2]],
        "query_weights": [[[1, 1, 0, 0]], [[0, 0, 1, 1]]],
        "key_weights": [[[2, 0, 1, 0]], [[0, 1, 0, -1]]],
        "value_weights": [[[1, 2]], [[3, 4]]],
        "output_weights": [[[1], [0]], [[10], [1]]],
    }
    two_wide = {
        "x": [[1, 0], [0, 2]],
        "query_weights": [[[1], [2]], [[0], [1]]],
        "key_weights": [[[1], [0]], [[2], [1]]],
        "value_weights": [[[1], [2]], [[3], [4]]],
        "output_weights": [[[1, 0]], [[0, 1]]],
    }
    examples = (one_wide, two_wide)
    return [{name: np.array(value, np.float64) for name, value in example.items()} for example in examples]


def _split_cases() -> list[Case]:
    rng = np.random.default_rng(2017)

    def case(name, seq, width, num_heads, is_edge=False):
        return Case(name, {"x": rng.normal(size=(seq, width)).round(3), "num_heads": num_heads}, is_edge)

    return [
        case("heads narrower than their number", 5, 12, 6),
        case("as many tokens as can be shared out", 6, 12, 3),
        case("one head", 5, 12, 1, is_edge=True),
        case("heads one number wide", 5, 12, 12, is_edge=True),
    ]


def _split_examples() -> list[dict]:
    rows = [[11, 12, 13, 14, 15, 16], [21, 22, 23, 24, 25, 26]]
    return [{"x": np.array(rows, np.float64), "num_heads": 2}, {"x": np.array(rows, np.float64)[:, :4], "num_heads": 2}]


SCALE_BY_MODEL = [
    Mistake(
        "scale",
        "you divide by the root of the full width (d_model, or all heads together), not by the root of d_k",
        "How long are the two vectors whose dot product one head takes?",
        lambda n: n.d_model**-0.5,
        lambda n: (n.num_heads * n.d_k) ** -0.5,
    ),
    Mistake(
        "scale",
        "you divide by the root of the number of tokens, not by the root of d_k",
        "How long are the two vectors whose dot product one head takes?",
        lambda n: n.q_seq**-0.5,
    ),
]
HEADS = [
    Mistake(
        "combine",
        "you lay the heads side by side by a reshape alone, which cuts across tokens",
        "In memory the heads come first. Which axes must change places, before two can become one?",
        lambda heads, o: heads.reshape(heads.shape[1], -1) @ _stacked(o),
    ),
    Mistake(
        "combine",
        "the columns of your concatenation and the rows of W_O are not in the same order",
        "Column j of the concatenation meets row j of W_O. Which head does each of them belong to?",
        lambda heads, o: heads.transpose(1, 2, 0).reshape(heads.shape[1], -1) @ _stacked(o),
        lambda heads, o: _side_by_side(heads) @ _stacked(o.transpose(1, 0, 2)),
        lambda heads, o: _side_by_side(heads) @ _stacked(o[::-1]),
    ),
    Mistake(
        "combine",
        "you average the heads' contributions, where they should be added",
        "Multiply out concatenation times W_O, block by block. Does anything divide by the number of heads?",
        lambda heads, o: (heads @ o).mean(axis=0),
    ),
    Mistake(
        "combine",
        "you return the contribution of a single head",
        "Does your loop add to the total, or does it replace it?",
        lambda heads, o: heads[-1] @ o[-1],
        lambda heads, o: heads[0] @ o[0],
    ),
    Mistake(
        "combine",
        "you add the heads before W_O, where each head should meet rows of W_O of its own",
        "Multiply out concatenation times W_O, block by block. Which block of W_O does head h meet?",
        lambda heads, o: heads.sum(axis=0) @ o.sum(axis=0),
        lambda heads, o: heads.sum(axis=0) @ o[0],
        lambda heads, o: heads.mean(axis=0) @ o.mean(axis=0),
    ),
    Mistake(
        "combine",
        "you return one output for each head, where they should be added",
        "Multiply out concatenation times W_O, block by block. What happens to the blocks?",
        lambda heads, o: heads @ o,
    ),
    Mistake(
        "combine",
        "you forgot W_O: the heads are computed, but not mixed",
        "How do the heads' outputs get back to d_model numbers a token?",
        lambda heads, o: _side_by_side(heads),
        lambda heads, o: np.concatenate(list(heads), axis=0),
        lambda heads, o: heads,
        lambda heads, o: heads.sum(axis=0),
        lambda heads, o: heads.mean(axis=0),
    ),
    Mistake(
        "choose",
        "every head uses the weights of head 0",
        "What does the index of the head change in your loop?",
        lambda q, k, v, o: (_first_only(q), _first_only(k), _first_only(v), o),
        lambda q, k, v, o: (_first_only(q), _first_only(k), _first_only(v), _first_only(o)),
        lambda q, k, v, o: (_first_only(q), _first_only(k), v, o),
    ),
    Mistake(
        "choose",
        "query and key weights are swapped, so your scores are transposed",
        "The row of a score belongs to the token that asks. Which weights make its vector?",
        lambda q, k, v, o: (k, q, v, o),
    ),
    Mistake(
        "choose",
        "queries and keys come from the same weights",
        "Which argument of yours is never used?",
        lambda q, k, v, o: (q, q, v, o),
        lambda q, k, v, o: (k, k, v, o),
    ),
    Mistake(
        "normalise",
        "your softmax runs across the heads, not over the keys",
        "Each head shares out its own unit of attention. Which axis of your scores holds the keys?",
        partial(wrong.softmax, axis=0),
    ),
]
SPLIT = [
    Mistake(
        "cut",
        "you reshape to (num_heads, seq, d_head) in one go, which cuts across tokens",
        "In memory a token's numbers lie together. Which axis does a row's own reshape give, and where should it go?",
        lambda x, h: x.reshape(h, len(x), -1),
    ),
    Mistake(
        "cut",
        "your heads are still inside the tokens: the axes are (seq, num_heads, d_head)",
        "Which two axes must change places, so that x[h] is all of head h?",
        lambda x, h: x.reshape(len(x), h, -1),
    ),
    Mistake(
        "cut",
        "your heads take turns along a row: head h gets every num_heads-th column, not a run of neighbours",
        "In reshape the last axis runs fastest. Which of num_heads and d_head should that be?",
        lambda x, h: x.reshape(len(x), -1, h).transpose(2, 0, 1),
        lambda x, h: x.reshape(len(x), -1, h),
    ),
    Mistake(
        "cut",
        "each head is transposed: its rows are no longer tokens",
        "Which axis of your result counts tokens, and which one should?",
        lambda x, h: x.reshape(len(x), h, -1).transpose(1, 2, 0),
    ),
    Mistake(
        "cut",
        "you make pieces that are num_heads wide, not num_heads pieces",
        "How wide is one head, if num_heads of them share a row?",
        lambda x, h: x.reshape(len(x), -1, h).transpose(1, 0, 2),
    ),
    Mistake(
        "cut",
        "you share out the tokens among the heads, not the columns",
        "Every head sees every token. Which axis of x is cut, then?",
        lambda x, h: x.reshape(h, -1, x.shape[1]),
    ),
]

_OF_MULTI_HEAD = [*wrong.SCALE, *SCALE_BY_MODEL, *wrong.SCALE_BY_VALUES, *wrong.NORMALISE, *wrong.ROLES, *HEADS]

EXERCISES = {
    "split_heads": Exercise(
        _split_heads,
        SPLIT,
        _split_cases,
        _split_examples,
        "(num_heads, seq, d_head)",
        "{x[0]} tokens, {num_heads} heads",
    ),
    "multi_head": Exercise(
        _multi_head,
        _OF_MULTI_HEAD,
        _multi_head_cases,
        _multi_head_examples,
        "(seq, d_model)",
        "{x[0]} tokens, {query_weights[0]} heads",
    ),
}
