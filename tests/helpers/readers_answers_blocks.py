"""Answers to the exercises of the chapter `blocks` as readers would write them, right ones and wrong ones."""

import math

import equinox as eqx
import jax
import numpy as np
from exercise_checks import in_jax, in_numpy

import plainformer as pf


def layer_norm(x, scale, bias, eps):
    centred = x - np.mean(x, axis=1)[:, None]
    return centred / np.sqrt(np.var(x, axis=1)[:, None] + eps) * scale + bias


def package_layer_norm(x, scale, bias, eps):
    layer = pf.LayerNorm(x.shape[1], eps=eps)
    return eqx.tree_at(lambda layer: (layer.scale, layer.bias), layer, (scale, bias))(x)


def package_feed_forward(x, w_in, b_in, w_out, b_out):
    layer = pf.FeedForward(*w_in.shape, activation="relu", key=jax.random.key(0))
    weights = (w_in, b_in, w_out, b_out)
    return eqx.tree_at(lambda f: (f.up.weight, f.up.bias, f.down.weight, f.down.bias), layer, weights)(x)


def pre_norm_block(x, attention, feed_forward, attention_norm, feed_forward_norm):
    y = x + attention(attention_norm(x))
    return y + feed_forward(feed_forward_norm(y))


def package_block(x, attention, feed_forward, attention_norm, feed_forward_norm):
    return pf.pre_norm(pf.pre_norm(x, attention_norm, attention), feed_forward_norm, feed_forward)


def by_rows(x, ddof=0):
    return x.mean(axis=1, keepdims=True), x.std(axis=1, keepdims=True, ddof=ddof)


def z(x, eps):
    mean, std = by_rows(x)
    return (x - mean) / np.sqrt(std**2 + eps)


def one_spread(spread):
    """A layer norm that divides by what the reader takes for the spread of a row with this mean and deviation."""

    def norm(x, scale, bias, eps):
        mean, std = by_rows(x)
        return (x - mean) / spread(x, std, eps) * scale + bias

    return norm


def over_tokens(x, scale, bias, eps):
    return (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + eps) * scale + bias


def whole_matrix(x, scale, bias, eps):
    return scale * (x - np.mean(x)) / np.sqrt(np.var(x) + eps) + bias


def lost_axis(x, scale, bias, eps):
    return (x - x.mean(axis=1)) / np.sqrt(x.var(axis=1) + eps) * scale + bias


def rms_norm(x, scale, bias, eps):
    return x / np.sqrt(np.mean(x**2, axis=1, keepdims=True) + eps) * scale + bias


def uncentred(x, scale, bias, eps):
    return x / np.sqrt(x.var(axis=1, keepdims=True) + eps) * scale + bias


def bessel(x, scale, bias, eps):
    mean, std = by_rows(x, ddof=1 if x.shape[1] > 1 else 0)
    return (x - mean) / np.sqrt(std**2 + eps) * scale + bias


def one_pass(x, scale, bias, eps):
    mean = x.mean(axis=1, keepdims=True)
    return (x - mean) / np.sqrt((x**2).mean(axis=1, keepdims=True) - mean**2 + eps) * scale + bias


def length_of_row(x, scale, bias, eps):
    centred = x - by_rows(x)[0]
    return centred / np.sqrt(np.linalg.norm(centred, axis=1, keepdims=True) ** 2 + eps) * scale + bias


def eps_on_the_result(x, scale, bias, eps):
    mean, std = by_rows(x)
    return ((x - mean) / std + eps) * scale + bias


