"""Whole numbers in words."""

import pytest

from plainformer.data.numbers import number_splits, number_words


def test_number_words_in_several_languages():
    assert number_words([0, 7, 21, -3]) == ["zero", "seven", "twenty-one", "minus three"]
    assert number_words(range(79, 82), "fr") == ["soixante-dix-neuf", "quatre-vingts", "quatre-vingt-un"]
    assert number_words((4, 42), "de") == ["vier", "zweiundvierzig"]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: number_words([1], "xx"), ValueError, r"^num2words does not know the language 'xx'"),
        (lambda: number_words([3, 1.5]), TypeError, r"^numbers holds 1.5"),
        (lambda: number_words([-3], "cs"), ValueError, r"^num2words has no words for -3 in 'cs'"),
        (lambda: number_splits(5, 5, language="xx"), ValueError, r"^num2words does not know the language 'xx'"),
        (lambda: number_splits(90_000, 5), ValueError, r"^There are 86,490 numbers"),
    ],
)
def test_number_words_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_number_splits_are_pairs_of_one_number_each():
    splits = number_splits(300, 40, seed=3)
    assert list(map(len, splits)) == [300, 40, 40, 40]
    for part in splits:
        for pair in part[:10]:
            assert [pair.source] == number_words([pair.number], "de")
            assert [pair.target] == number_words([pair.number])
    assert splits == number_splits(300, 40, seed=3)
    assert splits.training != number_splits(300, 40, seed=4).training


def test_number_splits_hold_no_number_twice(monkeypatch):
    """So many that, of six digits too, some would be drawn twice if they could be."""
    monkeypatch.setattr("plainformer.data.numbers._pairs", lambda numbers, language: numbers)
    splits = number_splits(5000, 5000)
    for name, part in splits._asdict().items():
        assert len(set(part)) == 5000, f"{name} holds a number twice"
    assert len(set().union(*splits)) == 4 * 5000, "a number is in two parts"


def test_number_splits_hold_out_combinations_and_lengths():
    splits = number_splits(2000, 300)
    new = (
        "siebenundzwanzig",
        "sechsunddreißig",
        "fünfundvierzig",
        "vierundfünfzig",
        "dreiundsechzig",
        "zweiundsiebzig",
        "einundachtzig",
    )
    for name, part in zip(splits._fields, splits, strict=True):
        has_new = {any(word in pair.source for word in new) for pair in part}
        assert has_new == {name == "new_combination"}
    assert max(pair.number for part in splits[:3] for pair in part) < 100_000 <= min(p.number for p in splits.longer)
    known = " ".join(pair.source for pair in splits.training)
    for word in new:  # of each held-out word both parts are known
        units, tens = word.split("und")
        assert f"{units}und" in known
        assert f"und{tens}" in known
