"""Chapter 10, the encoder–decoder: what it computes, what each token may depend on, and how it reads its source."""

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
    KINDS,
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
cross_weights = eqx.filter_jit(lambda model, source, target: model.cross_attention_weights(source, target))


@functools.cache
def new_model(kind="learned", **fields):
    return toy_translators.new_model(kind=kind, **fields)


@pytest.mark.equation("eq-seq2seq-model", "eq-seq2seq-cross-attention")
@pytest.mark.parametrize("kind", KINDS)
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
@pytest.mark.parametrize("kind", ["learned", "sinusoidal-post", "rotary-modern", "relative", "alibi-post"])
def test_seq2seq_of_padded_pairs_is_each_pair_alone(kind):
    model = new_model(kind)
    found = model(PADDED_SOURCE, PADDED_TARGET, IS_SOURCE)
    assert found.shape == (3, 7, VOCAB)
    for number, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        assert_close(found[number, : len(target)], reference.seq2seq(source, target, model))


@pytest.mark.equation("eq-seq2seq-model")
@pytest.mark.parametrize("kind", ["learned", "rotary-modern"])
def test_seq2seq_takes_padded_pairs_in_a_batch_of_any_rank(kind):
    model = new_model(kind)
    piled = [jnp.stack([each, each[::-1]]) for each in (PADDED_SOURCE, PADDED_TARGET, IS_SOURCE)]
    expected = np.asarray(model(PADDED_SOURCE, PADDED_TARGET, IS_SOURCE))
    assert_close(call(model, *piled), np.stack([expected, expected[::-1]]))


def test_seq2seq_encode_gives_what_the_decoder_reads():
    model = new_model()
    encoded = model.encode(PADDED_SOURCE, IS_SOURCE)
    assert encoded.shape == (3, SOURCE_LEN, D_MODEL)
    assert_close(encoded[1, :2], reference.encoder(SOURCES[1], model.encoder))
    assert_close(model.encode(PADDED_SOURCE[1], IS_SOURCE[1]), encoded[1])


@pytest.mark.equation("eq-seq2seq-model")
def test_seq2seq_of_one_padded_pair_needs_no_axis_of_texts():
    model, expected = new_model(), new_model()(PADDED_SOURCE, PADDED_TARGET, IS_SOURCE)
    found = call(model, PADDED_SOURCE[2], PADDED_TARGET[2], IS_SOURCE[2])
    assert found.shape == (7, VOCAB)
    assert_close(found, expected[2])
    assert_close(call(model, PADDED_SOURCE[2:], PADDED_TARGET[2:], IS_SOURCE[2:])[0], found)


@pytest.mark.parametrize("kind", ["learned", "sinusoidal-post", "rotary-modern"])
def test_seq2seq_without_is_source_takes_all_for_tokens(kind):
    model, everywhere = new_model(kind), jnp.ones(PADDED_SOURCE.shape, bool)
    assert_close(model(PADDED_SOURCE, PADDED_TARGET), model(PADDED_SOURCE, PADDED_TARGET, everywhere))


@pytest.mark.equation("eq-seq2seq-model")
@pytest.mark.parametrize("fields", [{}, {"norm_placement": "post", "position_scheme": "rotary"}])
def test_seq2seq_lets_a_token_depend_on_its_source_and_its_past_alone(fields, monkeypatch):
    # Every place of every text gets an id, and so a row of the tables, of its own: gradients tell the places apart.
    monkeypatch.setattr("plainformer.models.seq2seq.refuse", lambda array, *_: array)  # no start token in front
    source, target = (jnp.arange(each.size).reshape(each.shape) for each in (PADDED_SOURCE, PADDED_TARGET))
    sizes = {"source_vocab_size": source.size, "vocab_size": target.size}
    model = new_model("learned", **sizes, tied_embedding=False, **fields)

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


