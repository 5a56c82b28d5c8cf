"""Where a model looks: attention followed through layers, and laid over the patches of an image."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf

LAYERS, HEADS, ROWS = 3, 2, 7
rollout = jax.jit(pf.attention_rollout)


def rows_that_sum_to_one(*shape):
    """Drawn weights, each row a distribution."""
    numbers = np.exp(2 * np.random.default_rng(0).normal(size=shape))
    return (numbers / numbers.sum(axis=-1, keepdims=True)).astype(np.float32)


# Three layers of two heads over seven tokens.
WEIGHTS = rows_that_sum_to_one(LAYERS, HEADS, ROWS, ROWS)


@pytest.mark.equation("eq-vision-rollout")
def test_attention_rollout_agrees_with_a_loop_in_float64():
    numbers = WEIGHTS.astype(np.float64)
    expected = [[float(n == m) for m in range(ROWS)] for n in range(ROWS)]
    for layer in numbers:
        passed = [[(sum(h[n][m] for h in layer) / HEADS + (n == m)) / 2 for m in range(ROWS)] for n in range(ROWS)]
        expected = [[sum(row[k] * expected[k][m] for k in range(ROWS)) for m in range(ROWS)] for row in passed]
    np.testing.assert_allclose(rollout(WEIGHTS), expected, atol=1e-6)


@pytest.mark.equation("eq-vision-rollout")
def test_attention_rollout_of_a_batch_is_that_of_each_image():
    several = np.stack([WEIGHTS, WEIGHTS[::-1]])
    found = rollout(several)
    for one, weights in zip(found, several, strict=True):
        np.testing.assert_allclose(one, rollout(weights), atol=1e-6)
    assert np.abs(found[0] - found[1]).max() > 0.01  # the order of the layers matters


@pytest.mark.equation("eq-vision-class-attention")
def test_class_attention_lays_the_first_row_out_in_reading_order():
    weights = np.arange(49.0).reshape(7, 7)
    np.testing.assert_array_equal(pf.class_attention(weights, (2, 3)), [[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(pf.class_attention(weights, (3, 2)), [[1, 2], [3, 4], [5, 6]])


@pytest.mark.equation("eq-vision-class-attention")
def test_class_attention_of_every_layer_and_head_at_once():
    found = np.asarray(pf.class_attention(WEIGHTS, (2, 3)))
    assert found.shape == (LAYERS, HEADS, 2, 3)
    for place in np.ndindex(LAYERS, HEADS):
        np.testing.assert_array_equal(found[place], pf.class_attention(WEIGHTS[place], (2, 3)))


def test_maps_stay_in_the_precision_of_the_weights():
    half = jnp.asarray(WEIGHTS, jnp.bfloat16)
    assert rollout(half).dtype == pf.class_attention(half, (2, 3)).dtype == jnp.bfloat16


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pf.attention_rollout(np.zeros((2, 7, 7))), ValueError, "weights"),
        (lambda: pf.attention_rollout(np.zeros((2, 3, 5, 7))), ValueError, "weights"),
        (lambda: pf.attention_rollout(np.zeros((2, 3, 5, 5), int)), TypeError, "weights"),
        (lambda: pf.class_attention(np.zeros((2, 3, 6, 6)), (2, 3)), ValueError, "7 rows"),
        (lambda: pf.class_attention(np.zeros((7, 5)), (2, 3)), ValueError, "weights"),
        (lambda: pf.class_attention(np.zeros((7, 7)), 6), TypeError, "grid"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
