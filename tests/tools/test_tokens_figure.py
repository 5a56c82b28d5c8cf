"""The live figure of byte-pair encoding has vocabularies of the Python reference, and lists of countries by Babel."""

import json

import babel
import pytest
import tokens_figure

import plainformer as pf
from plainformer.tokens.merges import byte_alphabet


@pytest.fixture(scope="module")
def stored():
    return json.loads(tokens_figure.NUMBERS.read_text("utf-8"))


def test_tokens_figure_has_merges_that_the_package_takes(stored):
    """They are those of the Python that the file names; another one's reference differs a little."""
    tokens = list(byte_alphabet().values())
    for left, right in stored["merges"]:
        tokens.append(tokens[left] + tokens[right])
    assert len(set(tokens)) == len(tokens) == tokens_figure.VOCAB_SIZE
    first = tokens[256:356]
    assert {"ĠĠ", "--"} <= set(first[:4])
    assert {"Ġthe", "in", "Ġa", "__", "=="} <= set(first)  # as in the chapter
    assert stored["python"].startswith("3.")


def test_tokens_figure_words_and_characters_are_those_of_the_reference(stored):
    text = pf.data.python_reference()
    assert len(set(stored["words"])) == tokens_figure.NUM_WORDS
    assert sum(word in text for word in stored["words"]) > 0.99 * tokens_figure.NUM_WORDS
    assert len(set(stored["characters"]) & set(text)) > 95


def test_tokens_figure_lists_the_same_countries(stored):
    made = tokens_figure.lists_of_countries()
    assert [language["code"] for language in stored["languages"]] == list(tokens_figure.LANGUAGES)
    assert made[0]["text"] == "Germany, Japan, Egypt, Brazil, and India"
    if stored["babel"] == babel.__version__:  # others may have newer names
        assert stored["languages"] == made