def test_seq2seq_tells_source_and_target_apart():
    one, other = jnp.array([9, 5, 3, 0]), jnp.array([9, 6, 1, 2])  # both begin with the start token
    assert np.abs(call(new_model(), one, other) - call(new_model(), other, one)).max() > 0.1


def test_seq2seq_reads_the_order_of_its_source_only_through_positions():
    turned = jnp.array(SOURCES[0][::-1])
    without, learned = new_model("none"), new_model("learned")
    assert_close(without(turned, TARGET), without(SOURCE, TARGET))
    assert np.abs(learned(turned, TARGET) - learned(SOURCE, TARGET)).max() > 0.05


@pytest.mark.equation("eq-seq2seq-cross-attention")
@pytest.mark.parametrize("kind", ["learned", "learned-post-own", "rotary-modern"])
def test_seq2seq_cross_weights_sum_to_one_and_give_padding_nothing(kind):
    model = new_model(kind)
    weights = np.asarray(model.cross_attention_weights(PADDED_SOURCE, PADDED_TARGET, IS_SOURCE))
    assert weights.shape == (3, LAYERS, HEADS, 7, SOURCE_LEN)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)
    for text, source in enumerate(SOURCES):
        assert (weights[text, ..., len(source) :] == 0.0).all()
        assert (weights[text, ..., : len(source)] > 0).all()
    assert_close(weights[1, ..., :2], model.cross_attention_weights(PADDED_SOURCE[1, :2], PADDED_TARGET[1]))


@pytest.mark.equation("eq-seq2seq-model")
def test_seq2seq_takes_halves_of_different_depth_width_and_kind():
    encoder = pf.StackConfig(d_model=12, num_layers=3, num_heads=2, d_ff=7, norm="rms", position_scheme="alibi")
    decoder = pf.StackConfig(d_model=12, num_layers=1, num_heads=6, num_kv_heads=2, d_ff=9, norm_placement="post")
    config = pf.Seq2SeqConfig(VOCAB, CONTEXT, SOURCE_LEN, START, STOP, encoder=encoder, decoder=decoder)
    model = drawn(pf.Seq2Seq, config)
    assert (len(model.encoder.stack.blocks), len(model.stack.blocks)) == (3, 1)
    assert_close(call(model, SOURCE, TARGET), reference.seq2seq(SOURCES[0], TARGETS[0], model))
    assert cross_weights(model, SOURCE, TARGET).shape == (1, 6, 4, 5)
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


@pytest.mark.equation("eq-seq2seq-model")
def test_seq2seq_base_model_of_the_paper_can_be_made():
    config = seq2seq_config(
        vocab_size=37_000,
        context_len=512,
        source_len=512,
        start_token=0,
        stop_token=1,
        d_model=512,
        num_encoder_layers=6,
        num_decoder_layers=6,
        num_heads=8,
        d_ff=2048,
        norm_placement="post",
        activation="relu",
        position_scheme="sinusoidal",
        dropout_rate=0.1,
    )
    model = eqx.filter_eval_shape(lambda key: pf.Seq2Seq(config, key=key), KEY)
    networks, norms = network(512, 2048), 2 * 512
    blocks = 6 * (attention(512) + networks + 2 * norms) + 6 * (2 * attention(512) + networks + 3 * norms)
    assert pf.count_parameters(model) == 37_000 * 512 + blocks == 63_082_496


def test_seq2seq_last_matrices_of_the_decoder_start_smaller():
    def spreads(layers):
        # All matrices are of one shape: drawn by one program.
        lengths = dict.fromkeys(["d_model", "d_ff", "vocab_size", "context_len", "source_len"], 96)
        config = new_config(num_decoder_layers=layers, **lengths)
        block = pf.Seq2Seq(config, key=KEY).stack.blocks[0]
        ends = block.attention.output, block.cross_attention.output, block.feed_forward.down
        return np.array([np.asarray(end.weight).std() for end in ends])

    np.testing.assert_allclose(spreads(1) / spreads(6), 6**0.5, rtol=0.1)


