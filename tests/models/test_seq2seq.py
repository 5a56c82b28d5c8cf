"""Chapter 08, the encoder–decoder: what it computes, what each token may depend on, and how it reads its source."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from closeness import assert_close
from toy_translators import (
    CONTEXT,
    D_MODEL,
    HEADS,
    KINDS,
    LAYERS,
    SOURCE_LEN,
    SOURCES,
    TARGETS,
    VOCAB,
    call,
    new_config,
    new_model,
    padded,
)

import plainformer as pf


@pytest.mark.equation("eq-seq2seq-model", "eq-seq2seq-cross-attention")
@pytest.mark.parametrize("kind", KINDS)
def test_seq2seq_agrees_with_a_loop_in_float64(kind, key):
    model = new_model(key, kind)
    source, target = jnp.array(SOURCES[0]), jnp.array(TARGETS[1])
    logits, weights = reference.seq2seq(SOURCES[0], TARGETS[1], model)
    found = call(model, source, target)
    assert found.shape == (len(target), VOCAB)
    assert_close(found, logits)
    read = eqx.filter_jit(lambda model: model.cross_weights(source, target))(model)
    assert read.shape == (LAYERS, HEADS, len(target), len(source))
    assert_close(read, weights)


@pytest.mark.equation("eq-seq2seq-model")
@pytest.mark.parametrize("kind", ["learned", "sinusoidal-post", "rotary-modern", "relative", "alibi-post"])
def test_seq2seq_of_padded_pairs_is_each_pair_alone(kind, key):
    model = new_model(key, kind)
    source, is_source, target, _ = padded()
    found = call(model, source, target, is_source)
    assert found.shape == (3, 7, VOCAB)
    for number, (one, other) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        alone = call(model, jnp.array(one), jnp.array(other))
        assert_close(found[number, : len(other)], alone)


def test_seq2seq_encode_gives_what_the_decoder_reads(key):
    model = new_model(key)
    source, is_source, _, _ = padded()
    encode = eqx.filter_jit(pf.Seq2Seq.encode)
    encoded = encode(model, source, is_source)
    assert encoded.shape == (3, SOURCE_LEN, D_MODEL)
    assert_close(encoded[1, :2], reference.encoder(SOURCES[1], model.encoder))
    assert_close(encode(model, source[1], is_source[1]), encoded[1])


@pytest.mark.equation("eq-seq2seq-model")
def test_seq2seq_of_one_padded_pair_needs_no_axis_of_texts(key):
    model = new_model(key)
    source, is_source, target, _ = padded()
    found = call(model, source[2], target[2], is_source[2])
    assert found.shape == (7, VOCAB)
    assert_close(found, call(model, source, target, is_source)[2])
    assert_close(call(model, source[2:], target[2:], is_source[2:])[0], found)


@pytest.mark.parametrize("kind", ["learned", "sinusoidal-post", "rotary-modern"])
def test_seq2seq_without_is_source_takes_all_for_tokens(kind, key):
    model = new_model(key, kind)
    source, _, target, _ = padded()
    assert_close(call(model, source, target), call(model, source, target, jnp.ones(source.shape, bool)))


@pytest.mark.equation("eq-seq2seq-model")
@pytest.mark.parametrize("options", [{}, {"placement": "post", "positions": "rotary"}])
def test_seq2seq_lets_a_token_depend_on_its_source_and_its_past_alone(options, key, monkeypatch):
    # Every place of every text gets an id, and so a row of the tables, of its own: gradients tell the places apart.
    monkeypatch.setattr("plainformer.models.seq2seq.begun", lambda config, targets, positions: targets)
    (num_texts, source_seq), target_seq = padded()[0].shape, padded()[2].shape[1]
    is_source = padded()[1]
    source = jnp.arange(num_texts * source_seq).reshape(num_texts, source_seq)
    target = jnp.arange(num_texts * target_seq).reshape(num_texts, target_seq)
    model = new_model(key, source_vocab_size=source.size, vocab_size=target.size, tied_embedding=False, **options)

    @jax.jit
    def gradients(tables, text, row):
        """What one number of the logits owes to each place of each source, and of each target."""

        def number(tables):
            fed = eqx.tree_at(lambda m: (m.encoder.embedding.weight, m.embedding.weight), model, tables)
            return fed(source, target, is_source)[text, row, 3]

        return [jnp.abs(each).max(axis=1) for each in jax.grad(number)(tables)]

    for text, row in [(0, 3), (1, 0), (2, 5)]:
        found = gradients((model.encoder.embedding.weight, model.embedding.weight), text, row)
        of_sources, of_targets = (np.asarray(each).reshape(num_texts, -1) for each in found)
        expected = np.zeros(of_sources.shape, bool)
        expected[text] = np.asarray(is_source)[text]
        assert ((of_sources > 0) == expected).all()  # exactly 0.0 from padding and from other sources
        expected = np.zeros(of_targets.shape, bool)
        expected[text, : row + 1] = True
        assert ((of_targets > 0) == expected).all()  # exactly 0.0 from the future and from other targets


def test_seq2seq_tells_source_and_target_apart(key):
    model = new_model(key)
    one, other = jnp.array([9, 5, 3, 0]), jnp.array([9, 6, 1, 2])  # both begin with the start token
    assert np.abs(np.asarray(call(model, one, other) - call(model, other, one))).max() > 0.1


def test_seq2seq_reads_the_order_of_its_source_only_through_positions(key):
    turned = jnp.array(SOURCES[0])[::-1]
    source, target = jnp.array(SOURCES[0]), jnp.array(TARGETS[0])
    without, learned = new_model(key, "none"), new_model(key, "learned")
    assert_close(call(without, turned, target), call(without, source, target))
    assert np.abs(np.asarray(call(learned, turned, target) - call(learned, source, target))).max() > 0.05


@pytest.mark.equation("eq-seq2seq-cross-attention")
@pytest.mark.parametrize("kind", ["learned", "learned-post-own", "rotary-modern"])
def test_seq2seq_cross_weights_sum_to_one_and_give_padding_nothing(kind, key):
    model = new_model(key, kind)
    source, is_source, target, _ = padded()
    weights = np.asarray(model.cross_weights(source[1], target[1], is_source[1]))
    assert weights.shape == (LAYERS, HEADS, 7, SOURCE_LEN)
    np.testing.assert_allclose(weights.sum(axis=3), 1, rtol=1e-5)
    assert (weights[..., 2:] == 0.0).all()
    assert (weights[..., :2] > 0).all()
    assert_close(weights[..., :2], model.cross_weights(source[1, :2], target[1]))


def test_seq2seq_drops_only_with_a_key(key):
    model = new_model(key, dropout_rate=0.4)
    source, is_source, target, _ = padded()
    run = eqx.filter_jit(lambda model, key: model(source, target, is_source, key=key))
    plain = run(new_model(key), None)
    assert_close(run(model, None), plain)
    once, again = run(model, jax.random.key(1)), run(model, jax.random.key(2))
    assert np.abs(np.asarray(once - plain)).max() > 0.1
    assert np.abs(np.asarray(once - again)).max() > 0.1
    assert (once == run(model, jax.random.key(1))).all()


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
    assert pf.count_parameters(new_model(tied_embedding=False)) == shared + 12 * 11
    assert pf.count_parameters(new_model(source_vocab_size=13)) == shared + 13 * 12


@pytest.mark.equation("eq-seq2seq-model")
def test_seq2seq_base_model_of_the_paper_can_be_made():
    config = pf.Seq2SeqConfig(
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
        placement="post",
        activation="relu",
        positions="sinusoidal",
        dropout_rate=0.1,
    )
    model = eqx.filter_eval_shape(lambda key: pf.Seq2Seq(config, key=key), jax.random.key(0))
    networks, norms = network(512, 2048), 2 * 512
    blocks = 6 * (attention(512) + networks + 2 * norms) + 6 * (2 * attention(512) + networks + 3 * norms)
    assert pf.count_parameters(model) == 37_000 * 512 + blocks == 63_082_496


def test_seq2seq_layers_start_different(key):
    model = pf.Seq2Seq(new_config(), key=key)
    attentions = [block.attention for block in (*model.encoder.blocks, *model.blocks)]
    attentions += [block.cross_attention for block in model.blocks]
    matrices = [each.query_weight for each in attentions] + [each.output_weight for each in attentions]
    for number, matrix in enumerate(matrices):
        assert all(np.abs(np.asarray(matrix - other)).max() > 0.01 for other in matrices[:number])
    assert model.embedding is None  # one table for both


def test_seq2seq_last_matrices_of_the_decoder_start_smaller(key):
    one, six = (pf.Seq2Seq(new_config(num_decoder_layers=layers, d_model=96), key=key) for layers in (1, 6))
    for part in ("attention", "cross_attention"):
        spreads = [float(getattr(model.blocks[0], part).output_weight.std()) for model in (one, six)]
        np.testing.assert_allclose(spreads[0] / spreads[1], 6**0.5, rtol=0.05)
    spreads = [float(model.blocks[0].feed_forward.out_weight.std()) for model in (one, six)]
    np.testing.assert_allclose(spreads[0] / spreads[1], 6**0.5, rtol=0.1)


def test_seq2seq_is_traced_once_per_shape(key):
    traces = []

    @eqx.filter_jit
    def run(model, source, target, is_source):
        traces.append(source.shape)
        return model(source, target, is_source)

    source, is_source, target, _ = padded()
    run(new_model(key), source, target, is_source)
    run(new_model(jax.random.key(8)), source[::-1], target[::-1], is_source[::-1])
    assert traces == [(3, SOURCE_LEN)]


def test_seq2seq_in_16_bits_stays_in_16_bits(key):
    halved = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), new_model(key))
    source, is_source, target, _ = padded()
    assert call(halved, source, target, is_source).dtype == jnp.bfloat16


@pytest.mark.parametrize("kind", ["learned", "sinusoidal-own"])
def test_seq2seq_is_saved_and_loaded(kind, tmp_path, key):
    model = new_model(key, kind)
    pf.save_model(tmp_path / "it.safetensors", model)
    loaded = pf.load_model(tmp_path / "it.safetensors", pf.Seq2Seq)
    assert loaded.config == model.config
    source, is_source, target, _ = padded()
    assert (call(loaded, source, target, is_source) == call(model, source, target, is_source)).all()


def test_seq2seq_config_hands_the_encoder_what_both_halves_share():
    config = new_config("rotary-post", dropout_rate=0.1)
    encoder = config.encoder_config()
    assert (encoder.vocab_size, encoder.context_len, encoder.num_layers) == (13, SOURCE_LEN, 1)
    assert (encoder.d_model, encoder.num_heads, encoder.positions) == (D_MODEL, HEADS, "rotary")
    assert (encoder.placement, encoder.dropout_rate, encoder.class_token) == ("post", 0.1, False)
    assert dataclasses.replace(config, source_vocab_size=None).encoder_config().vocab_size == VOCAB
    assert config.context_len == CONTEXT
