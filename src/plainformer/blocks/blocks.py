"""The transformer block: attention and a token-wise network, each with its norm and its residual (chapter 04)."""

from collections.abc import Callable

import equinox as eqx
import jax
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from plainformer.attention.cache import KeyValueCache
from plainformer.attention.multi_head import MultiHeadAttention
from plainformer.blocks.layers import ACTIVATIONS, FeedForward, LayerNorm, RMSNorm, SwiGLU, dropout
from plainformer.checks import check_axes, check_choice, check_flags, check_fraction, check_mask, check_positive
from plainformer.positions.relative import POSITIONS

PLACEMENTS, NORMS = ("pre", "post"), ("layer", "rms")
BLOCK_ACTIVATIONS = (*ACTIVATIONS, "swiglu")
Rows = Float[Array, "rows d_model"]


def pre_norm(x: Rows, norm: Callable[[Rows], Rows], sublayer: Callable[[Rows], Rows]) -> Rows:
    r"""Add to each token what a sublayer makes of its normalised form; the token itself passes untouched.

    Implements `eq-blocks-pre-norm`; Xiong et al. (2020), table 1; He et al. (2016) for the sum.

    **Arguments**

    - `x`: one vector per token, `(seq, d_model)`.
    - `norm`, `sublayer`: functions from `(seq, d_model)` to `(seq, d_model)`.

    **Returns** one vector per token, `(seq, d_model)`.
    """
    return x + sublayer(norm(x))


def post_norm(x: Rows, norm: Callable[[Rows], Rows], sublayer: Callable[[Rows], Rows]) -> Rows:
    r"""Add to each token what a sublayer makes of it, and normalise the sum.

    Implements `eq-blocks-post-norm`; Vaswani et al. (2017), section 3.1.

    **Arguments** and **Returns** as for `pre_norm`.
    """
    return norm(x + sublayer(x))