@pytest.mark.parametrize("kind", ["learned", "sinusoidal-own"])
def test_seq2seq_is_saved_and_loaded(kind, tmp_path):
    model = new_model(kind)
    pf.save_model(tmp_path / "it.safetensors", model)
    loaded = pf.load_model(tmp_path / "it.safetensors", pf.Seq2Seq)
    assert loaded.config == model.config
    np.testing.assert_array_equal(loaded(SOURCE, TARGET), model(SOURCE, TARGET))


def test_seq2seq_config_hands_the_encoder_its_half():
    config = new_config("rotary-post", dropout_rate=0.1)
    encoder = config.encoder_config()
    assert (encoder.vocab_size, encoder.context_len, encoder.use_class_token) == (13, SOURCE_LEN, False)
    assert encoder.stack == config.encoder
    assert (encoder.stack.num_layers, encoder.stack.position_scheme) == (1, "rotary")
    assert dataclasses.replace(config, source_vocab_size=None).encoder_config().vocab_size == VOCAB
    assert config.context_len == CONTEXT


# --- at its edges: what is too long, empty, padding or without a start token --------------------------------


def test_seq2seq_takes_texts_as_long_as_its_tables():
    assert call(new_model(), jnp.full(SOURCE_LEN, 2), jnp.full(CONTEXT, START)).shape == (CONTEXT, VOCAB)


def test_seq2seq_takes_texts_of_one_token():
    source, target = jnp.array([2]), jnp.array([START])
    assert call(new_model(), source, target).shape == (1, VOCAB)
    assert cross_weights(new_model(), source, target).shape == (2, 3, 1, 1)


def test_seq2seq_config_allows_one_token_for_both_ends():
    assert new_config(start_token=4, stop_token=4).start_token == 4


def test_seq2seq_reads_arrays_of_numpy():
    model, arrays = new_model(), (PADDED_SOURCE, PADDED_TARGET, IS_SOURCE)
    np.testing.assert_array_equal(model(*map(np.asarray, arrays)), model(*arrays))
    found = model.condition_on(np.array(SOURCES[:1]), np.ones((1, 5), bool))
    expected = model.condition_on(jnp.array(SOURCES[:1]))
    np.testing.assert_array_equal(found.contexts[0].keys, expected.contexts[0].keys)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"vocab_size": 0}, ValueError, r"vocab_size is 0; expected at least 1"),
        ({"source_vocab_size": 0}, ValueError, r"source_vocab_size is 0; expected at least 1"),
        ({"context_len": 0}, ValueError, r"context_len is 0; expected at least 1"),
        ({"source_len": 2.5}, TypeError, r"source_len is 2\.5; expected a whole number"),
        ({"start_token": 11}, ValueError, r"start_token is 11; expected 0 to 10, an id of the vocabulary"),
        ({"stop_token": -1}, ValueError, r"stop_token is -1; expected at least 0 and below"),
        ({"start_token": "<s>"}, TypeError, r"start_token is '<s>'; expected a whole number"),
        ({"stop_token": True}, TypeError, r"stop_token is True; expected a whole number"),
        ({"tied_embedding": 1}, TypeError, r"tied_embedding is 1; expected True or False"),
        ({"num_encoder_layers": 0}, ValueError, r"num_layers is 0; expected at least 1"),
    ],
)
def test_bad_configuration_is_named(fields, error, message):
    with pytest.raises(error, match=message):
        new_config(**fields)


def test_seq2seq_config_refuses_halves_of_different_width():
    wide, narrow = pf.StackConfig(d_model=24), pf.StackConfig(d_model=12)
    with pytest.raises(ValueError, match=r"The encoder has d_model=24, the decoder 12; expected the same, since one"):
        pf.Seq2SeqConfig(VOCAB, CONTEXT, SOURCE_LEN, START, STOP, encoder=wide, decoder=narrow)


