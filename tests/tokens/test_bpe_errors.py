"""Chapter 01: what byte-pair encoding cannot be trained from."""

import pytest

from plainformer.tokens.bpe import BytePairEncoder

END = "<|end|>"


def test_train_bad_input(unchecked):
    with pytest.raises(ValueError, match=r"text is empty; expected text to learn merges from"):
        BytePairEncoder.train("", 300)
    with pytest.raises(TypeError, match=r"text is a bytes; expected a string"):
        BytePairEncoder.train(b"abc", 300)
    with pytest.raises(ValueError, match=r"vocab_size is 256; expected at least 256 bytes \+ 1 special"):
        BytePairEncoder.train("abc", 256, special=[END])
    with pytest.raises(TypeError, match=r"special is the string '<\|end\|>'; expected a collection"):
        BytePairEncoder.train("abc", 300, special=END)
    with pytest.raises(TypeError, match=r"special is a set, whose order differs from run to run; expected a list"):
        BytePairEncoder.train("abc", 300, special={END, "<pad>"})
    for special, message in (
        (None, r"special is None; expected a collection"),
        ([3], r"special holds 3; expected names"),
    ):
        with pytest.raises(TypeError, match=message):
            BytePairEncoder.train("abc", 300, special=special)
    for vocab_size in (257.5, "300", None):
        with pytest.raises(TypeError, match=rf"vocab_size is {vocab_size!r}; expected a whole number"):
            BytePairEncoder.train("ab ab", vocab_size)
    for special in (["a"], [END, END], ["ab"]):
        with pytest.raises(ValueError, match=r"repeat each other or a token of the text; rename them"):
            BytePairEncoder.train("ab ab ab", 300, special=special)


def test_special_tokens_come_in_the_order_of_their_ids():
    trained = BytePairEncoder.train("ab ab", 300, special=["<z>", "<a>"])
    for special in ({"<a>", "<z>"}, ["<a>", "<z>"]):
        assert list(BytePairEncoder(trained.vocabulary, trained.merges, special).special) == ["<z>", "<a>"]
