"""Learning from text without labels by guessing hidden tokens, and from few labels afterwards (chapter 07)."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from plainformer.blocks.layers import ACTIVATIONS, LayerNorm, RMSNorm, dropout, in_single_precision
from plainformer.checks import as_floats, check_axes, check_choice, check_fraction, check_positive
from plainformer.models.encoder import Encoder, EncoderConfig
from plainformer.tokens.tokens import linear_map
from plainformer.training.losses import cross_entropy

POOLINGS = ("class", "mean")


def mask_tokens(
    tokens: Integer[Array, "*shape"],
    is_maskable: Bool[Array, "*shape"],
    *,
    mask_token: int,
    vocab_size: int,
    first_ordinary: int = 0,
    fraction: float = 0.15,
    key: PRNGKeyArray,
) -> tuple[Integer[Array, "*shape"], Bool[Array, "*shape"]]:
    r"""Select some tokens to be guessed, and hide most of them.

    Implements `eq-encoder-masking`; Devlin et al. (2019), section 3.1: of the selected tokens, 80 % become the mask
    token, 10 % a token drawn at random, and 10 % stay what they are.

    **Arguments**

    - `tokens`: ids of any shape, such as `(batch, seq)`.
    - `is_maskable`: `True` where a token may be selected, of the same shape; `False` for padding.
    - `mask_token`: the id that stands for a hidden token.
    - `vocab_size`: the number of ids.
    - `first_ordinary`: ids below this one are special: never selected, and never drawn at random.
    - `fraction`: the probability with which a token that may be selected is selected, each on its own.
    - `key`: random key; the same key selects the same places.

    **Returns** the tokens, with the selected ones changed, int32; and `is_selected`, `True` where the model has to
    guess what the token was, also if it stayed. Both have the shape of `tokens`.

    **Raises** `ValueError` if shapes differ, or a size, `mask_token`, `first_ordinary` or `fraction` is out of range;
    `TypeError` if `tokens` are no whole numbers or `is_maskable` is not Boolean.

    **Differs from the paper**, whose 15 % are a fixed share of each text, rounded, and here a probability: a short text
    may have no selected token, or several.
    """
    check_positive(vocab_size=vocab_size)
    for name, number in {"mask_token": mask_token, "first_ordinary": first_ordinary}.items():
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise TypeError(f"{name} is {number!r}; expected a token id, such as 2.")
        if not 0 <= number < vocab_size:
            raise ValueError(f"{name} is {number}; expected 0 to {vocab_size - 1}, as there are {vocab_size} tokens.")
    check_fraction(fraction=fraction)
    axes = {f"axis_{number}": size for number, size in enumerate(getattr(tokens, "shape", ()))}
    check_axes("tokens", tokens, **axes)
    check_axes("is_maskable", is_maskable, "One for each token.", **axes)
    if not jnp.issubdtype(tokens.dtype, jnp.integer):
        raise TypeError(f"tokens are {tokens.dtype}; expected whole numbers, such as encode() returns.")
    if is_maskable.dtype != bool:
        raise TypeError(f"is_maskable holds {is_maskable.dtype}; expected bool, True where a token may be selected.")
    tokens = jnp.asarray(tokens, jnp.int32)
    select_key, fate_key, draw_key = jax.random.split(key, 3)
    is_selected = is_maskable & (tokens >= first_ordinary) & jax.random.bernoulli(select_key, fraction, tokens.shape)
    fate = jax.random.uniform(fate_key, tokens.shape)
    drawn = jax.random.randint(draw_key, tokens.shape, first_ordinary, vocab_size)
    changed = jnp.where(fate < 0.8, mask_token, jnp.where(fate < 0.9, drawn, tokens))
    return jnp.where(is_selected, changed, tokens), is_selected


class MaskedLanguageModel(eqx.Module):
    r"""A masked language model: for each token of a text, logits of what it was before some were hidden.

    Implements `eq-encoder-mlm-head`; Devlin et al. (2019), section 3.1, task 1; the head as in their code.

    **Arguments**

    - `config`: an `EncoderConfig` with a `vocab_size`.
    - `key`: random key for all weights.

    **Attributes** `config`; `encoder`; `head_weight`, `(d_model, d_model)`; `head_bias`, `(d_model,)`, or `None`;
    `head_norm`; `out_bias`, `(vocab_size,)`, or `None`. The head ends in the transposed table of the encoder's
    embedding, which is thereby used twice.

    **Raises** `ValueError` if the encoder reads rows of numbers, and thus has no vocabulary.

    **Differs from the paper** where the configuration does: the head has the encoder's activation, `"silu"` in place of
    `"swiglu"`, its norm, and biases if `use_bias`.
    """

    encoder: Encoder
    head_weight: Float[Array, "d_model d_model"]
    head_bias: Float[Array, " d_model"] | None
    head_norm: LayerNorm | RMSNorm
    out_bias: Float[Array, " vocab_size"] | None
    config: EncoderConfig = eqx.field(static=True)

    def __init__(self, config: EncoderConfig, *, key: PRNGKeyArray):
        if config.vocab_size is None:
            raise ValueError(
                "The configuration has d_in and no vocab_size; expected a vocabulary to guess tokens from."
            )
        self.config = config
        d_model, bias = config.d_model, config.use_bias
        encoder_key, head_key = jax.random.split(key)
        self.encoder = Encoder(config, key=encoder_key)
        self.head_weight = jax.nn.initializers.glorot_normal()(head_key, (d_model, d_model))
        self.head_bias = jnp.zeros(d_model) if bias else None
        self.head_norm = RMSNorm(d_model) if config.norm == "rms" else LayerNorm(d_model, use_bias=bias)
        self.out_bias = jnp.zeros(config.vocab_size) if bias else None

    def __call__(
        self,
        tokens: Integer[Array, "*num_texts seq"],
        is_token: Bool[Array, "*num_texts seq"] | None = None,
        segments: Integer[Array, "*num_texts seq"] | None = None,
        *,
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "*num_texts seq vocab_size"]:
        """Give logits for each token of a text, `(seq, vocab_size)`, or of several, `(num_texts, seq, vocab_size)`.

        Arguments and errors as for `Encoder`. A class token gets no logits.
        """
        rows = self.encoder(tokens, is_token, segments, key=key)
        rows = rows[..., 1:, :] if self.config.class_token else rows
        activation = ACTIVATIONS["silu" if self.config.activation == "swiglu" else self.config.activation]
        hidden = activation(linear_map(rows.reshape(-1, self.config.d_model), self.head_weight, self.head_bias))
        logits = linear_map(self.head_norm(hidden), self.encoder.embedding.weight.T, self.out_bias)
        return logits.reshape(*tokens.shape, -1)


def masked_token_loss(model, batch: tuple, key=None) -> Float[Array, ""]:
    r"""Give the mean cross-entropy of a masked language model at the selected tokens, in nats.

    Implements `eq-encoder-masked-loss`; Devlin et al. (2019), section 3.1, task 1.

    **Arguments**

    - `model`: such as a `MaskedLanguageModel`.
    - `batch`: the tokens after hiding, what they were before, `is_selected`, and perhaps `is_token` and `segments`,
      each `(batch, seq)`; the first and the third as `mask_tokens` returns them.
    - `key`: random key for dropout; `None` for none.

    **Returns** a scalar; 0 if no token is selected.
    """
    corrupted, targets, is_selected, *rest = batch
    return cross_entropy(model(corrupted, *rest, key=key), targets, is_selected)


def mean_pool(
    rows: Float[Array, "*num_texts seq d_model"], is_token: Bool[Array, "*num_texts seq"] | None = None
) -> Float[Array, "*num_texts d_model"]:
    r"""Make one vector of a text's vectors: their mean, without padding.

    Implements `eq-encoder-mean-pool`; Reimers and Gurevych (2019), section 3.

    **Arguments**

    - `rows`: one vector per token, `(seq, d_model)`, or with axes for texts before.
    - `is_token`: `False` for padding, which counts neither above nor below the fraction line, `(seq,)`, with the same
      axes before; `None` for none.

    **Returns** `(d_model,)`, with the same axes before.

    **Raises** `ValueError` if a shape is wrong, or a text is empty or all padding, which a compiled function finds when
    it runs; `TypeError` if `rows` are no floats or `is_token` is not Boolean.
    """
    rows = as_floats("rows", rows)
    if rows.ndim < 2:
        check_axes("rows", rows, seq=None, d_model=None)
    check_positive(seq=rows.shape[-2])
    if is_token is None:
        return rows.mean(axis=-2)
    axes = {f"axis_{number}": size for number, size in enumerate(rows.shape[:-1])}
    check_axes("is_token", is_token, "One for each row.", **axes)
    if is_token.dtype != bool:
        raise TypeError(f"is_token holds {is_token.dtype}; expected bool, True for a token, False for padding.")
    empty, message = ~is_token.any(axis=-1), "A text is all padding; expected at least one token in each. Leave it out."
    if isinstance(empty, jax.core.Tracer):
        is_token = eqx.error_if(is_token, empty, message)
    elif empty.any():
        raise ValueError(message)
    total = in_single_precision(jnp.where(is_token[..., None], rows, 0)).sum(axis=-2)
    return (total / is_token.sum(axis=-1, keepdims=True).astype(total.dtype)).astype(rows.dtype)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassifierConfig(EncoderConfig):
    r"""All that makes a classifier what it is, but for its learned numbers: an encoder's configuration and two more.

    **Arguments**

    - `num_classes`: how many kinds of text are told apart.
    - `pooling`: `"class"` judges a text by its first row, which is that of the class token or, if there is none, of the
      text's first token; `"mean"` by the mean of its tokens' rows.

    **Raises** as `EncoderConfig` does.
    """

    num_classes: int
    pooling: str = "class"

    def __post_init__(self):
        super().__post_init__()
        check_positive(num_classes=self.num_classes)
        check_choice("pooling", self.pooling, POOLINGS)


class EncoderClassifier(eqx.Module):
    r"""A classifier: an encoder, one vector for each text, and a linear map of it to logits of the classes.

    Implements `eq-encoder-classifier`; Devlin et al. (2019), section 3.2. To start from an encoder that was trained on
    something else: `eqx.tree_at(lambda model: model.encoder, classifier, encoder)`.

    **Arguments**

    - `config`: sizes and kinds of all parts.
    - `key`: random key for all weights.

    **Attributes** `config`; `encoder`; `out_weight`, `(d_model, num_classes)`; `out_bias`, `(num_classes,)`, or `None`.

    **Differs from the paper's code**, which has one more layer with a hyperbolic tangent before the output.
    """

    encoder: Encoder
    out_weight: Float[Array, "d_model num_classes"]
    out_bias: Float[Array, " num_classes"] | None
    config: ClassifierConfig = eqx.field(static=True)

    def __init__(self, config: ClassifierConfig, *, key: PRNGKeyArray):
        self.config = config
        encoder_key, out_key = jax.random.split(key)
        options = {field.name: getattr(config, field.name) for field in dataclasses.fields(EncoderConfig)}
        self.encoder = Encoder(EncoderConfig(**options), key=encoder_key)
        self.out_weight = jax.nn.initializers.glorot_normal()(out_key, (config.d_model, config.num_classes))
        self.out_bias = jnp.zeros(config.num_classes) if config.use_bias else None

    def __call__(
        self,
        inputs,
        is_token: Bool[Array, "*num_texts seq"] | None = None,
        segments: Integer[Array, "*num_texts seq"] | None = None,
        *,
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "*num_texts num_classes"]:
        """Give logits of the classes for a text, `(num_classes,)`, or for several, `(num_texts, num_classes)`.

        Arguments and errors as for `Encoder`. With a random `key`, entries of the pooled vector are dropped, too.
        """
        keys = [None] * 2 if key is None else jax.random.split(key)
        rows = self.encoder(inputs, is_token, segments, key=keys[0])
        if self.config.pooling == "class":
            pooled = rows[..., 0, :]
        else:  # the class token, if there is one, is none of the text's own tokens
            pooled = mean_pool(rows[..., 1:, :] if self.config.class_token else rows, is_token)
        pooled = dropout(pooled, self.config.dropout_rate, key=keys[1])
        logits = linear_map(pooled.reshape(-1, self.config.d_model), self.out_weight, self.out_bias)
        return logits.reshape(*pooled.shape[:-1], -1)


def classification_loss(model, batch: tuple, key=None) -> Float[Array, ""]:
    r"""Give the mean cross-entropy of a classifier on a batch of labelled examples, in nats.

    Implements `eq-encoder-classification-loss`; Devlin et al. (2019), section 4.1.

    **Arguments**

    - `model`: such as an `EncoderClassifier`; from inputs to logits, `(batch, num_classes)`.
    - `batch`: inputs, their labels, `(batch,)`, and perhaps `is_token` and `segments`, as the model takes them.
    - `key`: random key for dropout; `None` for none.

    **Returns** a scalar.
    """
    inputs, labels, *rest = batch
    return cross_entropy(model(inputs, *rest, key=key), labels)
