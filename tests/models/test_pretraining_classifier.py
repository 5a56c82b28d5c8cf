"""Chapter 07, classifiers: from a text's vectors to one, and from that one to a label."""

import dataclasses
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from closeness import assert_close
from redraw import redrawn

import plainformer as pf

VOCAB, CONTEXT, SEQ, D_MODEL, HEADS, D_FF, TEXTS, CLASSES, D_IN = 11, 9, 7, 24, 6, 10, 3, 4, 5
LENGTHS = [7, 4, 2]
SIZES = {"context_len": CONTEXT, "d_model": D_MODEL, "num_layers": 2, "num_heads": HEADS, "d_ff": D_FF}
TOKENS, ROWS = {"vocab_size": VOCAB}, {"d_in": D_IN}
KINDS = {
    "class": {**TOKENS, "pooling": "class", "class_token": True},
    "first-token": {**TOKENS, "pooling": "class", "num_segments": 2},
    "mean": {**TOKENS, "pooling": "mean", "placement": "post"},
    "mean-beside-class": {**TOKENS, "pooling": "mean", "class_token": True, "use_bias": False},
    "rows-mean": {**ROWS, "pooling": "mean"},
}
call = eqx.filter_jit(lambda model, *arguments, key=None: model(*arguments, key=key))


def new_model(key, kind="mean", **options):
    """A classifier whose parameters are all drawn."""
    config = pf.ClassifierConfig(num_classes=CLASSES, **SIZES | KINDS[kind] | options)
    return redrawn(pf.EncoderClassifier(config, key=key), key)


def new_inputs(key, model):
    """Three texts of seven tokens, or of seven rows of numbers, and their segments if the model has any."""
    inputs = jax.random.randint(key, (TEXTS, SEQ), 0, VOCAB)
    if model.config.d_in is not None:
        inputs = jax.random.normal(key, (TEXTS, SEQ, D_IN))
    segments = jax.random.bernoulli(key, 0.5, (TEXTS, SEQ)).astype(int)
    return inputs, segments if model.config.num_segments else None


@pytest.fixture
def is_token():
    """Which tokens of three texts of unequal length are none."""
    return jnp.arange(SEQ)[None, :] < jnp.array(LENGTHS)[:, None]


@pytest.mark.equation("eq-encoder-mean-pool")
def test_mean_pool_by_hand():
    rows = jnp.array([[1.0, 10.0], [3.0, 20.0], [100.0, 600.0]])
    np.testing.assert_array_equal(pf.mean_pool(rows, jnp.array([True, True, False])), [2, 15])
    np.testing.assert_array_equal(pf.mean_pool(rows, jnp.array([False, False, True])), [100, 600])
    np.testing.assert_allclose(pf.mean_pool(rows), [104 / 3, 210])


@pytest.mark.equation("eq-encoder-mean-pool")
def test_mean_pool_of_several_texts_is_each_text_alone(is_token, key):
    rows = jax.random.normal(key, (TEXTS, SEQ, D_MODEL))
    pooled = pf.mean_pool(rows, is_token)
    assert pooled.shape == (TEXTS, D_MODEL)
    for text, length in enumerate(LENGTHS):
        assert_close(pooled[text], np.asarray(rows[text, :length], np.float64).sum(axis=0) / length)
    more = jnp.stack([rows, -rows])
    np.testing.assert_array_equal(pf.mean_pool(more, jnp.stack([is_token, is_token])), jnp.stack([pooled, -pooled]))


@pytest.mark.equation("eq-encoder-mean-pool")
def test_mean_pool_is_not_reached_by_padding(is_token, key):
    rows = jax.random.normal(key, (TEXTS, SEQ, D_MODEL))
    spoilt = jnp.where(is_token[..., None], rows, jnp.nan)
    np.testing.assert_array_equal(pf.mean_pool(spoilt, is_token), pf.mean_pool(rows, is_token))
    gradient = jax.grad(lambda x: pf.mean_pool(x, is_token).sum())(spoilt)
    assert (gradient[~is_token] == 0.0).all()
    for text, length in enumerate(LENGTHS):
        np.testing.assert_allclose(gradient[text, :length], 1 / length)


def test_mean_pool_does_not_see_the_order_of_tokens(key):
    rows = jax.random.normal(key, (SEQ, D_MODEL))
    assert_close(pf.mean_pool(rows[::-1]), pf.mean_pool(rows))


def test_mean_pool_keeps_the_dtype(is_token):
    rows = jnp.ones((TEXTS, SEQ, D_MODEL), jnp.bfloat16)
    assert pf.mean_pool(rows, is_token).dtype == pf.mean_pool(rows).dtype == jnp.bfloat16


@pytest.mark.equation("eq-encoder-classifier")
@pytest.mark.parametrize("kind", KINDS)
def test_encoder_classifier_of_padded_texts_agrees_with_a_loop_in_float64_on_each_alone(kind, is_token, key):
    model = new_model(key, kind)
    inputs, segments = new_inputs(key, model)
    logits = call(model, inputs, is_token, segments)
    assert logits.shape == (TEXTS, CLASSES)
    for text, length in enumerate(LENGTHS):
        its_segments = None if segments is None else segments[text, :length]
        rows = reference.encoder(inputs[text, :length], model.encoder, its_segments)
        pooled = rows[0] if model.config.pooling == "class" else sum(rows[-length:]) / length
        expected = pooled @ np.asarray(model.out_weight, np.float64)
        expected = expected if model.out_bias is None else expected + np.asarray(model.out_bias, np.float64)
        assert_close(logits[text], expected)
        assert_close(call(model, inputs[text], is_token[text], None if segments is None else segments[text]), expected)


