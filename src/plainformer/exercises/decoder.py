"""The exercises of chapter 06: how wrong a model is, and what to do with its logits."""

import numpy as np

from plainformer.exercises import loss_mistakes as loss
from plainformer.exercises.beam_mistakes import BEAM, best_of_all, right_split
from plainformer.exercises.exercise import Case, Exercise
from plainformer.exercises.sampling_mistakes import TEMPERATURE, TOP_P, needed, share_at_zero


def _cross_entropy(
    logits,
    targets,
    *,
    log_probs=loss.log_softmax,
    pick=loss.of_each_row,
    average=loss.mean,
    finish=lambda surprise: surprise,
):
    return np.asarray(finish(-average(pick(log_probs(logits), targets), logits.shape)))


def _next_token_loss(logits, tokens, *, align=lambda logits, tokens: (logits[:-1], tokens[1:]), **steps):
    return _cross_entropy(*align(logits, tokens), **steps)


def _temperature(
    logits,
    temperature,
    *,
    scale=lambda logits, temperature: logits / temperature,
    exponentiate=lambda logits: np.exp(logits - logits.max()),
    share=lambda exponentials: exponentials / exponentials.sum(),
    finish=lambda probabilities, temperature: probabilities,
    at_zero=share_at_zero,
):
    if temperature == 0:
        return at_zero(logits)
    return finish(share(exponentiate(scale(logits, temperature))), temperature)


def _top_p(
    probabilities,
    p,
    *,
    order=lambda probabilities: np.argsort(-probabilities),
    keep=needed,
    lay=lambda probabilities, order, kept: np.where(kept[np.argsort(order)], probabilities, 0),
    share=lambda kept: kept / kept.sum(),
    finish=lambda result, order: result,
):
    ranks = order(probabilities)
    kept = keep(probabilities[ranks], p)
    return finish(share(lay(probabilities, ranks, kept)), ranks)


def _beam_step(
    log_probs,
    next_log_probs,
    width,
    *,
    total=lambda log_probs, next_log_probs: log_probs[:, None] + next_log_probs,
    choose=best_of_all,
    split=right_split,
    values=lambda totals, next_log_probs, places: totals.reshape(-1)[places],
):
    totals = total(log_probs, next_log_probs)
    places = choose(totals, width)
    beams, tokens = split(places, *totals.shape)
    return np.stack([beams, tokens, values(totals, next_log_probs, places)])


def _loss_cases(second: str, sizes: list[tuple[int, int]]) -> list[Case]:
    rng = np.random.default_rng(16)

    def case(name, size, is_edge=False, change=lambda logits: logits):
        seq, vocab_size = size
        logits = (2 * rng.normal(size=size)).round(1)
        return Case(name, {"logits": change(logits), second: rng.integers(0, vocab_size, seq)}, is_edge)

    first, positive, large, short = sizes
    return [
        case(f"{first[0]} tokens", first),
        case("logits above 0", positive, change=lambda logits: np.abs(logits) + 0.5),
        case("logits near 1000", large, is_edge=True, change=lambda logits: 1000 + (2 * logits).round() / 2),
        case("as few tokens as there can be", short, is_edge=True),
    ]


def _loss_examples(second: str) -> list[dict]:
    logits = np.array([[2.0, 1, 4], [1, 3, 1], [0.5, 2, 5]])
    return [
        {"logits": logits[:2], second: np.array([2, 0])},
        {"logits": logits, second: np.array([2, 0, 1])},
        {"logits": 1000 + logits[:2], second: np.array([2, 0])},
    ]


def _temperature_cases() -> list[Case]:
    def case(name, logits, temperature, is_edge=False):
        return Case(name, {"logits": np.array(logits), "temperature": temperature}, is_edge)

    return [
        case("a low temperature", [1.2, -0.3, 2.1, 0.4, -1.5, 0.9], 0.5),
        case("a high temperature", [0.3, 2.5, -1.1, 1.4, -2.0], 3.0),
        case("temperature 1", [-1.0, 0.5, 2.0, 1.0], 1.0, is_edge=True),
        case("a temperature near 0", [2.2, 3.0, -2.0, 1.5, -0.5], 0.001, is_edge=True),
        case("temperature 0, where two logits are largest", [0.5, 1.5, -1.0, 1.5, 1.0], 0.0, is_edge=True),
    ]


