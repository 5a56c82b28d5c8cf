"""Beam search: between greedy and exhaustive search, and honest about its scores."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flat import decoder_config
from toy_models import Bigram, drawn

import plainformer as pf
from plainformer.generation.beam import _top_k

VOCAB, NEW, PROMPT = 3, 4, [1, 0]


@pytest.fixture(scope="module")
def model():
    """A decoder of three tokens, which looks back farther than one of them."""
    sizes = {"d_model": 8, "num_layers": 2, "num_heads": 4, "num_kv_heads": 2, "d_ff": 5, "position_scheme": "rotary"}
    return drawn(pf.Decoder, decoder_config(VOCAB, 6, **sizes), seed=53)


@pytest.fixture(scope="module")
def tree(model):
    """The log-probability of each new token in each of the 81 texts of four."""
    texts = list(itertools.product(range(VOCAB), repeat=NEW))
    logits = np.asarray(eqx.filter_jit(model)(jnp.array([PROMPT + list(text) for text in texts])), np.float64)
    log_probs = logits - np.log(np.exp(logits).sum(axis=2, keepdims=True))
    return {text: [log_probs[n, 1 + m, token] for m, token in enumerate(text)] for n, text in enumerate(texts)}


def step_by_step(tree, beam_width, length_power, stop_tokens):
    """Beam search with lists, as one would do it on paper, of (score, tokens, log-probability)."""
    conditional = {text[: n + 1]: log_probs[n] for text, log_probs in tree.items() for n in range(NEW)}
    beam = [(0.0, [], 0.0)]
    for _ in range(NEW):
        candidates = []
        for hypothesis in beam:
            _, tokens, log_prob = hypothesis
            if tokens and tokens[-1] in stop_tokens:
                candidates.append(hypothesis)
                continue
            for token in range(VOCAB):
                total = log_prob + conditional[(*tokens, token)]
                candidates.append((total / (len(tokens) + 1) ** length_power, [*tokens, token], total))
        beam = sorted(candidates, reverse=True)[:beam_width]
    return beam


@pytest.mark.equation("eq-generation-beam", "eq-generation-length-norm")
@pytest.mark.parametrize(
    ("beam_width", "length_power", "stop_tokens"),
    [
        (1, 1.0, [2]),
        (4, 0.0, [2]),
        (4, 0.6, [0]),
        (4, 3.0, [2]),
        (81, 0.0, []),
        (81, 1.0, [2]),
    ],  # 81: as wide as the tree
)
def test_beam_search_agrees_with_lists(model, tree, beam_width, length_power, stop_tokens):
    expected = step_by_step(tree, beam_width, length_power, stop_tokens)
    options = {"beam_width": beam_width, "length_power": length_power, "stop_tokens": stop_tokens}
    found = pf.beam_search(model, PROMPT, NEW, **options)
    assert [each.tokens for each in found] == [tokens for _, tokens, _ in expected]
    close = {"rtol": 1e-4, "atol": 1e-5}
    np.testing.assert_allclose([each.score for each in found], [score for score, *_ in expected], **close)
    np.testing.assert_allclose([each.log_prob for each in found], [total for *_, total in expected], **close)


def test_beam_search_returns_no_more_texts_than_there_are():
    model = Bigram(np.zeros((2, 2)))
    assert len(pf.beam_search(model, [0], 2, beam_width=9)) == 4
    found = pf.beam_search(model, [0], 3, beam_width=9, stop_tokens=[0, 1])
    assert sorted(each.tokens for each in found) == [[0], [1]]


def test_beam_wider_than_its_prompt_writes_a_single_token():
    # Prompts are padded to 16 tokens: the beam does not fit into a cache that has room for the prompt alone.
    wide = drawn(pf.Decoder, decoder_config(VOCAB, 20, d_model=8, num_layers=1, num_heads=2))
    found = pf.beam_search(wide, PROMPT, 1, beam_width=18)
    assert sorted(text.tokens[0] for text in found) == list(range(VOCAB))


def test_beam_search_is_traced_once_for_each_shape():
    model = Bigram(np.eye(5))
    pf.beam_search(model, [0, 1], 3, beam_width=2, stop_tokens=[4])
    once = model.traces.count
    pf.beam_search(model, [3, 2], 3, beam_width=2, stop_tokens=[1], length_power=0.5)
    assert model.traces.count == once


@pytest.mark.parametrize(("columns", "k"), [(4000, 4), (129, 4), (5, 5)])
def test_the_largest_of_a_long_row_are_those_of_jax(columns, k):
    random = np.random.default_rng(columns)
    numbers = random.integers(0, 40, size=(3, 2, columns)).astype(np.float32)  # many are equal
    numbers[0, 0] = -np.inf
    numbers[0, 1, : columns - 2] = -np.inf
    numbers[1, 0, 3] = np.nan
    for found, expected in zip(_top_k(jnp.asarray(numbers), k), jax.lax.top_k(numbers, k), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_beam_search_log_probs_are_those_of_the_whole_text_where_distance_counts():
    sizes = {"d_model": 8, "num_layers": 2, "num_heads": 4, "d_ff": 5, "position_scheme": "relative"}
    model = drawn(pf.Decoder, decoder_config(200, 12, **sizes), seed=7)  # more tokens than are looked at one by one
    found = pf.beam_search(model, [3, 1, 2], 9, beam_width=5)
    assert len(found) == 5
    texts = jnp.asarray([[3, 1, 2, *each.tokens] for each in found])
    log_probs = eqx.filter_jit(jax.vmap(pf.generation.sequence_log_probs, in_axes=(None, 0)))(model, texts)[:, 2:].sum(
        axis=1
    )
    np.testing.assert_allclose([each.log_prob for each in found], log_probs, rtol=1e-5)
