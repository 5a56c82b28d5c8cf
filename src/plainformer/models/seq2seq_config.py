"""The configuration of an encoder–decoder, and what its sources and targets must be like (chapter 08)."""

import dataclasses

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Bool, Integer

from plainformer.checks import check_axes, check_flags, check_positive, check_token_ids
from plainformer.models.encoder import EncoderConfig


@dataclasses.dataclass(frozen=True)
class Seq2SeqConfig:
    r"""All that makes an encoder–decoder what it is, but for its learned numbers.

    **Arguments**

    - `vocab_size`: number of tokens in the vocabulary of the target, and of the source unless it has its own.
    - `context_len`, `source_len`: the longest target, start token included, and the longest source, in tokens.
    - `start_token`, `stop_token`: the ids that every target begins and ends with; they may be one and the same.
    - `source_vocab_size`: number of tokens in the source's own vocabulary; `None` for one vocabulary and one table of
      embeddings for both.
    - `d_model`, `num_encoder_layers`, `num_decoder_layers`, `num_heads`: width of a token; blocks; heads in each.
    - `d_ff`: inner width of the token-wise networks; `None` for `4 * d_model`.
    - `placement`, `norm`, `activation`, `use_bias`: as for `TransformerBlock`.
    - `positions`: `"learned"`, `"sinusoidal"`, `"rotary"`, `"relative"`, `"alibi"` or `"none"`, in both halves.
    - `tied_embedding`: whether the output uses the target's table, transposed, rather than a matrix of its own.
    - `dropout_rate`: the probability with which an entry is dropped while training, after embeddings and in blocks.

    **Raises** `ValueError` if one of them is out of range; `TypeError` if it is not of its kind.
    """

    vocab_size: int
    context_len: int
    source_len: int
    start_token: int
    stop_token: int
    source_vocab_size: int | None = None
    d_model: int = 128
    num_encoder_layers: int = 2
    num_decoder_layers: int = 2
    num_heads: int = 4
    d_ff: int | None = None
    placement: str = "pre"
    norm: str = "layer"
    activation: str = "gelu"
    positions: str = "learned"
    tied_embedding: bool = True
    dropout_rate: float = 0.0
    use_bias: bool = True

    def __post_init__(self):
        given = ["source_vocab_size"] if self.source_vocab_size is not None else []
        sizes = ["vocab_size", "context_len", "source_len", "num_encoder_layers", "num_decoder_layers", *given]
        check_positive(**{name: getattr(self, name) for name in sizes})
        for name in ("start_token", "stop_token"):
            token = getattr(self, name)
            if isinstance(token, bool) or not isinstance(token, int | np.integer):
                raise TypeError(f"{name} is {token!r}; expected the id of a token, a whole number.")
            if not 0 <= token < self.vocab_size:
                raise ValueError(f"{name} is {token}; expected 0 to {self.vocab_size - 1}, an id of the vocabulary.")
        check_flags(tied_embedding=self.tied_embedding)
        self.encoder_config()  # checks what both halves share

    def encoder_config(self) -> EncoderConfig:
        """Give the configuration of the half that reads the source."""
        return EncoderConfig(
            vocab_size=self.vocab_size if self.source_vocab_size is None else self.source_vocab_size,
            context_len=self.source_len,
            num_layers=self.num_encoder_layers,
            **{name: getattr(self, name) for name in _SHARED},
        )


# What both halves have in common.
_SHARED = ["d_model", "num_heads", "d_ff", "placement", "norm", "activation", "positions", "dropout_rate", "use_bias"]


def as_sources(
    config: Seq2SeqConfig, source, is_source
) -> tuple[Integer[Array, "num_texts source_seq"], Bool[Array, "num_texts source_seq"] | None]:
    """Give sources with an axis `num_texts`, and which of their ids are tokens, `None` for all; or raise."""
    axes: dict[str, int | None] = {"source_seq": None}
    axes = {"num_texts": None, **axes} if getattr(source, "ndim", 1) == 2 else axes
    check_axes("source", source, "", **axes)
    seq = source.shape[-1]
    if not 1 <= seq <= config.source_len:
        raise ValueError(
            f"A source has {seq} tokens; expected 1 to source_len={config.source_len}. "
            + ("Cut it, or make a model with a larger source_len." if seq else "Give at least one.")
        )
    if not isinstance(source, jax.core.Tracer):
        for number, ids in enumerate(np.asarray(source).reshape(-1, seq)):
            try:
                check_token_ids(ids, config.encoder_config().vocab_size)
            except (ValueError, TypeError) as error:
                raise type(error)(f"Source {number}: {error}") from error
    if is_source is None:
        return source.reshape(-1, seq), None
    check_axes("is_source", is_source, "One for each token.", **dict(zip(axes, source.shape, strict=True)))
    if is_source.dtype != bool:
        raise TypeError(f"is_source holds {is_source.dtype}; expected bool, True for a token, False for padding.")
    empty = ~is_source.reshape(-1, seq).any(axis=1)
    if not isinstance(empty, jax.core.Tracer) and empty.any():
        number = int(np.argmax(empty))
        raise ValueError(f"Source {number} is all padding; expected at least one token in each. Leave it out.")
    return source.reshape(-1, seq), is_source.reshape(-1, seq)


def as_targets(config: Seq2SeqConfig, target) -> Integer[Array, "num_texts target_seq"]:
    """Give targets with an axis `num_texts`; or raise."""
    axes: dict[str, int | None] = {"target_seq": None}
    axes = {"num_texts": None, **axes} if getattr(target, "ndim", 1) == 2 else axes
    check_axes("target", target, "", **axes)
    seq = target.shape[-1]
    if not 1 <= seq <= config.context_len:
        raise ValueError(
            f"A target has {seq} tokens; expected 1 to context_len={config.context_len}. "
            + ("Cut it, or make a model with a larger context_len." if seq else "Begin with the start token.")
        )
    return target.reshape(-1, seq)


def begun(
    config: Seq2SeqConfig, targets: Integer[Array, "num_texts target_seq"], positions
) -> Integer[Array, "num_texts target_seq"]:
    """Give the targets, once it is known that what stands at position 0 is the start token; or raise."""
    start = config.start_token
    # Widened before: in the 8 bits of bytes a start token of 256 would be 0.
    wrong = (positions == 0) & (targets.astype(int) != start)
    if isinstance(wrong, jax.core.Tracer):  # no values to look at yet, so the check goes into the compiled function
        return eqx.error_if(targets, wrong, f"A target does not begin with the start token, {start}. Put it first.")
    if wrong.any():
        number, place = np.argwhere(wrong)[0]
        raise ValueError(
            f"Target {number} begins with {targets[number, place]}; expected the start token, {start}. Put it first."
        )
    return targets
