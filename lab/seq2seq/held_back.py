"""Pairs of dates that are held back from training to choose settings by, as the test holds out others."""

import zlib

from plainformer.data.dates import DatePair, DateSplits

LANGUAGES = "da", "pt"  # each has relatives among the others, as those of the test have


def is_held_back(pair: DatePair) -> bool:
    """Whether the year is of those held back: about one in ten, by a checksum, as `date_splits` holds out others."""
    return zlib.crc32(pair.target[:4].encode()) % 10 == 1


def held_back(pairs: list[DatePair]) -> DateSplits:
    """Training pairs in three parts: to learn from, of years held back, and of languages held back, in all years."""
    known, foreign = (
        [pair for pair in pairs if (pair.language in LANGUAGES) == is_foreign] for is_foreign in (False, True)
    )
    rest, years = ([pair for pair in known if is_held_back(pair) == is_back] for is_back in (False, True))
    return DateSplits(rest, years, foreign)
