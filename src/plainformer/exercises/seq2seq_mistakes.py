"""The mistakes in cross-attention, teacher forcing and label smoothing that the exercises know by name."""

import numpy as np

from plainformer.exercises.exercise import Mistake
from plainformer.exercises.loss_mistakes import SURPRISE


def softmax(scores, axis=1):
    """Weights along an axis; a row of nothing but minus infinity is not a number, as in JAX."""
    exponentials = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def hidden(scores, is_source):
    """Minus infinity for padding, the same keys in every row."""
    return np.where(is_source[None, :], scores, -np.inf)


def _all(scores, is_source):
    return scores


def _of_target(target, source):
    return target


def _of_source(target, source):
    return source


def _causal(scores, is_source):
    return np.where(np.tril(np.ones(scores.shape, bool)), scores, -np.inf)


CROSS_ATTENTION = [
    Mistake(
        "query_rows",
        "target and source are swapped: your queries come from the source, keys and values from the target",
        "Who asks, and who is read? How many rows should the result have, one for each token of which text?",
        {"query_rows": _of_source, "read_rows": _of_target, "hide": _all},
    ),
    Mistake(
        "read_rows",
        "the target reads itself: that is self-attention, and the source plays no part",
        "Where should the keys and values come from, if the target is to learn what the source says?",
        {"read_rows": _of_target, "hide": _all},
        {"read_rows": _of_target, "hide": _causal},
    ),
    Mistake(
        "query_rows",
        "the source reads itself: that is the encoder's self-attention, and the target plays no part",
        "Whose question is it, what should be written next? How many rows should the result have?",
        _of_source,
        {"query_rows": _of_source, "hide": _all},
    ),
    Mistake(
        "hide",
        "padding of the source is read: is_source plays no part",
        "What should a token learn from a place where there is nothing? Which score makes a weight of 0?",
        _all,
    ),
    Mistake(
        "hide",
        "you hide the tokens, and read the padding",
        "is_source is True for a token. Is there a ~ too many, or two arguments of where in the wrong order?",
        lambda scores, is_source: hidden(scores, ~is_source),
    ),
    Mistake(
        "hide",
        "you hide the future of the source, too, by a causal mask",
        "The whole source is known before the first token is written. Which of its tokens may that one not see?",
        lambda scores, is_source: _causal(hidden(scores, is_source), is_source),
        _causal,
    ),
    Mistake(
        "hide",
        "you set the scores of padding to 0, which is a score like any other",
        "What is exp(0), and what would have to stand there for the weight to be 0?",
        lambda scores, is_source: np.where(is_source[None, :], scores, 0),
    ),
    Mistake(
        "clear",
        "you clear the rows of padding, which keep their weights: tokens get less than they should",
        "With what score does a query meet a key of zeros, and which weight comes of it?",
        {"clear": lambda source, is_source: np.where(is_source[:, None], source, 0), "hide": _all},
    ),
    Mistake(
        "finish",
        "you set the weights of padding to 0 after the softmax, so that the others no longer sum to 1",
        "At which point does the softmax have to know what is padding, to share out all there is among the tokens?",
        {"hide": _all, "finish": lambda weights, is_source: weights * is_source[None, :]},
    ),
    Mistake(
        "share",
        "your softmax runs over the target, axis 0, not over the source",
        "Each token of the target shares itself out. Along which axis should the weights sum to one?",
        {"share": lambda scores: softmax(scores, axis=0), "hide": _all},
        {"share": lambda scores: softmax(np.maximum(scores, -1e9), axis=0)},  # or else all would be nan
    ),
    Mistake(
        "scale",
        "your scores are not scaled: they are the bare dot products",
        "The longer the keys, the larger their dot products. What do you divide by, to make up for that?",
        lambda d_k: 1.0,
    ),
    Mistake(
        "scale",
        "you divide by d_k, not by its root",
        "The sum of d_k independent products of variance 1 has variance d_k. What, then, is its typical size?",
        lambda d_k: 1 / d_k,
    ),
]


def frame(target, start, stop):
    """What is read, and what is to be written at each place of it."""
    return np.array([start, *target]), np.array([*target, stop])


def on_the_right(ids, length):
    """Filled up with zeros, and nothing done to what is too long."""
    return np.concatenate([ids, np.zeros(max(length - len(ids), 0), ids.dtype)])


def _whole(target, start, stop):
    return np.array([start, *target, stop])


def _on_the_left(ids, length):
    return np.concatenate([np.zeros(max(length - len(ids), 0), ids.dtype), ids])