def test_seq2seq_tells_a_start_token_from_what_it_would_be_in_8_bits():
    config = seq2seq_config(300, 8, 6, 256, 4, d_model=12, num_encoder_layers=1, num_decoder_layers=1, num_heads=3)
    with pytest.raises(ValueError, match=r"target\[0\] is 0; expected the start token, 256, at the beginning"):
        drawn(pf.Seq2Seq, config)(SOURCE, jnp.array([0, 5], jnp.uint8))


@pytest.mark.parametrize(
    ("source", "target", "is_source", "error", "message"),
    [
        (jnp.zeros(7, int), TARGET, None, ValueError, r"source has 7 tokens; expected 1 to source_len=6\. Cut it"),
        (jnp.zeros((3, 7), int), PADDED_TARGET, None, ValueError, r"source has 7 tokens; expected 1 to source_len=6"),
        (jnp.zeros(0, int), TARGET, None, ValueError, r"source has 0 tokens; expected 1 to .*at least one"),
        (jnp.zeros((3, 0), int), PADDED_TARGET, None, ValueError, r"source has 0 tokens; expected 1 to"),
        (SOURCE, jnp.full(9, START), None, ValueError, r"target has 9 tokens; expected 1 to context_len=8\. Cut it"),
        (SOURCE, jnp.zeros(0, int), None, ValueError, r"target has 0 tokens; expected 1 to .*Start with at least one"),
        (
            SOURCE,
            TARGET[1:],
            None,
            ValueError,
            r"target\[0\] is 5; expected the start token, 9, at the beginning\. Put",
        ),
        (
            PADDED_SOURCE,
            PADDED_TARGET.at[1, 0].set(3),
            None,
            ValueError,
            r"target\[1, 0\] is 3; expected the start token",
        ),
        (SOURCE, TARGET, jnp.zeros(5, bool), ValueError, r"is_token is not allowed; expected a token in each text"),
        (
            PADDED_SOURCE,
            PADDED_TARGET,
            IS_SOURCE.at[2].set(False),
            ValueError,
            r"is_token\[2\] is not allowed; expected a token in each text: leave out what is all padding",
        ),
        (SOURCE, TARGET, jnp.ones(5), TypeError, r"is_source holds float32; expected bool, True for a token"),
        (SOURCE, TARGET, jnp.ones(4, bool), ValueError, r"is_source has shape \(4,\); expected \(source_seq=5,\)"),
        (
            PADDED_SOURCE,
            PADDED_TARGET,
            IS_SOURCE.T,
            ValueError,
            r"is_source has shape \(6, 3\); expected \(3, source_seq=6\)\. .*One for each token",
        ),
        (PADDED_SOURCE[:2], PADDED_TARGET, None, ValueError, r"target has shape \(3, 7\); expected \(2, target_seq\)"),
        (PADDED_SOURCE[:1], TARGET, None, ValueError, r"target has shape \(4,\); expected \(1, target_seq\)"),
        (jnp.array([2, 11]), TARGET, None, ValueError, r"ids\[1\] is 11; expected 0 to 10"),
        (PADDED_SOURCE.at[2, 1].set(11), PADDED_TARGET, None, ValueError, r"ids\[2, 1\] is 11; expected 0 to 10"),
        (jnp.array([-1, 2]), TARGET, None, ValueError, r"ids\[0\] is -1; expected 0 to 10"),
        (SOURCE, jnp.array([START, 11]), None, ValueError, r"ids\[1\] is 11; expected 0 to 10"),
        (SOURCE.astype(float), TARGET, None, TypeError, r"source holds float32; expected whole numbers"),
        ([2, 3], TARGET, None, TypeError, r"source is a list; expected an array .*jnp\.asarray\(source\)"),
        (SOURCE, [START, 3], None, TypeError, r"target is a list; expected an array"),
    ],
)
def test_bad_pairs_are_named(source, target, is_source, error, message):
    with pytest.raises(error, match=message):
        new_model()(source, target, is_source)


