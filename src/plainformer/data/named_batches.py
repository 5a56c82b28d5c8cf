"""What losses read: batches that name their arrays, and say which of their targets count.

`read` is what a model is called with, `targets` what it should have said, and `counts` is `True` where a target counts.
A loss is a mean over what counts; so whoever puts the losses of several batches together weighs each by `num_targets`.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer, Num


class Windows(NamedTuple):
    """Windows, `inputs`, and the same windows one token later, `targets`, of which all count."""

    inputs: Integer[Array, "*batch seq"]
    targets: Integer[Array, "*batch seq"]

    @property
    def read(self) -> tuple:
        """What the model reads."""
        return (self.inputs,)

    @property
    def counts(self) -> Bool[Array, "*batch seq"]:
        """Where a target counts."""
        return jnp.ones(self.targets.shape, bool)


class PaddedWindows(NamedTuple):
    """Windows, `inputs`, and the same windows one token later, `targets`; both count where `is_token` is `True`."""

    inputs: Integer[Array, "*batch seq"]
    targets: Integer[Array, "*batch seq"]
    is_token: Bool[Array, "*batch seq"]

    @property
    def read(self) -> tuple:
        """What the model reads."""
        return (self.inputs,)

    @property
    def counts(self) -> Bool[Array, "*batch seq"]:
        """Where a target counts."""
        return self.is_token


class PackedWindows(NamedTuple):
    """Windows with several documents each; of every token the number of its document, `documents`, -1 for padding."""

    inputs: Integer[Array, "*batch seq"]
    targets: Integer[Array, "*batch seq"]
    documents: Integer[Array, "*batch seq"]

    @property
    def read(self) -> tuple:
        """What the model reads."""
        return self.inputs, self.documents

    @property
    def counts(self) -> Bool[Array, "*batch seq"]:
        """Where a target counts."""
        return self.documents >= 0


class LabelledBatch(NamedTuple):
    """Texts, images or rows, `inputs`, with one of the `labels` each; the rest is as for `Encoder`, if it is needed."""

    inputs: Num[Array, "..."]
    labels: Integer[Array, "*batch"]
    is_token: Bool[Array, "*batch seq"] | None = None
    segments: Integer[Array, "*batch seq"] | None = None

    @property
    def read(self) -> tuple:
        """What the model reads."""
        return _without_last_none(self.inputs, self.is_token, self.segments)

    @property
    def targets(self) -> Integer[Array, "*batch"]:
        """What the model should say."""
        return self.labels

    @property
    def counts(self) -> Bool[Array, "*batch"]:
        """Where a target counts."""
        return jnp.ones(self.labels.shape, bool)


class MaskedBatch(NamedTuple):
    """Tokens after hiding, and before, `targets`; where to guess, `is_selected`; the rest is as for `Encoder`."""

    tokens: Integer[Array, "*batch seq"]
    targets: Integer[Array, "*batch seq"]
    is_selected: Bool[Array, "*batch seq"]
    is_token: Bool[Array, "*batch seq"] | None = None
    segments: Integer[Array, "*batch seq"] | None = None

    @property
    def read(self) -> tuple:
        """What the model reads."""
        return _without_last_none(self.tokens, self.is_token, self.segments)

    @property
    def counts(self) -> Bool[Array, "*batch seq"]:
        """Where a target counts."""
        return self.is_selected


class TranslationBatch(NamedTuple):
    """Pairs of texts for teacher forcing, padded on the right; the last array says where a target counts."""

    source: Integer[Array, "*batch source_seq"]
    is_source: Bool[Array, "*batch source_seq"]
    inputs: Integer[Array, "*batch target_seq"]
    targets: Integer[Array, "*batch target_seq"]
    is_target: Bool[Array, "*batch target_seq"]

    @property
    def read(self) -> tuple:
        """What the model reads."""
        return self.source, self.inputs, self.is_source

    @property
    def counts(self) -> Bool[Array, "*batch target_seq"]:
        """Where a target counts."""
        return self.is_target


def num_targets(batch) -> Float[Array, ""]:
    """Return how much the mean loss of a batch stands for: the sum of its `counts`, or else its number of rows."""
    if hasattr(batch, "counts"):
        return jnp.sum(batch.counts, dtype=jnp.float32)
    rows = jnp.shape(jax.tree.leaves(batch)[0])[:1]  # one, if it has no axis
    return jnp.asarray(math.prod(rows), jnp.float32)


def check_kind(batch, kind: Any) -> None:
    """Raise `TypeError` unless a batch has what one of this kind has, such as `MaskedBatch`."""
    asked = [name for name in kind._fields if name not in kind._field_defaults]
    if not all(hasattr(batch, name) for name in [*asked, "read", "targets", "counts"]):
        what = f"a tuple of {len(batch)}" if type(batch) is tuple else f"a {type(batch).__name__}"
        expected = f"pf.data.{kind.__name__}({', '.join(asked)})"
        raise TypeError(f"batch is {what}; expected one that names its arrays: {expected}.")


def _without_last_none(*arrays) -> tuple:
    """The arrays up to the last that is given, so that a model of fewer arguments can be called with them."""
    while arrays[-1] is None:
        arrays = arrays[:-1]
    return arrays
