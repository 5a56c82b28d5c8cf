"""What makes a stack of blocks what it is, and its parts made of that (chapters from the decoder to vision)."""

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from plainformer.attention.delta import GatedDeltaNet
from plainformer.attention.efficiency import Blockwise
from plainformer.attention.kernels import SOFTMAX, AttentionKernel
from plainformer.attention.latent import LatentAttention, LatentConfig, check_latent
from plainformer.attention.linear import LinearKernel
from plainformer.attention.multi_head import IDENTITY, AcrossHeads, MultiHeadAttention, check_groups, check_width
from plainformer.blocks.blocks import Block, CrossBlock, NormPlacement, ParallelBlock
from plainformer.blocks.experts import Experts, ExpertsConfig
from plainformer.blocks.layers import Activation, FeedForward, LayerNorm, Norm, RMSNorm, SwiGLU
from plainformer.checks import NonNegative, Positive, PositiveFloat, Rate, check_fields, checked, says_where
from plainformer.positions.positions import Place, PositionScheme
from plainformer.positions.rotary import Fraction, RotaryPositions
from plainformer.positions.schemes import SCHEMES, SchemeName
from plainformer.positions.slower import Scaling, check_scaling

KernelName = Literal["direct", "blockwise", "linear"]
KERNELS: dict[KernelName, AttentionKernel] = {"direct": SOFTMAX, "blockwise": Blockwise(), "linear": LinearKernel()}
# The networks with a gate, and the activation of each one's gate.
GATES: dict[str, Activation] = {"swiglu": "silu", "geglu": "gelu", "geglu_tanh": "gelu_tanh"}
Network = Literal[Activation, "swiglu", "geglu", "geglu_tanh"]
# What a block's tokens attend to: to near ones, or to all; or a state in place of attention.
BlockKind = Literal["window", "full", "delta"]


