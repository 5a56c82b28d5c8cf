"""The mistakes in layer norm and the feed-forward network that the exercises know by name."""

from math import erf

import numpy as np

from plainformer.exercises.exercise import Mistake


def _relu(hidden, b=None):
    return np.maximum(hidden, 0)


def _same_hidden(hidden, b):
    return hidden


def _one_pass(x):
    """Mean square less squared mean, in the precision of the reader's arguments."""
    x = x.astype(np.float32)
    return (x * x).mean(axis=-1, keepdims=True) - x.mean(axis=-1, keepdims=True) ** 2


LAYER_NORM = [
    Mistake(
        "mean",
        "you normalise each feature over the tokens, not each token over its features",
        "A token must not change when another one joins it. Along which axis, then, do you take the mean?",
        lambda x: x.mean(axis=0, keepdims=True),
    ),
    Mistake(
        "mean",
        "you take one mean and one variance of the whole matrix, not one for each token",
        "How many means do the rows of x have?",
        lambda x: x.mean(keepdims=True),
    ),
    Mistake(
        "mean",
        "your mean or variance has lost its axis: with as many tokens as features, row n's goes to column n",
        "The numbers of x have two axes, those that you subtract or divide by have one. What would keepdims=True do?",
        lambda x: x.mean(axis=-1),
        {"mean": lambda x: x.mean(axis=-1), "variance": lambda x, centred, mean: x.var(axis=-1)},
        {"variance": lambda x, centred, mean: (centred**2).mean(axis=-1)},
    ),
    Mistake(
        "centre",
        "you do not subtract the mean, but divide by the root mean square: that is RMSNorm",
        "What should the numbers of a token sum to, before scale and bias?",
        lambda x, mean: x,
    ),
    Mistake(
        "centre",
        "you divide by the standard deviation, but never subtract the mean",
        "What should the numbers of a token sum to, before scale and bias?",
        {"centre": lambda x, mean: x, "variance": lambda x, centred, mean: mean((x - mean(x)) ** 2)},
    ),
    Mistake(
        "variance",
        "your variance divides by d_model - 1 (Bessel's correction), not by d_model",
        "Do you estimate the variance of a population, or do you rescale the very numbers you have?",
        lambda x, centred, mean: mean(centred**2) * x.shape[-1] / (x.shape[-1] - 1),
    ),
    Mistake(
        "variance",
        "you divide by the root of the sum of squares, which is the row's length, not by the root of their mean",
        "The variance is an average. What do you divide the sum of d_model squares by?",
        lambda x, centred, mean: mean(centred**2) * x.shape[-1],
    ),
    Mistake(
        "variance",
        "your variance is the mean square less the squared mean, and float32 loses it when the mean is large",
        "8192 squared is 67 million, where float32 has only every fourth number. What if you subtract the mean first?",
        lambda x, centred, mean: _one_pass(x),
    ),
    Mistake(
        "divide",
        "you divide by the variance, not by its root",
        "If all numbers of a token double, their variance becomes four times as large. What should the result do?",
        lambda centred, variance, eps: centred / (variance + eps),
        lambda centred, variance, eps: centred / variance,
    ),
    Mistake(
        "divide",
        "you take the root twice: you divide by the root of the standard deviation",
        "Does your function for the spread give the variance, or its root already?",
        lambda centred, variance, eps: centred / np.sqrt(np.sqrt(variance) + eps),
        lambda centred, variance, eps: centred / np.sqrt(np.sqrt(variance + eps)),
    ),
    Mistake(
        "divide",
        "you add eps to the standard deviation: it stands outside the root",
        "The root's slope at 0 is infinite. Does eps keep it away from 0 where you put it?",
        lambda centred, variance, eps: centred / (np.sqrt(variance) + eps),
    ),
    Mistake(
        "divide",
        "eps is added to the result of the division, not to what you divide by",
        "Which comes first, / or +? And what do you divide by, if all numbers of a token are alike?",
        lambda centred, variance, eps: centred / np.sqrt(variance) + eps,
    ),
    Mistake(
        "divide",
        "eps plays no part",
        "What do you divide by, if all numbers of a token are alike?",
        lambda centred, variance, eps: centred / np.sqrt(variance),
    ),
    Mistake(
        "divide",
        "you subtract the mean, but do not divide by the standard deviation",
        "What should the variance of a token's numbers be, before scale and bias?",
        lambda centred, variance, eps: centred,
    ),
    Mistake(
        "divide",
        "you multiply by the standard deviation, where you should divide by it",
        "Should a token with large numbers come out larger or smaller than it went in?",
        lambda centred, variance, eps: centred * np.sqrt(variance + eps),
    ),
    Mistake(
        "affine",
        "scale and bias play no part: you return the standardised rows",
        "Mean 0 and variance 1 need not suit the next layer. Which two arguments let it choose?",
        lambda z, scale, bias: z,
    ),
    Mistake(
        "affine",
        "scale plays no part",
        "Which argument stretches each feature?",
        lambda z, scale, bias: z + bias,
    ),
    Mistake(
        "affine",
        "bias plays no part",
        "Which argument shifts each feature?",
        lambda z, scale, bias: z * scale,
    ),
    Mistake(
        "affine",
        "you add scale, where you should multiply by it",
        "With which scale should the layer leave the standardised rows alone: 0 or 1?",
        lambda z, scale, bias: z + scale + bias,
    ),
    Mistake(
        "affine",
        "you add bias before you multiply by scale, so the bias is stretched, too",
        "What should come out for a token whose numbers are all alike?",
        lambda z, scale, bias: (z + bias) * scale,
    ),
    Mistake(
        "affine",
        "scale and bias are swapped: you multiply by the bias and add the scale",
        "Which of the two stretches, and which shifts?",
        lambda z, scale, bias: z * bias + scale,
    ),
    Mistake(
        "affine",
        "scale and bias run along the tokens: with as many tokens as features, token n gets entry n of both",
        "Each feature has one scale, the same for all tokens. Along which axis of x do the features lie?",
        lambda z, scale, bias: z * scale[:, None] + bias[:, None],
    ),
]
FEED_FORWARD = [
    Mistake(
        "activate",
        "there is no ReLU: you apply two linear maps in a row",
        "Which single matrix does the same as w_in followed by w_out?",
        _same_hidden,
    ),
    Mistake(
        "activate",
        "your ReLU comes after the second map, not between the two",
        "What bends the function, if nothing stands between w_in and w_out? And may the result be negative?",
        {"activate": _same_hidden, "finish": lambda y, x: _relu(y)},
    ),
    Mistake(
        "finish",
        "you apply ReLU after the second map, too",
        "What a sublayer adds to x may be negative. Can yours be?",
        lambda y, x: _relu(y),
    ),
    Mistake(
        "expand",
        "you apply ReLU to x, before the first map, and not after it",
        "Which numbers are the hidden ones: those that go into w_in, or those that come out of it?",
        {"expand": lambda x, w, b: _relu(x) @ w + b, "activate": _same_hidden},
    ),
    Mistake(
        "activate",
        "you take the largest number over all tokens (max along axis 0), not the larger of each number and 0",
        "Which of jnp.max and jnp.maximum compares two things, and what is 0 to the other?",
        lambda hidden, b: hidden.max(axis=0),
        lambda hidden, b: hidden.max(axis=0, keepdims=True),
    ),
    Mistake(
        "activate",
        "your activation keeps the negative numbers and drops the positive ones",
        "ReLU of -2 is 0, and ReLU of 3 is 3. Do you need the larger or the smaller of a number and 0?",
        lambda hidden, b: np.minimum(hidden, 0),
    ),
    Mistake(
        "activate",
        "you take the absolute value, not ReLU: negative numbers change their sign, where they should become 0",
        "What should become of a hidden -2?",
        lambda hidden, b: np.abs(hidden),
    ),
    Mistake(
        "activate",
        "your activation is GELU, not ReLU: small negative numbers leave a trace",
        "What should become of a hidden -2?",
        lambda hidden, b: hidden * (1 + np.vectorize(erf, otypes=[float])(hidden / np.sqrt(2))) / 2,
        lambda hidden, b: hidden * (1 + np.tanh(np.sqrt(2 / np.pi) * (hidden + 0.044715 * hidden**3))) / 2,
    ),
    Mistake(
        "activate",
        "your activation is SiLU, not ReLU: small negative numbers leave a trace",
        "What should become of a hidden -2?",
        lambda hidden, b: hidden / (1 + np.exp(-hidden)),
    ),
    Mistake(
        "activate",
        "your activation levels off (a sigmoid or tanh), where ReLU lets large numbers through as they are",
        "What should become of a hidden 3?",
        lambda hidden, b: 1 / (1 + np.exp(-hidden)),
        lambda hidden, b: np.tanh(hidden),
    ),
    Mistake(
        "expand",
        "b_in is added after ReLU, so it cannot shift where ReLU bends",
        "For which x @ w_in should a hidden number begin to be positive?",
        {"expand": lambda x, w, b: x @ w, "activate": lambda hidden, b: _relu(hidden) + b},
    ),
    Mistake(
        "expand",
        "b_in plays no part",
        "If x is 0, what are the hidden numbers before ReLU?",
        lambda x, w, b: x @ w,
    ),
    Mistake(
        "contract",
        "b_out plays no part",
        "If all hidden numbers are 0, what should come out?",
        lambda hidden, w, b: hidden @ w,
    ),
    Mistake(
        "contract",
        "you return the hidden numbers: w_out and b_out play no part",
        "How do d_ff numbers a token become d_model again?",
        lambda hidden, w, b: hidden,
    ),
    Mistake(
        "expand",
        "your first map mixes the tokens: it multiplies the columns of x, not its rows",
        "In x @ w_in, which axis of x is summed over? And may one token's result depend on another token?",
        lambda x, w, b: x.T @ w + b,
        {"expand": lambda x, w, b: x.T @ w + b, "finish": lambda y, x: y.T},
        lambda x, w, b: w @ x + b,
    ),
    Mistake(
        "expand",
        "your weights are transposed: they fit only where d_ff = d_model",
        "The shape of w_in is (d_model, d_ff). Which of its axes must meet the last one of x?",
        {"expand": lambda x, w, b: x @ w.T + b, "contract": lambda hidden, w, b: hidden @ w.T + b},
        {"expand": lambda x, w, b: x @ w.T + b},
        {"contract": lambda hidden, w, b: hidden @ w.T + b},
    ),
    Mistake(
        "finish",
        "you add x to the result: the skip belongs to the block, not to the feed-forward network",
        "The block will add x to what you return. How often is x counted then?",
        lambda y, x: x + y,
    ),
]
