"""A stack of blocks, what enters it and what leaves it: the part that all models share (chapters 06 to 10)."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from plainformer.attention.cache import KeyValueCache
from plainformer.attention.efficiency import MaskRule
from plainformer.blocks.blocks import TransformerBlock
from plainformer.blocks.layers import Norm, dropout, split_key
from plainformer.models.config import StackConfig, make_block, make_norm
from plainformer.positions.positions import PositionScheme
from plainformer.positions.sinusoidal import SinusoidalPositions
from plainformer.positions.window import Window


class Stack(eqx.Module):
    r"""Blocks one after the other, the position scheme that they share, and a norm at the end.

    **Arguments** a configuration; a position scheme; `keys`, one per block; `cross_attention`, whether the blocks read
    a context; `small_start`, whether the last matrix of every sublayer starts smaller, as in GPT-2's code: by the root
    of the number of sublayers, so that what they add to a token has the size of one summand together.

    With post-norm every block ends in a norm already, and `final_norm` is `None`.
    """

    scheme: PositionScheme
    blocks: tuple[TransformerBlock, ...]
    final_norm: Norm | None
    dropout_rate: float = eqx.field(static=True)
    window: int | None = eqx.field(static=True)

    def __init__(
        self,
        config: StackConfig,
        scheme: PositionScheme,
        *,
        keys: Sequence[PRNGKeyArray],
        cross_attention: bool = False,
        small_start: bool = False,
    ):
        self.scheme, self.dropout_rate, self.window = scheme, config.dropout_rate, config.window
        blocks = [make_block(config, cross_attention=cross_attention, key=key) for key in keys]
        self.blocks = tuple(_started_small(block, len(blocks)) if small_start else block for block in blocks)
        self.final_norm = make_norm(config) if config.norm_placement == "pre" else None

    @property
    def scheme_of_blocks(self) -> PositionScheme:
        """The position scheme, which with a `window` hides what is too far away."""
        return (
            self.scheme if self.window is None else Window(self.scheme, self.window, self.blocks[0].attention.num_heads)
        )

    def residual_stream(
        self,
        x: Float[Array, "*batch seq d_model"],
        mask: Bool[Array, "*#batch seq seq"] | MaskRule | None = None,
        *,
        context: Float[Array, "*batch kv_seq d_model"] | None = None,
        context_mask: Bool[Array, "*#batch seq kv_seq"] | MaskRule | None = None,
        key: PRNGKeyArray | None = None,
    ) -> list[Float[Array, "*batch seq d_model"]]:
        """Return what enters the first block and what leaves each; arguments as for `TransformerBlock`."""
        first_key, *keys = split_key(key, 1 + len(self.blocks))
        options = {"context": context, "context_mask": context_mask, "scheme": self.scheme_of_blocks}

        def step(layer, block, x):
            return block(x, mask, **options, key=keys[layer])

        return self._through(dropout(x, self.dropout_rate, key=first_key), step)

    def _through(self, x, step: Callable) -> list:
        """The one loop over the blocks: what enters the first, and what `step(layer, block, x)` makes of it in each."""
        stream = [x]
        for layer, block in enumerate(self.blocks):
            stream.append(step(layer, block, stream[-1]))
        return stream

    def __call__(self, x, mask=None, **options) -> Float[Array, "*batch seq d_model"]:
        """Return the last block's rows, normalised; arguments as for `residual_stream`."""
        return self.normalise(self.residual_stream(x, mask, **options)[-1])

    def normalise(self, x: Float[Array, "*batch seq d_model"]) -> Float[Array, "*batch seq d_model"]:
        """Apply the norm at the end, if there is one."""
        return x if self.final_norm is None else self.final_norm(x)

    def attention_weights(
        self, x, mask=None, *, context=None, context_mask=None
    ) -> tuple[Float[Array, "*batch layers heads seq seq"], Float[Array, "*batch layers heads seq kv_seq"] | None]:
        """Return the weights of every self-attention, and of every cross-attention or `None`; as for a call."""
        found: list = []
        options = {"context": context, "context_mask": context_mask, "scheme": self.scheme_of_blocks}

        def step(layer, block, x):
            found.append(block.attention_weights(x, mask, **options))
            return block(x, mask, **options)

        self._through(x, step)
        own, cross = zip(*found, strict=True)
        return jnp.stack(own, axis=-4), None if cross[0] is None else jnp.stack(cross, axis=-4)

    def extend(
        self,
        x: Float[Array, "*batch seq d_model"],
        caches: Sequence[KeyValueCache],
        positions: Integer[Array, "*batch seq"],
        contexts: Sequence[KeyValueCache] | None = None,
    ) -> tuple[Float[Array, "*batch seq d_model"], tuple[KeyValueCache, ...]]:
        """Send further tokens through the blocks; `caches` and `contexts` have one part per block.

        Returns the last block's rows, before the norm at the end, and the longer caches.
        """
        longer, scheme = list(caches), self.scheme_of_blocks

        def step(layer, block, x):
            context = None if contexts is None else contexts[layer]
            x, longer[layer] = block.extend(x, caches[layer], positions, context=context, scheme=scheme)
            return x

        return self._through(x, step)[-1], tuple(longer)

    def make_cache(self, capacity: int, **options) -> tuple[KeyValueCache, ...]:
        """Make an empty cache with room for `capacity` tokens, one part per block; options as of `KeyValueCache`."""
        return tuple(block.attention.make_cache(capacity, **options) for block in self.blocks)


def _started_small(block: TransformerBlock, num_layers: int) -> TransformerBlock:
    """The block with the last matrix of each sublayer divided by the root of the stack's number of sublayers."""

    def last_matrices(block):
        attentions = [each for each in (block.attention, block.cross_attention) if each is not None]
        return [each.output.weight for each in attentions] + [block.feed_forward.down.weight]

    matrices = last_matrices(block)
    return eqx.tree_at(last_matrices, block, [matrix / (len(matrices) * num_layers) ** 0.5 for matrix in matrices])


def add_positions(
    x: Float[Array, "*batch seq d_model"], scheme: PositionScheme, positions: Integer[Array, "*batch seq"] | None = None
) -> Float[Array, "*batch seq d_model"]:
    """Return tokens' vectors with what the scheme adds to them.

    With sinusoidal positions, the vectors are multiplied by the root of `d_model` (Vaswani et al., 2017, section 3.4),
    as they would otherwise be drowned by the codes.
    """
    if isinstance(scheme, SinusoidalPositions):
        x = x * x.shape[-1] ** 0.5
    return scheme.embed(x, positions)
