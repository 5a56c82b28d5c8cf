"""Find the slip: one letter of a name is wrong; which?

If every place is as likely to be hit, and wrong letters are drawn as often as letters occur, then by Bayes' rule the
wrong one is most probably that of the largest ln(q / p): q is how often the letter occurs, p its probability given all
the others.
"""

import math
from collections import Counter
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


def log_frequency(names: list[str]) -> Callable[[str], float]:
    """From a letter to the logarithm of how often it occurs; what is no letter is never drawn."""
    counts = Counter(letter for name in names for letter in name if letter.isalpha())
    return lambda letter: math.log(counts[letter] / counts.total()) if counts[letter] else -math.inf


def slips_found(surprise_at: Callable[[list[Question]], np.ndarray], slips: list[Question], names: list[str]) -> float:
    """In how many names the letter most probably wrong is the wrong one; `names` say how often letters occur."""
    frequency = log_frequency(names)
    asked = [(line, name, n) for line, name, _ in slips for n in range(len(line[name]))]
    ratios = np.asarray(surprise_at(asked)) + [frequency(line[name][n]) for line, name, n in asked]
    ends = np.cumsum([len(line[name]) for line, name, _ in slips])
    each = np.split(ratios, ends[:-1])
    return float(np.mean([ratio.argmax() == place for ratio, (_, _, place) in zip(each, slips, strict=True)]))
