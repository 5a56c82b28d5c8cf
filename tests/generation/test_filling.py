"""Filling holes: what is given stays, as many are filled in each round as shall be, and the surest come first."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flat import encoder_config
from toy_models import drawn

import plainformer as pf

MASK, VOCAB, SEQ = 0, 6, 8
KEY = jax.random.key(0)
HOLES = np.array([[3, 0, 0, 5, 0, 0, 0, 2], [0, 0, 4, 4, 1, 1, 5, 0]])
# How sure a model is of the token 2 at each place of a text; all else is as likely as any other.
SURE = np.array([0.5, 0.7, 0.9, 0.5, 0.6, 0.99, 0.8, 0.5])


def place_by_place(ids, is_token=None):
    """Logits that depend on the place alone."""
    others = (1 - SURE) / (VOCAB - 1)
    probabilities = np.tile(others[:, None], VOCAB)
    probabilities[:, 2] = SURE
    return jnp.broadcast_to(jnp.log(jnp.asarray(probabilities))[: ids.shape[-1]], (*ids.shape, VOCAB))


def copying(ids, is_token=None):
    """Logits that find only the token on the right possible, and all tokens where that is a hole."""
    right = jnp.roll(ids, -1, axis=-1)
    return jnp.where((jnp.arange(VOCAB) == right[..., None]) | (right[..., None] == MASK), 0.0, -30.0)


@pytest.fixture(scope="module")
def model():
    """A small encoder that guesses."""
    config = encoder_config(
        vocab_size=VOCAB, context_len=SEQ, d_model=12, num_layers=1, num_heads=3, d_ff=10, position_scheme="learned"
    )
    return drawn(pf.MaskedLanguageModel, config, seed=3)


def fill(ids=HOLES, rounds=3, model=place_by_place, key=KEY, **options):
    return np.asarray(pf.fill_holes(model, ids, rounds, **{"mask_token": MASK, **options}, key=key))


@pytest.mark.parametrize("order", ["surest", "random", "left"])
@pytest.mark.parametrize("rounds", [1, 2, 5, 20])
def test_what_is_given_or_filled_stays_and_nothing_is_left_at_the_end(model, order, rounds):
    stages = fill(rounds=rounds, model=model, order=order)
    assert stages.shape == (rounds, *HOLES.shape)
    for before, after in zip([HOLES, *stages[:-1]], stages, strict=True):
        np.testing.assert_array_equal(after[before != MASK], before[before != MASK])
    assert (stages[-1] != MASK).all()


@pytest.mark.equation("eq-encoder-filling")
@pytest.mark.parametrize(("rounds", "left"), [(2, [[2, 1], [0, 0]]), (5, [[4, 2], [3, 1], [2, 1], [1, 0], [0, 0]])])
def test_as_many_holes_are_left_after_each_round_as_the_formula_says(rounds, left):
    np.testing.assert_array_equal((fill(rounds=rounds) == MASK).sum(axis=-1), left)


def test_with_as_many_rounds_as_holes_the_surest_hole_is_filled_first():
    text = np.zeros(SEQ, int)
    stages = fill(text, SEQ, temperature=0)
    order = [
        int(np.flatnonzero(before != after)[0]) for before, after in zip([text, *stages[:-1]], stages, strict=True)
    ]
    assert (np.diff((stages == MASK).sum(axis=-1)) == -1).all()
    np.testing.assert_array_equal(order, np.argsort(-SURE, kind="stable"))


def test_the_surest_are_those_whose_drawn_token_is_likeliest_not_those_with_the_likeliest_token():
    def two_places(ids, is_token=None):
        rows = jnp.log(jnp.asarray([[0.0, 0.9, 0.1], [0.0, 0.5, 0.5]]))
        return jnp.broadcast_to(rows, (*ids.shape, 3))

    first = fill(np.zeros((400, 2), int), 2, two_places)[0]
    on_the_left = first[:, 0] != MASK
    assert (first[on_the_left, 0] == 1).all()  # never its unlikely token, as long as the other place is empty
    assert on_the_left.mean() == pytest.approx(0.9, abs=0.05)


def test_from_the_left_and_at_random():
    text = np.zeros(SEQ, int)
    left = fill(text, SEQ, order="left")
    np.testing.assert_array_equal(left != MASK, np.tri(SEQ, dtype=bool))
    first = fill(np.zeros((400, SEQ), int), SEQ, order="random")[0] != MASK
    np.testing.assert_allclose(first.mean(axis=0), 1 / SEQ, atol=0.06)


def test_in_one_round_holes_are_drawn_independently_and_in_several_they_agree():
    texts = np.zeros((500, 2), int)
    at_once, in_turn = fill(texts, 1, copying)[-1], fill(texts, 2, copying)[-1]
    assert np.mean(at_once[:, 0] == at_once[:, 1]) == pytest.approx(1 / (VOCAB - 1), abs=0.06)
    assert (in_turn[:, 0] == in_turn[:, 1]).all()


def test_tokens_are_drawn_by_their_probabilities_at_a_temperature():
    texts = np.zeros((2000, SEQ), int)
    for temperature in (1.0, 2.0):
        weights = np.stack([SURE, *[(1 - SURE) / (VOCAB - 1)] * (VOCAB - 2)]) ** (1 / temperature)
        shares = (fill(texts, 1, temperature=temperature)[-1] == 2).mean(axis=0)
        np.testing.assert_allclose(shares, weights[0] / weights.sum(axis=0), atol=0.04)


def test_special_tokens_are_never_drawn():
    found = fill(np.zeros((200, SEQ), int) + 4, 1, mask_token=4, first_ordinary=2)
    assert set(np.unique(found)) == {2, 3, 5}


@pytest.mark.parametrize("order", ["surest", "random"])
def test_the_same_key_writes_the_same_and_another_does_not(order):
    np.testing.assert_array_equal(fill(order=order), fill(order=order))
    assert (fill(order=order)[-1] != fill(order=order, key=jax.random.key(1))[-1]).any()


def test_padding_is_neither_filled_nor_read(model):
    is_token = np.arange(SEQ) < np.array([[6], [8]])
    found = fill(model=model, is_token=is_token)
    np.testing.assert_array_equal(found[:, ~is_token], np.tile(HOLES[~is_token], (3, 1)))
    assert (found[-1][is_token] != MASK).all()
    other = np.where(is_token, HOLES, 3)
    np.testing.assert_array_equal(fill(other, model=model, is_token=is_token)[:, is_token], found[:, is_token])


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"ids": np.array([1, 2])}, ValueError, "ids has no mask_token, which is 0, .* expected a hole"),
        ({"is_token": HOLES != MASK}, ValueError, "ids has no mask_token"),
        ({"ids": [0, 1]}, TypeError, r"ids is a list; .* Try jnp.asarray\(ids\)"),
        ({"rounds": 0}, ValueError, "rounds is 0; expected at least 1"),
        ({"ids": np.array([0, 6])}, ValueError, r"ids\[1\] is 6; expected 0 to 5"),
        ({"ids": np.array([0, -1])}, ValueError, r"ids\[1\] is -1; expected 0 to 5"),
        ({"ids": np.array([0.0, 1.0])}, TypeError, "ids holds float"),
        ({"ids": np.array(0)}, ValueError, "ids"),
        ({"mask_token": 6}, ValueError, "mask_token is 6; expected 0 to 5"),
        ({"first_ordinary": 6}, ValueError, "first_ordinary is 6; expected 0 to 5"),
        ({"mask_token": 5, "first_ordinary": 5, "ids": np.array([5])}, ValueError, "no token may be drawn"),
        ({"order": "right"}, ValueError, "order is 'right'"),
        ({"temperature": -1.0}, ValueError, "temperature is -1"),
        ({"model": lambda ids, is_token: ids}, ValueError, r"model makes an array of shape \(2, 8\)"),
        ({"model": lambda ids, is_token: "abc"}, ValueError, "model makes a str of ids"),
    ],
)
def test_wrong_calls_are_told_what_was_expected(given, error, words):
    with pytest.raises(error, match=words):
        fill(**given)
