"""Find the slip: one letter of a name is wrong; which?

If one is, and all places and letters are equally likely, it is by Bayes' rule most probably the letter that is most
surprising, given all the others.
"""

from collections.abc import Callable

import numpy as np

Question = tuple[list[str], int, int]  # a line of names, the number of one of them, and a place in it


def with_slips(asked: list[Question], names: list[str], seed: int = 0) -> list[Question]:
    """The same lines, with another letter at each place that is asked about, drawn as often as letters occur."""
    rng = np.random.default_rng(seed)
    letters = [letter for name in names for letter in name if letter.isalpha()]
    found = []
    for line, name, place in asked:
        other = line[name][place]
        while other.casefold() == line[name][place].casefold():
            other = letters[rng.integers(len(letters))]
        changed = line[name][:place] + other + line[name][place + 1 :]
        found.append(([*line[:name], changed, *line[name + 1 :]], name, place))
    return found


def slips_found(surprise_at: Callable[[list[Question]], np.ndarray], slips: list[Question]) -> float:
    """In how many names the letter that is most surprising, given all others, is the wrong one."""
    asked = [(line, name, n) for line, name, _ in slips for n in range(len(line[name]))]
    ends = np.cumsum([len(line[name]) for line, name, _ in slips])
    each = np.split(np.asarray(surprise_at(asked)), ends[:-1])
    return float(np.mean([nats.argmax() == place for nats, (_, _, place) in zip(each, slips, strict=True)]))
