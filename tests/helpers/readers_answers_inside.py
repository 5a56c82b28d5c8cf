"""Answers to the exercises of the chapter `inside` as readers would write them, right ones and wrong ones."""

import jax.numpy as jnp
import numpy as np
from exercise_checks import in_jax, in_numpy, softmax

import plainformer as pf


def added(heads, weight, bias):
    """What heads add to the stream, one after the other."""
    width = heads.shape[2]
    parts = (rows @ weight[width * h : width * (h + 1)] for h, rows in enumerate(heads))
    return sum(parts) + bias


def with_heads(change):
    """What attention adds after the reader has changed a copy of the heads."""

    def silenced_head(heads, weight, bias, head):
        heads = heads.copy()
        change(heads, head)
        return added(heads, weight, bias)

    return silenced_head


def zero(heads, head):
    heads[head] = 0


def zero_others(heads, head):
    heads[np.arange(len(heads)) != head] = 0


def zero_token(heads, head):
    heads[:, head] = 0


def mean_of_others(heads, head):
    heads[head] = np.mean([each for h, each in enumerate(heads) if h != head], axis=0)


def zero_columns(heads, weight, bias, head):
    out = added(heads, weight, bias)
    out[:, head * heads.shape[2] : (head + 1) * heads.shape[2]] = 0
    return out


def unswapped(heads, weight, bias, head):
    heads = heads.copy()
    heads[head] = 0
    return heads.reshape(heads.shape[1], -1) @ weight + bias


SILENCED = [
    (zero_columns, "after the output map"),
    (lambda heads, weight, bias, head: added(heads, weight, bias), "no head is silent"),
    (with_heads(zero_others), "the other heads are silent"),
    (with_heads(lambda heads, head: zero(heads, head - 1)), "the head before"),
    (with_heads(zero_token), "a token, not a head"),
    (lambda heads, weight, bias, head: with_heads(zero)(heads, weight, 0, head), "the bias, too"),
    (with_heads(mean_of_others), "mean of the other heads"),
    (unswapped, "without swapping"),
]


def with_rows(change):
    """Our stream after the reader has changed a copy of it."""

    def patched_rows(ours, theirs, places):
        ours, theirs = ours.copy(), theirs.copy()
        found = change(ours, theirs, np.asarray(places))
        return ours if found is None else found

    return patched_rows


def set_rows(ours, theirs, places):
    ours[places] = theirs[places]


def set_wrong_run(ours, theirs, places):
    theirs[places] = ours[places]
    return theirs


def add_rows(ours, theirs, places):
    ours[places] += theirs[places]


def set_from_first(ours, theirs, places):
    ours[places[0] :] = theirs[places[0] :]


def set_first(ours, theirs, places):
    ours[places[0]] = theirs[places[0]]


def set_columns(ours, theirs, places):
    ours[:, places[places < ours.shape[1]]] = theirs[:, places[places < ours.shape[1]]]


def set_next(ours, theirs, places):
    ours[places + 1] = theirs[places + 1]


def set_zeros(ours, theirs, places):
    ours[places] = 0


PATCHED = [
    (with_rows(set_wrong_run), "the wrong run"),
    (with_rows(add_rows), "you add the rows"),
    (with_rows(lambda ours, theirs, places: ours + (theirs - ours)), "all of the other run"),
    (with_rows(set_from_first), "from the first place on"),
    (with_rows(set_first), "only the first of the places"),
    (with_rows(set_columns), "columns, not tokens"),
    (with_rows(set_next), "one token too far"),
    (with_rows(set_zeros), "you silence the places"),
]


def margin(logits, rooms):
    return np.array([row[ours] - row[other] for row, (ours, other) in zip(logits, rooms, strict=True)])


def measured(formula, measure=margin, middle=np.median):
    """The effect by a formula of the three margins."""
    return lambda patched, before, source, rooms: middle(
        formula(*(measure(logits, rooms) for logits in (patched, before, source)))
    )


def right_formula(patched, before, source):
    return (patched - before) / (source - before)


EFFECTS = [
    (measured(lambda patched, before, source: (patched - source) / (before - source)), "measure from the other run"),
    (measured(lambda patched, before, source: (before - patched) / (source - before)), "sign is missing"),
    (measured(lambda patched, before, source: (patched - before) / before), "by the margin without the patch"),
    (measured(lambda patched, before, source: (patched - before) / source), "by the margin of the other run"),
    (measured(lambda patched, before, source: patched - before), "do not divide"),
    (measured(right_formula, lambda logits, rooms: logits[np.arange(len(logits)), rooms[:, 0]]), "our answer alone"),
    (measured(right_formula, lambda logits, rooms: logits[np.arange(len(logits)), rooms[:, 1]]), "the other answer"),
    (measured(right_formula, lambda logits, rooms: margin(softmax(logits), rooms)), "measure probabilities"),
    (measured(right_formula, middle=np.mean), "the mean over the stories"),
]


