"""The transformer block: attention and a token-wise network, each with its norm and its residual."""

import abc
from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from plainformer.attention.delta import CachePart, GatedDeltaNet
from plainformer.attention.kernels import KeyValueCache
from plainformer.attention.latent import LatentAttention
from plainformer.attention.mask import Mask
from plainformer.attention.multi_head import MultiHeadAttention
from plainformer.blocks.experts import Experts
from plainformer.blocks.layers import FeedForward, Norm, SwiGLU, dropout, split_key
from plainformer.checks import Rate, check_each, checked
from plainformer.positions.positions import NO_POSITIONS, PositionScheme
from plainformer.seeing import look, named, see, within

Rows = Float[Array, "*batch seq d_model"]
NormPlacement = Literal["pre", "post", "output", "sandwich"]


@checked
def pre_norm(x: Rows, norm: Callable[[Rows], Rows], sublayer: Callable[[Rows], Rows]) -> Rows:
    r"""Add to each token what a sublayer makes of its normalised form; the token itself passes untouched.

    Implements `eq-blocks-pre-norm`; Xiong et al. (2020), table 1; He et al. (2016) for the sum.
    """
    return x + sublayer(norm(x))


@checked
def post_norm(x: Rows, norm: Callable[[Rows], Rows], sublayer: Callable[[Rows], Rows]) -> Rows:
    r"""Add to each token what a sublayer makes of it, and normalise the sum.

    Implements `eq-blocks-post-norm`; Vaswani et al. (2017), section 3.1.
    """
    return norm(x + sublayer(x))


@checked
def output_norm(x: Rows, norm: Callable[[Rows], Rows], sublayer: Callable[[Rows], Rows]) -> Rows:
    r"""Add to each token the normalised form of what a sublayer makes of it.

    Implements `eq-modern-output-norm`; OLMo et al. (2024), who call it the reordered norm.
    """
    return x + norm(sublayer(x))


@checked
def sandwich_norm(
    x: Rows, norm: Callable[[Rows], Rows], after: Callable[[Rows], Rows], sublayer: Callable[[Rows], Rows]
) -> Rows:
    r"""Normalise what enters a sublayer, and by a norm of its own what leaves it, before it is added.

    Implements `eq-modern-sandwich-norm`; Gemma Team (2025), section 2, "pre-norm and post-norm"; Ding et al. (2021)
    for the name.
    """
    return x + after(sublayer(norm(x)))


# The norm of each sublayer, by the sublayer's name.
NORMS = {"attention": "attention_norm", "cross_attention": "cross_norm", "feed_forward": "feed_forward_norm"}


class Wiring(eqx.Module):
    """What all blocks share: their parts, and where the norms act; each kind of block says how its parts are wired."""

    attention_norm: Norm
    attention: MultiHeadAttention | LatentAttention | GatedDeltaNet
    feed_forward_norm: Norm
    feed_forward: FeedForward | SwiGLU | Experts
    norm_placement: str = eqx.field(static=True, default="pre")
    dropout_rate: float = eqx.field(static=True, default=0.0)
    # With norms on both sides, those of what leaves the sublayers.
    attention_output_norm: Norm | None = None
    feed_forward_output_norm: Norm | None = None

    @abc.abstractmethod
    def __call__(self, *args: Any, **options: Any) -> Any:
        """Send tokens through the block."""

    @abc.abstractmethod
    def extend(self, *args: Any, **options: Any) -> Any:
        """Send further tokens through the block, with a cache of the earlier ones."""

    @property
    def d_model(self) -> int:
        """Width of a token."""
        return self.attention.d_model

    def _enter(self, x: Rows, name: str) -> Rows:
        """Return what a sublayer reads: the tokens, normalised if the norm stands before it."""
        if self.norm_placement not in ("pre", "sandwich"):
            return x
        return named(NORMS[name], getattr(self, NORMS[name]))(x)

    def _add(self, x: Rows, name: str, out: Rows, key: PRNGKeyArray | None = None) -> Rows:
        """Add to the tokens what a sublayer made of them, normalised if a norm stands behind it or behind the sum."""
        out = self._dropped(x, name, out, key)
        if self.norm_placement == "pre":
            return x + out
        after = f"{name}_output_norm" if self.norm_placement == "sandwich" else NORMS[name]
        norm = named(after, getattr(self, after))
        return norm(x + out) if self.norm_placement == "post" else x + norm(out)

    def _dropped(self, x: Rows, name: str, out: Rows, key: PRNGKeyArray | None) -> Rows:
        """Return what a sublayer made, with dropout; raise `ValueError` if it cannot be added to the tokens."""
        if getattr(out, "shape", None) != x.shape:
            what = getattr(out, "shape", type(out).__name__)
            raise ValueError(f"{name} returned {what} for rows of shape {x.shape}; expected as many of one width.")
        return dropout(out, self.dropout_rate, key=key)

    def _add_network(self, x: Rows, key: PRNGKeyArray | None = None) -> Rows:
        """Add to each token what the network makes of it alone."""
        made = named("feed_forward", self.feed_forward)(self._enter(x, "feed_forward"))
        return self._add(x, "feed_forward", made, key)

    def attention_weights(
        self, x, mask=None, **options
    ) -> tuple[Float[Array, "*batch heads seq seq"], Float[Array, "*batch heads seq kv_seq"] | None]:
        """Return the weights of the self-attention, and those of the cross-attention or `None`; as for a call."""
        seen = look(self, x, mask, **options)[1]
        return seen["attention.weights"], seen.get("cross_attention.weights")

    def __check_init__(self):
        names = ("attention_norm", "attention", "feed_forward_norm", "feed_forward")
        check_each(Callable, **{name: getattr(self, name) for name in names})
        check_each(NormPlacement, norm_placement=self.norm_placement)
        check_each(Rate, dropout_rate=self.dropout_rate)
        after = [name for name in vars(self) if name.endswith("_output_norm")]
        present = [name for name in after if getattr(self, name) is not None]
        if present != (after if self.norm_placement == "sandwich" else []):
            raise ValueError(
                f"norm_placement is {self.norm_placement!r}, with {' and '.join(present) or 'no norm'} of what leaves "
                "the sublayers; expected one for each of them with 'sandwich', and none else."
            )


