"""Exercise `training_step`: one step of gradient descent for the machine of one matrix, on a text."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake


def _softmax_rows(logits):
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def training_step(
    weight,
    ids,
    learning_rate,
    *,
    align=lambda ids: (ids[:-1], ids[1:]),
    expect=_softmax_rows,
    scatter=lambda shape, given, rows: _added(shape, given, rows),
    mean=lambda rows: rows / len(rows),
    move=lambda weight, gradient, learning_rate: weight - learning_rate * gradient,
):
    """Return the matrix after one step down the gradient of the mean surprise at each next token."""
    given, following = align(ids)
    gradients = expect(weight[given]) - np.eye(weight.shape[1])[following]
    return move(weight, scatter(weight.shape, given, mean(gradients)), learning_rate)


def _added(shape, given, rows):
    gradient = np.zeros(shape)
    np.add.at(gradient, given, rows)
    return gradient


def _replaced(shape, given, rows):
    gradient = np.zeros(shape)
    gradient[given] = rows
    return gradient


MISTAKES = [
    Mistake(
        "nothing is shifted: each token is asked for itself",
        "Row n was looked up by token n. Which token does it speak of?",
        align=[lambda ids: (ids, ids), lambda ids: (ids[:-1], ids[:-1])],
    ),
    Mistake(
        "you shift the wrong way: each token is asked for the one before it",
        "Row n was looked up by token n. Does it speak of what came before, or of what comes next?",
        align=lambda ids: (ids[1:], ids[:-1]),
    ),
    Mistake(
        "your shift goes round: the last token is asked for the first",
        "What stands in the text after its last token?",
        align=lambda ids: (ids, np.roll(ids, -1)),
    ),
    Mistake(
        "you go up the gradient, where you should go down",
        "Should what came become likelier, or less likely?",
        move=lambda weight, gradient, learning_rate: weight + learning_rate * gradient,
    ),
    Mistake(
        "the learning rate plays no part",
        "By what is the gradient multiplied before it is subtracted?",
        move=lambda weight, gradient, learning_rate: weight - gradient,
    ),
    Mistake(
        "you return the step, not the matrix after it",
        "From which numbers is the step subtracted?",
        move=[
            lambda weight, gradient, learning_rate: -learning_rate * gradient,
            lambda weight, gradient, learning_rate: learning_rate * gradient,
        ],
    ),
    Mistake(
        "the softmax is missing: you compare the logits themselves with what came",
        "Do logits sum to one? What makes probabilities of them?",
        expect=lambda logits: logits,
    ),
    Mistake(
        "your loss is in bits, where it should be in nats",
        "Which logarithm has the derivative 1/x?",
        move=lambda weight, gradient, learning_rate: weight - learning_rate * gradient / np.log(2),
    ),
    Mistake(
        "you return the gradient alone",
        "What is done with the gradient in a step of gradient descent?",
        move=lambda weight, gradient, learning_rate: gradient,
    ),
    Mistake(
        "your loss is the sum of the surprises, where it should be their mean",
        "Should a text twice as long make the step twice as long?",
        mean=lambda rows: rows,
    ),
    Mistake(
        "you divide by the number of tokens, but there is one question less",
        "Of how many tokens has the machine read what stands before them?",
        mean=lambda rows: rows / (len(rows) + 1),
    ),
    Mistake(
        "a row that is used twice gets the gradient of its last use alone",
        "Its token stands twice in the text. What happens to the two gradients of its row?",
        scatter=_replaced,
    ),
    Mistake(
        "only the last token has a part in your loss",
        "How many questions does a text of N tokens ask?",
        align=lambda ids: (ids[-2:-1], ids[-1:]),
    ),
]

_RNG = np.random.default_rng(1951)


def _case(name, vocab_size, ids, learning_rate, is_edge=False):
    weight = _RNG.normal(size=(vocab_size, vocab_size)).round(1)
    return Case(name, {"weight": weight, "ids": np.array(ids), "learning_rate": learning_rate}, is_edge)


EXERCISE = Exercise(
    training_step,
    MISTAKES,
    cases=[
        _case("6 tokens of 4", 4, [1, 3, 0, 1, 2, 1], 0.5),
        _case("8 tokens of 5", 5, [4, 0, 0, 3, 4, 1, 0, 2], 2.0),
        _case("two tokens", 3, [2, 0], 0.7, is_edge=True),
    ],
    examples=[{"weight": np.eye(3), "ids": np.array([0, 1, 2, 2, 0]), "learning_rate": 12.0}],
    result="(vocab_size, vocab_size)",
    tried_on="{ids[0]} tokens",
)
