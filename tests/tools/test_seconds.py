"""The seconds of chapter 12: the record, its card, what the chapter says of it, and what the times are taken of."""

import time
from pathlib import Path

import clock
import jax.numpy as jnp
import numpy as np
import pytest
import train_seconds

import plainformer as pf

MODELS = Path(__file__).resolve().parents[2] / "models"


@pytest.fixture(scope="module")
def recorded() -> dict:
    return pf.data.load_record("seconds")


@pytest.fixture(scope="module")
def chapter() -> str:
    (path,) = (MODELS.parent / "chapters").glob("*_efficiency.md")
    return " ".join(path.read_text(encoding="utf-8").split())


def test_the_card_says_what_was_recorded(recorded):
    assert train_seconds.card(recorded) == (MODELS / "seconds.md").read_text(encoding="utf-8")


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


def test_a_cache_in_few_bits_costs_what_was_recorded(recorded):
    """On a part of the held-out text, by the same code."""
    nats = recorded["bits"]["nats"]
    assert abs(nats["8"] - nats["32"]) < 0.001 < nats["4"] - nats["32"] < 0.02


def test_the_draft_is_a_tenth_of_the_model(recorded):
    count = recorded["sizes"]["parameters"]
    assert 0.07 < count["draft"] / count["model"] < 0.11
    assert count["model"] == pf.count_parameters(pf.load_pretrained("shakespeare")[0])


def test_a_call_gives_one_token_at_least_and_one_more_than_were_drafted_at_most(recorded):
    for each in recorded["speculation"].values():
        for num, per_call in each["per call"].items():
            assert 1 <= per_call <= int(num) + 1


def test_the_chapter_says_what_was_recorded(recorded, chapter):
    heads, size, texts = recorded["heads"], recorded["megabytes"], recorded["batches"]
    bytes_alone = [sum(size[what][num] for what in ("cache", "weights")) for num in ("8", "1")]
    assert f"shrinks from {size['cache']['8']} MB to {size['cache']['1']}" in chapter
    assert f"would be {bytes_alone[0] / bytes_alone[1]:.1f} times as fast" in chapter
    assert f"it was {heads['4096']['8'] / heads['4096']['1']:.1f} times as fast" in chapter
    assert f"In a short text it was {heads['256']['8'] / heads['256']['1']:.1f} times as fast" in chapter
    assert f"Sixteen texts took {texts['16'] / texts['1']:.2f} of the time per token" in chapter
    assert f"four rows at once take this small model {4 * texts['4'] / texts['1']:.1f} times as long as one" in chapter


def test_the_chapter_says_why_the_draft_does_not_pay(recorded, chapter):
    greedy = recorded["speculation"]["0"]
    assert f"A call gave {greedy['per call']['2']:.2f} tokens with two drafted, greedily" in chapter
    round_of_two = greedy["ms"]["2"] * greedy["per call"]["2"] / greedy["ms"]["alone"]
    assert f"a round took as long as {round_of_two:.1f} tokens written alone" in chapter
    assert "costs only a fifth of the model's time" in chapter
    for each in recorded["speculation"].values():
        assert each["ms"]["draft alone"] / each["ms"]["alone"] == pytest.approx(0.2, abs=0.05)
        assert min(each["ms"][str(num)] for num in train_seconds.NUM_DRAFTED) > each["ms"]["alone"]


def test_the_chapter_says_what_eight_bits_cost_and_save(recorded, chapter):
    bits = recorded["bits"]
    assert "less than 0.001 nats per token, and four bits 0.003" in chapter
    assert f"{bits['nats']['4'] - bits['nats']['32']:.3f}" == "0.003"
    assert f"{bits['bytes']['8']} bytes take the place of {bits['bytes']['32']}" in chapter
    assert bits["ms"]["8"] / bits["ms"]["32"] == pytest.approx(2, abs=0.1)
