"""The transformer block: attention and a token-wise network, each with its norm and its residual (chapter 04)."""

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
from plainformer.seeing import look, named, see

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


ADDS = {"pre": pre_norm, "post": post_norm, "output": output_norm}


class Wiring(eqx.Module):
    """What all blocks share: their parts, and how they are called; each kind of block says how its parts are wired."""

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
    def connect(self, x: Rows, attend: Callable, read: Any, key: PRNGKeyArray | None = None) -> Rows:
        """Send tokens through the sublayers: `attend` is the self-attention, `read` what `reader` returns."""

    @abc.abstractmethod
    def reader(self, context, context_mask=None, positions=None) -> Callable | None:
        """Return what reads a context, or `None`; raise `ValueError` for one that is missing or not wanted."""

    @property
    def d_model(self) -> int:
        """Width of a token."""
        return self.attention.d_model

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
        """Send tokens through the block.

        Masks are `True` where attending is allowed. A block with cross-attention needs a `context`. A position `scheme`
        (chapter 06) acts in the self-attention. With a random `key`, as in training, dropout is on.
        """

        def attend(rows):
            return self.attention(rows, mask, scheme=scheme)

        return self.connect(x, attend, self.reader(context, context_mask), key)

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

        Arguments as for `MultiHeadAttention.extend`; a block with cross-attention needs a `context`, too, which its
        `cross_attention.cache_context` made.
        """

        def attend(rows):
            nonlocal cache
            extend: Callable = self.attention.extend  # each with a cache of its own kind
            rows, cache = extend(rows, cache, positions, scheme=scheme)
            return rows

        return self.connect(x, attend, self.reader(context, positions=positions), None), cache

    def attention_weights(
        self, x, mask=None, **options
    ) -> tuple[Float[Array, "*batch heads seq seq"], Float[Array, "*batch heads seq kv_seq"] | None]:
        """Return the weights of the self-attention, and those of the cross-attention or `None`; as for a call."""
        seen = look(self, x, mask, **options)[1]
        return seen["attention.weights"], seen.get("cross_attention.weights")

    def add(self, x: Rows, norm: str, name: str, function: Callable, key: PRNGKeyArray | None) -> Rows:
        """Add to the tokens what the sublayer of this name makes of them, with its norm before or after, or both."""
        before, sublayer = named(norm, getattr(self, norm)), self.sublayer(name, function, key)
        if self.norm_placement != "sandwich":
            return ADDS[self.norm_placement](x, before, sublayer)
        after = f"{name}_output_norm"
        return sandwich_norm(x, before, named(after, getattr(self, after)), sublayer)

    def sublayer(self, name: str, function: Callable, key: PRNGKeyArray | None) -> Callable[[Rows], Rows]:
        """Return the sublayer of this name, with dropout behind it, which is on if there is a key."""

        def call(rows):
            out = named(name, function)(rows)
            if getattr(out, "shape", None) != rows.shape:
                what = getattr(out, "shape", type(out).__name__)
                raise ValueError(
                    f"{name} returned {what} for rows of shape {rows.shape}; expected as many of one width."
                )
            return dropout(out, self.dropout_rate, key=key)

        return call

    def __check_init__(self):
        names = ("attention_norm", "attention", "feed_forward_norm", "feed_forward")
        check_each(Callable, **{name: getattr(self, name) for name in names})
        check_each(NormPlacement, norm_placement=self.norm_placement)
        after = [name for name in vars(self) if name.endswith("_output_norm")]
        present = [name for name in after if getattr(self, name) is not None]
        if present != (after if self.norm_placement == "sandwich" else []):
            raise ValueError(
                f"norm_placement is {self.norm_placement!r}, with {' and '.join(present) or 'no norm'} of what leaves "
                "the sublayers; expected one for each of them with 'sandwich', and none else."
            )
        check_each(Rate, dropout_rate=self.dropout_rate)


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
    def connect(self, x: Rows, attend: Callable, read: Any, key: PRNGKeyArray | None = None) -> Rows:
        """Send tokens through attention, then through the network."""
        keys = split_key(key, 3)
        x = see("after_attention", self.add(x, "attention_norm", "attention", attend, keys[0]))
        return self.add(x, "feed_forward_norm", "feed_forward", self.feed_forward, keys[2])

    def reader(self, context, context_mask=None, positions=None) -> None:
        """Raise `ValueError` if there is a context."""
        _refuse_context(context, context_mask)


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
    def connect(self, x: Rows, attend: Callable, read: Any, key: PRNGKeyArray | None = None) -> Rows:
        """Send tokens through attention, cross-attention and the network."""
        keys = split_key(key, 3)
        x = see("after_attention", self.add(x, "attention_norm", "attention", attend, keys[0]))
        x = see("after_cross_attention", self.add(x, "cross_norm", "cross_attention", read, keys[1]))
        return self.add(x, "feed_forward_norm", "feed_forward", self.feed_forward, keys[2])

    def reader(self, context, context_mask=None, positions=None) -> Callable:
        """Return what reads the context: its rows, or a cache of their keys and values."""
        if context is None:
            rows = "(kv_seq, d_model)" if positions is None else "as its cross_attention.cache_context makes it"
            raise ValueError(f"This block has cross-attention and needs a context: pass context=, {rows}.")
        if positions is not None:
            return lambda rows: self.cross_attention.attend_cached(rows, context, positions)
        return lambda rows: self.cross_attention(rows, context_mask, context=context)


class ParallelBlock(Wiring):
    r"""A block whose attention and token-wise network work side by side, each on the token as it came in.

    Wang and Komatsuzaki (2021), GPT-J; Black et al. (2022), section 2.1. All else as in `Block`, with pre-norm.
    """

    def __check_init__(self):
        if self.norm_placement != "pre":
            raise ValueError("Sublayers side by side are for norm_placement='pre'.")

    @checked
    def connect(self, x: Rows, attend: Callable, read: Any, key: PRNGKeyArray | None = None) -> Rows:
        """Send tokens through both sublayers, and add what both return."""
        keys = split_key(key, 3)
        attended = self.sublayer("attention", attend, keys[0])(named("attention_norm", self.attention_norm)(x))
        rows = named("feed_forward_norm", self.feed_forward_norm)(x)
        return x + attended + self.sublayer("feed_forward", self.feed_forward, keys[2])(rows)

    def reader(self, context, context_mask=None, positions=None) -> None:
        """Raise `ValueError` if there is a context."""
        _refuse_context(context, context_mask)


def _refuse_context(context, context_mask) -> None:
    if not (context is None and context_mask is None):
        raise ValueError("This block takes no context; make it with cross_attention=True.")
