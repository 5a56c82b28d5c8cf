"""Exercise `document_mask`: who may see whom in a window of several documents."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake


def document_mask(
    documents,
    *,
    same=np.equal,
    order=np.less_equal,
    joined=np.logical_and,
    turn=lambda mask: mask,
):
    """Return, for each token of a window and each other, 1 if it may attend to it, and 0 if not."""
    place = np.arange(len(documents))
    own = same(documents[None, :], documents[:, None])
    return turn(joined(own, order(place[None, :], place[:, None]))).astype(int)


def _all(one, other):
    return np.ones(np.broadcast_shapes(one.shape, other.shape), bool)


MISTAKES = [
    Mistake(
        "a token sees what follows it in its own document",
        "Which word is the first of a document to be guessed, and does it stand in the document?",
        order=_all,
    ),
    Mistake(
        "a token sees the documents before its own",
        "Your mask is the causal one. What does it know of documents?",
        same=_all,
    ),
    Mistake(
        "a token does not see itself",
        "The first token of a document has nothing before it. To what may it attend?",
        order=np.less,
    ),
    Mistake(
        "the mask is transposed: a token sees itself and what follows it",
        "Rows are the tokens that look. Which columns of a row should be 1?",
        turn=lambda mask: mask.T,
    ),
    Mistake(
        "a token sees documents with a smaller number, too",
        "Your numbers are compared by their size. When are two tokens of one document?",
        same=np.less_equal,
    ),
    Mistake(
        "the conditions are joined by or: one of them is enough",
        "Must a token be of the same document and not after, or is one of the two enough?",
        joined=np.logical_or,
    ),
    Mistake(
        "the mask is turned round: 1 is what is hidden",
        "Does 1 stand for a token that is seen, or for one that is hidden?",
        turn=lambda mask: ~mask,
    ),
]


def _case(name, numbers, is_edge=False):
    return Case(name, {"documents": np.array(numbers)}, is_edge)


EXERCISE = Exercise(
    document_mask,
    MISTAKES,
    cases=[
        _case("three documents in a window", [0, 0, 0, 1, 1, 1, 1, 2, 2]),
        _case("numbers that fall", [3, 3, 1, 1, 1, 2]),
        _case("two documents and padding", [0, 0, 0, 0, 1, 1, -1, -1, -1, -1]),
        _case("a single document", [4, 4, 4, 4, 4], is_edge=True),
    ],
    examples=[
        {"documents": np.array([0, 0, 1])},
        {"documents": np.array([5, 2, 2, 2])},
    ],
    result="(seq, seq)",
    tried_on="{documents[0]} tokens",
)
