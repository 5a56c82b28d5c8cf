"""Text of ids as they come: whole characters only, and joined the text of all."""

import pytest
import regex
from hypothesis import given, strategies as st

import plainformer as pf

ENCODER = pf.BytePairEncoder.train("the cat, the hat — 👩‍👧 und 🇩🇪, Grüße, é, 中文", 275, special=["<end>"])
JOINED = [
    "👩‍👧",
    "🇩🇪🇫🇷",
    "👍🏽",
    "🏴󠁧󠁢󠁳󠁣󠁴󠁿",
    "e\u0301",
    "\r\n",
    "각",
    "\u1100\u1161\u11a8",
    "क्षि",
    "❤️‍🔥",
    "中",
    "a",
    " ",
    "\ud800",
]
TEXTS = st.lists(st.one_of(st.sampled_from(JOINED), st.text(max_size=3)), max_size=8).map("".join)


def pieces_of(text: str) -> set[int]:
    """Where a reader sees one character end and the next begin."""
    return {0, len(text), *(match.end() for match in regex.finditer(r"\X", text))}


def cuts_of(pieces: list[str]) -> set[int]:
    """Where a text was cut."""
    ends = [0]
    for piece in pieces:
        ends.append(ends[-1] + len(piece))
    return set(ends)


@given(TEXTS)
def test_decode_stream_shows_whole_characters_only(text):
    for tokenizer in (ENCODER, pf.Vocabulary(f"{text}a"), pf.Vocabulary([*text.split(" "), "a"], separator=" ")):
        ids = tokenizer.encode(text)
        found = list(tokenizer.decode_stream(iter(ids)))
        assert "".join(found) == tokenizer.decode(ids) == text
        assert cuts_of(found) <= pieces_of(text)
        assert "" not in found


@given(st.lists(st.integers(0, len(ENCODER) - 1), max_size=30))
def test_decode_stream_of_any_ids_joins_to_what_decode_returns(ids):
    found = list(ENCODER.decode_stream(ids))
    text = ENCODER.decode(ids)
    assert "".join(found) == text
    assert cuts_of(found) <= pieces_of(text)


@given(TEXTS, st.binary(max_size=6), st.data())
def test_decode_stream_of_bytes_cut_anywhere(text, odd, data):
    """Bytes that are no text among those that are: each comes as a token of its own."""
    whole = text.encode("utf-8", "surrogatepass")
    place = data.draw(st.integers(0, len(whole)))
    ids = [ENCODER._byte_ids[byte] for byte in whole[:place] + odd + whole[place:]]
    assert "".join(ENCODER.decode_stream(ids)) == ENCODER.decode(ids)


def test_decode_stream_yields_as_soon_as_the_next_character_begins():
    taken = []

    def ids():
        for number in ENCODER.encode("xé🇩🇪q"):
            taken.append(number)
            yield number

    stream = ENCODER.decode_stream(ids())
    assert next(stream) == "x"
    assert ENCODER.decode(taken) in ("xé", "x\ufffd", "xé\ufffd")
    assert list(stream) == ["é", "🇩🇪", "q"]


def test_decode_keeps_a_lone_surrogate_beside_bytes_that_are_no_text():
    data = "a\ud800b".encode("utf-8", "surrogatepass") + b"\xff\xe4\xb8z"
    assert ENCODER.decode([ENCODER._byte_ids[byte] for byte in data]) == "a\ud800b\ufffd\ufffdz"


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("tokenizer", [ENCODER, pf.Vocabulary("ab")])
def test_decode_stream_names_what_is_no_stream_of_ids(tokenizer):
    with pytest.raises(TypeError, match=r"ids is 3"):
        tokenizer.decode_stream(3)
    with pytest.raises(ValueError, match=r"is 999; expected 0 to"):
        list(tokenizer.decode_stream([0, 999]))
    with pytest.raises(TypeError, match=r"expected whole numbers"):
        list(tokenizer.decode_stream("ab"))
