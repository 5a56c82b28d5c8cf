"""A stack of blocks, what enters it and what leaves it: the part that all models share (chapters 05 to 11)."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from plainformer.attention.kernels import KeyValueCache
from plainformer.attention.mask import Mask
from plainformer.blocks.blocks import Block, CrossBlock, ParallelBlock
from plainformer.blocks.layers import Norm, dropout, split_key
from plainformer.models.config import StackConfig, make_block, make_norm
from plainformer.positions.positions import PositionScheme
from plainformer.positions.window import Window
from plainformer.seeing import named, see


class Stack(eqx.Module):
    r"""Blocks one after the other, the position scheme that they share, and a norm at the end.

    Implements `eq-depth-stack`; Vaswani et al. (2017), section 3.1.

    With post-norm every block ends in a norm already, and `final_norm` is `None`.

    Args:
        config: a configuration.
        scheme: a position scheme.
        keys: one per block.
        cross_attention: whether the blocks read a context.
        small_start: whether the last matrix of every sublayer starts smaller, as in GPT-2's code: by the root of the
            number of sublayers, so that what they add to a token has the size of one summand together.
    """

    scheme: PositionScheme
    blocks: tuple[Block | CrossBlock | ParallelBlock, ...]
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
        return self.scheme if self.window is None else Window(self.scheme, self.window)

    def __call__(
        self,
        x: Float[Array, "*batch seq d_model"],
        mask: Bool[Array, "*#batch seq seq"] | Mask | None = None,
        *,
        key: PRNGKeyArray | None = None,
        **reading,
    ) -> Float[Array, "*batch seq d_model"]:
        """Return what leaves the last block, before the norm at the end; arguments as for `Block`."""
        first_key, *keys = split_key(key, 1 + len(self.blocks))
        x = see("input", dropout(x, self.dropout_rate, key=first_key))
        for name, block, key in zip(self._names, self.blocks, keys, strict=True):
            x = named(name, block)(x, mask, scheme=self.scheme_of_blocks, key=key, **reading)
        return x

    @property
    def _names(self) -> list[str]:
        """The name of each block."""
        return [f"blocks.{layer}" for layer in range(len(self.blocks))]

    def normalise(self, x: Float[Array, "*batch seq d_model"]) -> Float[Array, "*batch seq d_model"]:
        """Apply the norm at the end, if there is one."""
        return x if self.final_norm is None else named("stack.final_norm", self.final_norm)(x)

    def stream_in(self, seen: dict[str, Array]) -> list[Float[Array, "*batch seq d_model"]]:
        """Return, of the arrays that a look at a model saw, what enters the first block and what leaves each."""
        return [seen["stack.input"], *(seen[f"stack.{name}.output"] for name in self._names)]

    def weights_in(
        self, seen: dict[str, Array], attention: str = "attention"
    ) -> Float[Array, "*batch layers heads seq kv_seq"]:
        """Return, of the arrays that a look at a model saw, the attention weights of every block and head."""
        return jnp.stack([seen[f"stack.{name}.{attention}.weights"] for name in self._names], axis=-4)

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
        x, longer = see("input", x), []
        parts = zip(self._names, self.blocks, caches, contexts or len(self.blocks) * (None,), strict=True)
        for name, block, cache, context in parts:
            extend = named(name, block.extend)
            x, cache = extend(x, cache, positions, context=context, scheme=self.scheme_of_blocks)
            x = see(f"{name}.output", x)
            longer.append(cache)
        return x, tuple(longer)

    def make_cache(self, capacity: int, **options) -> tuple[KeyValueCache, ...]:
        """Make an empty cache with room for `capacity` tokens, one part per block; options as of `KeyValueCache`."""
        return tuple(block.attention.make_cache(capacity, **options) for block in self.blocks)


def _started_small(block, num_layers: int):
    """The block with the last matrix of each sublayer divided by the root of the stack's number of sublayers."""

    def last_matrices(block):
        attentions = [block.attention, *([block.cross_attention] if isinstance(block, CrossBlock) else [])]
        return [each.output.weight for each in attentions] + [block.feed_forward.down.weight]

    matrices = last_matrices(block)
    return eqx.tree_at(last_matrices, block, [matrix / (len(matrices) * num_layers) ** 0.5 for matrix in matrices])
