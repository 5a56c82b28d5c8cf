"""Answers to the exercises of the primer, `decoder` and `generation` as readers write them, right and wrong ones."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from exercise_checks import in_jax, in_numpy, log_softmax, softmax

import plainformer as pf


def surprise(logits, targets):
    """Of each target, row by row, by a reader who stays with plain numbers."""
    rows = []
    for row, target in zip(logits.tolist(), list(targets), strict=True):
        largest = max(row)
        rows.append(largest - row[target] + math.log(sum(math.exp(logit - largest) for logit in row)))
    return np.array(rows)


def picked(table, targets):
    return table[np.arange(len(targets)), targets]


def by_hand(logits, targets):
    """Without taking off the largest logit."""
    exponentials = np.exp(logits)
    return -np.log(picked(exponentials / exponentials.sum(axis=1, keepdims=True), targets)).mean()


def one_hot_mean(logits, targets):
    return -(np.eye(logits.shape[1])[targets] * log_softmax(logits)).mean()


def shifted(loss, logits, tokens):
    return loss(logits[:-1], tokens[1:])


# What readers get wrong about the surprise, for both exercises: the function takes logits and targets.
LOSS = [
    (lambda logits, targets: surprise(logits, targets).sum(), "add the surprises up"),
    (lambda logits, targets: -np.log2(picked(softmax(logits), targets)).mean(), "in bits"),
    (lambda logits, targets: -np.log10(picked(softmax(logits), targets)).mean(), "base 10"),
    (lambda logits, targets: picked(log_softmax(logits), targets).mean(), "sign is missing"),
    (lambda logits, targets: math.exp(surprise(logits, targets).mean()), "perplexity"),
    (lambda logits, targets: -np.log(picked(logits, targets)).mean(), "softmax is missing"),
    (lambda logits, targets: -picked(logits, targets).mean(), "softmax is missing"),
    (lambda logits, targets: -picked(softmax(logits), targets).mean(), "logarithm is missing"),
    (lambda logits, targets: -picked(log_softmax(logits, axis=0), targets).mean(), "over the tokens of the text"),
    (lambda logits, targets: -np.log(picked(softmax(logits, None), targets)).mean(), "over the whole table"),
    (by_hand, "overflow"),
    (lambda logits, targets: (np.log(np.exp(logits).sum(1)) - picked(logits, targets)).mean(), "overflow"),
    (lambda logits, targets: -log_softmax(logits)[:, targets].mean(), "columns of all targets"),
    (lambda logits, targets: -log_softmax(logits).max(axis=1).mean(), "targets play no part"),
]
CROSS_ENTROPY = [
    (lambda logits, targets: -log_softmax(logits).mean(), "all entries of the table"),
    (one_hot_mean, "all entries of the table"),
    (lambda logits, targets: (logits.argmax(axis=1) == targets).mean(), "that is accuracy"),
    (lambda logits, targets: np.mean(np.argmax(logits, axis=1) != targets), "that is accuracy"),
]


def gradient(logits, targets):
    """Token by token, by a reader who writes the mean of the surprises' gradients."""
    return np.mean([softmax(logits) - np.eye(len(logits))[target] for target in targets], axis=0)


def stepped(change):
    return lambda logits, targets, rate: logits - rate * change(logits, targets)


@in_jax
def gradient_step_in_jax(logits, targets, rate):
    return logits - rate * jax.grad(lambda x: pf.cross_entropy(jnp.tile(x, (len(targets), 1)), targets))(logits)