TEACHER_FORCING = [
    Mistake(
        "cut",
        "the start token is missing: the first token of the target is read, and nobody has to write it",
        "What does the decoder read when it is to write the first token?",
        lambda target, start, stop: (np.array(target), np.array([*target[1:], stop])),
    ),
    Mistake(
        "cut",
        "the stop token is missing: the model never learns to end",
        "What should the decoder write once it has read the whole target?",
        lambda target, start, stop: (np.array([start, *target[:-1]]), np.array(target)),
    ),
    Mistake(
        "cut",
        "start and stop token are both missing",
        "What is read before the first token is written, and what is written after the last?",
        lambda target, start, stop: (np.array(target[:-1]), np.array(target[1:])),
    ),
    Mistake(
        "cut",
        "nothing is shifted: each place is to write what it has just read",
        "How would you write such a target if you saw its inputs, and what would you have learnt?",
        lambda target, start, stop: (np.array([start, *target]),) * 2,
        lambda target, start, stop: (np.array([*target, stop]),) * 2,
        lambda target, start, stop: (_whole(target, start, stop),) * 2,
        lambda target, start, stop: (np.array(target),) * 2,
    ),
    Mistake(
        "cut",
        "you shift the wrong way: each place is to write what came before it",
        "Which of the two begins with the start token, what is read or what is written?",
        lambda target, start, stop: frame(target, start, stop)[::-1],
    ),
    Mistake(
        "cut",
        "you shift by two: each place is to write the token after the next one",
        "After the start token, which token of the target comes next?",
        lambda target, start, stop: (_whole(target, start, stop)[:-2], _whole(target, start, stop)[2:]),
    ),
    Mistake(
        "cut",
        "your shift goes round: the start token is to be written after the stop token",
        "Does anything follow the stop token? How many places do inputs and targets have then?",
        lambda target, start, stop: (_whole(target, start, stop), np.roll(_whole(target, start, stop), -1)),
    ),
    Mistake(
        "cut",
        "start and stop token are swapped",
        "Which of them is read first, and which is written last?",
        lambda target, start, stop: frame(target, stop, start),
    ),
    Mistake(
        "fill",
        "you fill up on the left",
        "Position 0 belongs to the start token. Where does it stand in your rows?",
        _on_the_left,
    ),
    Mistake(
        "count",
        "is_target leaves the stop token out",
        "How many tokens does the decoder have to write for a target of three?",
        lambda targets: np.arange(len(targets)) < len(targets) - 1,
    ),
    Mistake(
        "count",
        "is_target is False where the target holds the id 0, which is a token like any other",
        "An id cannot tell whether it is padding. What do you know of the target that can?",
        lambda targets: targets != 0,
    ),
    Mistake(
        "finish",
        "is_target is True everywhere: padding counts",
        "What should be written after the stop token, and who asks for it?",
        lambda is_target: np.ones(len(is_target), bool),
    ),
]


def smoothed(targets, vocab_size, epsilon):
    """How much each token of the vocabulary is expected, row by row."""
    return (1 - epsilon) * np.eye(vocab_size)[targets] + epsilon / vocab_size


def _others_only(targets, vocab_size, epsilon):
    is_target = np.eye(vocab_size)[targets]
    return (1 - epsilon) * is_target + epsilon / (vocab_size - 1) * (1 - is_target)


def _without_its_part(targets, vocab_size, epsilon):
    is_target = np.eye(vocab_size)[targets]
    return (1 - epsilon) * is_target + epsilon / vocab_size * (1 - is_target)


LABEL_SMOOTHING = [
    Mistake(
        "expected",
        "the sign of the second part is wrong: you reward the model for making other tokens impossible",
        "Should the loss become larger or smaller if the model gives some token next to no probability?",
        lambda targets, vocab_size, epsilon: smoothed(targets, vocab_size, epsilon) - 2 * epsilon / vocab_size,
    ),
    Mistake(
        "expected",
        "you share epsilon among the other tokens only, vocab_size - 1 of them",
        "In the equation the mean runs over the whole vocabulary. Is the target a part of it?",
        _others_only,
    ),
    Mistake(
        "expected",
        "the target does not get its own part of epsilon, so that the shares do not sum to 1",
        "What do 1 - epsilon and vocab_size - 1 times epsilon / vocab_size sum to?",
        _without_its_part,
    ),
    Mistake(
        "expected",
        "you add up the surprises at all tokens of the vocabulary, where you should take their mean",
        "If epsilon is shared out evenly among vocab_size tokens, how much does each of them get?",
        lambda targets, vocab_size, epsilon: (1 - epsilon) * np.eye(vocab_size)[targets] + epsilon,
    ),
    Mistake(
        "expected",
        "epsilon and 1 - epsilon are swapped: the target gets the small share",
        "Without smoothing, epsilon is 0. What should be left of the loss then?",
        lambda targets, vocab_size, epsilon: smoothed(targets, vocab_size, 1 - epsilon),
    ),
    Mistake(
        "expected",
        "epsilon plays no part: that is the cross-entropy",
        "How sure of the target does the loss want the model to be, and how sure should it want it to be?",
        lambda targets, vocab_size, epsilon: np.eye(vocab_size)[targets],
    ),
    Mistake(
        "expected",
        "the second part is missing: you only shrink the loss to 1 - epsilon of it",
        "Which model has the least loss if all losses become smaller by the same factor?",
        lambda targets, vocab_size, epsilon: (1 - epsilon) * np.eye(vocab_size)[targets],
    ),
    Mistake(
        "expected",
        "the target keeps its whole share, and epsilon comes on top",
        "The shares of a row should sum to 1. From whom is epsilon taken?",
        lambda targets, vocab_size, epsilon: np.eye(vocab_size)[targets] + epsilon / vocab_size,
    ),
    Mistake(
        "mix",
        "you smooth the probabilities of the model, where the target should be smoothed",
        "What is the most that such a loss takes off for being sure, and what does it cost to be sure and right?",
        {
            "mix": lambda log_probs, epsilon: np.log((1 - epsilon) * np.exp(log_probs) + epsilon / log_probs.shape[1]),
            "expected": lambda targets, vocab_size, epsilon: np.eye(vocab_size)[targets],
        },
    ),
    *SURPRISE[:10],
]
