"""Chapter 09, classifiers: from a text's vectors to one, and from that one to a label."""

import functools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from closeness import assert_close
from flat import classifier_config, encoder_config
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
def test_mean_pool_by_hand():
    rows = jnp.array([[1.0, 10.0], [3.0, 20.0], [100.0, 600.0]])
    np.testing.assert_array_equal(pf.mean_pool(rows, jnp.array([True, True, False])), [2, 15])
    np.testing.assert_array_equal(pf.mean_pool(rows, jnp.array([False, False, True])), [100, 600])
    np.testing.assert_allclose(pf.mean_pool(rows), [104 / 3, 210])


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


def test_mean_pool_does_not_see_the_order_of_tokens():
    assert_close(pf.mean_pool(POOLED[:, ::-1]), pf.mean_pool(POOLED))


def test_mean_pool_keeps_the_dtype():
    rows = POOLED.astype(jnp.bfloat16)
    assert pf.mean_pool(rows, IS_TOKEN).dtype == pf.mean_pool(rows).dtype == jnp.bfloat16


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_mean_pool_adds_up_in_single_precision(dtype):
    rows, is_token = jnp.full((512, 3), 200.0, dtype), jnp.arange(512) < 509
    pooled = pf.mean_pool(rows, is_token)
    assert pooled.dtype == dtype
    assert pooled.tolist() == [200.0] * 3


@pytest.mark.equation("eq-encoder-classifier")
@pytest.mark.parametrize("kind", KINDS)
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


@pytest.mark.equation("eq-encoder-classifier")
@pytest.mark.parametrize("kind", ["first-token", "rows-mean"])
def test_encoder_classifier_takes_padded_texts_in_a_batch_of_any_rank(kind):
    model = new_model(kind)
    inputs, segments = inputs_of(model)
    piled = (None if each is None else jnp.stack([each, each[::-1]]) for each in (inputs, IS_TOKEN, segments))
    expected = np.asarray(model(inputs, IS_TOKEN, segments))
    assert_close(model(*piled), np.stack([expected, expected[::-1]]))


@pytest.mark.equation("eq-encoder-classifier")
@pytest.mark.parametrize("kind", ["class", "mean", "rows-mean"])
def test_encoder_classifier_is_not_reached_by_padding(kind):
    model = new_model(kind)
    inputs, _ = inputs_of(model)
    is_text = model.config.encoder.d_in is None
    other = np.where(PADDED, IDS, (IDS + 1) % VOCAB) if is_text else np.where(PADDED[..., None], VECTORS, VECTORS + 100)
    changed = jnp.asarray(other)
    np.testing.assert_array_equal(model(changed, IS_TOKEN), model(inputs, IS_TOKEN))
    assert np.abs(model(changed) - model(inputs))[1:].max() > 1e-3  # which it is without is_token


def test_encoder_classifier_takes_the_encoder_of_a_masked_language_model():
    trained = drawn(pf.MaskedLanguageModel, encoder_config(**SIZES, **TOKENS))
    fresh = eqx.filter_jit(pf.EncoderClassifier)(classifier_config(**SIZES, **TOKENS, num_classes=CLASSES), key=KEY)
    model = eqx.tree_at(lambda m: m.encoder, fresh, trained.encoder)
    assert jax.tree.structure(model) == jax.tree.structure(fresh)
    text = jnp.arange(SEQ)
    assert_close(model(text), trained.encoder(text)[0] @ fresh.output.weight)


def test_encoder_classifier_drops_entries_of_the_pooled_vector_with_a_key():
    model, (inputs, _) = new_model(dropout_rate=0.5), inputs_of(new_model())
    only_pooled = eqx.tree_at(lambda m: m.encoder, model, new_model().encoder)
    np.testing.assert_array_equal(only_pooled(inputs, IS_TOKEN), new_model()(inputs, IS_TOKEN))
    assert np.abs(only_pooled(inputs, IS_TOKEN, key=KEY) - only_pooled(inputs, IS_TOKEN)).max() > 0.1


