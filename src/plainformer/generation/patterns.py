"""Regular expressions, read one character at a time: what may still come after a beginning of a text.

A *sequence* is a tuple of parts that a text has to match one after the other. A part is a set of characters, of which
the text has one; `Either`, several sequences of which it matches one; or `Times`, a sequence that it matches a number
of times. What is left of a pattern after a character is again a sequence, or several: those are the states of an
automaton, as Brzozowski (1964) and Antimirov (1996) found.
"""

import math
import re
import string
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

Parts = tuple[Any, ...]
MOST_TIMES = 1000  # repetitions, each of which takes a state or more
SIGNS = {"*": (0, math.inf), "+": (1, math.inf), "?": (0, 1)}
SHORTHANDS = {
    "d": frozenset(string.digits),
    "w": frozenset(string.ascii_letters + string.digits + "_"),
    "s": frozenset(string.whitespace),
}


class Either(NamedTuple):
    """One of several sequences."""

    choices: tuple[Parts, ...]


class Times(NamedTuple):
    """A sequence at least and at most so many times. One that can be empty has no least number: nothing, so often."""

    sequence: Parts
    least: int
    most: int | float


def left_after(sequence: Parts, character: str) -> set[Parts]:
    """Return all that may be left of a sequence after a character: nothing, if it may not begin with it.

    Brzozowski (1964), definition 3.1, in the form of Antimirov (1996), section 2, as sets of partial derivatives.
    """
    if not sequence:
        return set()
    first, rest = sequence[0], sequence[1:]
    if isinstance(first, Either):
        found = {left + rest for choice in first.choices for left in left_after(choice, character)}
    elif isinstance(first, Times):
        # Where the sequence can be empty, passing it over leaves fewer times, and so nothing that is not found anyway.
        again = (Times(first.sequence, max(first.least - 1, 0), first.most - 1),) if first.most > 1 else ()
        found = {(*left, *again, *rest) for left in left_after(first.sequence, character)}
    else:
        found = {rest} if character in first else set()
    return found | left_after(rest, character) if can_be_empty((first,)) else found


def without_fewer(sequences: Iterable[Parts]) -> frozenset[Parts]:
    """Leave out sequences that begin with what another one allows more often: it matches all of their texts, too."""
    found: dict[Parts, Parts] = {}
    for sequence in sequences:
        first = sequence[0] if sequence else None
        alike = (None, first.sequence, first.least, sequence[1:]) if isinstance(first, Times) else sequence
        if not isinstance(first, Times) or alike not in found or found[alike][0].most < first.most:
            found[alike] = sequence
    return frozenset(found.values())


def can_be_empty(sequence: Parts) -> bool:
    """Say whether the empty text matches a sequence."""
    return all(
        (isinstance(part, Times) and part.least == 0)
        or (isinstance(part, Either) and any(map(can_be_empty, part.choices)))
        for part in sequence
    )


def parse_pattern(pattern: str, alphabet: Collection[str]) -> Parts:
    r"""Return the sequence that a pattern stands for: the part of Python's `re` with nothing but characters.

    These are `.`, `[a-z]`, `[^a-z]`, `\d`, `\w`, `\s`, `\` before a character, `( )`, `|`, `*`, `+`, `?`, `{2}` and
    `{2,5}`; `.` and what is excluded mean characters of the alphabet.
    """
    sequence, place = _either(pattern, 0, frozenset(alphabet))
    if place < len(pattern):
        raise _wrong(pattern, place, "a ) that closes nothing")
    return sequence


def _wrong(pattern: str, place: int, what: str) -> ValueError:
    known = r"( ) | . [a-z] [^a-z] \d \w \s * + ? {2} {2,5}"
    return ValueError(f"The pattern {pattern!r} has {what} at position {place}; expected characters and {known}.")


def _either(pattern: str, place: int, alphabet: frozenset) -> tuple[Parts, int]:
    """What stands between two parentheses, and where it ends."""
    choices: list[Parts] = [()]
    while place < len(pattern) and pattern[place] != ")":
        if pattern[place] == "|":
            choices, place = [*choices, ()], place + 1
        else:
            part, place = _repeated(*_part(pattern, place, alphabet), pattern)
            choices[-1] += part
    return (choices[0] if len(choices) == 1 else (Either(tuple(choices)),)), place


def _part(pattern: str, place: int, alphabet: frozenset) -> tuple[Parts, int]:
    """A character, a class of them or a group, and the place behind it."""
    character = pattern[place]
    if character == "(":
        if pattern.startswith("?", place + 1):
            raise _wrong(pattern, place, "a ( with a ? behind it")
        inner, end = _either(pattern, place + 1, alphabet)
        if end == len(pattern):
            raise _wrong(pattern, place, "a ( that is not closed")
        return inner, end + 1
    if character == "[":
        return _class(pattern, place, alphabet)
    if character == "\\":
        return (_escaped(pattern, place),), place + 2
    if character in "*+?{}]^$":
        raise _wrong(pattern, place, f"a {character} that repeats nothing, or no backslash before it")
    return (alphabet - {"\n"} if character == "." else frozenset(character),), place + 1


def _escaped(pattern: str, place: int) -> frozenset:
    character = pattern[place + 1 : place + 2]
    if not character or (character.isalnum() and character not in SHORTHANDS):
        raise _wrong(pattern, place, "a backslash before nothing that it may stand before")
    return SHORTHANDS.get(character, frozenset(character))


def _class(pattern: str, place: int, alphabet: frozenset) -> tuple[Parts, int]:
    """Characters between brackets, with ranges, and the place behind them."""
    found = re.compile(r"\[(\^?)((?:\\.|[^\]\\])+)\]", re.DOTALL).match(pattern, place)
    if found is None:
        raise _wrong(pattern, place, "a [ that is not closed, or is empty")
    characters: set[str] = set()
    for part in re.finditer(r"\\.|.-[^\\]|.", found[2], re.DOTALL):
        if part[0][0] == "\\":
            characters |= _escaped(pattern, found.start(2) + part.start())
        elif part[0][0] > part[0][-1]:
            raise _wrong(pattern, found.start(2) + part.start(), f"a range that ends before it begins, {part[0]},")
        else:
            characters |= {chr(code) for code in range(ord(part[0][0]), ord(part[0][-1]) + 1)}
    return (frozenset(alphabet - characters if found[1] else characters),), found.end()


def _repeated(part: Parts, place: int, pattern: str) -> tuple[Parts, int]:
    """A part as often as the signs behind it say, and the place behind them."""
    while found := re.compile(r"([*+?])|\{(\d+)(?:,(\d+))?\}").match(pattern, place):
        number = int(found[2] or 0)
        least, most = SIGNS.get(found[1], (number, int(found[3] or number)))
        if max(number, int(found[3] or 0)) > MOST_TIMES or most < least:
            raise _wrong(pattern, place, f"{found[0]}, more than {MOST_TIMES} times or fewer than at least")
        part, place = _times(part, least, most), found.end()
    return part, place


def _times(part: Parts, least: int, most: int | float) -> Parts:
    """A part so many times."""
    if most == 0 or not part:
        return ()
    least = 0 if can_be_empty(part) else least
    if len(part) == 1 and isinstance(part[0], Times) and part[0].least <= 1:
        return (Times(part[0].sequence, least, part[0].most * most),)  # up to three times up to two are up to six
    return (Times(part, least, most),)
