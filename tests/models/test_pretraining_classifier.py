"""Classifiers: from a text's vectors to one, and from that one to a label."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from closeness import assert_close
from flat import classifier_config
from toy_models import drawn

import plainformer as pf

VOCAB, CONTEXT, SEQ, D_MODEL, HEADS, D_FF, TEXTS, CLASSES, D_IN = 11, 9, 7, 24, 6, 10, 3, 4, 5
LENGTHS = [7, 4, 2]
SIZES = {"context_len": CONTEXT, "d_model": D_MODEL, "num_layers": 2, "num_heads": HEADS, "d_ff": D_FF}
TOKENS, ROWS = {"vocab_size": VOCAB}, {"d_in": D_IN}
KINDS = {
    "class": {**TOKENS, "pooling": "class", "use_class_token": True},
    "first-token": {**TOKENS, "pooling": "class", "num_segments": 2},
    "mean": {**TOKENS, "pooling": "mean", "norm_placement": "post"},
    "mean-beside-class": {**TOKENS, "pooling": "mean", "use_class_token": True, "use_bias": False},
    "rows-mean": {**ROWS, "pooling": "mean"},
}
KEY = jax.random.key(20170612)
NUMBERS = np.random.default_rng(8)
IDS = NUMBERS.integers(VOCAB, size=(TEXTS, SEQ))
VECTORS = NUMBERS.normal(size=(TEXTS, SEQ, D_IN)).astype(np.float32)
SEGMENTS = NUMBERS.integers(2, size=(TEXTS, SEQ))
PADDED = np.arange(SEQ) < np.array(LENGTHS)[:, None]  # which tokens of three texts of unequal length are none
IS_TOKEN = jnp.asarray(PADDED)
POOLED = jnp.asarray(NUMBERS.normal(size=(TEXTS, SEQ, D_MODEL)), float)


@functools.cache
def new_model(kind="mean", **fields):
    """A classifier with all its parameters drawn."""
    return drawn(pf.EncoderClassifier, classifier_config(**{"num_classes": CLASSES} | SIZES | KINDS[kind] | fields))


def inputs_of(model):
    """Three texts of seven tokens, or of seven rows of numbers, and their segments if the model has any."""
    config = model.config.encoder
    inputs = IDS if config.d_in is None else VECTORS
    return jnp.asarray(inputs), jnp.asarray(SEGMENTS) if config.num_segments else None


@pytest.mark.equation("eq-encoder-mean-pool")
def test_mean_pool_of_any_batch_is_each_text_alone():
    pooled = pf.mean_pool(POOLED, IS_TOKEN)
    assert pooled.shape == (TEXTS, D_MODEL)
    for text, length in enumerate(LENGTHS):
        assert_close(pooled[text], np.asarray(POOLED, np.float64)[text, :length].sum(axis=0) / length)
    more = pf.mean_pool(jnp.stack([POOLED, -POOLED]), jnp.stack([IS_TOKEN, IS_TOKEN]))
    np.testing.assert_array_equal(more, np.stack([pooled, -pooled]))


@pytest.mark.equation("eq-encoder-mean-pool")
def test_mean_pool_is_not_reached_by_padding():
    spoilt = jnp.where(IS_TOKEN[..., None], POOLED, jnp.nan)
    np.testing.assert_array_equal(pf.mean_pool(spoilt, IS_TOKEN), pf.mean_pool(POOLED, IS_TOKEN))
    gradient = np.asarray(jax.grad(lambda x: pf.mean_pool(x, IS_TOKEN).sum())(spoilt))
    assert (gradient[~PADDED] == 0.0).all()
    for text, length in enumerate(LENGTHS):
        np.testing.assert_allclose(gradient[text, :length], 1 / length, rtol=1e-6)


def test_mean_pool_adds_up_in_single_precision():
    rows, is_token = jnp.full((512, 3), 200.0, jnp.bfloat16), jnp.arange(512) < 509
    pooled = pf.mean_pool(rows, is_token)
    assert pooled.dtype == jnp.bfloat16
    assert pooled.tolist() == [200.0] * 3


@pytest.mark.equation("eq-encoder-classifier")
@pytest.mark.parametrize("kind", ["class", "first-token", "mean-beside-class", "rows-mean"])
def test_encoder_classifier_of_padded_texts_agrees_with_a_loop_in_float64_on_each_alone(kind):
    model = new_model(kind)
    inputs, segments = inputs_of(model)
    logits = model(inputs, IS_TOKEN, segments)
    assert logits.shape == (TEXTS, CLASSES)
    for text, length in enumerate(LENGTHS):
        its_segments = None if segments is None else segments[text]
        alone = None if segments is None else its_segments[:length]
        expected = reference.classifier(inputs[text, :length], model, alone)
        assert_close(logits[text], expected)
        assert_close(model(inputs[text], IS_TOKEN[text], its_segments), expected)


@pytest.mark.equation("eq-encoder-classification-loss")
def test_classification_loss_passes_padding_and_segments_on():
    model, labels = new_model("first-token"), jnp.array([3, 0, 1])
    inputs, segments = inputs_of(model)
    batch = pf.data.LabelledBatch(inputs, labels, IS_TOKEN, segments)
    log_probs = np.asarray(jax.nn.log_softmax(model(inputs, IS_TOKEN, segments)))
    assert_close(pf.classification_loss(model, batch), -log_probs[range(TEXTS), labels].mean())


@pytest.mark.slow
@pytest.mark.equation("eq-encoder-classification-loss")
def test_fit_teaches_a_classifier_what_no_single_token_tells():
    sizes = {"context_len": 4, "vocab_size": 4, "d_model": 16, "num_layers": 1, "num_heads": 2}
    config = classifier_config(**sizes, num_classes=2, pooling="mean")
    texts = jnp.asarray(NUMBERS.integers(4, size=(128, 4)))
    labels = (texts[:, 0] == texts[:, 3]).astype(int)
    training = pf.TrainingConfig(num_steps=200, learning_rate=1e-2, warmup_steps=10)
    model = eqx.filter_jit(pf.EncoderClassifier)(config, key=KEY)
    result = pf.fit(
        model, pf.classification_loss, lambda step: pf.data.LabelledBatch(texts, labels), training, progress=False
    )
    assert (result.model(texts).argmax(axis=1) == labels).mean() > 0.95


# --- what a reader is told ----------------------------------------------------------------------------------

ONES = jnp.ones((2, 3), bool)


def loss_at(label):
    return pf.classification_loss(new_model(), pf.data.LabelledBatch(jnp.zeros((2, 3), int), jnp.array([0, label])))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pf.mean_pool(jnp.ones((0, 3))), ValueError, "seq is 0"),
        (lambda: pf.mean_pool(jnp.ones((2, 3, 4), int)), TypeError, "rows holds int"),
        (lambda: pf.mean_pool(jnp.ones((2, 3, 4)), ONES.T), ValueError, "is_token has shape"),
        (lambda: pf.mean_pool(jnp.ones((2, 3, 4)), ONES.astype(float)), TypeError, "is_token holds"),
        (lambda: pf.mean_pool(jnp.ones((2, 3, 4)), ONES.at[1].set(False)), ValueError, r"is_token\[1\]"),
        (lambda: new_model()(jnp.zeros((2, 3), int), ~ONES), ValueError, r"is_token\[0\]"),
        (lambda: loss_at(4), ValueError, "target.*4"),
        (lambda: loss_at(-1), ValueError, "target.*-1"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.run_time_check
def test_compiled_mean_pool_names_a_text_that_is_all_padding():
    pool = eqx.filter_jit(pf.mean_pool)
    with pytest.raises(RuntimeError, match="An entry of is_token is not allowed"):
        jax.block_until_ready(pool(jnp.ones((2, 3, 4)), ONES.at[1].set(False)))