def test_encoder_classifier_shows_the_weights_of_its_encoder():
    model, (inputs, _) = new_model("class"), inputs_of(new_model("class"))
    expected = model.encoder.attention_weights(inputs, IS_TOKEN)
    np.testing.assert_array_equal(model.attention_weights(inputs, IS_TOKEN), expected)
    stream = model.residual_stream(inputs, IS_TOKEN)
    assert_close(model.logits(stream[-1], IS_TOKEN), model(inputs, IS_TOKEN))


def test_encoder_classifier_has_as_many_parameters_as_counted_by_hand():
    model = new_model("class")
    assert pf.count_parameters(model) == pf.count_parameters(model.encoder) + D_MODEL * CLASSES + CLASSES
    model = new_model("mean-beside-class")
    assert pf.count_parameters(model) == pf.count_parameters(model.encoder) + D_MODEL * CLASSES


class Fixed(eqx.Module):
    """A model that gives the same logits for all inputs."""

    logits: jax.Array

    def __call__(self, inputs, *, key=None):
        return self.logits


@pytest.mark.equation("eq-encoder-classification-loss")
def test_classification_loss_by_hand():
    logits = jnp.log(jnp.array([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]))
    loss = pf.classification_loss(Fixed(logits), pf.data.LabelledBatch(jnp.zeros((2, 3), int), jnp.array([2, 0])))
    assert_close(loss, -(math.log(0.25) + math.log(0.1)) / 2)


@pytest.mark.equation("eq-encoder-classification-loss")
@pytest.mark.parametrize("kind", ["mean", "first-token"])
def test_classification_loss_passes_padding_and_segments_on(kind):
    model, labels = new_model(kind), jnp.array([3, 0, 1])
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
        (lambda: pf.mean_pool(jnp.ones(3)), ValueError, r"rows has shape \(3,\); expected \(\.\.\., seq, d_model\)"),
        (lambda: pf.mean_pool(jnp.ones((0, 3))), ValueError, r"seq is 0; expected at least 1"),
        (lambda: pf.mean_pool(jnp.ones((2, 3, 4), int)), TypeError, r"rows holds int.*; expected floats"),
        (
            lambda: pf.mean_pool(jnp.ones((2, 3, 4)), ONES.T),
            ValueError,
            r"is_token has shape \(3, 2\); expected \(2, seq=3\)\. .*One for each token",
        ),
        (
            lambda: pf.mean_pool(jnp.ones((2, 3, 4)), ONES.astype(float)),
            TypeError,
            r"is_token holds float32; expected bool",
        ),
        (
            lambda: pf.mean_pool(jnp.ones((2, 3, 4)), ONES.at[1].set(False)),
            ValueError,
            r"is_token\[1\] is not allowed; expected a token in each text: leave out what is all padding",
        ),
        (
            lambda: new_model()(jnp.zeros((2, 3), int), ~ONES),
            ValueError,
            r"is_token\[0\] is not allowed; expected a token in each text",
        ),
        (lambda: new_model(num_classes=0), ValueError, r"num_classes is 0; expected at least 1"),
        (lambda: new_model(num_classes="4"), TypeError, r"num_classes is '4'; expected a whole number"),
        (lambda: new_model(pooling="max"), ValueError, r"pooling is 'max'; expected one of 'class', 'mean'"),
        (lambda: new_model(d_model=13), ValueError, r"d_model=13 is not a multiple of num_heads=6"),
        (lambda: loss_at(4), ValueError, r"target.*4.*; expected 0 to 3"),
        (lambda: loss_at(-1), ValueError, r"target.*-1.*; expected 0 to 3"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_compiled_mean_pool_names_a_text_that_is_all_padding():
    pool = eqx.filter_jit(pf.mean_pool)
    with pytest.raises(RuntimeError, match=r"An entry of is_token is not allowed; expected a token in each text"):
        jax.block_until_ready(pool(jnp.ones((2, 3, 4)), ONES.at[1].set(False)))
