"""The transformer block: attention and a token-wise network, each with its norm and its residual (chapter 04)."""

from collections.abc import Callable
from typing import Literal

import equinox as eqx
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from plainformer.attention.cache import KeyValueCache
from plainformer.attention.efficiency import MaskRule
from plainformer.attention.multi_head import MultiHeadAttention
from plainformer.blocks.layers import FeedForward, Norm, SwiGLU, dropout, split_key
from plainformer.checks import Rate, check_each, checked
from plainformer.positions.positions import NO_POSITIONS, PositionScheme

Rows = Float[Array, "*batch seq d_model"]
NormPlacement = Literal["pre", "post"]


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


class TransformerBlock(eqx.Module):
    r"""A transformer block: attention moves information between tokens, then a network works on each one alone.

    Implements `eq-blocks-block`; Vaswani et al. (2017), section 3.1, with `"post"`; Xiong et al. (2020), with `"pre"`.

    **Arguments** the block's parts, which `make_block` makes of a configuration: `attention`, `feed_forward` and their
    norms; `cross_attention` and its norm, to read a `context` between the two, or `None`; `norm_placement` and
    `dropout_rate`, as for `StackConfig`.

    **Example**: a block keeps the shape of what it reads, so that blocks can be stacked.

    >>> block = pf.make_block(pf.StackConfig(d_model=8, num_heads=2), key=jax.random.key(0))
    >>> block(jnp.ones((3, 8)), pf.causal_mask(3)).shape
    (3, 8)
    """

    attention_norm: Norm
    attention: MultiHeadAttention
    feed_forward_norm: Norm
    feed_forward: FeedForward | SwiGLU
    cross_norm: Norm | None = None
    cross_attention: MultiHeadAttention | None = None
    norm_placement: str = eqx.field(static=True, default="pre")
    dropout_rate: float = eqx.field(static=True, default=0.0)

    def __check_init__(self):
        names = ("attention_norm", "attention", "feed_forward_norm", "feed_forward")
        check_each(Callable, **{name: getattr(self, name) for name in names})
        check_each(NormPlacement, norm_placement=self.norm_placement)
        check_each(Rate, dropout_rate=self.dropout_rate)
        if (self.cross_attention is None) != (self.cross_norm is None):
            raise ValueError("cross_attention and cross_norm belong together; expected both of them, or neither.")

    @property
    def d_model(self) -> int:
        """Width of a token."""
        return self.attention.d_model

    @checked
    def connect(self, x: Rows, attend: Callable, read: Callable, key: PRNGKeyArray | None = None) -> Rows:
        """Send tokens through the sublayers, whichever way the two attentions, `attend` and `read`, are called."""
        add = pre_norm if self.norm_placement == "pre" else post_norm
        keys = split_key(key, 3)
        x = add(x, self.attention_norm, self._dropping(attend, keys[0]))
        if self.cross_norm is not None:
            x = add(x, self.cross_norm, self._dropping(read, keys[1]))
        return add(x, self.feed_forward_norm, self._dropping(self.feed_forward, keys[2]))

    def _dropping(self, sublayer: Callable, key) -> Callable:
        return lambda rows: dropout(sublayer(rows), self.dropout_rate, key=key)

    @checked
    def __call__(
        self,
        x: Float[Array, "*batch seq d_model"],
        mask: Bool[Array, "*#batch seq seq"] | MaskRule | None = None,
        *,
        context: Float[Array, "*batch kv_seq d_model"] | None = None,
        context_mask: Bool[Array, "*#batch seq kv_seq"] | MaskRule | None = None,
        scheme: PositionScheme = NO_POSITIONS,
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "*batch seq d_model"]:
        """Send tokens through the block.

        Masks are `True` where attending is allowed. A block with cross-attention needs a `context`. A position `scheme`
        (chapter 05) acts in the self-attention. With a random `key`, as in training, dropout is on.
        """
        self._check_context("context=, (kv_seq, d_model)", context, context_mask)

        def attend(rows):
            return self.attention(rows, mask, scheme=scheme)

        def read(rows):
            return self.cross_attention(rows, context_mask, context=context)  # type: ignore[misc]

        return self.connect(x, attend, read, key)

    @checked
    def extend(
        self,
        x: Float[Array, "*batch seq d_model"],
        cache: KeyValueCache,
        positions: Integer[Array, "*batch seq"],
        *,
        context: KeyValueCache | None = None,
        scheme: PositionScheme = NO_POSITIONS,
    ) -> tuple[Float[Array, "*batch seq d_model"], KeyValueCache]:
        """Send further tokens through the block, with a cache of what its self-attention knows of the earlier ones.

        Arguments as for `MultiHeadAttention.extend`; a block with cross-attention needs a `context`, too, which its
        `cross_attention.cache_context` made.
        """
        self._check_context("context=, as its cross_attention.cache_context makes it", context)

        def attend(rows):
            nonlocal cache
            rows, cache = self.attention.extend(rows, cache, positions, scheme=scheme)
            return rows

        def read(rows):
            return self.cross_attention.attend_cached(rows, context, positions)  # type: ignore[union-attr, arg-type]

        return self.connect(x, attend, read), cache

    @checked
    def attention_weights(
        self,
        x: Float[Array, "*batch seq d_model"],
        mask: Bool[Array, "*#batch seq seq"] | MaskRule | None = None,
        *,
        context: Float[Array, "*batch kv_seq d_model"] | None = None,
        context_mask: Bool[Array, "*#batch seq kv_seq"] | MaskRule | None = None,
        scheme: PositionScheme = NO_POSITIONS,
    ) -> tuple[Float[Array, "*batch heads seq seq"], Float[Array, "*batch heads seq kv_seq"] | None]:
        """Return the weights of the self-attention, and those of the cross-attention or `None`; as for a call."""
        self._check_context("context=, (kv_seq, d_model)", context, context_mask)
        found = []

        def looked_at(attention, rows, mask, **options):
            found.append(attention.attention_weights(rows, mask, **options))
            return attention(rows, mask, **options)

        def attend(rows):
            return looked_at(self.attention, rows, mask, scheme=scheme)

        def read(rows):
            return looked_at(self.cross_attention, rows, context_mask, context=context)

        self.connect(x, attend, read)
        return found[0], found[1] if len(found) > 1 else None

    def _check_context(self, expected: str, context, context_mask=None) -> None:
        if self.cross_attention is None and not (context is None and context_mask is None):
            raise ValueError("This block takes no context; make it with cross_attention=True.")
        if self.cross_attention is not None and context is None:
            raise ValueError(f"This block has cross-attention and needs a context: pass {expected}.")


class ParallelBlock(TransformerBlock):
    r"""A block whose attention and token-wise network work side by side, each on the token as it came in.

    Wang and Komatsuzaki (2021), GPT-J; Black et al. (2022), section 2.1. All else as in `TransformerBlock`, with
    pre-norm and without a context.
    """

    def __check_init__(self):
        if self.norm_placement != "pre" or self.cross_attention is not None:
            raise ValueError("Sublayers side by side are for norm_placement='pre' and blocks that read no context.")

    @checked
    def connect(self, x: Rows, attend: Callable, read: Callable, key: PRNGKeyArray | None = None) -> Rows:
        """Send tokens through both sublayers, and add what both return."""
        keys = split_key(key, 3)
        attended = self._dropping(attend, keys[0])(self.attention_norm(x))
        return x + attended + self._dropping(self.feed_forward, keys[2])(self.feed_forward_norm(x))
