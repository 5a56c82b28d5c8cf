"""How text is cut into pieces, and how merges are learned."""

from collections import Counter

import pytest
from hypothesis import given, strategies as st
from patterns import GPT4, GPT4O

from plainformer.tokens.merges import (
    apply_merges,
    byte_alphabet,
    certain_pieces,
    check_pattern,
    count_pairs,
    learn_merges,
    merge_pair,
    pre_tokenise,
)

PATTERNS = [GPT4O, r"(?:ab)*c|.+", r"(?=a.*b)a|x+?y", r"(?i:ss|fi)|a++"]


def test_byte_alphabet_is_gpt2s():
    alphabet = byte_alphabet()
    assert sorted(alphabet) == list(range(256))
    assert len(set(alphabet.values())) == 256
    assert [alphabet[byte] for byte in b"A~ \n\t\x00\xad\xff"] == ["A", "~", "Ġ", "Ċ", "ĉ", "Ā", "Ń", "ÿ"]
    assert list(alphabet.values()) == sorted(alphabet.values())
    assert not any(character.isspace() for character in alphabet.values())


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Hello world", ["Hello", " world"]),
        ("it's they'll we've I'm he'd o'clock", ["it", "'s", " they", "'ll", " we", "'ve", " I", "'m", " he", "'d",
                                                 " o", "'", "clock"]),
        ("x=3.14;y", ["x", "=", "3", ".", "14", ";", "y"]),
        ("a   b\n\n c  ", ["a", "  ", " b", "\n\n", " c", "  "]),
        ("日本 42½ naïve", ["日本", " 42½", " naïve"]),
        ("🙂🙂 !?", ["🙂🙂", " !?"]),
        ("", []),
    ],
)  # fmt: skip
def test_pre_tokenise_by_hand(text, pieces):
    assert pre_tokenise(text) == pieces


@pytest.mark.parametrize(
    ("pattern", "text", "pieces"),
    [
        (GPT4, "She'LL pay 12345\n\n (now)", ["She", "'LL", " pay", " ", "123", "45", "\n\n", " (", "now", ")"]),
        (GPT4O, "don't McDonald/\n", ["don't", " Mc", "Donald", "/\n"]),
        (r"\p{N}", "ab12 c", ["ab", "1", "2", " c"]),  # what lies between two matches is a piece, too
        (r"(?i:ß)", "xSSẞ", ["x", "SS", "ẞ"]),  # capitals of one letter may be two
        (r"a|(b)\.", "cab.", ["c", "a", "b."]),
        (r"[^\]\-x]+", "ab]-", ["ab", "]-"]),
        (r"\s", "", []),
    ],
)
def test_pre_tokenise_by_another_pattern(pattern, text, pieces):
    assert pre_tokenise(text, pattern) == pieces


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (r"\w+", r"pattern has '\\\\w\+' at 0"),
        ("a+$", r"pattern has '\$' at 2"),
        ("a(?<=b)", r"pattern has '\(\?<=b\)' at 1"),
        ("(?P<name>a)", r"pattern has '\(\?P<name' at 0"),
        ("(*SKIP)a", r"pattern has '\(\*SKIP\)a' at 0"),
        ("[[a]]", r"pattern has '\[\[a\]\]' at 0"),
        ("ba{2}?", r"pattern has '\{2\}\?' at 2"),
        (r"\p{Greek}", r"pattern has '\\\\p\{Greek' at 0"),
        ("a)|(b", r"pattern 'a\)\|\(b' is not a regular"),
        ("a*", r"pattern 'a\*' matches the empty text"),
    ],
)
def test_check_pattern_refuses_what_others_may_read_otherwise(pattern, message):
    with pytest.raises(ValueError, match=message):
        check_pattern(pattern)
    with pytest.raises(ValueError, match=message):
        pre_tokenise("aab", pattern)


def test_check_pattern_wants_a_string_and_no_empty_piece(unchecked):
    with pytest.raises(TypeError, match=r"pattern is \['a'\]"):
        check_pattern(["a"])
    with pytest.raises(ValueError, match=r"matches an empty piece before a character"):
        pre_tokenise("ba", "(?=a)|b")


def test_certain_pieces_by_hand():
    assert certain_pieces("The dog") == ["The"]
    assert certain_pieces("The dog ") == ["The", " dog"]  # the space may belong to a word
    assert certain_pieces("it's") == ["it", "'s"]  # whatever follows, the ending ends
    assert certain_pieces("it'") == ["it"]
    assert certain_pieces("a  \n  ", GPT4) == ["a"]  # another line break would take all the spaces
    assert pre_tokenise("a  \n  ", GPT4) == ["a", "  \n", "  "]
    assert certain_pieces("") == []


