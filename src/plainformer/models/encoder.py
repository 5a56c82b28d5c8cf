"""The encoder: a stack of blocks in which every token sees every other one (chapter on the encoder)."""

import abc
import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from plainformer.attention.mask import Mask
from plainformer.blocks.layers import Norm
from plainformer.checks import Natural, Positive, check_fields, check_length, checked, refuse, says_where
from plainformer.models.config import StackConfig, make_norm, make_scheme
from plainformer.models.depth import Stack
from plainformer.positions.positions import add_positions, embed_by
from plainformer.seeing import look, named
from plainformer.tokens.patches import two_sides
from plainformer.tokens.tokens import Linear, TokenEmbedding, normal, unit_variance


@says_where
@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    r"""All that makes an encoder what it is, but for its learned numbers.

    Args:
        context_len: the longest text that the model reads, in tokens, without a class token.
        vocab_size: number of tokens in the vocabulary, for texts; or else `d_in` is given.
        d_in: the number of features of each token that comes in as a row of numbers, such as a patch of an image.
        num_segments: the number of segments, such as question and answer; 0 for none.
        use_class_token: whether a learned row is put in front of every text, to gather what the whole of it says.
        embedding_norm: whether what enters the first block is normalised, as in BERT.
        embedding_width: the width of the tables of tokens, segments and learned positions, whose sum then goes through
            a linear map to `d_model`, as in ALBERT; `None` for `d_model`, and no map.
    """

    context_len: Positive
    vocab_size: Positive | None = None
    d_in: Positive | None = None
    stack: StackConfig = StackConfig()
    num_segments: Natural = 0
    use_class_token: bool = False
    embedding_norm: bool = False
    embedding_width: Positive | None = None

    def __post_init__(self):
        if (self.vocab_size is None) == (self.d_in is None):
            raise ValueError(
                f"vocab_size is {self.vocab_size} and d_in is {self.d_in}; expected one of them: vocab_size for texts, "
                "d_in for tokens that are rows of numbers."
            )
        check_fields(self)
        if self.embedding_width is not None and (self.d_in is not None or self.use_class_token):
            raise ValueError(
                f"embedding_width={self.embedding_width} is the width of a table of tokens; expected vocab_size rather "
                "than d_in, and no class token, which is not in the table."
            )

    @property
    def entry(self) -> StackConfig:
        """The stack as the tables, the learned positions and the first norm see it, which may be narrower."""
        width = self.embedding_width
        return self.stack if width is None else dataclasses.replace(self.stack, d_model=width, num_heads=1)


