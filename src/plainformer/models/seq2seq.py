"""Sequence to sequence: an encoder reads a source, and a decoder writes a target while looking at it."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from plainformer.attention.cache import KeyValueCache, ready_to_extend
from plainformer.attention.delta import CachePart
from plainformer.attention.few_bits import Bits
from plainformer.attention.mask import Mask
from plainformer.blocks.blocks import CrossBlock
from plainformer.blocks.layers import split_key
from plainformer.checks import Natural, Positive, check_fields, check_length, checked, refuse, says_where
from plainformer.models.config import StackConfig, make_scheme
from plainformer.models.depth import Stack
from plainformer.models.encoder import Encoder, EncoderConfig
from plainformer.positions.positions import add_positions
from plainformer.seeing import look, named
from plainformer.tokens.tokens import Linear, TokenEmbedding, linear


@says_where
@dataclasses.dataclass(frozen=True)
class Seq2SeqConfig:
    r"""All that makes an encoder–decoder what it is, but for its learned numbers.

    Args:
        vocab_size: number of tokens in the vocabulary of the target, and of the source unless it has its own.
        context_len, source_len: the longest target, start token included, and the longest source, in tokens.
        start_token, stop_token: the ids that every target begins and ends with; they may be one and the same.
        source_vocab_size: number of tokens in the source's own vocabulary; `None` for one vocabulary and one table of
            embeddings for both.
        encoder, decoder: sizes and kinds of the blocks of both halves, of one `d_model`.
        tied_embedding: whether the output uses the target's table, transposed, rather than a matrix of its own.
        output_bias: whether the output adds a bias to the logits.
    """

    vocab_size: Positive
    context_len: Positive
    source_len: Positive
    start_token: Natural
    stop_token: Natural
    source_vocab_size: Positive | None = None
    encoder: StackConfig = StackConfig(num_layers=2)
    decoder: StackConfig = StackConfig(num_layers=2)
    tied_embedding: bool = True
    output_bias: bool = False

    def __post_init__(self):
        check_fields(self)
        if self.output_bias and self.tied_embedding:
            raise ValueError("output_bias is for an output with a matrix of its own; expected tied_embedding=False.")
        for name, token in {"start_token": self.start_token, "stop_token": self.stop_token}.items():
            refuse(token, token >= self.vocab_size, name, f"0 to {self.vocab_size - 1}, an id of the vocabulary.")
        if self.encoder.d_model != self.decoder.d_model:
            raise ValueError(
                f"The encoder has d_model={self.encoder.d_model}, the decoder {self.decoder.d_model}; expected the "
                "same, since one reads what the other returns."
            )

    def encoder_config(self) -> EncoderConfig:
        """Return the configuration of the half that reads the source."""
        vocab_size = self.vocab_size if self.source_vocab_size is None else self.source_vocab_size
        return EncoderConfig(vocab_size=vocab_size, context_len=self.source_len, stack=self.encoder)


class Seq2Seq(eqx.Module):
    r"""An encoder–decoder transformer: it gives a distribution over the target's next token, given the whole source.

    Implements `eq-seq2seq-model`; Vaswani et al. (2017), section 3.1.

    `embedding`, of the target's tokens, is `None` if they share the encoder's.

    Differs from the paper:
        The last matrix of every sublayer of the decoder starts smaller, as in `Decoder`; vectors of tokens are
        multiplied by the root of `d_model` with sinusoidal positions only.

    Example:
        Source and target have three tokens each; there are logits at each token of the target.

        >>> stack = pf.StackConfig(d_model=8, num_layers=1, num_heads=2)
        >>> config = pf.Seq2SeqConfig(65, 16, 16, start_token=0, stop_token=1, encoder=stack, decoder=stack)
        >>> model = pf.Seq2Seq(config, key=jax.random.key(0))
        >>> model(source=jnp.asarray([7, 2, 9]), target=jnp.asarray([0, 5, 4])).shape
        (3, 65)
    """

    encoder: Encoder
    embedding: TokenEmbedding | None
    stack: Stack
    output: Linear | None
    config: Seq2SeqConfig = eqx.field(static=True)

    @checked
    def __init__(self, config: Seq2SeqConfig, *, key: PRNGKeyArray):
        self.config, sizes = config, config.decoder
        keys = jax.random.split(key, 4 + sizes.num_layers)
        encoder_key, embedding_key, scheme_key, output_key, *block_keys = keys
        self.encoder = Encoder(config.encoder_config(), key=encoder_key)
        self.embedding = None
        if config.source_vocab_size is not None:
            self.embedding = TokenEmbedding(config.vocab_size, sizes.d_model, key=embedding_key)
        scheme = make_scheme(sizes, config.context_len, causal=True, key=scheme_key)
        self.stack = Stack(sizes, scheme, keys=block_keys, cross_attention=True, small_start=True)
        self.output = None
        if not config.tied_embedding:
            self.output = Linear(sizes.d_model, config.vocab_size, use_bias=config.output_bias, key=output_key)

    @checked
    def __call__(
        self,
        source: Integer[Array, "*batch source_seq"],
        target: Integer[Array, "*batch target_seq"],
        is_source: Bool[Array, "*batch source_seq"] | None = None,
        *,
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "*batch target_seq vocab_size"]:
        """Return, at every token of a target, logits for the token that comes next, given all of the source.

        `target` begins with the start token: in training it is the true target (teacher forcing). Row n depends on the
        source and on target tokens 0 to n. `is_source` says `False` where a source is padded. Targets are padded on the
        right, where no mask is needed: no token looks ahead. With a random `key`, as in training, dropout is on. Raises
        `ValueError` as an encoder and a decoder do, and if a target does not begin with the start token.
        """
        return self.logits(self._read(source, target, is_source, key=key))

    def _read(self, source, target, is_source=None, *, key=None) -> Float[Array, "*batch target_seq d_model"]:
        """The rows that the decoder's last block returns."""
        encoder_key, key = split_key(key, 2)
        context = named("encoder", self.encode)(source, is_source, key=encoder_key)
        reading = {"context": context, "context_mask": None if is_source is None else Mask(is_token=is_source)}
        return named("stack", self.stack)(self._embed(target), Mask(causal=True), **reading, key=key)

    def residual_stream(
        self, source, target, is_source=None, *, key: PRNGKeyArray | None = None
    ) -> list[Float[Array, "*batch target_seq d_model"]]:
        """Return what enters the decoder's first block and what leaves each; arguments as for a call."""
        return self.stack.stream_in(look(self._read, source, target, is_source, key=key)[1])

    def attention_weights(
        self, source, target, is_source=None
    ) -> Float[Array, "*batch layers heads target_seq target_seq"]:
        """Return the weights of the decoder's self-attention, of every block and head; arguments as for a call."""
        return self.stack.weights_in(look(self._read, source, target, is_source)[1])

    def cross_attention_weights(
        self, source, target, is_source=None
    ) -> Float[Array, "*batch layers heads target_seq source_seq"]:
        """Return how much each target token reads from each source token, in every block and head; as for a call.

        Implements `eq-seq2seq-cross-attention`; Vaswani et al. (2017), section 3.2.3.
        """
        return self.stack.weights_in(look(self._read, source, target, is_source)[1], "cross_attention")

    @checked
    def encode(
        self,
        source: Integer[Array, "*batch source_seq"],
        is_source: Bool[Array, "*batch source_seq"] | None = None,
        *,
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "*batch source_seq d_model"]:
        """Return what the decoder reads of a source: one vector per token, from the whole of it; as for a call."""
        check_length("source", source.shape[-1], self.config.source_len, "source_len")
        return self.encoder(source, is_source, key=key)

    @checked
    def condition_on(
        self, source: Integer[Array, "*batch source_seq"], is_source: Bool[Array, "*batch source_seq"] | None = None
    ) -> "ConditionedSeq2Seq":
        """Return the model that writes targets of these sources, for `generate` and `beam_search`; as for a call.

        The encoder runs once, here, and so do the keys and values that cross-attention makes of what it returns. Each
        source needs a prompt, which begins with the start token, and writing ends at the stop token if it is among
        `stop_tokens`. Several sources are padded by `pf.data.pad_texts`. `pf.translate` does all of this.

        Example:
            The date of `pf.translate`.

            >>> model, tokenizer = pf.load_pretrained("seq2seq")
            >>> conditioned = model.condition_on(jnp.asarray(tokenizer.encode("17 July 1987")))
            >>> start, stop = model.config.start_token, model.config.stop_token
            >>> pf.generate(conditioned, [start], 11, temperature=0.0, stop_tokens=[stop], tokenizer=tokenizer).text
            '1987-07-17'
        """
        source, is_source = jnp.atleast_2d(source), None if is_source is None else jnp.atleast_2d(is_source)
        check_length("source", source.shape[-1], self.config.source_len, "source_len")
        self.encoder.check(source, is_source)  # names a bad value, which a compiled function cannot do
        return conditioned(self, source, is_source)

    @checked
    def logits(self, x: Float[Array, "*batch seq d_model"]) -> Float[Array, "*batch seq vocab_size"]:
        """Turn rows that the last block returned into logits."""
        x = self.stack.normalise(x)
        return linear(x, self._table.weight.T) if self.output is None else self.output(x)

    @property
    def _table(self) -> TokenEmbedding:
        """The embedding of the target's tokens, which is the encoder's if both share one."""
        return self.encoder.embedding if self.embedding is None else self.embedding

    def _embed(self, target, positions=None) -> Float[Array, "*batch seq d_model"]:
        start, seq = self.config.start_token, target.shape[-1]
        check_length("target", seq, self.config.context_len, "context_len")
        places = jnp.arange(seq) if positions is None else positions
        # Widened before: in the 8 bits of bytes a start token of 256 would be 0.
        bad = (places == 0) & (target.astype(int) != start)
        target = refuse(target, bad, "target", f"the start token, {start}, at the beginning. Put it first.")
        positions = None if positions is None else jnp.maximum(positions, 0)  # those of padding are -1
        return add_positions(self._table(target), self.stack.scheme, positions)