GRADIENT_STEP = [
    (lambda x, targets, rate: x + rate * gradient(x, targets), "go up the gradient"),
    (stepped(lambda x, targets: len(targets) * gradient(x, targets)), "of the sum of the surprises"),
    (lambda x, targets, rate: x - gradient(x, targets), "learning rate plays no part"),
    (lambda x, targets, rate: -rate * gradient(x, targets), "return the step"),
    (lambda x, targets, rate: rate * gradient(x, targets), "return the step"),
    (lambda x, targets, rate: gradient(x, targets), "the gradient alone"),
    (stepped(lambda x, targets: x - np.eye(len(x))[targets].mean(axis=0)), "the softmax is missing"),
    (stepped(lambda x, targets: -np.eye(len(x))[targets].mean(axis=0)), "only raise the logits"),
    (stepped(lambda x, targets: softmax(x) - np.eye(len(x))[targets].max(axis=0) / len(targets)), "counts once"),
    (stepped(lambda x, targets: gradient(x, targets[:1])), "a single target"),
    (stepped(lambda x, targets: gradient(x, targets[-1:])), "a single target"),
    (
        stepped(lambda x, targets: np.exp(x) / np.exp(x).sum() - np.eye(len(x))[targets].mean(axis=0)),
        "large logits overflow",
    ),
]
SHIFT = [
    (lambda logits, tokens: surprise(logits, tokens).mean(), "nothing is shifted"),
    (lambda logits, tokens: surprise(logits[:-1], tokens[:-1]).mean(), "nothing is shifted"),
    (lambda logits, tokens: surprise(logits[1:], tokens[1:]).mean(), "nothing is shifted"),
    (lambda logits, tokens: surprise(logits[1:], tokens[:-1]).mean(), "shift the wrong way"),
    (lambda logits, tokens: surprise(logits[:-2], tokens[2:]).mean(), "shift by two"),
    (lambda logits, tokens: surprise(logits, np.roll(tokens, -1)).mean(), "goes round"),
    (lambda logits, tokens: surprise(logits[:-1], tokens[1:]).sum() / len(tokens), "one prediction less"),
]


def tempered(scale, at_zero=None, softmax=softmax):
    """Temperature of a reader who treats 0 apart, rightly unless said otherwise."""

    def probabilities(logits, temperature):
        if temperature > 0:
            return softmax(scale(logits, temperature))
        if at_zero is not None:
            return at_zero(logits)
        is_largest = logits == max(logits)
        return is_largest / is_largest.sum()

    return probabilities


def divide(logits, temperature):
    return logits / temperature


def after_the_softmax(logits, temperature):
    return tempered(divide)(logits, 0) if temperature == 0 else softmax(logits) / temperature


TEMPERATURE = [
    (tempered(lambda logits, t: t * logits), "multiply the logits by"),
    (tempered(lambda logits, t: logits / t / t), "square of the temperature"),
    (tempered(lambda logits, t: logits / math.sqrt(t)), "root of the temperature"),
    (lambda logits, t: softmax(logits), "plays no part"),
    (after_the_softmax, "after the softmax"),
    (tempered(lambda logits, t: softmax(logits) / t), "a second softmax"),
    (tempered(divide, softmax=np.exp), "do not divide by the sum"),
    (tempered(divide, softmax=lambda x: np.exp(x - x.max())), "do not divide by the sum"),
    (tempered(divide, softmax=lambda x: np.exp(x) / np.exp(x).sum()), "exp overflows"),
    (lambda logits, t: softmax(logits / t), "divide by zero"),
    (tempered(divide, lambda logits: np.eye(len(logits))[logits.argmax()]), "to a single token"),
    (
        tempered(divide, lambda logits: np.where(np.arange(len(logits)) == np.argsort(logits)[-1], 1, 0)),
        "to a single token",
    ),
    (lambda logits, t: softmax(logits / (t or 1)), "as if the temperature were 1"),
    (tempered(divide, lambda logits: np.ones_like(logits) / len(logits)), "equally likely, which they should be"),
]


def nucleus(count):
    """Top-p of a reader who counts how many tokens stay: `count(descending, p)`."""

    def cut(probabilities, p):
        order = np.argsort(probabilities)[::-1]
        result = np.zeros(len(probabilities))
        stay = order[: count(probabilities[order], p)]
        result[stay] = probabilities[stay]
        return result / result.sum()

    return cut


def right_count(descending, p):
    return int(np.argmax(np.cumsum(descending) >= p)) + 1


right_nucleus = nucleus(right_count)


def one_by_one(probabilities, p):
    """Take tokens in turn while they fit below p."""
    result, total = np.zeros(len(probabilities)), 0.0
    for token in np.argsort(-probabilities):
        if total + probabilities[token] > p:
            break
        result[token], total = probabilities[token], total + probabilities[token]
    return result / result.sum()