def looked(key, first=0, swap=False):
    """The mean weight of the key of each token that comes again, by a reader who goes through them."""

    def induction_score(weights, period):
        weights = weights.T if swap else weights
        return np.mean([weights[n, key(n, period)] for n in range(period + first, len(weights))])

    return induction_score


def after_it(n, period):
    return n - period + 1


INDUCTION = [
    (looked(lambda n, period: n - period), "one place too early"),
    (looked(lambda n, period: n - period + 2), "one place too far"),
    (looked(lambda n, period: n - period - 1), "before the earlier one"),
    (looked(lambda n, period: n - 1), "the token just before"),
    (looked(after_it, swap=True), "swapped"),
    (looked(after_it, first=1), "leave out the first"),
    (lambda weights, period: np.mean([w[n - period + 1] for n, w in enumerate(weights)]), "counted from the end"),
    (lambda weights, period: np.diagonal(weights, 1 - period)[1:].sum(), "add up"),
    (lambda weights, period: np.diagonal(weights, 1 - period)[1:].sum() / len(weights), "number of all tokens"),
]


def steered(direction, where=lambda place, seq: place, add=True):
    """The stream after the reader has changed a copy of it at one token, or at several."""

    def steered_rows(stream, ours, theirs, place, strength):
        found = stream.copy()
        rows = where(place, len(found))
        found[rows] = direction(ours, theirs, strength) + (found[rows] if add else 0)
        return found

    return steered_rows


def mean_difference(ours, theirs, strength):
    return strength * (theirs.mean(axis=0) - ours.mean(axis=0))


def one_long(ours, theirs, strength):
    direction = (theirs - ours).mean(axis=0)
    return strength * direction / np.sqrt((direction**2).sum())


STEERED = [
    (steered(lambda ours, theirs, strength: -mean_difference(ours, theirs, strength)), "from their runs to ours"),
    (steered(lambda ours, theirs, strength: strength * theirs.mean(axis=0)), "you add their rows"),
    (steered(lambda ours, theirs, strength: strength * sum(theirs - ours)), "you add up the pairs"),
    (steered(lambda ours, theirs, strength: strength * (theirs[0] - ours[0])), "the first pair alone"),
    (steered(lambda ours, theirs, strength: mean_difference(ours, theirs, 1)), "leave out the strength"),
    (steered(one_long), "one long"),
    (steered(mean_difference, where=lambda place, seq: slice(None)), "steer every token"),
    (steered(mean_difference, where=lambda place, seq: slice(place, seq)), "from the place on"),
    (steered(mean_difference, add=False), "that is a patch"),
]


def effect_in_jax(patched, before, source, rooms):
    each = jnp.arange(len(patched))
    three = [logits[each, rooms[:, 0]] - logits[each, rooms[:, 1]] for logits in (patched, before, source)]
    return jnp.median(pf.models.effect(*three))


RIGHT = [
    ("silenced_head", in_numpy(with_heads(zero))),
    (
        "silenced_head",
        in_jax(lambda heads, weight, bias, head: added(heads.at[head].set(0), weight, bias), static_argnums=3),
    ),
    ("patched_rows", in_numpy(with_rows(set_rows))),
    ("patched_rows", in_jax(lambda ours, theirs, places: ours.at[places].set(theirs[places]))),
    ("steered_rows", in_numpy(steered(mean_difference))),
    (
        "steered_rows",
        in_jax(
            lambda stream, ours, theirs, place, strength: stream.at[place].add(strength * (theirs - ours).mean(axis=0))
        ),
    ),
    ("patching_effect", in_numpy(measured(right_formula))),
    ("patching_effect", effect_in_jax),
    ("induction_score", in_numpy(looked(after_it))),
    ("induction_score", in_jax(lambda weights, period: pf.models.induction_scores(weights, period), static_argnums=1)),
]
WRONG = [
    *(("silenced_head", in_numpy(function), words) for function, words in SILENCED),
    *(("patched_rows", in_numpy(function), words) for function, words in PATCHED),
    *(("steered_rows", in_numpy(function), words) for function, words in STEERED),
    *(("patching_effect", in_numpy(function), words) for function, words in EFFECTS),
    *(("induction_score", in_numpy(function), words) for function, words in INDUCTION),
]
