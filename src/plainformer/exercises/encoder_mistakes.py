"""What goes wrong in the exercises of chapter 07: hiding tokens, learning from the hidden ones, one vector for a text.

Each step here takes the place of one in `encoder`, with the same arguments.
"""

import numpy as np

from plainformer.exercises import loss_mistakes as loss
from plainformer.exercises.exercise import Mistake

MASK, FIRST_ORDINARY = 2, 3


def ordinary_tokens(tokens, is_token):
    """What may be selected: neither padding nor the ids 0 to 2."""
    return is_token & (tokens >= FIRST_ORDINARY)


def eighty_ten_ten(fate):
    """Which of the tokens, if selected, become the mask, and which another token."""
    return fate < 0.8, (fate >= 0.8) & (fate < 0.9)


def among_ordinary(draw, vocab_size):
    """An id from 3 on for each number between 0 and 1, all of them alike."""
    return FIRST_ORDINARY + np.floor(draw * (vocab_size - FIRST_ORDINARY)).astype(int)


MASKING = [
    Mistake(
        "may",
        "special tokens are hidden, too",
        "Ids below 3 are the book's own marks. What could be learned from guessing that a text begins with one?",
        lambda tokens, is_token: is_token,
    ),
    Mistake(
        "may",
        "padding is hidden, too",
        "Where is_token is False there is no token. What would there be to guess?",
        lambda tokens, is_token: tokens >= FIRST_ORDINARY,
    ),
    Mistake(
        "may",
        "you select from everything, special tokens and padding included",
        "Two conditions must hold before a token may be selected at all. Which?",
        lambda tokens, is_token: np.ones_like(is_token),
    ),
    Mistake(
        "is_low",
        "you select 85 % of the tokens and leave 15 %: the comparison is the wrong way round",
        "Numbers between 0 and 1, all alike: which share of them lies below 0.15?",
        lambda select: select >= 0.15,
    ),
    Mistake(
        "split",
        "every selected token becomes the mask",
        "Which of the three fates has 80 %, and what do the others have? If you ask select for the fate as well: can a "
        "number that lies below 0.15 ever reach 0.8?",
        lambda fate: (fate >= 0, fate < 0),
    ),
    Mistake(
        "split",
        "no selected token stays as it is: 20 % are replaced at random",
        "80 % and 10 % are decided. What becomes of the tokens whose fate is 0.9 or more?",
        lambda fate: (fate < 0.8, fate >= 0.8),
    ),
    Mistake(
        "split",
        "no selected token is replaced at random: 20 % stay as they are",
        "Which fate lies between 0.8 and 0.9?",
        lambda fate: (fate < 0.8, fate < 0),
    ),
    Mistake(
        "split",
        "the mask and the random token are swapped: 80 % are replaced at random, 10 % hidden",
        "Which of the two should the model see most, so that it has to look at the other tokens?",
        lambda fate: eighty_ten_ten(fate)[::-1],
        lambda fate: (fate < 0.1, (fate >= 0.1) & (fate < 0.9)),
    ),
    Mistake(
        "number",
        "fate decides twice: whether a token is replaced, and by which",
        "A token is replaced if its fate lies between 0.8 and 0.9. Which ids can fate choose then, and which never?",
        lambda fate, draw: fate,
    ),
    Mistake(
        "to_ids",
        "you draw the replacement from all tokens, special ones included",
        "Which is the lowest id that may stand in a text? To which id should draw = 0 lead?",
        lambda draw, vocab_size: np.floor(draw * vocab_size).astype(int),
    ),
    Mistake(
        "to_ids",
        "your replacements run beyond the vocabulary",
        "How many ordinary tokens are there, once three ids are special? To which id should draw = 0.999 lead?",
        lambda draw, vocab_size: FIRST_ORDINARY + np.floor(draw * vocab_size).astype(int),
    ),
    Mistake(
        "change",
        "tokens that are not selected are changed, too",
        "What should the model read where it has nothing to guess?",
        lambda chosen, changed, tokens: changed,
    ),
    Mistake(
        "note",
        "is_selected is True only where a token was changed",
        "10 % of the selected tokens stay. Can the model tell them from others, and should it guess them?",
        lambda chosen, corrupted, tokens: corrupted != tokens,
    ),
    Mistake(
        "note",
        "is_selected is True only where the mask stands",
        "What is a token replaced or left for, if the model never has to say what it was?",
        lambda chosen, corrupted, tokens: corrupted == MASK,
    ),
]


def over_selected(surprises, is_selected):
    """Their mean, and 0 if there are none."""
    kept = surprises[is_selected]
    return kept.sum() / max(kept.size, 1)