class TransformerBlock(eqx.Module):
    r"""A transformer block: attention moves information between tokens, then a network works on each one alone.

    Implements `eq-blocks-block`; Vaswani et al. (2017), section 3.1, with `"post"`; Xiong et al. (2020), with `"pre"`.

    **Arguments**

    - `d_model`, `num_heads`: width of a token; number of attention heads.
    - `d_ff`: inner width of the token-wise network; `None` for `4 * d_model`.
    - `placement`: `"pre"` normalises what enters a sublayer, `"post"` what leaves the sum.
    - `norm`: `"layer"` or `"rms"`.
    - `activation`: one of `FeedForward`'s, or `"swiglu"` for a `SwiGLU` network (which has no bias).
    - `num_kv_heads`: fewer heads for keys and values, a divisor of `num_heads`; `None` for as many.
    - `cross_attention`: whether a second attention reads a `context` between the two.
    - `dropout_rate`: the probability with which an entry of a sublayer's output is dropped while training.
    - `use_bias`: whether linear maps and layer norms have a bias.
    - `key`: random key for all weights.

    **Attributes** `attention`, `cross_attention`, `feed_forward`, and the norms `attention_norm`, `cross_norm` and
    `feed_forward_norm`; `cross_attention` and `cross_norm` are `None` if not asked for.

    **Raises** `ValueError` if a size, `placement`, `norm`, `activation` or `dropout_rate` is not one of the above, or
    if the heads do not divide what they share; `TypeError` if a size or `dropout_rate` is no such number.

    **Differs from the paper** in the biases, which attention, too, has if `use_bias`, as in PyTorch; and in the default
    activation, where the paper has `"relu"`.
    """

    attention: MultiHeadAttention
    cross_attention: MultiHeadAttention | None
    feed_forward: FeedForward | SwiGLU
    attention_norm: LayerNorm | RMSNorm
    cross_norm: LayerNorm | RMSNorm | None
    feed_forward_norm: LayerNorm | RMSNorm
    placement: str = eqx.field(static=True)
    dropout_rate: float = eqx.field(static=True)

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int | None = None,
        *,
        placement: str = "pre",
        norm: str = "layer",
        activation: str = "gelu",
        num_kv_heads: int | None = None,
        cross_attention: bool = False,
        dropout_rate: float = 0.0,
        use_bias: bool = True,
        key: PRNGKeyArray,
    ):
        check_positive(d_model=d_model, num_heads=num_heads)
        if d_model % num_heads:
            raise ValueError(
                f"d_model={d_model} is not a multiple of num_heads={num_heads}; expected heads of equal width. "
                "Choose another width, or another number of heads."
            )
        d_ff = 4 * d_model if d_ff is None else d_ff
        check_choice("placement", placement, PLACEMENTS)
        check_choice("norm", norm, NORMS)
        check_choice("activation", activation, BLOCK_ACTIVATIONS)
        check_fraction(dropout_rate=dropout_rate)
        self.placement, self.dropout_rate = placement, float(dropout_rate)

        def new_norm():
            return LayerNorm(d_model, use_bias=use_bias) if norm == "layer" else RMSNorm(d_model)

        def new_attention(key):
            return MultiHeadAttention(d_model, num_heads, num_kv_heads=num_kv_heads, use_bias=use_bias, key=key)

        attention_key, cross_key, feed_forward_key = jax.random.split(key, 3)
        self.attention, self.attention_norm = new_attention(attention_key), new_norm()
        self.cross_attention = new_attention(cross_key) if cross_attention else None
        self.cross_norm = new_norm() if cross_attention else None
        if activation == "swiglu":
            self.feed_forward = SwiGLU(d_model, d_ff, key=feed_forward_key)
        else:
            self.feed_forward = FeedForward(
                d_model, d_ff, activation=activation, use_bias=use_bias, key=feed_forward_key
            )
        self.feed_forward_norm = new_norm()

    def __call__(
        self,
        x: Rows,
        mask: Bool[Array, "*num_texts seq seq"] | None = None,
        *,
        context: Float[Array, "context_rows d_model"] | None = None,
        context_mask: Bool[Array, "*context_texts seq kv_seq"] | None = None,
        position=None,
        num_texts: int = 1,
        key: PRNGKeyArray | None = None,
    ) -> Rows:
        """Send the tokens `x`, `(seq, d_model)`, through the block.

        `mask` says which of them each token may attend to, `(seq, seq)`. A block with cross-attention needs a
        `context`, `(kv_seq, d_model)`, and takes a `context_mask`, `(seq, kv_seq)`. A `position` scheme (chapter 05)
        acts in the self-attention. Several texts may stand one below the other, `num_texts` of them, as in
        `MultiHeadAttention`. With a random `key`, as in training, dropout is on. Returns rows like `x`.
        Raises `ValueError` if a shape is wrong, a batch is passed (use `num_texts` or `jax.vmap`), or a `context` is
        missing or not expected; `TypeError` if a mask is not Boolean or `position` is no scheme.
        """
        check_axes("x", x, seq=None, d_model=self.attention.query_weight.shape[0])
        self._check_context(x, context, context_mask, num_texts)
        add = pre_norm if self.placement == "pre" else post_norm
        keys = [None] * 3 if key is None else jax.random.split(key, 3)

        def with_dropout(sublayer, key, *arguments, **keywords):
            return lambda rows: dropout(sublayer(rows, *arguments, **keywords), self.dropout_rate, key=key)

        attend = with_dropout(self.attention, keys[0], mask, position=position, num_texts=num_texts)
        x = add(x, self.attention_norm, attend)
        if self.cross_attention is not None and self.cross_norm is not None:
            read = with_dropout(self.cross_attention, keys[1], context_mask, context=context, num_texts=num_texts)
            x = add(x, self.cross_norm, read)
        return add(x, self.feed_forward_norm, with_dropout(self.feed_forward, keys[2]))

    def extend(
        self,
        x: Rows,
        cache: KeyValueCache,
        positions: Integer[Array, "num_texts seq"],
        *,
        context_cache: KeyValueCache | None = None,
        position=None,
    ) -> tuple[Rows, KeyValueCache]:
        """Send further tokens through the block, with a cache of what its self-attention knows of the earlier ones.

        As `MultiHeadAttention.extend`, whose arguments these are. A block with cross-attention needs a `context_cache`,
        which its `cross_attention.context_cache` made of the context. The network sees each token alone anyway.
        """
        check_axes("x", x, seq=None, d_model=self.attention.query_weight.shape[0])
        if self.cross_attention is None and context_cache is not None:
            raise ValueError(
                "This block has no cross-attention and takes no context_cache; make it with cross_attention=True."
            )
        if self.cross_attention is not None and context_cache is None:
            raise ValueError(
                "This block has cross-attention and needs a context: pass context_cache=, as its "
                "cross_attention.context_cache makes it."
            )
        add = pre_norm if self.placement == "pre" else post_norm

        def attention(rows):
            nonlocal cache
            rows, cache = self.attention.extend(rows, cache, positions, position=position)
            return rows

        x = add(x, self.attention_norm, attention)
        if self.cross_attention is not None and self.cross_norm is not None and context_cache is not None:
            read = self.cross_attention.read
            x = add(x, self.cross_norm, lambda rows: read(rows, context_cache, positions))
        return add(x, self.feed_forward_norm, self.feed_forward), cache

    def weights(
        self,
        x: Rows,
        mask: Bool[Array, "seq seq"] | None = None,
        *,
        context: Float[Array, "context_rows d_model"] | None = None,
        context_mask: Bool[Array, "seq kv_seq"] | None = None,
        position=None,
    ) -> tuple[Float[Array, "heads seq seq"], Float[Array, "heads seq kv_seq"] | None]:
        """The weights of the self-attention and of the cross-attention, if there is one, for a single text.

        Arguments as for a call without dropout. Returns `(num_heads, seq, seq)`, and `(num_heads, seq, kv_seq)` or
        `None`.
        """
        check_axes("x", x, seq=None, d_model=self.attention.query_weight.shape[0])
        self._check_context(x, context, context_mask, 1)
        pre = self.placement == "pre"
        own = self.attention.weights(self.attention_norm(x) if pre else x, mask, position=position)
        if self.cross_attention is None or self.cross_norm is None:
            return own, None
        add = pre_norm if pre else post_norm
        x = add(x, self.attention_norm, lambda rows: self.attention(rows, mask, position=position))
        return own, self.cross_attention.weights(self.cross_norm(x) if pre else x, context_mask, context=context)

    def _check_context(self, x, context, context_mask, num_texts) -> None:
        if self.cross_attention is None:
            if context is not None or context_mask is not None:
                raise ValueError(
                    "This block has no cross-attention and takes no context; make it with cross_attention=True."
                )
            return
        if context is None:
            raise ValueError("This block has cross-attention and needs a context: pass context=, (kv_seq, d_model).")
        check_axes("context", context, kv_seq=None, d_model=x.shape[1])
        if num_texts == 1:  # the attention would call it "mask", as it calls the other one
            check_mask(context_mask, "context_mask", seq=x.shape[0], kv_seq=context.shape[0])


def check_stack(config) -> None:
    """Raise unless a model's configuration describes a stack of blocks: `TypeError` for kinds, or `ValueError`."""
    given = [] if config.d_ff is None else ["d_ff"]
    check_positive(**{name: getattr(config, name) for name in ("d_model", "num_layers", "num_heads", *given)})
    if config.d_model % config.num_heads:
        raise ValueError(f"d_model={config.d_model} is not a multiple of num_heads={config.num_heads}; choose others.")
    if config.positions == "rotary" and (config.d_model // config.num_heads) % 2:
        raise ValueError(
            f"d_model={config.d_model} by num_heads={config.num_heads} is odd; expected an even width of each head for "
            "rotary positions, which turn columns in pairs."
        )
    check_choice("placement", config.placement, PLACEMENTS)
    check_choice("norm", config.norm, NORMS)
    check_choice("activation", config.activation, BLOCK_ACTIVATIONS)
    check_choice("positions", config.positions, POSITIONS)
    check_fraction(dropout_rate=config.dropout_rate)
    check_flags(use_bias=config.use_bias)
