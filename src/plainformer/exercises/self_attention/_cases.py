"""The inputs on which scores, weights and attention are tried, with those of the four arguments that are named."""

import numpy as np

from plainformer.exercises.model import Case, draw, floats


def attention_cases(arguments: str) -> list[Case]:
    """Return cases with these arguments, named in one string."""
    names, rng = arguments.split(), np.random.default_rng(2017)

    def case(name, q_seq, kv_seq, d_k, d_v, hide=(), stretch=1.0, is_edge=False):
        inputs = draw(rng, 3, queries=(q_seq, d_k), keys=(kv_seq, d_k), values=(kv_seq, d_v))
        inputs["queries"] *= stretch
        inputs["mask"] = np.ones((q_seq, kv_seq), bool)
        for where in hide:
            inputs["mask"][where] = False
        return Case(name, {each: inputs[each] for each in names}, is_edge)

    cases = [
        case("more keys than queries", 5, 7, 3, 2),
        case("as many queries as keys", 6, 6, 4, 4),
        case("one query and one key", 1, 1, 3, 2, is_edge=True),
    ]
    if "mask" in names:
        some = np.s_[0, 1:3], np.s_[1, 0], np.s_[2, 4:], np.s_[3, :2]  # no row and no column is hidden as a whole
        cases.insert(2, case("a mask", 5, 7, 3, 2, hide=some))
        cases.insert(3, case("a causal mask", 6, 6, 4, 3, hide=[np.triu_indices(6, 1)]))
        cases.append(case("a query that may attend to nothing", 5, 7, 3, 2, hide=[1], is_edge=True))
        cases.append(case("scores in the thousands", 5, 7, 4, 2, stretch=4096.0, is_edge=True))
    return cases


def attention_examples(arguments: str) -> list[dict]:
    """Return examples with these arguments, named in one string."""
    inputs = floats(
        queries=[[1, 1, 0, 0], [0, 2, 0, 0]], keys=[[2, 0, 0, 0], [0, 1, 0, 0]], values=[[8, 0, 0, 0], [0, 4, 0, 0]]
    )
    changes: list[dict] = [
        {},
        {"mask": np.array([[True, False], [True, True]])},
        {"mask": np.array([[False, False], [True, True]])},
        {"queries": 4096 * inputs["queries"]},
        floats(values=[[8], [4]]),
    ]
    examples = [{**inputs, "mask": np.ones((2, 2), bool), **change} for change in changes]
    return [{name: example[name] for name in arguments.split()} for example in examples]
