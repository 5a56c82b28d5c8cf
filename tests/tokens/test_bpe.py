"""Byte-level byte-pair encoding."""

import pytest
from hypothesis import given, strategies as st

from plainformer.data.text import python_reference
from plainformer.tokens.bpe import BytePairEncoder
from plainformer.tokens.merges import GPT2_PATTERN, byte_alphabet, merge_pair, pre_tokenise

TEXT = "she sells sea shells; the shells she sells are sea shells, she's sure. 12 12 日本 日本 naïve 🙂🙂\n\n  ok"
END = "<|end|>"


@pytest.fixture(scope="module")
def encoder():
    return BytePairEncoder.train(TEXT, 290, special=[END, "<|end|><|end|>"])


@pytest.fixture(scope="module")
def reference_encoder():
    """An encoder trained on the Python reference."""
    return BytePairEncoder.train(python_reference(), 1000)


def test_train_learns_what_repeats(encoder):
    assert encoder.decode([256]) == " s"  # a space and an s: 9 times, as often as "he", but "s" was an earlier id
    assert encoder.merges[0] == ("Ġ", "s")
    assert len(encoder) == 290
    assert len(encoder.merges) == 290 - 256 - 2
    assert encoder.special == {END: 288, "<|end|><|end|>": 289}
    assert repr(encoder).startswith("BytePairEncoder(290 tokens, 32 merges, special ['<|end|>'")


def test_train_stops_when_nothing_is_left():
    assert BytePairEncoder.train("ababab", 1000).merges == (("a", "b"), ("ab", "ab"), ("abab", "ab"))
    assert BytePairEncoder.train("ababab", 1000, min_count=2).merges == (("a", "b"), ("ab", "ab"))
    assert BytePairEncoder.train("ababab", 256).merges == ()


def test_special_tokens_come_in_the_order_of_their_ids():
    trained = BytePairEncoder.train("ab ab", 300, special=["<z>", "<a>"])
    for special in ({"<a>", "<z>"}, ["<a>", "<z>"]):
        assert list(BytePairEncoder(trained.vocabulary, trained.merges, special).special) == ["<z>", "<a>"]


def test_train_bad_input(unchecked):
    with pytest.raises(ValueError, match=r"text is empty"):
        BytePairEncoder.train("", 300)
    with pytest.raises(TypeError, match=r"text is of type bytes"):
        BytePairEncoder.train(b"abc", 300)
    with pytest.raises(ValueError, match=r"vocab_size is 256"):
        BytePairEncoder.train("abc", 256, special=[END])
    with pytest.raises(TypeError, match=r"special is a set, whose order differs each"):
        BytePairEncoder.train("abc", 300, special={END, "<pad>"})
    for special in (["a"], [END, END]):
        with pytest.raises(ValueError, match=r"which is among the tokens already"):
            BytePairEncoder.train("ab ab ab", 300, special=special)


def test_train_by_another_pattern():
    encoder = BytePairEncoder.train("123 123 123 ab12 ", 270, pattern=r"\p{N}|\s")
    assert encoder.pattern == r"\p{N}|\s"
    assert encoder.merges == (("a", "b"),)  # each digit is a piece of its own
    assert encoder.decode(encoder.encode("ab 12")) == "ab 12"
    for call in (
        lambda: BytePairEncoder.train("ab", 270, pattern="(a"),
        lambda: BytePairEncoder(encoder.vocabulary, encoder.merges, pattern="(a"),
    ):
        with pytest.raises(ValueError, match=r"pattern '\(a' is not a regular expression"):
            call()


# Encoding and decoding


@pytest.mark.equation("eq-subwords-encode")
def test_encode_by_hand():
    encoder = BytePairEncoder.train("low low low lower newer", 256 + 4)
    # " low" and "lower" hold l-o 4 times, o-w 4, so "lo", "low", then w-e 1... " low" (space = Ġ, a large id) 3 times
    assert [a + b for a, b in encoder.merges] == ["lo", "low", "Ġlow", "er"]
    assert encoder.encode("low slower") == [257, 220, ord("s") - 33, 257, 259]
    assert encoder.tokens[257:] == (b"low", b" low", b"er")


