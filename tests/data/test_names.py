"""Names of territories, languages, months and days in many languages."""

import itertools
from collections import defaultdict

import pytest

from plainformer.data.languages import plain
from plainformer.data.names import NAME_LANGUAGES, name_splits, names_by_language


@pytest.fixture(scope="module")
def everything():
    return names_by_language()


@pytest.fixture(scope="module")
def names():
    return name_splits()


def test_names_by_language_are_what_things_are_called():
    found = {(name.language, name.concept): name.text for name in names_by_language(["de", "en"])}
    assert found["de", "territory FR"] == "Frankreich"
    assert found["en", "language de"] == "German"
    assert found["de", "month 3"] == "März"
    assert found["en", "weekday 0"] == "Monday"
    assert not [concept for _, concept in found if concept.split()[1] in ("ZZ", "XA", "XB")]
    polish = [name.text for name in names_by_language(["pl"]) if name.concept == "month 10"]
    assert polish == ["październik", "października"]


def test_names_by_language_name_nothing_twice(everything):
    found = everything
    assert len(set(found)) == len(found)
    assert [language for language, _ in itertools.groupby(name.language for name in found)] == list(NAME_LANGUAGES)
    assert {name.concept.split()[0] for name in found} == {"territory", "language", "month", "weekday"}
    assert not [name for name in found if name.text != plain(name.text) or not name.text]


def test_name_splits_hold_out_concepts_and_texts(names):
    concepts = [{name.concept for name in part} for part in (names.training, names.test)]
    assert not concepts[0] & concepts[1]
    texts = [[name.text.casefold() for name in part] for part in (names.training, names.test)]
    assert not set(texts[0]) & set(texts[1])
    assert [len(set(part)) for part in texts] == [len(part) for part in texts]
    assert 0.2 < len(texts[1]) / len(texts[0] + texts[1]) < 0.3


def test_name_splits_leave_out_what_several_languages_share(everything, names):
    spoken = defaultdict(set)
    for name in everything:
        spoken[name.text.casefold()].add(name.language)
    several = {text for text, found in spoken.items() if len(found) > 1}
    assert names.shared == sorted(several)
    assert "portugal" in several
    kept = {name.text.casefold() for name in names.training + names.test}
    assert kept == set(spoken) - several
    assert set(names.training + names.test) <= set(everything)


def test_name_splits_keep_a_text_once():
    # With one language nothing is shared; a text that names two things is still there once.
    everything = names_by_language(["en"])
    training, test, shared = name_splits(["en"])
    assert shared == []
    assert len(training) + len(test) == len({name.text.casefold() for name in everything})


def test_plain_has_plain_spaces_and_one_form_of_unicode():
    assert plain(" 5\u202fde  mar\u00e7\u00a0de\n1987 ") == "5 de març de 1987"
    assert plain("marc\u0327") == "març"


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("function", [names_by_language, name_splits])
def test_names_by_language_bad_input(function):
    with pytest.raises(ValueError, match=r"^Babel does not know the language 'klingon'"):
        function(["en", "klingon"])
    with pytest.raises(ValueError, match=r"^languages holds 'en' twice"):
        function(["en", "en"])
    with pytest.raises(TypeError, match=r"^languages is the string 'en'"):
        function("en")
