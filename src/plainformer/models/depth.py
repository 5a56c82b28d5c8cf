"""A stack of blocks, what enters it and what leaves it: the part that all models share (chapter on depth)."""

import itertools
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from plainformer.attention.delta import CachePart
from plainformer.attention.kernels import KeyValueCache
from plainformer.attention.mask import Mask
from plainformer.blocks.blocks import Block, CrossBlock, ParallelBlock
from plainformer.blocks.experts import Experts
from plainformer.blocks.layers import Norm, dropout, split_key
from plainformer.models.config import BlockKind, StackConfig, make_block, make_norm, of_layer
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
    kinds: tuple[BlockKind, ...] = eqx.field(static=True)

    def __init__(
        self,
        config: StackConfig,
        scheme: PositionScheme,
        *,
        keys: Sequence[PRNGKeyArray],
        cross_attention: bool = False,
        small_start: bool = False,
    ):
        self.scheme, self.dropout_rate = scheme, config.dropout_rate
        self.window, self.kinds = config.window, config.kinds
        blocks = [
            make_block(of_layer(config, layer), kind=kind, cross_attention=cross_attention, key=key)
            for layer, (kind, key) in enumerate(zip(self.kinds, keys, strict=True))
        ]
        self.blocks = tuple(_started_small(block, len(blocks)) if small_start else block for block in blocks)
        self.final_norm = None if config.norm_placement == "post" else make_norm(config)

    @property
    def schemes(self) -> list[PositionScheme]:
        """The position scheme of each block; that of a block with a `window` hides what is too far away."""
        near = self.scheme if self.window is None else Window(self.scheme, self.window)
        kinds = itertools.cycle(self.kinds)  # somebody may have put further blocks in
        return [near if kind == "window" else self.scheme for kind, _ in zip(kinds, self.blocks, strict=False)]

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
        for name, block, scheme, key in zip(self._names, self.blocks, self.schemes, keys, strict=True):
            x = named(name, block)(x, mask, scheme=scheme, key=key, **reading)
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
        caches: Sequence[CachePart],
        positions: Integer[Array, "*batch seq"],
        contexts: Sequence[KeyValueCache] | None = None,
    ) -> tuple[Float[Array, "*batch seq d_model"], tuple[CachePart, ...]]:
        """Send further tokens through the blocks; `caches` and `contexts` have one part per block.

        Returns the last block's rows, before the norm at the end, and the longer caches.
        """
        x, longer = see("input", x), []
        read = contexts or len(self.blocks) * (None,)
        parts = zip(self._names, self.blocks, self.schemes, caches, read, strict=True)
        for name, block, scheme, cache, context in parts:
            x, cache = named(name, block.extend)(x, cache, positions, context=context, scheme=scheme)
            x = see(f"{name}.output", x)
            longer.append(cache)
        return x, tuple(longer)

    def make_cache(self, capacity: int, **options) -> tuple[CachePart, ...]:
        """Make an empty cache with room for `capacity` tokens, one part per block; options as of `KeyValueCache`."""
        return tuple(block.attention.make_cache(capacity, **options) for block in self.blocks)


def _started_small(block, num_layers: int):
    """The block with the last matrix of each sublayer divided by the root of the stack's number of sublayers."""

    def last_matrices(block):
        attentions = [block.attention, *([block.cross_attention] if isinstance(block, CrossBlock) else [])]
        network = block.feed_forward
        networks = [network.networks, network.shared] if isinstance(network, Experts) else [network]
        outputs = [each.output.weight for each in attentions]
        return outputs + [each.down.weight for each in networks if each is not None]

    num_sublayers = (2 + isinstance(block, CrossBlock)) * num_layers
    return eqx.tree_at(last_matrices, block, [matrix / num_sublayers**0.5 for matrix in last_matrices(block)])
