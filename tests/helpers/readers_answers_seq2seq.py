"""Wrong answers to the exercises of chapter 08, as readers would write them."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from exercise_checks import in_numpy
from readers_answers_decoder import surprise


def attention(read="source", ask="target", score=None, scale=lambda d_k: math.sqrt(d_k), weigh=jax.nn.softmax):
    """Cross-attention of a reader who works with matrices; `score(scores, is_source)` hides what is to be hidden."""

    def cross_attention(target, source, is_source, query_weight, key_weight, value_weight):
        texts = {"target": target, "source": source, "cleared": jnp.where(is_source[:, None], source, 0)}
        scores = (texts[ask] @ query_weight) @ (texts[read] @ key_weight).T / scale(query_weight.shape[1])
        if score:
            scores = score(scores, is_source)
        return weigh(scores) @ (texts[read] @ value_weight)

    return cross_attention


def masked(scores, is_source):
    return jnp.where(is_source[None, :], scores, -jnp.inf)


def causal(scores, is_source=None):
    return jnp.where(jnp.tril(jnp.ones(scores.shape, bool)), scores, -jnp.inf)


def row_by_row(target, source, is_source, query_weight, key_weight, value_weight):
    """Rightly, with loops over the tokens that there are."""
    keys = [row @ key_weight for row, there in zip(source, is_source, strict=True) if there]
    values = [row @ value_weight for row, there in zip(source, is_source, strict=True) if there]
    result = []
    for row in target:
        scores = [float(row @ query_weight @ key) / math.sqrt(len(key)) for key in keys]
        powers = [math.exp(score - max(scores)) for score in scores]
        result.append(sum(power * value for power, value in zip(powers, values, strict=True)) / sum(powers))
    return np.array(result)


def zeroed_afterwards(target, source, is_source, query_weight, key_weight, value_weight):
    weights = jax.nn.softmax(target @ query_weight @ (source @ key_weight).T / jnp.sqrt(query_weight.shape[1]))
    return jnp.where(is_source[None, :], weights, 0) @ source @ value_weight


CROSS_ATTENTION = [
    (attention(read="target", ask="source"), "target and source are swapped"),
    (attention(read="target"), "the target reads itself"),
    (attention(read="target", score=causal), "the target reads itself"),
    (attention(ask="source", score=masked), "the source reads itself"),
    (attention(ask="source"), "the source reads itself"),
    (attention(), "padding of the source is read"),
    (attention(score=lambda scores, there: masked(scores, ~there)), "read the padding"),
    (attention(score=lambda scores, there: causal(masked(scores, there))), "the future of the source"),
    (attention(score=causal), "the future of the source"),
    (attention(score=lambda scores, there: scores * there[None, :]), "scores of padding to 0"),
    (attention(read="cleared"), "clear the rows of padding"),
    (zeroed_afterwards, "weights of padding to 0 after"),
    (attention(weigh=lambda scores: jax.nn.softmax(scores, axis=0)), "over the target, axis 0"),
    (
        attention(
            score=lambda scores, there: jnp.where(there[None, :], scores, -1e9),
            weigh=lambda scores: jax.nn.softmax(scores, axis=0),
        ),
        "over the target, axis 0",
    ),
    (attention(score=masked, scale=lambda d_k: 1), "not scaled"),
    (attention(score=masked, scale=lambda d_k: d_k), "divide by d_k, not"),
]


def forced(pair, note=None, left=False):
    """Three rows from lists: `pair(text, start, stop)` gives what is read and written."""

    @in_numpy
    def teacher_forcing(target, start, stop, length):
        read, written = pair([int(token) for token in target], start, stop)
        said = [True] * len(written) if note is None else note(written, length)
        rows = []
        for row in (read, written, said):
            room = [0] * (length - len(row))
            rows.append(room + list(row) if left else list(row) + room)
        return tuple(np.array(row) for row in rows)

    return teacher_forcing


def right_pair(text, start, stop):
    return [start, *text], [*text, stop]


def whole(text, start, stop):
    return [start, *text, stop]


TEACHER_FORCING = [
    (forced(lambda text, start, stop: (text, [*text[1:], stop])), "start token is missing"),
    (forced(lambda text, start, stop: ([start, *text[:-1]], text)), "stop token is missing"),
    (forced(lambda text, start, stop: (text[:-1], text[1:])), "both missing"),
    (forced(lambda text, start, stop: ([start, *text], [start, *text])), "nothing is shifted"),
    (forced(lambda text, start, stop: ([*text, stop], [*text, stop])), "nothing is shifted"),
    (forced(lambda text, start, stop: (whole(text, start, stop), whole(text, start, stop))), "nothing is shifted"),
    (forced(lambda text, start, stop: (text, text)), "nothing is shifted"),
    (forced(lambda text, start, stop: ([*text, stop], [start, *text])), "shift the wrong way"),
    (forced(lambda text, start, stop: ([start, *text[:-1]], [*text[1:], stop])), "shift by two"),
    (forced(lambda text, start, stop: ([start, *text, stop], [*text, stop, start])), "goes round"),
    (forced(lambda text, start, stop: ([stop, *text], [*text, start])), "stop token are swapped"),
    (forced(right_pair, left=True), "fill up on the left"),
    (forced(right_pair, note=lambda written, length: [True] * (len(written) - 1)), "leaves the stop token out"),
    (forced(right_pair, note=lambda written, length: [token != 0 for token in written]), "holds the id 0"),
    (forced(right_pair, note=lambda written, length: [True] * length), "True everywhere"),
]


def spread(logits):
    """Of each row, the mean surprise at all tokens, with plain numbers."""
    return np.mean([surprise(logits, [token] * len(logits)) for token in range(np.shape(logits)[1])], axis=0)


def right_smoothing(logits, targets, epsilon):
    return ((1 - epsilon) * surprise(logits, targets) + epsilon * spread(logits)).mean()


def by_shares(shares):
    """The mean cross-entropy of `shares(is_target, vocab_size, epsilon)` and the model."""

    def loss(logits, targets, epsilon):
        is_target = jax.nn.one_hot(targets, logits.shape[1])
        return -(shares(is_target, logits.shape[1], epsilon) * jax.nn.log_softmax(logits)).sum(axis=1).mean()

    return loss


def with_log_probs(log_probs):
    """Rightly, but for what stands for the logarithms of the probabilities."""

    def loss(logits, targets, epsilon):
        table = log_probs(logits)
        at_target = table[jnp.arange(len(targets)), targets]
        return -((1 - epsilon) * at_target + epsilon * table.mean(axis=1)).mean()

    return loss


def of_smoothed_probabilities(logits, targets, epsilon):
    probabilities = (1 - epsilon) * jax.nn.softmax(logits) + epsilon / logits.shape[1]
    return -jnp.log(probabilities[jnp.arange(len(targets)), targets]).mean()


LABEL_SMOOTHING = [
    (
        lambda logits, targets, e: ((1 - e) * surprise(logits, targets) - e * spread(logits)).mean(),
        "sign of the second part",
    ),
    (by_shares(lambda hot, size, e: jnp.where(hot == 1, 1 - e, e / (size - 1))), "among the other tokens only"),
    (by_shares(lambda hot, size, e: jnp.where(hot == 1, 1 - e, e / size)), "its own part of epsilon"),
    (by_shares(lambda hot, size, e: (1 - e) * hot + e), "add up the surprises at all"),
    (by_shares(lambda hot, size, e: e * hot + (1 - e) / size), "are swapped"),
    (lambda logits, targets, e: surprise(logits, targets).mean(), "epsilon plays no part"),
    (lambda logits, targets, e: (1 - e) * surprise(logits, targets).mean(), "second part is missing"),
    (by_shares(lambda hot, size, e: hot + e / size), "comes on top"),
    (of_smoothed_probabilities, "probabilities of the model"),
    (lambda logits, targets, e: len(targets) * right_smoothing(logits, targets, e), "add the surprises up"),
    (lambda logits, targets, e: right_smoothing(logits, targets, e) / math.log(2), "in bits"),
    (lambda logits, targets, e: right_smoothing(logits, targets, e) / math.log(10), "base 10"),
    (lambda logits, targets, e: -right_smoothing(logits, targets, e), "the sign is missing"),
    (lambda logits, targets, e: math.exp(right_smoothing(logits, targets, e)), "perplexity"),
    (with_log_probs(lambda logits: logits), "softmax is missing"),
    (with_log_probs(jnp.log), "softmax is missing"),
    (with_log_probs(jax.nn.softmax), "logarithm is missing"),
    (with_log_probs(lambda logits: jax.nn.log_softmax(logits, axis=0)), "over the tokens of the text"),
    (with_log_probs(lambda logits: jnp.log(jax.nn.softmax(logits, axis=None))), "over the whole table"),
    (
        with_log_probs(lambda logits: jnp.log(jnp.exp(logits) / jnp.exp(logits).sum(axis=1, keepdims=True))),
        "overflow",
    ),
    (with_log_probs(lambda logits: logits - jnp.log(jnp.exp(logits).sum(axis=1, keepdims=True))), "overflow"),
]

WRONG = [
    *(("cross_attention", function, names) for function, names in CROSS_ATTENTION),
    *(("teacher_forcing", function, names) for function, names in TEACHER_FORCING),
    *(("label_smoothing", function, names) for function, names in LABEL_SMOOTHING),
]
