"""Exercise `newton_schulz`: a matrix whose singular values all become about 1, by products of matrices alone."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, draw


def newton_schulz(
    gradient,
    num_steps,
    *,
    shrink=lambda gradient: gradient / np.sqrt((gradient**2).sum()),
    cube=lambda x: x @ x.T @ x,
    fifth=lambda x: x @ x.T @ x @ x.T @ x,
    mix=lambda x, cube, fifth: 3.4445 * x - 4.7750 * cube + 2.0315 * fifth,
    count=lambda num_steps: num_steps,
):
    """Return the matrix after so many steps of the polynomial."""
    x = shrink(gradient)
    for _ in range(count(num_steps)):
        x = mix(x, cube(x), fifth(x))
    return x


MISTAKES = [
    Mistake(
        "you do not divide by the root of the sum of squares first",
        "What does the polynomial make of a singular value of 3?",
        shrink=lambda gradient: gradient,
    ),
    Mistake(
        "you divide by the largest entry, which leaves singular values above 1",
        "Can a matrix whose entries are at most 1 have a singular value of 2?",
        shrink=lambda gradient: gradient / np.abs(gradient).max(),
    ),
    Mistake(
        "you divide by the sum of squares, without its root",
        "What is the length of twice the gradient, divided in this way?",
        shrink=lambda gradient: gradient / (gradient**2).sum(),
    ),
    Mistake(
        "you take powers of the entries, where powers of the singular values are wanted",
        "Which products of matrices leave the directions of a matrix as they are?",
        {"cube": lambda x: x**3, "fifth": lambda x: x**5},
    ),
    Mistake(
        "the last term has the third power again",
        "How many factors has the last product?",
        fifth=lambda x: x @ x.T @ x,
    ),
    Mistake(
        "the third power is added, where it is taken off",
        "Which sign has the number before the third power?",
        mix=lambda x, cube, fifth: 3.4445 * x + 4.7750 * cube + 2.0315 * fifth,
    ),
    Mistake(
        "you make one step only, whatever the number of steps",
        "What does the next step begin with?",
        count=lambda num_steps: min(num_steps, 1),
    ),
]

_RNG = np.random.default_rng(20241208)
EXERCISE = Exercise(
    newton_schulz,
    MISTAKES,
    cases=[
        Case("a wide matrix", draw(_RNG, 2, gradient=(3, 4)) | {"num_steps": 5}),
        Case("a tall matrix, two steps", draw(_RNG, 2, gradient=(6, 2)) | {"num_steps": 2}),
        Case("no step", draw(_RNG, 2, gradient=(4, 3)) | {"num_steps": 0}, True),
    ],
    examples=[{"gradient": np.array([[2.0, 1.0], [1.0, 2.0]]), "num_steps": steps} for steps in (1, 2)],
    result="(rows, columns)",
    tried_on="{gradient[0]} rows and {gradient[1]} columns",
)
