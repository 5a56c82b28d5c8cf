"""Exercise `masked_token_loss`: the mean surprise at the tokens that were selected."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake
from plainformer.exercises.primer.cross_entropy import SURPRISE, log_softmax, of_each_row


def _over_selected(surprises, is_selected):
    """Their mean, and 0 if there are none."""
    kept = surprises[is_selected]
    return kept.sum() / max(kept.size, 1)


def masked_token_loss(
    logits,
    targets,
    is_selected,
    *,
    align=lambda logits, targets, is_selected: (logits, targets, is_selected),
    clear=lambda logits, is_selected: logits,
    log_probs=log_softmax,
    pick=of_each_row,
    average=_over_selected,
    finish=lambda surprise: surprise,
):
    """Return the mean surprise at the selected targets, in nats, and 0 if there are none."""
    logits, targets, is_selected = align(logits, targets, is_selected)
    surprises = -pick(log_probs(clear(logits, is_selected)), targets)
    return np.asarray(finish(average(surprises, is_selected)))


MISTAKES = [
    Mistake(
        "you take the mean over all tokens: is_selected plays no part",
        "Most tokens stand there for the model to read. What does it learn from naming those?",
        average=lambda surprises, is_selected: surprises.mean(),
    ),
    Mistake(
        "you take the mean over the tokens that were not selected",
        "is_selected is True where the model has to guess. Is there a ~ too many?",
        average=[
            lambda surprises, is_selected: _over_selected(surprises, ~is_selected),
            lambda surprises, is_selected: surprises[~is_selected].sum() / np.float64((~is_selected).sum()),
        ],
    ),
    Mistake(
        "you divide by the number of all tokens, but only the selected ones count",
        "How many surprises did you add up? By that number a mean divides. Would a text twice as long, with as many "
        "selected tokens, be guessed half as badly?",
        average=lambda surprises, is_selected: np.where(is_selected, surprises, 0).sum() / is_selected.size,
    ),
    Mistake(
        "you divide by the number of tokens that were not selected",
        "How many surprises did you add up? By that number a mean divides. Is there a ~ too many?",
        average=lambda surprises, is_selected: (
            np.where(is_selected, surprises, 0).sum() / np.float64((~is_selected).sum())
        ),
    ),
    Mistake(
        "you add the surprises up, where you should take their mean",
        "Should a batch with twice as many selected tokens have twice the loss?",
        average=lambda surprises, is_selected: surprises[is_selected].sum(),
    ),
    Mistake(
        "you divide by zero where no token is selected",
        "A short text may have no selected token. By what can its sum, which is 0, be divided, so that it stays 0?",
        average=lambda surprises, is_selected: surprises[is_selected].sum() / np.float64(is_selected.sum()),
    ),
    Mistake(
        "you clear the logits of the other tokens, whose surprise is then the logarithm of vocab_size and still counts",
        "What does a softmax make of a row of zeros? What should be left out, logits or surprises?",
        clear=lambda logits, is_selected: logits * is_selected[:, None],
        average=lambda surprises, is_selected: surprises.mean(),
    ),
    Mistake(
        "you shift the targets, as for a decoder",
        "Row n of a decoder speaks of token n + 1. Of which token does row n speak here, where nothing is hidden from "
        "the right?",
        align=[
            lambda logits, targets, is_selected: (logits[:-1], targets[1:], is_selected[1:]),
            lambda logits, targets, is_selected: (logits[:-1], targets[1:], is_selected[:-1]),
        ],
    ),
    *SURPRISE[1:],
]

_RNG = np.random.default_rng(15)


def _case(name, seq, vocab_size, selected, is_edge=False, change=lambda logits: logits):
    logits = (2 * _RNG.normal(size=(seq, vocab_size))).round(1)
    is_selected = np.isin(np.arange(seq), selected)
    targets = _RNG.integers(0, vocab_size, seq)
    return Case(name, {"logits": change(logits), "targets": targets, "is_selected": is_selected}, is_edge)


_LOGITS, _TARGETS = np.array([[2.0, 1, 4], [1, 3, 1], [0.5, 2, 5], [3, 0, 1]]), np.array([2, 0, 1, 0])


def _example(selected, shift=0):
    seq = len(selected)
    return {"logits": shift + _LOGITS[:seq], "targets": _TARGETS[:seq], "is_selected": np.array(selected)}


EXERCISE = Exercise(
    masked_token_loss,
    MISTAKES,
    cases=[
        _case("8 tokens, of which 3 are selected", 8, 6, [1, 2, 5]),
        _case("logits above 0", 5, 3, [0, 3], change=lambda logits: np.abs(logits) + 0.5),
        _case("logits near 1000", 4, 7, [1, 2], True, change=lambda logits: 1000 + (2 * logits).round() / 2),
        _case("a text of which no token is selected", 4, 5, [], is_edge=True),
        _case("a text of which all tokens are selected", 3, 4, [0, 1, 2], is_edge=True),
    ],
    examples=[
        _example([False, True, True]),
        _example([False, True, False, False]),
        _example([False, True, True], shift=1000),
        _example([False, False]),
    ],
    result="()",
    tried_on="{logits[0]} tokens, a vocabulary of {logits[1]}",
)