@says_where
@dataclasses.dataclass(frozen=True, kw_only=True)
class StackConfig:
    r"""All that makes a stack of transformer blocks what it is, but for its learned numbers.

    Args:
        d_model, num_layers, num_heads: width of a token; number of blocks; attention heads in each.
        num_kv_heads: heads for keys and values, a divisor of `num_heads`; `None` for as many.
        d_k, d_v: width of a key and of a value in one head; `None` for `d_model / num_heads`.
        d_ff: inner width of the token-wise networks; `None` for `4 * d_model`.
        attention: how attention is computed: `"direct"`, or with the same result `"blockwise"`, which
            takes less memory and, at some thousand tokens, less time; `"linear"`, which is another model, and goes with
            neither a window nor positions that change scores.
        norm_eps: what a norm adds to the variance.
        norm_placement: `"pre"` normalises what enters a sublayer, `"post"` what leaves the sum, `"output"` what the
            sublayer returns, as in OLMo 2, and `"sandwich"` both what enters it and what it returns, as in Gemma 3.
        parallel: whether attention and network of a block work side by side, as in `ParallelBlock`.
        qk_norm: whether queries and keys are normalised by `RMSNorm` in every head of a self-attention.
        qk_norm_over: with `qk_norm`, `"head"` for each head alone, as in Qwen3, or `"row"` for all heads together, as
            in OLMo 2.
        sinks: whether every head of a self-attention has a learned logit to which a part of its attention may go,
            as in `pf.attention.softmax_with_sink` (chapter on modern models).
        activation: of the token-wise networks, as for `FeedForward`; or for those with a gate and no bias `"swiglu"`,
            `"geglu"` with the exact gelu, `"geglu_tanh"` with its approximation.
        experts: many token-wise networks in place of one, of which few work on each token; `None` for one.
        position_scheme: of the chapter on positions; `"sinusoidal_2d"` is for images (chapter on vision).
        rope_theta: the base of rotary positions.
        rotary_fraction: which part of a key's columns rotary positions turn.
        rope_scaling: how much slower pairs of columns turn, for longer texts (chapter on serving), such as
            `pf.positions.YarnScaling(factor=4.0)`; with rotary positions only.
        num_buckets, max_distance: of relative positions, as for `relative_buckets`.
        window: with 3, a token sees itself and two neighbours on each side, in a decoder the two before it; `None` for
            all. All keys are kept nevertheless, and all scores are computed, unless `attention` is `"blockwise"`.
        pattern: the kind of each block, repeated through the stack: with `("window", "full")` every other
            block has the `window`, and the others none; in a decoder, `"delta"` is a block with `GatedDeltaNet` in
            place of attention, with `num_heads` heads and no positions; `None` for blocks that are all alike.
        latent: the widths of short vectors, one per token, of which the keys and values of all heads of a
            self-attention are made; goes with neither `num_kv_heads`, `qk_norm` nor linear attention, and
            needs rotary positions to turn all of the columns that heads share. `None` for keys and values of their own.
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
    qk_norm_over: Literal["head", "row"] = "head"
    sinks: bool = False
    activation: Network = "gelu"
    experts: ExpertsConfig | None = None
    position_scheme: SchemeName = "learned"
    rope_theta: PositiveFloat = 10_000.0
    rotary_fraction: Fraction = 1.0
    rope_scaling: Scaling | None = None
    num_buckets: Positive = 32
    max_distance: Positive = 128
    window: Positive | None = None
    pattern: tuple[BlockKind, ...] | None = None
    latent: LatentConfig | None = None
    dropout_rate: Rate = 0.0
    use_bias: bool = True

    def __post_init__(self):
        check_fields(self)
        check_scaling(self.rope_scaling, "rope_scaling")
        if self.d_k is None or self.d_v is None:
            check_width(self.d_model, self.num_heads)
        check_groups(self.num_heads, self.num_kv_heads)
        if self.parallel and self.norm_placement != "pre":
            raise ValueError(
                f"norm_placement is {self.norm_placement!r}; expected 'pre' for parallel=True, sublayers side by side."
            )
        if self.qk_norm_over == "row" and not self.qk_norm:
            raise ValueError("qk_norm_over is 'row', and there is no such norm; expected qk_norm=True, too.")
        if self.experts is not None and self.experts.dense_layers >= self.num_layers:
            raise ValueError(
                f"dense_layers is {self.experts.dense_layers}; expected fewer than num_layers={self.num_layers}, or "
                "experts=None."
            )
        scheme = SCHEMES[self.position_scheme]
        if not KERNELS[self.attention].has_scores and (scheme.acts_on_scores or self.window is not None):
            what = f"position_scheme {self.position_scheme!r}" if self.window is None else f"window {self.window}"
            raise ValueError(
                f"{what} acts on scores, which attention={self.attention!r} has not; expected learned positions."
            )
        if self.latent is not None:
            self._check_latent(self.latent)
        if self.sinks and not KERNELS[self.attention].has_scores:
            raise ValueError(
                f"sinks stand beside scores, which attention={self.attention!r} has not; expected 'direct'."
            )
        scheme.check(self)
        if self.pattern is not None:
            object.__setattr__(self, "pattern", _check_pattern(self.pattern, self.window))
        self._check_acting(scheme)

    @property
    def kinds(self) -> tuple[BlockKind, ...]:
        """The kind of each block, from the first to the last."""
        alike: BlockKind = "full" if self.window is None else "window"
        return tuple(itertools.islice(itertools.cycle(self.pattern or (alike,)), self.num_layers))

    def _check_acting(self, scheme: type[PositionScheme]) -> None:
        """Raise `ValueError` for what would change nothing: turns that nobody makes, parts of attention without it."""
        if self.rope_scaling is not None and not issubclass(scheme, RotaryPositions):
            raise ValueError(
                f"rope_scaling is given, and position_scheme {self.position_scheme!r} turns nothing; expected "
                "'rotary', or rope_scaling=None."
            )
        if {*self.kinds} == {"delta"}:
            for name, expected in {"sinks": False, "latent": None, "qk_norm": False, "rope_scaling": None}.items():
                if getattr(self, name) != expected:
                    raise ValueError(
                        f"{name} is given, and all {self.num_layers} blocks are 'delta', without attention; expected "
                        f"{name}={expected}, or a pattern with another kind of block, too."
                    )

    def _check_latent(self, latent: LatentConfig) -> None:
        """Raise `ValueError` for what keys and values of a short vector do not go with."""
        check_latent(latent, self.key_width, KERNELS[self.attention])
        given = {"num_kv_heads": None, "qk_norm": False, "sinks": False, "rotary_fraction": 1.0}
        for name, expected in given.items():
            if getattr(self, name) != expected:
                raise ValueError(
                    f"{name} is {getattr(self, name)}; expected {expected} with latent, where all heads share a short "
                    "vector, which has a norm of its own, and latent.rotary_width says which columns turn."
                )

    @property
    def turned_width(self) -> int:
        """How many columns of a key a position scheme may turn."""
        return self.key_width if self.latent is None else self.latent.rotary_width

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


def _check_pattern(pattern, window: int | None) -> tuple[BlockKind, ...]:
    """A pattern as a tuple, which it no longer is when it comes from a file; raise unless it names kinds of blocks."""
    if not isinstance(pattern, tuple | list):
        raise TypeError(f"pattern is {pattern!r}; expected a tuple of kinds of blocks, such as ('window', 'full').")
    kinds = get_args(BlockKind)
    if not pattern or not all(kind in kinds for kind in pattern):
        raise ValueError(
            f"pattern is {pattern!r}; expected kinds of blocks, each one of {', '.join(map(repr, kinds))}."
        )
    if ("window" in pattern) != (window is not None):
        expected = "expected a window if a block of the pattern has it, and None otherwise."
        raise ValueError(f"pattern is {pattern!r} and window is {window}; {expected}")
    return tuple(pattern)


def of_layer(config: StackConfig, layer: int) -> StackConfig:
    """The configuration that block `layer` is made of: the first may have one network, and later ones experts."""
    dense = config.experts is not None and layer < config.experts.dense_layers
    return dataclasses.replace(config, experts=None) if dense else config


def make_norm(config: StackConfig) -> Norm:
    """Make a norm of the kind that a configuration names."""
    if config.norm == "rms":
        return RMSNorm(config.d_model, eps=config.norm_eps)
    return LayerNorm(config.d_model, eps=config.norm_eps, use_bias=config.use_bias)


@checked
def make_block(
    config: StackConfig, *, kind: BlockKind = "full", cross_attention: bool = False, key: PRNGKeyArray
) -> Block | CrossBlock | ParallelBlock:
    """Make one block of a configuration, of this kind of its pattern, with cross-attention or without."""
    attention_key, cross_key, feed_forward_key = jax.random.split(key, 3)
    parts: dict[str, Any] = {
        "attention_norm": make_norm(config),
        "attention": _make_mixer(config, kind, key=attention_key),
        "feed_forward_norm": make_norm(config),
        "feed_forward": _make_network(config, key=feed_forward_key),
        "norm_placement": config.norm_placement,
        "dropout_rate": config.dropout_rate,
    }
    if config.norm_placement == "sandwich":
        parts |= {"attention_output_norm": make_norm(config), "feed_forward_output_norm": make_norm(config)}
    if config.parallel and cross_attention:
        raise ValueError("parallel=True is for blocks that read no context; expected cross_attention=False.")
    if cross_attention:
        after = make_norm(config) if config.norm_placement == "sandwich" else None
        parts |= {"cross_attention": _make_attention(config, key=cross_key), "cross_attention_output_norm": after}
        return CrossBlock(**parts, cross_norm=make_norm(config))
    return (ParallelBlock if config.parallel else Block)(**parts)


def _make_mixer(config: StackConfig, kind: BlockKind, *, key) -> MultiHeadAttention | LatentAttention | GatedDeltaNet:
    """Make what moves information between the tokens of a block: attention, or a state that is corrected."""
    if kind != "delta":
        return _make_self_attention(config, key=key)
    d_k, d_v, norm = config.key_width, config.value_width, RMSNorm(config.value_width, eps=config.norm_eps)
    return GatedDeltaNet(config.d_model, config.num_heads, d_k=d_k, d_v=d_v, norm=norm, key=key)


def _make_self_attention(config: StackConfig, *, key) -> MultiHeadAttention | LatentAttention:
    """Make the self-attention of a block, with keys and values of their own or of a short vector."""
    latent = config.latent
    if latent is None:
        return _make_attention(config, _norm_of_heads, _kernel_with_sinks(config), key=key)
    return LatentAttention(
        config.d_model,
        config.num_heads,
        latent=latent,
        d_k=config.key_width,
        d_v=config.value_width,
        use_bias=config.use_bias,
        kernel=KERNELS[config.attention],
        latent_norm=RMSNorm(latent.width, eps=config.norm_eps),
        query_norm=IDENTITY if latent.query_width is None else RMSNorm(latent.query_width, eps=config.norm_eps),
        key=key,
    )


def _make_attention(
    config: StackConfig, norm_of: Callable | None = None, kernel: AttentionKernel | None = None, *, key
) -> MultiHeadAttention:
    """Make the attention of a block; `norm_of` makes the norm of so many heads of queries or keys."""
    sizes: dict[str, Any] = {name: getattr(config, name) for name in ("num_kv_heads", "d_k", "d_v", "use_bias")}
    norms: dict[str, Any] = {}
    if norm_of is not None:
        norms["query_norm"] = norm_of(config, config.num_heads)
        norms["key_norm"] = norm_of(config, config.num_kv_heads or config.num_heads)
    kernel = KERNELS[config.attention] if kernel is None else kernel
    return MultiHeadAttention(config.d_model, config.num_heads, **sizes, kernel=kernel, **norms, key=key)


def _kernel_with_sinks(config: StackConfig) -> AttentionKernel:
    """Make what computes a self-attention, with a sink for each head if the configuration has any."""
    kernel: Any = KERNELS[config.attention]
    return dataclasses.replace(kernel, sinks=jnp.zeros(config.num_heads)) if config.sinks else kernel


def _norm_of_heads(config: StackConfig, num_heads: int) -> Callable:
    """Make what normalises the queries or keys of so many heads, if anything does."""
    if not config.qk_norm:
        return IDENTITY
    if config.qk_norm_over == "row":
        return AcrossHeads(RMSNorm(num_heads * config.key_width, eps=config.norm_eps))
    return RMSNorm(config.key_width, eps=config.norm_eps)


def _make_network(config: StackConfig, *, key) -> FeedForward | SwiGLU | Experts:
    """Make the token-wise network of a block, with a gate if its activation has one, or the experts in its place."""

    def network(width, *, key):
        if config.activation in GATES:
            return SwiGLU(config.d_model, width, activation=GATES[config.activation], key=key)
        activation: Any = config.activation
        return FeedForward(config.d_model, width, activation=activation, use_bias=config.use_bias, key=key)

    if config.experts is None:
        return network(config.inner_width, key=key)
    return Experts(config.d_model, config.experts, network, use_bias=config.use_bias, key=key)


def make_scheme(
    config: StackConfig,
    max_len: int,
    *,
    causal: bool,
    grid: tuple[int, int] | None = None,
    class_token: bool = False,
    key: PRNGKeyArray,
) -> PositionScheme:
    """Make the position scheme that a configuration names, for `max_len` positions; all else as for `Place`.

    Raises `ValueError` if tokens see later ones and a block keeps a state, which is read from left to right.
    """
    if "delta" in config.kinds and not causal:
        raise ValueError(
            "pattern has 'delta', for which later tokens are hidden; expected it in a decoder's stack only."
        )
    place = Place(max_len, causal, grid, class_token)
    return SCHEMES[config.position_scheme].made_for(config, place, key=key)
