"""What makes a stack of blocks what it is, and its parts made of that (chapters 07 to 11)."""

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

import jax
from jaxtyping import PRNGKeyArray

from plainformer.attention.efficiency import Blockwise
from plainformer.attention.kernels import SOFTMAX, AttentionKernel
from plainformer.attention.linear import LinearKernel
from plainformer.attention.multi_head import IDENTITY, MultiHeadAttention, check_groups, check_width
from plainformer.blocks.blocks import Block, CrossBlock, NormPlacement, ParallelBlock
from plainformer.blocks.layers import Activation, FeedForward, LayerNorm, Norm, RMSNorm, SwiGLU
from plainformer.checks import NonNegative, Positive, PositiveFloat, Rate, check_fields, checked, says_where
from plainformer.positions.positions import Place, PositionScheme
from plainformer.positions.rotary import Fraction
from plainformer.positions.schemes import SCHEMES, SchemeName

KernelName = Literal["direct", "blockwise", "linear"]
KERNELS: dict[KernelName, AttentionKernel] = {"direct": SOFTMAX, "blockwise": Blockwise(), "linear": LinearKernel()}
# The networks with a gate, and the activation of each one's gate.
GATES: dict[str, Activation] = {"swiglu": "silu", "geglu": "gelu", "geglu_tanh": "gelu_tanh"}
Network = Literal[Activation, "swiglu", "geglu", "geglu_tanh"]


@says_where
@dataclasses.dataclass(frozen=True, kw_only=True)
class StackConfig:
    r"""All that makes a stack of transformer blocks what it is, but for its learned numbers.

    Args:
        d_model, num_layers, num_heads: width of a token; number of blocks; attention heads in each.
        num_kv_heads: heads for keys and values, a divisor of `num_heads`; `None` for as many.
        d_k, d_v: width of a key and of a value in one head; `None` for `d_model / num_heads`.
        d_ff: inner width of the token-wise networks; `None` for `4 * d_model`.
        attention: how attention is computed (chapter 12): `"direct"`, or with the same result `"blockwise"`, which
            takes less memory and, at some thousand tokens, less time; `"linear"`, which is another model, and goes with
            neither a window nor positions that change scores.
        norm_eps: what a norm adds to the variance.
        norm_placement: `"pre"` normalises what enters a sublayer, `"post"` what leaves the sum.
        parallel: whether attention and network of a block work side by side, as in `ParallelBlock`.
        qk_norm: whether queries and keys are normalised by `RMSNorm` in every head of a self-attention.
        activation: of the token-wise networks, as for `FeedForward`; or for those with a gate and no bias `"swiglu"`,
            `"geglu"` with the exact gelu, `"geglu_tanh"` with its approximation.
        position_scheme: of chapter 06; `"sinusoidal_2d"` is for images (chapter 11).
        rope_theta: the base of rotary positions.
        rotary_fraction: which part of a key's columns rotary positions turn.
        num_buckets, max_distance: of relative positions, as for `relative_buckets`.
        window: with 3, a token sees itself and two neighbours on each side, in a decoder the two before it; `None` for
            all. All keys are kept nevertheless, and all scores are computed, unless `attention` is `"blockwise"`.
        dropout_rate: the probability with which an entry is dropped while training, after the embedding and in blocks.
        use_bias: whether linear maps and layer norms have a bias.

    Raises:
        ValueError: if one of them is out of range.
        TypeError: if it is not of its kind.

    Example:
        Sizes that nobody names have the usual values, and sizes that do not fit are refused at once.

        >>> pf.StackConfig(d_model=64).inner_width
        256
        >>> pf.StackConfig(d_model=64, num_heads=5)
        Traceback (most recent call last):
        ValueError: d_model=64 is not a multiple of num_heads=5; expected heads of equal width.
    """

    d_model: Positive = 128
    num_layers: Positive = 4
    num_heads: Positive = 4
    num_kv_heads: Positive | None = None
    d_k: Positive | None = None
    d_v: Positive | None = None
    d_ff: Positive | None = None
    attention: KernelName = "direct"
    norm: Literal["layer", "rms"] = "layer"
    norm_eps: NonNegative = 1e-5
    norm_placement: NormPlacement = "pre"
    parallel: bool = False
    qk_norm: bool = False
    activation: Network = "gelu"
    position_scheme: SchemeName = "learned"
    rope_theta: PositiveFloat = 10_000.0
    rotary_fraction: Fraction = 1.0
    num_buckets: Positive = 32
    max_distance: Positive = 128
    window: Positive | None = None
    dropout_rate: Rate = 0.0
    use_bias: bool = True

    def __post_init__(self):
        check_fields(self)
        if self.d_k is None or self.d_v is None:
            check_width(self.d_model, self.num_heads)
        check_groups(self.num_heads, self.num_kv_heads)
        if self.parallel and self.norm_placement == "post":
            raise ValueError("norm_placement is 'post'; expected 'pre' for parallel=True, sublayers side by side.")
        scheme = SCHEMES[self.position_scheme]
        if not KERNELS[self.attention].has_scores and (scheme.acts_on_scores or self.window is not None):
            what = f"position_scheme {self.position_scheme!r}" if self.window is None else f"window {self.window}"
            raise ValueError(
                f"{what} acts on scores, which attention={self.attention!r} has not; expected learned positions."
            )
        scheme.check(self)

    @property
    def inner_width(self) -> int:
        """Inner width of the token-wise networks."""
        return 4 * self.d_model if self.d_ff is None else self.d_ff

    @property
    def key_width(self) -> int:
        """Width of a key in one head."""
        return self.d_model // self.num_heads if self.d_k is None else self.d_k

    @property
    def value_width(self) -> int:
        """Width of a value in one head."""
        return self.d_model // self.num_heads if self.d_v is None else self.d_v


