"""Exercise `patched_rows`: the stream of one run, with some tokens as they are in another."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake


def _places(seq, places):
    return np.isin(np.arange(seq), places)


def patched_rows(
    ours,
    theirs,
    places,
    *,
    choose=_places,
    mix=lambda taken, ours, theirs: np.where(taken[:, None], theirs, ours),
):
    """Return our stream with the rows of another run at these tokens."""
    return mix(choose(len(ours), places), ours, theirs)


MISTAKES = [
    Mistake(
        "you patch the wrong run: ours goes into theirs",
        "Of which run shall everything stay but these tokens?",
        mix=lambda taken, ours, theirs: np.where(taken[:, None], ours, theirs),
    ),
    Mistake(
        "you add the rows of the other run, where they should stand in place of ours",
        "What would be left of ours at a token that is patched?",
        mix=lambda taken, ours, theirs: ours + taken[:, None] * theirs,
    ),
    Mistake(
        "you add the difference at every token: all of the other run is there",
        "At which tokens may anything change?",
        choose=lambda seq, places: np.ones(seq, bool),
    ),
    Mistake(
        "you patch all tokens from the first place on",
        "Does a token that stands later belong to the places, too?",
        choose=lambda seq, places: np.arange(seq) >= np.min(places),
    ),
    Mistake(
        "you patch only the first of the places",
        "How many places may there be?",
        choose=lambda seq, places: _places(seq, places[:1]),
    ),
    Mistake(
        "you patch columns, not tokens",
        "Rows are tokens. Which axis do the places count?",
        mix=lambda taken, ours, theirs: np.where(taken[: ours.shape[1]][None, :], theirs, ours),
    ),
    Mistake(
        "you patch one token too far on",
        "Places count from 0. Which is the row of place 0?",
        choose=lambda seq, places: _places(seq, np.asarray(places) + 1),
    ),
    Mistake(
        "you silence the places: zeros stand there",
        "What shall stand there, nothing, or what the other run has?",
        mix=lambda taken, ours, theirs: np.where(taken[:, None], 0, ours),
    ),
]

_RNG = np.random.default_rng(17)


def _case(name, seq, d_model, places, is_edge=False):
    ours, theirs = _RNG.normal(size=(2, seq, d_model)).round(1)
    return Case(name, {"ours": ours, "theirs": theirs, "places": np.array(places, int)}, is_edge)


EXERCISE = Exercise(
    patched_rows,
    MISTAKES,
    cases=[
        _case("7 tokens, of which 2 are patched", 7, 5, [1, 4]),
        _case("another text", 9, 4, [2, 3, 6]),
        _case("no token is patched", 6, 3, [], is_edge=True),
    ],
    examples=[
        {
            "ours": np.array([[1.0, 2], [3, 4], [5, 6]]),
            "theirs": np.array([[7.0, 8], [9, 1], [2, 3]]),
            "places": np.array([1]),
        },
        {
            "ours": np.array([[1.0, 2], [3, 4], [5, 6], [7, 8]]),
            "theirs": np.array([[9.0, 9], [8, 7], [6, 5], [4, 3]]),
            "places": np.array([0, 2]),
        },
    ],
    result="(seq, d_model)",
    tried_on="{ours[0]} tokens",
)
