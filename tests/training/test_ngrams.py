"""Counted models: `plainformer.training.ngrams`."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from plainformer.training.ngrams import NgramModel, estimated_discounts

TEXT = [0, 1, 0, 1, 2, 0, 1]  # "abababc…": pairs 01 three times, 10 once, 12 once, 20 once


@pytest.mark.equation("eq-real-text-kneser-ney")
def test_ngram_model_by_hand():
    # Before 0, 1, 2 stand {1, 2}, {0}, {1}: four kinds of pairs, so the unigram level counts 2, 1, 1 of 4.
    unigram = [(2 - 0.5 + 0.5 * 3 / 4) / 4, (1 - 0.5 + 0.5 * 3 / 4) / 4, (1 - 0.5 + 0.5 * 3 / 4) / 4, 0.5 * 3 / 4 / 4]
    model = NgramModel(TEXT, 2, 4, discount=0.5)
    # After 1: once 0 and once 2, two kinds out of two.
    assert model.probability(0, (1,)) == pytest.approx((1 - 0.5 + 0.5 * 2 * unigram[0]) / 2)
    assert model.probability(1, (1,)) == pytest.approx(0.5 * 2 * unigram[1] / 2)
    # After 0: three times 1, one kind out of three.
    assert model.probability(1, (0,)) == pytest.approx((3 - 0.5 + 0.5 * 1 * unigram[1]) / 3)
    # After 3, never seen: the level below.
    assert model.probability(2, (3,)) == pytest.approx(unigram[2])


@pytest.mark.equation("eq-real-text-kneser-ney")
def test_ngram_model_of_order_one_counts_tokens():
    model = NgramModel(TEXT, 1, 5, discount=0.25)
    expected = [(count - 0.25 * (count > 0) + 0.25 * 3 / 5) / 7 for count in (3, 3, 1, 0, 0)]
    np.testing.assert_allclose([model.probability(token, (2, 0)) for token in range(5)], expected)


@pytest.mark.equation("eq-real-text-modified-discounts")
def test_estimated_discounts_by_hand():
    # Four n-grams occur once, two twice, one three and one four times: the share is 4 / (4 + 2 * 2).
    assert estimated_discounts([1, 1, 1, 1, 2, 2, 3, 4]) == (
        1 - 2 * 0.5 * 2 / 4,
        2 - 3 * 0.5 * 1 / 2,
        3 - 4 * 0.5 * 1 / 1,
    )
    assert estimated_discounts([1, 2, 3]) == (0.75, 0.75, 0.75)
    assert estimated_discounts([1, 2, 3, *[4] * 30])[2] == 0


@pytest.mark.equation("eq-real-text-modified-discounts")
def test_ngram_model_takes_less_from_what_occurred_once():
    text = [int(token) for token in np.random.default_rng(3).zipf(1.3, size=2000) % 40]
    model = NgramModel(text, 2, 41, discount=None)
    once, twice, more = model.discounts[2]
    assert 0 < once < twice < more < 3
    pairs = Counter(pairwise(text))
    first, second = max(pairs, key=pairs.__getitem__)
    after = [count for (token, _), count in pairs.items() if token == first]
    taken = sum((once, twice, more)[min(count, 3) - 1] for count in after)
    expected = (pairs[first, second] - more + taken * model.probability(second, ())) / sum(after)
    assert model.probability(second, (first,)) == pytest.approx(expected)


@pytest.mark.equation("eq-real-text-kneser-ney")
@pytest.mark.parametrize(("order", "discount"), [(1, None), (2, 0.75), (5, None)])
def test_ngram_model_probabilities_sum_to_one(order, discount):
    text = np.random.default_rng(0).integers(6, size=60)
    model = NgramModel(text, order, 7, discount=discount)
    for context in [(), (3,), (6,), (0, 1), (5, 4, 3, 2, 1), (0, 6, 2, 2)]:
        probabilities = [model.probability(token, context) for token in range(7)]
        assert sum(probabilities) == pytest.approx(1)
        assert min(probabilities) > 0


def test_ngram_model_looks_at_order_minus_one_tokens():
    text = np.random.default_rng(1).integers(4, size=80)
    model = NgramModel(text, 3, 4)
    assert model.probability(2, (0, 3, 1)) == model.probability(2, (2, 3, 1))
    assert model.probability(2, (0, 3, 1)) != model.probability(2, (0, 2, 1))


def test_ngram_model_loss_is_the_mean_surprise():
    model = NgramModel(TEXT, 3, 4)
    text = [1, 2, 0, 3]
    pairs = [(2, (1,)), (0, (1, 2)), (3, (2, 0))]
    expected = -sum(math.log(model.probability(token, context)) for token, context in pairs) / 3
    assert model.loss(text) == pytest.approx(expected)


def test_ngram_model_refuses_too_short_a_text_and_ids_out_of_range():
    with pytest.raises(ValueError, match="expected at least order=3"):
        NgramModel([0, 1], 3, 4)
    with pytest.raises(ValueError, match=r"tokens\[1\] is 9"):
        NgramModel([0, 9], 2, 4)
    with pytest.raises(ValueError, match="expected at least 2"):
        NgramModel(TEXT, 2, 4).loss([1])
