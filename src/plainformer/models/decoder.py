"""The decoder: a stack of causal blocks that says, at every token, what it expects next (chapter 06)."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer, PRNGKeyArray

from plainformer.attention.cache import KeyValueCache
from plainformer.attention.self_attention import causal_mask
from plainformer.checks import check_flags, check_length, check_positive, checked
from plainformer.models.config import StackConfig
from plainformer.models.stack import Stack, add_positions, make_scheme
from plainformer.tokens.tokens import Linear, TokenEmbedding, linear


@dataclasses.dataclass(frozen=True)
class DecoderConfig:
    r"""All that makes a decoder what it is, but for its learned numbers.

    **Arguments**

    - `vocab_size`: number of tokens in the vocabulary.
    - `context_len`: the longest text that the model reads, in tokens.
    - `stack`: sizes and kinds of its blocks.
    - `tied_embedding`: whether the output uses the embedding's table, transposed, rather than a matrix of its own.

    **Raises** `ValueError` if one of them is out of range; `TypeError` if it is not of its kind.
    """

    vocab_size: int
    context_len: int
    stack: StackConfig = StackConfig()
    tied_embedding: bool = True

    def __post_init__(self):
        check_positive(vocab_size=self.vocab_size, context_len=self.context_len)
        check_flags(tied_embedding=self.tied_embedding)


class Decoder(eqx.Module):
    r"""A decoder-only transformer: it turns a text into a distribution over the next token, at every token.

    Implements `eq-decoder-model`; Radford et al. (2019), section 2.3; Vaswani et al. (2017), section 3.1.

    **Arguments** `config`, sizes and kinds of all parts; `key`, for all weights.

    **Differs from the papers**: the last matrix of every sublayer starts smaller, as in GPT-2's code; with sinusoidal
    positions, token vectors are multiplied by the root of `d_model`, as in Vaswani et al., section 3.4.
    """

    embedding: TokenEmbedding
    stack: Stack
    output: Linear | None
    config: DecoderConfig = eqx.field(static=True)

    def __init__(self, config: DecoderConfig, *, key: PRNGKeyArray):
        self.config, sizes = config, config.stack
        embedding_key, scheme_key, output_key, *block_keys = jax.random.split(key, 3 + sizes.num_layers)
        self.embedding = TokenEmbedding(config.vocab_size, sizes.d_model, key=embedding_key)
        scheme = make_scheme(sizes, config.context_len, causal=True, key=scheme_key)
        self.stack = Stack(sizes, scheme, keys=block_keys, small_start=True)
        self.output = None
        if not config.tied_embedding:
            self.output = Linear(sizes.d_model, config.vocab_size, use_bias=False, key=output_key)

    @checked
    def __call__(
        self, tokens: Integer[Array, "*batch seq"], *, key: PRNGKeyArray | None = None
    ) -> Float[Array, "*batch seq vocab_size"]:
        """Return, at every token of a text, logits for the token that comes next.

        Row n depends on tokens 0 to n alone. With a random `key`, as in training, dropout is on. Raises `ValueError` if
        a text is empty or longer than `context_len`, or an id is out of range.
        """
        return self.logits(self.residual_stream(tokens, key=key)[-1])

    @checked
    def residual_stream(
        self, tokens: Integer[Array, "*batch seq"], *, key: PRNGKeyArray | None = None
    ) -> list[Float[Array, "*batch seq d_model"]]:
        """Return what enters the first block and what leaves each; arguments as for a call."""
        return self.stack.residual_stream(self._embed(tokens), causal_mask(tokens.shape[-1]), key=key)

    @checked
    def attention_weights(self, tokens: Integer[Array, "*batch seq"]) -> Float[Array, "*batch layers heads seq seq"]:
        """Return the attention weights of every block and head; arguments as for a call."""
        return self.stack.attention_weights(self._embed(tokens), causal_mask(tokens.shape[-1]))[0]

    def logits(self, x: Float[Array, "*batch seq d_model"]) -> Float[Array, "*batch seq vocab_size"]:
        """Turn rows that the last block returned into logits."""
        x = self.stack.normalise(x)
        return linear(x, self.embedding.weight.T) if self.output is None else self.output(x)

    def make_cache(self, capacity: int | None = None, *, batch: tuple[int, ...] = ()) -> tuple[KeyValueCache, ...]:
        """Make an empty cache for `capacity` tokens of each text, one part per block; `None` for `context_len`.

        More than `context_len` is of use for padding only, which takes slots: learned positions end at `context_len`,
        and no scheme has been trained beyond it.
        """
        return self.stack.make_cache(self.config.context_len if capacity is None else capacity, batch=batch)

    @checked
    def extend(
        self,
        tokens: Integer[Array, "*batch seq"],
        cache: tuple[KeyValueCache, ...],
        positions: Integer[Array, "*batch seq"] | None = None,
    ) -> tuple[Float[Array, "*batch seq d_model"], tuple[KeyValueCache, ...]]:
        """Read further tokens of a text of which the cache holds the beginning, be it the whole prompt or one token.

        `positions` say where they stand in the text, -1 for padding; `None` counts on from the last position that the
        cache holds. Padding fills slots of the cache, but no positions. Returns the last block's row for each token,
        from which `logits` makes what a call on the whole text would have given, and the longer cache. Raises as a call
        does, and `ValueError` if the cache is full or of another model; a compiled function raises when it runs if the
        cache is full, or if a position is outside the table of learned ones, which ends at `context_len`.
        """
        cache, positions = ready_to_extend(cache, len(self.stack.blocks), tokens, positions)
        return self.stack.extend(self._embed(tokens, jnp.maximum(positions, 0)), cache, positions)

    def _embed(self, tokens, positions=None) -> Float[Array, "*batch seq d_model"]:
        check_length("tokens", tokens.shape[-1], self.config.context_len, "context_len")
        return add_positions(self.embedding(tokens), self.stack.scheme, positions)


def ready_to_extend(cache, num_layers: int, tokens, positions):
    """Return a cache that is of this model and has room, and the tokens' positions, counted on if there are none."""
    if len(cache) != num_layers:
        raise ValueError(f"The cache has {len(cache)} parts; expected {num_layers}: see make_cache().")
    if cache[0].batch != tokens.shape[:-1]:
        raise ValueError(
            f"tokens has shape {tokens.shape}, and the cache was made for batch={cache[0].batch}; expected the same "
            f"axes in front: make_cache(batch={tokens.shape[:-1]})."
        )
    seq = tokens.shape[-1]
    if positions is None:
        positions = cache[0].positions.max(axis=-1, keepdims=True) + 1 + jnp.arange(seq)
    return (cache[0].with_room(seq), *cache[1:]), positions  # all parts are of one length


def training_flops(config: DecoderConfig, num_tokens: int, seq_len: int | None = None) -> int:
    r"""Count the floating-point operations of training on `num_tokens` tokens, in texts of `seq_len`.

    Implements `eq-decoder-flops`; Kaplan et al. (2020), section 2.1, who leave out the output and, in the end, the
    attention. A multiplication and an addition count as two. Only matrix products are counted: 2 for each weight and
    each token forward; for scores and weighted averages, 4 for each column and each of `seq_len` keys, hidden ones
    included, since they are computed; and twice as much backward as forward.

    **Arguments** the configuration; the number of tokens, batch times length times steps; the length of a text, `None`
    for `context_len`.
    """
    seq_len = config.context_len if seq_len is None else seq_len
    check_positive(num_tokens=num_tokens, seq_len=seq_len)
    model = eqx.filter_eval_shape(lambda key: Decoder(config, key=key), jax.random.key(0))
    weights = sum(leaf.size for leaf in jax.tree.leaves(model.stack.blocks) if getattr(leaf, "ndim", 0) == 2)
    products = weights + config.stack.d_model * config.vocab_size
    attention = 2 * config.stack.num_layers * config.stack.d_model * seq_len
    return 3 * 2 * num_tokens * (products + attention)
