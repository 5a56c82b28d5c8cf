"""Exercise `answer_mask`: which targets of a dialogue count in the loss."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake

ANSWER, END = 1, 2


def _begin(tokens):
    """The place of the token after which the answer begins."""
    return int(np.flatnonzero(tokens == ANSWER)[-1])


def _last(tokens, length):
    """The place of the last token of the text."""
    return length - 1


def answer_mask(
    tokens,
    length,
    *,
    begin=_begin,
    last=_last,
    first_row=lambda begin: begin,
    last_row=lambda last: last - 1,
    size=lambda tokens: len(tokens) - 1,
    turn=lambda mask: mask,
):
    """Return, for each input but not for the last token, whether its target counts."""
    rows = np.arange(size(tokens))
    return turn((rows >= first_row(begin(tokens))) & (rows <= last_row(last(tokens, length)))).astype(int)


MISTAKES = [
    Mistake(
        "the mask is shifted by one: it marks the tokens of the answer among the inputs, not among the targets",
        "At which input is the first word of the answer the target: at itself, or one token earlier?",
        first_row=lambda begin: begin + 1,
        last_row=lambda last: last,
    ),
    Mistake(
        "the first word of the answer does not count",
        "At the answer's token itself the model foretells what?",
        first_row=lambda begin: begin + 1,
    ),
    Mistake(
        "the answer's own token counts, too",
        "Who writes the token that the answer begins after: the model, or whoever asks?",
        first_row=lambda begin: begin - 1,
    ),
    Mistake(
        "the token that ends the answer does not count",
        "Who tells the model when to stop, if that is never asked for?",
        last_row=lambda last: last - 2,
    ),
    Mistake(
        "padding counts, too",
        "What should the model learn from a place after the text's end?",
        last=lambda tokens, length: len(tokens),
    ),
    Mistake(
        "the question counts, too",
        "Before which token does all that stands there come from somebody else?",
        first_row=lambda begin: 0,
    ),
    Mistake(
        "you look for the first of the answer's tokens, where several answers stand",
        "A dialogue may have earlier answers, which are part of what is read. Which one is asked for?",
        begin=lambda tokens: int(np.flatnonzero(tokens == ANSWER)[0]),
    ),
    Mistake(
        "the mask is turned round: what counts is all but the answer",
        "Is there a ~ too many?",
        turn=lambda mask: ~mask,
    ),
    Mistake(
        "your mask has an entry for the last token, which has no target",
        "How many pairs of a token and the next one does a text of N tokens have?",
        size=len,
    ),
]

_RNG = np.random.default_rng(2203)


def _case(name, question, answer, padding, earlier=(), is_edge=False):
    words = [*_RNG.integers(4, 20, question), *earlier, *_RNG.integers(4, 20, 3), ANSWER, *_RNG.integers(4, 20, answer)]
    tokens = np.array([*words, END, *[0] * padding])
    return Case(name, {"tokens": tokens, "length": len(words) + 1}, is_edge)


EXERCISE = Exercise(
    answer_mask,
    MISTAKES,
    cases=[
        _case("a dialogue of 12 tokens", 2, 3, 2),
        _case("a longer question", 5, 2, 4),
        _case("a dialogue with an earlier answer", 2, 4, 1, earlier=(ANSWER, 9, END)),
        _case("a text without padding", 3, 2, 0, is_edge=True),
    ],
    examples=[
        {"tokens": np.array([7, 8, ANSWER, 6, END, 0]), "length": 5},
        {"tokens": np.array([7, ANSWER, 5, 9, ANSWER, 6, END, 0]), "length": 7},
    ],
    result="(seq - 1,)",
    tried_on="{tokens[0]} tokens, padding included",
    is_exact=True,
)
