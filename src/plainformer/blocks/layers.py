"""What a block does to one token at a time: normalisation, the token-wise network, dropout (chapter 04)."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from plainformer.attention.self_attention import at_least_float32
from plainformer.checks import as_number, check_choice, check_fraction, check_positive, checked
from plainformer.tokens.tokens import Linear

ACTIVATIONS = {
    "relu": jax.nn.relu,
    # The sum 1 + erf, as the equation has it; jax.nn.gelu takes 1 - erf(-x), which costs more than twice the time.
    "gelu": lambda x: x * (1 + jax.lax.erf(x / math.sqrt(2))) / 2,
    "gelu_tanh": lambda x: jax.nn.gelu(x, approximate=True),
    "silu": jax.nn.silu,
}


@checked
def standardise(x: Float[Array, "*batch d_model"], eps: float = 1e-5) -> Float[Array, "*batch d_model"]:
    r"""Shift and stretch each row to mean 0 and variance 1.

    Implements `eq-blocks-standardise`; Ba et al. (2016), equation 3.

    **Arguments** the rows; `eps`, what is added to the variance, under the root, so that a constant row gives zeros and
    no division by zero.

    **Returns** rows of the same shape. The variance is the biased one: the sum of squares divided by `d_model`, not by
    `d_model - 1`.
    """
    check_positive(d_model=x.shape[-1])
    eps, rows = check_eps(eps), at_least_float32(x)
    centred = rows - rows.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return (centred * jax.lax.rsqrt(variance + eps)).astype(x.dtype)


class LayerNorm(eqx.Module):
    r"""Layer normalisation: standardise each token's vector, then scale and shift every column by learned amounts.

    Implements `eq-blocks-layer-norm`; Ba et al. (2016), equation 4.

    **Arguments** `d_model`, width of a token; `eps`, added to the variance, under the root; `use_bias`, whether there
    is a shift. The scale starts at ones, the bias at zeros.
    """

    scale: Float[Array, " d_model"]
    bias: Float[Array, " d_model"] | None
    eps: float = eqx.field(static=True)

    def __init__(self, d_model: int, *, eps: float = 1e-5, use_bias: bool = True):
        check_positive(d_model=d_model)
        self.scale = jnp.ones(d_model)
        self.bias = jnp.zeros(d_model) if use_bias else None
        self.eps = check_eps(eps)

    @checked
    def __call__(self, x: Float[Array, "*batch d_model"]) -> Float[Array, "*batch d_model"]:
        """Normalise each row of `x`."""
        scaled = self.scale * standardise(x, self.eps)
        return scaled if self.bias is None else scaled + self.bias


class RMSNorm(eqx.Module):
    r"""Root-mean-square normalisation: divide each token's vector by its typical entry, then scale every column.

    Implements `eq-blocks-rms-norm`; Zhang and Sennrich (2019), equation 4.

    **Arguments** as for `LayerNorm`, without `use_bias`.

    **Differs from the paper** by `eps`, which is added to the mean square, under the root.
    """

    scale: Float[Array, " d_model"]
    eps: float = eqx.field(static=True)

    def __init__(self, d_model: int, *, eps: float = 1e-5):
        check_positive(d_model=d_model)
        self.scale = jnp.ones(d_model)
        self.eps = check_eps(eps)

    @checked
    def __call__(self, x: Float[Array, "*batch d_model"]) -> Float[Array, "*batch d_model"]:
        """Normalise each row of `x`."""
        rows = at_least_float32(x)
        mean_square = (rows**2).mean(axis=-1, keepdims=True)
        return self.scale * (rows * jax.lax.rsqrt(mean_square + self.eps)).astype(x.dtype)


Norm = LayerNorm | RMSNorm


def check_eps(eps: float) -> float:
    """Return `eps` as a Python number; raise `ValueError` unless it is finite and at least 0."""
    number = as_number("eps", eps, "1e-5")
    if not 0 <= number < math.inf:  # a NaN, too, is refused: no comparison with it holds
        raise ValueError(f"eps is {eps}; expected a small number, at least 0, such as 1e-5.")
    return number


class FeedForward(eqx.Module):
    r"""The token-wise network: two linear maps with an activation between them, the same for every token.

    Implements `eq-blocks-feed-forward`; Vaswani et al. (2017), equation 2. The activations are `eq-blocks-relu`,
    `eq-blocks-gelu`, `eq-blocks-gelu-tanh` and `eq-blocks-silu`; Hendrycks and Gimpel (2016).

    **Arguments**

    - `d_model`, `d_ff`: width of a token, and of the layer in between.
    - `activation`: `"relu"`, `"gelu"` (exact), `"gelu_tanh"` (its approximation) or `"silu"`.
    - `use_bias`: whether each of the two maps adds a bias.
    """

    up: Linear
    down: Linear
    activation: str = eqx.field(static=True)

    def __init__(self, d_model: int, d_ff: int, *, activation: str = "gelu", use_bias: bool = True, key: PRNGKeyArray):
        check_positive(d_model=d_model, d_ff=d_ff)
        check_choice("activation", activation, ACTIVATIONS)
        up_key, down_key = jax.random.split(key)
        self.up = Linear(d_model, d_ff, use_bias=use_bias, key=up_key)
        self.down = Linear(d_ff, d_model, use_bias=use_bias, key=down_key)
        self.activation = activation

    def __call__(self, x: Float[Array, "*batch d_model"]) -> Float[Array, "*batch d_model"]:
        """Apply the network to each row of `x`."""
        return self.down(ACTIVATIONS[self.activation](self.up(x)))


class SwiGLU(eqx.Module):
    r"""A token-wise network with a gate: one linear map says how much of another passes.

    Implements `eq-blocks-swiglu`; Shazeer (2020), equation 6, where it is called FFN-SwiGLU.

    **Arguments** `d_model`, `d_ff`: width of a token, and of the layer in between. Three matrices instead of two: with
    two thirds of the width there are as many weights as in `FeedForward`.
    """

    gate: Linear
    up: Linear
    down: Linear

    def __init__(self, d_model: int, d_ff: int, *, key: PRNGKeyArray):
        check_positive(d_model=d_model, d_ff=d_ff)
        gate_key, up_key, down_key = jax.random.split(key, 3)
        self.gate = Linear(d_model, d_ff, use_bias=False, key=gate_key)
        self.up = Linear(d_model, d_ff, use_bias=False, key=up_key)
        self.down = Linear(d_ff, d_model, use_bias=False, key=down_key)

    def __call__(self, x: Float[Array, "*batch d_model"]) -> Float[Array, "*batch d_model"]:
        """Apply the network to each row of `x`."""
        return self.down(jax.nn.silu(self.gate(x)) * self.up(x))


@checked
def dropout(x: Float[Array, "*shape"], rate: float, *, key: PRNGKeyArray | None = None) -> Float[Array, "*shape"]:
    r"""Set each entry to zero with probability `rate`, and stretch the others so that the mean stays.

    Implements `eq-blocks-dropout`; Srivastava et al. (2014), section 4, stretched while training rather than shrunk
    afterwards.

    **Arguments** an array of any shape; the probability of a zero, at least 0 and below 1; a random key, or `None`, as
    outside training, to return `x` as it is. **Raises** `TypeError` if the rate is traced.
    """
    check_fraction(rate=rate)
    if key is None or rate == 0:
        return x
    keep = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(keep, x / (1 - float(rate)), 0)


def split_key(key: PRNGKeyArray | None, num: int):
    """Return `num` random keys, or as many times `None` if there is no key to split."""
    return [None] * num if key is None else jax.random.split(key, num)


def count_parameters(module) -> int:
    r"""Count the learned numbers of a module, or of any tree of arrays: the entries of all its floating-point arrays.

    Implements `eq-blocks-parameters`. Shapes are enough: `eqx.filter_eval_shape` gives a module without its numbers.
    """
    arrays = [leaf for leaf in jax.tree.leaves(module) if hasattr(leaf, "dtype")]
    return sum(array.size for array in arrays if jnp.issubdtype(array.dtype, jnp.inexact))
