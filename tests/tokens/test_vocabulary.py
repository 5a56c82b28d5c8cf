"""Vocabularies of words and of characters."""

import json

import pytest
from hypothesis import given, strategies as st

from plainformer.tokens.vocabulary import Vocabulary

SENTENCE = "the cat saw the other cat, twice"


@pytest.mark.equation("eq-tokens-vocabulary")
def test_vocabulary_numbers_special_tokens_first_then_sorted_words():
    vocabulary = Vocabulary.from_words(SENTENCE, special=["<start>", "<end>"])
    assert vocabulary.tokens == ("<start>", "<end>", "cat", "cat,", "other", "saw", "the", "twice")
    assert vocabulary.special == {"<start>": 0, "<end>": 1}
    assert vocabulary.encode(SENTENCE) == [6, 2, 5, 6, 4, 3, 7]
    assert vocabulary.decode([0, 6, 2, 1]) == "<start> the cat <end>"
    assert len(vocabulary) == 8
    assert repr(vocabulary) == "Vocabulary(8 tokens, special ['<start>', '<end>'])"


@pytest.mark.equation("eq-tokens-vocabulary")
@given(st.text(min_size=1))
def test_vocabulary_round_trip_is_exact(text):
    for vocabulary in (Vocabulary.from_words(text), Vocabulary.from_characters(text)):
        assert vocabulary.decode(vocabulary.encode(text)) == text
        assert vocabulary.encode("") == []
        assert vocabulary.decode([]) == ""


def test_vocabulary_unknown_token_names_it_and_its_place():
    vocabulary = Vocabulary.from_words("a b c")
    with pytest.raises(ValueError, match=r"'dog' at position 2 is not among the 3"):
        vocabulary.encode("a b dog")


def test_vocabulary_unknown_token_gets_the_unknown_id():
    vocabulary = Vocabulary.from_words("a b", special=["<end>", "<unknown>"], unknown="<unknown>")
    assert vocabulary.encode("b dog a <end>") == [3, 1, 2, 1]


def test_vocabulary_text_never_becomes_a_special_token():
    vocabulary = Vocabulary.from_words("a b", special=["<end>"])
    with pytest.raises(ValueError, match=r"'<end>' at position 1 is the name of a"):
        vocabulary.encode("a <end>")


@pytest.mark.parametrize("build", [Vocabulary.from_words, Vocabulary.from_characters, Vocabulary])
def test_vocabulary_empty_text(build):
    with pytest.raises(ValueError, match=r"tokens is empty"):
        build("")


@pytest.mark.parametrize("special", [["<a>", "<a>"], ["b"]])
def test_vocabulary_special_names_must_be_their_own(special):
    with pytest.raises(ValueError, match=r"repeated, or stand in the text too"):
        Vocabulary("abc", special=special)


def test_vocabulary_bad_special_and_text(unchecked):
    with pytest.raises(TypeError, match=r"special is the string '<end>'"):
        Vocabulary("abc", special="<end>")
    with pytest.raises(ValueError, match=r"unknown is '<u>'"):
        Vocabulary("abc", special=["<end>"], unknown="<u>")
    with pytest.raises(TypeError, match=r"text is a bytes"):
        Vocabulary.from_words(b"abc")
    with pytest.raises(TypeError, match=r"special is None"):
        Vocabulary("abc", special=None)
    with pytest.raises(TypeError, match=r"special holds 3"):
        Vocabulary("abc", special=[3])
    with pytest.raises(TypeError, match=r"tokens holds 3"):
        Vocabulary(["a", 3])


@pytest.mark.parametrize("names", [set])
def test_vocabulary_special_names_need_an_order(names, unchecked):
    with pytest.raises(TypeError, match=r"special is a set"):
        Vocabulary.from_words("a b", special=names(["<start>", "<end>"]))


def test_vocabulary_refuses_tokens_that_its_separator_would_cut():
    with pytest.raises(ValueError, match=r"'cat' is not a single character"):
        Vocabulary(["cat", "dog"])
    with pytest.raises(ValueError, match=r"'a cat' holds the separator"):
        Vocabulary(["a cat", "dog"], separator=" ")
    assert Vocabulary(["cat", "dog"], separator=" ").encode("dog cat") == [1, 0]


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        ([0, 1, 3], ValueError, r"ids\[2\] is 3"),
        ([[0, 1]], ValueError, r"ids has shape \(1, 2\)"),
        ([0.0], TypeError, "ids are float64"),
        ([1, 2**80], ValueError, r"ids\[1\] is 1208925819614629174706176"),
        ([[0], [1, 2]], ValueError, r"sequences of different lengths"),
    ],
)
def test_vocabulary_decode_bad_ids(ids, error, message):
    with pytest.raises(error, match=message):
        Vocabulary("abc").decode(ids)


@given(st.text(min_size=1), st.sampled_from([(), ("<e>",), ("<u>", "<e>")]))
def test_vocabulary_save_then_load_is_the_same_vocabulary(tmp_path_factory, text, special):
    path = tmp_path_factory.getbasetemp() / "vocabulary.json"
    unknown = "<u>" if "<u>" in special else None
    for build in (Vocabulary.from_words, Vocabulary.from_characters):
        vocabulary = build("x" + text, special=special, unknown=unknown)
        vocabulary.save(path)
        assert vars(Vocabulary.load(path)) == vars(vocabulary)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"unknown": "b"}, r"x.json: unknown is 'b'"),
        ({"separator": 3}, r"x.json: separator is 3"),
        ({"tokens": ["ab"]}, r"x.json: Token 'ab' is not a single character"),
        ({"merges": []}, r"x.json has the keys \['merges'"),
    ],
)
def test_vocabulary_load_corrupt_file(tmp_path, unchecked, change, message):
    content = json.dumps({"tokens": ["a"], "special": [], "unknown": None, "separator": ""} | change)
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        Vocabulary.load(tmp_path / "x.json")
    (tmp_path / "x.json").write_text(content[:-1])
    with pytest.raises(ValueError, match=r"x.json is not valid JSON"):
        Vocabulary.load(tmp_path / "x.json")


def test_vocabulary_load_and_save_nowhere(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no file"):
        Vocabulary.load(tmp_path / "none.json")
    with pytest.raises(FileNotFoundError, match=r"There is no folder"):
        Vocabulary("abc").save(tmp_path / "none" / "x.json")
