"""The inputs on which losses are tried: logits, and ids by the name that the exercise has for them."""

import numpy as np

from plainformer.exercises.model import Case


def loss_cases(ids: str, *sizes: tuple[int, int]) -> list[Case]:
    """Return four cases of these sizes, `(seq, vocab_size)` each."""
    rng = np.random.default_rng(16)

    def case(name, size, is_edge=False, change=lambda logits: logits):
        seq, vocab_size = size
        logits = (2 * rng.normal(size=size)).round(1)
        return Case(name, {"logits": change(logits), ids: rng.integers(0, vocab_size, seq)}, is_edge)

    first, positive, large, short = sizes
    return [
        case(f"{first[0]} tokens", first),
        case("logits above 0", positive, change=lambda logits: np.abs(logits) + 0.5),
        case("logits near 1000", large, is_edge=True, change=lambda logits: 1000 + (2 * logits).round() / 2),
        case("as few tokens as there can be", short, is_edge=True),
    ]


def loss_examples(ids: str) -> list[dict]:
    """Return an example of two tokens, one of three, and one with large logits."""
    logits = np.array([[2.0, 1, 4], [1, 3, 1], [0.5, 2, 5]])
    return [
        {"logits": logits[:2], ids: np.array([2, 0])},
        {"logits": logits, ids: np.array([2, 0, 1])},
        {"logits": 1000 + logits[:2], ids: np.array([2, 0])},
    ]
