"""Sampling and beam search: what a reader is told about numbers out of range and texts too long."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flat import decoder_config
from toy_models import Bigram, drawn

import plainformer as pf

KEY, LOGITS = jax.random.key(0), jnp.arange(7.0)
MODEL = Bigram(np.eye(7), context_len=9)


def generate(prompts=((1, 2),), max_new_tokens=3, **options):
    return pf.generate(MODEL, prompts, max_new_tokens, **{"key": KEY, **options})


def search(prompt=(1, 2), max_new_tokens=3, **options):
    return pf.beam_search(MODEL, prompt, max_new_tokens, **{"beam_width": 2, **options})


def test_generate_fills_the_context_to_the_last_token():
    # The last token that is written is not read: 9 tokens are.
    assert len(generate([[1, 2, 3, 4]], 6)[0].tokens) == 6
    assert len(search([1, 2, 3, 4], 6)[0].tokens) == 6


CHOICES = [
    ({"temperature": -0.1}, ValueError, r"temperature is -0\.1; expected finite and at least 0"),
    ({"temperature": float("nan")}, ValueError, r"temperature is nan; expected finite and at least 0"),
    ({"temperature": float("inf")}, ValueError, r"temperature is inf; expected finite and at least 0"),
    ({"temperature": "hot"}, TypeError, r"temperature is 'hot'; expected a number"),
    ({"top_k": 0}, ValueError, r"top_k is 0; expected at least 1"),
    ({"top_k": 8}, ValueError, r"top_k is 8; expected at most 7, the number of tokens"),
    ({"top_k": 2.0}, TypeError, r"top_k is 2\.0; expected a whole number"),
    ({"top_p": 0}, ValueError, r"top_p is 0; expected a probability above 0 and at most 1"),
    ({"top_p": 1.01}, ValueError, r"top_p is 1\.01; expected a probability above 0"),
    ({"top_p": float("nan")}, ValueError, r"top_p is nan; expected a probability"),
]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("options", "error", "message"), CHOICES)
def test_bad_choices_are_named(options, error, message):
    with pytest.raises(error, match=message):
        pf.next_token_probabilities(LOGITS, **options)
    with pytest.raises(error, match=message):
        generate(**options)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pf.next_token_probabilities(LOGITS[None]), ValueError, r"logits has shape \(1, 7\); expected \(vocab"),
        (lambda: pf.next_token_probabilities(jnp.arange(7)), TypeError, r"logits holds int32; expected floats"),
        (lambda: generate("The "), TypeError, r"prompts is a string; .*Encode it first: vocabulary\.encode"),
        (lambda: generate(["The "]), TypeError, r"prompts\[0\] is a string; expected token ids\. Encode it first"),
        (lambda: search("The "), TypeError, r"prompts is a string; expected a list of ids, .*Encode it first"),
        (lambda: generate(stop_tokens="."), TypeError, r"stop_tokens is a string; .*Encode it first"),
        (lambda: generate([]), ValueError, r"prompts is empty; expected at least one"),
        (lambda: generate([[1], []]), ValueError, r"prompts\[1\] is empty; expected at least one token to start"),
        (
            lambda: generate([[1], [2, 7]]),
            ValueError,
            r"prompts\[1\]\[1\] is 7; expected 0 to 6, as there are 7 tokens",
        ),
        (lambda: generate([[-1]]), ValueError, r"prompts\[0\]\[0\] is -1; expected 0 to 6"),
        (lambda: generate([[1.5]]), TypeError, r"prompts\[0\] are float64; expected whole numbers"),
        (
            lambda: generate([[1], [1, 2, 3, 4, 5]], 6),
            ValueError,
            r"longest prompt has 5 tokens, and 6 shall follow; expected at most context_len=9 to read\. Write fewer",
        ),
        (lambda: generate([[0] * 10], 1), ValueError, r"longest prompt has 10 tokens"),
        (lambda: generate(max_new_tokens=0), ValueError, r"max_new_tokens is 0; expected at least 1"),
        (lambda: generate(stop_tokens=[7]), ValueError, r"stop_tokens\[0\] is 7; expected 0 to 6"),
        (lambda: generate(temperature=0, top_k=8), ValueError, r"top_k is 8; expected at most 7, the number of tokens"),
        (
            lambda: pf.generate("text", [[1]], 2),
            TypeError,
            r"model is of type str; expected one that writes",
        ),
        (lambda: generate(key=None), TypeError, r"key is None; expected a random key, .*or temperature=0"),
        (
            lambda: pf.generation.sequence_log_probs(MODEL, jnp.array([3])),
            ValueError,
            r"There are 1 tokens in all; expected at",
        ),
        (
            lambda: generate(None),
            TypeError,
            r"prompts is None; expected a list of ids, such as \[1, 2\], or of such lists",
        ),
        (lambda: generate({(1, 2)}), TypeError, r"prompts is \{\(1, 2\)\}; expected a list"),
        (lambda: generate(stop_tokens={1, 2}), TypeError, r"stop_tokens is \{1, 2\}; expected a list of ids"),
        (
            lambda: search(stop_tokens={1}),
            TypeError,
            r"stop_tokens is \{1\}; expected a list of ids after which .*\[0\]",
        ),
        (lambda: search(5), TypeError, r"prompts is 5; expected a list of ids, such as \[1, 2\]"),
        (
            lambda: search(length_power=100),
            ValueError,
            r"length_power is 100\.0; expected a smaller .*: 3 to this power is too",
        ),
        (lambda: search(beam_width=0), ValueError, r"beam_width is 0; expected at least 1"),
        (lambda: search(beam_width=1.5), TypeError, r"beam_width is 1\.5; expected a whole number"),
        (lambda: search(length_power=-1), ValueError, r"length_power is -1; expected finite and at least 0"),
        (lambda: search(length_power=float("inf")), ValueError, r"length_power is inf; expected finite"),
        (lambda: search(length_power="long"), TypeError, r"length_power is 'long'; expected a number"),
        (lambda: search([]), ValueError, r"is empty; expected at least one token"),
        (lambda: search([0, 9]), ValueError, r"prompts\[1\] is 9; expected 0 to 6"),
        (lambda: search([1, 2, 3, 4, 5], 6), ValueError, r"longest prompt has 5 tokens, and 6 shall follow"),
        (lambda: search(max_new_tokens=0), ValueError, r"max_new_tokens is 0; expected at least 1"),
        (lambda: search(stop_tokens=[-2]), ValueError, r"stop_tokens\[0\] is -2; expected 0 to 6"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_sequence_log_probs_names_a_text_longer_than_the_context():
    model = drawn(pf.Decoder, decoder_config(7, 3, d_model=4, num_layers=1, num_heads=2, d_ff=5))
    with pytest.raises(ValueError, match=r"tokens has 4 tokens; expected 1 to context_len=3"):
        pf.generation.sequence_log_probs(model, jnp.arange(5))
