"""Exercise `temperature`: probabilities from logits, flatter or sharper."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake


def temperature(
    logits,
    temperature,
    *,
    scale=lambda logits, temperature: logits / temperature,
    exponentiate=lambda logits: np.exp(logits - logits.max()),
    share=lambda exponentials: exponentials / exponentials.sum(),
    finish=lambda probabilities, temperature: probabilities,
    at_zero=lambda logits: (logits == logits.max()) / (logits == logits.max()).sum(),
):
    """Return the softmax of the logits over the temperature; at 0 the most likely tokens share everything."""
    if temperature == 0:
        return at_zero(logits)
    return finish(share(exponentiate(scale(logits, temperature))), temperature)


def softmax(logits):
    """Return probabilities, at temperature 1."""
    exponentials = np.exp(logits - logits.max())
    return exponentials / exponentials.sum()


MISTAKES = [
    Mistake(
        "you multiply the logits by the temperature, where you should divide by it",
        "Should a high temperature make the distribution flatter or sharper?",
        scale=lambda logits, temperature: logits * temperature,
    ),
    Mistake(
        "you divide by the square of the temperature",
        "By how much should the gap between two logits shrink at temperature 2?",
        scale=lambda logits, temperature: logits / temperature**2,
    ),
    Mistake(
        "you divide by the root of the temperature",
        "By how much should the gap between two logits shrink at temperature 2?",
        scale=lambda logits, temperature: logits / temperature**0.5,
    ),
    Mistake(
        "the temperature plays no part: your result is the softmax of the bare logits",
        "Are the logits divided by the temperature before the softmax, and is the quotient what you go on with?",
        scale=lambda logits, temperature: logits,
    ),
    Mistake(
        "you divide the probabilities by the temperature, after the softmax",
        "To how much do your numbers sum? What do you have to divide before it is exponentiated?",
        scale=lambda logits, temperature: logits,
        finish=lambda probabilities, temperature: probabilities / temperature,
    ),
    Mistake(
        "you divide the probabilities by the temperature, and take a second softmax of them",
        "How many times should exp be taken, and of what?",
        scale=lambda logits, temperature: softmax(logits) / temperature,
    ),
    Mistake(
        "you do not divide by the sum",
        "To how much should probabilities sum?",
        {"share": lambda exponentials: exponentials},
        {"share": lambda exponentials: exponentials, "exponentiate": np.exp},
    ),
    Mistake(
        "at a small temperature exp overflows",
        "A softmax does not change if a number is taken off every logit. Which one keeps exp within bounds?",
        exponentiate=np.exp,
    ),
    Mistake(
        "at temperature 0 you divide by zero, and nothing is a number (nan)",
        "Nothing can be divided by 0, but what does the distribution come to as the temperature falls towards it?",
        at_zero=lambda logits: np.full(logits.shape, np.nan),
    ),
    Mistake(
        "at temperature 0 you give everything to a single token, although two are equally likely",
        "At every other temperature, what are the probabilities of two tokens with the same logit?",
        at_zero=[
            lambda logits: np.eye(len(logits))[logits.argmax()],
            lambda logits: np.eye(len(logits))[::-1][logits[::-1].argmax()],
        ],
    ),
    Mistake(
        "at temperature 0 you return the softmax of the bare logits, as if the temperature were 1",
        "What does the distribution come to as the temperature falls towards 0?",
        at_zero=softmax,
    ),
    Mistake(
        "at temperature 0 all tokens are equally likely, which they should be at an infinite temperature",
        "As the temperature falls towards 0, does the distribution become flatter or sharper?",
        at_zero=lambda logits: np.full(logits.shape, 1 / len(logits)),
    ),
]


def _case(name, logits, temperature, is_edge=False):
    return Case(name, {"logits": np.array(logits), "temperature": temperature}, is_edge)


EXERCISE = Exercise(
    temperature,
    MISTAKES,
    cases=[
        _case("a low temperature", [1.2, -0.3, 2.1, 0.4, -1.5, 0.9], 0.5),
        _case("a high temperature", [0.3, 2.5, -1.1, 1.4, -2.0], 3.0),
        _case("temperature 1", [-1.0, 0.5, 2.0, 1.0], 1.0, is_edge=True),
        _case("a temperature near 0", [2.2, 3.0, -2.0, 1.5, -0.5], 0.001, is_edge=True),
        _case("temperature 0, where two logits are largest", [0.5, 1.5, -1.0, 1.5, 1.0], 0.0, is_edge=True),
    ],
    examples=[
        {"logits": np.array([0.0, 1.0, 2.0]), "temperature": 2.0},
        {"logits": np.array([1.0, 2.0, 3.0]), "temperature": 0.001},
        {"logits": np.array([1.0, 3.0, 3.0]), "temperature": 0.0},
    ],
    result="(vocab_size,)",
    tried_on="{logits[0]} tokens, temperature {temperature}",
)
