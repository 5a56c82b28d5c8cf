"""Exercise `cross_attention`: a target that reads a source."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, draw


def _softmax(scores, axis=1):
    """Weights along an axis; a row of nothing but minus infinity is not a number, as in JAX."""
    exponentials = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def _hidden(scores, is_source):
    """Minus infinity for padding, the same keys in every row."""
    return np.where(is_source[None, :], scores, -np.inf)


def cross_attention(
    target,
    source,
    is_source,
    query_weight,
    key_weight,
    value_weight,
    *,
    query_rows=lambda target, source: target,
    clear=lambda source, is_source: source,
    read_rows=lambda target, source: source,
    scale=lambda d_k: d_k**-0.5,
    hide=_hidden,
    share=_softmax,
    finish=lambda weights, is_source: weights,
):
    """Return for each token of the target what it reads from those of the source."""
    source = clear(source, is_source)
    queries, read = query_rows(target, source) @ query_weight, read_rows(target, source)
    scores = scale(key_weight.shape[1]) * queries @ (read @ key_weight).T
    return finish(share(hide(scores, is_source)), is_source) @ (read @ value_weight)


def _all(scores, is_source):
    return scores


def _of_target(target, source):
    return target


def _of_source(target, source):
    return source


def _causal(scores, is_source):
    return np.where(np.tril(np.ones(scores.shape, bool)), scores, -np.inf)


MISTAKES = [
    Mistake(
        "target and source are swapped: your queries come from the source, keys and values from the target",
        "Who asks, and who is read? How many rows should the result have, one for each token of which text?",
        query_rows=_of_source,
        read_rows=_of_target,
        hide=_all,
    ),
    Mistake(
        "the target reads itself: that is self-attention, and the source plays no part",
        "Where should the keys and values come from, if the target is to learn what the source says?",
        read_rows=_of_target,
        hide=[_all, _causal],
    ),
    Mistake(
        "the source reads itself: that is the encoder's self-attention, and the target plays no part",
        "Whose question is it, what should be written next? How many rows should the result have?",
        {"query_rows": _of_source},
        {"query_rows": _of_source, "hide": _all},
    ),
    Mistake(
        "padding of the source is read: is_source plays no part",
        "What should a token learn from a place where there is nothing? Which score makes a weight of 0?",
        hide=_all,
    ),
    Mistake(
        "you hide the tokens, and read the padding",
        "is_source is True for a token. Is there a ~ too many, or two arguments of where in the wrong order?",
        hide=lambda scores, is_source: _hidden(scores, ~is_source),
    ),
    Mistake(
        "you hide the future of the source, too, by a causal mask",
        "The whole source is known before the first token is written. Which of its tokens may that one not see?",
        hide=[lambda scores, is_source: _causal(_hidden(scores, is_source), is_source), _causal],
    ),
    Mistake(
        "you set the scores of padding to 0, which is a score like any other",
        "What is exp(0), and what would have to stand there for the weight to be 0?",
        hide=lambda scores, is_source: np.where(is_source[None, :], scores, 0),
    ),
    Mistake(
        "you clear the rows of padding, which keep their weights: tokens get less than they should",
        "With what score does a query meet a key of zeros, and which weight comes of it?",
        clear=lambda source, is_source: np.where(is_source[:, None], source, 0),
        hide=_all,
    ),
    Mistake(
        "you set the weights of padding to 0 after the softmax, so that the others no longer sum to 1",
        "At which point does the softmax have to know what is padding, to share out all there is among the tokens?",
        hide=_all,
        finish=lambda weights, is_source: weights * is_source[None, :],
    ),
    Mistake(
        "your softmax runs over the target, axis 0, not over the source",
        "Each token of the target shares itself out. Along which axis should the weights sum to one?",
        {"share": lambda scores: _softmax(scores, axis=0), "hide": _all},
        {"share": lambda scores: _softmax(np.maximum(scores, -1e9), axis=0)},  # or else all would be nan
    ),
    Mistake(
        "your scores are not scaled: they are the bare dot products",
        "The longer the keys, the larger their dot products. What do you divide by, to make up for that?",
        scale=lambda d_k: 1.0,
    ),
    Mistake(
        "you divide by d_k, not by its root",
        "The sum of d_k independent products of variance 1 has variance d_k. What, then, is its typical size?",
        scale=lambda d_k: 1 / d_k,
    ),
]

_RNG = np.random.default_rng(2017)


def _case(name, target_seq, source_seq, num_padding, d_model, d_k, d_v, is_edge=False):
    texts = draw(_RNG, 2, target=(target_seq, d_model), source=(source_seq, d_model))
    weights = draw(_RNG, 2, query_weight=(d_model, d_k), key_weight=(d_model, d_k), value_weight=(d_model, d_v))
    is_source = np.arange(source_seq) < source_seq - num_padding
    return Case(name, {**texts, "is_source": is_source, **weights}, is_edge)


EXERCISE = Exercise(
    cross_attention,
    MISTAKES,
    cases=[
        _case("a target of 4 tokens, a source of 7", 4, 7, 2, 6, 3, 5),
        _case("a target longer than its source", 6, 4, 1, 5, 7, 3),
        _case("a source with much padding", 3, 8, 4, 4, 2, 6),
        _case("a source of a single token", 4, 3, 2, 5, 2, 6, is_edge=True),
        _case("a source without padding", 2, 5, 0, 4, 3, 6, is_edge=True),
    ],
    examples=[
        {
            "target": np.array([[1.0, 0], [0, 2]]),
            "source": np.array([[1.0, 1], [0, 1], [3, 0]]),
            "is_source": np.array([True, True, False]),
            "query_weight": np.eye(2),
            "key_weight": np.eye(2),
            "value_weight": np.array([[4.0], [8.0]]),
        }
    ],
    result="(target_seq, d_v)",
    tried_on="a target {target}, a source {source}",
)
