"""The mistakes in a step of beam search that the exercises know by name."""

import numpy as np

from plainformer.exercises.exercise import Mistake


def best_of_all(totals, width):
    """The places of the `width` largest totals in the flattened table, largest first."""
    return np.argsort(-totals.reshape(-1), kind="stable")[:width]


def right_split(places, num_beams, vocab_size):
    """The beam and the token of each place."""
    return places // vocab_size, places % vocab_size


def _one_of_each(totals):
    return np.arange(len(totals)) * totals.shape[1] + totals.argmax(axis=1)


def _best_one_of_each(totals, width):
    places = _one_of_each(totals)
    return places[best_of_all(totals.reshape(-1)[places], width)]


def _several_of_each(totals, width):
    return np.argsort(-totals, axis=1)[:, :width] + np.arange(len(totals))[:, None] * totals.shape[1]


BEAM = [
    Mistake(
        "choose",
        "you extend each beam by its best token only",
        "May two of the best texts begin alike? How many candidates are there, and from how many do you choose?",
        _best_one_of_each,
        lambda totals, width: _one_of_each(totals)[:width],
        lambda totals, width: _one_of_each(totals),
    ),
    Mistake(
        "choose",
        "you keep the best `width` tokens of each beam, which makes too many texts",
        "How many texts should be left, whatever the number of beams?",
        lambda totals, width: _several_of_each(totals, width).reshape(-1),
        _several_of_each,
    ),
    Mistake(
        "choose",
        "you keep the least likely texts",
        "np.argsort sorts in ascending order. Is a log-probability of -1 better or worse than one of -5?",
        lambda totals, width: np.argsort(totals.reshape(-1), kind="stable")[:width],
        lambda totals, width: np.argsort(totals.reshape(-1), kind="stable")[:width][::-1],
    ),
    Mistake(
        "choose",
        "your texts are the right ones, but the best stands last",
        "In which order does np.argsort sort, and how do you turn an array round?",
        lambda totals, width: best_of_all(totals, width)[::-1],
    ),
    Mistake(
        "total",
        "the old log-probabilities play no part: you compare the last tokens alone",
        "A text is as likely as its beginning and its last token together. Where does the beginning come in?",
        lambda log_probs, next_log_probs: next_log_probs,
    ),
    Mistake(
        "total",
        "you multiply log-probabilities, where you should add them",
        "Probabilities are multiplied. What do their logarithms do?",
        lambda log_probs, next_log_probs: log_probs[:, None] * next_log_probs,
    ),
    Mistake(
        "values",
        "your new_log_probs are those of the last tokens alone",
        "What does the next step add to? Should it not be the log-probability of the whole text?",
        lambda totals, next_log_probs, places: next_log_probs.reshape(-1)[places],
    ),
    Mistake(
        "values",
        "your new_log_probs are probabilities",
        "The next step adds log-probabilities to them. What would it add to yours?",
        lambda totals, next_log_probs, places: np.exp(totals.reshape(-1)[places]),
    ),
    Mistake(
        "split",
        "you divide the place by the number of beams, where a row of the table is vocab_size long",
        "In a table of 2 rows and 3 columns, flattened, which row and which column is place 4?",
        lambda places, num_beams, vocab_size: (places // num_beams, places % num_beams),
        lambda places, num_beams, vocab_size: (places % num_beams, places // num_beams),
    ),
    Mistake(
        "split",
        "beams and tokens are swapped",
        "Which of the two can be as large as vocab_size - 1, the quotient or the remainder?",
        lambda places, num_beams, vocab_size: (places % vocab_size, places // vocab_size),
    ),
    Mistake(
        "split",
        "your tokens are places in the flattened table, not ids",
        "In a table of 2 rows and 3 columns, flattened, which column is place 4?",
        lambda places, num_beams, vocab_size: (places // vocab_size, places),
    ),
]