class Block(Wiring):
    r"""A transformer block: attention moves information between tokens, then a network works on each one alone.

    Implements `eq-blocks-block`; Vaswani et al. (2017), section 3.1, with `"post"`; Xiong et al. (2020), with `"pre"`.

    Args:
        attention_norm, attention, feed_forward_norm, feed_forward: the block's parts, two sublayers and their norms,
            which `make_block` makes of a configuration.
        norm_placement, dropout_rate: as for `StackConfig`.

    Example:
        A block keeps the shape of what it reads, so that blocks can be stacked.

        >>> block = pf.make_block(pf.StackConfig(d_model=8, num_heads=2), key=jax.random.key(0))
        >>> block(jnp.ones((3, 8)), pf.causal_mask(3)).shape
        (3, 8)
    """

    @checked
    def __call__(
        self,
        x: Float[Array, "*batch seq d_model"],
        mask: Bool[Array, "*#batch seq seq"] | Mask | None = None,
        *,
        context: Array | None = None,
        context_mask: Array | None = None,
        scheme: PositionScheme = NO_POSITIONS,
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "*batch seq d_model"]:
        """Send tokens through the block.

        A mask is `True` where attending is allowed. A position `scheme` acts in the self-attention. With a
        random `key`, as in training, dropout is on.
        """
        _refuse_context(context, context_mask)
        attention_key, _, network_key = split_key(key, 3)
        attended = named("attention", self.attention)(self._enter(x, "attention"), mask, scheme=scheme)
        x = see("after_attention", self._add(x, "attention", attended, attention_key))
        return self._add_network(x, network_key)

    @checked
    def extend(
        self,
        x: Float[Array, "*batch seq d_model"],
        cache: CachePart,
        positions: Integer[Array, "*batch seq"],
        *,
        context: KeyValueCache | None = None,
        scheme: PositionScheme = NO_POSITIONS,
    ) -> tuple[Float[Array, "*batch seq d_model"], CachePart]:
        """Send further tokens through the block, with a cache of what its self-attention knows of the earlier ones.

        Arguments as for `MultiHeadAttention.extend`.
        """
        _refuse_context(context, None)
        attended, cache = _extended(self, x, cache, positions, scheme)
        return self._add_network(see("after_attention", self._add(x, "attention", attended))), cache