def with_removal_shifted(probabilities, p):
    """As widely copied, without the line that keeps the first token."""
    order = np.argsort(-probabilities)
    remove = np.cumsum(probabilities[order]) > p
    remove[1:] = remove[:-1].copy()
    kept = np.where(remove[np.argsort(order)], 0, probabilities)
    return kept / kept.sum()


def unlikely(probabilities, p):
    ascending = np.sort(probabilities)
    kept = np.where(probabilities <= ascending[right_count(ascending, p) - 1], probabilities, 0)
    return kept / kept.sum()


def by_rank(probabilities, p):
    kept = np.where(np.arange(len(probabilities)) < right_count(-np.sort(-probabilities), p), probabilities, 0)
    return kept / kept.sum()


def gathered(probabilities, p):
    """The mask looked up at `order`, where it should have been written there."""
    order = np.argsort(-probabilities)
    descending = probabilities[order]
    kept = np.where((np.cumsum(descending) - descending < p)[order], probabilities, 0)
    return kept / kept.sum()


def sorted_result(probabilities, p):
    return -np.sort(-right_nucleus(probabilities, p))


def sorted_survivors(probabilities, p):
    descending = np.sort(probabilities)[::-1]
    stay = descending[: right_count(descending, p)]
    return stay / stay.sum()


def survivors(probabilities, p):
    result = right_nucleus(probabilities, p)
    return result[result > 0]


def each_above(threshold):
    def cut(probabilities, p):
        kept = np.where(probabilities >= threshold(p), probabilities, 0)
        return kept / kept.sum()

    return cut


TOP_P = [
    (one_by_one, "one token too few"),
    (nucleus(lambda descending, p: max(1, int((np.cumsum(descending) <= p).sum()))), "one token too few"),
    (nucleus(lambda descending, p: right_count(descending, p) + 1), "one token too many"),
    (nucleus(lambda d, p: 1 + int((np.cumsum(d)[:-1] <= p).sum())), "exactly p together, you keep one more"),
    (each_above(lambda p: p), "with p by itself"),
    (each_above(lambda p: 1 - p), "with p by itself"),
    (with_removal_shifted, "nothing is left"),
    (unlikely, "you keep the unlikely"),
    (by_rank, "in sorted order who stays"),
    (gathered, "in sorted order who stays"),
    (sorted_result, "result is in sorted order"),
    (sorted_survivors, "result is in sorted order"),
    (survivors, "leave out the tokens"),
    (lambda x, p: np.where(right_nucleus(x, p) > 0, x, 0), "do not renormalise"),
    (lambda x, p: softmax(np.where(right_nucleus(x, p) > 0, x, -np.inf)), "by a softmax"),
    (lambda x, p: softmax(np.where(right_nucleus(x, p) > 0, x, 0)), "by a softmax"),
]


def beam_step(total=lambda old, new: old[:, None] + new, split=None, keep=None):
    """A step of a reader who flattens the table and sorts; `keep(ascending places, width)`."""
    keep = keep or (lambda ascending, width: ascending[::-1][:width])

    def step(old, new, width):
        totals = total(old, new)
        places = keep(np.argsort(totals, axis=None), width)
        beams, tokens = split(places, new) if split else np.unravel_index(places, totals.shape)
        return beams, tokens, totals.reshape(-1)[places]

    return step


def candidates(old, new):
    """All of them, best first, as (total, beam, token), by a reader who stays with lists."""
    rows = [(float(old[b] + new[b, t]), b, t) for b in range(len(old)) for t in range(new.shape[1])]
    return sorted(rows, reverse=True)


def as_parts(rows):
    totals, beams, tokens = zip(*rows, strict=True)
    return np.array(beams), np.array(tokens), np.array(totals)


def one_per_beam(old, new, width):
    rows = [max(row for row in candidates(old, new) if row[1] == beam) for beam in range(len(old))]
    return as_parts(sorted(rows, reverse=True)[:width])


def one_per_beam_in_order(old, new, width):
    tokens = new.argmax(axis=1)
    return np.arange(len(old)), tokens, old + new.max(axis=1)


