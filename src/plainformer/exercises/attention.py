"""The exercises of chapter 02: scores, weights and attention.

The right steps are float64 NumPy and share no line with `plainformer.attention.self_attention`, which the chapter
explains: a fault there cannot hide here. Leading axes (heads) pass through all of them.
"""

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

from plainformer.exercises import attention_mistakes as wrong
from plainformer.exercises.exercise import Case, Exercise, Mistake


def _scores(
    queries,
    keys,
    *,
    compare=lambda queries, keys: queries @ keys.swapaxes(-1, -2),
    scale=lambda n: n.d_k**-0.5,
    **sizes,
):
    n = SimpleNamespace(q_seq=queries.shape[-2], kv_seq=keys.shape[-2], d_k=queries.shape[-1], **sizes)
    return compare(queries, keys) * scale(n)


def _weights(
    queries,
    keys,
    mask,
    *,
    hide=lambda scores, mask: np.where(mask, scores, -np.inf),
    normalise=wrong.softmax,
    after=lambda weights, d_k: weights,
    **steps,
):
    return after(normalise(hide(_scores(queries, keys, **steps), mask), mask), queries.shape[-1])


def attend(queries, keys, values, mask, *, roles=lambda q, k, v: (q, k, v), average=np.matmul, **steps):
    """The right attention; what is added to `steps` by name are sizes that a wrong scale may use."""
    d_v = values.shape[-1]
    queries, keys, values = roles(queries, keys, values)
    return average(_weights(queries, keys, mask, d_v=d_v, **steps), values)


def _attention_cases(*names: str) -> list[Case]:
    """Cases with those of the four arguments that are named."""
    rng = np.random.default_rng(2017)

    def case(name, q_seq, kv_seq, d_k, d_v, hidden=lambda mask: None, stretch=1.0, is_edge=False):
        mask = np.ones((q_seq, kv_seq), bool)
        hidden(mask)
        draws = [rng.normal(size=size).round(3) for size in ((q_seq, d_k), (kv_seq, d_k), (kv_seq, d_v))]
        arguments = {"queries": draws[0] * stretch, "keys": draws[1], "values": draws[2], "mask": mask}
        return Case(name, {each: arguments[each] for each in names}, is_edge)

    def some(mask):  # no row and no column without an allowed key
        mask[0, 1:3] = mask[1, 0] = mask[2, 4:] = mask[3, :2] = False

    def later_keys(mask):
        mask[np.triu_indices(len(mask), 1)] = False

    def a_row(mask):
        mask[1] = False

    cases = [
        case("more keys than queries", 5, 7, 3, 2),
        case("as many queries as keys", 6, 6, 4, 4),
        case("one query and one key", 1, 1, 3, 2, is_edge=True),
    ]
    if "mask" in names:
        cases.insert(2, case("a mask", 5, 7, 3, 2, hidden=some))
        cases.insert(3, case("a causal mask", 6, 6, 4, 3, hidden=later_keys))
        cases.append(case("a query that may attend to nothing", 5, 7, 3, 2, hidden=a_row, is_edge=True))
        cases.append(case("scores in the thousands", 5, 7, 4, 2, stretch=4096.0, is_edge=True))
    return cases


def _attention_examples(*names: str) -> list[dict]:
    queries = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]])
    arguments = {
        "queries": queries,
        "keys": np.array([[2.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]),
        "values": np.array([[8.0, 0.0, 0.0, 0.0], [0.0, 4.0, 0.0, 0.0]]),
        "mask": np.ones((2, 2), bool),
    }
    narrow = np.array([[8.0], [4.0]])
    masks = [np.array([[True, False], [True, True]]), np.array([[False, False], [True, True]])]
    changes = [{}, *({"mask": mask} for mask in masks), {"queries": 4096 * queries}, {"values": narrow}]
    examples = [{**arguments, **change} for change in changes]
    return [{name: example[name] for name in names} for example in examples]


def _attention(answer: Callable, arguments: str, mistakes: list[Mistake], result: str) -> Exercise:
    names = arguments.split()
    return Exercise(
        answer,
        mistakes,
        lambda: _attention_cases(*names),
        lambda: _attention_examples(*names),
        result,
        "{queries[0]} queries, {keys[0]} keys",
        has_rows_of_weights=answer is _weights,
    )


_OF_SCORES = [*wrong.SCALE, *wrong.SCALE_BY_LENGTH, *wrong.COMPARE]
_COMMON = [*_OF_SCORES, *wrong.NORMALISE, *wrong.MASK, *wrong.OVERFLOW]
_OF_WEIGHTS = [*_COMMON, *wrong.TRANSPOSE]
_OF_ATTEND = [*_COMMON, *wrong.SCALE_BY_VALUES, *wrong.ROLES, *wrong.OUTPUT]

EXERCISES = {
    "scores": _attention(_scores, "queries keys", _OF_SCORES, "(q_seq, kv_seq)"),
    "weights": _attention(_weights, "queries keys mask", _OF_WEIGHTS, "(q_seq, kv_seq)"),
    "attend": _attention(attend, "queries keys values mask", _OF_ATTEND, "(q_seq, d_v)"),
}
