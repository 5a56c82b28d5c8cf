"""Exercise `mask_tokens`: tokens hidden, replaced or left for the model to guess."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake

MASK, FIRST_ORDINARY = 2, 3


def _eighty_ten_ten(fate):
    """Which of the tokens, if selected, become the mask, and which another token."""
    return fate < 0.8, (fate >= 0.8) & (fate < 0.9)


def mask_tokens(
    tokens,
    is_token,
    select,
    fate,
    draw,
    vocab_size,
    *,
    may=lambda tokens, is_token: is_token & (tokens >= FIRST_ORDINARY),
    is_low=lambda select: select < 0.15,
    split=_eighty_ten_ten,
    number=lambda fate, draw: draw,
    to_ids=lambda draw, size: FIRST_ORDINARY + np.floor(draw * (size - FIRST_ORDINARY)).astype(int),
    change=lambda chosen, changed, tokens: np.where(chosen, changed, tokens),
    note=lambda chosen, corrupted, tokens: chosen,
):
    """Return what the model reads, and where it has to guess."""
    chosen = may(tokens, is_token) & is_low(select)
    becomes_mask, becomes_other = split(fate)
    other = to_ids(number(fate, draw), vocab_size)
    changed = np.where(becomes_mask, MASK, np.where(becomes_other, other, tokens))
    corrupted = change(chosen, changed, tokens)
    return np.stack([corrupted, note(chosen, corrupted, tokens)])


MISTAKES = [
    Mistake(
        "special tokens are hidden, too",
        "Ids below 3 are the book's own marks. What could be learned from guessing that a text begins with one?",
        may=lambda tokens, is_token: is_token,
    ),
    Mistake(
        "padding is hidden, too",
        "Where is_token is False there is no token. What would there be to guess?",
        may=lambda tokens, is_token: tokens >= FIRST_ORDINARY,
    ),
    Mistake(
        "you select from everything, special tokens and padding included",
        "Two conditions must hold before a token may be selected at all. Which?",
        may=lambda tokens, is_token: np.ones_like(is_token),
    ),
    Mistake(
        "you select 85 % of the tokens and leave 15 %: the comparison is the wrong way round",
        "Numbers between 0 and 1, all alike: which share of them lies below 0.15?",
        is_low=lambda select: select >= 0.15,
    ),
    Mistake(
        "every selected token becomes the mask",
        "Which of the three fates has 80 %, and what do the others have? If you ask select for the fate as well: can a "
        "number that lies below 0.15 ever reach 0.8?",
        split=lambda fate: (fate >= 0, fate < 0),
    ),
    Mistake(
        "no selected token stays as it is: 20 % are replaced at random",
        "80 % and 10 % are decided. What becomes of the tokens whose fate is 0.9 or more?",
        split=lambda fate: (fate < 0.8, fate >= 0.8),
    ),
    Mistake(
        "no selected token is replaced at random: 20 % stay as they are",
        "Which fate lies between 0.8 and 0.9?",
        split=lambda fate: (fate < 0.8, fate < 0),
    ),
    Mistake(
        "the mask and the random token are swapped: 80 % are replaced at random, 10 % hidden",
        "Which of the two should the model see most, so that it has to look at the other tokens?",
        split=[lambda fate: _eighty_ten_ten(fate)[::-1], lambda fate: (fate < 0.1, (fate >= 0.1) & (fate < 0.9))],
    ),
    Mistake(
        "fate decides twice: whether a token is replaced, and by which",
        "A token is replaced if its fate lies between 0.8 and 0.9. Which ids can fate choose then, and which never?",
        number=lambda fate, draw: fate,
    ),
    Mistake(
        "you draw the replacement from all tokens, special ones included",
        "Which is the lowest id that may stand in a text? To which id should draw = 0 lead?",
        to_ids=lambda draw, vocab_size: np.floor(draw * vocab_size).astype(int),
    ),
    Mistake(
        "your replacements run beyond the vocabulary",
        "How many ordinary tokens are there, once three ids are special? To which id should draw = 0.999 lead?",
        to_ids=lambda draw, vocab_size: FIRST_ORDINARY + np.floor(draw * vocab_size).astype(int),
    ),
    Mistake(
        "tokens that are not selected are changed, too",
        "What should the model read where it has nothing to guess?",
        change=lambda chosen, changed, tokens: changed,
    ),
    Mistake(
        "is_selected is True only where a token was changed",
        "10 % of the selected tokens stay. Can the model tell them from others, and should it guess them?",
        note=lambda chosen, corrupted, tokens: corrupted != tokens,
    ),
    Mistake(
        "is_selected is True only where the mask stands",
        "What is a token replaced or left for, if the model never has to say what it was?",
        note=lambda chosen, corrupted, tokens: corrupted == MASK,
    ),
]

_RNG = np.random.default_rng(2018)


def _case(name, seq, vocab_size, num_padding, is_edge=False, select=None, fate=None):
    tokens = _RNG.integers(FIRST_ORDINARY, vocab_size, seq)
    tokens[[0, seq // 2]] = 0, 1
    low = _RNG.random(seq) < 0.7
    low[[0, seq // 2, -1]] = True  # special tokens and padding would be selected, if they might
    numbers = np.where(low, _RNG.uniform(0.01, 0.14, seq), _RNG.uniform(0.2, 0.99, seq))
    fates = _RNG.permutation(np.resize([0.85, 0.95, 0.3, 0.82, 0.92, 0.7, 0.05], seq))
    inputs = {
        "tokens": tokens,
        "is_token": np.arange(seq) < seq - num_padding,
        "select": numbers.round(2) if select is None else np.full(seq, select),
        "fate": fates if fate is None else np.full(seq, fate),
        "draw": _RNG.uniform(0.01, 0.99, seq).round(2),
        "vocab_size": vocab_size,
    }
    return Case(name, inputs, is_edge)


EXERCISE = Exercise(
    mask_tokens,
    MISTAKES,
    cases=[
        _case("15 tokens", 15, 17, 3),
        _case("another text", 19, 22, 2),
        _case("a text with much padding", 16, 14, 6),
        _case("a text of which no token is selected", 9, 17, 2, is_edge=True, select=0.5),
        _case("a text of which all selected tokens stay", 8, 14, 1, is_edge=True, select=0.1, fate=0.95),
    ],
    examples=[
        {
            "tokens": np.array([0, 5, 3, 6, 4, 5]),
            "is_token": np.array([True, True, True, True, True, False]),
            "select": np.array([0.1, 0.12, 0.07, 0.05, 0.6, 0.02]),
            "fate": np.array([0.2, 0.5, 0.85, 0.95, 0.82, 0.1]),
            "draw": np.array([0.5, 0.9, 0.6, 0.2, 0.8, 0.4]),
            "vocab_size": 7,
        }
    ],
    result="(seq,)",
    tried_on="{tokens[0]} tokens, a vocabulary of {vocab_size}",
    parts=("corrupted", "is_selected"),
)