class AbstractEncoder(eqx.Module):
    """What the encoder of texts and the one of rows share: all but the embedding of what comes in."""

    class_token: eqx.AbstractVar[Float[Array, " d_model"] | None]
    segment_embedding: eqx.AbstractVar[TokenEmbedding | None]
    embedding_norm: eqx.AbstractVar[Norm | None]
    stack: eqx.AbstractVar[Stack]
    config: eqx.AbstractVar[EncoderConfig]

    @abc.abstractmethod
    def embed(self, inputs, is_token=None, segments=None) -> Float[Array, "*batch rows d_model"]:
        """Return the rows that enter the first block, a class token in front if there is one."""

    def __call__(
        self,
        inputs,
        is_token: Bool[Array, "*batch seq"] | None = None,
        segments: Integer[Array, "*batch seq"] | None = None,
        *,
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "*batch rows d_model"]:
        """Return a vector for each token, from the whole text.

        `inputs` are ids, `(*batch, seq)`, or for `RowEncoder` rows of numbers, `(*batch, seq, d_in)`. The class token,
        if there is one, is a further row in front. `is_token` says `False` where a shorter text is padded, on the
        right, as positions count from the left: nobody attends to padding, and its own rows mean nothing. `segments`
        numbers the segment of each token. With a random `key`, as in training, dropout is on. Raises `ValueError` if a
        text is empty, all padding or longer than `context_len`, or an id is out of range.
        """
        return self.stack.normalise(self.read(inputs, is_token, segments, key=key))

    def read(self, inputs, is_token=None, segments=None, *, key=None) -> Float[Array, "*batch rows d_model"]:
        """Return the rows that the last block returns, before the norm at the end; arguments as for a call."""
        x = self.embed(inputs, is_token, segments)
        return named("stack", self.stack)(x, self._mask(is_token), key=key)

    def check(self, inputs, is_token=None, segments=None) -> None:
        """Raise as a call does, for inputs that are none."""
        self.embed(inputs, is_token, segments)
        self._mask(is_token)

    def residual_stream(
        self, inputs, is_token=None, segments=None, *, key: PRNGKeyArray | None = None
    ) -> list[Float[Array, "*batch rows d_model"]]:
        """Return what enters the first block and what leaves each; arguments as for a call."""
        return self.stack.stream_in(look(self.read, inputs, is_token, segments, key=key)[1])

    def attention_weights(self, inputs, is_token=None, segments=None) -> Float[Array, "*batch layers heads rows rows"]:
        """Return the attention weights of every block and head; arguments as for a call."""
        return self.stack.weights_in(look(self.read, inputs, is_token, segments)[1])

    def _with_marks(self, x, segments) -> Float[Array, "*batch rows d_model"]:
        """Embedded tokens with their segments, and the class token in front of them."""
        check_length("A text", x.shape[-2], self.config.context_len, "context_len")
        if segments is None and self.config.num_segments == 1:
            segments = jnp.zeros(x.shape[:-1], int)
        if (segments is None) != (self.segment_embedding is None):
            num = self.config.num_segments
            raise ValueError(
                f"segments are {'missing' if segments is None else 'given'}; expected "
                f"{f'one of {num} numbers for each token' if num else 'none'}, as num_segments is {num}."
            )
        if self.segment_embedding is not None:
            x = x + self.segment_embedding(segments)
        if self.class_token is not None:
            first = jnp.broadcast_to(self.class_token, (*x.shape[:-2], 1, x.shape[-1]))
            x = jnp.concatenate([first, x], axis=-2)
        return x

    def _mask(self, is_token) -> Mask:
        """Nobody attends to padding."""
        if is_token is None:
            return Mask()
        empty = ~is_token.any(axis=-1)
        is_token = refuse(is_token, empty, "is_token", "a token in each text: leave out what is all padding.")
        if self.class_token is not None:
            is_token = jnp.concatenate([jnp.ones((*is_token.shape[:-1], 1), bool), is_token], axis=-1)
        return Mask(is_token=is_token)


class Encoder(AbstractEncoder):
    r"""An encoder: it turns a text into one vector per token, each of which knows of the whole text.

    Implements `eq-encoder-model` and, with an `embedding_width`, `eq-pretrained-narrow`; Vaswani et al. (2017), section
    3.1; Devlin et al. (2019), section 3.

    `embedding_map` is the linear map of narrower tables to `d_model` in Lan et al. (2020), section 3.1, or `None`.

    Differs from the papers:
        With sinusoidal positions, vectors of the vocabulary are multiplied by the root of `d_model`, as in `Decoder`; a
        class token is a vector of its own rather than an entry of the vocabulary, which can do the same.

    Example:
        Three tokens come in as ids, and each goes out as a vector that knows of the others.

        >>> stack = pf.StackConfig(d_model=8, num_layers=1, num_heads=2)
        >>> config = pf.EncoderConfig(vocab_size=65, context_len=16, stack=stack)
        >>> pf.Encoder(config, key=jax.random.key(0))(jnp.asarray([7, 2, 9])).shape
        (3, 8)
    """

    embedding: TokenEmbedding
    class_token: Float[Array, " d_model"] | None
    segment_embedding: TokenEmbedding | None
    embedding_norm: Norm | None
    embedding_map: Linear | None
    stack: Stack
    config: EncoderConfig = eqx.field(static=True)

    @checked
    def __init__(self, config: EncoderConfig, *, key: PRNGKeyArray):
        if config.vocab_size is None:
            rows = "plainformer.models.encoder.RowEncoder"
            raise ValueError(
                f"The configuration has d_in and no vocab_size; expected a vocabulary. For rows take {rows}."
            )
        embedding_key, *keys = _keys_of(config, key)
        self.config = config
        self.embedding = TokenEmbedding(config.vocab_size, config.entry.d_model, key=embedding_key)
        self.embedding_map = None
        if config.embedding_width is not None:
            sizes = config.embedding_width, config.stack.d_model
            self.embedding_map = Linear(*sizes, use_bias=config.stack.use_bias, key=jax.random.fold_in(key, 0))
        self.class_token, self.segment_embedding, self.embedding_norm, self.stack = _make_parts(config, None, keys)

    @checked
    def embed(
        self,
        inputs: Integer[Array, "*batch seq"],
        is_token: Bool[Array, "*batch seq"] | None = None,
        segments: Integer[Array, "*batch seq"] | None = None,
    ) -> Float[Array, "*batch rows d_model"]:
        """Return the rows that enter the first block, a class token in front if there is one."""
        x = add_positions(self._with_marks(self.embedding(inputs), segments), self.stack.scheme)
        x = x if self.embedding_norm is None else self.embedding_norm(x)
        return x if self.embedding_map is None else self.embedding_map(x)


