"""Exercise `layer_norm`: each token standardised over its features, then scaled and shifted.

The right steps are float64 NumPy and share no line with `plainformer.blocks.layers`.
"""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake, floats


def layer_norm(
    x,
    scale,
    bias,
    eps,
    *,
    mean=lambda x: x.mean(axis=-1, keepdims=True),
    centre=lambda x, mean: x - mean(x),
    variance=lambda x, centred, mean: mean(centred**2),
    divide=lambda centred, variance, eps: centred / np.sqrt(variance + eps),
    affine=lambda z, scale, bias: z * scale + bias,
):
    """Return the rows with mean 0 and variance 1, then scaled and shifted."""
    centred = centre(x, mean)
    return affine(divide(centred, variance(x, centred, mean), eps), scale, bias)


def _one_pass(x):
    """Mean square less squared mean, in the precision of the reader's arguments."""
    x = x.astype(np.float32)
    return (x * x).mean(axis=-1, keepdims=True) - x.mean(axis=-1, keepdims=True) ** 2


MISTAKES = [
    Mistake(
        "you normalise each feature over the tokens, not each token over its features",
        "A token must not change when another one joins it. Along which axis, then, do you take the mean?",
        mean=lambda x: x.mean(axis=0, keepdims=True),
    ),
    Mistake(
        "you take one mean and one variance of the whole matrix, not one for each token",
        "How many means do the rows of x have?",
        mean=lambda x: x.mean(keepdims=True),
    ),
    Mistake(
        "your mean or variance has lost its axis: with as many tokens as features, row n's goes to column n",
        "The numbers of x have two axes, those that you subtract or divide by have one. What would keepdims=True do?",
        {"mean": lambda x: x.mean(axis=-1)},
        {"mean": lambda x: x.mean(axis=-1), "variance": lambda x, centred, mean: x.var(axis=-1)},
        {"variance": lambda x, centred, mean: (centred**2).mean(axis=-1)},
    ),
    Mistake(
        "you do not subtract the mean, but divide by the root mean square: that is RMSNorm",
        "What should the numbers of a token sum to, before scale and bias?",
        centre=lambda x, mean: x,
    ),
    Mistake(
        "you divide by the standard deviation, but never subtract the mean",
        "What should the numbers of a token sum to, before scale and bias?",
        centre=lambda x, mean: x,
        variance=lambda x, centred, mean: mean((x - mean(x)) ** 2),
    ),
    Mistake(
        "your variance divides by d_model - 1 (Bessel's correction), not by d_model",
        "Do you estimate the variance of a population, or do you rescale the very numbers you have?",
        variance=lambda x, centred, mean: mean(centred**2) * x.shape[-1] / (x.shape[-1] - 1),
    ),
    Mistake(
        "you divide by the root of the sum of squares, which is the row's length, not by the root of their mean",
        "The variance is an average. What do you divide the sum of d_model squares by?",
        variance=lambda x, centred, mean: mean(centred**2) * x.shape[-1],
    ),
    Mistake(
        "your variance is the mean square less the squared mean, and float32 loses it when the mean is large",
        "8192 squared is 67 million, where float32 has only every fourth number. What if you subtract the mean first?",
        variance=lambda x, centred, mean: _one_pass(x),
    ),
    Mistake(
        "you divide by the variance, not by its root",
        "If all numbers of a token double, their variance becomes four times as large. What should the result do?",
        divide=[
            lambda centred, variance, eps: centred / (variance + eps),
            lambda centred, variance, eps: centred / variance,
        ],
    ),
    Mistake(
        "you take the root twice: you divide by the root of the standard deviation",
        "Does your function for the spread give the variance, or its root already?",
        divide=[
            lambda centred, variance, eps: centred / np.sqrt(np.sqrt(variance) + eps),
            lambda centred, variance, eps: centred / np.sqrt(np.sqrt(variance + eps)),
        ],
    ),
    Mistake(
        "you add eps to the standard deviation: it stands outside the root",
        "The root's slope at 0 is infinite. Does eps keep it away from 0 where you put it?",
        divide=lambda centred, variance, eps: centred / (np.sqrt(variance) + eps),
    ),
    Mistake(
        "eps is added to the result of the division, not to what you divide by",
        "Which comes first, / or +? And what do you divide by, if all numbers of a token are alike?",
        divide=lambda centred, variance, eps: centred / np.sqrt(variance) + eps,
    ),
    Mistake(
        "eps plays no part",
        "What do you divide by, if all numbers of a token are alike?",
        divide=lambda centred, variance, eps: centred / np.sqrt(variance),
    ),
    Mistake(
        "you subtract the mean, but do not divide by the standard deviation",
        "What should the variance of a token's numbers be, before scale and bias?",
        divide=lambda centred, variance, eps: centred,
    ),
    Mistake(
        "you multiply by the standard deviation, where you should divide by it",
        "Should a token with large numbers come out larger or smaller than it went in?",
        divide=lambda centred, variance, eps: centred * np.sqrt(variance + eps),
    ),
    Mistake(
        "scale and bias play no part: you return the standardised rows",
        "Mean 0 and variance 1 need not suit the next layer. Which two arguments let it choose?",
        affine=lambda z, scale, bias: z,
    ),
    Mistake("scale plays no part", "Which argument stretches each feature?", affine=lambda z, scale, bias: z + bias),
    Mistake("bias plays no part", "Which argument shifts each feature?", affine=lambda z, scale, bias: z * scale),
    Mistake(
        "you add scale, where you should multiply by it",
        "With which scale should the layer leave the standardised rows alone: 0 or 1?",
        affine=lambda z, scale, bias: z + scale + bias,
    ),
    Mistake(
        "you add bias before you multiply by scale, so the bias is stretched, too",
        "What should come out for a token whose numbers are all alike?",
        affine=lambda z, scale, bias: (z + bias) * scale,
    ),
    Mistake(
        "scale and bias are swapped: you multiply by the bias and add the scale",
        "Which of the two stretches, and which shifts?",
        affine=lambda z, scale, bias: z * bias + scale,
    ),
    Mistake(
        "scale and bias run along the tokens: with as many tokens as features, token n gets entry n of both",
        "Each feature has one scale, the same for all tokens. Along which axis of x do the features lie?",
        affine=lambda z, scale, bias: z * scale[:, None] + bias[:, None],
    ),
]

