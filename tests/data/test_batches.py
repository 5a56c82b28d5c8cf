"""Batches: buckets that leave little padding, drawn so that a run can resume, or each example once."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.data.batches import consecutive_batches, epoch_batches, length_buckets, random_batches
from plainformer.data.padding import PaddedTexts, pad_texts


def texts_of(lengths):
    """Texts of these lengths, each of a token of its own."""
    return [[number] * length for number, length in enumerate(lengths)]


def room(buckets):
    """How many places the texts take when each bucket is padded to its longest."""
    return sum(len(bucket) * max(map(len, bucket)) for bucket in buckets)


@pytest.mark.parametrize("num_buckets", [1, 3])
def test_length_buckets_leave_least_padding(num_buckets):
    texts = texts_of(np.random.default_rng(num_buckets).integers(1, 30, 9))
    found = length_buckets(texts, num_buckets)
    assert sorted(itertools.chain(*found)) == sorted(texts)
    ordered = sorted(texts, key=len)
    cuts = itertools.combinations(range(1, 9), num_buckets - 1)  # every way to cut them
    least = min(room([ordered[a:b] for a, b in itertools.pairwise([0, *each, 9])]) for each in cuts)
    assert len(found) == num_buckets
    assert room(found) == least


def test_length_buckets_of_pairs_go_by_the_longer_text():
    pairs = [([1] * 2, [2] * 9), ([3] * 3, []), ([4] * 8, [5]), ([], [6, 7])]
    short, long = length_buckets(pairs, 2)
    assert short == [([], [6, 7]), ([3] * 3, [])]
    assert long == [([4] * 8, [5]), ([1] * 2, [2] * 9)]


def test_length_buckets_are_no_more_than_there_are_lengths():
    assert [len(bucket) for bucket in length_buckets(texts_of([4, 6, 4, 4]), 5)] == [3, 1]
    assert length_buckets([np.array([7, 8])], 3)[0][0].tolist() == [7, 8]


@pytest.fixture
def buckets():
    """Two buckets, of 30 and of 10 texts, whose first token says which text it is."""
    lengths = [3] * 30 + [7] * 10
    return [pad_texts(bucket) for bucket in length_buckets(texts_of(lengths), 2)]


def test_epoch_batches_give_every_text_once_and_then_all_in_another_order(buckets):
    batch_at, each = epoch_batches(buckets, 4, seed=2), len(consecutive_batches(buckets, 4))
    firsts = [batch_at(step).ids[:, 0].tolist() for step in range(2 * each)]
    epochs = list(itertools.chain(*firsts[:each])), list(itertools.chain(*firsts[each:]))
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(40))
    assert epochs[0] != epochs[1]
    is_long = [min(batch) >= 30 for batch in firsts[:each]]
    assert is_long != sorted(is_long)  # the buckets take turns
    again = epoch_batches(buckets, 4, seed=2)  # a run that goes on asks for later steps first
    assert [again(step).ids[:, 0].tolist() for step in (each + 1, 0)] == [firsts[each + 1], firsts[0]]


def test_random_batches_depend_on_seed_and_step_alone(buckets):
    batch_at = random_batches(buckets, 4, seed=2)
    first = [batch_at(step).ids.tolist() for step in (5, 0, 1, 5)]
    again = random_batches(buckets, 4, seed=2)
    assert [again(step).ids.tolist() for step in (5, 0, 1, 5)] == first
    assert first[0] == first[3] != first[1] != first[2]
    assert random_batches(buckets, 4, seed=3)(5).ids.tolist() != first[0]


def test_random_batches_are_of_one_bucket_each_and_every_example_is_as_likely(buckets):
    batch_at = random_batches(buckets, 5)
    batches = [batch_at(step) for step in range(600)]
    assert isinstance(batches[0], PaddedTexts)
    assert {batch.ids.shape for batch in batches} == {(5, 3), (5, 7)}
    times = np.bincount(np.concatenate([np.asarray(batch.ids)[:, 0] for batch in batches]), minlength=40)
    assert times.sum() == 3000
    np.testing.assert_allclose(times, 75, atol=5 * 75**0.5)  # 150 for some, if buckets came evenly
    assert abs(times[30:].sum() - 750) < 150


def test_consecutive_batches_have_every_example_once(buckets):
    batches = consecutive_batches(buckets, 8)
    assert [batch.ids.shape for batch in batches] == [(8, 3)] * 3 + [(6, 3), (8, 7), (2, 7)]
    assert [int(row[0]) for batch in batches for row in batch.ids] == list(range(40))
    assert all(batch.is_token.all() for batch in batches)
    assert [batch[0].tolist() for batch in consecutive_batches([(jnp.arange(5),)], 2)] == [[0, 1], [2, 3], [4]]


def test_batches_keep_what_is_missing():
    arrays = (np.arange(3), None, np.ones((3, 2)))
    for batch in (consecutive_batches([arrays], 2)[0], random_batches([arrays], 2)(0)):
        assert batch[1] is None
        assert batch[2].shape == (2, 2)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: length_buckets([], 2), ValueError, r"^examples is empty"),
        (lambda: length_buckets([[1], "ab"], 2), TypeError, r"^examples\[1\] is 'ab'"),
        (lambda: length_buckets([("a dog", "ein Hund")], 2), TypeError, r"^examples\[0\] is \('a dog'"),
        (lambda: random_batches(pad_texts([[1]]), 2), TypeError, r"^buckets\[0\] is a"),
        (lambda: random_batches([(np.ones(3), np.ones(2))], 2), ValueError, r"shapes \[\(3,\), \(2,\)\]"),
        (
            lambda: random_batches([(np.ones((0, 2)),)], 2),
            ValueError,
            r"\[\(0, 2\)\]; expected as many rows .*at least one",
        ),
        (lambda: consecutive_batches([()], 2), ValueError, r"^buckets\[0\] has shapes \[\]"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_batches_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