class ConditionedSeq2Seq(eqx.Module):
    r"""An encoder–decoder that has read its sources: a model of the target alone, for `generate` and the like.

    Implements `eq-seq2seq-factorisation`; Sutskever et al. (2014), equation 1: each target's probability, given its
    source, is a product over its tokens. `contexts` are the keys and values of all sources for each block, as
    `Seq2Seq.condition_on` makes them.
    """

    model: Seq2Seq
    contexts: tuple[KeyValueCache, ...]

    @property
    def config(self) -> Seq2SeqConfig:
        """The model's configuration."""
        return self.model.config

    def make_cache(
        self,
        capacity: int | None = None,
        *,
        batch: tuple[int, ...] = (),
        bits: Bits | None = None,
        group: int | None = None,
    ) -> tuple[CachePart, ...]:
        """Make an empty cache for `capacity` tokens of each target, a part per block; `None` for `context_len`.

        There must be as many texts as sources; with one source, any number: it is the source of all.
        """
        self._contexts_of(batch)
        capacity = self.config.context_len if capacity is None else capacity
        return self.model.stack.make_cache(capacity, batch=batch, bits=bits, group=group)

    def _contexts_of(self, batch: tuple[int, ...]) -> tuple[KeyValueCache, ...]:
        """What cross-attention reads for texts of these axes."""
        sources = self.contexts[0].batch
        if sources == batch:
            return self.contexts
        if sources != (1,):
            raise ValueError(
                f"There are {sources[0]} sources and texts of batch={batch}; expected one text for each source. "
                "Give as many prompts, or leave it to translate()."
            )
        return tuple(part.select(jnp.zeros(batch, int)) for part in self.contexts)

    @checked
    def extend(
        self,
        tokens: Integer[Array, "*batch seq"],
        cache: tuple[CachePart, ...],
        positions: Integer[Array, "*batch seq"] | None = None,
    ) -> tuple[Float[Array, "*batch seq d_model"], tuple[KeyValueCache, ...]]:
        """Read further tokens of targets of which the cache holds the beginnings, as `Decoder.extend` does."""
        cache, positions = ready_to_extend(cache, len(self.contexts), tokens, positions)
        contexts = self._contexts_of(tokens.shape[:-1])
        extend = named("stack", self.model.stack.extend)
        return extend(self.model._embed(tokens, positions), cache, positions, contexts=contexts)

    @checked
    def logits(self, x: Float[Array, "*batch seq d_model"]) -> Float[Array, "*batch seq vocab_size"]:
        """Turn rows that `extend` returned into logits."""
        return self.model.logits(x)


def conditioned(model: Seq2Seq, source, is_source) -> ConditionedSeq2Seq:
    """Return what `Seq2Seq.condition_on` does, for sources that have been looked at."""
    return ConditionedSeq2Seq(model, _contexts(model, source, is_source))


@eqx.filter_jit
def _contexts(model: Seq2Seq, source, is_source) -> tuple[KeyValueCache, ...]:
    context = model.encode(source, is_source)
    readers = [block.cross_attention for block in model.stack.blocks if isinstance(block, CrossBlock)]
    return tuple(reader.cache_context(context, is_source) for reader in readers)
