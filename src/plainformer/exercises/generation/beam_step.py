"""Exercise `beam_step`: the most likely of all texts that are one token longer."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake


def _best_of_all(totals, width):
    """The places of the `width` largest totals in the flattened table, largest first."""
    return np.argsort(-totals.reshape(-1), kind="stable")[:width]


def beam_step(
    log_probs,
    next_log_probs,
    width,
    *,
    total=lambda log_probs, next_log_probs: log_probs[:, None] + next_log_probs,
    choose=_best_of_all,
    split=lambda places, num_beams, vocab_size: (places // vocab_size, places % vocab_size),
    values=lambda totals, next_log_probs, places: totals.reshape(-1)[places],
):
    """Return for each new text its beam, its last token and its log-probability, the best first."""
    totals = total(log_probs, next_log_probs)
    places = choose(totals, width)
    beams, tokens = split(places, *totals.shape)
    return np.stack([beams, tokens, values(totals, next_log_probs, places)])


def _one_of_each(totals):
    return np.arange(len(totals)) * totals.shape[1] + totals.argmax(axis=1)


def _best_one_of_each(totals, width):
    places = _one_of_each(totals)
    return places[_best_of_all(totals.reshape(-1)[places], width)]


def _several_of_each(totals, width):
    return np.argsort(-totals, axis=1)[:, :width] + np.arange(len(totals))[:, None] * totals.shape[1]


MISTAKES = [
    Mistake(
        "you extend each beam by its best token only",
        "May two of the best texts begin alike? How many candidates are there, and from how many do you choose?",
        choose=[
            _best_one_of_each,
            lambda totals, width: _one_of_each(totals)[:width],
            lambda totals, width: _one_of_each(totals),
        ],
    ),
    Mistake(
        "you keep the best `width` tokens of each beam, which makes too many texts",
        "How many texts should be left, whatever the number of beams?",
        choose=[lambda totals, width: _several_of_each(totals, width).reshape(-1), _several_of_each],
    ),
    Mistake(
        "you keep the least likely texts",
        "np.argsort sorts in ascending order. Is a log-probability of -1 better or worse than one of -5?",
        choose=[
            lambda totals, width: np.argsort(totals.reshape(-1), kind="stable")[:width],
            lambda totals, width: np.argsort(totals.reshape(-1), kind="stable")[:width][::-1],
        ],
    ),
    Mistake(
        "your texts are the right ones, but the best stands last",
        "In which order does np.argsort sort, and how do you turn an array round?",
        choose=lambda totals, width: _best_of_all(totals, width)[::-1],
    ),
    Mistake(
        "the old log-probabilities play no part: you compare the last tokens alone",
        "A text is as likely as its beginning and its last token together. Where does the beginning come in?",
        total=lambda log_probs, next_log_probs: next_log_probs,
    ),
    Mistake(
        "you multiply log-probabilities, where you should add them",
        "Probabilities are multiplied. What do their logarithms do?",
        total=lambda log_probs, next_log_probs: log_probs[:, None] * next_log_probs,
    ),
    Mistake(
        "your new_log_probs are those of the last tokens alone",
        "What does the next step add to? Should it not be the log-probability of the whole text?",
        values=lambda totals, next_log_probs, places: next_log_probs.reshape(-1)[places],
    ),
    Mistake(
        "your new_log_probs are probabilities",
        "The next step adds log-probabilities to them. What would it add to yours?",
        values=lambda totals, next_log_probs, places: np.exp(totals.reshape(-1)[places]),
    ),
    Mistake(
        "you divide the place by the number of beams, where a row of the table is vocab_size long",
        "In a table of 2 rows and 3 columns, flattened, which row and which column is place 4?",
        split=[
            lambda places, num_beams, vocab_size: (places // num_beams, places % num_beams),
            lambda places, num_beams, vocab_size: (places % num_beams, places // num_beams),
        ],
    ),
    Mistake(
        "beams and tokens are swapped",
        "Which of the two can be as large as vocab_size - 1, the quotient or the remainder?",
        split=lambda places, num_beams, vocab_size: (places % vocab_size, places // vocab_size),
    ),
    Mistake(
        "your tokens are places in the flattened table, not ids",
        "In a table of 2 rows and 3 columns, flattened, which column is place 4?",
        split=lambda places, num_beams, vocab_size: (places // vocab_size, places),
    ),
]

_RNG = np.random.default_rng(2012)


def _case(name, num_beams, vocab_size, width, is_edge=False):
    logits = 2 * _RNG.normal(size=(num_beams, vocab_size))
    following = (logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))).round(2)
    log_probs = -np.sort(_RNG.uniform(0.5, 3, num_beams)).round(2)
    return Case(name, {"log_probs": log_probs, "next_log_probs": following, "width": width}, is_edge)


_FOLLOWING = np.array([[-2.0, -0.2, -3.5], [-0.7, -1.2, -1.6]])

EXERCISE = Exercise(
    beam_step,
    MISTAKES,
    cases=[
        _case("three beams", 3, 5, 2),
        _case("more beams than before", 2, 6, 4),
        _case("as many beams as before", 4, 3, 4),
        _case("the first step, from one beam", 1, 5, 3, is_edge=True),
        _case("a single beam to keep", 3, 4, 1, is_edge=True),
    ],
    examples=[
        {"log_probs": np.array([-0.5, -1.0]), "next_log_probs": _FOLLOWING, "width": 2},
        {"log_probs": np.array([-0.5, -2.5]), "next_log_probs": _FOLLOWING, "width": 2},
        {"log_probs": np.array([-0.5, -0.6]), "next_log_probs": _FOLLOWING, "width": 3},
    ],
    result="(width,)",
    tried_on="{next_log_probs[0]} beams, a vocabulary of {next_log_probs[1]}, width {width}",
    parts=("beams", "tokens", "new_log_probs"),
)