LAYER_NORM = [
    (over_tokens, "each feature over the tokens"),
    (whole_matrix, "one mean and one variance of the whole matrix"),
    (lost_axis, "lost its axis"),
    (rms_norm, "that is RMSNorm"),
    (uncentred, "never subtract the mean"),
    (bessel, "Bessel's correction"),
    (length_of_row, "root of the sum of squares"),
    (one_pass, "float32 loses it"),
    (one_spread(lambda x, std, eps: std**2 + eps), "divide by the variance"),
    (one_spread(lambda x, std, eps: std * std), "divide by the variance"),
    (one_spread(lambda x, std, eps: np.sqrt(std + eps)), "root twice"),
    (one_spread(lambda x, std, eps: std + eps), "outside the root"),
    (eps_on_the_result, "added to the result of the division"),
    (one_spread(lambda x, std, eps: std), "eps plays no part"),
    (one_spread(lambda x, std, eps: 1), "do not divide by the standard deviation"),
    (one_spread(lambda x, std, eps: 1 / np.sqrt(std**2 + eps)), "multiply by the standard deviation"),
    (lambda x, scale, bias, eps: z(x, eps), "scale and bias play no part"),
    (lambda x, scale, bias, eps: z(x, eps) + bias, "scale plays no part"),
    (lambda x, scale, bias, eps: scale * z(x, eps), "bias plays no part"),
    (lambda x, scale, bias, eps: z(x, eps) + scale + bias, "you add scale"),
    (lambda x, scale, bias, eps: scale * (z(x, eps) + bias), "the bias is stretched"),
    (lambda x, bias, scale, eps: z(x, eps) * scale + bias, "scale and bias are swapped"),
    (lambda x, scale, bias, eps: (z(x, eps).T * scale + bias).T, "run along the tokens"),
]


def bent(activation):
    """The network with an activation of the reader's choice."""
    return lambda x, w_in, b_in, w_out, b_out: activation(x @ w_in + b_in[None]) @ w_out + b_out[None]


def relu(x):
    return x * (x > 0)


def per_column(x, w_in, b_in, w_out, b_out):
    return np.stack([relu(w_in.T @ column + b_in) @ w_out + b_out for column in x.T])


def per_column_stood_up(x, *weights):
    return per_column(x, *weights).T


def as_in_pytorch(x, w_in, b_in, w_out, b_out):
    return relu(x @ w_in.T + b_in) @ w_out.T + b_out


def with_skip(x, w_in, b_in, w_out, b_out):
    return x + relu(x @ w_in + b_in) @ w_out + b_out


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gelu(x):
    return np.array([[n * (1 + math.erf(n / 2**0.5)) / 2 for n in row] for row in x.tolist()])


FEED_FORWARD = [
    (lambda x, w, b, v, c: x @ w @ v + b @ v + c, "there is no ReLU"),
    (lambda x, w, b, v, c: relu((x @ w + b) @ v + c), "comes after the second map"),
    (lambda x, w, b, v, c: relu(relu(x @ w + b) @ v + c), "after the second map, too"),
    (lambda x, w, b, v, c: (relu(x) @ w + b) @ v + c, "ReLU to x, before the first map"),
    (lambda x, w, b, v, c: np.max(x @ w + b, 0) @ v + c, "max along axis 0"),
    (bent(lambda hidden: np.minimum(hidden, 0)), "keeps the negative numbers"),
    (bent(np.abs), "absolute value"),
    (in_jax(bent(lambda hidden: jax.nn.gelu(hidden, approximate=False))), "GELU, not ReLU"),
    (in_jax(bent(jax.nn.gelu)), "GELU, not ReLU"),
    (bent(gelu), "GELU, not ReLU"),
    (bent(lambda hidden: hidden * sigmoid(hidden)), "SiLU, not ReLU"),
    (bent(sigmoid), "levels off"),
    (bent(np.tanh), "levels off"),
    (lambda x, w, b, v, c: (relu(x @ w) + b) @ v + c, "b_in is added after ReLU"),
    (lambda x, w, b, v, c: relu(x @ w) @ v + c, "b_in plays no part"),
    (lambda x, w, b, v, c: relu(x @ w + b) @ v, "b_out plays no part"),
    (lambda x, w, b, v, c: relu(x @ w + b), "you return the hidden numbers"),
    (per_column, "mixes the tokens"),
    (per_column_stood_up, "mixes the tokens"),
    (lambda x, w, b, v, c: relu(w @ x + b) @ v + c, "mixes the tokens"),
    (as_in_pytorch, "weights are transposed"),
    (with_skip, "the skip belongs to the block"),
]


