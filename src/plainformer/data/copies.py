"""Texts that occur twice, or nearly, and held-out texts that training has read (chapter on recipes)."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from itertools import combinations
from typing import Annotated, NamedTuple

import numpy as np

from plainformer.checks import Natural, Number, Positive, checked

Similarity = Annotated[float, Number(lambda s: 0 < s <= 1, "above 0 and at most 1, such as 0.8")]
Share = Annotated[float, Number(lambda s: 0 <= s <= 1, "from 0 to 1, such as 0.8")]
Gram = tuple[str, ...]


class NearDuplicate(NamedTuple):
    """Two texts, by their places in a list, and the similarity of what they are made of."""

    one: int
    other: int
    similarity: float


@checked
def exact_duplicates(texts: Sequence[str]) -> list[list[int]]:
    """Return the places of texts that are equal but for capital letters and white space, a list for each such text.

    What is compared is a hash of 128 bits of each text, which is the same in every process, as Python's own `hash` is
    not.

    Example:
        >>> pf.data.exact_duplicates(["To be", "or not", "to  be"])
        [[0, 2]]

    Raises:
        ValueError: if a text has no word.
    """
    _words_of("texts", texts)
    places: dict[bytes, list[int]] = defaultdict(list)
    for place, text in enumerate(texts):
        normal = " ".join(text.casefold().split())
        places[hashlib.blake2b(normal.encode(), digest_size=16).digest()].append(place)
    return [group for group in places.values() if len(group) > 1]


@checked
def near_duplicates(
    texts: Sequence[str],
    similarity: Similarity = 0.8,
    *,
    shingle_len: Positive = 5,
    num_hashes: Positive = 100,
    bands: Positive = 20,
    seed: Natural = 0,
) -> list[NearDuplicate]:
    r"""Return the pairs of texts that share most of their shingles, runs of `shingle_len` words.

    Broder (1997) and Lee et al. (2022), section 4.2: texts whose minima agree in a whole band are candidates, and of
    each candidate the similarity is computed from all shingles. So no pair is wrong, but one may be missed: see
    `found_by_bands`. Many copies of one text are many pairs: leave all but one of `exact_duplicates` out before.

    Args:
        texts: strings, each with a letter or a digit at least. Case and punctuation do not count, and a text of fewer
            words is one shingle.
        similarity: the least share of common shingles, `eq-recipes-jaccard`.
        num_hashes: how many minima are compared.
        bands: into how many bands they are cut, a divisor of `num_hashes`; more of them find more, and compare more.

    Example:
        >>> texts = ["so foul and fair a day I have not seen", "a rose", "So foul and fair a day I have not seen yet"]
        >>> pf.data.near_duplicates(texts)
        [NearDuplicate(one=0, other=2, similarity=0.8571428571428571)]

    Raises:
        ValueError: if a text has no word, or the bands do not divide the minima.
    """
    if num_hashes % bands:
        raise ValueError(f"bands is {bands}, which does not divide num_hashes={num_hashes}; expected a divisor.")
    sets = [set(_grams(words, shingle_len)) for words in _words_of("texts", texts)]
    buckets: dict[tuple[int, bytes], list[int]] = defaultdict(list)
    for place, shingles in enumerate(sets):
        for band, minima in enumerate(np.split(min_hashes(shingles, num_hashes, seed), bands)):
            buckets[band, minima.tobytes()].append(place)
    candidates = sorted({pair for places in buckets.values() for pair in combinations(places, 2)})
    found = [NearDuplicate(one, other, jaccard(sets[one], sets[other])) for one, other in candidates]
    return [pair for pair in found if pair.similarity >= similarity]


@checked
def jaccard(one, other) -> float:
    r"""Return the similarity of two sets: the share of what is in both among what is in one of them.

    Implements `eq-recipes-jaccard`; Broder (1997), who calls it resemblance.

    Raises:
        ValueError: if both are empty.

    Example:
        >>> pf.data.jaccard({1, 2, 3}, {2, 3, 4})
        0.5
    """
    _check_set("one", one)
    _check_set("other", other)
    if not one | other:
        raise ValueError("Both sets are empty, and have no similarity; expected something in one of them.")
    return len(one & other) / len(one | other)


@checked
def min_hashes(shingles, num_hashes: Positive = 100, seed: Natural = 0) -> np.ndarray:
    r"""Return the least hash of a set of shingles, for each of `num_hashes` ways of hashing.

    Implements `eq-recipes-minhash`: minima of two sets agree with the probability of their similarity; Broder
    (1997).

    Args:
        shingles: a set of tuples of strings, at least one.
        num_hashes: how many minima.
        seed: draws the ways of hashing; sets are compared by the same one.

    Example:
        >>> pf.data.min_hashes({("to", "be")}, 2).dtype
        dtype('uint64')
    """
    _check_set("shingles", shingles)
    if not shingles:
        raise ValueError("shingles is empty; expected at least one, such as ('to', 'be').")
    for shingle in shingles:
        if not (isinstance(shingle, tuple) and all(isinstance(word, str) for word in shingle)):
            raise TypeError(f"shingles holds {shingle!r}; expected tuples of words, such as ('to', 'be').")
    digests = [hashlib.blake2b("\0".join(each).encode(), digest_size=8).digest() for each in shingles]
    numbers = np.frombuffer(b"".join(digests), np.uint64)
    factors, shifts = np.random.default_rng(seed).integers(2**64, size=(2, num_hashes, 1), dtype=np.uint64)
    return (numbers * (factors | np.uint64(1)) + shifts).min(axis=1)  # modulo 2^64, as such numbers are multiplied


@checked
def found_by_bands(similarity: Share, bands: Positive, rows: Positive) -> float:
    r"""Return the probability that two texts of a similarity agree in all `rows` minima of one of the `bands`.

    Implements `eq-recipes-bands`; Lee et al. (2022), appendix A.

    Example:
        Twenty bands of five find nearly all pairs that share four fifths, and few of those that share a fifth.

        >>> print(*(round(pf.data.found_by_bands(s, bands=20, rows=5), 4) for s in (0.8, 0.2)))
        0.9996 0.0064
    """
    return 1 - (1 - similarity**rows) ** bands


@checked
def shared_ngrams(held_out, training, n: Positive = 13) -> np.ndarray:
    r"""Return, for each held-out text, which share of its different runs of `n` words the training has, too.

    Implements `eq-recipes-leak`; Brown et al. (2020), appendix C, with 13 words, of which one in common was enough.

    Args:
        held_out, training: lists of texts. Of a string, case and punctuation do not count; a list of strings is taken
            as the words of a text, such as `list(name)` for letters. A text of fewer than `n` words is one run, which
            only a whole text of training equals.
        n: how many words a run has: few are often common by chance, many miss a copy that was changed a little.

    Example:
        Of the six runs of four words, four are known.

        >>> pf.data.shared_ngrams(["To be, or not to be, that is: no."], ["to be or not to be that"], n=4).round(2)
        array([0.67])

    Raises:
        ValueError: if there is no text, or one has no word.
    """
    runs = [set(_grams(words, n)) for words in _words_of("held_out", held_out)]
    wanted = set().union(*runs)
    found = {run for words in _words_of("training", training) for run in _grams(words, n) if run in wanted}
    return np.array([len(each & found) / len(each) for each in runs])


def _grams(words: Sequence[str], n: int) -> Iterator[Gram]:
    """All runs of so many words; what has fewer is one run."""
    return (tuple(words[begin : begin + n]) for begin in range(max(len(words) - n + 1, 1)))


def _check_set(name: str, given) -> None:
    if not isinstance(given, Set):
        raise TypeError(f"{name} is of type {type(given).__name__}; expected a set.")


def _words_of(name: str, texts) -> list[list[str]]:
    """The words of each text."""
    if isinstance(texts, str | bytes) or not isinstance(texts, Sequence):
        raise TypeError(f"{name} is of type {type(texts).__name__}; expected a list of texts. For one text: [text].")
    if not texts:
        raise ValueError(f"{name} is empty; expected at least one text.")
    return [_words(f"{name}[{place}]", text) for place, text in enumerate(texts)]


def _words(name: str, text) -> list[str]:
    """The words of a string, or those of which a list is made."""
    if not isinstance(text, str | list | tuple):
        raise TypeError(f"{name} is of type {type(text).__name__}; expected a string, or a list of words.")
    words = re.findall(r"\w+", text.casefold()) if isinstance(text, str) else list(text)
    if not words:
        raise ValueError(f"{name} is {text!r}, without a word; expected at least one.")
    for word in words:
        if not isinstance(word, str):
            raise TypeError(f"{name} holds {word!r}; expected words, each a string.")
    return words
