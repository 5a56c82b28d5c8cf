"""The encoder: a stack of blocks in which every token sees every other one (chapter 08)."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from plainformer.attention.efficiency import MaskRule
from plainformer.blocks.layers import Norm
from plainformer.checks import Natural, Positive, check_fields, check_length, checked, refuse, says_where
from plainformer.models.config import StackConfig, make_norm, make_scheme
from plainformer.models.stack import Stack, add_positions
from plainformer.tokens.patches import two_sides
from plainformer.tokens.tokens import UNIT_VARIANCE, Linear, TokenEmbedding


@says_where
@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    r"""All that makes an encoder what it is, but for its learned numbers.

    **Arguments**

    - `context_len`: the longest text that the model reads, in tokens, without a class token.
    - `vocab_size`: number of tokens in the vocabulary, for texts; or else
    - `d_in`: the number of features of each token that comes in as a row of numbers, such as a patch of an image.
    - `num_segments`: the number of segments, such as question and answer; 0 for none.
    - `use_class_token`: whether a learned row is put in front of every text, to gather what the whole of it says.
    - `embedding_norm`: whether what enters the first block is normalised, as in BERT.
    """

    context_len: Positive
    vocab_size: Positive | None = None
    d_in: Positive | None = None
    stack: StackConfig = StackConfig()
    num_segments: Natural = 0
    use_class_token: bool = False
    embedding_norm: bool = False

    def __post_init__(self):
        if (self.vocab_size is None) == (self.d_in is None):
            raise ValueError(
                f"vocab_size is {self.vocab_size} and d_in is {self.d_in}; expected one of them: vocab_size for texts, "
                "d_in for tokens that are rows of numbers."
            )
        check_fields(self)


class Encoder(eqx.Module):
    r"""An encoder: it turns a text into one vector per token, each of which knows of the whole text.

    Implements `eq-encoder-model`; Vaswani et al. (2017), section 3.1; Devlin et al. (2019), section 3.

    `grid` says how many patches an image is high and wide, for two-dimensional positions.

    **Differs from the papers**: with sinusoidal positions, vectors of the vocabulary are multiplied by the root of
    `d_model`, as in `Decoder`; a class token is a vector of its own rather than an entry of the vocabulary, which can
    do the same.

    **Example**: three tokens come in as ids, and each goes out as a vector that knows of the others.

    >>> stack = pf.StackConfig(d_model=8, num_layers=1, num_heads=2)
    >>> config = pf.EncoderConfig(vocab_size=65, context_len=16, stack=stack)
    >>> pf.Encoder(config, key=jax.random.key(0))(jnp.asarray([7, 2, 9])).shape
    (3, 8)
    """

    embedding: TokenEmbedding | Linear
    class_token: Float[Array, " d_model"] | None
    segment_embedding: TokenEmbedding | None
    embedding_norm: Norm | None
    stack: Stack
    config: EncoderConfig = eqx.field(static=True)

    @checked
    def __init__(self, config: EncoderConfig, *, grid: tuple[int, int] | None = None, key: PRNGKeyArray):
        grid = None if grid is None else two_sides("grid", grid)
        self.config, sizes = config, config.stack
        d_model, has_class_token = sizes.d_model, config.use_class_token
        embedding_key, class_key, segment_key, scheme_key, *block_keys = jax.random.split(key, 4 + sizes.num_layers)
        if config.vocab_size is not None:
            self.embedding = TokenEmbedding(config.vocab_size, d_model, key=embedding_key)
        elif config.d_in is not None:
            self.embedding = Linear(
                config.d_in, d_model, use_bias=sizes.use_bias, initialiser=UNIT_VARIANCE, key=embedding_key
            )
        self.class_token = 0.02 * jax.random.normal(class_key, (d_model,)) if has_class_token else None
        num_segments = config.num_segments
        self.segment_embedding = TokenEmbedding(num_segments, d_model, key=segment_key) if num_segments else None
        self.embedding_norm = make_norm(sizes) if config.embedding_norm else None
        max_len = config.context_len + has_class_token
        scheme = make_scheme(sizes, max_len, causal=False, grid=grid, class_token=has_class_token, key=scheme_key)
        self.stack = Stack(sizes, scheme, keys=block_keys)

    def __call__(
        self,
        inputs,
        is_token: Bool[Array, "*batch seq"] | None = None,
        segments: Integer[Array, "*batch seq"] | None = None,
        *,
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "*batch rows d_model"]:
        """Return a vector for each token of a text, from the whole of it.

        `inputs` are ids, `(*batch, seq)`, or, with `d_in`, rows of numbers, `(*batch, seq, d_in)`. The class token, if
        there is one, is a further row in front. `is_token` says `False` where a shorter text is padded, on the right,
        as positions count from the left: nobody attends to padding, and its own rows mean nothing. `segments` numbers
        the segment of each token. With a random `key`, as in training, dropout is on. Raises `ValueError` if a text is
        empty, all padding or longer than `context_len`, or an id is out of range.
        """
        return self.stack(*self._embed(inputs, is_token, segments), key=key)

    def residual_stream(
        self, inputs, is_token=None, segments=None, *, key: PRNGKeyArray | None = None
    ) -> list[Float[Array, "*batch rows d_model"]]:
        """Return what enters the first block and what leaves each; arguments as for a call."""
        return self.stack.residual_stream(*self._embed(inputs, is_token, segments), key=key)

    def attention_weights(self, inputs, is_token=None, segments=None) -> Float[Array, "*batch layers heads rows rows"]:
        """Return the attention weights of every block and head; arguments as for a call."""
        return self.stack.attention_weights(*self._embed(inputs, is_token, segments))[0]

    def _embed(self, inputs, is_token, segments):
        """The rows that enter the first block, class token in front, and the mask: nobody attends to padding."""
        config, scheme = self.config, self.stack.scheme
        x = (self._of_ids if config.d_in is None else self._of_rows)(inputs, is_token, segments)
        check_length("A text", x.shape[-2], config.context_len, "context_len")
        if self.segment_embedding is not None:
            x = x + self.segment_embedding(segments)
        if self.class_token is not None:
            first = jnp.broadcast_to(self.class_token, (*x.shape[:-2], 1, x.shape[-1]))
            x = jnp.concatenate([first, x], axis=-2)
        x = scheme.embed(x) if config.vocab_size is None else add_positions(x, scheme)
        x = x if self.embedding_norm is None else self.embedding_norm(x)
        if is_token is None:
            return x, None
        empty = ~is_token.any(axis=-1)
        is_token = refuse(is_token, empty, "is_token", "a token in each text: leave out what is all padding.")
        if self.class_token is not None:
            is_token = jnp.concatenate([jnp.ones((*is_token.shape[:-1], 1), bool), is_token], axis=-1)
        return x, MaskRule(is_token)

    @checked
    def _of_ids(
        self,
        inputs: Integer[Array, "*batch seq"],
        is_token: Bool[Array, "*batch seq"] | None,
        segments: Integer[Array, "*batch seq"] | None,
    ) -> Float[Array, "*batch seq d_model"]:
        self._check_segments(segments)
        return self.embedding(inputs)

    @checked
    def _of_rows(
        self,
        inputs: Float[Array, "*batch seq d_in"],
        is_token: Bool[Array, "*batch seq"] | None,
        segments: Integer[Array, "*batch seq"] | None,
    ) -> Float[Array, "*batch seq d_model"]:
        self._check_segments(segments)
        # NaN in padding would spoil the gradients of the weights.
        return self.embedding(inputs if is_token is None else jnp.where(is_token[..., None], inputs, 0))

    @property
    def d_in(self) -> int | None:
        """The number of features of each token that comes in as a row of numbers."""
        return self.config.d_in

    def _check_segments(self, segments) -> None:
        if (segments is None) != (self.segment_embedding is None):
            num = self.config.num_segments
            raise ValueError(
                f"segments are {'missing' if segments is None else 'given'}; expected "
                f"{f'one of {num} numbers for each token' if num else 'none'}, as num_segments is {num}."
            )