@pytest.mark.equation("eq-subwords-encode")
@given(st.text(st.sampled_from("shel .'\n日1")))
def test_encode_equals_applying_every_merge_in_order(encoder, text):
    expected = []
    for piece in pre_tokenise(text):
        ids = [encoder.vocabulary[byte_alphabet()[byte]] for byte in piece.encode()]
        for a, b in encoder.merges:
            ids = merge_pair(ids, (encoder.vocabulary[a], encoder.vocabulary[b]), encoder.vocabulary[a + b])
        expected += ids
    assert encoder.encode(text) == expected


SURROGATES = st.sampled_from(["\ud800", "\udcff", "\ud83d\ude42"])


@given(st.text() | st.text(st.sampled_from(TEXT)), SURROGATES)
def test_encode_then_decode_is_exact(encoder, text, surrogates):
    assert encoder.decode(encoder.encode(text)) == text
    assert encoder.encode_bytes(text.encode()) == encoder.encode(text)
    assert encoder.decode(encoder.encode(text + surrogates + text)) == text + surrogates + text


@given(st.binary())
def test_encode_bytes_then_decode_bytes_is_exact(encoder, data):
    assert encoder.decode_bytes(encoder.encode_bytes(data)) == data


def test_encode_then_decode_is_exact_for_the_reference(reference_encoder):
    text = python_reference()
    ids = reference_encoder.encode(text)
    assert reference_encoder.decode(ids) == text
    assert len(reference_encoder) == 1000
    assert len(ids) < 0.4 * len(text.encode())


def test_decode_half_a_character(encoder):
    ids = encoder.encode_bytes("é🙂".encode()[:-1])
    assert encoder.decode(ids) == "é\ufffd"


def test_decode_bad_ids(encoder):
    with pytest.raises(ValueError, match=r"ids\[1\] is 290"):
        encoder.decode([0, 290])
    with pytest.raises(ValueError, match=r"ids\[0\] is -1"):
        encoder.decode_bytes([-1])
    assert encoder.decode([]) == ""


def test_encode_never_leaks_a_special_token(encoder):
    text = f"she{END}sells{END}"
    ids = encoder.encode(text)
    assert not set(ids) & set(encoder.special.values())
    assert encoder.decode(ids) == text
    assert not set(encoder.encode_bytes(text.encode())) & set(encoder.special.values())


def test_encode_allows_a_special_token_by_name(encoder):
    end = encoder.special[END]
    text = f"she{END}sells{END}"
    expected = [*encoder.encode("she"), end, *encoder.encode("sells"), end]
    assert encoder.encode(text, allowed_special={END}) == expected
    assert encoder.decode(expected) == text
    # only the name that is allowed, and the longest that fits
    assert encoder.encode(END, allowed_special={END + END}) == encoder.encode(END)
    assert encoder.encode(END + END, allowed_special={END, END + END}) == [encoder.special[END + END]]
    assert encoder.encode(END + END, allowed_special={END}) == [end, end]


def test_encode_bad_input(encoder, unchecked):
    with pytest.raises(ValueError, match=r"allowed_special names \['<pad>'\]"):
        encoder.encode("abc", allowed_special={END, "<pad>"})
    with pytest.raises(TypeError, match=r"allowed_special is the string '<\|end\|>'"):
        encoder.encode("abc", allowed_special=END)
    with pytest.raises(TypeError, match=r"allowed_special is None"):
        encoder.encode("abc", allowed_special=None)
    with pytest.raises(TypeError, match=r"data is a str"):
        encoder.encode_bytes("abc")
    with pytest.raises(TypeError, match=r"text is a bytes"):
        encoder.encode(b"abc")


