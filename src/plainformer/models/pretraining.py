"""Learning by guessing hidden tokens, and from few labels afterwards (chapter on the encoder)."""

import dataclasses
from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from plainformer.attention.self_attention import at_least_float32
from plainformer.blocks.layers import ACTIVATIONS, Norm, dropout, split_key
from plainformer.checks import (
    Natural,
    Positive,
    Rate,
    check_each,
    check_fields,
    checked,
    ids_in_range,
    refuse,
    says_where,
)
from plainformer.data.named_batches import LabelledBatch, MaskedBatch, check_kind
from plainformer.models.config import GATES, make_norm
from plainformer.models.encoder import AbstractEncoder, Encoder, EncoderConfig, RowEncoder, make_encoder
from plainformer.seeing import within
from plainformer.tokens.tokens import Linear, linear
from plainformer.training.losses import cross_entropy

Pooling = Literal["class", "mean"]


@checked
def mask_tokens(
    tokens: Integer[Array, "*shape"],
    is_maskable: Bool[Array, "*shape"],
    *,
    mask_token: Natural,
    vocab_size: Positive,
    first_ordinary: Natural = 0,
    fraction: Rate = 0.15,
    key: PRNGKeyArray,
) -> tuple[Integer[Array, "*shape"], Bool[Array, "*shape"]]:
    r"""Select some tokens to be guessed, and hide most of them.

    Implements `eq-encoder-masking`; Devlin et al. (2019), section 3.1: of the selected tokens, 80 % become the mask
    token, 10 % a token drawn at random, and 10 % stay what they are.

    Args:
        is_maskable: `True` where a token may be selected; `False` for padding.
        mask_token: the id that stands for a hidden token.
        first_ordinary: ids below this one are special: never selected, and never drawn at random.
        fraction: the probability with which a token that may be selected is selected, each on its own.

    Returns:
        The tokens, with the selected ones changed, int32; and `is_selected`, `True` where the model has to guess what
        the token was, also if it stayed.

    Differs from the paper:
        Its 15 % are a fixed share of each text, rounded, and here a probability: a short text may have no selected
        token, or several.
    """
    for name, token in {"mask_token": mask_token, "first_ordinary": first_ordinary}.items():
        ids_in_range(np.asarray(token), vocab_size, name, hint="")
    if not isinstance(tokens, jax.core.Tracer):  # in a compiled function, the model finds an id that is none
        ids_in_range(np.asarray(tokens), vocab_size, "tokens")
    tokens = jnp.asarray(tokens, jnp.int32)
    select_key, fate_key, draw_key = jax.random.split(key, 3)
    is_selected = is_maskable & (tokens >= first_ordinary) & jax.random.bernoulli(select_key, fraction, tokens.shape)
    fate = jax.random.uniform(fate_key, tokens.shape)
    drawn = jax.random.randint(draw_key, tokens.shape, first_ordinary, vocab_size)
    changed = jnp.where(fate < 0.8, mask_token, jnp.where(fate < 0.9, drawn, tokens))
    return jnp.where(is_selected, changed, tokens), is_selected


class EncoderHead(eqx.Module):
    """A model that stands on an encoder, and shows what is inside it."""

    encoder: eqx.AbstractVar[AbstractEncoder]

    @checked
    def residual_stream(
        self, inputs, is_token=None, segments=None, *, key: PRNGKeyArray | None = None
    ) -> list[Float[Array, "*batch rows d_model"]]:
        """Return what enters the first block and what leaves each; arguments as for a call."""
        return self.encoder.residual_stream(inputs, is_token, segments, key=key)

    def _read(self, inputs, is_token=None, segments=None, *, key=None) -> Float[Array, "*batch rows d_model"]:
        """The rows that the encoder's last block returns."""
        return within("encoder", self.encoder.read)(inputs, is_token, segments, key=key)

    def attention_weights(self, inputs, is_token=None, segments=None) -> Float[Array, "*batch layers heads rows rows"]:
        """Return the attention weights of every block and head; arguments as for a call."""
        return self.encoder.attention_weights(inputs, is_token, segments)


class MaskedLanguageModel(EncoderHead):
    r"""A masked language model: for each token of a text, logits of what it was before some were hidden.

    Implements `eq-encoder-mlm-head`; Devlin et al. (2019), section 3.1, task 1; the head as in their code. It ends in
    the transposed table of the encoder's embedding, which is thereby used twice.

    Differs from the paper:
        It differs where the configuration does: the head has the encoder's activation, without the gate where there is
        one, its norm, and biases if `use_bias`.
    """

    encoder: Encoder
    head: Linear
    head_norm: Norm
    output_bias: Float[Array, " vocab_size"] | None
    config: EncoderConfig = eqx.field(static=True)

    @checked
    def __init__(self, config: EncoderConfig, *, key: PRNGKeyArray):
        if config.vocab_size is None:
            raise ValueError("The configuration has d_in and no vocab_size; expected a vocabulary to guess from.")
        self.config, sizes = config, config.stack
        encoder_key, head_key = jax.random.split(key)
        self.encoder = Encoder(config, key=encoder_key)
        self.head = Linear(sizes.d_model, config.entry.d_model, use_bias=sizes.use_bias, key=head_key)
        self.head_norm = make_norm(config.entry)
        self.output_bias = jnp.zeros(config.vocab_size) if sizes.use_bias else None

    def __call__(
        self,
        inputs: Integer[Array, "*batch seq"],
        is_token: Bool[Array, "*batch seq"] | None = None,
        segments: Integer[Array, "*batch seq"] | None = None,
        *,
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "*batch seq vocab_size"]:
        """Return logits for each token of a text; arguments and errors as for `Encoder`. A class token gets none."""
        return self.logits(self._read(inputs, is_token, segments, key=key))

    @checked
    def logits(self, x: Float[Array, "*batch rows d_model"]) -> Float[Array, "*batch seq vocab_size"]:
        """Turn rows that the last block returned into logits."""
        x = within("encoder", self.encoder.stack.normalise)(x)
        x = x[..., 1:, :] if self.config.use_class_token else x
        name = self.config.stack.activation
        x = self.head_norm(ACTIVATIONS[GATES.get(name, name)](self.head(x)))
        return linear(x, self.encoder.embedding.weight.T, self.output_bias)


