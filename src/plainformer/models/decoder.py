"""The decoder: a stack of causal blocks that says, at every token, what it expects next (chapter on the decoder)."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer, PRNGKeyArray

from plainformer.attention.cache import ready_to_extend
from plainformer.attention.delta import CachePart
from plainformer.attention.few_bits import Bits
from plainformer.attention.mask import Mask
from plainformer.blocks.layers import Norm
from plainformer.checks import Positive, check_fields, check_length, checked, says_where
from plainformer.models.config import StackConfig, make_norm, make_scheme
from plainformer.models.depth import Stack
from plainformer.positions.positions import add_positions, places_in
from plainformer.seeing import look, named
from plainformer.tokens.tokens import Linear, TokenEmbedding, linear


@says_where
@dataclasses.dataclass(frozen=True)
class DecoderConfig:
    r"""All that makes a decoder what it is, but for its learned numbers.

    Sizes of the blocks stand within: `DecoderConfig(65, 64, stack=StackConfig(d_model=128, num_layers=4))`.

    Args:
        vocab_size: the number of tokens in the vocabulary.
        context_len: the longest text that the model reads, in tokens.
        stack: sizes and kinds of its blocks.
        tied_embedding: whether the output uses the embedding's table, transposed, rather than a matrix of its own.
        output_bias: whether the output adds a bias to the logits.
        embedding_norm: whether what enters the first block is normalised, as in BLOOM.

    Example:
        What training takes is known before there is a model.

        >>> config = pf.DecoderConfig(vocab_size=65, context_len=64, stack=pf.StackConfig(d_model=32, num_layers=2))
        >>> f"{pf.training_flops(config, num_tokens=1_000_000):.0e} operations"
        '2e+11 operations'
    """

    vocab_size: Positive
    context_len: Positive
    stack: StackConfig = StackConfig()
    tied_embedding: bool = True
    output_bias: bool = False
    embedding_norm: bool = False

    def __post_init__(self):
        check_fields(self)
        if self.output_bias and self.tied_embedding:
            raise ValueError("output_bias is for an output with a matrix of its own; expected tied_embedding=False.")
        if self.stack.pattern is not None and (self.stack.window or 0) > self.context_len:
            raise ValueError(
                f"window is {self.stack.window}; expected at most context_len={self.context_len}, for with a wider one "
                "all blocks of the pattern are full."
            )


class Decoder(eqx.Module):
    r"""A decoder-only transformer: it turns a text into a distribution over the next token, at every token.

    Implements `eq-decoder-model`; Radford et al. (2019), section 2.3; Vaswani et al. (2017), section 3.1.

    Differs from the papers:
        The last matrix of every sublayer starts smaller, as in GPT-2's code; with sinusoidal positions, token vectors
        are multiplied by the root of `d_model`, as in Vaswani et al., section 3.4.

    Example:
        At each of three tokens, a logit for each of the 65 tokens that may come next.

        >>> config = pf.DecoderConfig(65, 16, stack=pf.StackConfig(d_model=8, num_layers=1, num_heads=2))
        >>> decoder = pf.Decoder(config, key=jax.random.key(0))
        >>> decoder(jnp.asarray([7, 2, 9])).shape
        (3, 65)
    """

    embedding: TokenEmbedding
    embedding_norm: Norm | None
    stack: Stack
    output: Linear | None
    config: DecoderConfig = eqx.field(static=True)

    @checked
    def __init__(self, config: DecoderConfig, *, key: PRNGKeyArray):
        self.config, sizes = config, config.stack
        embedding_key, scheme_key, output_key, *block_keys = jax.random.split(key, 3 + sizes.num_layers)
        self.embedding = TokenEmbedding(config.vocab_size, sizes.d_model, key=embedding_key)
        self.embedding_norm = make_norm(sizes) if config.embedding_norm else None
        scheme = make_scheme(sizes, config.context_len, causal=True, key=scheme_key)
        self.stack = Stack(sizes, scheme, keys=block_keys, small_start=True)
        self.output = None
        if not config.tied_embedding:
            self.output = Linear(sizes.d_model, config.vocab_size, use_bias=config.output_bias, key=output_key)

    @checked
    def __call__(
        self,
        tokens: Integer[Array, "*batch seq"],
        documents: Integer[Array, "*batch seq"] | None = None,
        *,
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "*batch seq vocab_size"]:
        """Return, at every token of a text, logits for the token that comes next.

        Row n depends on tokens 0 to n alone. With a random `key`, as in training, dropout is on. A text may be several
        `documents`, one after the other, each with a number of its own, as `pack` makes them: a token then sees its own
        document alone, and positions begin anew with each. Raises `ValueError` if a text is empty or longer than
        `context_len`, or an id is out of range.
        """
        return self.logits(self._read(tokens, documents, key=key))

    def _read(self, tokens, documents=None, *, key=None) -> Float[Array, "*batch seq d_model"]:
        """The rows that the last block returns."""
        if documents is None:
            return named("stack", self.stack)(self._embed(tokens), Mask(causal=True), key=key)
        x = self._embed(tokens, places_in(documents))
        return named("stack", self.stack)(x, Mask.of_documents(documents), key=key)

    @checked
    def residual_stream(
        self, tokens: Integer[Array, "*batch seq"], *, key: PRNGKeyArray | None = None
    ) -> list[Float[Array, "*batch seq d_model"]]:
        """Return what enters the first block and what leaves each; arguments as for a call."""
        return self.stack.stream_in(look(self._read, tokens, key=key)[1])

    @checked
    def attention_weights(self, tokens: Integer[Array, "*batch seq"]) -> Float[Array, "*batch layers heads seq seq"]:
        """Return the attention weights of every block and head; arguments as for a call."""
        return self.stack.weights_in(look(self._read, tokens)[1])

    @checked
    def logits(self, x: Float[Array, "*batch seq d_model"]) -> Float[Array, "*batch seq vocab_size"]:
        """Turn rows that the last block returned into logits."""
        x = self.stack.normalise(x)
        return by_table(x, self.embedding.weight) if self.output is None else self.output(x)

    @property
    def can_slide(self) -> bool:
        """Whether a window may slide over a text longer than `context_len`: if the position scheme says so."""
        return self.stack.scheme.can_slide

    def make_cache(
        self,
        capacity: int | None = None,
        *,
        batch: tuple[int, ...] = (),
        sliding: bool = False,
        bits: Bits | None = None,
        group: int | None = None,
    ) -> tuple[CachePart, ...]:
        """Make an empty cache for `capacity` tokens of each text, one part per block; `None` for `context_len`.

        More than `context_len` is of use for padding only, which takes slots: learned positions end at `context_len`,
        and no scheme has been trained beyond it. With `sliding` the last `capacity` tokens are kept. With `bits`, 8 or
        4, numbers are kept in so few, by groups of a size that `KeyValueCache` explains.
        """
        capacity = self.config.context_len if capacity is None else capacity
        return self.stack.make_cache(capacity, batch=batch, sliding=sliding, bits=bits, group=group)

    @checked
    def extend(
        self,
        tokens: Integer[Array, "*batch seq"],
        cache: tuple[CachePart, ...],
        positions: Integer[Array, "*batch seq"] | None = None,
    ) -> tuple[Float[Array, "*batch seq d_model"], tuple[CachePart, ...]]:
        """Read further tokens of a text of which the cache holds the beginning, be it the whole prompt or one token.

        `positions` say where they stand in the text, -1 for padding; `None` counts on from the last position that the
        cache holds. Padding fills slots of the cache, but no positions. Returns the last block's row for each token,
        from which `logits` makes what a call on the whole text would have given, and the longer cache. Raises as a call
        does, and `ValueError` if the cache is full or of another model; a compiled function raises when it runs if the
        cache is full, or if a position is outside the table of learned ones, which ends at `context_len`.
        """
        cache, positions = ready_to_extend(cache, len(self.stack.blocks), tokens, positions)
        extend = named("stack", self.stack.extend)
        return extend(self._embed(tokens, jnp.maximum(positions, 0)), cache, positions)

    def _embed(self, tokens, positions=None) -> Float[Array, "*batch seq d_model"]:
        check_length("tokens", tokens.shape[-1], self.config.context_len, "context_len")
        x = add_positions(self.embedding(tokens), self.stack.scheme, positions)
        return x if self.embedding_norm is None else self.embedding_norm(x)


def by_table(
    x: Float[Array, "*batch d_model"], table: Float[Array, "vocab_size d_model"]
) -> Float[Array, "*batch vocab_size"]:
    """Multiply every row by the vector of every token."""
    if x.size != x.shape[-1]:
        return linear(x, table.T)
    # Of a single row, as in writing: with the table as it lies this takes two thirds of the time on a CPU.
    return (table @ x.reshape(-1)).reshape(*x.shape[:-1], -1)
