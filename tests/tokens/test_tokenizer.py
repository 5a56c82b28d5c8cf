"""Tokenizers of either kind, written to JSON and read back."""

import pytest

from plainformer.tokens.bpe import BytePairEncoder
from plainformer.tokens.tokenizer import Tokenizer, tokenizer_from_json
from plainformer.tokens.vocabulary import Vocabulary

TEXT = "she sells sea shells 日本 naïve 🙂\n"
TOKENIZERS = [
    Vocabulary.from_characters(TEXT, special=["<end>", "<unknown>"], unknown="<unknown>"),
    Vocabulary.from_words(TEXT, special=["<end>"]),
    BytePairEncoder.train(TEXT, 270, special=["<end>"]),
]


@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=["characters", "words", "bytes"])
def test_tokenizer_from_json_returns_the_same_tokenizer(tokenizer):
    again = tokenizer_from_json(tokenizer.to_json())
    assert type(again) is type(tokenizer)
    assert vars(again) | {"_cache": {}} == vars(tokenizer) | {"_cache": {}}
    assert again.decode(again.encode(TEXT)) == TEXT
    assert isinstance(tokenizer, Tokenizer)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", r"^the tokenizer holds a list"),
        ("{}", r"^the tokenizer has the keys \[\]"),
        ('{"model": {}, "version": "1.0"}', r"has the keys \['model', 'version'\]"),
        ('{"vocabulary": {}, "merges": [], "special": [], "pattern": "a", "whole_pieces": false}', r"^the tokenizer"),
        (TOKENIZERS[2].to_json()[:-9], r"^the tokenizer is not valid JSON"),
    ],
)
def test_tokenizer_from_json_of_something_else(text, message):
    with pytest.raises(ValueError, match=message):
        tokenizer_from_json(text)
