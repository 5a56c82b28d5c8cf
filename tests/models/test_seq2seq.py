"""The encoder–decoder: what it computes, what each token may depend on, and how it reads its source."""

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
import toy_translators
from closeness import assert_close
from flat import seq2seq_config
from toy_models import drawn
from toy_translators import (
    CONTEXT,
    D_MODEL,
    HEADS,
    LAYERS,
    SOURCE_LEN,
    SOURCES,
    START,
    STOP,
    TARGETS,
    VOCAB,
    call,
    new_config,
    padded,
)

import plainformer as pf

KEY = jax.random.key(0)
SOURCE, TARGET = jnp.array(SOURCES[0]), jnp.array(TARGETS[0])
PADDED_SOURCE, IS_SOURCE, PADDED_TARGET, _ = padded()


@functools.cache
def new_model(kind="learned", **fields):
    return toy_translators.new_model(kind=kind, **fields)


@pytest.mark.equation("eq-seq2seq-model", "eq-seq2seq-cross-attention")
@pytest.mark.parametrize("kind", ["learned-post-own", "rotary-modern"])
def test_seq2seq_agrees_with_a_loop_in_float64(kind):
    model = new_model(kind)
    source, target = jnp.array(SOURCES[0]), jnp.array(TARGETS[1])
    inside = reference.inside_seq2seq(SOURCES[0], TARGETS[1], model)
    logits, read = model(source, target), model.cross_attention_weights(source, target)
    assert logits.shape == (len(target), VOCAB)
    assert_close(logits, reference.seq2seq(SOURCES[0], TARGETS[1], model))
    assert read.shape == (LAYERS, HEADS, len(target), len(source))
    assert_close(read, inside.cross_weights)
    assert_close(model.attention_weights(source, target), inside.weights)
    for rows, expected in zip(model.residual_stream(source, target), inside.stream, strict=True):
        assert_close(rows, expected)


@pytest.mark.equation("eq-seq2seq-model")
@pytest.mark.parametrize("kind", ["sinusoidal-own", "relative"])
def test_seq2seq_of_padded_pairs_is_each_pair_alone(kind):
    model = new_model(kind)
    found = model(PADDED_SOURCE, PADDED_TARGET, IS_SOURCE)
    assert found.shape == (3, 7, VOCAB)
    for number, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        assert_close(found[number, : len(target)], reference.seq2seq(source, target, model))


def test_seq2seq_encode_gives_what_the_decoder_reads():
    model = new_model()
    encoded = model.encode(PADDED_SOURCE, IS_SOURCE)
    assert encoded.shape == (3, SOURCE_LEN, D_MODEL)
    assert_close(encoded[1, :2], reference.encoder(SOURCES[1], model.encoder))
    assert_close(model.encode(PADDED_SOURCE[1], IS_SOURCE[1]), encoded[1])


@pytest.mark.equation("eq-seq2seq-model")
def test_seq2seq_takes_padded_pairs_in_a_batch_of_any_rank():
    model = new_model("rotary-modern")
    expected = np.asarray(model(PADDED_SOURCE, PADDED_TARGET, IS_SOURCE))
    assert_close(call(model, PADDED_SOURCE[2], PADDED_TARGET[2], IS_SOURCE[2]), expected[2])
    piled = [jnp.stack([each, each[::-1]]) for each in (PADDED_SOURCE, PADDED_TARGET, IS_SOURCE)]
    assert_close(call(model, *piled), np.stack([expected, expected[::-1]]))


def test_seq2seq_without_is_source_takes_all_for_tokens():
    model, everywhere = new_model(), jnp.ones(PADDED_SOURCE.shape, bool)
    assert_close(model(PADDED_SOURCE, PADDED_TARGET), model(PADDED_SOURCE, PADDED_TARGET, everywhere))


@pytest.mark.equation("eq-seq2seq-model")
def test_seq2seq_lets_a_token_depend_on_its_source_and_its_past_alone(monkeypatch):
    # Every place of every text gets an id, and so a row of the tables, of its own: gradients tell the places apart.
    monkeypatch.setattr("plainformer.models.seq2seq.refuse", lambda array, *_: array)  # no start token in front
    source, target = (jnp.arange(each.size).reshape(each.shape) for each in (PADDED_SOURCE, PADDED_TARGET))
    sizes = {"source_vocab_size": source.size, "vocab_size": target.size}
    model = new_model("learned", **sizes, tied_embedding=False)

    @jax.jit
    def gradients(tables, text, row):
        """What one number of the logits owes to each place of each source, and of each target."""

        def number(tables):
            fed = eqx.tree_at(lambda m: (m.encoder.embedding.weight, m.embedding.weight), model, tables)
            return fed(source, target, IS_SOURCE)[text, row, 3]

        return [jnp.abs(each).max(axis=1) for each in jax.grad(number)(tables)]

    for text, row in [(0, 3), (1, 0), (2, 5)]:
        found = gradients((model.encoder.embedding.weight, model.embedding.weight), text, row)
        of_sources, of_targets = (np.asarray(each).reshape(len(SOURCES), -1) for each in found)
        expected = np.zeros(of_sources.shape, bool)
        expected[text] = np.asarray(IS_SOURCE)[text]
        assert ((of_sources > 0) == expected).all()  # exactly 0.0 from padding and from other sources
        expected = np.zeros(of_targets.shape, bool)
        expected[text, : row + 1] = True
        assert ((of_targets > 0) == expected).all()  # exactly 0.0 from the future and from other targets


