"""Answers to the exercises on experts as readers would write them, right ones and wrong ones."""

import jax
import jax.numpy as jnp
import numpy as np
from exercise_checks import in_numpy, softmax


def routed(row_of):
    """A reader who goes through the tokens one after the other."""

    def router(scores, num_chosen):
        return np.array([row_of(row, num_chosen) for row in scores])

    return router


def best(row, num_chosen):
    """The numbers of the experts with the largest scores."""
    return sorted(range(len(row)), key=lambda e: row[e])[-num_chosen:]


def filled(row, chosen, gates):
    out = np.zeros(len(row))
    out[list(chosen)] = gates
    return out


def right(row, num_chosen):
    chosen = best(row, num_chosen)
    return filled(row, chosen, softmax(row[chosen]))


def of_the_whole_text(scores, num_chosen):
    least = np.sort(scores.ravel())[-num_chosen * len(scores)]
    hidden = np.where(scores >= least, scores, -1e9)
    powers = np.exp(hidden - scores.max(axis=1, keepdims=True))
    with np.errstate(invalid="ignore"):
        return powers / powers.sum(axis=1, keepdims=True)


def in_jax(scores, num_chosen):
    top, chosen = jax.lax.top_k(jnp.asarray(scores), num_chosen)
    rows = jnp.arange(len(scores))[:, None]
    return jnp.zeros(scores.shape).at[rows, chosen].set(jax.nn.softmax(top))


ROUTERS = [
    (routed(lambda row, k: filled(row, best(row, k), softmax(row)[best(row, k)])), "not divided by their sum"),
    (routed(lambda row, k: softmax(row)), "every expert has a gate"),
    (of_the_whole_text, "of the whole text"),
    (routed(lambda row, k: filled(row, best(-row, k), softmax(row[best(-row, k)]))), "the smallest scores"),
    (routed(lambda row, k: filled(row, best(row, 1), [1.0])), "only the best expert"),
    (routed(lambda row, k: filled(row, best(row, k), [1 / k] * k)), "equal gates"),
    (routed(lambda row, k: filled(row, best(row, k), softmax(softmax(row)[best(row, k)]))), "the softmax twice"),
]


def balance_in_loops(one, other, times=True):
    """A reader who adds up expert by expert two numbers of each, made of all weights and all choices."""

    def balance(weights, chosen):
        experts = range(weights.shape[1])
        total = sum(
            one(weights[:, e], chosen[:, e], chosen) * other(weights[:, e], chosen[:, e], chosen) for e in experts
        )
        return total * (len(experts) if times else 1)

    return balance


def share(weights, mine, chosen):
    return np.count_nonzero(mine) / np.count_nonzero(chosen)


def mean_weight(weights, mine, chosen):
    return sum(weights) / len(weights)


BALANCES = [
    (balance_in_loops(share, share), "the counts alone"),
    (balance_in_loops(mean_weight, mean_weight), "the weights alone"),
    (balance_in_loops(share, mean_weight, times=False), "missing as a factor"),
    (balance_in_loops(lambda w, mine, chosen: np.mean(mine), mean_weight), "divided by the number of tokens"),
    (lambda w, chosen: w.shape[1] * w[chosen].mean(), "token by token"),
    (balance_in_loops(share, lambda w, mine, chosen: np.where(mine, w, 0).mean()), "of the chosen experts alone"),
]


def balance_in_jax(weights, chosen):
    share = chosen.sum(axis=0) / chosen.sum()
    return weights.shape[1] * share @ weights.mean(axis=0)


RIGHT = [
    ("router", in_numpy(routed(right))),
    ("router", in_jax),
    ("balance", in_numpy(balance_in_loops(share, mean_weight))),
    ("balance", balance_in_jax),
]
WRONG = [
    *(("router", in_numpy(function), words) for function, words in ROUTERS),
    *(("balance", in_numpy(function), words) for function, words in BALANCES),
]
