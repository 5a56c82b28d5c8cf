"""Windows of a text, drawn at random or side by side."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from plainformer.data.windows import consecutive_windows, random_windows, stream_windows


def test_random_windows_return_windows_and_what_follows():
    text = np.arange(100, 117)
    batch_at = random_windows(text, 5, 64)
    inputs, targets = (np.asarray(array) for array in batch_at(0))
    assert batch_at(0)._fields == ("inputs", "targets")
    assert inputs.shape == targets.shape == (64, 5)
    assert inputs.dtype == targets.dtype == np.int32
    assert (inputs == inputs[:, :1] + np.arange(5)).all()
    assert (targets == inputs + 1).all()
    # Every start occurs: the first, and the last, whose last target is the last token.
    starts = {int(start) for step in range(8) for start in np.asarray(batch_at(step)[0])[:, 0]}
    assert starts == set(range(100, 112))


def test_random_windows_depends_on_data_seed_and_step_alone():
    text = list(range(1_000))
    first = random_windows(text, 7, 3, seed=2)
    batches = [first(step)[0].tolist() for step in (5, 0, 1)]
    again = random_windows(np.array(text), 7, 3, seed=2)
    assert [again(step)[0].tolist() for step in (5, 0, 1)] == batches
    others = [random_windows(text, 7, 3, seed=seed)(step)[0].tolist() for seed in (1, 3) for step in (0, 1, 2)]
    assert not [batch for batch in others if batch in batches]
    assert batches[1] != batches[2]


def test_windows_of_the_shortest_text():
    inputs, targets = random_windows([4, 5, 6], 2, 3)(9)
    assert inputs.tolist() == [[4, 5]] * 3
    assert targets.tolist() == [[5, 6]] * 3
    inputs, targets, is_token = consecutive_windows([4, 5, 6], 2)
    assert (inputs.tolist(), targets.tolist(), is_token.tolist()) == ([[4, 5]], [[5, 6]], [[True, True]])


@pytest.mark.parametrize("num_tokens", [8, 9, 22])
def test_consecutive_windows_make_every_token_but_the_first_a_target_once(num_tokens):
    text = np.arange(50, 50 + num_tokens)
    windows = consecutive_windows(text, 7)
    assert windows._fields == ("inputs", "targets", "is_token")
    inputs, targets, is_token = (np.asarray(array) for array in windows)
    assert inputs.shape == targets.shape == is_token.shape == (-(-(num_tokens - 1) // 7), 7)
    assert targets[is_token].tolist() == text[1:].tolist()
    assert inputs[is_token].tolist() == text[:-1].tolist()
    assert (targets[~is_token] == 0).all()


@pytest.mark.parametrize(("num_tokens", "batch_size"), [(8, 1), (22, 2), (30, 3)])
def test_stream_windows_are_the_consecutive_ones_in_batches_of_one_shape(num_tokens, batch_size):
    text = np.arange(50, 50 + num_tokens)
    batches = list(stream_windows(text, 7, batch_size))
    assert {array.shape for batch in batches for array in batch} == {(batch_size, 7)}
    assert len(batches) == -(-(num_tokens - 1) // (7 * batch_size))
    for number, array in enumerate(consecutive_windows(text, 7)):
        joined = np.concatenate([np.asarray(batch[number]) for batch in batches])
        np.testing.assert_array_equal(joined[: len(array)], array)
        assert number == 0 or not joined[len(array) :].any()


SEPARATOR = 29  # above some tokens and below others
LENGTHS = st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(lambda lengths: sum(lengths) + len(lengths) > 4)


@given(LENGTHS, st.booleans(), st.integers(1, 4), st.integers(0, 9))
def test_with_a_separator_no_window_crosses_documents(lengths, is_open, seq_len, seed):
    """Tokens of document n are 10 n and more: no window counts, or lets a token that counts see, those of two."""
    documents = [[10 * n + 10 + place for place in range(length)] for n, length in enumerate(lengths)]
    text = [token for document in documents for token in [*document, SEPARATOR]][: -1 if is_open else None]
    cut = consecutive_windows(text, seq_len, separator=SEPARATOR)
    drawn = random_windows(text, seq_len, 9, separator=SEPARATOR, seed=seed)(0)
    for inputs, targets, is_token in (map(np.asarray, windows) for windows in (cut, drawn)):
        counts = is_token.sum(axis=1)
        assert (counts > 0).all()
        assert (is_token == (np.arange(seq_len) < counts[:, None])).all()  # so that what counts sees what counts
        assert not inputs[~is_token].any()
        assert not targets[~is_token].any()
        for read, expected, count in zip(inputs, targets, counts, strict=True):
            assert read[1:count].tolist() == expected[: count - 1].tolist()
            inside = {*read[1:count].tolist(), *expected[: count - 1].tolist()}
            assert SEPARATOR not in inside
            assert count == seq_len or expected[count - 1] in (SEPARATOR, text[-1])  # no shorter than it must be
            whole = (inside | {int(read[0]), int(expected[count - 1])}) - {SEPARATOR}
            assert len({token // 10 for token in whole}) <= 1
    flat = np.asarray(cut.targets)[np.asarray(cut.is_token)]
    assert flat.tolist() == text[1:]
    batches = list(stream_windows(text, seq_len, 2, separator=SEPARATOR))
    for number, array in enumerate(cut):
        joined = np.concatenate([np.asarray(batch[number]) for batch in batches])
        np.testing.assert_array_equal(joined[: len(array)], array)
        assert number == 0 or not joined[len(array) :].any()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: random_windows([1, 2, 3], 2, 1, separator="\n"), TypeError, r"^separator is '\\n'"),
        (lambda: random_windows([1, 2, 3], 3, 2), ValueError, r"^The text has 3 tokens"),
        (lambda: consecutive_windows([], 3), ValueError, r"^The text has 0 tokens"),
        (lambda: random_windows([1, 2, 3], 2, 1)("3"), TypeError, r"^step is '3'"),
        (lambda: stream_windows([1, 2], 2, 3), ValueError, r"^The text has 2 tokens"),
        (lambda: random_windows([1, 2, -3], 2, 1), ValueError, r"^tokens\[2\] is -3"),
        (lambda: random_windows(iter([1, 2, 3]), 2, 1), TypeError, r"^tokens is of type list_iterator"),
        (lambda: consecutive_windows([[1, 2], [3, 4]], 2), ValueError, r"^tokens has shape \(2, 2\)"),
    ],
)
def test_windows_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
