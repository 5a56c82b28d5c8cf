"""What a block does to one token at a time: normalisation, the token-wise network, dropout (chapter 04)."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from plainformer.checks import as_floats, as_number, check_axes, check_choice, check_fraction, check_positive
from plainformer.tokens.tokens import linear_map

ACTIVATIONS = {
    "relu": jax.nn.relu,
    # The sum 1 + erf, as the equation has it; jax.nn.gelu takes 1 - erf(-x), which costs more than twice the time.
    "gelu": lambda x: x * (1 + jax.lax.erf(x / math.sqrt(2))) / 2,
    "gelu_tanh": lambda x: jax.nn.gelu(x, approximate=True),
    "silu": jax.nn.silu,
}


def standardise(x: Float[Array, "seq d_model"], eps: float = 1e-5) -> Float[Array, "seq d_model"]:
    r"""Shift and stretch each row to mean 0 and variance 1.

    Implements `eq-blocks-standardise`; Ba et al. (2016), equation 3.

    **Arguments**

    - `x`: one vector per token, `(seq, d_model)`.
    - `eps`: what is added to the variance, under the root, so that a constant row gives zeros and no division by zero.

    **Returns** rows of the same shape. The variance is the biased one: the sum of squares divided by `d_model`, not by
    `d_model - 1`.

    **Raises** `ValueError` if `x` is not a matrix, a row is empty or `eps` is negative; `TypeError` if `x` holds no
    floats or `eps` is no number.
    """
    x = as_floats("x", x, seq=None, d_model=None)
    check_positive(d_model=x.shape[1])
    eps = _checked_eps(eps)
    rows = in_single_precision(x)
    centred = rows - rows.mean(axis=1, keepdims=True)
    variance = (centred**2).mean(axis=1, keepdims=True)
    return (centred * jax.lax.rsqrt(variance + eps)).astype(x.dtype)


class LayerNorm(eqx.Module):
    r"""Layer normalisation: standardise each token's vector, then scale and shift every column by learned amounts.

    Implements `eq-blocks-layer-norm`; Ba et al. (2016), equation 4.

    **Arguments**

    - `d_model`: width of a token.
    - `eps`: added to the variance, under the root.
    - `use_bias`: whether there is a shift.

    **Attributes** `scale`, ones at first, and `bias`, zeros at first or `None`, each `(d_model,)`. **Raises**
    `ValueError` if `d_model` is below 1 or `eps` is negative.
    """

    scale: Float[Array, " d_model"]
    bias: Float[Array, " d_model"] | None
    eps: float = eqx.field(static=True)

    def __init__(self, d_model: int, *, eps: float = 1e-5, use_bias: bool = True):
        check_positive(d_model=d_model)
        self.scale = jnp.ones(d_model)
        self.bias = jnp.zeros(d_model) if use_bias else None
        self.eps = _checked_eps(eps)

    def __call__(self, x: Float[Array, "seq d_model"]) -> Float[Array, "seq d_model"]:
        """Normalise each row of `x`, `(seq, d_model)`."""
        check_axes("x", x, seq=None, d_model=self.scale.shape[0])
        scaled = self.scale[None] * standardise(x, self.eps)
        return scaled if self.bias is None else scaled + self.bias[None]


class RMSNorm(eqx.Module):
    r"""Root-mean-square normalisation: divide each token's vector by its typical entry, then scale every column.

    Implements `eq-blocks-rms-norm`; Zhang and Sennrich (2019), equation 4.

    **Arguments**, **Attributes** and **Raises** as for `LayerNorm`, without `use_bias` and `bias`.

    **Differs from the paper** by `eps`, which is added to the mean square, under the root.
    """

    scale: Float[Array, " d_model"]
    eps: float = eqx.field(static=True)

    def __init__(self, d_model: int, *, eps: float = 1e-5):
        check_positive(d_model=d_model)
        self.scale = jnp.ones(d_model)
        self.eps = _checked_eps(eps)

    def __call__(self, x: Float[Array, "seq d_model"]) -> Float[Array, "seq d_model"]:
        """Normalise each row of `x`, `(seq, d_model)`."""
        x = as_floats("x", x, seq=None, d_model=self.scale.shape[0])
        rows = in_single_precision(x)
        mean_square = (rows**2).mean(axis=1, keepdims=True)
        return self.scale[None] * (rows * jax.lax.rsqrt(mean_square + self.eps)).astype(x.dtype)


def in_single_precision(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Give numbers in at least 32 bits: in 16, squares of those above 255 overflow, and `eps` all but vanishes."""
    return x.astype(jnp.float32) if x.dtype.itemsize < 4 else x


