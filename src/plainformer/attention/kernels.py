"""Ways of computing attention: what each of them offers, and the softmax."""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer

from plainformer.attention.cache import KeyValueCache as KeyValueCache, attend_to_cache
from plainformer.attention.mask import Mask
from plainformer.attention.self_attention import scaled_scores, softmax, weighted_average
from plainformer.attention.sinks import softmax_with_sink
from plainformer.checks import check_axes, check_each
from plainformer.positions.positions import PositionScheme, bias_of, near_keys
from plainformer.seeing import is_looking, see


class AttentionKernel(eqx.Module):
    """A way of making, of the queries, keys and values of all heads, what each head returns."""

    has_scores: eqx.AbstractClassVar[bool]
    """Whether there are scores, to which a position scheme may add, and of which a window may hide some."""

    @abc.abstractmethod
    def attend(
        self,
        queries: Float[Array, "*batch heads q_seq d_k"],
        keys: Float[Array, "*batch heads kv_seq d_k"],
        values: Float[Array, "*batch heads kv_seq d_v"],
        mask: Mask,
        scheme: PositionScheme,
    ) -> Float[Array, "*batch heads q_seq d_v"]:
        """Attend from each query to the keys that the mask lets it see; positions count from 0."""

    @abc.abstractmethod
    def weights(
        self,
        queries: Float[Array, "*batch heads q_seq d_k"],
        keys: Float[Array, "*batch heads kv_seq d_k"],
        mask: Mask,
        scheme: PositionScheme,
    ) -> Float[Array, "*batch heads q_seq kv_seq"]:
        """Return how much each query attends to each key, as a table, in at least 32 bits."""

    @abc.abstractmethod
    def attend_to_cache(
        self,
        queries: Float[Array, "*batch heads seq d_k"],
        cache: KeyValueCache,
        positions: Integer[Array, "*batch seq"],
        scheme: PositionScheme,
    ) -> Float[Array, "*batch heads seq d_v"]:
        """Attend from queries at these positions, -1 for padding, to what a cache holds."""

    def make_cache(self, num_kv_heads: int, capacity: int, d_k: int, d_v: int, **options) -> KeyValueCache:
        """Make an empty cache of the kind that this way reads; arguments as for `KeyValueCache`."""
        return KeyValueCache(num_kv_heads, capacity, d_k, d_v, **options)

    def __call__(
        self, queries, keys, values, mask: Mask, scheme: PositionScheme
    ) -> Float[Array, "*batch heads q_seq d_v"]:
        """Return what `attend` does; by the table of the weights, if somebody looks at them."""
        if not is_looking():
            heads = self.attend(queries, keys, values, mask, scheme)
            axes: dict[str, Any] = {"*batch": queries.shape[:-2], "q_seq": queries.shape[-2], "d_v": values.shape[-1]}
            check_axes(f"What {type(self).__name__} returns", heads, "A row for each query.", **axes)
            return heads
        weights = see("weights", self.weights(queries, keys, mask, scheme).astype(queries.dtype))
        return see("heads", weighted_average(weights, mask.without_unseen(values, queries.shape[-2])))


class Softmax(AttentionKernel):
    r"""Attention as its equation has it, with all scores of a head at once in a table.

    Implements `eq-self-attention-attend` for every head; Vaswani et al. (2017), equation 1.

    Args:
        sinks: a logit for each head, to which a part of its attention goes, as in `softmax_with_sink`; `None` for none.
    """

    has_scores = True
    sinks: Float[Array, "heads"] | None = eqx.field(default=None, kw_only=True)

    def __check_init__(self):
        check_each(Float[Array, "heads"] | None, sinks=self.sinks)

    def attend(self, queries, keys, values, mask, scheme) -> Float[Array, "*batch heads q_seq d_v"]:
        """Average the values by the weights."""
        weights = self.weights(queries, keys, mask, scheme)
        return weighted_average(weights, mask.without_unseen(values, queries.shape[-2]))

    def weights(self, queries, keys, mask, scheme) -> Float[Array, "*batch heads q_seq kv_seq"]:
        """Return the softmax of the scaled scores, to which the scheme may add."""
        (*_, num_heads, q_seq, _), kv_seq = queries.shape, keys.shape[-2]
        places = jnp.arange(q_seq), jnp.arange(kv_seq)
        table, near = None if mask.hides_nothing else mask.table(q_seq, kv_seq), near_keys(scheme, *places)
        if near is not None:
            table = near if table is None else table & near
        bias = bias_of(scheme, *places, num_heads)
        scores = see("scores", scaled_scores(queries, mask.without_unseen(keys, q_seq), bias=bias))
        return softmax(scores, table) if self.sinks is None else softmax_with_sink(scores, self.sinks, table)

    def attend_to_cache(self, queries, cache, positions, scheme) -> Float[Array, "*batch heads seq d_v"]:
        """Attend to the slots of a cache that hold earlier positions."""
        return attend_to_cache(queries, cache, positions, scheme, self.sinks)


SOFTMAX = Softmax()
