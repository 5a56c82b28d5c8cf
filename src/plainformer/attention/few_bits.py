"""Numbers in 8 or 4 bits by groups, and the keys and values of a cache kept so (chapter on serving)."""

from typing import Annotated

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float16, Int, UInt8

from plainformer.attention.self_attention import at_least_float32
from plainformer.checks import Number, Positive, checked

Bits = Annotated[int, Number(lambda bits: bits in (8, 4), "8 or 4", whole=True)]


MOST_IN_GROUP = 32


class Groups(eqx.Module):
    """Groups of numbers in few bits: the `codes`, packed into bytes, and the `step` and `low` of each group."""

    codes: UInt8[Array, "*groups bytes"]
    step: Float16[Array, "*groups"]
    low: Float16[Array, "*groups"]
    bits: Bits = eqx.field(static=True)

    def numbers(self, dtype=jnp.float32) -> Float[Array, "*groups group"]:
        """Return the numbers, each nearly what it was."""
        codes = self.codes
        if self.bits == 4:
            codes = jnp.stack([codes & 15, codes >> 4], axis=-1).reshape(*codes.shape[:-1], -1)
        low, step = (each[..., None].astype(jnp.float32) for each in (self.low, self.step))
        return (low + step * codes.astype(jnp.float32)).astype(dtype)


@checked
def quantise_groups(numbers: Float[Array, "*groups group"], bits: Bits) -> Groups:
    r"""Round the numbers of every group to 256 or 16 evenly spaced ones, from its least to its largest.

    Implements `eq-serving-groups`; Liu et al. (2024), section 3. Two codes of 4 bits share a byte; step and least
    number have 16 bits.
    """
    if bits == 4 and numbers.shape[-1] % 2:
        raise ValueError(f"A group has {numbers.shape[-1]} numbers; expected an even number, two to a byte of 4 bits.")
    numbers = at_least_float32(numbers)
    low, high = numbers.min(axis=-1), numbers.max(axis=-1)
    step = ((high - low) / (2**bits - 1)).astype(jnp.float16)
    low = low.astype(jnp.float16)
    width = jnp.where(step == 0, 1, step).astype(numbers.dtype)
    codes = jnp.round((numbers - low[..., None].astype(numbers.dtype)) / width[..., None])
    codes = jnp.clip(codes, 0, 2**bits - 1).astype(jnp.uint8)
    if bits == 4:
        codes = codes[..., ::2] | codes[..., 1::2] << 4
    return Groups(codes, step, low, bits)


def group_sizes(d_v: int, bits: Bits, group: int | None) -> tuple[int, int]:
    """Return how many tokens of one channel of the keys share a step, and how many channels of one token's value.

    `None` stands for 32 tokens, and for the largest divisor of a value's width that is at most 32; in 4 bits for the
    largest even one. Raises `ValueError` for a group of which a value is no multiple.
    """
    if group is None:
        divisors = [size for size in range(1, MOST_IN_GROUP + 1) if d_v % size == 0 and bits * size % 8 == 0]
        return MOST_IN_GROUP, max(divisors, default=d_v)
    if d_v % min(group, d_v):
        raise ValueError(f"Values are {d_v} wide, which groups of {group} do not divide; expected a divisor, or None.")
    return group, min(group, d_v)


class FewBitKeys(eqx.Module):
    """Keys in few bits, by channel: a group is one column of the keys at consecutive tokens.

    The newest group stays as it is until the next one begins, since its least and its largest number are not known
    before it is full.
    """

    stored: Groups
    newest: Float[Array, "texts_heads d_k group"]

    def __init__(self, keys: Float[Array, "texts_heads d_k capacity"], bits: Bits, group: Positive):
        num_groups = -(-keys.shape[-1] // group)
        self.stored = quantise_groups(jnp.zeros((*keys.shape[:-1], num_groups, group), keys.dtype), bits)
        self.newest = jnp.zeros((*keys.shape[:-1], group), keys.dtype)

    def write(self, keys: Float[Array, "texts_heads d_k seq"], first: int | Int[Array, ""]) -> "FewBitKeys":
        """Return the same with keys of further tokens, of which the first takes this slot."""
        seq, group = keys.shape[-1], self.newest.shape[-1]
        touched = -(-(group - 1 + seq) // group)  # so many groups, wherever in its group the first token stands
        room = jnp.pad(self.newest, [(0, 0), (0, 0), (0, (touched - 1) * group)])
        room = jax.lax.dynamic_update_slice_in_dim(room, keys, first % group, axis=-1)
        groups = room.reshape(*room.shape[:-1], touched, group)
        places = first // group + jnp.arange(touched)

        def put(old, new):
            return old.at[:, :, places].set(new, mode="drop", indices_are_sorted=True, unique_indices=True)

        stored = jax.tree.map(put, self.stored, quantise_groups(groups, self.stored.bits))
        last = (first + seq - 1) // group - first // group
        newest = jax.lax.dynamic_index_in_dim(groups, last, axis=-2, keepdims=False)
        return eqx.tree_at(lambda room: (room.stored, room.newest), self, (stored, newest))

    def numbers(self, capacity: int, length: int | Int[Array, ""]) -> Float[Array, "texts_heads d_k capacity"]:
        """Return the keys of all slots, of which so many are filled."""
        groups = self.stored.numbers(self.newest.dtype)
        last = jnp.maximum(length - 1, 0) // self.newest.shape[-1]
        groups = jax.lax.dynamic_update_index_in_dim(groups, self.newest, last, axis=-2)
        return groups.reshape(*self.newest.shape[:-1], -1)[..., :capacity]


class FewBitValues(eqx.Module):
    """Values in few bits, by token: a group is a piece of one token's value, or all of it."""

    stored: Groups
    dtype: jnp.dtype = eqx.field(static=True)

    def __init__(self, values: Float[Array, "texts_heads capacity d_v"], bits: Bits, group: Positive):
        groups = values.reshape(*values.shape[:-1], -1, group)
        self.stored, self.dtype = quantise_groups(groups, bits), values.dtype

    def write(self, values: Float[Array, "texts_heads seq d_v"], first: int | Int[Array, ""]) -> "FewBitValues":
        """Return the same with values of further tokens, of which the first takes this slot."""
        *_, num_groups, size = self.stored.codes.shape
        groups = values.reshape(*values.shape[:-1], num_groups, size * 8 // self.stored.bits)
        new = quantise_groups(groups, self.stored.bits)
        stored = jax.tree.map(
            lambda old, new: jax.lax.dynamic_update_slice_in_dim(old, new, first, 1), self.stored, new
        )
        return eqx.tree_at(lambda room: room.stored, self, stored)

    def numbers(self, capacity: int, length: int | Int[Array, ""]) -> Float[Array, "texts_heads capacity d_v"]:
        """Return the values of all slots."""
        return self.stored.numbers(self.dtype).reshape(len(self.stored.codes), capacity, -1)