def _temperature_examples() -> list[dict]:
    return [
        {"logits": np.array([0.0, 1.0, 2.0]), "temperature": 2.0},
        {"logits": np.array([1.0, 2.0, 3.0]), "temperature": 0.001},
        {"logits": np.array([1.0, 3.0, 3.0]), "temperature": 0.0},
    ]


def _top_p_cases() -> list[Case]:
    def case(name, probabilities, p, is_edge=False):
        return Case(name, {"probabilities": np.array(probabilities), "p": p}, is_edge)

    return [
        case("three tokens to keep", [0.05, 0.3, 0.1, 0.25, 0.08, 0.22], 0.72),
        case("a token that is likelier than p", [0.12, 0.08, 0.45, 0.25, 0.1], 0.2),
        case("five tokens to keep", [0.02, 0.14, 0.31, 0.03, 0.2, 0.06, 0.17, 0.07], 0.85),
        case("tokens that have p together exactly", [0.0625, 0.5, 0.1875, 0.25], 0.75, is_edge=True),
        case("p = 1", [0.25, 0.5, 0.0625, 0.1875], 1.0, is_edge=True),
    ]


def _top_p_examples() -> list[dict]:
    return [
        {"probabilities": np.array([0.1, 0.15, 0.5, 0.25]), "p": 0.6},
        {"probabilities": np.array([0.15, 0.6, 0.25]), "p": 0.2},
        {"probabilities": np.array([0.125, 0.5, 0.375]), "p": 0.5},
    ]


def _beam_cases() -> list[Case]:
    rng = np.random.default_rng(2012)

    def case(name, num_beams, vocab_size, width, is_edge=False):
        logits = 2 * rng.normal(size=(num_beams, vocab_size))
        following = (logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))).round(2)
        log_probs = -np.sort(rng.uniform(0.5, 3, num_beams)).round(2)
        return Case(name, {"log_probs": log_probs, "next_log_probs": following, "width": width}, is_edge)

    return [
        case("three beams", 3, 5, 2),
        case("more beams than before", 2, 6, 4),
        case("as many beams as before", 4, 3, 4),
        case("the first step, from one beam", 1, 5, 3, is_edge=True),
        case("a single beam to keep", 3, 4, 1, is_edge=True),
    ]


def _beam_examples() -> list[dict]:
    following = np.array([[-2.0, -0.2, -3.5], [-0.7, -1.2, -1.6]])
    return [
        {"log_probs": np.array([-0.5, -1.0]), "next_log_probs": following, "width": 2},
        {"log_probs": np.array([-0.5, -2.5]), "next_log_probs": following, "width": 2},
        {"log_probs": np.array([-0.5, -0.6]), "next_log_probs": following, "width": 3},
    ]


EXERCISES = {
    "cross_entropy": Exercise(
        _cross_entropy,
        [*loss.SURPRISE, *loss.CROSS_ENTROPY],
        lambda: _loss_cases("targets", [(5, 7), (4, 3), (3, 4), (1, 3)]),
        lambda: _loss_examples("targets"),
        "()",
        "{logits[0]} tokens, a vocabulary of {logits[1]}",
    ),
    "next_token_loss": Exercise(
        _next_token_loss,
        [*loss.SHIFT, *loss.SURPRISE],
        lambda: _loss_cases("tokens", [(6, 7), (5, 3), (4, 4), (2, 3)]),
        lambda: _loss_examples("tokens"),
        "()",
        "{logits[0]} tokens, a vocabulary of {logits[1]}",
    ),
    "temperature": Exercise(
        _temperature,
        TEMPERATURE,
        _temperature_cases,
        _temperature_examples,
        "(vocab_size,)",
        "{logits[0]} tokens, temperature {temperature}",
    ),
    "top_p": Exercise(
        _top_p,
        TOP_P,
        _top_p_cases,
        _top_p_examples,
        "(vocab_size,)",
        "{probabilities[0]} tokens, p = {p}",
    ),
    "beam_step": Exercise(
        _beam_step,
        BEAM,
        _beam_cases,
        _beam_examples,
        "(width,)",
        "{next_log_probs[0]} beams, a vocabulary of {next_log_probs[1]}, width {width}",
        parts=("beams", "tokens", "new_log_probs"),
    ),
}