class RowEncoder(AbstractEncoder):
    r"""An encoder whose tokens come in as rows of numbers, such as the patches of an image.

    Implements `eq-encoder-model`, with a linear map for an embedding; Dosovitskiy et al. (2021), equation 1.

    Args:
        config: a configuration with `d_in`.
        grid: how many patches an image is high and wide, for two-dimensional positions.
        key: random key.
    """

    embedding: Linear
    class_token: Float[Array, " d_model"] | None
    segment_embedding: TokenEmbedding | None
    embedding_norm: Norm | None
    stack: Stack
    config: EncoderConfig = eqx.field(static=True)

    @checked
    def __init__(self, config: EncoderConfig, *, grid: tuple[int, int] | None = None, key: PRNGKeyArray):
        if config.d_in is None:
            raise ValueError(
                "The configuration has vocab_size and no d_in; expected a width of rows. For texts take Encoder."
            )
        embedding_key, *keys = _keys_of(config, key)
        self.config, sizes = config, config.stack
        kinds: dict[str, Any] = {"use_bias": sizes.use_bias, "initialiser": unit_variance}
        self.embedding = Linear(config.d_in, sizes.d_model, **kinds, key=embedding_key)
        grid = None if grid is None else two_sides("grid", grid)
        self.class_token, self.segment_embedding, self.embedding_norm, self.stack = _make_parts(config, grid, keys)

    @property
    def d_in(self) -> int | None:
        """The number of features of each row."""
        return self.config.d_in

    @checked
    def embed(
        self,
        inputs: Float[Array, "*batch seq d_in"],
        is_token: Bool[Array, "*batch seq"] | None = None,
        segments: Integer[Array, "*batch seq"] | None = None,
    ) -> Float[Array, "*batch rows d_model"]:
        """Return the rows that enter the first block, a class token in front if there is one."""
        # NaN in padding would spoil the gradients of the weights.
        rows = inputs if is_token is None else jnp.where(is_token[..., None], inputs, 0)
        x = embed_by(self.stack.scheme, self._with_marks(self.embedding(rows), segments))
        return x if self.embedding_norm is None else self.embedding_norm(x)


def make_encoder(config: EncoderConfig, *, key: PRNGKeyArray) -> Encoder | RowEncoder:
    """Make the encoder of texts or the one of rows, as a configuration says."""
    return (RowEncoder if config.vocab_size is None else Encoder)(config, key=key)


def _keys_of(config: EncoderConfig, key: PRNGKeyArray):
    """A key each for embedding, class token, segments, scheme and every block."""
    return jax.random.split(key, 4 + config.stack.num_layers)


def _make_parts(config: EncoderConfig, grid: tuple[int, int] | None, keys):
    """The class token, the table of segments, the norm of what enters, and the stack."""
    class_key, segment_key, scheme_key, *block_keys = keys
    sizes, has_class_token, num_segments = config.entry, config.use_class_token, config.num_segments
    class_token = 0.02 * normal(class_key, (sizes.d_model,)) if has_class_token else None
    segment_embedding = TokenEmbedding(num_segments, sizes.d_model, key=segment_key) if num_segments else None
    norm, max_len = make_norm(sizes) if config.embedding_norm else None, config.context_len + has_class_token
    scheme = make_scheme(sizes, max_len, causal=False, grid=grid, class_token=has_class_token, key=scheme_key)
    return class_token, segment_embedding, norm, Stack(config.stack, scheme, keys=block_keys)
