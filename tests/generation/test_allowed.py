"""Patterns: they match what Python's `re` matches, token by token, and writing keeps to them."""

import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toy_models import Bigram

import plainformer as pf
from plainformer.generation import allowed_texts, patterns

LETTERS = pf.Vocabulary("ab1-", special=["<stop>"])
WORDS = pf.Vocabulary(["it", "is", "wet", "hot"], special=["<stop>"], separator=" ")
PATTERNS = [
    "(a|b)*1",
    "a{2,3}-?",
    "[^a]+",
    r"\d\w?",
    "((a|)*b)*",
    "(ab)+|.-.",
    r"a\-b|[\w-]1{0,2}",
    "[a-b1]{2}",
    "((a|b?){0,2}){2,3}-",
    "((a{0,2}b){2,3})?1{1,2}",
    "(a{2}){1,2}(){3}|a{0}b",
]


def is_allowed(table, ids, stop=0) -> bool:
    """Whether an automaton reads these ids to the end."""
    state = 0
    for token in ids:
        state = table[state, token] if state >= 0 else -1
    return bool(state >= 0 and table[state, stop] >= 0)


@pytest.mark.equation("eq-serving-allowed")
@pytest.mark.parametrize("pattern", PATTERNS)
def test_allowed_texts_are_those_that_python_matches(pattern):
    table = np.asarray(allowed_texts(pattern, LETTERS, 0).next_state)
    for length in range(5):
        for letters in itertools.product("ab1-", repeat=length):
            text = "".join(letters)
            assert is_allowed(table, LETTERS.encode(text)) == bool(re.fullmatch(pattern, text)), text
    assert (table >= 0).any(axis=1).all()  # from each state something may come


def test_allowed_texts_of_words_and_of_byte_pairs():
    table = np.asarray(allowed_texts("it is (wet|hot)( is)*", WORDS, 0).next_state)
    for text, expected in {"it is wet": True, "it is hot is is": True, "it is": False, "is it wet": False}.items():
        assert is_allowed(table, WORDS.encode(text)) == expected, text
    pairs = pf.BytePairEncoder.train("the cat, the hat, the bat", vocab_size=262)
    stop = pairs.encode("~")[0]
    table = np.asarray(allowed_texts("(the [a-z]at,? ?)+", pairs, stop).next_state)
    assert is_allowed(table, pairs.encode("the cat, the rat"), stop)
    assert is_allowed(table, pairs.encode_bytes(b"t") + pairs.encode("he bat"), stop)  # in whatever tokens
    assert not is_allowed(table, pairs.encode("the goat"), stop)
    assert not is_allowed(table, pairs.encode("é"), stop)


@pytest.fixture(scope="module")
def model():
    """After the stop token a is likely and b is not; after a the letter 1 is unlikely, after b it is likely."""
    # Rows and columns: stop, -, 1, a, b.
    table = np.array(
        [[1, 1, 1, 90, 7], [20, 20, 20, 20, 20], [50, 20, 5, 5, 20], [40, 20, 1, 29, 10], [5, 2, 90, 1, 2]]
    )
    return Bigram(jnp.log(jnp.asarray(table / table.sum(axis=1, keepdims=True), jnp.float32)), 16)


@pytest.mark.equation("eq-serving-allowed")
def test_writing_within_a_pattern_keeps_to_it_and_stops(model):
    pattern = "(a|b)1(-1){0,2}"
    options = {"adjust": allowed_texts(pattern, LETTERS, 0), "tokenizer": LETTERS, "stop_tokens": [0]}
    texts = pf.generate(model, [[0]] * 40, 8, key=jax.random.key(0), **options)
    assert all(text.stopped and re.fullmatch(pattern, text.text) for text in texts)
    assert len({text.text for text in texts}) > 2
    beams = pf.beam_search(model, [0], 8, beam_width=3, length_power=0, **options)
    assert all(beam.stopped and re.fullmatch(pattern, beam.text) for beam in beams)
    log_prob = jnp.log(jnp.array([0.9, 0.01])).sum() + jnp.log(0.5)  # a, 1, stop: the model's own
    np.testing.assert_allclose({beam.text: beam.log_prob for beam in beams}["a1"], log_prob, rtol=1e-5)
    streamed = pf.generate(model, [0], 8, key=jax.random.key(0), stream=True, **options)
    assert list(streamed) == texts[0].tokens


def test_another_pattern_of_as_many_states_is_no_other_program(model):
    before = model.traces.count
    for pattern in ("(a|b)1", "(1|b)a", "(-|a)1"):
        allowed = allowed_texts(pattern, LETTERS, 0)
        pf.generate(model, [0], 5, adjust=allowed, stop_tokens=[0], temperature=0)
    assert model.traces.count == before + 2  # the prompt and the step, once


def test_the_automaton_is_an_array_in_a_compiled_program():
    allowed = allowed_texts("ab?", LETTERS, 0)
    state = jax.jit(lambda allowed, written: allowed.state(written))
    begun, wrong = (jnp.array([*LETTERS.encode(letter), -1]) for letter in "ab")
    assert state(allowed, begun) > 0
    assert state(allowed, wrong) == -1
    assert not allowed.allowed(wrong).any()
    logits = jnp.arange(5.0)
    found = allowed(logits, jnp.array([-1]), jnp.array([-1, -1]))
    np.testing.assert_array_equal(np.isfinite(found), [token == "a" for token in LETTERS.tokens])


def test_what_can_never_end_is_not_begun():
    begun = allowed_texts("a|bz", LETTERS, 0).allowed(jnp.array([-1]))  # no token has a z
    assert [token for token, is_allowed in zip(LETTERS.tokens, begun, strict=True) if is_allowed] == ["a"]


@pytest.mark.parametrize(
    "pattern",
    ["a(b", "a)b", "*a", "[ab", "[b-a]", r"\q", "(?:a)", "a{3,2}", "a{1001}", "a{2000}", "z+", "((ab?){2,200}){1,200}"],
)
def test_patterns_that_cannot_be_are_refused(pattern):
    with pytest.raises(ValueError, match="expected"):
        allowed_texts(pattern, LETTERS, 0)


@pytest.mark.usefixtures("unchecked")
def test_allowed_texts_wants_a_stop_token_of_the_tokenizer():
    with pytest.raises(ValueError, match="stop_token"):
        allowed_texts("a", LETTERS, 5)
    with pytest.raises(TypeError, match="tokenizer"):
        allowed_texts("a", "letters", 0)


@pytest.mark.parametrize(
    ("pattern", "states"),
    [("(a|b)*a(a|b?){0,200}", 205), ("(a|b)*a(a|b?){0,200}a", 206), ("((ab?){1,20}){1,40}", 1602), ("a{1000}", 1002)],
)
def test_repetitions_of_what_can_be_empty_take_few_states_and_few_steps(pattern, states, monkeypatch):
    """A state holds few sequences, since what allows fewer repetitions of the same is left out."""
    steps, left_after = 0, patterns.left_after

    def counting(*arguments):
        nonlocal steps
        steps += 1
        return left_after(*arguments)

    monkeypatch.setattr(patterns, "left_after", counting)
    table = pf.generation.allowed_texts(pattern, pf.Vocabulary("ab", special=["<stop>"]), 0).next_state
    assert len(table) <= states
    assert steps <= 30 * states
