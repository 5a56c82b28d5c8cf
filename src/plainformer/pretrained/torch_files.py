"""Tensors of PyTorch's own files, read without PyTorch, and without running what stands in the file.

Such a file is a pickle: a small program that names functions, which Python would import and call. A pickle from a
stranger can therefore do whatever its author likes. Here three names have a meaning, and every other one is refused.
"""

import io
import math
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

MAGIC = 0x1950A86A20F9469CFC6C  # the first number in a file of PyTorch before version 1.6
DTYPES = {
    "FloatStorage": np.dtype(np.float32),
    "HalfStorage": np.dtype(np.float16),
    "BFloat16Storage": np.dtype(ml_dtypes.bfloat16),
    "DoubleStorage": np.dtype(np.float64),
    "LongStorage": np.dtype(np.int64),
}
# What reading a damaged file, or one that was made to do harm, may raise.
FAULTS = (
    *(pickle.UnpicklingError, zipfile.BadZipFile, EOFError, LookupError, TypeError, AttributeError, ValueError),
    *(ArithmeticError, MemoryError, RuntimeError),
)
ALLOWED = "an OrderedDict, a tensor or its storage"


class Storage(NamedTuple):
    """Numbers in a row, which a tensor is a view of: the name under which they are stored, and how many they are."""

    name: str
    dtype: Any
    size: int


class View(NamedTuple):
    """Where in a storage a tensor begins, its shape, and by how many numbers each of its axes steps."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    steps: tuple[int, ...]


def read_torch_file(path: Path) -> dict[str, np.ndarray]:
    """The tensors of a `pytorch_model.bin` by name, in either of PyTorch's two formats.

    Raises:
        ValueError: if the file names anything but the three that a dictionary of tensors needs, or is damaged.
    """
    content = path.read_bytes()
    try:
        views, numbers = (_zip_parts if zipfile.is_zipfile(path) else _old_parts)(content)
        return {name: _tensor(view, numbers) for name, view in views.items()}
    except FAULTS as error:
        what = str(error) or type(error).__name__
        raise ValueError(f"{path} cannot be read as a dictionary of tensors: {what}.") from error


class _Reader(pickle.Unpickler):
    """An unpickler that imports nothing: three names are values made here."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda *given: _view(*given)  # one of its own, since a pickle may set attributes of it
        if module == "torch" and name in DTYPES:
            return DTYPES[name]
        raise pickle.UnpicklingError(f"it wants to call {module}.{name}; expected nothing but {ALLOWED}")

    def persistent_load(self, pid: Any) -> Storage:
        kind, dtype, name, _, size, *_ = pid
        if kind != "storage" or not isinstance(dtype, np.dtype):
            raise pickle.UnpicklingError(f"it refers to {kind!r}; expected a storage")
        return Storage(str(name), dtype, int(size))


def _view(storage: Storage, offset: int, shape: tuple, steps: tuple, *_) -> View:
    return View(storage, int(offset), tuple(map(int, shape)), tuple(map(int, steps)))


def _zip_parts(content: bytes) -> tuple[dict[str, View], dict[str, bytes]]:
    """Of a file since version 1.6, which is an archive: a pickle, and a file for each storage."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if any(part.compress_type for part in archive.infolist()):
            raise ValueError("its parts are compressed, as PyTorch never does; a small file could fill the memory")
        (data,) = (name for name in archive.namelist() if name.endswith("/data.pkl"))
        folder = data.removesuffix(".pkl") + "/"
        views = _Reader(io.BytesIO(archive.read(data))).load()
        names = [name for name in archive.namelist() if name.startswith(folder)]
        return views, {name.removeprefix(folder): archive.read(name) for name in names}


def _old_parts(content: bytes) -> tuple[dict[str, View], dict[str, bytes]]:
    """Of a file before version 1.6: three pickles, the tensors, a list of storages, then their numbers."""
    file = io.BytesIO(content)
    if _Reader(file).load() != MAGIC:
        raise ValueError("it does not begin as one of PyTorch does")
    _Reader(file).load()  # the version
    _Reader(file).load()  # the machine on which it was written
    views, names = _Reader(file).load(), _Reader(file).load()
    sizes = {view.storage.name: view.storage.dtype.itemsize for view in views.values()}
    numbers = {}
    for name in names:
        count = int.from_bytes(file.read(8), "little")
        numbers[name] = file.read(count * sizes[name])
    return views, numbers


def _tensor(view: View, numbers: dict[str, bytes]) -> np.ndarray:
    """The numbers that a view shows, once it is certain that they are there."""
    storage, whole = view.storage, np.frombuffer(numbers[view.storage.name], view.storage.dtype)
    if len(view.shape) != len(view.steps) or min((view.offset, *view.shape, *view.steps)) < 0:
        raise ValueError(f"a tensor of shape {view.shape} with the steps {view.steps} is none")
    last = view.offset + sum((length - 1) * step for length, step in zip(view.shape, view.steps, strict=True))
    if 0 not in view.shape and last >= len(whole):
        raise ValueError(f"storage {storage.name} has {len(whole)} numbers, and a tensor needs {last + 1}")
    if math.prod(view.shape) > len(whole):
        raise ValueError(f"storage {storage.name} has {len(whole)} numbers, and a tensor shows some of them again")
    steps = [step * whole.itemsize for step in view.steps]
    return np.lib.stride_tricks.as_strided(whole[view.offset :], view.shape, steps, writeable=False).copy()