_RNG = np.random.default_rng(2016)


def _case(name, seq, d_model, eps, x=None, is_edge=False):
    drawn = 3 * _RNG.normal(size=(seq, d_model)).round(2) + 1
    scale, bias = _RNG.normal(size=(2, d_model)).round(2)
    return Case(name, {"x": drawn if x is None else x, "scale": scale, "bias": bias, "eps": eps}, is_edge)


# The squares of these cannot be told apart in float32, their differences can.
_FAR_OUT = 8192 + np.array([[-1, 1, -0.5, 0.5], [0.5, -1, 1, -0.5], [1, 0.5, -0.5, -1]])

EXERCISE = Exercise(
    layer_norm,
    MISTAKES,
    cases=[
        _case("more tokens than features", 5, 4, 0.001),
        _case("as many tokens as features, and an eps large enough to see", 4, 4, 0.5),
        _case("one token", 1, 4, 0.001, is_edge=True),
        _case("a token whose numbers are all alike", 2, 4, 0.001, x=np.array([[2.0] * 4, [1, 2, 3, 5]]), is_edge=True),
        _case("numbers near 8192", 3, 4, 0.001, x=_FAR_OUT, is_edge=True),
    ],
    examples=[
        {**floats(x=[[1, 3], [2, 6], [9, 5]], scale=[1, 1], bias=[0, 0]), "eps": 0.0},
        {**floats(x=[[1, 3], [2, 6]], scale=[10, 20], bias=[1, 5]), "eps": 0.0},
        {**floats(x=[[1, 3], [8, 6]], scale=[1, 1], bias=[0, 0]), "eps": 3.0},
        {**floats(x=[[8191, 8193]], scale=[1, 1], bias=[0, 0]), "eps": 3.0},
    ],
    result="(seq, d_model)",
    tried_on="{x[0]} tokens, {x[1]} features",
)
