"""Sampling: the limits of each way to choose, and that texts are what they say they are."""

import itertools
import math

import equinox as eqx
import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flat import decoder_config
from hypothesis import strategies as st
from toy_models import Bigram, drawn

import plainformer as pf

VOCAB, CONTEXT, NEW = 7, 9, 4
PROMPTS = [[1, 5], [4, 0, 2, 6], [3]]
SIZES = {"d_model": 12, "num_layers": 2, "num_heads": 3, "d_ff": 10, "position_scheme": "learned"}
probabilities = pf.next_token_probabilities
log_probs_of = eqx.filter_jit(pf.generation.sequence_log_probs)


@pytest.fixture(scope="module")
def logits():
    """Logits of seven tokens, of which the second and the fifth tie for the largest."""
    return jnp.array([0.3, 3.0, -1.2, 0.8, 3.0, -0.4, 1.1])


@pytest.fixture(scope="module")
def model():
    """A small decoder whose logits differ enough that it does not repeat itself."""
    options = {"num_kv_heads": 1, "norm": "rms", "tied_embedding": False, "use_bias": False}
    return drawn(pf.Decoder, decoder_config(VOCAB, CONTEXT, **SIZES, **options), seed=3)


@pytest.mark.equation("eq-generation-temperature")
def test_next_token_probabilities_at_temperature_zero_share_the_largest(logits):
    greedy = [0, 0.5, 0, 0, 0.5, 0, 0]
    for temperature in (0.0, 1e-6, 1e-30, 1e-60):  # the last of them is zero in single precision
        np.testing.assert_array_equal(probabilities(logits, temperature=temperature), greedy)
    np.testing.assert_array_equal(probabilities(1e30 * logits, temperature=1e-10), greedy)


@pytest.mark.equation("eq-generation-top-k", "eq-generation-top-p")
def test_next_token_probabilities_that_keep_all_change_nothing(logits):
    # A tail so thin that rounding makes the sum of what is before it a full one.
    logits = logits.at[6].set(-30.0)
    expected = jax.nn.softmax(logits)
    assert expected[6] > 0
    np.testing.assert_array_equal(probabilities(logits, top_k=VOCAB), expected)
    np.testing.assert_array_equal(probabilities(logits, top_p=1.0), expected)
    np.testing.assert_array_equal(probabilities(logits, top_p=1.0, top_k=VOCAB, temperature=1.0), expected)


@pytest.mark.equation("eq-generation-top-p")
@pytest.mark.parametrize(("top_p", "kept"), [(0.5, 1), (0.5001, 2), (0.97, 5)])
def test_next_token_probabilities_top_p_keeps_the_smallest_set_that_reaches_it(top_p, kept):
    exact = np.array([0.5, 0.25, 0.125, 0.0625, 0.0625 / 2, 0.0625 / 2])
    order = np.array([4, 2, 0, 5, 1, 3])
    chosen = exact * (np.arange(6) < kept)
    if kept == 5:
        chosen = exact  # the two last ones tie
    found = probabilities(jnp.log2(jnp.asarray(exact[order], jnp.float32)) * math.log(2), top_p=top_p)
    np.testing.assert_allclose(found, (chosen / chosen.sum())[order], rtol=1e-5)


@pytest.mark.equation("eq-generation-temperature", "eq-generation-top-k", "eq-generation-top-p")
def test_next_token_probabilities_take_temperature_then_top_k_then_top_p():
    logits = jnp.log(jnp.array([0.4, 0.3, 0.2, 0.1]))
    # Squared: 16, 9, 4, 1. The first three hold 16 / 29, 25 / 29, 1; without top-k, 16 / 30, 25 / 30 = 0.83, 29 / 30.
    found = probabilities(logits, temperature=0.5, top_k=3, top_p=0.85)
    np.testing.assert_allclose(found, [16 / 25, 9 / 25, 0, 0], rtol=1e-5)
    without_k = probabilities(logits, temperature=0.5, top_p=0.85)
    np.testing.assert_allclose(without_k, np.array([16, 9, 4, 0]) / 29, rtol=1e-5)
    colder_last = probabilities(logits, top_k=3, top_p=0.85)  # 4 / 9, 7 / 9, 1
    np.testing.assert_allclose(colder_last, np.array([4, 3, 2, 0]) / 9, rtol=1e-5)


@pytest.mark.equation("eq-generation-top-p")
@pytest.mark.parametrize(("top_p", "dtype"), [(1e-46, "float32"), (1e-8, "float16")])
def test_next_token_probabilities_top_p_keeps_the_likeliest_however_small_it_is(logits, top_p, dtype):
    found = probabilities(logits.astype(dtype), top_p=top_p)
    np.testing.assert_array_equal(found, [0, 0.5, 0, 0, 0.5, 0, 0])