@pytest.mark.parametrize("pattern", PATTERNS)
@given(st.text(st.sampled_from("ab'TreſßLc1 2x\n\r\t!/yé日")), st.integers(0, 30))
def test_certain_pieces_stay_whatever_follows_and_nothing_is_lost(pattern, text, cut):
    certain = certain_pieces(text[:cut], pattern)
    pieces = pre_tokenise(text, pattern)
    assert pieces[: len(certain)] == certain
    assert "".join(pieces) == text


# Learning


def words(**times):
    return {tuple(map(ord, word)): count for word, count in times.items()}


def spell(merges):
    """Write merges of ids, as `learn_merges` gives them for letters, as the tokens they make."""
    tokens = {n: chr(n) for n in range(256)}
    for n, (a, b) in enumerate(merges, start=256):
        tokens[n] = tokens[a] + tokens[b]
    return [tokens[256 + n] for n in range(len(merges))]


@pytest.mark.equation("eq-subwords-pair-count")
def test_count_pairs_by_hand():
    counts = count_pairs(words(low=5, lower=2, newest=6, widest=3, aaa=1))
    assert {chr(a) + chr(b): count for (a, b), count in counts.items()} == {
        "lo": 7, "ow": 7, "we": 8, "er": 2, "ne": 6, "ew": 6, "es": 9, "st": 9, "wi": 3, "id": 3, "de": 3, "aa": 2,
    }  # fmt: skip


def test_merge_pair_by_hand():
    assert merge_pair([1, 2, 1, 2, 2, 1], (1, 2), 9) == [9, 9, 2, 1]
    assert merge_pair([1, 1, 1, 1, 1], (1, 1), 9) == [9, 9, 1]
    assert merge_pair([2, 1], (1, 2), 9) == [2, 1]
    assert merge_pair([], (1, 2), 9) == []


@pytest.mark.equation("eq-subwords-best-pair")
def test_learn_merges_of_the_classic_four_words():
    merges = learn_merges(words(low=5, lower=2, newest=6, widest=3), 100)
    # 9 es (before st: e < s), 9 est, 7 lo (before ow), 7 low, 6 ew (before n|e, w|est), 6 new, 6 newest,
    # 3 dest (before i|d, w|i), 3 idest, 3 widest, 2 er (before low|e), 2 lower
    assert spell(merges) == [
        "es", "est", "lo", "low", "ew", "new", "newest", "dest", "idest", "widest", "er", "lower",
    ]  # fmt: skip
    assert learn_merges(words(low=5, lower=2, newest=6, widest=3), 4) == merges[:4]
    assert spell(learn_merges(words(low=5, lower=2, newest=6, widest=3), 100, min_count=7)) == spell(merges)[:4]


def test_learn_merges_wants_free_ids():
    assert learn_merges({(255, 1): 1}, 1) == [(255, 1)]
    with pytest.raises(ValueError, match=r"hold the id 256"):
        learn_merges({(256, 1): 1}, 1)
    assert learn_merges({(256, 1): 1}, 1, first_id=257) == [(256, 1)]


@pytest.mark.equation("eq-subwords-pair-count", "eq-subwords-best-pair")
@given(st.dictionaries(st.lists(st.integers(0, 3), max_size=12).map(tuple), st.integers(1, 5), max_size=6))
def test_learn_merges_equals_counting_everything_again(pieces):
    merges, now = [], dict(pieces)
    while counts := count_pairs(now):
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        new = Counter()
        for piece, times in now.items():
            new[tuple(merge_pair(piece, best, 256 + len(merges)))] += times
        merges.append(best)
        now = new
    assert learn_merges(pieces, 1000) == merges


# Applying


@pytest.mark.equation("eq-subwords-encode")
@given(st.lists(st.integers(0, 3), max_size=12).map(tuple), st.lists(st.integers(0, 3), max_size=12))
def test_apply_merges_equals_applying_each_in_order(text, piece):
    merges = learn_merges({text: 1}, 100)
    expected = piece
    for n, pair in enumerate(merges):
        expected = merge_pair(expected, pair, 256 + n)
    assert apply_merges(piece, {pair: (n, 256 + n) for n, pair in enumerate(merges)}) == expected
