"""The encoder: a stack of blocks in which every token sees every other one (chapter 07)."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from plainformer.blocks.blocks import TransformerBlock, check_stack
from plainformer.blocks.layers import LayerNorm, RMSNorm, dropout
from plainformer.checks import as_floats, check_axes, check_flags, check_positive
from plainformer.positions.relative import new_positions
from plainformer.tokens.tokens import LinearEmbedding, TokenEmbedding


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    r"""All that makes an encoder what it is, but for its learned numbers.

    **Arguments**

    - `context_len`: the longest text that the model reads, in tokens, without a class token.
    - `vocab_size`: number of tokens in the vocabulary, for texts; or else
    - `d_in`: the number of features of each token that comes in as a row of numbers, such as a patch of an image.
    - `d_model`, `num_layers`, `num_heads`: width of a token; number of blocks; attention heads in each.
    - `d_ff`: inner width of the token-wise networks; `None` for `4 * d_model`.
    - `num_segments`: how many kinds of segment, such as question and answer, are told apart; 0 for none.
    - `class_token`: whether a learned row is put in front of every text, to gather what the whole of it says.
    - `embedding_norm`: whether what enters the first block is normalised, as in BERT.
    - `placement`, `norm`, `activation`, `use_bias`: as for `TransformerBlock`.
    - `positions`: `"learned"`, `"sinusoidal"`, `"rotary"`, `"relative"`, `"alibi"` or `"none"`.
    - `dropout_rate`: the probability with which an entry is dropped while training, after the embedding and in blocks.

    **Raises** `ValueError` if one of them is out of range, or if not exactly one of `vocab_size` and `d_in` is given;
    `TypeError` if one is not of its kind.
    """

    context_len: int
    vocab_size: int | None = None
    d_in: int | None = None
    d_model: int = 128
    num_layers: int = 4
    num_heads: int = 4
    d_ff: int | None = None
    num_segments: int = 0
    class_token: bool = False
    embedding_norm: bool = False
    placement: str = "pre"
    norm: str = "layer"
    activation: str = "gelu"
    positions: str = "learned"
    dropout_rate: float = 0.0
    use_bias: bool = True

    def __post_init__(self):
        if (self.vocab_size is None) == (self.d_in is None):
            raise ValueError(
                f"vocab_size is {self.vocab_size} and d_in is {self.d_in}; expected one of them: vocab_size for texts, "
                "d_in for tokens that are rows of numbers."
            )
        given = [name for name in ("vocab_size", "d_in") if getattr(self, name) is not None]
        given += ["num_segments"] if self.num_segments != 0 else []
        check_positive(**{name: getattr(self, name) for name in ("context_len", *given)})
        check_stack(self)
        check_flags(class_token=self.class_token, embedding_norm=self.embedding_norm)


class Encoder(eqx.Module):
    r"""An encoder: it turns a text into one vector per token, each of which knows of the whole text.

    Implements `eq-encoder-model`; Vaswani et al. (2017), section 3.1; Devlin et al. (2019), section 3.

    **Arguments**

    - `config`: sizes and kinds of all parts.
    - `key`: random key for all weights.

    **Attributes** `config`; `embedding`, of tokens or of rows; `class_vector`, `(d_model,)`, or `None`;
    `segment_embedding`, or `None`; `positions`, one of the schemes of chapter 05, or `None`; `embedding_norm`, or
    `None`; `blocks`, a tuple; `final_norm`, `None` with post-norm.

    **Differs from the papers**: with sinusoidal positions, vectors of the vocabulary are multiplied by the root of
    `d_model`, as in `Decoder`; a class token is a vector of its own rather than an entry of the vocabulary, which can
    do the same.
    """

    embedding: TokenEmbedding | LinearEmbedding
    class_vector: Float[Array, " d_model"] | None
    segment_embedding: TokenEmbedding | None
    positions: Any
    embedding_norm: LayerNorm | RMSNorm | None
    blocks: tuple[TransformerBlock, ...]
    final_norm: LayerNorm | RMSNorm | None
    config: EncoderConfig = eqx.field(static=True)

    def __init__(self, config: EncoderConfig, *, key: PRNGKeyArray):
        self.config = config
        d_model = config.d_model
        embedding_key, class_key, segment_key, positions_key, *block_keys = jax.random.split(key, 4 + config.num_layers)
        if config.vocab_size is not None:
            self.embedding = TokenEmbedding(config.vocab_size, d_model, key=embedding_key)
        elif config.d_in is not None:
            self.embedding = LinearEmbedding(config.d_in, d_model, use_bias=config.use_bias, key=embedding_key)
        self.class_vector = 0.02 * jax.random.normal(class_key, (d_model,)) if config.class_token else None
        self.segment_embedding = (
            TokenEmbedding(config.num_segments, d_model, key=segment_key) if config.num_segments else None
        )
        self.positions = new_positions(
            config.positions,
            d_model=d_model,
            num_heads=config.num_heads,
            max_len=config.context_len + config.class_token,
            causal=False,
            key=positions_key,
        )

        def new_norm():
            return RMSNorm(d_model) if config.norm == "rms" else LayerNorm(d_model, use_bias=config.use_bias)

        self.embedding_norm = new_norm() if config.embedding_norm else None
        self.blocks = tuple(
            TransformerBlock(
                d_model,
                config.num_heads,
                config.d_ff,
                placement=config.placement,
                norm=config.norm,
                activation=config.activation,
                dropout_rate=config.dropout_rate,
                use_bias=config.use_bias,
                key=block_key,
            )
            for block_key in block_keys
        )
        self.final_norm = new_norm() if config.placement == "pre" else None

    def __call__(
        self,
        inputs,
        is_token: Bool[Array, "*num_texts seq"] | None = None,
        segments: Integer[Array, "*num_texts seq"] | None = None,
        *,
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "*num_texts rows d_model"]:
        """Give a vector for each token of a text, from the whole of it.

        `inputs` is `(seq,)`, at most `context_len` ids, or, with `d_in`, `(seq, d_in)`; the result `(seq, d_model)`,
        with the class token, if there is one, as a further row in front. Several texts may be given at once, with an
        axis `num_texts` before; `is_token`, `(num_texts, seq)`, says `False` where a shorter one is padded, on the
        right, as positions count from the left: nobody attends to padding, and its own rows mean nothing. `segments`,
        of the same shape, numbers the segment of each token. With a random `key`, as in training, dropout is on. Raises
        `ValueError` if a text is empty, all padding or longer than the context, or an id is out of range; `TypeError`
        if `is_token` is not Boolean.
        """
        num_texts, seq, batch = self._check(inputs, is_token, segments)
        keys = [None] * (1 + len(self.blocks)) if key is None else jax.random.split(key, 1 + len(self.blocks))
        x = dropout(self._embed(inputs, is_token, segments, num_texts, seq), self.config.dropout_rate, key=keys[0])
        mask = self._mask(is_token, num_texts)
        for block, block_key in zip(self.blocks, keys[1:], strict=True):
            x = block(x, mask, position=self.positions, num_texts=num_texts, key=block_key)
        x = x if self.final_norm is None else self.final_norm(x)
        return x.reshape(*batch, -1, self.config.d_model)

    def weights(
        self, inputs, is_token: Bool[Array, " seq"] | None = None, segments: Integer[Array, " seq"] | None = None
    ) -> Float[Array, "layers heads rows rows"]:
        """The attention weights of every block and head for a single text, `(num_layers, num_heads, rows, rows)`.

        Arguments as for a call; with a class token, its row and column are the first ones.
        """
        num_texts, seq, batch = self._check(inputs, is_token, segments)
        if batch:
            raise ValueError(f"There are {num_texts} texts; expected a single one: use jax.vmap for several.")
        x, mask = self._embed(inputs, is_token, segments, 1, seq), self._mask(is_token, 1)
        found = []
        for block in self.blocks:
            found.append(block.weights(x, mask, position=self.positions)[0])
            x = block(x, mask, position=self.positions)
        return jnp.stack(found)

    def _check(self, inputs, is_token, segments) -> tuple[int, int, tuple[int, ...]]:
        """Number of texts, their length, and the axis of texts if there is one, once all shapes are known to fit."""
        config = self.config
        axes: dict[str, int | None] = {"seq": None} if config.d_in is None else {"seq": None, "d_in": config.d_in}
        several = getattr(inputs, "ndim", 1) == 1 + len(axes)
        check_axes("inputs", inputs, "", **({"num_texts": None, **axes} if several else axes))
        shape = inputs.shape[: 1 + several]
        if not shape[0] and several:
            raise ValueError("There are 0 texts; expected at least one.")
        if not 1 <= shape[-1] <= config.context_len:
            raise ValueError(
                f"There are {shape[-1]} tokens; expected 1 to context_len={config.context_len}. "
                + ("Start with at least one." if not shape[-1] else "Cut the text, or make a longer table.")
            )
        axes = {"num_texts": shape[0], "seq": shape[1]} if several else {"seq": shape[0]}
        if is_token is not None:
            check_axes("is_token", is_token, "One for each token.", **axes)
            if is_token.dtype != bool:
                raise TypeError(f"is_token holds {is_token.dtype}; expected bool, True for a token, False for padding.")
            empty = ~is_token.any(axis=-1)
            if not isinstance(empty, jax.core.Tracer) and empty.any():
                number = int(np.argmax(empty))
                raise ValueError(f"Text {number} is all padding; expected at least one token in each. Leave it out.")
        if (segments is None) != (self.segment_embedding is None):
            expected = f"one of {config.num_segments} numbers for each token" if config.num_segments else "none"
            raise ValueError(
                f"segments are {'missing' if segments is None else 'given'}; this encoder, with num_segments="
                f"{config.num_segments}, wants {expected}."
            )
        if segments is not None:
            check_axes("segments", segments, "One for each token.", **axes)
        return (shape[0] if several else 1), shape[-1], shape[:-1]

    def _embed(self, inputs, is_token, segments, num_texts: int, seq: int) -> Float[Array, "rows d_model"]:
        """The rows that enter the first block, one text below the other, class tokens in front of each."""
        config = self.config
        flat = inputs.reshape(-1) if config.d_in is None else as_floats("inputs", inputs).reshape(-1, config.d_in)
        if config.d_in is not None and is_token is not None:
            flat = jnp.where(is_token.reshape(-1, 1), flat, 0)  # NaN in padding would spoil the weights' gradients
        x = self.embedding(flat)
        if self.segment_embedding is not None:
            x = x + self.segment_embedding(segments.reshape(-1))
        if self.class_vector is not None:
            first = jnp.broadcast_to(self.class_vector, (num_texts, 1, config.d_model))
            x = jnp.concatenate([first, x.reshape(num_texts, seq, -1)], axis=1).reshape(-1, config.d_model)
            seq += 1
        if config.positions == "sinusoidal" and config.vocab_size is not None:
            x = x * config.d_model**0.5
        if self.positions is not None:
            x = jax.vmap(self.positions.embed)(x.reshape(num_texts, seq, -1)).reshape(x.shape)
        return x if self.embedding_norm is None else self.embedding_norm(x)

    def _mask(self, is_token, num_texts: int) -> Bool[Array, "*several_texts rows rows"] | None:
        """Every token sees all tokens of its text, and no padding; a single text has no axis of texts."""
        if is_token is None:
            return None
        texts = is_token.reshape(num_texts, -1)
        message = "A text is all padding; expected at least one token in each. Leave it out."
        texts = eqx.error_if(texts, ~texts.any(axis=1), message)
        if self.class_vector is not None:
            texts = jnp.concatenate([jnp.ones((num_texts, 1), bool), texts], axis=1)
        mask = jnp.broadcast_to(texts[:, None, :], (num_texts, texts.shape[1], texts.shape[1]))
        return mask[0] if num_texts == 1 else mask