@pytest.mark.parametrize(
    ("source", "target", "is_source", "message"),
    [
        (
            SOURCE,
            TARGET.at[0].set(3),
            jnp.ones(5, bool),
            r"An entry of target is not allowed; expected the start token, 9",
        ),
        (SOURCE, TARGET, jnp.zeros(5, bool), r"An entry of is_token is not allowed; expected a token in each text"),
        (SOURCE.at[1].set(11), TARGET, jnp.ones(5, bool), r"An entry of ids is not allowed; expected 0 to 10"),
        (SOURCE, TARGET.at[1].set(-1), jnp.ones(5, bool), r"An entry of ids is not allowed; expected 0 to 10"),
    ],
)
def test_bad_pairs_are_found_when_a_compiled_function_runs(source, target, is_source, message):
    with pytest.raises(RuntimeError, match=message):
        jax.block_until_ready(call(new_model(), source, target, is_source))


@functools.cache
def conditioned():
    return new_model().condition_on(SOURCE)


@functools.cache
def conditioned_on_three():
    return new_model().condition_on(PADDED_SOURCE, IS_SOURCE)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: new_model().encode(jnp.zeros(7, int)), ValueError, r"source has 7 tokens; expected 1 to source_len=6"),
        (lambda: new_model().encode(SOURCE, jnp.zeros(5, bool)), ValueError, r"expected a token in each text"),
        (
            lambda: new_model().cross_attention_weights(SOURCE, TARGET[1:]),
            ValueError,
            r"target\[0\] is 5; expected the",
        ),
        (lambda: new_model().condition_on(jnp.zeros(0, int)), ValueError, r"source has 0 tokens"),
        (lambda: new_model().condition_on(SOURCE, jnp.zeros(5, bool)), ValueError, r"expected a token in each text"),
        (lambda: new_model().condition_on(jnp.array([[12]])), ValueError, r"12.*expected 0 to 10"),
        (
            lambda: conditioned_on_three().make_cache(),
            ValueError,
            r"There are 3 sources and texts of batch=\(\); expected",
        ),
        (
            lambda: conditioned_on_three().make_cache(batch=(2,)),
            ValueError,
            r"3 sources and texts.*\(2,\).*translate\(\)",
        ),
        (lambda: conditioned().make_cache(0), ValueError, r"capacity is 0; expected at least 1"),
        (
            lambda: conditioned().extend(TARGET, conditioned().make_cache()[:1]),
            ValueError,
            r"The cache has 1 parts; expected 2: see make_cache\(\)",
        ),
        (
            lambda: conditioned().extend(TARGET, conditioned().make_cache(3)),
            ValueError,
            r"room for 3 tokens and holds 0; expected room for 4 more",
        ),
        (
            lambda: conditioned().extend(PADDED_TARGET, conditioned().make_cache(batch=(2,))),
            ValueError,
            r"tokens has shape \(3, 7\), and the cache was made for batch=\(2,\)",
        ),
        (
            lambda: conditioned().extend(TARGET[1:], conditioned().make_cache()),
            ValueError,
            r"target\[0\] is 5; expected the start token, 9",
        ),
        (
            lambda: pf.generate(conditioned_on_three(), [[START]] * 2, 4, temperature=0.0),
            ValueError,
            r"There are 3 sources and texts of batch=\(2,\); expected one text for each source",
        ),
        (
            lambda: pf.generate(conditioned(), [[START]], 9, temperature=0.0),
            ValueError,
            r"The longest prompt has 1 tokens, and 9 shall follow; expected at most context_len=8",
        ),
    ],
)
def test_bad_calls_of_methods_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_prompt_without_the_start_token_is_named():
    shallow = new_model(num_decoder_layers=1).condition_on(SOURCE)
    with pytest.raises(ValueError, match=r"prompts\[0\] begins with 3; expected the start token, 9"):
        pf.generate(shallow, [[3]], 2, temperature=0.0)
    with pytest.raises(ValueError, match=r"begins with 3; expected the start token, 9"):
        pf.beam_search(shallow, [3], 2, beam_width=2, stop_tokens=[STOP])
