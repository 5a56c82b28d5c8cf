"""Every way of writing refuses what any of them refuses, and draws by the same law."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flat import decoder_config, seq2seq_config
from toy_models import Bigram, drawn

import plainformer as pf
from plainformer.generation import speculative_generate

VOCAB, CONTEXT, START, STOP = 7, 12, 5, 6
KEY = jax.random.key(0)
SIZES = {"d_model": 8, "num_heads": 2, "d_ff": 5, "position_scheme": "learned"}
DECODER = drawn(pf.Decoder, decoder_config(VOCAB, CONTEXT, num_layers=1, **SIZES), seed=1)
DRAFT = drawn(pf.Decoder, decoder_config(VOCAB, CONTEXT, num_layers=1, **SIZES), seed=2)
PAIR = {"source_len": CONTEXT, "start_token": START, "stop_token": STOP, "num_encoder_layers": 1}
TRANSLATOR = drawn(pf.Seq2Seq, seq2seq_config(VOCAB, CONTEXT, num_decoder_layers=1, **PAIR, **SIZES), seed=3)


WORDS = pf.Vocabulary("abcdefg")  # as many as the models have


def generate(prompts, model=DECODER, max_new_tokens=3, **options):
    return pf.generate(model, prompts, max_new_tokens, **options)


def stream(prompts, model=DECODER, max_new_tokens=3, **options):
    return list(pf.generate(model, prompts, max_new_tokens, stream=True, **options))


def beam(prompts, model=DECODER, max_new_tokens=3, **options):
    return pf.beam_search(model, prompts, max_new_tokens, beam_width=2, **options)


def speculative(prompts, model=DECODER, max_new_tokens=3, draft=DRAFT, num_drafted=2, **options):
    return speculative_generate(model, draft, prompts, max_new_tokens, num_drafted=num_drafted, **options)


def translate(sources, model=TRANSLATOR, max_new_tokens=3, **options):
    return pf.translate(model, sources, max_new_tokens, **options)


def translate_by_beam(sources, model=TRANSLATOR, max_new_tokens=3, **options):
    return pf.translate(model, sources, max_new_tokens, beam_width=2, **options)


def tokens_of(found) -> list[int]:
    """The ids that a way of writing returns for a single prompt."""
    return found if found and isinstance(found[0], int) else found.tokens


DRAWING = [generate, stream, speculative, translate]
WAYS = [*DRAWING, beam, translate_by_beam]


def with_key(way, options: dict) -> dict:
    return {"key": KEY, **options} if way in DRAWING else options


MISUSES = {
    "an id beyond the vocabulary": ([1, 99], {}, ValueError, "99"),
    "an id below zero": ([-1, 2], {}, ValueError, "-1"),
    "ids that are no whole numbers": ([1.5], {}, TypeError, "float64"),
    "truths": ([True, False], {}, TypeError, "True or False"),
    "text": ("ab", {}, TypeError, "Encode it first"),
    "text in a list": (["ab"], {}, TypeError, "Encode it first"),
    "nothing": (None, {}, TypeError, "(prompts|sources) is None"),
    "a set": ({(1, 2)}, {}, TypeError, "(prompts|sources)"),
    "an empty prompt": ([], {}, ValueError, "is empty"),
    "an empty prompt of two": ([[1], []], {}, ValueError, r"(prompts|sources)\[1\]"),
    "a bad id in the second of two": ([[1], [2, 7]], {}, ValueError, r"(prompts|sources)\[1\]\[1\]"),
    "a prompt longer than the context": ([1] * 13, {}, ValueError, "13 tokens|18"),
    "a text of another vocabulary": ("ab", {"tokenizer": pf.Vocabulary("abc")}, ValueError, "3 tokens"),
    "a tokenizer that is none": ([1], {"tokenizer": "gpt2"}, TypeError, "tokenizer"),
    "no tokens to write": ([1], {"max_new_tokens": 0}, ValueError, "max_new_tokens"),
    "more than there is room for": ([1], {"max_new_tokens": 50}, ValueError, "context_len=12"),
    "a stop token beyond the vocabulary": ([1], {"stop_tokens": [7]}, ValueError, r"stop_tokens\[0\]"),
    "a stop token that is text": ([1], {"stop_tokens": "."}, TypeError, "stop_tokens"),
    "a stop token by name": ([1], {"stop_tokens": ["<stop>"]}, ValueError, "no tokenizer"),
    "a name that is none": ([1], {"stop_tokens": ["x"], "tokenizer": WORDS}, ValueError, "names 'x'"),
    "a set of stop tokens": ([1], {"stop_tokens": {1}}, TypeError, "stop_tokens"),
    "a model that is none": ([1], {"model": "decoder"}, TypeError, "model"),
}
MISDRAWN = {
    "a negative temperature": ({"temperature": -0.1}, ValueError),
    "no temperature": ({"temperature": float("nan")}, ValueError),
    "an infinite temperature": ({"temperature": float("inf")}, ValueError),
    "a temperature in words": ({"temperature": "hot"}, TypeError),
    "top_k of 0": ({"top_k": 0}, ValueError),
    "top_k beyond the vocabulary": ({"top_k": 8}, ValueError),
    "half a top_k": ({"top_k": 2.5}, TypeError),
    "top_p of 0": ({"top_p": 0}, ValueError),
    "top_p beyond 1": ({"top_p": 1.01}, ValueError),
    "min_p beyond 1": ({"min_p": 1.5}, ValueError),
    "no key": ({"key": None}, TypeError),
    "a seed for a key": ({"key": 3}, TypeError),
}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("misuse", MISUSES)
def test_every_way_of_writing_refuses_a_wrong_call(misuse, subtests):
    prompt, options, error, message = MISUSES[misuse]
    for way in WAYS:
        with subtests.test(way=way.__name__), pytest.raises(error, match=message):
            way(prompt, **with_key(way, options))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("misuse", MISDRAWN)
def test_every_way_of_drawing_refuses_a_wrong_choice(misuse, subtests):
    options, error = MISDRAWN[misuse]
    (name,) = options
    for way in DRAWING:
        with subtests.test(way=way.__name__), pytest.raises(error, match=name):
            way([1], **{"temperature": 1.0, "key": KEY, **options})
    if name != "key":
        with pytest.raises(error, match=name):
            pf.next_token_probabilities(jnp.arange(7.0), **options)


SEARCHES = [
    ({"beam_width": 0}, ValueError),
    ({"beam_width": 1.5}, TypeError),
    ({"length_power": -1}, ValueError),
    ({"length_power": float("inf")}, ValueError),
    ({"length_power": 100}, ValueError),  # a length to this power is infinite
]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("options", "error"), SEARCHES)
def test_every_search_refuses_a_wrong_beam(options, error):
    (name,) = options
    for search, model in ((pf.beam_search, DECODER), (pf.translate, TRANSLATOR)):
        with pytest.raises(error, match=name):
            search(model, [1], 3, **{"beam_width": 2, **options})


@pytest.mark.usefixtures("unchecked")
def test_what_is_read_has_to_fit():
    with pytest.raises(ValueError, match="logits"):
        pf.next_token_probabilities(jnp.ones((1, 7)))
    with pytest.raises(TypeError, match="logits"):
        pf.next_token_probabilities(jnp.arange(7))
    with pytest.raises(ValueError, match="tokens"):
        pf.generation.sequence_log_probs(DECODER, jnp.array([3]))
    with pytest.raises(ValueError, match="context_len=12"):
        pf.generation.sequence_log_probs(DECODER, jnp.zeros(14, int))


def test_every_way_of_writing_fills_the_context():
    """The last token that is written is not read: 12 tokens are."""
    assert len(generate([1, 2, 3, 4], max_new_tokens=9, temperature=0).tokens) == 9
    assert len(beam([1, 2, 3, 4], max_new_tokens=9)[0].tokens) == 9
    assert len(speculative([1, 2, 3, 4], max_new_tokens=6, temperature=0).tokens) == 6


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_writing_names_weights_that_are_no_numbers(way):
    right = TRANSLATOR if way in (translate, translate_by_beam) else DECODER
    spoilt = jax.tree.map(lambda leaf: leaf * jnp.nan if eqx.is_inexact_array(leaf) else leaf, right)
    for options in [{"temperature": 0.0}, {"temperature": 1.0, "key": KEY}] if way in DRAWING else [{}]:
        with pytest.raises(ValueError, match=r"The model gives NaN .*weights probably hold NaN"):
            way([1, 2], spoilt, **options)


@pytest.mark.parametrize("way", [generate, speculative])
def test_a_temperature_however_small_draws_among_the_likeliest(way):
    """After each token, 1 and 4 are equally likely, and all others less so: both are drawn, and nothing else."""
    model = Bigram(np.tile(np.float32([0.0, 2.0, 1.9, 0.0, 2.0, 1.0, 0.0]), (VOCAB, 1)), 40)
    more = {"draft": Bigram(np.eye(VOCAB), 40)} if way is speculative else {}
    for temperature in (1e-300, 1e-45, 1e-38):
        tokens = tokens_of(way([3], model, 30, temperature=temperature, key=KEY, **more))
        found = np.bincount(tokens, minlength=VOCAB)
        assert set(np.flatnonzero(found)) == {1, 4}
        assert 5 < found[1] < 25


@pytest.mark.parametrize("way", [generate, speculative])
def test_a_temperature_however_large_draws_among_all(way):
    found = [tokens_of(way([n % 5], key=jax.random.key(n), temperature=1e300)) for n in range(25)]
    assert set().union(*found) == set(range(VOCAB))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("way", WAYS)
def test_one_prompt_gives_one_result_and_a_list_of_them_a_list(way):
    """By ids, by an array and by text; the results say the same of the first."""
    options = with_key(way, {"temperature": 0.0} if way in DRAWING else {}) | {"tokenizer": WORDS}
    one, *others = (way(prompt, **options) for prompt in ([1, 2], np.array([1, 2]), jnp.array([1, 2]), "bc"))
    several = [way(prompts, **options) for prompts in ([[1, 2], [3]], ["bc", "d"])]
    for found in others:
        assert same(found, one)
    for found in several:
        assert len(found) == (3 if way is stream else 2)
        assert same([first for first, _ in found] if way is stream else found[0], one)


def same(found, expected) -> bool:
    """Whether two results are the same, but for rounding."""
    if isinstance(found, float):
        return abs(found - expected) < 1e-4
    if isinstance(found, tuple | list):
        return len(found) == len(expected) and all(map(same, found, expected))
    return found == expected


@pytest.mark.parametrize("way", [each for each in WAYS if each is not stream])
def test_results_of_all_ways_have_the_same_fields(way):
    """What was written, as text without the token that stopped it; the log-probability is that of all tokens."""
    options = with_key(way, {"temperature": 0.0} if way in DRAWING else {})
    likeliest, *_ = first(way([1, 2], max_new_tokens=1, **options)).tokens
    found = first(way([1, 2], max_new_tokens=1, **options, stop_tokens=[likeliest], tokenizer=WORDS))
    assert found._fields[:4] == ("tokens", "text", "log_prob", "stopped")
    assert found.stopped
    assert found.tokens[-1] in (likeliest, STOP)
    assert found.text == WORDS.decode(found.tokens[:-1])
    if way not in (translate, translate_by_beam):
        log_probs = np.asarray(pf.generation.sequence_log_probs(DECODER, [1, 2, *found.tokens]))[1:]
        np.testing.assert_allclose(found.log_prob, log_probs.sum(), rtol=1e-4)


def first(found):
    """The best that beam search found, or what another way returns."""
    return found[0] if isinstance(found, list) else found


@pytest.mark.usefixtures("unchecked")
def test_a_draft_is_asked_for_what_the_model_is():
    def short(context_len, vocab_size=VOCAB):
        return drawn(pf.Decoder, decoder_config(vocab_size, context_len, num_layers=1, **SIZES))

    with pytest.raises(ValueError, match="context_len=6 of the draft"):
        speculative([1, 2], draft=short(6), key=KEY)
    with pytest.raises(ValueError, match="context_len=6 of the model"):
        speculative([1, 2], short(6), key=KEY)
    with pytest.raises(ValueError, match="vocabulary"):
        speculative([1, 2], draft=short(12, 8), key=KEY)
    with pytest.raises(TypeError, match="draft"):
        speculative([1, 2], draft="small", key=KEY)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_draft_of_nan_changes_nothing_but_the_time(temperature):
    spoilt = jax.tree.map(lambda leaf: leaf * jnp.nan if eqx.is_inexact_array(leaf) else leaf, DRAFT)
    found = speculative([1, 2], draft=spoilt, temperature=temperature, key=KEY)
    assert found.num_calls == 3  # each guess is refused
    if temperature == 0:
        assert found.tokens == generate([1, 2], temperature=0.0).tokens
