"""Exercise `mean_pool`: one vector per text, whatever its padding holds."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake


def _cleared(rows, is_token):
    """Zeros in place of padding, whatever that holds."""
    return np.where(is_token[:, :, None], rows, 0)


def _tokens_of_each(is_token):
    """How many tokens each text has, as a column."""
    return is_token.sum(axis=1, keepdims=True)


def mean_pool(rows, is_token, *, clear=_cleared, add=lambda rows: rows.sum(axis=1), count=_tokens_of_each):
    """Return the mean of each text's tokens."""
    return add(clear(rows, is_token)) / count(is_token)


def _all(rows, is_token):
    return rows


def _length(is_token):
    return is_token.shape[1]


MISTAKES = [
    Mistake(
        "padding counts: you take the mean over all rows",
        "A text of two tokens, padded to five: how many rows say something about it?",
        clear=_all,
        count=_length,
    ),
    Mistake(
        "you leave padding out of the sum, but divide by the number of all rows",
        "Should the vector of a text become shorter because a longer one stands beside it in the batch?",
        count=_length,
    ),
    Mistake(
        "you divide by the number of tokens, but padding is still in the sum",
        "What stands in the rows of padding: zeros, or whatever the encoder made of them?",
        clear=_all,
    ),
    Mistake(
        "you multiply padding by 0, which does not clear it if it holds nan or infinity",
        "What is 0 times infinity? Which function picks a number instead of multiplying it?",
        clear=lambda rows, is_token: rows * is_token[:, :, None],
    ),
    Mistake(
        "you take the mean of the padding, and leave the tokens out",
        "is_token is True for a token. Is there a ~ too many?",
        clear=lambda rows, is_token: _cleared(rows, ~is_token),
        count=lambda is_token: _tokens_of_each(~is_token),
    ),
    Mistake(
        "you add the rows up, where you should take their mean",
        "Should the vector of a long text be longer than that of a short one?",
        count=lambda is_token: 1,
    ),
    Mistake(
        "you divide by the number of tokens in all texts together",
        "How many tokens does each text have? Is an axis missing?",
        count=lambda is_token: is_token.sum(),
    ),
    Mistake(
        "your mean runs over the columns, axis 2: each token becomes one number",
        "Axes are texts, tokens, features. Which of them should be gone?",
        clear=_all,
        add=lambda rows: rows.mean(axis=2),
        count=lambda is_token: 1,
    ),
    Mistake(
        "your mean runs over the texts, axis 0: each place becomes a mixture of all texts",
        "Axes are texts, tokens, features. Which of them should be gone?",
        clear=_all,
        add=lambda rows: rows.mean(axis=0),
        count=lambda is_token: 1,
    ),
    Mistake(
        "you take the first row of each text, which is not the mean",
        "That is how a class token is read. How do the other tokens come in here?",
        clear=_all,
        add=lambda rows: rows[:, 0],
        count=lambda is_token: 1,
    ),
    Mistake(
        "you take the largest number of each column, which is not the mean",
        "Do all tokens have a say in the largest number, or only one?",
        clear=[_all, lambda rows, is_token: np.where(is_token[:, :, None], rows, -np.inf)],
        add=lambda rows: rows.max(axis=1),
        count=lambda is_token: 1,
    ),
]

_RNG = np.random.default_rng(2019)


def _case(name, lengths, seq, d_model, is_edge=False, padding=None):
    rows = _RNG.normal(size=(len(lengths), seq, d_model)).round(2)
    is_token = np.arange(seq) < np.array(lengths)[:, None]
    if padding is not None:
        rows[~is_token] = padding
    return Case(name, {"rows": rows, "is_token": is_token}, is_edge)


_ROWS = np.array([[[1.0, 8.0], [3, 2], [9, 5]], [[4, 6], [2, 0], [6, 3]]])
_IS_TOKEN = np.array([[True, True, False], [True, True, True]])

EXERCISE = Exercise(
    mean_pool,
    MISTAKES,
    cases=[
        _case("three texts of unequal length", [5, 2, 3], 6, 4),
        _case("two texts", [3, 5], 7, 5),
        _case("as many texts as features", [1, 4, 2], 5, 3),
        _case("padding that holds infinity", [3, 1], 4, 3, is_edge=True, padding=np.inf),
        _case("texts without padding", [3, 3, 3, 3], 3, 2, is_edge=True),
    ],
    examples=[
        {"rows": _ROWS, "is_token": _IS_TOKEN},
        {"rows": np.where(_IS_TOKEN[:, :, None], _ROWS, np.inf), "is_token": _IS_TOKEN},
    ],
    result="(num_texts, d_model)",
    tried_on="{rows[0]} texts, {rows[1]} rows each, of width {rows[2]}",
)