@pytest.mark.equation("eq-encoder-classifier")
@pytest.mark.parametrize("kind", ["class", "mean", "rows-mean"])
def test_encoder_classifier_is_not_reached_by_padding(kind, is_token, key):
    model = new_model(key, kind)
    inputs, _ = new_inputs(key, model)
    other = (inputs + 1) % VOCAB if model.config.d_in is None else inputs + 100
    changed = jnp.where(is_token if model.config.d_in is None else is_token[..., None], inputs, other)
    np.testing.assert_array_equal(call(model, changed, is_token), call(model, inputs, is_token))
    assert np.abs(call(model, changed) - call(model, inputs))[1:].max() > 1e-3  # which it is without is_token


def test_encoder_classifier_takes_the_encoder_of_a_masked_language_model(key):
    config = pf.EncoderConfig(**SIZES, **TOKENS)
    trained = redrawn(pf.MaskedLanguageModel(config, key=key), key)
    fresh = pf.EncoderClassifier(pf.ClassifierConfig(**dataclasses.asdict(config), num_classes=CLASSES), key=key)
    model = eqx.tree_at(lambda m: m.encoder, fresh, trained.encoder)
    assert jax.tree.structure(model) == jax.tree.structure(fresh)
    text = jnp.arange(SEQ)
    assert_close(call(model, text), trained.encoder(text)[0] @ fresh.out_weight)


def test_encoder_classifier_drops_only_with_a_key(is_token, key):
    model = new_model(key, dropout_rate=0.5)
    inputs, _ = new_inputs(key, model)
    np.testing.assert_array_equal(call(model, inputs, is_token), call(new_model(key), inputs, is_token))
    assert np.abs(call(model, inputs, is_token, key=key) - call(model, inputs, is_token)).max() > 0.1
    only_pooled = eqx.tree_at(lambda m: m.encoder, model, new_model(key).encoder)
    assert np.abs(call(only_pooled, inputs, is_token, key=key) - call(only_pooled, inputs, is_token)).max() > 0.1


def test_encoder_classifier_has_as_many_parameters_as_counted_by_hand(key):
    model = new_model(key, "class")
    assert pf.count_parameters(model) == pf.count_parameters(model.encoder) + D_MODEL * CLASSES + CLASSES
    model = new_model(key, "mean-beside-class")
    assert pf.count_parameters(model) == pf.count_parameters(model.encoder) + D_MODEL * CLASSES


def test_encoder_classifier_is_saved_and_loaded(tmp_path, key):
    model, text = new_model(key), jnp.arange(SEQ)
    pf.save_model(tmp_path / "classifier.safetensors", model)
    again = pf.load_model(tmp_path / "classifier.safetensors", pf.EncoderClassifier)
    assert again.config == model.config
    np.testing.assert_array_equal(call(again, text), call(model, text))


class Fixed(eqx.Module):
    """A model that gives the same logits for all inputs."""

    logits: jax.Array

    def __call__(self, inputs, *, key=None):
        return self.logits


@pytest.mark.equation("eq-encoder-classification-loss")
def test_classification_loss_by_hand():
    logits = jnp.log(jnp.array([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]))
    loss = pf.classification_loss(Fixed(logits), (jnp.zeros((2, 3), int), jnp.array([2, 0])))
    assert_close(loss, -(math.log(0.25) + math.log(0.1)) / 2)


@pytest.mark.equation("eq-encoder-classification-loss")
@pytest.mark.parametrize("kind", ["mean", "first-token"])
def test_classification_loss_passes_padding_and_segments_on(kind, is_token, key):
    model, labels = new_model(key, kind), jnp.array([3, 0, 1])
    inputs, segments = new_inputs(key, model)
    batch = (inputs, labels, is_token) if segments is None else (inputs, labels, is_token, segments)
    log_probs = jax.nn.log_softmax(call(model, inputs, is_token, segments))
    assert_close(pf.classification_loss(model, batch), -sum(log_probs[n, labels[n]] for n in range(TEXTS)) / TEXTS)


@pytest.mark.equation("eq-encoder-classification-loss")
def test_fit_teaches_a_classifier_what_no_single_token_tells(key):
    config = pf.ClassifierConfig(
        context_len=4, vocab_size=4, d_model=16, num_layers=1, num_heads=2, num_classes=2, pooling="mean"
    )
    texts = jax.random.randint(key, (128, 4), 0, 4)
    labels = (texts[:, 0] == texts[:, 3]).astype(int)
    training = pf.TrainingConfig(num_steps=200, learning_rate=1e-2, warmup_steps=10)
    model = pf.EncoderClassifier(config, key=key)
    result = pf.fit(model, pf.classification_loss, lambda step: (texts, labels), training, progress=False)
    assert (result.model(texts).argmax(axis=1) == labels).mean() > 0.95


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_mean_pool_adds_up_in_single_precision(dtype):
    rows, is_token = jnp.full((512, 3), 200.0, dtype), jnp.arange(512) < 509
    pooled = pf.mean_pool(rows, is_token)
    assert pooled.dtype == dtype
    assert pooled.tolist() == [200.0] * 3