def test_encode_whole_pieces_by_hand():
    numbers = {character: n for n, character in enumerate([*byte_alphabet().values(), "an", "anb", "bn", "<e>"])}
    merges = [("a", "n"), ("an", "b")]
    parts = {"vocabulary": numbers, "merges": merges, "special": ["<e>"]}
    with pytest.raises(ValueError, match=r"no merge makes 1 tokens of the vocabulary"):
        BytePairEncoder(**parts)
    encoder = BytePairEncoder(**parts, whole_pieces=True)
    assert encoder.encode("bn anb bna") == [258, 220, 257, 220, numbers["b"], numbers["n"], numbers["a"]]
    assert encoder.encode("<e>") == [numbers[sign] for sign in "<e>"]
    with pytest.raises(ValueError, match=r"no merge makes 1 tokens of the vocabulary"):
        BytePairEncoder(numbers | {"b n": 260}, merges, ["<e>"], whole_pieces=True)
    with pytest.raises(TypeError, match=r"whole_pieces is 1"):
        BytePairEncoder(**parts, whole_pieces=1)


# Streams


@pytest.mark.parametrize("pattern", [GPT2_PATTERN, r"\s*\n|\s|(?i:she's)|ab(?!c)|[a-z]+"])
@given(
    st.lists(st.sampled_from([*"shel .'\n日1<|end|>\ud83d\ude42", END, END + END, "sells "])).map("".join),
    st.lists(st.integers(0, 40)).map(sorted),
)
def test_encode_stream_equals_encode_of_the_whole(encoder, pattern, whole, cuts):
    other = BytePairEncoder(encoder.vocabulary, encoder.merges, encoder.special, pattern)
    texts = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, None], strict=True)]
    for allowed in ((), [END], list(encoder.special)):
        expected = other.encode(whole, allowed_special=allowed)
        assert list(other.encode_stream(texts, allowed_special=allowed)) == expected
        assert list(other.encode_stream(whole, allowed_special=allowed)) == expected  # letter by letter


def test_encode_stream_yields_early_and_holds_little(encoder):
    given_out, longest = 0, 0

    def lines():
        for n in range(2_000):
            nonlocal given_out
            given_out += len(line := f"she sells {n} sea shells, she's sure{END}\n")
            yield line

    done = 0
    for number in encoder.encode_stream(lines(), allowed_special=[END]):
        longest = max(longest, given_out - done)  # characters that have come, but have no ids yet
        done += len(encoder.tokens[number])
    assert done == given_out > 80_000
    assert longest < 150


def test_encode_stream_of_a_long_piece(encoder):
    long = "shells" * 10_000
    ids = encoder.encode(long)
    assert list(encoder.encode_stream(long)) == ids
    assert encoder.decode(ids) == long


def test_encode_stream_bad_input(encoder, unchecked):
    with pytest.raises(TypeError, match=r"texts is 5"):
        encoder.encode_stream(5)
    with pytest.raises(TypeError, match=r"text is a bytes"):
        list(encoder.encode_stream(["a", b"b"]))
    with pytest.raises(ValueError, match=r"allowed_special names \['<pad>'\]"):  # at once, before the first id
        encoder.encode_stream(["a"], allowed_special=["<pad>"])


def test_encode_cache_is_bounded(encoder):
    other = BytePairEncoder(encoder.vocabulary, encoder.merges, encoder.special)
    other.encode("shells" * 100)
    assert not other._cache  # a long piece would take much room, and seldom comes again
    other._cache.update((str(n).encode(), []) for n in range(50_000))
    assert other.encode("shells") == encoder.encode("shells")
    assert len(other._cache) == 1


def test_names_of_special_tokens_are_cut_out_before_pairs_are_counted():
    text = "low lower lowest<|endoftext|>new newer newest<|endoftext|>" * 20
    trained = BytePairEncoder.train(text, 280, special=["<|endoftext|>"])
    apart = BytePairEncoder.train("low lower lowest\nnew newer newest\n" * 20, 280)
    assert not [pair for pair in trained.merges if set("".join(pair)) & set("<|>df")]
    assert {*trained.merges} <= {*apart.merges} | {("Ċ", "n"), ("Ċ", "l")}
