"""Dates, names and numbers in many languages."""

import datetime
import itertools
import unicodedata
from collections import Counter, defaultdict

import pytest

from plainformer.data import dates as languages
from plainformer.data.dates import (
    DATE_LANGUAGES,
    DATE_YEARS,
    HELD_OUT_LANGUAGES,
    NAME_LANGUAGES,
    date_pairs,
    date_splits,
    name_splits,
    names_by_language,
    number_words,
)

# What one Monday is called, in every format: these have been the same in CLDR for a decade.
WRITTEN = {
    "en": {"Monday, October 5, 1987", "October 5, 1987", "Oct 5, 1987"},
    "de": {"Montag, 5. Oktober 1987", "5. Oktober 1987"},
    "fr": {"lundi 5 octobre 1987", "5 octobre 1987", "5 oct. 1987"},
    "es": {"lunes, 5 de octubre de 1987", "5 de octubre de 1987", "5 oct 1987"},
    "hu": {"1987. október 5., hétfő", "1987. október 5.", "1987. okt. 5."},
    "fi": {"maanantai 5. lokakuuta 1987", "5. lokakuuta 1987"},
}


@pytest.fixture(scope="module")
def splits():
    return date_splits()


@pytest.fixture(scope="module")
def names():
    return name_splits()


def every_text(language, days):
    for form, day in itertools.product(languages._formats_in_words(language), days):
        yield languages._written(day, form, language), day


@pytest.mark.parametrize("language", sorted(WRITTEN))
def test_date_pairs_are_written_as_in_that_language(language):
    texts = {text for text, _ in every_text(language, [datetime.date(1987, 10, 5)])}
    assert texts == WRITTEN[language]
    # All days of one year: each of its formats is drawn, and every day once.
    pairs = date_pairs([language], [1987], 365)
    assert len({pair.target for pair in pairs}) == 365
    assert {pair.language for pair in pairs} == {language}
    (today,) = (pair.source for pair in pairs if pair.target == "1987-10-05")
    assert today in texts
    lengths = {len(pair.source.split()) for pair in pairs}
    assert lengths == {len(text.split()) for text in texts}


def test_date_pairs_share_the_dates_among_languages_and_days():
    pairs = date_pairs(["de", "en", "fr"], [1999, 2004], 1_001)
    assert Counter(pair.language for pair in pairs) == {"de": 334, "en": 334, "fr": 333}
    assert len({(pair.language, pair.target) for pair in pairs}) == 1_001
    assert {pair.target[:4] for pair in pairs} == {"1999", "2004"}
    months = Counter(pair.target[5:7] for pair in pairs)
    assert len(months) == 12
    assert min(months.values()) > 50
    # In random order: no language stands all before another.
    assert len({pair.language for pair in pairs[:20]}) == 3


def test_date_pairs_depend_on_their_arguments_alone():
    first = date_pairs(["en", "sv"], range(1950, 1960), 50, seed=3)
    assert date_pairs(("en", "sv"), list(range(1950, 1960)), 50, seed=3) == first
    assert date_pairs(["en", "sv"], range(1950, 1960), 50, seed=4) != first
    assert date_pairs(["en"], [7], 1)[0].target.startswith("0007-")


def test_date_pairs_every_text_means_one_day():
    # The year is written out, so two days that share a text share the year: a leap year that begins on a Saturday,
    # and one without a 29th of February, hold every month, every day of it and every day of the week.
    meant = defaultdict(set)
    for year in (1987, 2000):
        start = datetime.date(year, 1, 1)
        days = [day for day in (start + datetime.timedelta(n) for n in range(366)) if day.year == year]
        for language in (*DATE_LANGUAGES, *HELD_OUT_LANGUAGES):
            for text, day in every_text(language, days):
                assert str(year) in text
                assert any(letter.isalpha() for letter in text)
                meant[text].add(day)
    assert not {text: days for text, days in meant.items() if len(days) > 1}
    assert len(meant) > 30_000


def test_date_pairs_of_croatian_and_polish_would_disagree():
    croatian = languages._written(datetime.date(1987, 10, 5), "long", "hr")
    polish = languages._written(datetime.date(1987, 11, 5), "long", "pl")
    assert (croatian, polish) == ("5. listopada 1987.", "5 listopada 1987")
    assert "hr" not in (*DATE_LANGUAGES, *HELD_OUT_LANGUAGES)