def several_per_beam(old, new, width):
    rows = [[row for row in candidates(old, new) if row[1] == beam] for beam in range(len(old))]
    return as_parts([row for each in rows for row in each[:width]])


def top_k_of_rows(old, new, width):
    tokens = np.argsort(-new, axis=1)[:, :width]
    totals = np.take_along_axis(old[:, None] + new, tokens, axis=1)
    return np.tile(np.arange(len(old))[:, None], (1, tokens.shape[1])), tokens, totals


def with_values(values):
    def step(old, new, width):
        beams, tokens, totals = as_parts(candidates(old, new)[:width])
        return beams, tokens, values(new[beams, tokens], totals)

    return step


BEAM = [
    (one_per_beam, "by its best token only"),
    (one_per_beam_in_order, "by its best token only"),
    (several_per_beam, "best `width` tokens of each"),
    (top_k_of_rows, "best `width` tokens of each"),
    (beam_step(keep=lambda ascending, width: ascending[:width]), "least likely"),
    (beam_step(keep=lambda ascending, width: ascending[:width][::-1]), "least likely"),
    (beam_step(keep=lambda ascending, width: ascending[-width:]), "the best stands last"),
    (beam_step(total=lambda old, new: new), "old log-probabilities play no part"),
    (beam_step(total=lambda old, new: old[:, None] * new), "you multiply log-probabilities"),
    (with_values(lambda last, totals: last), "those of the last tokens alone"),
    (with_values(lambda last, totals: np.exp(totals)), "are probabilities"),
    (beam_step(split=lambda places, new: np.divmod(places, len(new))), "by the number of beams"),
    (beam_step(split=lambda places, new: (places % len(new), places // len(new))), "by the number of beams"),
    (beam_step(split=lambda places, new: np.divmod(places, new.shape[1])[::-1]), "beams and tokens are swapped"),
    (beam_step(split=lambda places, new: (places // new.shape[1], places)), "places in the flattened table"),
]


def shifted_loss(logits, tokens):
    return pf.cross_entropy(logits[:-1], tokens[1:])


@partial(in_jax, static_argnums=1)
def package_temperature(logits, temperature):
    return pf.next_token_probabilities(logits, temperature=temperature)


@partial(in_jax, static_argnums=1)
def package_top_p(probabilities, p):
    return pf.next_token_probabilities(jnp.log(probabilities), top_p=p)


@partial(in_jax, static_argnums=2)
def beam_step_in_jax(log_probs, next_log_probs, width):
    totals, places = jax.lax.top_k((log_probs[:, None] + next_log_probs).reshape(-1), width)
    return *jnp.divmod(places, next_log_probs.shape[1]), totals


RIGHT = [
    ("cross_entropy", in_numpy(lambda logits, targets: surprise(logits, targets).mean())),
    ("cross_entropy", in_jax(pf.cross_entropy)),
    ("gradient_step", in_numpy(stepped(gradient))),
    ("gradient_step", gradient_step_in_jax),
    ("next_token_loss", in_numpy(lambda logits, tokens: surprise(logits[:-1], tokens[1:]).mean())),
    ("next_token_loss", in_jax(shifted_loss)),
    ("temperature", in_numpy(tempered(divide))),
    ("temperature", in_numpy(lambda logits, t: softmax((logits - logits.max()) / max(t, 1e-8)))),
    ("temperature", package_temperature),
    ("top_p", in_numpy(right_nucleus)),
    ("top_p", package_top_p),
    ("beam_step", in_numpy(beam_step())),
    ("beam_step", beam_step_in_jax),
]
WRONG = [
    *(("cross_entropy", in_numpy(function), words) for function, words in [*LOSS, *CROSS_ENTROPY]),
    *(("gradient_step", in_numpy(function), words) for function, words in GRADIENT_STEP),
    *(("next_token_loss", in_numpy(partial(shifted, function)), words) for function, words in LOSS),
    *(("next_token_loss", in_numpy(function), words) for function, words in SHIFT),
    *(("temperature", in_numpy(function), words) for function, words in TEMPERATURE),
    *(("top_p", in_numpy(function), words) for function, words in TOP_P),
    *(("beam_step", in_numpy(function), words) for function, words in BEAM),
]
