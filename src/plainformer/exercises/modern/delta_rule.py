"""Exercise `delta_rule`: a state that is corrected at each token's key, and read."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, draw, floats


def _unit(key):
    return key / np.linalg.norm(key)


def _correction(beta, value, said):
    return beta * (value - said)


def delta_rule(
    queries,
    keys,
    values,
    betas,
    factors,
    *,
    unit=_unit,
    shrink=lambda state, factor: factor * state,
    said=lambda key, before, state: key @ state,
    correct=_correction,
    shrink_after=lambda state, factor: state,
    read=lambda query, old, new: query @ new,
):
    """Return what each token reads from a state that it shrinks and corrects at its key of length 1."""
    state, rows = np.zeros((keys.shape[1], values.shape[1])), []
    for query, key, value, beta, factor in zip(queries, keys, values, betas, factors, strict=True):
        key, old = unit(key), shrink(state, factor)
        new = old + np.outer(key, correct(beta, value, said(key, state, old)))
        state = shrink_after(new, factor)
        rows.append(read(query, old, state))
    return np.array(rows)


MISTAKES = [
    Mistake(
        "the value is added to what the state says, where it should replace it",
        "What should the state say at a key that comes a second time, with another value and a beta of 1?",
        said=lambda key, before, state: 0,
    ),
    Mistake(
        "beta is forgotten",
        "What should a token with a beta of 0 change?",
        correct=lambda beta, value, said: value - said,
    ),
    Mistake(
        "beta multiplies the value alone",
        "With a beta of ½, what should the state say at the key if it said 4 before, and the value is 4?",
        correct=lambda beta, value, said: beta * value - said,
    ),
    Mistake(
        "beta multiplies what is taken away alone",
        "With a beta of ½, what should the state say at the key if it said 4 before, and the value is 4?",
        correct=lambda beta, value, said: value - beta * said,
    ),
    Mistake(
        "the state shrinks after it was written, where it should before",
        "What should the state say at a key with a beta of 1 right afterwards: all of the value, or a part?",
        shrink=lambda state, factor: state,
        shrink_after=lambda state, factor: factor * state,
    ),
    Mistake(
        "the state never shrinks",
        "What is left of the first token after two others with factors of ½?",
        shrink=lambda state, factor: state,
    ),
    Mistake(
        "you ask what the state says before it shrinks",
        "From which state is the old value taken away: the one before, or the one that has shrunk?",
        said=lambda key, before, state: key @ before,
    ),
    Mistake(
        "a token reads before it writes",
        "What should the first token read if its query is its key?",
        read=lambda query, old, new: query @ old,
    ),
    Mistake(
        "the keys are not brought to a length of 1",
        "If a key is 2 long, what does the state say at it after a value was written there?",
        unit=lambda key: key,
    ),
]

_RNG = np.random.default_rng(1960)


def _case(name, seq, d_k, d_v, is_edge=False):
    rows = draw(_RNG, 1, queries=(seq, d_k), keys=(seq, d_k), values=(seq, d_v))
    numbers = {
        name: _RNG.uniform(low, high, size=seq).round(2)
        for name, low, high in (("betas", 0.2, 0.9), ("factors", 0.5, 0.95))
    }
    return Case(name, rows | numbers, is_edge)


EXERCISE = Exercise(
    delta_rule,
    MISTAKES,
    cases=[
        _case("six tokens", 6, 3, 4),
        _case("more tokens than columns", 7, 2, 3),
        _case("a single token", 1, 4, 2, is_edge=True),
        _case("values of one number", 5, 3, 1, is_edge=True),
    ],
    examples=[
        floats(
            queries=[[1, 0], [1, 1], [1, 0]],
            keys=[[2, 0], [0, 4], [2, 0]],
            values=[[8], [4], [1]],
            betas=[0.5, 0.25, 0.5],
            factors=[0.25, 0.5, 0.5],
        )
    ],
    result="(seq, d_v)",
    tried_on="queries {queries}, keys {keys}, values {values}, a beta and a factor for each",
)