def test_next_token_probabilities_of_hidden_tokens_are_zero_at_any_temperature(logits):
    hidden = logits.at[2].set(-jnp.inf)
    for temperature in (1e-60, 1.0, 1e30, 1e60):  # the last of them is infinite in single precision
        found = probabilities(hidden, temperature=temperature)
        assert found[2] == 0
        np.testing.assert_allclose(found.sum(), 1, rtol=1e-6)


def test_probabilities_of_16_bit_logits_are_computed_in_32(logits):
    half = logits.astype(jnp.bfloat16)
    expected = probabilities(half.astype(jnp.float32), temperature=0.7, top_p=0.95)
    np.testing.assert_array_equal(probabilities(half, temperature=0.7, top_p=0.95), expected)
    model = Bigram(jnp.tile(half, (VOCAB, 1)))
    log_prob = float(jax.nn.log_softmax(half.astype(jnp.float32))[1])
    np.testing.assert_allclose(pf.generation.sequence_log_probs(model, jnp.array([0, 1])), [log_prob], rtol=1e-6)


def test_searches_of_16_bit_logits_give_32_bit_log_probs(logits):
    # Looked up in a table, as XLA may keep more than 16 bits between two operations.
    table = jnp.stack([jnp.roll(logits, shift) for shift in range(VOCAB)]).astype(jnp.bfloat16)
    (greedy,) = pf.generate(Bigram(table), [[1]], NEW, temperature=0.0)
    (found,) = pf.beam_search(Bigram(table), [1], NEW, beam_width=1)
    assert found.tokens == greedy.tokens
    rows = np.asarray(table, np.float64)[[1, *greedy.tokens[:-1]]]
    expected = np.asarray(table, np.float64).max() - np.log(np.exp(rows).sum(axis=1))
    np.testing.assert_allclose(greedy.log_probs, expected, rtol=1e-6)
    np.testing.assert_allclose(found.log_prob, expected.sum(), rtol=1e-6)


quarters = st.lists(st.integers(-12, 12), min_size=VOCAB, max_size=VOCAB)


@pytest.mark.equation("eq-generation-temperature", "eq-generation-top-k", "eq-generation-top-p")
@hypothesis.given(
    quarters,
    st.sampled_from([0.0, 0.5, 1.0, 2.5]),
    st.sampled_from([None, 1, 3, VOCAB]),
    st.none() | st.floats(0.01, 1.0),
)
@hypothesis.settings(max_examples=40)
def test_next_token_probabilities_agree_with_a_loop_and_sum_to_one(numbers, temperature, top_k, top_p):
    exact = np.array(numbers) / 4
    powers = (exact == exact.max()) * 1.0 if temperature == 0 else np.exp((exact - exact.max()) / temperature)
    likeliest_first = sorted(powers, reverse=True)
    if top_k is not None:
        powers = np.where(powers >= likeliest_first[top_k - 1], powers, 0)
    if top_p is not None:
        expected, mass = top_p * powers.sum(), 0.0
        for smallest in sorted(powers, reverse=True):
            hypothesis.assume(abs(mass - expected) > 1e-5 * powers.sum())
            if mass >= expected:
                break
            mass, last = mass + smallest, smallest
        powers = np.where(powers >= last, powers, 0)
    found = probabilities(jnp.asarray(exact, jnp.float32), temperature=temperature, top_k=top_k, top_p=top_p)
    assert abs(float(found.sum()) - 1) < 1e-5
    assert (np.asarray(found)[powers == 0] == 0).all()
    np.testing.assert_allclose(found, powers / powers.sum(), rtol=1e-4, atol=1e-7)


@eqx.filter_jit
def log_probs_at_every_token(model, tokens):
    """One full pass, without a cache."""
    return jax.nn.log_softmax(model(tokens))


def passed(model, tokens):
    """Log-probabilities after every token of a text, with zeros behind it: one shape, one compilation."""
    return np.asarray(log_probs_at_every_token(model, np.pad(tokens, (0, CONTEXT - len(tokens)))), np.float64)


