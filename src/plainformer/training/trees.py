"""Modules as what they are to a file: arrays with names."""

import dataclasses
import hashlib

import jax
import numpy as np


def named_arrays(tree) -> dict:
    """Give the arrays of a module or any other tree by their place in it, such as `blocks.0.attention.query_weight`.

    Shapes without numbers, as `eqx.filter_eval_shape` gives them, count as arrays.
    """
    return {_name(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree) if _is_array(leaf)}


def with_arrays(tree, arrays: dict):
    """Give the tree with other arrays, by the names that `named_arrays` gives them; what is no array stays."""
    return jax.tree_util.tree_map_with_path(lambda path, leaf: arrays[_name(path)] if _is_array(leaf) else leaf, tree)


def _name(path) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")


def _is_array(leaf) -> bool:
    return hasattr(leaf, "shape")


def digest(arrays: dict, text: str = "") -> str:
    """A number, in hexadecimal, that changes if any of the arrays does, or its name, shape or dtype, or the text."""
    total = hashlib.sha256(f"{len(text)} {text} ".encode())
    for name, array in sorted(arrays.items()):
        total.update(f"{name} {array.dtype} {tuple(array.shape)} ".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def config_dict(config) -> dict:
    """The fields of a configuration, as JSON can hold them: NumPy's and JAX's numbers become Python's."""
    fields = dataclasses.asdict(config)
    return {name: value.item() if hasattr(value, "item") else value for name, value in fields.items()}


def differences(found: dict, expected: dict) -> str:
    """Say in which names, shapes or dtypes two sets of named arrays differ, the first few; "" if in none."""

    def spell(arrays, name):
        return f"{tuple(arrays[name].shape)} {arrays[name].dtype}" if name in arrays else "missing"

    names = [name for name in {**expected, **found} if spell(found, name) != spell(expected, name)]
    said = [f"{name} is {spell(found, name)}, expected {spell(expected, name)}" for name in names[:3]]
    more = [f"and {len(names) - 3} more"] if len(names) > 3 else []
    return "; ".join(said + more).replace("expected missing", "expected none")