def make_norm(config: StackConfig) -> Norm:
    """Make a norm of the kind that a configuration names."""
    if config.norm == "rms":
        return RMSNorm(config.d_model, eps=config.norm_eps)
    return LayerNorm(config.d_model, eps=config.norm_eps, use_bias=config.use_bias)


@checked
def make_block(
    config: StackConfig, *, cross_attention: bool = False, key: PRNGKeyArray
) -> Block | CrossBlock | ParallelBlock:
    """Make one block of a configuration, with cross-attention or without."""
    attention_key, cross_key, feed_forward_key = jax.random.split(key, 3)
    parts: dict[str, Any] = {
        "attention_norm": make_norm(config),
        "attention": _make_attention(config, _norm_of_heads(config), key=attention_key),
        "feed_forward_norm": make_norm(config),
        "feed_forward": _make_network(config, key=feed_forward_key),
        "norm_placement": config.norm_placement,
        "dropout_rate": config.dropout_rate,
    }
    if config.parallel and cross_attention:
        raise ValueError("parallel=True is for blocks that read no context; expected cross_attention=False.")
    if cross_attention:
        return CrossBlock(**parts, cross_norm=make_norm(config), cross_attention=_make_attention(config, key=cross_key))
    return (ParallelBlock if config.parallel else Block)(**parts)


def _make_attention(config: StackConfig, norm_of_heads: Callable = IDENTITY, *, key) -> MultiHeadAttention:
    """Make the attention of a block, with a norm of every query and every key."""
    sizes: dict[str, Any] = {name: getattr(config, name) for name in ("num_kv_heads", "d_k", "d_v", "use_bias")}
    norms: dict[str, Any] = {"query_norm": norm_of_heads, "key_norm": norm_of_heads}
    return MultiHeadAttention(
        config.d_model, config.num_heads, **sizes, kernel=KERNELS[config.attention], **norms, key=key
    )


def _norm_of_heads(config: StackConfig) -> Callable:
    """Make what normalises a query or a key, if anything does."""
    return RMSNorm(config.key_width, eps=config.norm_eps) if config.qk_norm else IDENTITY


def _make_network(config: StackConfig, *, key) -> FeedForward | SwiGLU:
    """Make the token-wise network of a block, with a gate if its activation has one."""
    sizes = config.d_model, config.inner_width
    if config.activation in GATES:
        return SwiGLU(*sizes, activation=GATES[config.activation], key=key)
    activation: Any = config.activation
    return FeedForward(*sizes, activation=activation, use_bias=config.use_bias, key=key)


def make_scheme(
    config: StackConfig,
    max_len: int,
    *,
    causal: bool,
    grid: tuple[int, int] | None = None,
    class_token: bool = False,
    key: PRNGKeyArray,
) -> PositionScheme:
    """Make the position scheme that a configuration names, for `max_len` positions; all else as for `Place`."""
    place = Place(max_len, causal, grid, class_token)
    return SCHEMES[config.position_scheme].made_for(config, place, key=key)