@pytest.mark.equation("eq-decoder-factorisation")
def test_generate_log_probs_are_those_of_sequence_log_probs(model, key):
    greedy = pf.generate(model, PROMPTS, NEW, temperature=0.0)
    sampled = pf.generate(model, PROMPTS, NEW, temperature=2.0, top_k=5, top_p=0.9, key=key)
    for prompt, each in zip(PROMPTS * 2, greedy + sampled, strict=True):
        text = prompt + each.tokens
        by_hand = passed(model, text)[np.arange(len(text) - 1), text[1:]]
        np.testing.assert_allclose(each.log_probs, by_hand[len(prompt) - 1 :], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(log_probs_of(model, jnp.array(text)), by_hand, rtol=1e-4, atol=1e-4)
    assert sampled != greedy


@pytest.mark.equation("eq-decoder-factorisation")
def test_sequence_log_probs_of_all_texts_sum_to_one(key):
    model = Bigram(jax.random.normal(key, (3, 3)))
    texts = [[2, *rest] for rest in itertools.product(range(3), repeat=3)]
    assert abs(sum(np.exp(log_probs_of(model, jnp.array(text)).sum()) for text in texts) - 1) < 1e-5
    table = jax.nn.log_softmax(model.table)
    np.testing.assert_allclose(
        pf.generation.sequence_log_probs(model, jnp.array([2, 0, 1])), [table[2, 0], table[0, 1]], rtol=1e-5
    )


def test_generate_is_reproduced_by_its_key(key):
    model = Bigram(np.zeros((VOCAB, VOCAB)))
    prompts, (one, other) = [[1], [1], [1]], jax.random.split(key)
    first = pf.generate(model, prompts, CONTEXT, key=one)
    assert pf.generate(model, prompts, CONTEXT, key=one) == first
    assert pf.generate(model, prompts, CONTEXT, key=other) != first
    assert len({tuple(each.tokens) for each in first}) == 3  # the same prompt, but streams of their own
    assert all(len(set(each.tokens)) > 2 for each in first)  # and every step draws anew
    of_one, of_other = pf.generate(model, [[1], [2]], CONTEXT, key=one)
    assert of_one.tokens != of_other.tokens


def test_generate_ends_a_text_at_a_stop_token():
    ring = Bigram(20 * np.roll(np.eye(VOCAB), 1, axis=1))  # after i comes i + 1
    found = pf.generate(ring, [[0], [2], [5]], 4, temperature=0.0, stop_tokens=[3, 6])
    assert [each.tokens for each in found] == [[1, 2, 3], [3], [6]]
    assert [each.stopped for each in found] == [True, True, True]
    assert [len(each.log_probs) for each in found] == [3, 1, 1]
    later = pf.generate(ring, [[0], [2], [5]], 4, temperature=0.0, stop_tokens=[4])
    assert [each.tokens for each in later] == [[1, 2, 3, 4], [3, 4], [6, 0, 1, 2]]
    assert [each.stopped for each in later] == [True, True, False]


@pytest.mark.equation("eq-generation-ancestral")
def test_generate_draws_as_often_as_next_token_probabilities_say(key):
    number, options = 3000, {"temperature": 0.8, "top_k": 4, "top_p": 0.95}
    model = Bigram(jax.random.normal(key, (5, 5)))
    found = np.array([each.tokens for each in pf.generate(model, [[2]] * number, 2, key=key, **options)])
    rows = np.array([probabilities(row, **options) for row in model.table])
    expected = number * rows[2][:, None] * rows  # of each pair: the first token, and the second given the first
    observed = np.zeros((5, 5))
    np.add.at(observed, tuple(found.T), 1)
    assert (observed[expected == 0] == 0).all()
    possible = expected > 0
    chi_square = ((observed - expected)[possible] ** 2 / expected[possible]).sum()
    freedom = possible.sum() - 1
    assert freedom >= 6
    assert chi_square < freedom + 3.5 * math.sqrt(2 * freedom)  # wrong draws are beyond it by hundreds
    as_if_unadjusted = number * np.asarray(jax.nn.softmax(model.table))
    wrong = as_if_unadjusted[2][:, None] * np.asarray(jax.nn.softmax(model.table))
    assert ((observed - wrong) ** 2 / wrong).sum() > 10 * freedom


def test_generate_is_traced_once_for_each_shape_and_method(key):
    model = Bigram(jax.random.normal(key, (VOCAB, VOCAB)))
    pf.generate(model, [[1, 2], [3]], 3, temperature=0.5, top_k=4, top_p=0.9, stop_tokens=[0], key=key)
    once = model.traces.count
    assert once >= 2  # the prompt and the loop
    other = jax.random.split(key)[0]
    for top_p in (0.9, 0.35, 1.0):
        pf.generate(model, [[4], [5, 6]], 3, temperature=2.0, top_k=4, top_p=top_p, stop_tokens=[5], key=other)
    assert model.traces.count == once
    pf.generate(model, [[4], [5, 6]], 3, temperature=0.0)
    assert model.traces.count > once  # another method
