"""The arrays of a tree by name, and as a safetensors file that is checked when it is read (chapter on the decoder)."""

import dataclasses
import hashlib
import json
import os
from collections import Counter
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jaxtyping import Array, Float, Int8

from plainformer.checks import checked, native

Location = str | os.PathLike


def named_arrays(tree) -> dict:
    """The arrays of a tree, or their shapes alone, by their place, such as `blocks.0.attention.query.weight`."""
    leaves = [(place_of(path), leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)]
    named = [(name, _numbers(leaf)) for name, leaf in leaves if hasattr(leaf, "shape")]
    if len(arrays := dict(named)) < len(named):
        name = Counter(name for name, _ in named).most_common(1)[0][0]
        raise ValueError(
            f"Two arrays are named {name!r}; expected names of their own. Rename the key with the full stop."
        )
    return arrays


@checked
def with_arrays(tree, arrays: dict, *, copy: bool = True):
    """Return the tree with other arrays, by the names that `named_arrays` gives them; what is no array stays.

    So weights from elsewhere come into a model: `with_arrays(model, {"embedding.weight": array, …})`. Floats may have
    another number of bits. Where an array is cut over several devices, so is the one in its place.

    Args:
        copy: whether the tree gets arrays of its own. Without, it takes those of JAX as they are, which saves memory;
            then nothing else may use them, since a training may overwrite its model.

    Raises:
        ValueError: naming unknown, missing and misshapen ones.
    """
    arrays = {name: native(array) for name, array in arrays.items()}
    if wrong := misfits(tree, arrays):
        raise ValueError(f"The arrays do not fit: {wrong}.")

    own = jnp.array if copy else jnp.asarray

    def replaced(path, leaf):
        if not hasattr(leaf, "shape"):
            return leaf
        array, sharding = arrays[place_of(path)], getattr(leaf, "sharding", None)
        array = placed(array, sharding) if isinstance(sharding, NamedSharding) else own(array)
        return jax.random.wrap_key_data(array, impl=jax.random.key_impl(leaf)) if _is_key(leaf) else array

    return jax.tree_util.tree_map_with_path(replaced, tree)


def misfits(tree, arrays: dict) -> str:
    """What of these arrays does not fit into a tree, of which floats may have any number of bits; "" if all do."""
    return differences(
        arrays, {place: _as_saved(leaf, arrays.get(place)) for place, leaf in named_arrays(tree).items()}
    )


def _numbers(leaf):
    """An array, or the numbers that make a random key, as some optimisers keep it."""
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _is_key(leaf) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def place_of(path) -> str:
    """The name of a place in a tree, such as `blocks.0.attention.query.weight`."""
    return jax.tree_util.keystr(path, simple=True, separator=".")


def digest(arrays: dict, *texts: str) -> str:
    """A number, in hexadecimal, that changes if an array does, or its name, shape or dtype, or one of the texts."""
    total = hashlib.sha256("".join(f"{len(text)} {text} " for text in texts).encode())
    for name, array in sorted(arrays.items()):
        total.update(f"{name} {array.dtype} {tuple(array.shape)} ".encode())
        total.update(np.ascontiguousarray(whole(array)).tobytes())
    return total.hexdigest()


def placed(array, sharding: NamedSharding):
    """A copy of an array where a sharding says."""
    if sharding.is_fully_addressable or not lies_here(array):
        return jnp.array(array, device=sharding)
    # Each process has all of it: each takes what is for its own devices, and none needs to ask another.
    return jax.make_array_from_callback(np.shape(array), sharding, lambda index: np.array(array)[index])


def lies_here(array) -> bool:
    """Whether all of an array lies on devices of this process."""
    return getattr(array, "is_fully_addressable", True)


def whole(array) -> np.ndarray:
    """The numbers of an array; of one whose parts lie in several processes, all of which have to ask, those of all."""
    if lies_here(array) or array.is_fully_replicated:
        return np.asarray(array)
    from jax.experimental.multihost_utils import process_allgather

    return process_allgather(array, tiled=True)


def differences(found: dict, expected: dict) -> str:
    """In which names, shapes or dtypes two sets of named arrays differ, the first few; "" if in none."""

    def spell(arrays, name):
        return f"{tuple(arrays[name].shape)} {arrays[name].dtype}" if name in arrays else "missing"

    names = [name for name in {**expected, **found} if spell(found, name) != spell(expected, name)]
    said = [f"{name} is {spell(found, name)}, expected {spell(expected, name)}" for name in names[:3]]
    more = [f"and {len(names) - 3} more"] if len(names) > 3 else []
    return "; ".join(said + more).replace("expected missing", "expected none")


