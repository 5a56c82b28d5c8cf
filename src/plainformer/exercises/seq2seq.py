"""The exercises of chapter 08: cross-attention, what a decoder reads and writes, a loss with smoothed labels."""

import numpy as np

from plainformer.exercises import loss_mistakes as loss, seq2seq_mistakes as known
from plainformer.exercises.exercise import Case, Exercise


def _cross_attention(
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
    hide=known.hidden,
    share=known.softmax,
    finish=lambda weights, is_source: weights,
):
    source = clear(source, is_source)
    queries, read = query_rows(target, source) @ query_weight, read_rows(target, source)
    scores = scale(key_weight.shape[1]) * queries @ (read @ key_weight).T
    return finish(share(hide(scores, is_source)), is_source) @ (read @ value_weight)


def _teacher_forcing(
    target,
    start,
    stop,
    length,
    *,
    cut=known.frame,
    fill=known.on_the_right,
    count=lambda targets: np.ones(len(targets), bool),
    finish=lambda is_target: is_target,
):
    inputs, targets = cut(target.tolist(), start, stop)
    return np.stack([fill(inputs, length), fill(targets, length), finish(fill(count(targets), length))])


def _label_smoothing(
    logits,
    targets,
    epsilon,
    *,
    log_probs=loss.log_softmax,
    mix=lambda log_probs, epsilon: log_probs,
    expected=known.smoothed,
    average=loss.mean,
    finish=lambda surprise: surprise,
):
    weighted = expected(targets, logits.shape[1], epsilon) * mix(log_probs(logits), epsilon)
    return np.asarray(finish(-average(weighted.sum(axis=1), logits.shape)))


def _attention_cases() -> list[Case]:
    rng = np.random.default_rng(2017)

    def case(name, target_seq, source_seq, num_padding, d_model, d_k, d_v, is_edge=False):
        def draw(*shape):
            return np.round(rng.normal(size=shape), 2)

        inputs = {
            "target": draw(target_seq, d_model),
            "source": draw(source_seq, d_model),
            "is_source": np.arange(source_seq) < source_seq - num_padding,
            "query_weight": draw(d_model, d_k),
            "key_weight": draw(d_model, d_k),
            "value_weight": draw(d_model, d_v),
        }
        return Case(name, inputs, is_edge)

    return [
        case("a target of 4 tokens, a source of 7", 4, 7, 2, 6, 3, 5),
        case("a target longer than its source", 6, 4, 1, 5, 7, 3),
        case("a source with much padding", 3, 8, 4, 4, 2, 6),
        case("a source of a single token", 4, 3, 2, 5, 2, 6, is_edge=True),
        case("a source without padding", 2, 5, 0, 4, 3, 6, is_edge=True),
    ]


def _attention_examples() -> list[dict]:
    return [
        {
            "target": np.array([[1.0, 0], [0, 2]]),
            "source": np.array([[1.0, 1], [0, 1], [3, 0]]),
            "is_source": np.array([True, True, False]),
            "query_weight": np.eye(2),
            "key_weight": np.eye(2),
            "value_weight": np.array([[4.0], [8.0]]),
        }
    ]


def _forcing_cases() -> list[Case]:
    def case(name, target, start, stop, length, is_edge=False):
        inputs = {"target": np.array(target), "start": start, "stop": stop, "length": length}
        return Case(name, inputs, is_edge)

    return [
        case("5 tokens in a row of 9", [7, 0, 3, 7, 5], 1, 2, 9),
        case("4 tokens in a row of 8", [4, 6, 0, 9], 8, 3, 8),
        case("3 tokens in a row of 7", [0, 5, 4], 2, 6, 7),
        case("a row that is just long enough", [5, 3, 8, 0], 1, 2, 5, is_edge=True),
        case("a single token", [9], 3, 1, 6, is_edge=True),
    ]


def _forcing_examples() -> list[dict]:
    return [{"target": np.array([5, 0, 7]), "start": 1, "stop": 2, "length": 6}]


def _smoothing_cases() -> list[Case]:
    rng = np.random.default_rng(2016)

    def case(name, seq, vocab_size, epsilon, is_edge=False, change=lambda logits: logits):
        logits = (2 * rng.normal(size=(seq, vocab_size))).round(1)
        inputs = {"logits": change(logits), "targets": rng.integers(0, vocab_size, seq), "epsilon": epsilon}
        return Case(name, inputs, is_edge)

    return [
        case("5 tokens", 5, 7, 0.1),
        case("logits above 0", 4, 3, 0.3, change=lambda logits: np.abs(logits) + 0.5),
        case("logits near 1000", 3, 4, 0.2, is_edge=True, change=lambda logits: 1000 + (2 * logits).round() / 2),
        case("no smoothing", 6, 5, 0.0, is_edge=True),
    ]


def _smoothing_examples() -> list[dict]:
    logits, targets = np.array([[2.0, 1, 4], [1, 3, 1]]), np.array([2, 0])
    return [
        {"logits": logits, "targets": targets, "epsilon": 0.3},
        {"logits": 1000 + logits, "targets": targets, "epsilon": 0.3},
    ]


EXERCISES = {
    "cross_attention": Exercise(
        _cross_attention,
        known.CROSS_ATTENTION,
        _attention_cases,
        _attention_examples,
        "(target_seq, d_v)",
        "a target {target}, a source {source}",
    ),
    "teacher_forcing": Exercise(
        _teacher_forcing,
        known.TEACHER_FORCING,
        _forcing_cases,
        _forcing_examples,
        "(length,)",
        "a target of {target[0]} tokens, a row of {length}",
        parts=("inputs", "targets", "is_target"),
    ),
    "label_smoothing": Exercise(
        _label_smoothing,
        known.LABEL_SMOOTHING,
        _smoothing_cases,
        _smoothing_examples,
        "()",
        "{logits[0]} tokens, a vocabulary of {logits[1]}, epsilon {epsilon}",
    ),
}
