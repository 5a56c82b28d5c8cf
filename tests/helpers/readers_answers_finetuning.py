"""Answers to the exercises of the chapter `finetuning` as readers would write them, right ones and wrong ones."""

import jax
import jax.numpy as jnp
import numpy as np
from exercise_checks import in_jax, in_numpy


def adapted(x, weight, adapter_in, adapter_out, alpha):
    return x @ weight + alpha / adapter_in.shape[1] * (x @ adapter_in) @ adapter_out


def with_factor(factor):
    """The layer of a reader who scales otherwise."""
    return lambda x, w, a, b, alpha: x @ w + factor(alpha, len(b), len(a)) * (x @ (a @ b))


ADAPTER = [
    (with_factor(lambda alpha, rank, d_in: 1), "the scale is missing"),
    (with_factor(lambda alpha, rank, d_in: alpha), "do not divide by the rank"),
    (with_factor(lambda alpha, rank, d_in: alpha * rank), "multiply by the rank"),
    (with_factor(lambda alpha, rank, d_in: alpha / np.sqrt(rank)), "root of the rank"),
    (with_factor(lambda alpha, rank, d_in: alpha / d_in), "width of the input"),
    (lambda x, w, a, b, alpha: alpha / len(b) * x @ a @ b, "the frozen matrix is missing"),
    (lambda x, w, a, b, alpha: x @ w, "the adapter is missing"),
    (lambda x, w, a, b, alpha: x @ w - alpha / len(b) * x @ a @ b, "you subtract"),
    (lambda x, w, a, b, alpha: alpha / len(b) * (x @ w + x @ a @ b), "multiplies the frozen part"),
]
MERGED = [
    (lambda w, a, b, scale: w + a @ b, "the scale is forgotten"),
    (lambda w, a, b, scale: w + scale / a.shape[1] * a @ b, "rank once more"),
    (lambda w, a, b, scale: w + (scale * a) @ (scale * b), "the scale is squared"),
    (lambda w, a, b, scale: w - scale * a @ b, "you subtract"),
    (lambda w, a, b, scale: scale * a @ b, "the frozen matrix is missing"),
    (lambda w, a, b, scale: w, "the adapter is missing"),
]


def marked(first, last, place=-1, size=-1):
    """The mask of a reader who goes through the text input by input."""

    def mask(tokens, length):
        begin = [n for n, token in enumerate(tokens) if token == 1][place]
        rows = range(len(tokens) + size)
        return np.array([first(begin) <= n <= last(length - 1, len(tokens)) for n in rows], int)

    return mask


right_mask = marked(lambda begin: begin, lambda end, size: end - 1)
MASKS = [
    (marked(lambda begin: begin + 1, lambda end, size: end), "shifted by one"),
    (marked(lambda begin: begin + 1, lambda end, size: end - 1), "first word of the answer"),
    (marked(lambda begin: begin - 1, lambda end, size: end - 1), "own token counts"),
    (marked(lambda begin: begin, lambda end, size: end - 2), "ends the answer does not count"),
    (marked(lambda begin: begin, lambda end, size: size), "padding counts"),
    (marked(lambda begin: 0, lambda end, size: end - 1), "the question counts"),
    (marked(lambda begin: begin, lambda end, size: end - 1, place=0), "first of the answer's tokens"),
    (lambda tokens, length: 1 - right_mask(tokens, length), "turned round"),
    (marked(lambda begin: begin, lambda end, size: end - 1, size=0), "which has no target"),
]


def softplus(x):
    return np.logaddexp(0, x)


def preferred(chosen, rejected, reference_chosen, reference_rejected, beta):
    return softplus(-beta * (chosen - reference_chosen - rejected + reference_rejected)).mean()


def in_jax_softly(chosen, rejected, reference_chosen, reference_rejected, beta):
    return -jax.nn.log_sigmoid(beta * ((chosen - rejected) - (reference_chosen - reference_rejected))).mean()


PREFERENCES = [
    (lambda c, r, rc, rr, beta: preferred(r, c, rr, rc, beta), "are swapped"),
    (lambda c, r, rc, rr, beta: preferred(c, r, -rc, -rr, beta), "sign is wrong"),
    (lambda c, r, rc, rr, beta: preferred(c, r, 0, 0, beta), "the reference is missing"),
    (lambda c, r, rc, rr, beta: preferred(c, 0, rc, 0, beta), "the rejected text is missing"),
    (lambda c, r, rc, rr, beta: preferred(c, r, rc, rr, 1), "beta is missing"),
    (lambda c, r, rc, rr, beta: preferred(c, r, rc, rr, 1 / beta), "divide by beta"),
    (
        lambda c, r, rc, rr, beta: -np.mean(np.exp(-softplus(-beta * (c - rc - r + rr)))),
        "the logarithm is missing",
    ),
    (lambda *given: -preferred(*given), "the sign is missing"),
    (lambda c, r, rc, rr, beta: -(beta * (c - rc - r + rr)).mean(), "the sigmoid is missing"),
    (lambda c, r, rc, rr, beta: softplus(-beta * (c - rc - r + rr)).sum(), "take the sum"),
    (lambda c, r, rc, rr, beta: np.log(1 + np.exp(-beta * (c - rc - r + rr))).mean(), "overflows"),
]
RIGHT = [
    ("adapter", in_numpy(adapted)),
    ("adapter", in_jax(lambda x, w, a, b, alpha: x @ (w + alpha / a.shape[1] * a @ b))),
    ("merged_weight", in_numpy(lambda w, a, b, scale: w + scale * a @ b)),
    ("merged_weight", in_jax(lambda w, a, b, scale: w + jnp.einsum("ir,ro->io", scale * a, b))),
    ("answer_mask", in_numpy(right_mask)),
    ("preference_loss", in_numpy(preferred)),
    ("preference_loss", in_jax(in_jax_softly)),
]
WRONG = [
    *(("adapter", in_numpy(function), words) for function, words in ADAPTER),
    *(("merged_weight", in_numpy(function), words) for function, words in MERGED),
    *(("answer_mask", in_numpy(function), words) for function, words in MASKS),
    *(("preference_loss", in_numpy(function), words) for function, words in PREFERENCES),
]