def own_part(array):
    """What of an array lies in this process."""
    if lies_here(array):
        return array
    from jax.experimental.multihost_utils import global_array_to_host_local_array

    return np.asarray(global_array_to_host_local_array(array, array.sharding.mesh, array.sharding.spec))


def to_json(value, indent: int | None = None) -> str:
    """JSON of a configuration or of anything that holds one; NumPy's and JAX's numbers become Python's."""

    def plain(part):
        if dataclasses.is_dataclass(part) and not isinstance(part, type):
            return dataclasses.asdict(part)
        if hasattr(part, "tolist"):
            return part.tolist()
        raise TypeError(f"{part!r} is not JSON serializable; expected numbers, strings, lists and dictionaries.")

    _check_keys(value)
    return json.dumps(value, indent=indent, default=plain)


def _check_keys(value) -> None:
    """Raise `ValueError` if two keys of a dictionary would be one: in JSON every key is a string."""
    if isinstance(value, dict):
        strings = Counter(str(key) for key in value)
        if twice := [key for key, times in strings.items() if times > 1]:
            raise ValueError(f"Two keys are {twice[0]!r} as strings, which all keys become in a file; rename one.")
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        _check_keys(part)


@checked
def quantise(weight: Float[Array, "d_in d_out"]) -> tuple[Int8[Array, "d_in d_out"], Float[Array, " d_out"]]:
    r"""Round every column of a matrix to 255 equal steps, -127 to 127; return the whole numbers and each column's step.

    Implements `eq-efficiency-int8`; Dettmers et al. (2022), section 2.1, with a step for each column of the weights.
    """
    step = jnp.abs(weight).max(axis=0) / 127
    return jnp.round(weight / jnp.where(step == 0, 1, step)).astype(jnp.int8), step


def in_eight_bits(arrays: dict) -> dict:
    """Each matrix of floats by `quantise`, with the steps of its columns as `name.step`; other arrays stay."""
    small = dict(arrays)
    for name, array in arrays.items():
        if array.ndim == 2 and jnp.issubdtype(array.dtype, jnp.floating):
            small[name], small[f"{name}.step"] = quantise(array)
    return small


def in_floats(arrays: dict) -> dict:
    """What `in_eight_bits` was given, but for rounding."""
    full = dict(arrays)
    for name in [name for name in arrays if arrays[name].dtype == np.int8 and f"{name}.step" in arrays]:
        full[name] = arrays[name] * full.pop(f"{name}.step")
    return full


def to_bytes(tree, header: dict[str, str]) -> bytes:
    """A safetensors file of a tree's arrays, which are the same bytes each time: its own order of the header is not."""
    from safetensors.numpy import save

    # In C order, since safetensors writes numbers as they lie.
    arrays = {name: np.asarray(native(whole(array)), order="C") for name, array in named_arrays(tree).items()}
    content = save(arrays, {**header, "sha256": _seal(arrays, header)})
    end = 8 + int.from_bytes(content[:8], "little")  # eight bytes say how long the header is; it ends in white space
    text = json.dumps(json.loads(content[8:end]), sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + content[end:]


def read_arrays(path: Path, part: str) -> tuple[dict, dict]:
    """The arrays and the header of a file, which holds a certain part; `ValueError` says what is wrong, not where."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path.name} in {path.parent}.")
    path.open("rb").close()  # raises if it may not be read; safe_open would say that there is no such file
    try:
        with safe_open(path, "numpy") as file:
            header = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no dictionary)
    except (SafetensorError, OSError, AttributeError) as error:  # the last for a dtype that NumPy does not have
        if getattr(error, "errno", None):
            raise  # the disk does not read, which says nothing of the file
        raise ValueError(error) from error
    if part not in header:
        raise ValueError(f"it has no {part} in its header")
    if header.get("sha256") != _seal(arrays, header):
        raise ValueError(f"its numbers or its {part} are not those saved")
    return arrays, header


def header_of(path: Path) -> dict[str, str]:
    """The header of a safetensors file, of which nothing else is read; `{}` if it is none."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "numpy") as file:
            return file.metadata() or {}
    except (SafetensorError, OSError):
        return {}


def holds_adapters(header: dict[str, str]) -> bool:
    """Whether a file with this header is one of `save_adapters`."""
    return "model" not in header and '"adapters_of"' in header.get("config", "")


def _seal(arrays: dict, header: dict[str, str]) -> str:
    return digest(arrays, *(header[part] for part in ("config", "tokenizer", "metadata", "own") if part in header))


def _as_saved(leaf, array):
    """The shape of a leaf, with the dtype that the file has for it: a model may have been saved in 16 or 64 bits."""
    both = array is not None and all(jnp.issubdtype(each.dtype, jnp.floating) for each in (leaf, array))
    return jax.ShapeDtypeStruct(leaf.shape, array.dtype if both else leaf.dtype)