@pytest.mark.equation("eq-seq2seq-cross-attention")
def test_seq2seq_cross_weights_sum_to_one_and_give_padding_nothing():
    model = new_model("rotary-modern")
    weights = np.asarray(model.cross_attention_weights(PADDED_SOURCE, PADDED_TARGET, IS_SOURCE))
    assert weights.shape == (3, LAYERS, HEADS, 7, SOURCE_LEN)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)
    for text, source in enumerate(SOURCES):
        assert (weights[text, ..., len(source) :] == 0.0).all()
    assert_close(weights[1, ..., :2], model.cross_attention_weights(PADDED_SOURCE[1, :2], PADDED_TARGET[1]))


@pytest.mark.equation("eq-seq2seq-model")
def test_seq2seq_takes_halves_of_different_depth_width_and_kind():
    encoder = pf.StackConfig(d_model=12, num_layers=3, num_heads=2, d_ff=7, norm="rms", position_scheme="alibi")
    decoder = pf.StackConfig(d_model=12, num_layers=1, num_heads=6, num_kv_heads=2, d_ff=9, norm_placement="post")
    config = pf.Seq2SeqConfig(VOCAB, CONTEXT, SOURCE_LEN, START, STOP, encoder=encoder, decoder=decoder)
    model = drawn(pf.Seq2Seq, config)
    assert (len(model.encoder.stack.blocks), len(model.stack.blocks)) == (3, 1)
    assert_close(call(model, SOURCE, TARGET), reference.seq2seq(SOURCES[0], TARGETS[0], model))
    assert model.cross_attention_weights(SOURCE, TARGET).shape == (1, 6, 4, 5)
    assert model.encoder.attention_weights(SOURCE).shape == (3, 2, 5, 5)


def attention(d_model):
    return 4 * (d_model * d_model + d_model)


def network(d_model, d_ff):
    return 2 * d_model * d_ff + d_ff + d_model


def test_seq2seq_has_as_many_parameters_as_counted_by_hand():
    encoder_block = attention(12) + network(12, 10) + 2 * 2 * 12
    decoder_block = 2 * attention(12) + network(12, 10) + 3 * 2 * 12
    blocks = encoder_block + 2 * decoder_block + 2 * 2 * 12  # and a last norm in each half
    positions = (6 + 8) * 12
    shared = pf.count_parameters(new_model())
    assert shared == 11 * 12 + blocks + positions  # the one table is counted once
    assert new_model().embedding is None
    assert pf.count_parameters(new_model(tied_embedding=False)) == shared + 12 * 11
    assert pf.count_parameters(new_model(source_vocab_size=13)) == shared + 13 * 12


def test_seq2seq_last_matrices_of_the_decoder_start_smaller():
    def spreads(layers):
        # All matrices are of one shape: drawn by one program.
        lengths = dict.fromkeys(["d_model", "d_ff", "vocab_size", "context_len", "source_len"], 96)
        config = new_config(num_decoder_layers=layers, **lengths)
        block = pf.Seq2Seq(config, key=KEY).stack.blocks[0]
        ends = block.attention.output, block.cross_attention.output, block.feed_forward.down
        return np.array([np.asarray(end.weight).std() for end in ends])

    np.testing.assert_allclose(spreads(1) / spreads(6), 6**0.5, rtol=0.1)


def test_seq2seq_config_hands_the_encoder_its_half():
    config = new_config("rotary-post", dropout_rate=0.1)
    encoder = config.encoder_config()
    assert (encoder.vocab_size, encoder.context_len, encoder.use_class_token) == (13, SOURCE_LEN, False)
    assert encoder.stack == config.encoder
    assert (encoder.stack.num_layers, encoder.stack.position_scheme) == (1, "rotary")
    assert dataclasses.replace(config, source_vocab_size=None).encoder_config().vocab_size == VOCAB
    assert config.context_len == CONTEXT


# --- at its edges: what is too long, empty, padding or without a start token --------------------------------


def test_seq2seq_takes_texts_of_one_token_and_as_long_as_its_tables():
    assert call(new_model(), jnp.full(SOURCE_LEN, 2), jnp.full(CONTEXT, START)).shape == (CONTEXT, VOCAB)
    assert call(new_model(), jnp.array([2]), jnp.array([START])).shape == (1, VOCAB)


