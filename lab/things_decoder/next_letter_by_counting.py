"""Guess the next letter of a name by counting: from its own beginning, and from the names before it in the line.

An n-gram model of names says what may follow the beginning. Each place in an earlier name that has the same letters on
its left votes for the letter that stands there; how much a vote counts depends on how many letters agree, up to four.
The weights of the votes, a table of pairs and that of the n-gram model are learned, as for the hidden letters of
`lab/things_encoder`. So it is told what the decoder has to find out: that letters behind the same ones correspond.
"""

import numpy as np

from lab.things_encoder.things_by_counting import (
    MOST,
    NUM_LETTERS,
    ORDER,
    Evidence,
    learn_weights,
    marked,
    ngram_model,
    num_agreeing,
    parted,
    surprises,
)
from lab.things_lines import VOCABULARY, line_of

NAME = 3  # the fourth name of a line, from 0
NUM_LINES, NUM_TO_LEARN = 250, 500


def votes_before(name: str, place: int, others: list[str]) -> np.ndarray:
    """For each letter and number of letters that agree, in how many other names its best place is of that kind."""
    votes = np.zeros((NUM_LETTERS, (MOST + 1) ** 2), np.float32)
    before = ("^" + name.lower()[:place])[::-1]  # so that a beginning counts twice, which does better
    for other in others:
        best: dict[str, int] = {}
        for n, letter in enumerate(other):
            agreeing = num_agreeing(before, ("^" + other.lower()[:n])[::-1])
            best[letter] = max(best.get(letter, 0), agreeing)
        for letter, agreeing in best.items():
            if agreeing:
                votes[VOCABULARY.encode(letter)[0], agreeing] += 1
    return votes


def evidence(model, lines: list[list[str]]) -> Evidence:
    """What beginning and earlier names say at each letter of the fourth name of each line."""
    log_probs, votes, right = [], [], []
    for line in lines:
        name, ids = line[NAME], marked(line[NAME])
        for place in range(len(name)):
            before = ids[place : place + ORDER - 1]
            log_probs.append(np.log([model.probability(letter, before) for letter in range(NUM_LETTERS)]))
            votes.append(votes_before(name, place, line[:NAME]))
            right.append(ids[place + ORDER - 1])
    return Evidence(np.stack(log_probs), np.stack(votes), np.array(right))


def lines_to_learn_from(things: dict[str, list[str]]) -> list[list[str]]:
    """Lines of things with at least four names."""
    rng, lists = np.random.default_rng(1), list(things.values())
    lines = (line_of(lists[n % len(lists)], rng) for n in range(10 * NUM_TO_LEARN))
    return [line for line in lines if len(line) > NAME][:NUM_TO_LEARN]


def counted_by_votes(things: dict[str, list[str]], lines: list[list[str]]) -> float:
    """Mean surprise at a letter of the fourth name, in nats, with weights learned on things set aside."""
    aside, left = parted(things)
    weights = learn_weights(evidence(ngram_model(left), lines_to_learn_from(aside)))
    judged = [line for line in lines if len(line) > NAME][:NUM_LINES]
    nats, _ = surprises(weights, evidence(ngram_model(things), judged))
    return float(np.mean(nats))
