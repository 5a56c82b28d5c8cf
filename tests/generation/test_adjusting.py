"""Min-p and penalties: numbers by hand, and that writing applies them to what was read and written."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flat import decoder_config
from toy_models import Bigram, drawn

import plainformer as pf
from plainformer.generation import penalise_counts, penalise_repetition

VOCAB, NEW = 7, 6
read = eqx.filter_jit(lambda model, tokens: model(tokens))
PROMPTS = [[1, 5], [4, 0, 2, 6], [3]]


@pytest.fixture(scope="module")
def model():
    sizes = {"d_model": 12, "num_layers": 2, "num_heads": 3, "d_ff": 10, "position_scheme": "rotary"}
    return drawn(pf.Decoder, decoder_config(VOCAB, 16, **sizes), seed=3)


@pytest.mark.equation("eq-serving-min-p")
@pytest.mark.parametrize(("min_p", "kept"), [(0.14, 4), (0.16, 3), (1.0, 1)])
def test_next_token_probabilities_min_p_keeps_what_has_its_share_of_the_likeliest(min_p, kept):
    exact = np.array([0.5, 0.3, 0.125, 0.075])
    order = np.array([2, 0, 3, 1])
    chosen = np.where(np.arange(4) < kept, exact, 0)
    found = pf.next_token_probabilities(jnp.log(jnp.asarray(exact[order])), min_p=min_p)
    np.testing.assert_allclose(found, (chosen / chosen.sum())[order], rtol=1e-5)


@pytest.mark.equation("eq-serving-min-p")
def test_next_token_probabilities_min_p_is_taken_after_the_temperature():
    # Squared, 16 to 9 to 1: the last has a sixteenth of the first, where it had a quarter.
    found = pf.next_token_probabilities(jnp.log(jnp.array([0.5, 0.375, 0.125])), temperature=0.5, min_p=0.2)
    np.testing.assert_allclose(found, [0.64, 0.36, 0], rtol=1e-5)
    np.testing.assert_array_equal(pf.next_token_probabilities(jnp.array([1.0, 2, 2]), min_p=1.0), [0, 0.5, 0.5])
    none = pf.next_token_probabilities(jnp.array([1.0, -jnp.inf, 0.0]), min_p=1e-6)
    assert none[1] == 0
    assert none[2] > 0


def penalised(logits, prompt, written):
    """A repetition penalty on prompt and text, and a penalty on what was written."""
    logits = penalise_repetition(logits, jnp.concatenate([prompt, written]), 1.3)
    return penalise_counts(logits, written, presence=0.1, frequency=0.4)


def step_by_step(model, prompt, number):
    """Greedy writing with both penalties, reading the whole text again for each token, in NumPy."""
    written = []
    for _ in range(number):
        text = prompt + written
        logits = np.array(read(model, jnp.asarray(text + [0] * (16 - len(text)))))[len(text) - 1]
        for token in set(prompt + written):
            logits[token] = logits[token] / 1.3 if logits[token] > 0 else logits[token] * 1.3
        for token in set(written):
            logits[token] -= 0.1 + 0.4 * written.count(token)
        written.append(int(logits.argmax()))
    return written


@pytest.mark.equation("eq-serving-repetition", "eq-serving-penalties")
def test_generate_adjusts_by_the_prompt_and_what_was_written(model):
    found = pf.generate(model, PROMPTS, NEW, temperature=0, adjust=penalised)
    assert [text.tokens for text in found] == [step_by_step(model, prompt, NEW) for prompt in PROMPTS]
    assert found[0].tokens != pf.generate(model, PROMPTS, NEW, temperature=0)[0].tokens
    own = pf.generation.sequence_log_probs(model, jnp.asarray(PROMPTS[0] + found[0].tokens))[1:]
    np.testing.assert_allclose(found[0].log_probs, own, atol=1e-5)  # which remain the model's


@pytest.mark.equation("eq-serving-min-p")
def test_speculative_writing_never_draws_what_min_p_cuts():
    table = jnp.log(jnp.array([[0.5, 0.3, 0.2], [0.1, 0.7, 0.2], [0.4, 0.2, 0.4]]))
    model, draft = Bigram(table, 64), Bigram(jnp.zeros((3, 3)), 64)
    text = pf.generation.speculative_generate(model, draft, [0], 40, min_p=0.55, key=jax.random.key(0))
    pairs = set(zip([0, *text.tokens], text.tokens, strict=False))
    assert pairs <= {(0, 0), (0, 1), (1, 1), (2, 0), (2, 2)}
    assert {(0, 0), (0, 1), (1, 1)} == pairs


def test_beam_search_adds_up_adjusted_log_probabilities():
    table = jnp.log(jnp.array([[0.6, 0.4], [0.3, 0.7]]))

    def dislike(log_probs, prompt, written):
        return penalise_counts(log_probs, jnp.concatenate([prompt, written]), presence=1.0)

    (best, *_) = pf.beam_search(Bigram(table), [0], 2, beam_width=4, length_power=0, adjust=dislike)
    # 1, 1: log 0.4, as 1 is new, then log 0.7 - 1; 1, 0: log 0.4 + log 0.3 - 1; 0, 1: log 0.6 - 1 + log 0.4.
    expected = {(1, 1): np.log(0.28) - 1, (1, 0): np.log(0.12) - 1, (0, 1): np.log(0.24) - 1}
    assert tuple(best.tokens) == max(expected, key=expected.get)
    np.testing.assert_allclose(best.log_prob, np.log(0.28) - 1, rtol=1e-5)


@pytest.mark.parametrize("adjust", [3, lambda *given: None, lambda logits, *_: logits[:3]])
def test_what_adjusts_is_a_function_that_returns_logits(model, adjust):
    with pytest.raises(TypeError, match="adjust"):
        pf.generate(model, PROMPTS, 2, temperature=0, adjust=adjust)


def nothing_left(logits, *_):
    return logits - jnp.inf


@pytest.mark.parametrize(
    "write",
    [
        lambda model: pf.generate(model, PROMPTS, 2, key=jax.random.key(0), adjust=nothing_left),
        lambda model: pf.generate(model, PROMPTS, 2, temperature=0, adjust=nothing_left),
        lambda model: pf.beam_search(model, PROMPTS, 2, beam_width=2, adjust=nothing_left),
    ],
)
def test_every_way_of_writing_says_where_nothing_is_left(model, write):
    with pytest.raises(ValueError, match="-inf"):
        write(model)


def test_penalties_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="penalty"):
        penalise_repetition(jnp.zeros(3), jnp.array([1]), 0.0)
    with pytest.raises(ValueError, match="presence"):
        penalise_counts(jnp.zeros(3), jnp.array([1]), presence=float("nan"))
