"""Exercise `best_split`: how many numbers and how many tokens a given work should buy."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, floats


def _power_of_text(size_power, text_power):
    return text_power / (size_power + text_power)


def best_split(
    work,
    size_factor,
    size_power,
    text_factor,
    text_power,
    *,
    per_pair=lambda work: work / 6,
    balance=lambda a, p, b, q: p * a / (q * b),
    root=lambda p, q: 1 / (p + q),
    grows=_power_of_text,
    tokens=lambda pairs, size: pairs / size,
):
    """Return how many numbers, and how many tokens, lose least together, for each amount of work."""
    pairs = per_pair(work)
    size = balance(size_factor, size_power, text_factor, text_power) ** root(size_power, text_power)
    size = size * pairs ** grows(size_power, text_power)
    return np.stack([size, tokens(pairs, size)], axis=-1)


MISTAKES = [
    Mistake(
        "the six operations for each number and token are missing",
        "How many operations does a training of 10 numbers on 10 tokens take?",
        per_pair=lambda work: work,
    ),
    Mistake(
        "you multiply the work by six, where you should divide",
        "What is size times tokens, if six operations are made for each pair?",
        per_pair=lambda work: work * 6,
    ),
    Mistake(
        "the powers are missing in the balance of the two factors",
        "What comes in front when you differentiate a power?",
        balance=lambda a, p, b, q: a / b,
    ),
    Mistake(
        "the balance of the two terms is turned round",
        "If a small size costs more, should the model be larger or smaller?",
        balance=lambda a, p, b, q: q * b / (p * a),
    ),
    Mistake(
        "the balance has no root: it is not raised to one over the sum of the powers",
        "Where both slopes are equal, to which power does the size stand?",
        root=lambda p, q: 1.0,
    ),
    Mistake(
        "the power of the work is the one of the size, where it should be the one of the text",
        "If more text hardly helps, where does more work go?",
        grows=lambda p, q: p / (p + q),
    ),
    Mistake(
        "you always take the root of the work, which is right only if both powers are equal",
        "How does the best size grow if the two powers differ?",
        grows=lambda p, q: 0.5,
    ),
    Mistake(
        "you return the size twice, and no tokens",
        "What is left of the work for each number of the model?",
        tokens=lambda pairs, size: size,
    ),
]

LAW = {"size_factor": 8.0, "size_power": 0.5, "text_factor": 20.0, "text_power": 0.3}

EXERCISE = Exercise(
    best_split,
    MISTAKES,
    cases=[
        Case("three amounts of work", floats(work=[6e3, 4.2e4, 1.8e5]) | LAW),
        Case(
            "two amounts of work, another law", floats(work=[3e4, 9e4]) | LAW | {"size_power": 0.4, "text_power": 0.7}
        ),
        Case("one amount of work", floats(work=[1.2e4]) | LAW, is_edge=True),
    ],
    examples=[
        {"work": np.array([600.0]), "size_factor": 2.0, "size_power": 1.0, "text_factor": 8.0, "text_power": 0.5},
        {"work": np.array([6.0]), "size_factor": 2.0, "size_power": 1.0, "text_factor": 8.0, "text_power": 0.5},
    ],
    result="(number of works, 2)",
    tried_on="{work[0]} amounts of work",
)
