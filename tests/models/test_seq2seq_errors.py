"""Chapter 08's model and what feeds it at their edges: what is too long, empty, padding or without a start token."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toy_translators import CONTEXT, SOURCE_LEN, SOURCES, START, STOP, TARGETS, VOCAB, new_config, new_model, padded

import plainformer as pf

KEY = jax.random.key(0)
SOURCE, TARGET = jnp.array(SOURCES[0]), jnp.array(TARGETS[0])


@pytest.fixture(scope="module")
def model():
    return new_model(KEY)


def test_seq2seq_takes_texts_as_long_as_its_tables(model):
    source, target = jnp.full(SOURCE_LEN, 2), jnp.full(CONTEXT, START)
    assert model(source, target).shape == (CONTEXT, VOCAB)


def test_seq2seq_takes_texts_of_one_token(model):
    assert model(jnp.array([2]), jnp.array([START])).shape == (1, VOCAB)
    assert model.cross_weights(jnp.array([2]), jnp.array([START])).shape == (2, 3, 1, 1)


def test_seq2seq_config_allows_one_token_for_both_ends():
    assert new_config(start_token=4, stop_token=4).start_token == 4


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"vocab_size": 0}, ValueError, r"vocab_size is 0; expected at least 1"),
        ({"source_vocab_size": 0}, ValueError, r"source_vocab_size is 0; expected at least 1"),
        ({"context_len": 0}, ValueError, r"context_len is 0; expected at least 1"),
        ({"source_len": 2.5}, TypeError, r"source_len is 2\.5; expected a whole number"),
        ({"num_encoder_layers": 0}, ValueError, r"num_encoder_layers is 0; expected at least 1"),
        ({"num_decoder_layers": -1}, ValueError, r"num_decoder_layers is -1; expected at least 1"),
        ({"d_ff": 0}, ValueError, r"d_ff is 0; expected at least 1"),
        ({"d_model": 13}, ValueError, r"d_model=13 is not a multiple of num_heads=3"),
        ({"d_model": 9, "positions": "rotary"}, ValueError, r"d_model=9 by num_heads=3 is odd; expected an even"),
        ({"positions": "rope"}, ValueError, r"positions is 'rope'; expected one of 'learned', 'sinu"),
        ({"placement": "both"}, ValueError, r"placement is 'both'; expected one of 'pre', 'post'"),
        ({"norm": "batch"}, ValueError, r"norm is 'batch'; expected one of 'layer', 'rms'"),
        ({"activation": "tanh"}, ValueError, r"activation is 'tanh'; expected one of .*'swiglu'"),
        ({"dropout_rate": 1.0}, ValueError, r"dropout_rate is 1\.0; expected a probability"),
        ({"start_token": 11}, ValueError, r"start_token is 11; expected 0 to 10, an id of the vocabulary"),
        ({"stop_token": -1}, ValueError, r"stop_token is -1; expected 0 to 10"),
        ({"start_token": "<s>"}, TypeError, r"start_token is '<s>'; expected the id of a token, a whole number"),
        ({"stop_token": True}, TypeError, r"stop_token is True; expected the id of a token"),
        ({"tied_embedding": 1}, TypeError, r"tied_embedding is 1; expected True or False"),
        ({"use_bias": None}, TypeError, r"use_bias is None; expected True or False"),
    ],
)
def test_bad_configuration_is_named(options, error, message):
    with pytest.raises(error, match=message):
        new_config(**options)


@pytest.mark.usefixtures("unchecked")
def test_seq2seq_tells_a_start_token_from_what_it_would_be_in_8_bits():
    config = pf.Seq2SeqConfig(300, 8, 6, 256, 4, d_model=12, num_encoder_layers=1, num_decoder_layers=1, num_heads=3)
    with pytest.raises(ValueError, match=r"Target 0 begins with 0; expected the start token, 256"):
        pf.Seq2Seq(config, key=jax.random.key(0))(SOURCE, jnp.array([0, 5], jnp.uint8))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("source", "target", "is_source", "error", "message"),
    [
        (jnp.zeros(7, int), TARGET, None, ValueError, r"A source has 7 tokens; expected 1 to source_len=6\. Cut it"),
        (jnp.zeros((2, 7), int), TARGET, None, ValueError, r"A source has 7 tokens; expected 1 to source_len=6"),
        (jnp.zeros(0, int), TARGET, None, ValueError, r"A source has 0 tokens; expected 1 to .*Give at least one"),
        (jnp.zeros((3, 0), int), TARGET, None, ValueError, r"A source has 0 tokens; expected 1 to"),
        (SOURCE, jnp.full(9, START), None, ValueError, r"A target has 9 tokens; expected 1 to context_len=8\. Cut it"),
        (SOURCE, jnp.zeros(0, int), None, ValueError, r"A target has 0 tokens; expected 1 to .*Begin with the start"),
        (SOURCE, TARGET[1:], None, ValueError, r"Target 0 begins with 5; expected the start token, 9\. Put it first"),
        (
            padded()[0],
            padded()[2].at[1, 0].set(3),
            None,
            ValueError,
            r"Target 1 begins with 3; expected the start token",
        ),
        (SOURCE, TARGET, jnp.zeros(5, bool), ValueError, r"Source 0 is all padding; expected at least one token"),
        (
            padded()[0],
            padded()[2],
            padded()[1].at[2].set(False),
            ValueError,
            r"Source 2 is all padding; expected at least one token in each\. Leave it out",
        ),
        (SOURCE, TARGET, jnp.ones(5), TypeError, r"is_source holds float32; expected bool, True for a token"),
        (SOURCE, TARGET, jnp.ones(4, bool), ValueError, r"is_source has shape \(4,\); expected \(source_seq=5,\)"),
        (
            padded()[0],
            padded()[2],
            padded()[1].T,
            ValueError,
            r"is_source has shape \(6, 3\); expected \(num_texts=3, source_seq=6\)",
        ),
        (
            padded()[0][:2],
            padded()[2],
            None,
            ValueError,
            r"source has shape \(2, 6\), target \(3, 7\); expected as many targets as sources",
        ),
        (padded()[0][:1], TARGET, None, ValueError, r"source has shape \(1, 6\), target \(4,\); expected as many"),
        (jnp.array([2, 11]), TARGET, None, ValueError, r"11.*expected 0 to 10"),
        (padded()[0].at[2, 1].set(11), padded()[2], None, ValueError, r"Source 2: ids\[1\] is 11; expected 0 to 10"),
        (jnp.zeros((0, 2), int), jnp.zeros((0, 3), int), None, ValueError, r"There are 0 texts; expected at least one"),
        (jnp.array([-1, 2]), TARGET, None, ValueError, r"-1.*expected 0 to 10"),
        (SOURCE, jnp.array([START, 11]), None, ValueError, r"11.*expected 0 to 10"),
        (SOURCE.astype(float), TARGET, None, TypeError, r"ids are float32; expected whole numbers"),
        ([2, 3], TARGET, None, TypeError, r"source is a list; expected an array .*jnp\.asarray\(source\)"),
        (SOURCE, [START, 3], None, TypeError, r"target is a list; expected an array"),
        (
            jnp.zeros((1, 2, 3), int),
            TARGET,
            None,
            ValueError,
            r"source has shape \(1, 2, 3\); expected \(source_seq,\)",
        ),
    ],
)
def test_bad_pairs_are_named(model, source, target, is_source, error, message):
    with pytest.raises(error, match=message):
        model(source, target, is_source)


@pytest.mark.parametrize(
    ("source", "target", "is_source", "message"),
    [
        (SOURCE, jnp.array([3, 1, 2, 5]), jnp.ones(5, bool), r"A target does not begin with the start token, 9"),
        (SOURCE, TARGET, jnp.zeros(5, bool), r"A text is all padding; expected at least one token in each"),
        (SOURCE.at[1].set(11), TARGET, jnp.ones(5, bool), r"A token id is out of range; expected 0 to 10"),
        (SOURCE, TARGET.at[1].set(-1), jnp.ones(5, bool), r"A token id is out of range; expected 0 to 10"),
    ],
)
def test_bad_pairs_are_found_when_a_compiled_function_runs(model, source, target, is_source, message):
    with pytest.raises(RuntimeError, match=message):
        compiled(model, source, target, is_source)


compiled = eqx.filter_jit(lambda model, source, target, is_source: model(source, target, is_source))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: m.encode(jnp.zeros(7, int)), ValueError, r"A source has 7 tokens; expected 1 to source_len=6"),
        (lambda m: m.encode(SOURCE, jnp.zeros(5, bool)), ValueError, r"Source 0 is all padding"),
        (lambda m: m.given(jnp.zeros(0, int)), ValueError, r"A source has 0 tokens"),
        (lambda m: m.given(SOURCE, jnp.zeros(5, bool)), ValueError, r"Source 0 is all padding"),
        (lambda m: m.given(jnp.array([[12]])), ValueError, r"12.*expected 0 to 10"),
        (lambda m: m.cross_weights(padded()[0], padded()[2]), ValueError, r"several pairs; expected a single one"),
        (lambda m: m.cross_weights(SOURCE, TARGET[1:]), ValueError, r"Target 0 begins with 5; expected the start"),
        (lambda m: m.given(padded()[0]).new_cache(), ValueError, r"There are 3 sources and 1 texts to write"),
        (lambda m: m.given(padded()[0]).new_cache(num_texts=2), ValueError, r"3 sources and 2 texts.*translate\(\)"),
        (lambda m: m.given(SOURCE).new_cache(0), ValueError, r"capacity is 0; expected at least 1"),
        (
            lambda m: m.given(SOURCE).extend(TARGET, m.given(SOURCE).new_cache()[:3]),
            ValueError,
            r"The cache has 3 parts; expected 4: see new_cache\(\)",
        ),
        (
            lambda m: m.given(SOURCE).extend(TARGET, m.given(SOURCE).new_cache(3)),
            ValueError,
            r"room for 3 tokens and holds 0; expected room for 4 more",
        ),
        (
            lambda m: m.given(SOURCE).extend(padded()[2], m.given(SOURCE).new_cache(num_texts=2)),
            ValueError,
            r"tokens has shape \(3, 7\); expected \(num_texts=2, target_seq\)",
        ),
        (
            lambda m: m.given(SOURCE).extend(TARGET[1:], m.given(SOURCE).new_cache()),
            ValueError,
            r"Target 0 begins with 5; expected the start token, 9",
        ),
        (
            lambda m: pf.generate(m.given(padded()[0]), [[START]] * 2, 4, temperature=0.0),
            ValueError,
            r"There are 3 sources and 2 texts to write; expected one text for each source",
        ),
        (
            lambda m: pf.generate(m.given(SOURCE), [[START]], 9, temperature=0.0),
            ValueError,
            r"The longest prompt has 1 tokens, and 9 shall follow; expected at most context_len=8",
        ),
    ],
)
def test_bad_calls_of_methods_are_named(model, call, error, message):
    with pytest.raises(error, match=message):
        call(model)


def test_generate_finds_a_prompt_without_a_start_token_when_it_runs(model):
    with pytest.raises(RuntimeError, match=r"A target does not begin with the start token, 9"):
        pf.generate(model.given(SOURCE), [[3]], 2, temperature=0.0)
    with pytest.raises(RuntimeError, match=r"A target does not begin with the start token, 9"):
        pf.beam_search(model.given(SOURCE), [3], 2, beam_width=2, stop_tokens=[STOP])


@pytest.mark.usefixtures("unchecked")
def test_seq2seq_reads_arrays_of_numpy(model):
    found = model.given(np.array(SOURCES[:1]), np.ones((1, 5), bool))
    assert (found.context[0].keys == model.given(jnp.array(SOURCES[:1])).context[0].keys).all()
