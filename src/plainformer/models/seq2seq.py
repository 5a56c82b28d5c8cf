"""Sequence to sequence: an encoder reads a source, and a decoder writes a target while looking at it (chapter 08)."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from plainformer.attention.cache import KeyValueCache
from plainformer.attention.self_attention import causal_mask
from plainformer.blocks.blocks import TransformerBlock
from plainformer.blocks.layers import LayerNorm, RMSNorm, dropout
from plainformer.checks import check_axes
from plainformer.models.encoder import Encoder
from plainformer.models.seq2seq_config import Seq2SeqConfig, as_sources, as_targets, begun
from plainformer.positions.relative import new_positions
from plainformer.tokens.tokens import TokenEmbedding, linear_map


class Seq2Seq(eqx.Module):
    r"""An encoder–decoder transformer: it gives a distribution over the target's next token, given the whole source.

    Implements `eq-seq2seq-model`; Vaswani et al. (2017), section 3.1.

    **Arguments**

    - `config`: sizes and kinds of all parts.
    - `key`: random key for all weights.

    **Attributes** `config`; `encoder`, an `Encoder`; `embedding`, of the target's tokens, or `None` if they share the
    encoder's; `positions`, of the target, or `None`; `blocks`, a tuple, each with cross-attention; `final_norm`, `None`
    with post-norm; `output_weight`, `(d_model, vocab_size)`, or `None` if tied to the target's embedding.

    **Differs from the paper**: the last matrix of every sublayer of the decoder starts smaller by the root of their
    number, as in `Decoder`; vectors of tokens are multiplied by the root of `d_model` with sinusoidal positions only.
    """

    encoder: Encoder
    embedding: TokenEmbedding | None
    positions: Any
    blocks: tuple[TransformerBlock, ...]
    final_norm: LayerNorm | RMSNorm | None
    output_weight: Float[Array, "d_model vocab_size"] | None
    config: Seq2SeqConfig = eqx.field(static=True)

    def __init__(self, config: Seq2SeqConfig, *, key: PRNGKeyArray):
        self.config = config
        d_model, shared = config.d_model, config.source_vocab_size is None
        keys = jax.random.split(key, 4 + config.num_decoder_layers)
        encoder_key, embedding_key, positions_key, output_key, *block_keys = keys
        self.encoder = Encoder(config.encoder_config(), key=encoder_key)
        self.embedding = None if shared else TokenEmbedding(config.vocab_size, d_model, key=embedding_key)
        self.positions = new_positions(
            config.positions,
            d_model=d_model,
            num_heads=config.num_heads,
            max_len=config.context_len,
            causal=True,
            key=positions_key,
        )
        self.blocks = tuple(self._new_block(block_key) for block_key in block_keys)
        new_norm = RMSNorm(d_model) if config.norm == "rms" else LayerNorm(d_model, use_bias=config.use_bias)
        self.final_norm = new_norm if config.placement == "pre" else None
        self.output_weight = None
        if not config.tied_embedding:
            self.output_weight = jax.nn.initializers.glorot_normal()(output_key, (d_model, config.vocab_size))

    def _new_block(self, key: PRNGKeyArray) -> TransformerBlock:
        config = self.config
        kinds = {
            name: getattr(config, name) for name in ("placement", "norm", "activation", "dropout_rate", "use_bias")
        }
        block = TransformerBlock(config.d_model, config.num_heads, config.d_ff, cross_attention=True, key=key, **kinds)

        def last_matrices(block):
            return block.attention.output_weight, block.cross_attention.output_weight, block.feed_forward.out_weight

        # 3 num_decoder_layers sublayers add to each token: with smaller summands, their sum starts at the size of one.
        smaller = [matrix / (3 * config.num_decoder_layers) ** 0.5 for matrix in last_matrices(block)]
        return eqx.tree_at(last_matrices, block, smaller)

    def __call__(
        self,
        source: Integer[Array, "*num_texts source_seq"],
        target: Integer[Array, "*num_texts target_seq"],
        is_source: Bool[Array, "*num_texts source_seq"] | None = None,
        *,
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "*num_texts target_seq vocab_size"]:
        """Give, at every token of a target, logits for the token that comes next, given all of the source.

        `source` is `(source_seq,)`, at most `source_len` ids; `target` `(target_seq,)`, at most `context_len`, and
        begins with the start token: in training it is the true target (teacher forcing). The result is
        `(target_seq, vocab_size)`; row n depends on the source and on target tokens 0 to n. Several pairs may be given
        at once, with an axis `num_texts` before; `is_source`, of the same shape as `source`, says `False` where one is
        padded. Targets are padded on the right, where no mask is needed: no token looks ahead. With a random `key`, as
        in training, dropout is on. Raises `ValueError` if a text is empty or too long, a source is all padding, a
        target has no start token, an id is out of range, or there are not equally many of both; `TypeError` if
        `is_source` is not Boolean.
        """
        sources, is_source = as_sources(self.config, source, is_source)
        targets = as_targets(self.config, target)
        if len(sources) != len(targets) or source.ndim != target.ndim:
            raise ValueError(
                f"source has shape {source.shape}, target {target.shape}; expected as many targets as sources, one each."
            )
        num_texts, seq = targets.shape
        targets = begun(self.config, targets, jnp.arange(seq)[None, :])
        keys = [None] * (2 + len(self.blocks)) if key is None else jax.random.split(key, 2 + len(self.blocks))
        context = self.encoder(sources, is_source, key=keys[0]).reshape(-1, self.config.d_model)
        context_mask = _read_mask(is_source, seq)
        x = self._embed(targets, jnp.broadcast_to(jnp.arange(seq), targets.shape))
        x = dropout(x, self.config.dropout_rate, key=keys[1])
        for block, block_key in zip(self.blocks, keys[2:], strict=True):
            x = block(
                x,
                causal_mask(seq),
                context=context,
                context_mask=context_mask,
                position=self.positions,
                num_texts=num_texts,
                key=block_key,
            )
        return self.logits(x).reshape(*target.shape, -1)

    def encode(
        self,
        source: Integer[Array, "*num_texts source_seq"],
        is_source: Bool[Array, "*num_texts source_seq"] | None = None,
        *,
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "*num_texts source_seq d_model"]:
        """Give what the decoder reads of a source: one vector per token, from the whole of it; as for a call."""
        sources, is_tokens = as_sources(self.config, source, is_source)
        return self.encoder(sources, is_tokens, key=key).reshape(*source.shape, -1)

    def given(
        self,
        sources: Integer[Array, "*num_texts source_seq"],
        is_source: Bool[Array, "*num_texts source_seq"] | None = None,
    ) -> "Seq2SeqGiven":
        """Give the model that writes targets of these sources, for `generate` and `beam_search`; as for a call.

        The encoder runs once, here, and so do the keys and values that cross-attention makes of what it returns.
        """
        texts, is_tokens = as_sources(self.config, sources, is_source)
        is_tokens = jnp.ones(texts.shape, bool) if is_tokens is None else is_tokens
        return Seq2SeqGiven(self, _contexts(self, texts, is_tokens))

    def cross_weights(
        self,
        source: Integer[Array, " source_seq"],
        target: Integer[Array, " target_seq"],
        is_source: Bool[Array, " source_seq"] | None = None,
    ) -> Float[Array, "layers heads target_seq source_seq"]:
        """Say how much each target token reads from each source token, `(num_layers, num_heads, target, source)`.

        Implements `eq-seq2seq-cross-attention`; Vaswani et al. (2017), section 3.2.3. The weights of each block's
        cross-attention, for a single pair; arguments as for a call.
        """
        sources, is_tokens = as_sources(self.config, source, is_source)
        targets = as_targets(self.config, target)
        if source.ndim != 1 or target.ndim != 1:
            raise ValueError("There are several pairs; expected a single one, as vectors: use jax.vmap for several.")
        seq = targets.shape[1]
        targets = begun(self.config, targets, jnp.arange(seq)[None, :])
        context = self.encoder(sources, is_tokens)[0]
        x, mask, found = self._embed(targets, jnp.arange(seq)), _read_mask(is_tokens, seq), []
        for block in self.blocks:
            arguments: dict[str, Any] = {"context": context, "context_mask": mask, "position": self.positions}
            found.append(jnp.asarray(block.weights(x, causal_mask(seq), **arguments)[1]))
            x = block(x, causal_mask(seq), **arguments)
        return jnp.stack(found)

    def logits(self, x: Float[Array, "rows d_model"]) -> Float[Array, "rows vocab_size"]:
        """Turn rows that the last block returned, `(rows, d_model)`, into logits, `(rows, vocab_size)`."""
        rows = x if self.final_norm is None else self.final_norm(x)
        return linear_map(rows, self._table().weight.T if self.output_weight is None else self.output_weight)

    def _table(self) -> TokenEmbedding:
        """The embedding of the target's tokens, which is the encoder's if both share one."""
        table: Any = self.encoder.embedding if self.embedding is None else self.embedding
        return table

    def _embed(self, targets, positions) -> Float[Array, "rows d_model"]:
        """The rows of all targets, one below the other, with what `positions` says about where they stand."""
        x = self._table()(targets.reshape(-1))
        if self.config.positions == "sinusoidal":
            x = x * self.config.d_model**0.5
        return x if self.positions is None else self.positions.embed(x, positions.reshape(-1))


class Seq2SeqGiven(eqx.Module):
    r"""An encoder–decoder that has read its sources: a model of the target alone, as `generate` and `beam_search` want.

    Implements `eq-seq2seq-factorisation`; Sutskever et al. (2014), equation 1: each target's probability, given its
    source, is a product over its tokens.

    **Arguments** the model; and, for each of its blocks, the keys and values of all sources, as `Seq2Seq.given` makes
    them.

    **Attributes** `model`; `context`, a tuple of `KeyValueCache`; `config`, the model's.
    """

    model: Seq2Seq
    context: tuple[KeyValueCache, ...]

    @property
    def config(self) -> Seq2SeqConfig:
        """The model's configuration."""
        return self.model.config

    def new_cache(self, capacity: int | None = None, *, num_texts: int = 1) -> tuple[KeyValueCache, ...]:
        """Make a cache for `capacity` tokens of each target, `None` for `context_len`: a part per block, empty, and
        then a part per block with what cross-attention reads, which stays as it is.

        There must be as many texts as sources; with one source, any number: it is the source of all. Raises
        `ValueError` otherwise.
        """
        capacity = self.config.context_len if capacity is None else capacity
        own = tuple(block.attention.new_cache(capacity, num_texts=num_texts) for block in self.model.blocks)
        num_sources = self.context[0].positions.shape[0]
        if num_sources == num_texts:
            return *own, *self.context
        if num_sources != 1:
            raise ValueError(
                f"There are {num_sources} sources and {num_texts} texts to write; expected one text for each source. "
                "Beam search reads one source at a time; translate() takes several."
            )
        return *own, *(part.select(jnp.zeros(num_texts, int)) for part in self.context)

    def extend(
        self,
        tokens: Integer[Array, "*num_texts seq"],
        cache: tuple[KeyValueCache, ...],
        positions: Integer[Array, "*num_texts seq"] | None = None,
    ) -> tuple[Float[Array, "*num_texts seq d_model"], tuple[KeyValueCache, ...]]:
        """Read further tokens of targets of which the cache holds the beginnings.

        Arguments, result and errors as for `Decoder.extend`, and `ValueError` if a target does not begin with the start
        token, which a compiled function finds when it runs.
        """
        model, half = self.model, len(self.model.blocks)
        texts = as_targets(model.config, tokens)
        if len(cache) != 2 * half:
            raise ValueError(f"The cache has {len(cache)} parts; expected {2 * half}: see new_cache().")
        check_axes("tokens", texts, num_texts=cache[0].positions.shape[0], target_seq=None)
        if positions is None:
            positions = cache[0].positions.max(axis=1, keepdims=True) + 1 + jnp.arange(texts.shape[1])[None, :]
        own = (cache[0].with_room(texts.shape[1]), *cache[1:half])  # all parts of the target are of one length
        positions = jnp.broadcast_to(positions, texts.shape)
        x = model._embed(begun(model.config, texts, positions), jnp.maximum(positions, 0))
        longer = []
        for block, part, context in zip(model.blocks, own, cache[half:], strict=True):
            x, part = block.extend(x, part, positions, context_cache=context, position=model.positions)
            longer.append(part)
        return x.reshape(*tokens.shape, -1), (*longer, *cache[half:])

    def logits(self, x: Float[Array, "rows d_model"]) -> Float[Array, "rows vocab_size"]:
        """Turn rows that `extend` returned, `(rows, d_model)`, into logits, `(rows, vocab_size)`."""
        return self.model.logits(x)


@eqx.filter_jit
def _contexts(model: Seq2Seq, sources, is_source) -> tuple[KeyValueCache, ...]:
    rows = model.encoder(sources, is_source).reshape(-1, model.config.d_model)
    readers: list[Any] = [block.cross_attention for block in model.blocks]
    return tuple(reader.context_cache(rows, is_source) for reader in readers)


def _read_mask(is_source, target_seq: int) -> Bool[Array, "*several_texts target_seq source_seq"] | None:
    """Every target token may read all of its source, and no padding; a single pair has no axis of texts."""
    if is_source is None:
        return None
    mask = jnp.broadcast_to(is_source[:, None, :], (len(is_source), target_seq, is_source.shape[1]))
    return mask[0] if len(is_source) == 1 else mask
