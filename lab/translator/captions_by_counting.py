"""What the encoder–decoder of captions has to beat: translators that only count (chapter on encoder–decoders).

The stronger one works as translators did before neural ones. It counts which words, and which phrases, stand opposite
each other in the pairs (Brown et al., 1993; Koehn et al., 2003), and a language model counts how English goes on. A
beam puts phrases together to the translation that both find most probable. The weaker one takes what was written for
the most similar German caption.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import product

import numpy as np
from scipy.special import digamma
from sklearn.feature_extraction.text import TfidfVectorizer

import plainformer as pf
from lab.translator.captions import judged, read_captions

Words = tuple[str, ...]
Links = set[tuple[int, int]]  # places of a source word and of a target word that belong together
Pairs = Sequence[tuple[str, str]]
Option = tuple[float, float, Words, tuple[int, ...]]  # promise and score of a phrase, its English words and their ids
Options = dict[tuple[int, int], list[Option]]  # by first place, and the one behind the last

WORD = re.compile(r"\w+(?:-\w+)*|'\w+|\S")
SHORTEST, FILLERS = 4, ("", "s", "es", "n", "e", "-")  # letters of a part of a compound; what may stand between parts
NUM_ITERATIONS, NO_WORD, DIAGONAL, PRIOR = 8, 0.08, 4.0, 0.01  # of the alignment
NEIGHBOURS = [(a, b) for a, b in product((-1, 0, 1), repeat=2) if a or b]
LONGEST, NUM_COUNTED, NUM_OPTIONS = 5, 60, 12  # words of a phrase; its translations that are scored, and that are tried
ORDER, FARTHEST = 4, 6  # of the language model; the widest jump, in words
CACHED = 1_000_000  # scores of the language model that are kept
NUM_TUNING, STEPS, NARROW, WIDTH = 500, (0.2, 0.1), 5, 30
START = {
    "language model": 1.0,
    "jump": 0.6,
    "word": 1.3,
    "phrase": -0.6,
    "forward": 1.2,
    "backward": 0.5,
    "lexical": 0.3,
}


class Cutter:
    """Cuts texts into words. The first keeps its capital only if it is usual further on, too."""

    def __init__(self, texts: Sequence[str], has_compounds: bool):
        self.counts = Counter(word for text in texts for word in WORD.findall(text)[1:])
        self.parts = cache(self._parts) if has_compounds else lambda word: (word,)

    def __call__(self, text: str) -> Words:
        words = WORD.findall(text)
        if words and self.counts[words[0].lower()] > self.counts[words[0]]:
            words[0] = words[0].lower()
        return tuple(part for word in words for part in self.parts(word))

    def _parts(self, word: str) -> Words:
        """A compound as the parts whose counts have the greatest geometric mean, as in Koehn and Knight (2003)."""
        ways = [(word,)]
        for place in range(SHORTEST, len(word) - SHORTEST + 1):
            tail = self.usual(word[place:])
            heads = {word[:place].removesuffix(filler) for filler in FILLERS} if self.counts[tail] else set()
            ways += [(*self.parts(self.usual(head)), tail) for head in sorted(heads) if len(head) >= SHORTEST]
        return max(ways, key=lambda way: math.prod(self.counts[part] for part in way) ** (1 / len(way)))

    def usual(self, part: str) -> str:
        """A part with a small or a capital letter at the beginning, as it is more often written."""
        return max(part, part.lower(), part.capitalize(), key=lambda form: self.counts[form])


def joined(words: Sequence[str]) -> str:
    """Words as a text: a capital at the beginning, and no space where none belongs."""
    text = re.sub(r" (?=[.,;:!?)]|'\w)|(?<=\() ", "", " ".join(words))
    text = re.sub(r'" ([^"]*) "', r'"\1"', text)
    return text[:1].upper() + text[1:]


@cache
def diagonal(num_targets: int, num_sources: int) -> np.ndarray:
    """How probably each target word belongs to no source word, and to each: the nearer to the diagonal of the table,
    the likelier, as in Dyer et al. (2013)."""
    across, down = (np.arange(num_sources) + 0.5) / num_sources, (np.arange(num_targets)[:, None] + 0.5) / num_targets
    near = np.exp(-DIAGONAL * abs(across - down))
    near *= (1 - NO_WORD) / near.sum(axis=1, keepdims=True)
    return np.concatenate([np.full((num_targets, 1), NO_WORD), near], axis=1)


def aligned(sources: Sequence[Words], targets: Sequence[Words]) -> tuple[dict[tuple[str, str], float], list[Links]]:
    """IBM Model 1 with a liking for the diagonal: the probability of each target word given a source word, and for
    each pair of texts the source word, if any, that a target word most probably belongs to."""
    names = ["", *sorted({word for text in (*sources, *targets) for word in text})]  # the first stands for no word
    ids = {name: number for number, name in enumerate(names)}
    tables = [diagonal(len(target), len(source)) for source, target in zip(sources, targets, strict=True)]
    prior = np.concatenate([table.ravel() for table in tables])
    given = np.concatenate([np.tile([0, *map(ids.get, text)], len(t)) for text, t in zip(sources, tables, strict=True)])
    wanted = np.concatenate([np.repeat([*map(ids.get, x)], t.shape[1]) for x, t in zip(targets, tables, strict=True)])
    place = np.repeat(np.arange(sum(map(len, tables))), [table.shape[1] for table in tables for _ in table])
    codes, kind = np.unique(given * len(names) + wanted, return_inverse=True)
    source, target = np.divmod(codes, len(names))
    probability = np.ones(len(codes))
    for _ in range(NUM_ITERATIONS):
        share = probability[kind] * prior
        share /= np.bincount(place, share)[place]
        count = np.bincount(kind, share) + PRIOR
        probability = np.exp(digamma(count) - digamma(np.bincount(source, count))[source])
    pieces = np.split(probability[kind] * prior, np.cumsum([table.size for table in tables])[:-1])
    best = [piece.reshape(table.shape).argmax(axis=1).tolist() for piece, table in zip(pieces, tables, strict=True)]
    links = [{(i - 1, j) for j, i in enumerate(chosen) if i} for chosen in best]
    known = zip(source.tolist(), target.tolist(), probability.tolist(), strict=True)
    return {(names[one], names[other]): chance for one, other, chance in known}, links


def grown(one: Links, other: Links) -> Links:
    """The links that both directions have, and those of one direction that give a word its first and lie next to
    others, or give both words their first."""
    links, either = one & other, one | other
    while True:
        linked, linked_to = {i for i, _ in links}, {j for _, j in links}
        near = {(i, j) for i, j in either - links if any((i + a, j + b) in links for a, b in NEIGHBOURS)}
        new = {(i, j) for i, j in near if i not in linked or j not in linked_to}
        if not new:
            return links | {(i, j) for i, j in either if i not in linked and j not in linked_to}
        links |= new


def phrases(source: Words, target: Words, links: Links) -> Iterator[tuple[Words, Words]]:
    """All pairs of phrases that are consistent with the links: none leads out of them, and at least one is within."""
    linked_to = {j for _, j in links}
    for first, length in product(range(len(source)), range(1, LONGEST + 1)):
        last = first + length
        within = [j for i, j in links if first <= i < last]
        if last > len(source) or not within:
            continue
        starts, ends = [min(within)], [max(within) + 1]
        if any(starts[0] <= j < ends[0] and not first <= i < last for i, j in links):
            continue
        while starts[-1] > 0 and starts[-1] - 1 not in linked_to:
            starts.append(starts[-1] - 1)
        while ends[-1] < len(target) and ends[-1] not in linked_to:
            ends.append(ends[-1] + 1)
        yield from ((source[first:last], target[a:b]) for a in starts for b in ends if b - a <= LONGEST)


def next_runs(covered: int, place: int, num_words: int) -> Iterator[tuple[int, int]]:
    """The runs of words that may be translated next: neither the jump to them is too wide, nor the one back from them
    to the first word that is left. The bits of `covered` say which words are translated."""
    left = (~covered & (covered + 1)).bit_length() - 1
    for first in range(max(left, place - FARTHEST), min(place + FARTHEST + 1, num_words)):
        for last in range(first + 1, min(first + LONGEST, num_words) + 1):
            if covered >> (last - 1) & 1:
                break
            if first == left or last - left <= FARTHEST:
                yield first, last


def promises(options: Options, num_words: int) -> dict[tuple[int, int], float]:
    """For every run of words, the score that its best translation seems to have, whatever stands around it."""
    best: dict[tuple[int, int], float] = {}
    for length in range(1, num_words + 1):
        for first in range(num_words - length + 1):
            last = first + length
            halves = [best[first, middle] + best[middle, last] for middle in range(first + 1, last)]
            best[first, last] = max([promise for promise, *_ in options.get((first, last), [])[:1]] + halves)
    return best


class PhraseTranslator:
    """A table of phrases and an n-gram model of English; what each has to say is weighted."""

    def __init__(self, pairs: Pairs, weights: dict[str, float] = START):
        self.weights = weights
        german, english = zip(*pairs, strict=True)
        self.cut = Cutter(german, has_compounds=True)
        sources, targets = list(map(self.cut, german)), list(map(Cutter(english, has_compounds=False), english))
        self.words, there = aligned(sources, targets)
        _, back = aligned(targets, sources)
        links = [grown(one, {(i, j) for j, i in other}) for one, other in zip(there, back, strict=True)]
        counts = Counter(pair for each in zip(sources, targets, links, strict=True) for pair in phrases(*each))
        self.table: dict[Words, Counter] = defaultdict(Counter)
        self.num_written: Counter = Counter()
        for (source, target), count in counts.items():
            self.table[source][target] = count
            self.num_written[target] += count
        names = ["<unknown>", "<start>", "<end>", *sorted({word for text in targets for word in text})]
        self.ids = {name: number for number, name in enumerate(names)}
        tokens = [self.ids[word] for text in targets for word in (*["<start>"] * (ORDER - 1), *text, "<end>")]
        self.english = pf.training.NgramModel(tokens, ORDER, len(names), discount=None)
        self.features = cache(self._features)
        self.log_probability = lru_cache(CACHED)(self._log_probability)

    def _log_probability(self, context: tuple[int, ...], ids: tuple[int, ...]) -> float:
        """The logarithm of the probability of words after others."""
        text = context + ids
        places = range(len(context), len(text))
        return sum(math.log(self.english._probability(text[n], text[max(n - ORDER + 1, 0) : n])) for n in places)

    def _features(self, source: Words) -> list[tuple[Words, list[float]]]:
        """The translations of a phrase, and for each what is to be weighted, in the order of the weights: how many
        words and phrases it has, and three log-probabilities. A word that is unknown stays as it is."""
        if source not in self.table:
            return [(source, [1.0, 1.0, 0.0, 0.0, 0.0])] if len(source) == 1 else []
        rows, total = [], self.table[source].total()
        for target, count in self.table[source].most_common(NUM_COUNTED):
            likeliest = [max(self.words.get((one, word), 1e-7) for one in ("", *source)) for word in target]
            chances = [count / total, count / self.num_written[target], math.prod(likeliest)]
            rows.append((target, [len(target), 1.0, *map(math.log, chances)]))
        return rows

    def options(self, words: Words) -> Options:
        """For every run of words, its most promising translations."""
        language, _, *weights = self.weights.values()
        found: Options = {}
        for first, length in product(range(len(words)), range(1, LONGEST + 1)):
            if first + length > len(words):
                continue
            rows = []
            for english, features in self.features(words[first : first + length]):
                score = sum(weight * feature for weight, feature in zip(weights, features, strict=True))
                ids = tuple(self.ids.get(word, 0) for word in english)
                rows.append((score + language * self.log_probability((), ids), score, english, ids))
            found[first, first + length] = sorted(rows, reverse=True)[:NUM_OPTIONS]
        return found

    def translate(self, text: str, width: int = WIDTH) -> str:
        """The best translation that a beam finds. There is a beam for each number of words that are translated; of
        beginnings that can go on in the same ways it keeps only the best, and of these the most promising."""
        words = self.cut(text)
        options, language, jump = self.options(words), self.weights["language model"], self.weights["jump"]
        best = promises(options, len(words))

        @cache
        def to_come(covered: int) -> float:
            """What the words that are left promise."""
            return sum(best[gap.span()] for gap in re.finditer("0+", f"{covered:0{len(words)}b}"[::-1]))

        beams: list[dict[tuple, tuple]] = [{} for _ in range(len(words) + 1)]
        beams[0][0, 0, (self.ids["<start>"],) * (ORDER - 1)] = (0.0, 0.0, ())
        for number, beam in enumerate(beams[:-1]):
            kept = sorted(beam.items(), key=lambda item: item[1][0], reverse=True)[:width]
            for (covered, place, context), (_, score, written) in kept:
                for first, last in next_runs(covered, place, len(words)):
                    now, longer = covered | (1 << last) - (1 << first), beams[number + last - first]
                    before, rest = score - jump * abs(first - place), to_come(now)
                    for _, value, english, ids in options[first, last]:
                        new = before + value + language * self.log_probability(context, ids)
                        state = (now, last, (context + ids)[-ORDER + 1 :])
                        if state not in longer or new > longer[state][1]:
                            longer[state] = (new + rest, new, written + english)
        _, english = max(
            (score + language * self.log_probability(context, (self.ids["<end>"],)), written)
            for (_, _, context), (_, score, written) in beams[-1].items()
        )
        return joined(english)


def tuned(translator: PhraseTranslator, pairs: Pairs) -> dict[str, float]:
    """The weights with the highest BLEU on some pairs, found by changing one at a time as long as that helps."""
    german, english = map(list, zip(*pairs, strict=True))

    @cache
    def bleu(values: tuple[float, ...]) -> float:
        translator.weights = dict(zip(START, values, strict=True))
        return pf.training.corpus_bleu([translator.translate(text, NARROW) for text in german], english)

    best = tuple(START.values())
    for step, n, sign in product(STEPS, range(1, len(best)), (1, -1)):
        while bleu(new := (*best[:n], round(best[n] + sign * step, 2), *best[n + 1 :])) > bleu(best):
            best = new
    return dict(zip(START, best, strict=True))


def most_similar(pairs: Pairs, texts: Sequence[str]) -> list[str]:
    """What was written for the most similar German text of the pairs, by the cosine of their TF-IDF vectors."""
    german, english = zip(*pairs, strict=True)
    vectors = TfidfVectorizer(token_pattern=r"\w+")
    known = vectors.fit_transform(german)
    return [english[int(row.toarray().argmax())] for row in vectors.transform(texts) @ known.T]


def results() -> dict:
    """BLEU of both on the validation part, of which the beginning chose the weights, and on the test; what was written
    for the test."""
    splits = read_captions()
    translator = PhraseTranslator(splits.training)
    translator.weights = tuned(translator, splits.validation[:NUM_TUNING])
    found: dict = {"phrases": {"weights": translator.weights}, "most similar": {}}
    for part, pairs in {"validation": splits.validation, "test": splits.test}.items():
        german, english = map(list, zip(*pairs, strict=True))
        found["written"] = [translator.translate(text) for text in german]
        found["phrases"][part] = judged(found["written"], english)["cased"]
        found["most similar"][part] = judged(most_similar(splits.training, german), english)["cased"]
    return found