class CrossBlock(Wiring):
    r"""A block that reads a `context` between its self-attention and its network, by cross-attention.

    Vaswani et al. (2017), section 3.1. All else as in `Block`.
    """

    cross_norm: Norm = eqx.field(kw_only=True)
    cross_attention: MultiHeadAttention = eqx.field(kw_only=True)
    cross_attention_output_norm: Norm | None = eqx.field(kw_only=True, default=None)

    def __check_init__(self):
        check_each(Callable, cross_norm=self.cross_norm, cross_attention=self.cross_attention)

    @checked
    def __call__(
        self,
        x: Float[Array, "*batch seq d_model"],
        mask: Bool[Array, "*#batch seq seq"] | Mask | None = None,
        *,
        context: Float[Array, "*batch kv_seq d_model"] | None = None,
        context_mask: Bool[Array, "*#batch seq kv_seq"] | Mask | None = None,
        scheme: PositionScheme = NO_POSITIONS,
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "*batch seq d_model"]:
        """Send tokens through the block, which needs a `context`; all else as for `Block`."""
        _need_context(context, "(kv_seq, d_model)")
        attention_key, cross_key, network_key = split_key(key, 3)
        attended = named("attention", self.attention)(self._enter(x, "attention"), mask, scheme=scheme)
        x = see("after_attention", self._add(x, "attention", attended, attention_key))
        rows = self._enter(x, "cross_attention")
        read = named("cross_attention", self.cross_attention)(rows, context_mask, context=context)
        x = see("after_cross_attention", self._add(x, "cross_attention", read, cross_key))
        return self._add_network(x, network_key)

    @checked
    def extend(
        self,
        x: Float[Array, "*batch seq d_model"],
        cache: CachePart,
        positions: Integer[Array, "*batch seq"],
        *,
        context: KeyValueCache | None = None,
        scheme: PositionScheme = NO_POSITIONS,
    ) -> tuple[Float[Array, "*batch seq d_model"], CachePart]:
        """Send further tokens through the block, as for `Block`, with a `context` that `cache_context` has made."""
        _need_context(context, "as its cross_attention.cache_context makes it")
        attended, cache = _extended(self, x, cache, positions, scheme)
        x = see("after_attention", self._add(x, "attention", attended))
        rows = self._enter(x, "cross_attention")
        read = named("cross_attention", self.cross_attention.attend_cached)(rows, context, positions)
        x = see("after_cross_attention", self._add(x, "cross_attention", read))
        return self._add_network(x), cache


class ParallelBlock(Wiring):
    r"""A block whose attention and token-wise network work side by side, each on the token as it came in.

    Wang and Komatsuzaki (2021), GPT-J; Black et al. (2022), section 2.1. All else as in `Block`, with pre-norm.
    """

    def __check_init__(self):
        if self.norm_placement != "pre":
            raise ValueError("Sublayers side by side are for norm_placement='pre'.")

    @checked
    def __call__(
        self,
        x: Float[Array, "*batch seq d_model"],
        mask: Bool[Array, "*#batch seq seq"] | Mask | None = None,
        *,
        context: Array | None = None,
        context_mask: Array | None = None,
        scheme: PositionScheme = NO_POSITIONS,
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "*batch seq d_model"]:
        """Send tokens through both sublayers, and add what both return; as for `Block`."""
        _refuse_context(context, context_mask)
        attention_key, _, network_key = split_key(key, 3)
        attended = named("attention", self.attention)(self._enter(x, "attention"), mask, scheme=scheme)
        made = named("feed_forward", self.feed_forward)(self._enter(x, "feed_forward"))
        return self._add(self._add(x, "attention", attended, attention_key), "feed_forward", made, network_key)

    @checked
    def extend(
        self,
        x: Float[Array, "*batch seq d_model"],
        cache: CachePart,
        positions: Integer[Array, "*batch seq"],
        *,
        context: KeyValueCache | None = None,
        scheme: PositionScheme = NO_POSITIONS,
    ) -> tuple[Float[Array, "*batch seq d_model"], CachePart]:
        """Send further tokens through both sublayers; as for `Block`."""
        _refuse_context(context, None)
        attended, cache = _extended(self, x, cache, positions, scheme)
        made = named("feed_forward", self.feed_forward)(self._enter(x, "feed_forward"))
        return self._add(self._add(x, "attention", attended), "feed_forward", made), cache


def _extended(block: Wiring, x: Rows, cache: CachePart, positions, scheme: PositionScheme) -> tuple[Rows, CachePart]:
    """What the self-attention of a block makes of further tokens, and the longer cache, each of its own kind."""
    extend: Callable = within("attention", block.attention.extend)
    attended, cache = extend(block._enter(x, "attention"), cache, positions, scheme=scheme)
    return see("attention.output", attended), cache


def _need_context(context, kind: str) -> None:
    if context is None:
        raise ValueError(f"This block has cross-attention and needs a context: pass context=, {kind}.")


def _refuse_context(context, context_mask) -> None:
    if not (context is None and context_mask is None):
        raise ValueError("This block takes no context; make it with cross_attention=True.")
