"""Windows of a text, drawn at random or side by side."""

import numpy as np
import pytest

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


@pytest.mark.parametrize("num_tokens", [8, 9, 10, 11, 12, 22])
def test_consecutive_windows_make_every_token_but_the_first_a_target_once(num_tokens):
    text = np.arange(50, 50 + num_tokens)
    windows = consecutive_windows(text, 7)
    assert windows._fields == ("inputs", "targets", "is_token")
    inputs, targets, is_token = (np.asarray(array) for array in windows)
    assert inputs.shape == targets.shape == is_token.shape == (-(-(num_tokens - 1) // 7), 7)
    assert targets[is_token].tolist() == text[1:].tolist()
    assert inputs[is_token].tolist() == text[:-1].tolist()
    assert (targets[~is_token] == 0).all()


@pytest.mark.parametrize("num_tokens", [8, 9, 22, 29, 30])
@pytest.mark.parametrize("batch_size", [1, 2, 3])
def test_stream_windows_are_the_consecutive_ones_in_batches_of_one_shape(num_tokens, batch_size):
    text = np.arange(50, 50 + num_tokens)
    batches = list(stream_windows(text, 7, batch_size))
    assert {array.shape for batch in batches for array in batch} == {(batch_size, 7)}
    assert len(batches) == -(-(num_tokens - 1) // (7 * batch_size))
    for number, array in enumerate(consecutive_windows(text, 7)):
        joined = np.concatenate([np.asarray(batch[number]) for batch in batches])
        np.testing.assert_array_equal(joined[: len(array)], array)
        assert number == 0 or not joined[len(array) :].any()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: random_windows([1, 2, 3], 3, 2), ValueError, r"^The text has 3 tokens; expected at least 4, a window"),
        (lambda: consecutive_windows([], 3), ValueError, r"^The text has 0 tokens; .*shorter window"),
        (lambda: random_windows([1, 2, 3], 0, 2), ValueError, r"^seq_len is 0; expected at least 1"),
        (lambda: random_windows([1, 2, 3], 2, 0), ValueError, r"^batch_size is 0; expected at least 1"),
        (lambda: random_windows([1, 2, 3], 2, 1)("3"), TypeError, r"^step is '3'; expected a whole number"),
        (lambda: random_windows([1, 2, 3], 2, 1, seed=-1), ValueError, r"^seed is -1; expected at least 0 and below"),
        (lambda: stream_windows([1, 2], 2, 3), ValueError, r"^The text has 2 tokens; expected at least 3, a window"),
        (lambda: stream_windows([1, 2, 3], 2, 0), ValueError, r"^batch_size is 0; expected at least 1"),
        (lambda: random_windows([1, 2, -3], 2, 1), ValueError, r"^tokens\[2\] is -3; expected 0 to"),
        (lambda: consecutive_windows([1.0, 2.0, 3.0], 2), TypeError, r"^tokens are float64; expected whole numbers"),
        (
            lambda: consecutive_windows([[1, 2], [3, 4]], 2),
            ValueError,
            r"^tokens has shape \(2, 2\); expected \(seq,\)",
        ),
    ],
)
def test_windows_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
