"""Exercise `next_token_loss`: cross-entropy, with each row asked for the token after its own."""

import numpy as np

from plainformer.exercises.model import Exercise, Mistake
from plainformer.exercises.primer._loss_cases import loss_cases, loss_examples
from plainformer.exercises.primer.cross_entropy import SURPRISE, cross_entropy


def next_token_loss(logits, tokens, *, align=lambda logits, tokens: (logits[:-1], tokens[1:]), **steps):
    """Return the mean surprise at each next token."""
    return cross_entropy(*align(logits, tokens), **steps)


SHIFT = [
    Mistake(
        "nothing is shifted: each row is asked for its own token, which the model has read",
        "Row 0 was computed from tokens[0]. Which token does it speak of?",
        align=[
            lambda logits, tokens: (logits, tokens),
            lambda logits, tokens: (logits[1:], tokens[1:]),
            lambda logits, tokens: (logits[:-1], tokens[:-1]),
        ],
    ),
    Mistake(
        "you shift the wrong way: each row is asked for the token before its own",
        "Row 0 was computed from tokens[0]. Does it speak of what came before, or of what comes next?",
        align=lambda logits, tokens: (logits[1:], tokens[:-1]),
    ),
    Mistake(
        "you shift by two: each row is asked for the token after the next one",
        "Row 0 was computed from tokens[0]. What is the index of the next token?",
        align=lambda logits, tokens: (logits[:-2], tokens[2:]),
    ),
    Mistake(
        "your shift goes round: the last row is asked for the first token of the text",
        "What stands in the text after its last token, and is there a target for the last row?",
        align=lambda logits, tokens: (logits, np.roll(tokens, -1)),
    ),
    Mistake(
        "you divide by the number of tokens, but there is one prediction less",
        "Of how many tokens has the model read what stands before them?",
        average=lambda numbers, shape: numbers.sum() / (numbers.size + 1),
    ),
]

EXERCISE = Exercise(
    next_token_loss,
    [*SHIFT, *SURPRISE],
    cases=loss_cases("tokens", (6, 7), (5, 3), (4, 4), (2, 3)),
    examples=loss_examples("tokens"),
    result="()",
    tried_on="{logits[0]} tokens, a vocabulary of {logits[1]}",
)