def test_seq2seq_reads_arrays_of_numpy():
    model, arrays = new_model(), (PADDED_SOURCE, PADDED_TARGET, IS_SOURCE)
    np.testing.assert_array_equal(model(*map(np.asarray, arrays)), model(*arrays))


def test_seq2seq_config_refuses_what_does_not_go_together():
    wide, narrow = pf.StackConfig(d_model=24), pf.StackConfig(d_model=12)
    with pytest.raises(ValueError, match="d_model=24, the decoder 12"):
        pf.Seq2SeqConfig(VOCAB, CONTEXT, SOURCE_LEN, START, STOP, encoder=wide, decoder=narrow)
    with pytest.raises(ValueError, match="start_token is 11"):
        new_config(start_token=11)


def test_seq2seq_tells_a_start_token_from_what_it_would_be_in_8_bits():
    config = seq2seq_config(300, 8, 6, 256, 4, d_model=12, num_encoder_layers=1, num_decoder_layers=1, num_heads=3)
    with pytest.raises(ValueError, match=r"target\[0\] is 0"):
        drawn(pf.Seq2Seq, config)(SOURCE, jnp.array([0, 5], jnp.uint8))


@pytest.mark.parametrize(
    ("source", "target", "is_source", "error", "message"),
    [
        (jnp.zeros(7, int), TARGET, None, ValueError, "source has 7 tokens"),
        (jnp.zeros((3, 0), int), PADDED_TARGET, None, ValueError, "source has 0 tokens"),
        (SOURCE, jnp.full(9, START), None, ValueError, "target has 9 tokens"),
        (PADDED_SOURCE, PADDED_TARGET.at[1, 0].set(3), None, ValueError, r"target\[1, 0\] is 3; .*start token"),
        (PADDED_SOURCE, PADDED_TARGET, IS_SOURCE.at[2].set(False), ValueError, r"is_token\[2\]"),
        (SOURCE, TARGET, jnp.ones(5), TypeError, "is_source holds float32"),
        (PADDED_SOURCE, PADDED_TARGET, IS_SOURCE.T, ValueError, "is_source has shape"),
        (PADDED_SOURCE[:1], TARGET, None, ValueError, "target has shape"),
        (PADDED_SOURCE.at[2, 1].set(11), PADDED_TARGET, None, ValueError, r"ids\[2, 1\] is 11"),
        (SOURCE, jnp.array([START, 11]), None, ValueError, r"ids\[1\] is 11"),
    ],
)
def test_bad_pairs_are_named(source, target, is_source, error, message):
    with pytest.raises(error, match=message):
        new_model()(source, target, is_source)


@pytest.mark.parametrize(
    ("target", "is_source", "message"),
    [
        (TARGET.at[0].set(3), jnp.ones(5, bool), "target .*; expected the start token"),
        (TARGET, jnp.zeros(5, bool), "is_token"),
        (TARGET.at[1].set(-1), jnp.ones(5, bool), "ids"),
    ],
)
@pytest.mark.run_time_check
def test_bad_pairs_are_found_when_a_compiled_function_runs(target, is_source, message):
    with pytest.raises(RuntimeError, match=message):
        jax.block_until_ready(call(new_model(), SOURCE, target, is_source))


@functools.cache
def conditioned():
    return new_model().condition_on(SOURCE)


@functools.cache
def conditioned_on_three():
    return new_model().condition_on(PADDED_SOURCE, IS_SOURCE)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: new_model().encode(jnp.zeros(7, int)), "source has 7 tokens"),
        (lambda: new_model().cross_attention_weights(SOURCE, TARGET[1:]), "expected the start token"),
        (lambda: new_model().condition_on(SOURCE, jnp.zeros(5, bool)), "expected a token in each text"),
        (lambda: conditioned_on_three().make_cache(batch=(2,)), "3 sources"),
        (lambda: conditioned().extend(TARGET, conditioned().make_cache()[:1]), "The cache has 1 parts"),
        (lambda: conditioned().extend(TARGET, conditioned().make_cache(3)), "room for 3 tokens"),
        (lambda: conditioned().extend(PADDED_TARGET, conditioned().make_cache(batch=(2,))), "batch="),
        (lambda: conditioned().extend(TARGET[1:], conditioned().make_cache()), "expected the start token"),
        (lambda: pf.generate(conditioned_on_three(), [[START]] * 2, 4, temperature=0.0), "3 sources"),
        (lambda: pf.generate(conditioned(), [[START]], 9, temperature=0.0), "expected at most context_len=8"),
    ],
)
def test_bad_calls_of_methods_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_prompt_without_the_start_token_is_named():
    shallow = new_model(num_decoder_layers=1).condition_on(SOURCE)
    with pytest.raises(ValueError, match=r"prompts\[0\] begins with 3"):
        pf.generate(shallow, [[3]], 2, temperature=0.0)
    with pytest.raises(ValueError, match="begins with 3"):
        pf.beam_search(shallow, [3], 2, beam_width=2, stop_tokens=[STOP])