def _checked_eps(eps: float) -> float:
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
    - `key`: random key for the weight matrices (Glorot normal); biases start at zero.

    **Attributes** `in_weight`, `(d_model, d_ff)`, `out_weight`, `(d_ff, d_model)`, and `in_bias` and `out_bias`,
    vectors as long as their matrix is wide, or `None`. **Raises** `ValueError` if a width is below 1 or the activation
    unknown.
    """

    in_weight: Float[Array, "d_model d_ff"]
    out_weight: Float[Array, "d_ff d_model"]
    in_bias: Float[Array, " d_ff"] | None
    out_bias: Float[Array, " d_model"] | None
    activation: str = eqx.field(static=True)

    def __init__(self, d_model: int, d_ff: int, *, activation: str = "gelu", use_bias: bool = True, key: PRNGKeyArray):
        check_positive(d_model=d_model, d_ff=d_ff)
        check_choice("activation", activation, ACTIVATIONS)
        in_key, out_key = jax.random.split(key)
        self.in_weight = jax.nn.initializers.glorot_normal()(in_key, (d_model, d_ff))
        self.out_weight = jax.nn.initializers.glorot_normal()(out_key, (d_ff, d_model))
        self.in_bias = jnp.zeros(d_ff) if use_bias else None
        self.out_bias = jnp.zeros(d_model) if use_bias else None
        self.activation = activation

    def __call__(self, x: Float[Array, "seq d_model"]) -> Float[Array, "seq d_model"]:
        """Apply the network to each row of `x`, `(seq, d_model)`."""
        check_axes("x", x, seq=None, d_model=self.in_weight.shape[0])
        hidden = ACTIVATIONS[self.activation](linear_map(x, self.in_weight, self.in_bias))
        return linear_map(hidden, self.out_weight, self.out_bias)


class SwiGLU(eqx.Module):
    r"""A token-wise network with a gate: one linear map says how much of another passes.

    Implements `eq-blocks-swiglu`; Shazeer (2020), equation 6, where it is called FFN-SwiGLU.

    **Arguments**

    - `d_model`, `d_ff`: width of a token, and of the layer in between. Three matrices instead of two: with two thirds
      of the inner width it has as many weights as a `FeedForward`.
    - `key`: random key for the weight matrices (Glorot normal).

    **Attributes** `gate_weight` and `in_weight`, `(d_model, d_ff)`, and `out_weight`, `(d_ff, d_model)`. **Raises**
    `ValueError` if a width is below 1.
    """

    gate_weight: Float[Array, "d_model d_ff"]
    in_weight: Float[Array, "d_model d_ff"]
    out_weight: Float[Array, "d_ff d_model"]

    def __init__(self, d_model: int, d_ff: int, *, key: PRNGKeyArray):
        check_positive(d_model=d_model, d_ff=d_ff)
        glorot = jax.nn.initializers.glorot_normal()
        gate_key, in_key, out_key = jax.random.split(key, 3)
        self.gate_weight = glorot(gate_key, (d_model, d_ff))
        self.in_weight = glorot(in_key, (d_model, d_ff))
        self.out_weight = glorot(out_key, (d_ff, d_model))

    def __call__(self, x: Float[Array, "seq d_model"]) -> Float[Array, "seq d_model"]:
        """Apply the network to each row of `x`, `(seq, d_model)`."""
        check_axes("x", x, seq=None, d_model=self.in_weight.shape[0])
        return (jax.nn.silu(x @ self.gate_weight) * (x @ self.in_weight)) @ self.out_weight


def dropout(x: Float[Array, "*shape"], rate: float, *, key: PRNGKeyArray | None = None) -> Float[Array, "*shape"]:
    r"""Set each entry to zero with probability `rate`, and stretch the others so that the mean stays.

    Implements `eq-blocks-dropout`; Srivastava et al. (2014), section 4, stretched while training rather than shrunk
    afterwards.

    **Arguments**

    - `x`: an array of any shape.
    - `rate`: probability of a zero, at least 0 and below 1.
    - `key`: random key; `None`, as outside training, returns `x` as it is.

    **Returns** an array of the same shape. **Raises** `ValueError` if `rate` is out of range, `TypeError` if it is no
    number or, under `jax.jit`, a traced one, and if `x` holds no floats.
    """
    check_fraction(rate=rate)
    x = as_floats("x", x)
    if key is None or rate == 0:
        return x
    keep = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(keep, x / (1 - float(rate)), 0)


def count_parameters(module) -> int:
    r"""Count the learned numbers of a module, or of any tree of arrays: the entries of all its floating-point arrays.

    Implements `eq-blocks-parameters`. Shapes are enough: `eqx.filter_eval_shape` gives a module without its numbers.
    """
    arrays = [leaf for leaf in jax.tree.leaves(module) if hasattr(leaf, "dtype")]
    return sum(array.size for array in arrays if jnp.issubdtype(array.dtype, jnp.inexact))
