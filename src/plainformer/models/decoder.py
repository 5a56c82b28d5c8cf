"""The decoder: a stack of causal blocks that says, at every token, what it expects next (chapter 06)."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer, PRNGKeyArray

from plainformer.attention.cache import KeyValueCache
from plainformer.attention.self_attention import causal_mask
from plainformer.blocks.blocks import TransformerBlock, check_stack
from plainformer.blocks.layers import LayerNorm, RMSNorm, dropout
from plainformer.checks import check_axes, check_flags, check_positive
from plainformer.positions.relative import new_positions
from plainformer.tokens.tokens import TokenEmbedding, linear_map


@dataclasses.dataclass(frozen=True)
class DecoderConfig:
    r"""All that makes a decoder what it is, but for its learned numbers.

    **Arguments**

    - `vocab_size`: number of tokens in the vocabulary.
    - `context_len`: the longest text that the model reads, in tokens.
    - `d_model`, `num_layers`, `num_heads`: width of a token; number of blocks; attention heads in each.
    - `d_ff`: inner width of the token-wise networks; `None` for `4 * d_model`.
    - `num_kv_heads`: heads for keys and values, a divisor of `num_heads`; `None` for as many.
    - `placement`, `norm`, `activation`, `use_bias`: as for `TransformerBlock`.
    - `positions`: `"learned"`, `"sinusoidal"`, `"rotary"`, `"relative"`, `"alibi"` or `"none"`.
    - `tied_embedding`: whether the output uses the embedding's table, transposed, rather than a matrix of its own.
    - `dropout_rate`: the probability with which an entry is dropped while training, after the embedding and in blocks.

    **Raises** `ValueError` if one of them is out of range; `TypeError` if it is not of its kind.
    """

    vocab_size: int
    context_len: int
    d_model: int = 128
    num_layers: int = 4
    num_heads: int = 4
    d_ff: int | None = None
    num_kv_heads: int | None = None
    placement: str = "pre"
    norm: str = "layer"
    activation: str = "gelu"
    positions: str = "learned"
    tied_embedding: bool = True
    dropout_rate: float = 0.0
    use_bias: bool = True

    def __post_init__(self):
        given = [] if self.num_kv_heads is None else ["num_kv_heads"]
        check_positive(**{name: getattr(self, name) for name in ("vocab_size", "context_len", *given)})
        check_stack(self)
        if self.num_kv_heads is not None and self.num_heads % self.num_kv_heads:
            raise ValueError(
                f"num_heads={self.num_heads} is not a multiple of num_kv_heads={self.num_kv_heads}; "
                "expected equally many query heads for each key and value head."
            )
        check_flags(tied_embedding=self.tied_embedding)


class Decoder(eqx.Module):
    r"""A decoder-only transformer: it turns a text into a distribution over the next token, at every token.

    Implements `eq-decoder-model`; Radford et al. (2019), section 2.3; Vaswani et al. (2017), section 3.1.

    **Arguments**

    - `config`: sizes and kinds of all parts.
    - `key`: random key for all weights.

    **Attributes** `config`; `embedding`; `positions`, one of the schemes of chapter 05, or `None`; `blocks`, a tuple;
    `final_norm`, `None` with post-norm; `output_weight`, `(d_model, vocab_size)`, or `None` if tied to the embedding.

    **Raises** `ValueError` if sizes do not fit together.

    **Differs from the papers**: the last matrix of every sublayer starts smaller by the root of twice the number of
    layers, as in GPT-2's code; with sinusoidal positions, token vectors are multiplied by the root of `d_model`
    (Vaswani et al., section 3.4), as they would otherwise be drowned by the codes.
    """

    embedding: TokenEmbedding
    positions: Any
    blocks: tuple[TransformerBlock, ...]
    final_norm: LayerNorm | RMSNorm | None
    output_weight: Float[Array, "d_model vocab_size"] | None
    config: DecoderConfig = eqx.field(static=True)

    def __init__(self, config: DecoderConfig, *, key: PRNGKeyArray):
        self.config = config
        d_model = config.d_model
        embedding_key, positions_key, output_key, *block_keys = jax.random.split(key, 3 + config.num_layers)
        self.embedding = TokenEmbedding(config.vocab_size, d_model, key=embedding_key)
        self.positions = new_positions(
            config.positions,
            d_model=d_model,
            num_heads=config.num_heads,
            max_len=config.context_len,
            causal=True,
            key=positions_key,
        )
        self.blocks = tuple(self._new_block(key) for key in block_keys)
        new_norm = RMSNorm(d_model) if config.norm == "rms" else LayerNorm(d_model, use_bias=config.use_bias)
        self.final_norm = new_norm if config.placement == "pre" else None
        self.output_weight = None
        if not config.tied_embedding:
            self.output_weight = jax.nn.initializers.glorot_normal()(output_key, (d_model, config.vocab_size))

    def _new_block(self, key: PRNGKeyArray) -> TransformerBlock:
        config = self.config
        block = TransformerBlock(
            config.d_model,
            config.num_heads,
            config.d_ff,
            placement=config.placement,
            norm=config.norm,
            activation=config.activation,
            num_kv_heads=config.num_kv_heads,
            dropout_rate=config.dropout_rate,
            use_bias=config.use_bias,
            key=key,
        )

        def last_matrices(block):
            return block.attention.output_weight, block.feed_forward.out_weight

        # 2 num_layers sublayers add to each token: with smaller summands, their sum starts at the size of one.
        smaller = [matrix / (2 * config.num_layers) ** 0.5 for matrix in last_matrices(block)]
        return eqx.tree_at(last_matrices, block, smaller)

    def __call__(
        self, tokens: Integer[Array, "*num_texts seq"], *, key: PRNGKeyArray | None = None
    ) -> Float[Array, "*num_texts seq vocab_size"]:
        """Give, at every token of a text, logits for the token that comes next.

        `tokens` is `(seq,)`, at most `context_len` ids; the result `(seq, vocab_size)`. Row n depends on tokens 0 to n
        alone. Several texts of equal length may be given at once, `(num_texts, seq)`: all but attention sees each token
        alone, so their rows simply stand one below the other, in large matrix products. With a random `key`, as in
        training, dropout is on. Raises `ValueError` if a text is empty or longer than the context, or an id is out of
        range.
        """
        texts = self._as_texts(tokens)
        num_texts, seq = texts.shape
        keys = [None] * (1 + len(self.blocks)) if key is None else jax.random.split(key, 1 + len(self.blocks))
        x = self._embed(texts, jnp.broadcast_to(jnp.arange(seq), texts.shape))
        x = dropout(x, self.config.dropout_rate, key=keys[0])
        for block, block_key in zip(self.blocks, keys[1:], strict=True):
            x = block(x, causal_mask(seq), position=self.positions, num_texts=num_texts, key=block_key)
        return self.logits(x).reshape(*tokens.shape, -1)

    def logits(self, x: Float[Array, "rows d_model"]) -> Float[Array, "rows vocab_size"]:
        """Turn rows that the last block returned, `(rows, d_model)`, into logits, `(rows, vocab_size)`."""
        rows = x if self.final_norm is None else self.final_norm(x)
        return linear_map(rows, self.embedding.weight.T if self.output_weight is None else self.output_weight)

    def new_cache(self, capacity: int | None = None, *, num_texts: int = 1) -> tuple[KeyValueCache, ...]:
        """Make an empty cache for `capacity` tokens of each text, one part per block; `None` for `context_len`.

        More than `context_len` is of use for padding only, which takes slots: learned positions end at `context_len`,
        and no scheme has been trained beyond it.
        """
        capacity = self.config.context_len if capacity is None else capacity
        return tuple(block.attention.new_cache(capacity, num_texts=num_texts) for block in self.blocks)

    def extend(
        self,
        tokens: Integer[Array, "*num_texts seq"],
        cache: tuple[KeyValueCache, ...],
        positions: Integer[Array, "*num_texts seq"] | None = None,
    ) -> tuple[Float[Array, "*num_texts seq d_model"], tuple[KeyValueCache, ...]]:
        """Read further tokens of a text of which the cache holds the beginning, be it the whole prompt or one token.

        `tokens` is `(seq,)`, or `(num_texts, seq)`; `positions`, of the same shape, says where they stand in the text,
        -1 for padding; `None` counts on from the last position that the cache holds of each text. Padding fills slots
        of the cache, but no positions. Returns the last block's row for each token, from which `logits` makes what a
        call on the whole text would have given, and the longer cache. Raises as a call does, and `ValueError` if the
        cache is full or of another model; a compiled function raises when it runs if the cache is full, or if a
        position is outside the table of learned ones, which ends at `context_len`.
        """
        texts = self._as_texts(tokens)
        if len(cache) != len(self.blocks):
            raise ValueError(f"The cache has {len(cache)} parts; expected {len(self.blocks)}: see new_cache().")
        check_axes("tokens", texts, num_texts=cache[0].positions.shape[0], seq=None)
        if positions is None:
            positions = cache[0].positions.max(axis=1, keepdims=True) + 1 + jnp.arange(texts.shape[1])[None, :]
        cache = (cache[0].with_room(texts.shape[1]), *cache[1:])  # all parts are of one length
        positions = jnp.broadcast_to(positions, texts.shape)
        x = self._embed(texts, jnp.maximum(positions, 0))
        longer = []
        for block, part in zip(self.blocks, cache, strict=True):
            x, part = block.extend(x, part, positions, position=self.positions)
            longer.append(part)
        return x.reshape(*tokens.shape, -1), tuple(longer)

    def _as_texts(self, tokens) -> Integer[Array, "num_texts seq"]:
        if getattr(tokens, "ndim", 1) == 2:
            check_axes("tokens", tokens, num_texts=None, seq=None)
        else:
            check_axes("tokens", tokens, seq=None)
        if not 1 <= tokens.shape[-1] <= self.config.context_len:
            raise ValueError(
                f"There are {tokens.shape[-1]} tokens; expected 1 to context_len={self.config.context_len}. "
                + ("Start with at least one." if not tokens.shape[-1] else "Keep the last ones, or cut the text.")
            )
        return tokens.reshape(-1, tokens.shape[-1])

    def _embed(self, texts, positions) -> Float[Array, "rows d_model"]:
        """The rows of all texts, one text below the other, with what `positions` says about where they stand."""
        x = self.embedding(texts.reshape(-1))
        if self.config.positions == "sinusoidal":
            x = x * self.config.d_model**0.5
        return x if self.positions is None else self.positions.embed(x, positions.reshape(-1))


def training_flops(config: DecoderConfig, num_tokens: int, seq_len: int | None = None) -> int:
    r"""Count the floating-point operations of training on `num_tokens` tokens, in texts of `seq_len`.

    Implements `eq-decoder-flops`; Kaplan et al. (2020), section 2.1, who leave out the output and, in the end, the
    attention. A multiplication and an addition count as two. Only matrix products are counted: 2 for each weight and
    each token forward; for scores and weighted averages, 4 for each column and each of `seq_len` keys, hidden ones
    included, since they are computed; and twice as much backward as forward.

    **Arguments** the configuration; the number of tokens, batch times length times steps; the length of a text, `None`
    for `context_len`. **Returns** the number of operations. **Raises** `ValueError` if a number is below 1.
    """
    seq_len = config.context_len if seq_len is None else seq_len
    check_positive(num_tokens=num_tokens, seq_len=seq_len)
    model = eqx.filter_eval_shape(lambda key: Decoder(config, key=key), jax.random.key(0))
    weights = sum(leaf.size for leaf in jax.tree.leaves(model.blocks) if getattr(leaf, "ndim", 0) == 2)
    products = weights + config.d_model * config.vocab_size
    attention = 2 * config.num_layers * config.d_model * seq_len
    return 3 * 2 * num_tokens * (products + attention)
