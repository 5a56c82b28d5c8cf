"""Texts that join a batch and leave it write what each writes alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toy_models import drawn

import plainformer as pf
from plainformer.generation import Server
from plainformer.generation.serving import _read_compiled

PROMPTS = [[1, 2, 3], [4], [1, 2, 3, 5, 6, 7, 8, 9, 1, 2], [1, 2, 3], [6, 6], [1, 2, 3, 5, 6, 7, 0], [9, 8, 7, 6, 5]]
SAMPLED = {"temperature": 1.3, "top_k": 7, "top_p": 0.9, "key": jax.random.key(5)}


def model_with(scheme, seed=0, **options):
    stack = pf.StackConfig(d_model=12, num_layers=2, num_heads=6, d_ff=10, position_scheme=scheme, **options)
    return drawn(pf.Decoder, pf.DecoderConfig(11, 24, stack=stack), seed)


def served(model, lengths=9, *, prompts=PROMPTS, **options):
    server = Server(model, **options)
    lengths = [lengths] * len(prompts) if isinstance(lengths, int) else lengths
    for prompt, length in zip(prompts, lengths, strict=True):
        server.submit(prompt, length)
    return server, server.run()


@pytest.mark.equation("eq-serving-page-table")
@pytest.mark.parametrize(
    ("scheme", "options", "choice"),
    [
        ("rotary", {"window": 5}, SAMPLED),
        ("alibi", {"num_kv_heads": 2, "d_k": 4, "d_v": 5}, {"temperature": 0}),
        ("learned", {}, {"temperature": 0}),
    ],
)
def test_server_writes_what_generate_writes(scheme, options, choice):
    model = model_with(scheme, **options)
    server, found = served(model, places=3, page_size=4, stop_tokens=[0, 10], **choice)
    expected = pf.generate(model, PROMPTS, 9, stop_tokens=[0, 10], **choice)
    assert list(found) == list(range(len(PROMPTS)))
    for number, text in enumerate(expected):
        assert found[number].tokens == text.tokens
        assert (found[number].stopped, found[number].text) == (text.stopped, text.text)
        np.testing.assert_allclose(found[number].log_probs, text.log_probs, rtol=1e-4, atol=1e-4)
    assert server.page_tables.num_held == 0


def test_server_adjusts_as_generate_does():
    """By the prompt and by what was written: no token comes that the prompt has, and one that was written rarely."""
    model = model_with("rotary")

    def adjust(logits, prompt, written):
        logits = logits.at[jnp.where(prompt < 0, len(logits), prompt)].set(-jnp.inf, mode="drop")
        return pf.generation.penalise_counts(logits, written, presence=3.0)

    _, found = served(model, places=3, page_size=4, stop_tokens=[10], adjust=adjust, **SAMPLED)
    expected = pf.generate(model, PROMPTS, 9, stop_tokens=[10], adjust=adjust, **SAMPLED)
    assert [text.tokens for text in found.values()] == [text.tokens for text in expected]
    assert not any({*text.tokens} & {*prompt} for text, prompt in zip(expected, PROMPTS, strict=True))
    _, plain = served(model, places=3, page_size=4, stop_tokens=[10], **SAMPLED)
    assert [text.tokens for text in plain.values()] != [text.tokens for text in expected]


@pytest.mark.parametrize(("places", "page_size"), [(1, 1), (9, 5)])
def test_places_and_pages_change_nothing_that_is_written(places, page_size):
    model = model_with("rotary", num_kv_heads=2)
    _, found = served(model, [5, 1, 9, 3, 14, 2, 7], places=places, page_size=page_size, **SAMPLED)
    expected = pf.generate(model, PROMPTS, 14, **SAMPLED)
    for number, length in enumerate([5, 1, 9, 3, 14, 2, 7]):
        assert found[number].tokens == expected[number].tokens[:length]


def test_a_text_that_ends_leaves_at_once_and_the_next_joins():
    """Two places, lengths 2, 9, 2 and 2: the long one is alone in its place, the short ones follow each other."""
    model = model_with("rotary")
    server = Server(model, places=2, page_size=4, temperature=0)
    for prompt, length in zip(PROMPTS, [2, 9, 2, 2], strict=False):
        server.submit(prompt, length)
    steps = []
    while found := server.step():
        steps.append(list(found))
    # Each text has its first token from its prompt; so a text of two takes one step.
    assert steps == [[0], [2], [3]]
    assert list(server.run()) == [1]
    assert server.num_steps == 8  # as many as the long one needs, where batches that wait need 8 + 1


def test_texts_join_without_compiling_again():
    model = model_with("rotary", seed=1)
    before = _read_compiled._cached._cache_size()
    for lengths in ([3, 1, 4, 1, 5, 9, 2], [6] * 7):
        served(model, lengths, places=5, page_size=3, temperature=0)
        assert _read_compiled._cached._cache_size() == before + 2  # one for prompts, one for a token of each text


def test_texts_with_a_common_beginning_hold_fewer_pages():
    model, beginning = model_with("rotary"), list(range(8))
    prompts = [[*beginning, last] for last in (8, 9, 10)]
    server, _ = served(model, 3, prompts=prompts, places=3, page_size=4, temperature=0)
    other, _ = served(model, 3, prompts=[prompt[::-1] for prompt in prompts], places=3, page_size=4, temperature=0)
    assert (server.most_held, other.most_held) == (2 + 3, 9)


def test_server_reads_and_writes_text():
    vocabulary = pf.Vocabulary.from_characters("abcdefghij", special=["<stop>"])
    model = model_with("alibi")
    _, found = served(model, 6, prompts=["ab", "cde"], tokenizer=vocabulary, stop_tokens=[10], temperature=0)
    expected = pf.generate(model, ["ab", "cde"], 6, tokenizer=vocabulary, stop_tokens=[10], temperature=0)
    assert [text.text for text in found.values()] == [text.text for text in expected]


def new_server(**options):
    return Server(model_with("rotary"), temperature=0, **options)


def test_server_takes_a_page_as_long_as_the_context_at_most():
    assert new_server(page_size=1000).page_size == 24


def test_a_text_waits_until_there_are_pages_for_all_of_it():
    model, prompts = model_with("rotary"), [[1, 2, 3, 4, 5, 6], [7, 8, 9, 7, 8, 9, 1, 2], [3, 1, 4, 1]]
    server, found = served(model, 4, prompts=prompts, places=2, page_size=4, num_pages=3, temperature=0)
    expected = pf.generate(model, prompts, 4, temperature=0)
    assert [text.tokens for text in found.values()] == [text.tokens for text in expected]
    assert server.page_tables.num_held == 0
    assert server.most_held <= 3


def diverged():
    model = model_with("rotary")
    server = Server(jax.tree.map(lambda leaf: leaf * np.nan, model), temperature=0)
    server.submit([1], 2)
    return server.run()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: new_server().submit([[1], [2]], 3), TypeError, "prompt"),
        (lambda: new_server().submit([11], 3), ValueError, "prompt"),
        (lambda: new_server().submit([1] * 20, 9), ValueError, "20 tokens"),
        (lambda: Server(model_with("rotary")), TypeError, "key"),
        (lambda: Server(len, temperature=0), TypeError, "model"),
        (lambda: new_server(places=0), ValueError, "places"),
        (lambda: new_server(num_pages=2, page_size=4).submit([1] * 8, 4), ValueError, "num_pages=3"),
        (diverged, ValueError, "NaN"),
        (
            lambda: served(model_with("rotary"), 2, adjust=lambda logits, *_: logits - jnp.inf, temperature=0),
            ValueError,
            "-inf",
        ),
    ],
)
def test_server_says_what_is_wrong(call, error, message, unchecked):
    with pytest.raises(error, match=message):
        call()
