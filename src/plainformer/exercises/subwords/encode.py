"""Exercise `encode`: the ids of a text, by merges in the order in which they were learned."""

from functools import partial

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake
from plainformer.tokens.bpe import BytePairEncoder
from plainformer.tokens.merges import byte_alphabet, pre_tokenise


def _spell(piece, encoder):
    return [encoder.vocabulary[byte_alphabet()[byte]] for byte in piece.encode()]


def _replace(part, pair, new):
    done, n = [], 0
    while n < len(part):
        is_here = tuple(part[n : n + 2]) == pair
        done.append(new if is_here else part[n])
        n += 2 if is_here else 1
    return done


def _merge_all(part, rules, *, replace=_replace):
    for pair, new in rules:
        part = replace(part, pair, new)
    return part


def encode(text, encoder, *, cut=pre_tokenise, spell=_spell, order=list, replace=_replace, merge=_merge_all):
    """Return the ids of all pieces of the text, one after the other."""
    number = encoder.vocabulary
    rules = order([((number[a], number[b]), number[a + b]) for a, b in encoder.merges])
    if merge is _merge_all:
        merge = partial(_merge_all, replace=replace)
    parts = (merge(spell(piece, encoder), rules) for piece in cut(text))
    return np.array([token for part in parts for token in part], int)


def _replace_first(part, pair, new):
    for n in range(len(part) - 1):
        if tuple(part[n : n + 2]) == pair:
            return [*part[:n], new, *part[n + 2 :]]
    return part


def _replace_from_the_right(part, pair, new):
    return _replace(part[::-1], pair[::-1], new)[::-1]


def _merge_by_place(part, rules):
    rules = dict(rules)
    n = 0
    while n < len(part) - 1:
        pair = tuple(part[n : n + 2])
        n = 0 if pair in rules else n + 1  # after a merge, look again from the start
        if pair in rules:
            part = _replace_first(part, pair, rules[pair])
    return part


def _merge_in_one_sweep(part, rules):
    rules, done = dict(rules), []
    for token in part:
        done.append(token)
        while len(done) > 1 and tuple(done[-2:]) in rules:
            done[-2:] = [rules[tuple(done[-2:])]]
    return done


def _merge_once(part, rules):
    for pair, new in rules:
        merged = _replace(part, pair, new)
        if merged != part:
            return merged
    return part


def _longest_first(part, rules):
    """The token that covers most bytes, at each place, whatever the merges say."""
    made: dict[tuple[int, ...], int] = {(token,): token for token in range(256)}
    bytes_of: dict[int, tuple[int, ...]] = {token: (token,) for token in range(256)}
    for (a, b), new in rules:
        bytes_of[new] = bytes_of[a] + bytes_of[b]
        made[bytes_of[new]] = new
    done, n = [], 0
    while n < len(part):
        length = next(k for k in range(len(part) - n, 0, -1) if tuple(part[n : n + k]) in made)
        done.append(made[tuple(part[n : n + length])])
        n += length
    return done


MISTAKES = [
    Mistake(
        "you merge whatever pair stands furthest left, not the pair that was learned first",
        "A merge learned later may take a token away from one learned earlier. Over what should the outer loop run?",
        merge=[_merge_by_place, _merge_in_one_sweep],
    ),
    Mistake(
        "you take the longest token that fits, from left to right, and ignore the order of the merges",
        "Which merge was learned first, and what does it leave for the others?",
        merge=_longest_first,
    ),
    Mistake(
        "you apply the merges from the last learned to the first",
        "A later merge joins tokens that earlier ones made. Which must come first?",
        order=lambda rules: rules[::-1],
    ),
    Mistake(
        "you merge only the first occurrence of each pair in a piece",
        "The pair may stand there again. Where does your search go on?",
        replace=_replace_first,
    ),
    Mistake(
        "in a row of equal tokens you merge from the right; the rule is from left to right",
        "Which two of three equal tokens become one?",
        replace=_replace_from_the_right,
    ),
    Mistake(
        "you stop after one merge in each piece",
        "What remains may hold another pair. When is a piece done?",
        merge=_merge_once,
    ),
    Mistake(
        "no merge is applied: these are the ids of the bytes",
        "Which pair of neighbours does the first merge join?",
        merge=lambda part, rules: part,
    ),
    Mistake(
        "you look up characters where bytes are expected, so that a character of several bytes gets a wrong id or none",
        "How many bytes has é in UTF-8, and how many ids should it begin with?",
        spell=[
            lambda piece, encoder: [encoder.vocabulary[byte_alphabet()[ord(character)]] for character in piece],
            lambda piece, encoder: [encoder.vocabulary[character] for character in piece],
            lambda piece, encoder: [encoder.vocabulary[byte_alphabet()[ord(character) % 256]] for character in piece],
        ],
    ),
    Mistake(
        "you use each byte itself as its id; the ids follow the order of byte_alphabet()",
        "Which id has the first letter of the alphabet in encoder.vocabulary, and which byte is it?",
        spell=lambda piece, encoder: list(piece.encode()),
    ),
    Mistake(
        "you merge across the pieces: the text was not cut by pre_tokenise first",
        "In which pieces were the pairs counted when the merges were learned?",
        cut=lambda text: [text],
    ),
    Mistake(
        "the spaces are lost: you cut the text at them",
        "Which token should a space belong to, so that the ids decode to the same text?",
        cut=[lambda text: text.split(), lambda text: text.split(" ")],
    ),
]


class _SmallEncoder(BytePairEncoder):
    """An encoder with few merges, which a message can show whole."""

    def __repr__(self) -> str:
        return "an encoder with the merges " + ", ".join(f"({a}, {b})" for a, b in self.merges)


def _encoder(*merges: str) -> _SmallEncoder:
    pairs = [(a, b) for a, b in map(str.split, merges)]
    names = [*byte_alphabet().values(), *(a + b for a, b in pairs)]
    return _SmallEncoder({name: number for number, name in enumerate(names)}, pairs)


_ENCODER = _encoder("a n", "n a", "an a", "b an", "Ġ b", "a a", "Ġ Ġ", "ban ana", "na na", "ban an")
_SMALL = _encoder("a n", "b an", "n a")


def _case(name, text, is_edge=False):
    return Case(name, {"text": text, "encoder": _ENCODER}, is_edge)


def _as_tokens(inputs: dict, ids: np.ndarray) -> str:
    tokens = inputs["encoder"].tokens
    if ids.ndim != 1 or not all(0 <= n < len(tokens) for n in ids):
        return ""
    return "that is " + " ".join(repr(tokens[n])[1:] for n in ids) if len(ids) else ""


EXERCISE = Exercise(
    encode,
    MISTAKES,
    cases=[
        _case("two words", "banana nana bananana"),
        _case("the same letter many times", "aaaaa baaan anaan"),
        _case("spaces in a row", "nana   ban\n  banana     bana"),
        _case("letters outside ASCII", "ñanabanané"),
        _case("a character of three bytes", "ban\N{EURO SIGN} ana", is_edge=True),
        _case("no text at all", "", is_edge=True),
    ],
    examples=[
        {"text": "banana", "encoder": _SMALL},
        {"text": "nana", "encoder": _SMALL},
        {"text": "aaa", "encoder": _encoder("a a")},
        {"text": "ban ana", "encoder": _SMALL},
        {"text": "    ban", "encoder": _encoder("Ġ Ġ")},
        {"text": "é", "encoder": _SMALL},
    ],
    result="(number of tokens,)",
    tried_on="texts such as {text!r}",
    is_exact=True,
    remark=_as_tokens,
)
