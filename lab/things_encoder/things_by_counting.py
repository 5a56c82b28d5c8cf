"""Guess a hidden letter of a name by counting: from the name itself, and from its other names, letter by letter.

An n-gram model says how probable the name is with each letter in the hole. Each place in another name whose neighbours
are those of the hole votes for the letter that stands there; how much a vote counts depends on how many neighbours
agree on either side, up to four. It counts for other letters, too, by a table of pairs: an i may stand for a y. The
table and the weights of the votes and of the n-gram model are learned: a log-linear model. It is told what the encoder
has to find out, that letters with the same neighbours correspond.
"""

import math
import re
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

import plainformer as pf
from lab.things_lines import VOCABULARY, questions

ORDER, MOST = 6, 4
NUM_LETTERS = len(VOCABULARY)
BEGIN, END = NUM_LETTERS, NUM_LETTERS + 1
NUM_KINDS = (MOST + 1) ** 2  # of votes, by neighbours that agree on the left and on the right
RIDGE = 0.01  # of 1, 0.1, 0.01 and 0.003 the best, on half of what `parted` sets aside, with 4,000 questions


class Evidence(NamedTuple):
    """For each question and letter: the n-gram model's log-probability, votes of each kind; and the right letter."""

    log_probs: np.ndarray
    votes: np.ndarray
    right: np.ndarray


def marked(name: str) -> list[int]:
    """The ids of a name between its ends."""
    return [BEGIN] * (ORDER - 1) + VOCABULARY.encode(name) + [END] * (ORDER - 1)


def ngram_model(things: dict[str, list[str]]) -> pf.training.NgramModel:
    """A model of names, with modified Kneser–Ney smoothing."""
    ids = [each for names in things.values() for name in names for each in marked(name)]
    return pf.training.NgramModel(ids, order=ORDER, vocab_size=NUM_LETTERS + 2, discount=None)


def from_the_name(model: pf.training.NgramModel, name: str, place: int) -> np.ndarray:
    """The log-probability of each letter at a place, given all other letters of the name."""
    ids, log_probs = marked(name), np.empty(NUM_LETTERS)
    first = place + ORDER - 1
    for letter in range(NUM_LETTERS):
        ids[first] = letter
        taking_part = range(first, first + ORDER)
        log_probs[letter] = sum(math.log(model.probability(ids[n], ids[n - ORDER + 1 : n])) for n in taking_part)
    return log_probs - np.logaddexp.reduce(log_probs)


def num_agreeing(ours: str, theirs: str) -> int:
    """How many letters agree before the first that does not, four at most; the end of both counts as one."""
    for n, (one, other) in enumerate(zip(ours[:MOST], theirs[:MOST], strict=False)):
        if one != other:
            return n
    both_end = len(ours) == len(theirs)
    return min(min(len(ours), len(theirs)) + both_end, MOST)


def votes_of(name: str, place: int, others: list[str]) -> np.ndarray:
    """For each letter and kind, in how many other names its best place is of that kind."""
    ours, votes = name.lower(), np.zeros((NUM_LETTERS, NUM_KINDS), np.float32)
    before, after = ours[:place][::-1], ours[place + 1 :]
    for other in others:
        theirs, best = other.lower(), dict[str, tuple[int, int]]()
        for n in range(min(len(other), len(theirs))):
            kind = num_agreeing(before, theirs[:n][::-1]), num_agreeing(after, theirs[n + 1 :])
            best[other[n]] = max(best.get(other[n], (0, 0)), kind, key=sum)
        for letter, (left, right) in best.items():
            if left + right:
                votes[VOCABULARY.encode(letter)[0], left * (MOST + 1) + right] += 1
    return votes


def evidence(model: pf.training.NgramModel, asked) -> Evidence:
    """What name and other names say at each question."""
    names = [line[name] for line, name, _ in asked]
    log_probs = np.stack([from_the_name(model, text, place) for text, (_, _, place) in zip(names, asked, strict=True)])
    votes = np.stack([votes_of(line[name], place, line[:name] + line[name + 1 :]) for line, name, place in asked])
    right = np.array([VOCABULARY.encode(text)[place] for text, (_, _, place) in zip(names, asked, strict=True)])
    return Evidence(log_probs, votes, right)


def scores(weights: dict, given: Evidence):
    """The log-linear model's logits; more votes of a kind count more, but less than in proportion."""
    heard = jnp.log1p(given.votes * jnp.exp(weights["scale"])) @ weights["votes"]
    return weights["name"] * given.log_probs + heard + heard @ weights["pairs"]


def surprises(weights: dict, given: Evidence):
    """At each question the surprise, in nats, and whether the letter was guessed."""
    logits = scores(weights, given)
    nats = optax.softmax_cross_entropy_with_integer_labels(logits, jnp.asarray(given.right))
    return nats, logits.argmax(axis=1) == given.right


def from_the_name_alone(given: Evidence) -> tuple[np.ndarray, np.ndarray]:
    """The same, by the n-gram model without any vote."""
    surprise = -given.log_probs[np.arange(len(given.right)), given.right]
    return surprise, given.log_probs.argmax(axis=1) == given.right


def learn_weights(given: Evidence, num_steps: int = 400) -> dict:
    """The weights under which the right letters are likeliest, with the table of pairs held small, by Adam."""
    weights = {"name": jnp.array(1.0), "votes": jnp.full(NUM_KINDS, 0.5), "scale": jnp.zeros(NUM_KINDS)}
    weights["pairs"] = jnp.zeros((NUM_LETTERS, NUM_LETTERS))
    optimiser = optax.adam(0.03)

    def loss(weights):
        return surprises(weights, given)[0].mean() + RIDGE * (weights["pairs"] ** 2).sum()

    @jax.jit
    def step(_, state):
        weights, memory = state
        changes, memory = optimiser.update(jax.grad(loss)(weights), memory)
        return optax.apply_updates(weights, changes), memory

    return jax.lax.fori_loop(0, num_steps, step, (weights, optimiser.init(weights)))[0]


def parted(things: dict[str, list[str]]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Every fourth territory, language, month and weekday, and what is left without them.

    As in `pf.data.thing_splits`, no name that is left contains one, of four letters or more, that was set aside.
    """
    own = [concept for concept in things if concept.split()[0] in ("territory", "language", "month", "weekday")]
    aside = {concept: things[concept] for concept in own[::4]}
    held_out = {name.casefold() for names in aside.values() for name in names if len(name) >= 4}
    within = re.compile("|".join(map(re.escape, held_out)))
    left = {
        concept: [name for name in names if not within.search(name.casefold())]
        for concept, names in things.items()
        if concept not in aside
    }
    return aside, {concept: names for concept, names in left.items() if len(names) > 1}


def learn(things: dict[str, list[str]], number: int = 5000) -> tuple[pf.training.NgramModel, dict]:
    """An n-gram model of all names, and weights learned on some things with a model that has not counted these."""
    aside, left = parted(things)
    return ngram_model(things), learn_weights(evidence(ngram_model(left), questions(aside, number, seed=1)))
