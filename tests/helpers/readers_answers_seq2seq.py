"""Answers to the exercises of the chapter `seq2seq` as readers would write them, right ones and wrong ones."""

import math

import numpy as np
from exercise_checks import in_jax, in_numpy, log_softmax, softmax
from readers_answers_decoder import picked, surprise
from toy_translators import new_config

import plainformer as pf


def attention(read="source", ask="target", score=None, scale=lambda d_k: math.sqrt(d_k), weigh=softmax):
    """Cross-attention of a reader who works with matrices; `score(scores, is_source)` hides what is to be hidden."""

    def cross_attention(target, source, is_source, query_weight, key_weight, value_weight):
        texts = {"target": target, "source": source, "cleared": np.where(is_source[:, None], source, 0)}
        scores = (texts[ask] @ query_weight) @ (texts[read] @ key_weight).T / scale(query_weight.shape[1])
        if score:
            scores = score(scores, is_source)
        return weigh(scores) @ (texts[read] @ value_weight)

    return cross_attention


def masked(scores, is_source):
    return np.where(is_source, scores, -np.inf)


def causal(scores, is_source=None):
    return np.where(np.tril(np.ones(scores.shape, bool)), scores, -np.inf)


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
    weights = softmax(target @ query_weight @ (source @ key_weight).T / math.sqrt(query_weight.shape[1]))
    return np.where(is_source, weights, 0) @ source @ value_weight


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
    (attention(score=lambda scores, there: scores * there), "scores of padding to 0"),
    (attention(read="cleared"), "clear the rows of padding"),
    (zeroed_afterwards, "weights of padding to 0 after"),
    (attention(weigh=lambda scores: softmax(scores, axis=0)), "over the target, axis 0"),
    (
        attention(
            score=lambda scores, there: np.where(there, scores, -1e9),
            weigh=lambda scores: softmax(scores, axis=0),
        ),
        "over the target, axis 0",
    ),
    (attention(score=masked, scale=lambda d_k: 1), "not scaled"),
    (attention(score=masked, scale=lambda d_k: d_k), "divide by d_k, not"),
]


def forced(pair, note=None, left=False):
    """Three rows from lists: `pair(text, start, stop)` gives what is read and written."""

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
        is_target = np.eye(logits.shape[1])[targets]
        return -(shares(is_target, logits.shape[1], epsilon) * log_softmax(logits)).sum(axis=1).mean()

    return loss


def with_log_probs(log_probs):
    """Rightly, but for what stands for the logarithms of the probabilities."""

    def loss(logits, targets, epsilon):
        table = log_probs(logits)
        return -((1 - epsilon) * picked(table, targets) + epsilon * table.mean(axis=1)).mean()

    return loss


def of_smoothed_probabilities(logits, targets, epsilon):
    probabilities = (1 - epsilon) * softmax(logits) + epsilon / logits.shape[1]
    return -np.log(picked(probabilities, targets)).mean()


LABEL_SMOOTHING = [
    (
        lambda logits, targets, e: ((1 - e) * surprise(logits, targets) - e * spread(logits)).mean(),
        "sign of the second part",
    ),
    (by_shares(lambda hot, size, e: np.where(hot == 1, 1 - e, e / (size - 1))), "among the other tokens only"),
    (by_shares(lambda hot, size, e: np.where(hot == 1, 1 - e, e / size)), "its own part of epsilon"),
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
    (with_log_probs(np.log), "softmax is missing"),
    (with_log_probs(softmax), "logarithm is missing"),
    (with_log_probs(lambda logits: log_softmax(logits, axis=0)), "over the tokens of the text"),
    (with_log_probs(lambda logits: np.log(softmax(logits, axis=None))), "over the whole table"),
    (
        with_log_probs(lambda logits: np.log(np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True))),
        "overflow",
    ),
    (with_log_probs(lambda logits: logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))), "overflow"),
]


def package_attention(target, source, is_source, query_weight, key_weight, value_weight):
    keys, values = source @ key_weight, source @ value_weight
    return pf.attend(target @ query_weight, keys, values, pf.padding_mask(is_source, len(target)))


def package_forcing(target, start, stop, length):
    config = new_config(vocab_size=99, context_len=20, start_token=start, stop_token=stop)
    *_, inputs, targets, is_target = pf.translation_batch([([1], target.tolist())], config, target_len=length)
    return inputs[0], targets[0], is_target[0]


def package_smoothing(logits, targets, epsilon):
    return pf.cross_entropy(logits, targets, label_smoothing=epsilon)


RIGHT = [
    ("cross_attention", in_numpy(row_by_row)),
    ("cross_attention", in_jax(package_attention)),
    ("teacher_forcing", in_numpy(forced(right_pair))),
    ("teacher_forcing", package_forcing),
    ("label_smoothing", in_numpy(right_smoothing)),
    ("label_smoothing", in_jax(package_smoothing, static_argnums=2)),
]
WRONG = [
    *(("cross_attention", in_numpy(function), words) for function, words in CROSS_ATTENTION),
    *(("teacher_forcing", in_numpy(function), words) for function, words in TEACHER_FORCING),
    *(("label_smoothing", in_numpy(function), words) for function, words in LABEL_SMOOTHING),
]