def test_date_splits_hold_out_years_and_languages(splits):
    assert [len(part) for part in splits] == [20_000, 2_000, 2_000]
    seen, held_out, other = ({int(pair.target[:4]) for pair in part} for part in splits)
    assert held_out == other
    assert not seen & held_out
    assert seen | held_out == set(DATE_YEARS)
    assert len(held_out) == 15
    # Scattered: the longest stretch without one is no third of all, and every last digit was seen in training.
    years = [DATE_YEARS[0], *sorted(held_out), DATE_YEARS[-1]]
    assert max(later - earlier for earlier, later in itertools.pairwise(years)) < 50
    assert {year % 10 for year in seen} == set(range(10))
    assert [{pair.language for pair in part} for part in splits] == [
        set(DATE_LANGUAGES),
        set(DATE_LANGUAGES),
        set(HELD_OUT_LANGUAGES),
    ]
    assert len(DATE_LANGUAGES) >= 12
    assert not set(DATE_LANGUAGES) & set(HELD_OUT_LANGUAGES)


def test_date_splits_use_a_modest_set_of_characters(splits):
    characters = set("".join(pair.source for pair in splits.training))
    assert len(characters) < 110
    assert not set("".join(pair.source for part in splits for pair in part)) - characters
    assert [letter for letter in characters if letter.isspace()] == [" "]
    for pair in splits.training:
        assert pair.source == " ".join(unicodedata.normalize("NFC", pair.source).split())
        assert datetime.date.fromisoformat(pair.target).isoformat() == pair.target
    assert max(len(pair.source) for part in splits for pair in part) <= 48


def test_date_splits_depend_on_the_seed():
    first = date_splits(100, 30, seed=1)
    assert first == date_splits(100, 30, seed=1)
    assert [len(part) for part in first] == [100, 30, 30]
    assert not set(first.training) & set(date_splits(100, 30, seed=0).training)


def test_white_space_is_plain():
    assert languages._plain(" 5\u202fde  mar\u00e7\u00a0de\n1987 ") == "5 de març de 1987"
    assert languages._plain("marc\u0327") == "març"


def test_names_by_language_are_what_things_are_called():
    found = {(name.language, name.concept): name.text for name in names_by_language(["de", "en"])}
    assert found["de", "territory FR"] == "Frankreich"
    assert found["en", "language de"] == "German"
    assert found["de", "month 3"] == "März"
    assert found["en", "weekday 0"] == "Monday"
    assert not [concept for _, concept in found if concept.split()[1] in ("ZZ", "XA", "XB")]
    polish = [name.text for name in names_by_language(["pl"]) if name.concept == "month 10"]
    assert polish == ["październik", "października"]


def test_names_by_language_name_nothing_twice():
    found = names_by_language()
    assert len(set(found)) == len(found)
    assert [language for language, _ in itertools.groupby(name.language for name in found)] == list(NAME_LANGUAGES)
    assert {name.concept.split()[0] for name in found} == {"territory", "language", "month", "weekday"}
    assert not [name for name in found if name.text != languages._plain(name.text) or not name.text]


def test_name_splits_hold_out_concepts_and_texts(names):
    concepts = [{name.concept for name in part} for part in (names.training, names.test)]
    assert not concepts[0] & concepts[1]
    texts = [[name.text.casefold() for name in part] for part in (names.training, names.test)]
    assert not set(texts[0]) & set(texts[1])
    assert [len(set(part)) for part in texts] == [len(part) for part in texts]
    assert 0.2 < len(texts[1]) / len(texts[0] + texts[1]) < 0.3


def test_name_splits_leave_out_what_several_languages_share(names):
    everything = names_by_language()
    spoken = defaultdict(set)
    for name in everything:
        spoken[name.text.casefold()].add(name.language)
    several = {text for text, found in spoken.items() if len(found) > 1}
    assert names.shared == sorted(several)
    assert "portugal" in several
    kept = {name.text.casefold() for name in names.training + names.test}
    assert kept == set(spoken) - several
    assert set(names.training + names.test) <= set(everything)
    # What the docstring says of them, give or take what CLDR changes.
    assert 0.09 < len(several) / len(spoken) < 0.15
    assert 0.4 < sum(name.text.casefold() in several for name in everything) / len(everything) < 0.5


def test_name_splits_have_enough_for_every_language(names):
    training, test = (Counter(name.language for name in part) for part in (names.training, names.test))
    assert len(NAME_LANGUAGES) == len(set(NAME_LANGUAGES)) == 20
    assert set(training) == set(test) == set(NAME_LANGUAGES)
    assert min(training.values()) >= 200
    assert min(test.values()) >= 70


def test_name_splits_keep_a_text_once():
    # With one language nothing is shared; a text that names two things is still there once.
    everything = names_by_language(["en"])
    training, test, shared = name_splits(["en"])
    assert shared == []
    assert len(training) + len(test) == len({name.text.casefold() for name in everything})


def test_number_words_in_several_languages():
    assert number_words([0, 7, 21, -3]) == ["zero", "seven", "twenty-one", "minus three"]
    assert number_words(range(79, 82), "fr") == ["soixante-dix-neuf", "quatre-vingts", "quatre-vingt-un"]
    assert number_words((4, 42), "de") == ["vier", "zweiundvierzig"]
