"""What a block does to one token at a time: normalisation, the token-wise network (chapter on blocks), dropout (05)."""

import math
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from plainformer.attention.self_attention import at_least_float32
from plainformer.checks import NonNegative, Positive, Rate, check_each, checked
from plainformer.seeing import see
from plainformer.tokens.tokens import Linear

ACTIVATIONS = {
    "relu": jax.nn.relu,
    # The sum 1 + erf, as the equation has it; jax.nn.gelu takes 1 - erf(-x), which costs more than twice the time.
    "gelu": lambda x: x * (1 + jax.lax.erf(x / math.sqrt(2))) / 2,
    "gelu_tanh": lambda x: jax.nn.gelu(x, approximate=True),
    "silu": jax.nn.silu,
    "quick_gelu": lambda x: x * jax.nn.sigmoid(1.702 * x),
    "squared_relu": lambda x: jax.nn.relu(x) ** 2,
}
Activation = Literal["relu", "gelu", "gelu_tanh", "silu", "quick_gelu", "squared_relu"]


@checked
def standardise(x: Float[Array, "*batch d_model"], eps: NonNegative = 1e-5) -> Float[Array, "*batch d_model"]:
    r"""Shift and stretch each row to mean 0 and variance 1.

    Implements `eq-blocks-standardise`; Ba et al. (2016), equation 3.

    `eps` is added to the variance, under the root, so that a constant row gives zeros and no division by zero. The
    variance is the biased one: the sum of squares divided by `d_model`, not by `d_model - 1`.
    """
    check_each(Positive, d_model=x.shape[-1])
    rows = at_least_float32(x)
    centred = rows - rows.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return (centred * jax.lax.rsqrt(variance + eps)).astype(x.dtype)


class LayerNorm(eqx.Module):
    r"""Layer normalisation: standardise each token's vector, then scale and shift every column by learned amounts.

    Implements `eq-blocks-layer-norm`; Ba et al. (2016), equation 4.

    The scale starts at ones, the bias at zeros.

    Args:
        d_model: width of a token.
        eps: as for `standardise`.
        use_bias: whether there is a shift.

    Example:
        How large a token's vector is makes no difference.

        >>> print(pf.LayerNorm(2)(jnp.asarray([[1.0, 3.0], [10.0, 30.0]])).round(2))
        [[-1.  1.]
         [-1.  1.]]
    """

    scale: Float[Array, " d_model"]
    bias: Float[Array, " d_model"] | None
    eps: float = eqx.field(static=True)

    @checked
    def __init__(self, d_model: Positive, *, eps: NonNegative = 1e-5, use_bias: bool = True):
        self.scale = jnp.ones(d_model)
        self.bias = jnp.zeros(d_model) if use_bias else None
        self.eps = eps

    @checked
    def __call__(self, x: Float[Array, "*batch d_model"]) -> Float[Array, "*batch d_model"]:
        """Normalise each row of `x`."""
        scaled = self.scale * standardise(x, self.eps)
        return scaled if self.bias is None else scaled + self.bias


class RMSNorm(eqx.Module):
    r"""Root-mean-square normalisation: divide each token's vector by its typical entry, then scale every column.

    Implements `eq-blocks-rms-norm`; Zhang and Sennrich (2019), equation 4.

    Differs from the paper:
        By `eps`, which is added to the mean square, under the root.
    """

    scale: Float[Array, " d_model"]
    eps: float = eqx.field(static=True)

    @checked
    def __init__(self, d_model: Positive, *, eps: NonNegative = 1e-5):
        self.scale = jnp.ones(d_model)
        self.eps = eps

    @checked
    def __call__(self, x: Float[Array, "*batch d_model"]) -> Float[Array, "*batch d_model"]:
        """Normalise each row of `x`."""
        rows = at_least_float32(x)
        mean_square = (rows**2).mean(axis=-1, keepdims=True)
        return self.scale * (rows * jax.lax.rsqrt(mean_square + self.eps)).astype(x.dtype)


Norm = LayerNorm | RMSNorm


class FeedForward(eqx.Module):
    r"""The token-wise network: two linear maps with an activation between them, the same for every token.

    Implements `eq-blocks-feed-forward`; Vaswani et al. (2017), equation 2. The activations are `eq-blocks-relu`,
    `eq-blocks-gelu`, `eq-blocks-gelu-tanh` and `eq-blocks-silu`; Hendrycks and Gimpel (2016).

    Args:
        d_model: width of a token.
        d_ff: width of the layer in between.
        activation: `"gelu"` is exact, `"gelu_tanh"` its approximation and `"quick_gelu"` a coarser one (CLIP; Hendrycks
            and Gimpel, section 2), and `"squared_relu"` is So et al. (2021), section 4.
        use_bias: whether each of the two maps adds a bias.
    """

    up: Linear
    down: Linear
    activation: Activation = eqx.field(static=True)

    @checked
    def __init__(
        self,
        d_model: Positive,
        d_ff: Positive,
        *,
        activation: Activation = "gelu",
        use_bias: bool = True,
        key: PRNGKeyArray,
    ):
        up_key, down_key = jax.random.split(key)
        self.up = Linear(d_model, d_ff, use_bias=use_bias, key=up_key)
        self.down = Linear(d_ff, d_model, use_bias=use_bias, key=down_key)
        self.activation = activation

    def __call__(self, x: Float[Array, "*batch d_model"]) -> Float[Array, "*batch d_model"]:
        """Apply the network to each row of `x`."""
        return self.down(see("hidden", ACTIVATIONS[self.activation](self.up(x))))


class SwiGLU(eqx.Module):
    r"""A token-wise network with a gate: one linear map says how much of another passes.

    Implements `eq-blocks-swiglu`; Shazeer (2020), equation 6, where it is called FFN-SwiGLU, and with another
    `activation` of the gate than `"silu"` its relatives, such as FFN-GEGLU with `"gelu"`.

    Three matrices instead of two: with two thirds of the width in between there are as many weights as in
    `FeedForward`.
    """

    gate: Linear
    up: Linear
    down: Linear
    activation: Activation = eqx.field(static=True)

    @checked
    def __init__(self, d_model: Positive, d_ff: Positive, *, activation: Activation = "silu", key: PRNGKeyArray):
        gate_key, up_key, down_key = jax.random.split(key, 3)
        self.gate = Linear(d_model, d_ff, use_bias=False, key=gate_key)
        self.up = Linear(d_model, d_ff, use_bias=False, key=up_key)
        self.down = Linear(d_ff, d_model, use_bias=False, key=down_key)
        self.activation = activation

    def __call__(self, x: Float[Array, "*batch d_model"]) -> Float[Array, "*batch d_model"]:
        """Apply the network to each row of `x`."""
        return self.down(see("hidden", ACTIVATIONS[self.activation](self.gate(x)) * self.up(x)))


@checked
def dropout(x: Float[Array, "*shape"], rate: Rate, *, key: PRNGKeyArray | None = None) -> Float[Array, "*shape"]:
    r"""Set each entry to zero with probability `rate`, and stretch the others so that the mean stays.

    Implements `eq-depth-dropout`; Srivastava et al. (2014), section 4, stretched while training rather than shrunk
    afterwards.

    Without a random key, as outside training, `x` stays as it is.
    """
    if key is None or rate == 0:
        return x
    keep = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(keep, x / (1 - rate), 0)


@checked
def split_key(key: PRNGKeyArray | None, num: int):
    """Return `num` random keys, or as many times `None` if there is no key to split."""
    return [None] * num if key is None else jax.random.split(key, num)