MASKED_LOSS = [
    Mistake(
        "average",
        "you take the mean over all tokens: is_selected plays no part",
        "Most tokens stand there for the model to read. What does it learn from naming those?",
        lambda surprises, is_selected: surprises.mean(),
    ),
    Mistake(
        "average",
        "you take the mean over the tokens that were not selected",
        "is_selected is True where the model has to guess. Is there a ~ too many?",
        lambda surprises, is_selected: over_selected(surprises, ~is_selected),
        lambda surprises, is_selected: surprises[~is_selected].sum() / np.float64((~is_selected).sum()),
    ),
    Mistake(
        "average",
        "you divide by the number of all tokens, but only the selected ones count",
        "How many surprises did you add up? By that number a mean divides. Would a text twice as long, with as many "
        "selected tokens, be guessed half as badly?",
        lambda surprises, is_selected: np.where(is_selected, surprises, 0).sum() / is_selected.size,
    ),
    Mistake(
        "average",
        "you divide by the number of tokens that were not selected",
        "How many surprises did you add up? By that number a mean divides. Is there a ~ too many?",
        lambda surprises, is_selected: np.where(is_selected, surprises, 0).sum() / np.float64((~is_selected).sum()),
    ),
    Mistake(
        "average",
        "you add the surprises up, where you should take their mean",
        "Should a batch with twice as many selected tokens have twice the loss?",
        lambda surprises, is_selected: surprises[is_selected].sum(),
    ),
    Mistake(
        "average",
        "you divide by zero where no token is selected",
        "A short text may have no selected token. By what can its sum, which is 0, be divided, so that it stays 0?",
        lambda surprises, is_selected: surprises[is_selected].sum() / np.float64(is_selected.sum()),
    ),
    Mistake(
        "clear",
        "you clear the logits of the other tokens, whose surprise is then the logarithm of vocab_size and still counts",
        "What does a softmax make of a row of zeros? What should be left out, logits or surprises?",
        {
            "clear": lambda logits, is_selected: logits * is_selected[:, None],
            "average": lambda surprises, is_selected: surprises.mean(),
        },
    ),
    Mistake(
        "align",
        "you shift the targets, as for a decoder",
        "Row n of a decoder speaks of token n + 1. Of which token does row n speak here, where nothing is hidden from "
        "the right?",
        lambda logits, targets, is_selected: (logits[:-1], targets[1:], is_selected[1:]),
        lambda logits, targets, is_selected: (logits[:-1], targets[1:], is_selected[:-1]),
    ),
    *loss.SURPRISE[1:],
]


def cleared(rows, is_token):
    """Zeros in place of padding, whatever that holds."""
    return np.where(is_token[:, :, None], rows, 0)


def tokens_of_each(is_token):
    """How many tokens each text has, as a column."""
    return is_token.sum(axis=1, keepdims=True)


def _all(rows, is_token):
    return rows


def _length(is_token):
    return is_token.shape[1]


MEAN_POOL = [
    Mistake(
        "count",
        "padding counts: you take the mean over all rows",
        "A text of two tokens, padded to five: how many rows say something about it?",
        {"clear": _all, "count": _length},
    ),
    Mistake(
        "count",
        "you leave padding out of the sum, but divide by the number of all rows",
        "Should the vector of a text become shorter because a longer one stands beside it in the batch?",
        _length,
    ),
    Mistake(
        "clear",
        "you divide by the number of tokens, but padding is still in the sum",
        "What stands in the rows of padding: zeros, or whatever the encoder made of them?",
        _all,
    ),
    Mistake(
        "clear",
        "you multiply padding by 0, which does not clear it if it holds nan or infinity",
        "What is 0 times infinity? Which function picks a number instead of multiplying it?",
        lambda rows, is_token: rows * is_token[:, :, None],
    ),
    Mistake(
        "clear",
        "you take the mean of the padding, and leave the tokens out",
        "is_token is True for a token. Is there a ~ too many?",
        {"clear": lambda rows, is_token: cleared(rows, ~is_token), "count": lambda is_token: tokens_of_each(~is_token)},
    ),
    Mistake(
        "count",
        "you add the rows up, where you should take their mean",
        "Should the vector of a long text be longer than that of a short one?",
        lambda is_token: 1,
    ),
    Mistake(
        "count",
        "you divide by the number of tokens in all texts together",
        "How many tokens does each text have? Is an axis missing?",
        lambda is_token: is_token.sum(),
    ),
    Mistake(
        "add",
        "your mean runs over the columns, axis 2: each token becomes one number",
        "Axes are texts, tokens, features. Which of them should be gone?",
        {"clear": _all, "add": lambda rows: rows.mean(axis=2), "count": lambda is_token: 1},
    ),
    Mistake(
        "add",
        "your mean runs over the texts, axis 0: each place becomes a mixture of all texts",
        "Axes are texts, tokens, features. Which of them should be gone?",
        {"clear": _all, "add": lambda rows: rows.mean(axis=0), "count": lambda is_token: 1},
    ),
    Mistake(
        "add",
        "you take the first row of each text, which is not the mean",
        "That is how a class token is read. How do the other tokens come in here?",
        {"clear": _all, "add": lambda rows: rows[:, 0], "count": lambda is_token: 1},
    ),
    Mistake(
        "add",
        "you take the largest number of each column, which is not the mean",
        "Do all tokens have a say in the largest number, or only one?",
        {"clear": _all, "add": lambda rows: rows.max(axis=1), "count": lambda is_token: 1},
        {
            "clear": lambda rows, is_token: np.where(is_token[:, :, None], rows, -np.inf),
            "add": lambda rows: rows.max(axis=1),
            "count": lambda is_token: 1,
        },
    ),
]
