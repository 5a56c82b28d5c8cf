"""Which keys a query may attend to: one type for a table, a rule, or nothing hidden (chapter on efficiency)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer

from plainformer.attention.self_attention import without_unseen
from plainformer.checks import Positive, check_axes, checked


class Mask(eqx.Module):
    r"""A mask as a rule, asked for the few places that are needed; or as a table; or as both, which must both allow.

    Implements `eq-efficiency-rule`. A table for 16,384 tokens has 268 million entries; a rule takes no memory.

    Args:
        is_token: `False` for keys that are padding; `None` if there is none.
        causal: whether a token sees only itself and what came before it.
        allowed: a table, `True` where a query may attend to a key.

    Example:
        The rule, asked for three queries and two keys.

        >>> print(pf.attention.Mask(causal=True).table(3, 2))
        [[ True False]
         [ True  True]
         [ True  True]]
    """

    is_token: Bool[Array, "*batch kv_seq"] | None
    allowed: Bool[Array, "*batch q_seq kv_seq"] | None
    causal: bool = eqx.field(static=True)

    @checked
    def __init__(
        self,
        *,
        is_token: Bool[Array, "*#batch kv_seq"] | None = None,
        causal: bool = False,
        allowed: Bool[Array, "*#batch q_seq kv_seq"] | None = None,
    ):
        self.is_token, self.allowed, self.causal = is_token, allowed, causal

    @staticmethod
    def of(mask: "Bool[Array, '*batch q_seq kv_seq'] | Mask | None") -> "Mask":
        """Return the mask that a table is, or that hides nothing; a mask stays as it is."""
        return mask if isinstance(mask, Mask) else Mask(allowed=mask)

    @staticmethod
    @checked
    def of_documents(documents: Integer[Array, "*batch seq"]) -> "Mask":
        r"""Return the mask of windows that hold several documents: a token sees its own, up to itself.

        Implements `eq-recipes-packing`; Krell et al. (2021).

        Args:
            documents: the number of each token's document; what has the same number sees each other.

        Example:
            >>> print(pf.attention.Mask.of_documents(jnp.asarray([0, 0, 1])).table(3, 3))
            [[ True False False]
             [ True  True False]
             [False False  True]]
        """
        return Mask(causal=True, allowed=documents[..., :, None] == documents[..., None, :])

    def __call__(
        self, q_positions: Integer[Array, " q_seq"], kv_positions: Integer[Array, " kv_seq"]
    ) -> Bool[Array, "*batch q_seq kv_seq"]:
        """Say which keys each query may attend to, of those at the given positions."""
        seen = jnp.ones((len(q_positions), len(kv_positions)), bool)
        if self.causal:
            seen = kv_positions <= q_positions[:, None]
        if self.is_token is not None:
            seen = seen & self.is_token[..., None, kv_positions]
        return seen if self.allowed is None else seen & self.allowed[..., q_positions[:, None], kv_positions]

    @property
    def hides_nothing(self) -> bool:
        """Whether every query may attend to every key."""
        return self.is_token is None and self.allowed is None and not self.causal

    def table(self, q_seq: Positive, kv_seq: Positive) -> Bool[Array, "*batch q_seq kv_seq"]:
        """Return the whole mask, as `attend` takes it."""
        self.check(q_seq, kv_seq)
        if self.allowed is not None and self.is_token is None and not self.causal:
            return self.allowed
        return self(jnp.arange(q_seq), jnp.arange(kv_seq))

    def check(self, q_seq: int, kv_seq: int, batch: tuple[int, ...] | None = None) -> None:
        """Raise `ValueError` unless the mask is for so many queries and keys, and fits to these axes in front."""
        lead, fits = {"*#batch": batch}, f", for queries with {batch} in front" if batch else ""
        if self.is_token is not None:
            check_axes("is_token", self.is_token, f"One for each key{fits}.", **lead, kv_seq=kv_seq)
        if self.allowed is not None:
            check_axes("mask", self.allowed, f"One for each query and key{fits}.", **lead, q_seq=q_seq, kv_seq=kv_seq)

    def without_unseen(self, rows: Float[Array, "*batch kv_seq d"], q_seq: int) -> Float[Array, "*batch kv_seq d"]:
        """Return keys or values with zeros for those that no query may attend to, which may hold NaN."""
        kv_seq = rows.shape[-2]
        if self.allowed is not None:
            return without_unseen(rows, self.table(q_seq, kv_seq))
        if self.causal and kv_seq > q_seq:
            rows = jnp.where(jnp.arange(kv_seq)[:, None] < q_seq, rows, 0)
        return rows if self.is_token is None else jnp.where(self.is_token[..., None], rows, 0)

    def for_heads(self) -> "Mask":
        """Return the mask for queries and keys with an axis of heads before that of tokens."""

        def with_axis(array, place):
            return None if array is None else jnp.expand_dims(array, place)

        return Mask(is_token=with_axis(self.is_token, -2), causal=self.causal, allowed=with_axis(self.allowed, -3))


EVERYTHING = Mask()
