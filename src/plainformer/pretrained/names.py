"""Names to names: which tensor of another library is which array of ours, as a table that reads in both directions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np

SHOWN = 3  # names in a message


@runtime_checkable
class Form(Protocol):
    """How one of their tensors holds some of our arrays."""

    def read(self, tensor, shapes: list) -> list:
        """Return arrays of ours with these shapes."""

    def write(self, arrays: list):
        """Return their tensor; `ValueError` says why it cannot hold these arrays."""


@dataclass(frozen=True)
class Same:
    """One tensor, which all arrays are equal to, such as a block that is used twelve times."""

    turned: bool = False

    def read(self, tensor, shapes):
        """Every array is one like the tensor, with rows for columns if `turned`."""
        first = tensor.T if self.turned else tensor
        return [first, *(jnp.array(first) for _ in shapes[1:])]

    def write(self, arrays):
        """The first array, if all are equal."""
        if not all(np.array_equal(arrays[0], array) for array in arrays[1:]):
            raise ValueError("they differ, and have one tensor there")
        return arrays[0].T if self.turned else arrays[0]


@dataclass(frozen=True)
class SideBySide:
    """One tensor with the columns of several arrays, one array after the other."""

    def read(self, tensor, shapes):
        """Cut it into equal parts."""
        return jnp.split(tensor, len(shapes), axis=-1)

    def write(self, arrays):
        """Put them side by side."""
        return jnp.concatenate(arrays, axis=-1)


@dataclass(frozen=True)
class Interleaved:
    """A matrix of queries or keys, turned, in which columns 2i and 2i + 1 of a head form a pair, and not i and i + d/2.

    The first `num_turned` of the `width` columns of each head are those that turn.
    """

    width: int
    num_turned: int

    @property
    def order(self) -> np.ndarray:
        """Their column for each of ours, in one head."""
        turned = np.arange(self.num_turned)
        return np.concatenate([turned[::2], turned[1::2], np.arange(self.num_turned, self.width)])

    def read(self, tensor, shapes):
        """Put the columns in our order."""
        heads = tensor.T.reshape(tensor.shape[1], -1, self.width)
        return [heads[..., self.order].reshape(tensor.shape[1], -1)]

    def write(self, arrays):
        """Put them in theirs."""
        heads = arrays[0].reshape(len(arrays[0]), -1, self.width)
        return heads[..., np.argsort(self.order)].reshape(len(arrays[0]), -1).T


@dataclass(frozen=True)
class Zeros:
    """No tensor there: our arrays are zeros, such as a bias that they do without."""

    def read(self, tensor, shapes):
        """Zeros."""
        return [jnp.zeros(shape) for shape in shapes]

    def write(self, arrays):
        """Nothing, if all are zeros."""
        if any(np.any(array) for array in arrays):
            raise ValueError("it is not zero, and has no tensor there")


@dataclass(frozen=True)
class First:
    """A tensor with axes of length one in front."""

    axes: int

    def read(self, tensor, shapes):
        """Drop these axes."""
        return [tensor[self.axes * (0,)]]

    def write(self, arrays):
        """Put them back."""
        return arrays[0][self.axes * (None,)]


@dataclass(frozen=True)
class Later:
    """A table whose first rows are for nobody."""

    rows: int

    def read(self, tensor, shapes):
        """Leave them out."""
        return [tensor[self.rows :]]

    def write(self, arrays):
        """Put zeros there."""
        return jnp.pad(arrays[0], ((self.rows, 0), (0, 0)))


@dataclass(frozen=True)
class Line:
    """A line of the table: a module of theirs, `None` for none, modules of ours, and what each has.

    A `{}` in a name stands for the number of a block. `suffixes` has what follows behind either name, theirs first, and
    its form.
    """

    theirs: str | None
    ours: str
    suffixes: Sequence[tuple[str, str, Form]]


@dataclass(frozen=True)
class Pair:
    """A tensor of theirs by its name, `None` for none, and the names of our arrays that it holds."""

    theirs: str | None
    ours: tuple[str, ...]
    form: Form = field(compare=False)


SAME, TURNED = Same(), Same(turned=True)


def dense(theirs: str, ours: str, form: Form = TURNED) -> Line:
    """A linear map, whose matrix stands the other way in PyTorch."""
    return Line(theirs, ours, [(".weight", ".weight", form), (".bias", ".bias", SAME)])


def beside(theirs: str, ours: str) -> Line:
    """Several linear maps side by side, as they stand in GPT-2."""
    return Line(theirs, ours, [(".weight", ".weight", SideBySide()), (".bias", ".bias", SideBySide())])


def norm(theirs: str, ours: str) -> Line:
    """A norm."""
    return Line(theirs, ours, [(".weight", ".scale", SAME), (".bias", ".bias", SAME)])


def array(theirs: str | None, ours: str, form: Form = SAME) -> Line:
    """One array, such as a table of embeddings, by its full names."""
    return Line(theirs, ours, [("", "", form)])


def zeros(ours: str) -> Line:
    """Arrays that they do without."""
    return array(None, ours, Zeros())


def pairs_of(lines: Iterable[Line], arrays: dict) -> list[Pair]:
    """The table for a model with these arrays: one pair for each tensor of theirs."""
    found = []
    for line in lines:
        for theirs, ours, form in line.suffixes:
            names = [name + ours for name in line.ours.split()]
            found += _numbered(None if line.theirs is None else line.theirs + theirs, names, form, arrays)
    left = set(arrays) - {name for pair in found for name in pair.ours}
    if left:
        raise ValueError(f"this family has no place for {spell(left)}")
    return found


def _numbered(theirs: str | None, names: list[str], form: Form, arrays: dict) -> list[Pair]:
    """The pairs of a line, block by block; those of arrays that the model does not have are left out."""
    if not any("{}" in name for name in names):
        present = tuple(name for name in names if name in arrays)
        return [Pair(theirs, present, form)] if present else []
    layers = 0
    while any(name.format(layers) in arrays for name in names):
        layers += 1
    in_blocks = [tuple(name.format(layer) for name in names if name.format(layer) in arrays) for layer in range(layers)]
    if theirs is None or "{}" not in theirs:  # one tensor for all blocks
        everywhere = tuple(name for block in in_blocks for name in block)
        return [Pair(theirs, everywhere, form)] if everywhere else []
    return [Pair(theirs.format(layer), block, form) for layer, block in enumerate(in_blocks)]


class Renamed(Mapping):
    """Tensors by other names than those that they are stored under, each read as it is asked for."""

    def __init__(self, tensors: Mapping, stored: dict[str, str]):
        self._tensors, self._stored = tensors, stored

    def __getitem__(self, name: str):
        return self._tensors[self._stored[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)


def spell(names: Iterable[str]) -> str:
    """Some names, for a message."""
    names = sorted(names)
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
