"""Texts that occur twice, and held-out texts that training has read: by hand, by chance, and what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import plainformer as pf
from plainformer.data.copies import NearDuplicate

SETS = st.sets(st.integers(0, 9), min_size=1)
WORDS = [f"w{number}" for number in range(40)]


def text_of(numbers):
    return " ".join(WORDS[number] for number in numbers)


def test_exact_duplicates_differ_in_case_and_white_space_only():
    texts = ["To be", "or not", "to\n be ", "OR NOT", "to be", "to, be"]
    assert pf.data.exact_duplicates(texts) == [[0, 2, 4], [1, 3]]
    assert pf.data.exact_duplicates(["a", "b"]) == []


@pytest.mark.equation("eq-recipes-jaccard")
@given(SETS, SETS)
def test_jaccard_counts_what_is_common(one, other):
    common = [x for x in one if x in other]
    found = pf.data.jaccard(one, other)
    assert found == pytest.approx(len(common) / (len(one) + len(other) - len(common)))
    assert found == pf.data.jaccard(other, one)
    assert pf.data.jaccard(one, one) == 1


@pytest.mark.equation("eq-recipes-minhash")
@settings(max_examples=30)
@given(st.integers(1, 20), st.integers(0, 20), st.integers(0, 20), st.integers(0, 5))
def test_minima_agree_as_often_as_the_sets_are_similar(common, left, right, seed):
    words = [(word,) for word in WORDS * 2]
    both, mine, theirs = words[:common], [("left", *w) for w in words[:left]], [("right", *w) for w in words[:right]]
    one, other = {*both, *mine}, {*both, *theirs}
    agree = np.mean(pf.data.min_hashes(one, 4000, seed) == pf.data.min_hashes(other, 4000, seed))
    similarity = pf.data.jaccard(one, other)
    assert abs(agree - similarity) <= 5 * math.sqrt(similarity * (1 - similarity) / 4000)


def test_minima_are_the_same_in_every_process():
    """Python's own `hash` of a string is another one each time."""
    found = pf.data.min_hashes({("to", "be"), ("be", "or")}, 2)
    assert found.tolist() == [4265695496372893771, 5435111701634616330]


@pytest.mark.equation("eq-recipes-bands")
def test_bands_find_a_pair_as_often_as_their_equation_says():
    assert pf.data.found_by_bands(0.0, 3, 2) == 0
    assert pf.data.found_by_bands(1.0, 3, 2) == 1
    agree = np.random.default_rng(0).random((20_000, 4, 3)) < 0.6
    share = agree.all(axis=2).any(axis=1).mean()
    assert abs(share - pf.data.found_by_bands(0.6, bands=4, rows=3)) < 0.01


def test_near_duplicates_have_the_similarity_of_their_shingles():
    texts = [text_of(range(20)), text_of([*range(19), 30]), text_of(range(20, 40)), text_of(range(20)).upper() + "!"]
    found = pf.data.near_duplicates(texts, shingle_len=2)
    assert found == [NearDuplicate(0, 1, 18 / 20), NearDuplicate(0, 3, 1.0), NearDuplicate(1, 3, 18 / 20)]
    assert pf.data.near_duplicates(texts, 0.95, shingle_len=2) == [NearDuplicate(0, 3, 1.0)]
    assert pf.data.near_duplicates(["yes", "no", "Yes."]) == [NearDuplicate(0, 2, 1.0)]
    farther = [text_of(range(20)), text_of([*range(17), 30, 31, 32])]
    assert pf.data.near_duplicates(farther, shingle_len=2) == []
    assert pf.data.near_duplicates(farther, 0.7, shingle_len=2) == [NearDuplicate(0, 1, 16 / 22)]


@settings(max_examples=30)
@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=2, max_size=8))
def test_near_duplicates_are_all_pairs_above_and_none_below(lists):
    """With a hundred bands of one row a pair of similarity 0.4 is missed once in 10²² times."""
    texts = [text_of(numbers) for numbers in lists]
    found = pf.data.near_duplicates(texts, 0.4, shingle_len=2, num_hashes=100, bands=100)

    def shingles(words):
        return {tuple(words[i : i + 2]) for i in range(max(len(words) - 1, 1))}

    sets = [shingles(text.split()) for text in texts]
    expected = [
        (one, other, len(sets[one] & sets[other]) / len(sets[one] | sets[other]))
        for one in range(len(sets))
        for other in range(one + 1, len(sets))
    ]
    assert found == [pair for pair in expected if pair[2] >= 0.4]


@pytest.mark.equation("eq-recipes-leak")
def test_shared_ngrams_count_runs_of_words():
    held_out = [text_of(range(10)), text_of([0, 1, 2, 30, 3, 4, 5]), "Yes!"]
    training = [text_of(range(5)), text_of(range(30, 40)), "yes"]
    np.testing.assert_allclose(pf.data.shared_ngrams(held_out, training, 3), [3 / 8, 1 / 5, 1])
    np.testing.assert_allclose(pf.data.shared_ngrams(held_out, training, 4), [2 / 7, 0, 1])
    np.testing.assert_allclose(pf.data.shared_ngrams(held_out[:1], training, 1), [0.5])
    np.testing.assert_allclose(pf.data.shared_ngrams([list("anna")], [list("hanna"), list("ann")], 4), [1])
    assert pf.data.shared_ngrams(["w0 w1 w2"], ["w0 w1 w2 w3"]) == 0  # a short text is one run as a whole


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pf.data.near_duplicates(["a"], 1.2), "similarity is 1.2"),
        (lambda: pf.data.near_duplicates(["a"], bands=30), "bands is 30"),
        (lambda: pf.data.near_duplicates(["a", "?"]), r"texts\[1\] is '\?', without a word"),
        (lambda: pf.data.exact_duplicates(["a", ""]), r"texts\[1\] is '', without a word"),
        (lambda: pf.data.jaccard(set(), set()), "Both sets are empty"),
        (lambda: pf.data.shared_ngrams(["a"], ["b"], 0), "n is 0;"),
        (lambda: pf.data.shared_ngrams(["a"], [[]]), r"training\[0\] is \[\], without a word"),
    ],
)
def test_copies_refuse(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_single_text_is_no_list_of_texts():
    for call in (pf.data.near_duplicates, lambda texts: pf.data.shared_ngrams(texts, ["a"])):
        with pytest.raises(TypeError, match=r"is of type str"):
            call("to be")