@checked
def masked_token_loss(model: Callable, batch: MaskedBatch, key: PRNGKeyArray | None = None) -> Float[Array, ""]:
    r"""Mean cross-entropy of a masked language model at the selected tokens, in nats; 0 if none is selected.

    Implements `eq-encoder-masked-loss`; Devlin et al. (2019), section 3.1, task 1. With a random `key`, dropout is on.
    """
    check_kind(batch, MaskedBatch)
    return cross_entropy(model(*batch.read, key=key), batch.targets, batch.is_selected)


@checked
def mean_pool(
    rows: Float[Array, "*batch seq d_model"], is_token: Bool[Array, "*batch seq"] | None = None
) -> Float[Array, "*batch d_model"]:
    r"""Make one vector of a text's vectors: their mean, without padding.

    Implements `eq-encoder-mean-pool`; Reimers and Gurevych (2019), section 3. Padding, where `is_token` is `False`,
    counts neither above nor below the fraction line.
    """
    check_each(Positive, seq=rows.shape[-2])
    if is_token is None:
        return rows.mean(axis=-2)
    empty = ~is_token.any(axis=-1)
    is_token = refuse(is_token, empty, "is_token", "a token in each text: leave out what is all padding.")
    total = at_least_float32(jnp.where(is_token[..., None], rows, 0)).sum(axis=-2)
    return (total / is_token.sum(axis=-1, keepdims=True).astype(total.dtype)).astype(rows.dtype)


@says_where
@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassifierConfig:
    r"""All that makes a classifier what it is, but for its learned numbers.

    With `pooling="class"` a text is judged by its first row, which is that of the class token or, if there is none, of
    the text's first token; with `"mean"`, by the mean of its tokens' rows. With a `pooler` this vector goes through
    one more linear map and a hyperbolic tangent, as in the code of BERT.
    """

    encoder: EncoderConfig
    num_classes: Positive
    pooling: Pooling = "class"
    pooler: bool = False

    def __post_init__(self):
        check_fields(self)


class EncoderClassifier(EncoderHead):
    r"""A classifier: an encoder, one vector for each text, and a linear map of it to logits of the classes.

    Implements `eq-encoder-classifier`; Devlin et al. (2019), section 3.2. To start from an encoder that was trained on
    something else: `eqx.tree_at(lambda model: model.encoder, classifier, encoder)`.

    Differs from the paper:
        Its code has a `pooler`, which is one more layer with a hyperbolic tangent, and can be left out here.
    """

    encoder: Encoder | RowEncoder
    pooler: Linear | None
    output: Linear
    config: ClassifierConfig = eqx.field(static=True)

    @checked
    def __init__(self, config: ClassifierConfig, *, key: PRNGKeyArray):
        self.config, sizes = config, config.encoder.stack
        encoder_key, output_key = jax.random.split(key)
        pooler_key = jax.random.fold_in(key, 2)
        self.encoder = make_encoder(config.encoder, key=encoder_key)
        self.pooler = None
        if config.pooler:
            self.pooler = Linear(sizes.d_model, sizes.d_model, use_bias=sizes.use_bias, key=pooler_key)
        self.output = Linear(sizes.d_model, config.num_classes, use_bias=sizes.use_bias, key=output_key)

    def __call__(
        self,
        inputs,
        is_token: Bool[Array, "*batch seq"] | None = None,
        segments: Integer[Array, "*batch seq"] | None = None,
        *,
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "*batch num_classes"]:
        """Return logits of the classes for each text; arguments and errors as for `Encoder`.

        With a random `key`, entries of the pooled vector are dropped, too.
        """
        encoder_key, key = split_key(key, 2)
        return self.logits(self._read(inputs, is_token, segments, key=encoder_key), is_token, key=key)

    @checked
    def logits(
        self,
        x: Float[Array, "*batch rows d_model"],
        is_token: Bool[Array, "*batch seq"] | None = None,
        *,
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "*batch num_classes"]:
        """Turn rows that the last block returned into logits; `is_token` and `key` as for a call."""
        rows, config = within("encoder", self.encoder.stack.normalise)(x), self.config
        if config.pooling == "class":
            pooled = rows[..., 0, :]
        else:  # the class token, if there is one, is none of the text's own tokens
            pooled = mean_pool(rows[..., 1:, :] if config.encoder.use_class_token else rows, is_token)
        pooled = pooled if self.pooler is None else jnp.tanh(self.pooler(pooled))
        return self.output(dropout(pooled, config.encoder.stack.dropout_rate, key=key))


@checked
def classification_loss(model: Callable, batch: LabelledBatch, key: PRNGKeyArray | None = None) -> Float[Array, ""]:
    r"""Mean cross-entropy of a classifier on a batch of labelled examples, in nats.

    Implements `eq-encoder-classification-loss`; Devlin et al. (2019), section 4.1. With a random `key`, dropout is on.
    """
    check_kind(batch, LabelledBatch)
    return cross_entropy(model(*batch.read, key=key), batch.labels)
