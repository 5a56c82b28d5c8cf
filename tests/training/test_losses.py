"""Losses: surprise in nats, what padding may not change, and what is made of the mean."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from toy_models import Bigram

from plainformer.data.named_batches import PaddedWindows, Windows
from plainformer.training.losses import bits_from_nats, contrastive_loss, cross_entropy, next_token_loss, perplexity

BATCH, SEQ, VOCAB = 3, 5, 7
IS_TOKEN = jnp.array([[1, 1, 1, 1, 1], [1, 0, 1, 1, 0], [0, 0, 0, 0, 1]], bool)


@pytest.fixture
def logits(key):
    """Logits for three texts of five tokens."""
    return 2 * jax.random.normal(key, (BATCH, SEQ, VOCAB))


@pytest.fixture
def targets(key):
    """The tokens that came."""
    return jax.random.randint(key, (BATCH, SEQ), 0, VOCAB)


def surprises(logits, targets):
    """Minus the log-probability of each target, in float64, one at a time."""
    logits, found = np.asarray(logits, np.float64), np.zeros(np.shape(targets))
    for place, target in np.ndenumerate(targets):
        row = logits[place]
        found[place] = math.log(sum(math.exp(z) for z in row)) - row[target]
    return found


@pytest.mark.equation("eq-primer-cross-entropy")
def test_cross_entropy_agrees_with_a_loop_in_float64(logits, targets):
    expected = surprises(logits, targets)
    np.testing.assert_allclose(cross_entropy(logits, targets), expected.mean(), rtol=1e-5)
    found = cross_entropy(logits, targets, IS_TOKEN)
    np.testing.assert_allclose(found, expected[np.asarray(IS_TOKEN)].mean(), rtol=1e-5)
    np.testing.assert_allclose(cross_entropy(logits[1, 2], targets[1, 2]), expected[1, 2], rtol=1e-5)


@pytest.mark.equation("eq-primer-gradient")
def test_gradient_of_cross_entropy_is_what_was_expected_minus_what_came(logits, targets):
    shares = jax.nn.softmax(logits) - np.eye(VOCAB)[np.asarray(targets)]
    np.testing.assert_allclose(jax.grad(cross_entropy)(logits, targets), shares / (BATCH * SEQ), atol=1e-7)
    some = np.where(IS_TOKEN[..., None], shares, 0) / int(IS_TOKEN.sum())
    np.testing.assert_allclose(jax.grad(cross_entropy)(logits, targets, IS_TOKEN), some, atol=1e-7)


def test_cross_entropy_of_large_logits_is_finite():
    logits = jnp.array([[1e4, 0.0, -1e4]])
    np.testing.assert_allclose(cross_entropy(logits, jnp.array([2])), 2e4)
    assert cross_entropy(logits, jnp.array([0])) == 0
    of_bytes = cross_entropy(jnp.zeros((2, 300)), jnp.array([7, 255], jnp.uint8))
    np.testing.assert_allclose(of_bytes, math.log(300), rtol=1e-6)
    half = cross_entropy(jnp.asarray(np.eye(3) / 8, jnp.bfloat16), jnp.array([0, 1, 2]))
    assert half.dtype == jnp.float32
    np.testing.assert_allclose(half, math.log(math.exp(1 / 8) + 2) - 1 / 8, rtol=1e-6)


def test_cross_entropy_of_nothing_but_padding_is_zero(logits, targets):
    assert cross_entropy(jnp.zeros((0, VOCAB)), jnp.zeros(0, int)) == 0
    nothing = jnp.zeros((BATCH, SEQ), bool)
    loss, gradient = jax.value_and_grad(cross_entropy)(logits, targets, nothing)
    assert loss == 0
    assert (gradient == 0).all()


def test_cross_entropy_is_not_reached_by_what_stands_at_padding(logits, targets):
    padding = ~IS_TOKEN
    spoilt = jnp.where(padding[..., None], jnp.nan, logits)
    others = jnp.where(padding, -1, targets)
    expected, right = jax.value_and_grad(cross_entropy)(logits, targets, IS_TOKEN)
    loss, gradient = jax.value_and_grad(cross_entropy)(spoilt, others, IS_TOKEN)
    np.testing.assert_array_equal(loss, expected)
    np.testing.assert_array_equal(gradient, right)


@pytest.mark.parametrize("target", [-1, VOCAB])
@pytest.mark.run_time_check
def test_cross_entropy_names_a_target_out_of_range(logits, targets, target):
    spoilt = targets.at[1, 2].set(target)
    for is_token in (None, IS_TOKEN):
        with pytest.raises(ValueError, match=rf"targets\[1, 2\] is {target}"):
            cross_entropy(logits, spoilt, is_token)
        with pytest.raises(RuntimeError, match="targets"):
            eqx.filter_jit(jax.grad(cross_entropy))(logits, spoilt, is_token)


@pytest.mark.usefixtures("unchecked")
def test_cross_entropy_does_not_wrap_targets_of_64_bits():
    logits = jnp.arange(4.0)[None]
    with pytest.raises(ValueError, match=r"^targets\[0\] is 4294967297"):
        cross_entropy(logits, np.array([2**32 + 1]))
    assert cross_entropy(logits, np.array([1])) == cross_entropy(logits, jnp.array([1]))


class Remembering(eqx.Module):
    """A model that says which key it was called with."""

    bigram: Bigram

    def __call__(self, tokens, *, key=None):
        return self.bigram(tokens) if key is None else 2 * self.bigram(tokens)


@pytest.fixture
def model(key):
    """A model of two tokens at a time."""
    return Remembering(Bigram(jax.random.normal(key, (VOCAB, VOCAB))))


@pytest.mark.equation("eq-decoder-loss")
def test_next_token_loss_is_the_mean_surprise_at_the_targets(model, key):
    inputs, targets = (jax.random.randint(k, (BATCH, SEQ), 0, VOCAB) for k in jax.random.split(key))
    expected = surprises(model(inputs), targets)
    np.testing.assert_allclose(next_token_loss(model, Windows(inputs, targets)), expected.mean(), rtol=1e-5)
    padded = next_token_loss(model, PaddedWindows(inputs, targets, IS_TOKEN))
    np.testing.assert_allclose(padded, expected[np.asarray(IS_TOKEN)].mean(), rtol=1e-5)
    with_key = next_token_loss(model, Windows(inputs, targets), key)
    np.testing.assert_allclose(with_key, surprises(2 * model(inputs), targets).mean(), rtol=1e-5)


@pytest.mark.equation("eq-decoder-perplexity")
def test_perplexity_by_hand():
    assert perplexity(1000.0) == math.inf
    assert perplexity(0.0) == 1
    np.testing.assert_allclose(perplexity(math.log(65)), 65)
    # A choice among 8 and a choice among 2, both certain of nothing: as good as one among their geometric mean.
    np.testing.assert_allclose(perplexity(float(jnp.log(jnp.array([8.0, 2.0])).mean())), 4, rtol=1e-6)


@pytest.mark.equation("eq-decoder-bits")
def test_bits_from_nats_by_hand():
    np.testing.assert_allclose(bits_from_nats(3 * math.log(2), 10, 10), 3)
    np.testing.assert_allclose(bits_from_nats(3 * math.log(2), 10, 40), 0.75)  # four characters to a token


LOGITS, TARGETS = jnp.ones((5, 7)), jnp.zeros(5, int)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: cross_entropy(LOGITS, TARGETS[:4]), ValueError, "targets has shape"),
        (lambda: cross_entropy(LOGITS.astype(int), TARGETS), TypeError, "logits holds int32"),
        (lambda: cross_entropy(LOGITS, TARGETS, jnp.ones(5)), TypeError, "is_token holds float32"),
        (lambda: cross_entropy(LOGITS, TARGETS, jnp.ones(4, bool)), ValueError, "is_token has shape"),
        (lambda: contrastive_loss(jnp.ones((3, 4)), jnp.ones((2, 4))), ValueError, "texts"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.equation("eq-vision-contrastive")
def test_contrastive_loss_asks_both_ways_as_a_loop_in_float64(key):
    images, texts = jax.random.normal(key, (2, BATCH, VOCAB))
    unit = [np.asarray(each, np.float64) / np.linalg.norm(each, axis=1, keepdims=True) for each in (images, texts)]
    scores = unit[0] @ unit[1].T / 0.3
    expected = surprises(scores, np.arange(BATCH)), surprises(scores.T, np.arange(BATCH))
    assert abs(expected[0].mean() - expected[1].mean()) > 1e-3  # the two ways differ
    np.testing.assert_allclose(contrastive_loss(images, texts, 0.3), np.mean(expected), rtol=1e-5)
    np.testing.assert_allclose(contrastive_loss(texts, images, jnp.asarray(0.3)), np.mean(expected), rtol=1e-5)


def test_contrastive_loss_has_right_gradients(key):
    with jax.enable_x64(True):
        images, texts = jax.random.normal(key, (2, BATCH, VOCAB), jnp.float64)
        check_grads(lambda *given: contrastive_loss(*given), (images, texts, jnp.asarray(0.3)), order=1, modes=["rev"])
