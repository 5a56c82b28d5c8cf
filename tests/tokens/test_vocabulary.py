"""Chapter 01: vocabularies of words and of characters."""

import json

import numpy as np
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


def test_vocabulary_characters_by_hand():
    vocabulary = Vocabulary.from_characters("banana")
    assert vocabulary.tokens == ("a", "b", "n")
    assert vocabulary.encode("nab") == [2, 0, 1]
    assert vocabulary.decode(np.array([1, 0, 2])) == "ban"


def test_vocabulary_does_not_depend_on_the_order_of_its_tokens():
    assert Vocabulary(["b", "a", "c", "a"]).tokens == Vocabulary(iter("cab")).tokens == ("a", "b", "c")


@pytest.mark.equation("eq-tokens-vocabulary")
@given(st.text(min_size=1))
def test_vocabulary_round_trip_is_exact(text):
    for vocabulary in (Vocabulary.from_words(text), Vocabulary.from_characters(text)):
        assert vocabulary.decode(vocabulary.encode(text)) == text
        assert vocabulary.encode("") == []
        assert vocabulary.decode([]) == ""


def test_vocabulary_keeps_repeated_and_outer_spaces():
    text = "  a  b\n\tc "
    vocabulary = Vocabulary.from_words(text)
    assert vocabulary.decode(vocabulary.encode(text)) == text


def test_vocabulary_unknown_token_names_it_and_its_place():
    vocabulary = Vocabulary.from_words("a b c")
    with pytest.raises(ValueError, match=r"'dog' at position 2 is not among the 3 tokens.*unknown='<unknown>'"):
        vocabulary.encode("a b dog")


def test_vocabulary_unknown_token_gets_the_unknown_id():
    vocabulary = Vocabulary.from_words("a b", special=["<end>", "<unknown>"], unknown="<unknown>")
    assert vocabulary.encode("b dog a <end>") == [3, 1, 2, 1]


def test_vocabulary_text_never_becomes_a_special_token():
    vocabulary = Vocabulary.from_words("a b", special=["<end>"])
    with pytest.raises(ValueError, match=r"'<end>' at position 1 is the name of a special token"):
        vocabulary.encode("a <end>")


@pytest.mark.parametrize("build", [Vocabulary.from_words, Vocabulary.from_characters, Vocabulary])
def test_vocabulary_empty_text(build):
    with pytest.raises(ValueError, match=r"tokens is empty.*Is the text empty"):
        build("")


@pytest.mark.parametrize("special", [["<a>", "<a>"], ["b"]])
def test_vocabulary_special_names_must_be_their_own(special):
    with pytest.raises(ValueError, match=r"repeated, or stand in the text too"):
        Vocabulary("abc", special=special)


def test_vocabulary_bad_special_and_text(unchecked):
    with pytest.raises(TypeError, match=r"special is the string '<end>'; expected .* \['<end>'\]"):
        Vocabulary("abc", special="<end>")
    with pytest.raises(ValueError, match=r"unknown is '<u>'; expected one of the special tokens \['<end>'\]"):
        Vocabulary("abc", special=["<end>"], unknown="<u>")
    with pytest.raises(TypeError, match=r"text is a bytes; expected a string"):
        Vocabulary.from_words(b"abc")
    with pytest.raises(TypeError, match=r"special is None; expected a collection of names"):
        Vocabulary("abc", special=None)
    with pytest.raises(TypeError, match=r"special holds 3; expected names, each a string"):
        Vocabulary("abc", special=[3])
    with pytest.raises(TypeError, match=r"tokens holds 3; expected strings"):
        Vocabulary(["a", 3])


@pytest.mark.parametrize("names", [set, frozenset])
def test_vocabulary_special_names_need_an_order(names, unchecked):
    with pytest.raises(TypeError, match=r"special is a set, .* expected a list, such as \['<end>', '<start>'\]"):
        Vocabulary.from_words("a b", special=names(["<start>", "<end>"]))


def test_vocabulary_refuses_tokens_that_its_separator_would_cut():
    with pytest.raises(ValueError, match=r"'cat' is not a single character, .* For words, pass separator=' '"):
        Vocabulary(["cat", "dog"])
    with pytest.raises(ValueError, match=r"'a cat' holds the separator ' ', which would cut it"):
        Vocabulary(["a cat", "dog"], separator=" ")
    assert Vocabulary(["cat", "dog"], separator=" ").encode("dog cat") == [1, 0]


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        ([0, 1, 3], ValueError, r"ids\[2\] is 3; expected 0 to 2, as there are 3 tokens"),
        ([0, -1], ValueError, r"ids\[1\] is -1; expected 0 to 2"),
        ([[0, 1]], ValueError, r"ids has shape \(1, 2\); expected \(seq,\)"),
        ([0.0], TypeError, "ids are float64; expected whole numbers"),
        (1, ValueError, r"ids has shape \(\); expected \(seq,\). For a single id, pass \[1\]"),
        ([2**63, 1], ValueError, r"ids\[0\] is 9223372036854775808; expected 0 to 2"),
        ([1, 2**80], ValueError, r"ids\[1\] is 1208925819614629174706176; expected 0 to 2"),
        ([[0], [1, 2]], ValueError, r"sequences of different lengths; expected one sequence, not a batch"),
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
        ({"unknown": "b"}, r"x.json: unknown is 'b'; expected one of the special tokens"),
        ({"separator": 3}, r"x.json: separator is 3; expected a string, such as ' '"),
        ({"special": 3}, r"x.json: special is 3; expected a collection of names"),
        ({"tokens": [["a"]]}, r"x.json: tokens holds \['a'\]; expected strings"),
        ({"tokens": ["ab"]}, r"x.json: Token 'ab' is not a single character"),
        (
            {"merges": []},
            r"x.json has the keys \['merges', .*expected tokens, special, unknown, separator, as a",
        ),
    ],
)
def test_vocabulary_load_corrupt_file(tmp_path, unchecked, change, message):
    content = json.dumps({"tokens": ["a"], "special": [], "unknown": None, "separator": ""} | change)
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        Vocabulary.load(tmp_path / "x.json")
    (tmp_path / "x.json").write_text(content[:-1])
    with pytest.raises(ValueError, match=r"x.json is not valid JSON: .*cut short"):
        Vocabulary.load(tmp_path / "x.json")


def test_vocabulary_load_and_save_nowhere(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no file"):
        Vocabulary.load(tmp_path / "none.json")
    with pytest.raises(FileNotFoundError, match=r"There is no folder"):
        Vocabulary("abc").save(tmp_path / "none" / "x.json")