def block(first, second=None):
    """A block of two sublayers, each a function of the rows, what works on them, and the norm."""
    second = second or first
    return lambda x, attend, feed, norm1, norm2: second(first(x, attend, norm1), feed, norm2)


def right(x, f, norm):
    return x + f(norm(x))


def post(x, f, norm):
    return norm(x + f(x))


def cut_skip(x, f, norm):
    x = norm(x)
    return x + f(x)


def no_skip(x, f, norm):
    return f(norm(x))


def norm_outside(x, f, norm):
    return x + norm(f(x))


def no_norm(x, f, norm):
    return x + f(x)


def both_norms(x, f, norm):
    return norm(x + f(norm(x)))


def deaf_feed_forward(x, attention, feed_forward, norm1, norm2):
    return x + attention(norm1(x)) + feed_forward(norm2(x))


def parallel(x, attention, feed_forward, norm1, norm2):
    rows = norm1(x)
    return x + attention(rows) + feed_forward(rows)


def old_skip(x, attention, feed_forward, norm1, norm2):
    y = x + attention(norm1(x))
    return x + feed_forward(norm2(y))


def one_skip(x, attention, feed_forward, norm1, norm2):
    return x + feed_forward(norm2(attention(norm1(x))))


def attention_overwritten(x, attention, feed_forward, norm1, norm2):
    y = x + attention(norm1(x))
    y = x + feed_forward(norm2(x))
    return y


_SUBLAYERS = [
    (post, "that is post-norm"),
    (cut_skip, "the skip carries the normalised rows"),
    (no_skip, "there is no skip"),
    (norm_outside, "normalise what the sublayer returns"),
    (no_norm, "there is no norm"),
    (both_norms, "you normalise twice"),
]
BLOCK = [
    *((block(wrong), f"in both sublayers.*{says}") for wrong, says in _SUBLAYERS),
    *((block(wrong, right), f"in the attention sublayer.*{says}") for wrong, says in _SUBLAYERS),
    *((block(right, wrong), f"in the feed-forward sublayer.*{says}") for wrong, says in _SUBLAYERS),
    (deaf_feed_forward, "reads x, not the sum"),
    (parallel, "reads x, not the sum"),
    (old_skip, "second skip carries x"),
    (one_skip, "one skip spans both"),
    (attention_overwritten, "what attention returns is never used"),
    (lambda x, attention, feed, norm1, norm2: right(x, attention, norm1), "your feed-forward plays no part"),
    (lambda x, a, f, norm1, norm2: block(right)(x, a, a, norm1, norm2), "both of your sublayers are attention"),
    (lambda x, a, f, norm1, norm2: block(right)(x, f, a, norm2, norm1), "in the wrong order"),
    (lambda x, a, f, norm1, norm2: block(right)(x, f, a, norm1, norm2), "in the wrong order"),
    (lambda x, a, f, norm1, norm2: block(right)(x, a, f, norm1, norm1), "the first norm twice"),
    (lambda x, a, f, norm1, norm2: block(right)(x, a, f, norm2, norm2), "the second norm twice"),
    (lambda x, a, f, norm1, norm2: block(right)(x, a, f, norm2, norm1), "the two norms are swapped"),
]
RIGHT = [
    ("layer_norm", in_numpy(layer_norm)),
    ("layer_norm", in_jax(package_layer_norm, static_argnums=3)),
    ("feed_forward", in_numpy(bent(relu))),
    ("feed_forward", in_jax(package_feed_forward)),
    ("pre_norm_block", in_numpy(pre_norm_block)),
    ("pre_norm_block", lambda x, *functions: in_jax(lambda x: package_block(x, *functions))(x)),
]
WRONG = [
    *(("layer_norm", in_numpy(function), words) for function, words in LAYER_NORM),
    *(("feed_forward", in_numpy(function), words) for function, words in FEED_FORWARD),
    *(("pre_norm_block", in_numpy(function), words) for function, words in BLOCK),
]
