"""What the scripts of the language models share: how texts are cut and losses counted, and how seconds are taken."""

import time

import clock
import holes_record
import jax.numpy as jnp
import language_models
import numpy as np
import pytest
import train_docstrings
import train_seconds

import plainformer as pf


def test_overlapping_windows_count_every_token_once_behind_half_a_window():
    length, half = language_models.LENGTH, language_models.LENGTH // 2
    for number in (3, length, length + 1, length + half, length + half + 1, 5 * half + 7, 6 * half + 1):
        inputs, targets, counts = map(np.asarray, language_models.overlapping_windows(list(range(number))))
        assert sorted(targets[counts].tolist()) == list(range(1, number))
        np.testing.assert_array_equal(inputs[counts] + 1, targets[counts])
        places = np.broadcast_to(np.arange(length), counts.shape)
        assert places[1:][counts[1:]].min(initial=length) >= half


def test_a_share_of_a_text_comes_from_everywhere():
    tokenizer = pf.BytePairEncoder.train("abc " * 20, 258)
    first = "".join(f"{number:07}\n" for number in range(40_000))  # 320,000 characters
    whole = language_models.Text(tokenizer, (first, "held out"), ([], [7]))
    short = train_docstrings.share_of(whole, 3)
    assert short.parts == (first[:50_000] + first[150_000:200_000] + first[300_000:], "held out")
    assert tokenizer.decode(short.ids[0]) == short.parts[0]
    assert short.ids[1] == [7]


def test_bits_per_byte_are_nats_per_character_in_other_units():
    found = {"characters": [9, 10], "bytes": [9, 20]}
    assert train_docstrings.bits_per_byte(np.log(4), found) == pytest.approx(1.0)


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


def test_rows_in_whole_numbers_by_hand():
    """The largest of a row is met exactly, and no other is off by more than half a step."""
    whole, step = train_seconds.in_whole_numbers(jnp.asarray([[127.0, -3.4], [0.0, 0.0], [7.0, -14.0]]))
    np.testing.assert_array_equal(whole, [[127, -3], [0, 0], [64, -127]])
    np.testing.assert_allclose(step, [[1], [0], [14 / 127]], rtol=1e-6)
    assert whole.dtype == jnp.int8


def test_the_first_hidden_letters_surprise_encoder_and_counting_as_recorded():
    recorded, splits, number = pf.data.load_record("holes"), pf.data.name_splits(), 12
    assert len(recorded["names"]["encoder"]) == len(holes_record.asked_of_names(splits))
    for name, nats in holes_record.of_names(splits, number).items():
        # The names are those of this Babel, whose versions differ a little.
        np.testing.assert_allclose(nats, recorded["names"][name][:number], atol=0.02)


def test_places_of_the_same_letter_are_in_other_names_only():
    same = holes_record.same_letter_elsewhere([("Anna, Ana, Hanna", 1), ("Oslo, Rom", 7)])
    assert np.flatnonzero(same[0]).tolist() == [7, 13, 14]
    assert np.flatnonzero(same[1]).tolist() == [3]
