"""What the runs of the language models share: how windows are cut, and how seconds are taken."""

import time

import numpy as np

from lab import clock, language_models


def test_overlapping_windows_count_every_token_once_behind_half_a_window():
    length, half = language_models.LENGTH, language_models.LENGTH // 2
    for number in (3, length, length + 1, length + half, length + half + 1, 5 * half + 7, 6 * half + 1):
        inputs, targets, counts = map(np.asarray, language_models.overlapping_windows(list(range(number))))
        assert sorted(targets[counts].tolist()) == list(range(1, number))
        np.testing.assert_array_equal(inputs[counts] + 1, targets[counts])
        places = np.broadcast_to(np.arange(length), counts.shape)
        assert places[1:][counts[1:]].min(initial=length) >= half


def test_actions_take_their_turns_and_waiting_does_not_count():
    calls = []

    def work(name):
        calls.append(name)
        return sum(range(300_000))

    def sleep():
        calls.append("sleeps")
        time.sleep(0.01)

    found = clock.seconds_in_turn({"works": lambda: work("works"), "sleeps": sleep}, rounds=3)
    assert calls == ["works", "sleeps"] * 4  # the first of each is not timed
    assert found["sleeps"] < 0.005 < found["works"] * 5
