"""Models and training runs as safetensors files: whole or not at all, and checked when they are read (chapter 06)."""

import dataclasses
import hashlib
import json
import os
from pathlib import Path
from typing import Any, get_args, get_type_hints

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from plainformer.checks import check_positive
from plainformer.data.files import parse_json, write_bytes, write_text
from plainformer.tokens.tokenizer import tokenizer_from_json

Location = str | os.PathLike


def save_model(path: Location, model, tokenizer=None) -> None:
    r"""Write a model's weights, its configuration and its tokenizer into one safetensors file.

    Tensors are named by their place in the model, such as `embedding.weight`; the configuration and the tokenizer stand
    in the header. `"decoder.json"` beside `"decoder.safetensors"` tells the configuration to people and to other
    programs; it is never read again.

    **Arguments**

    - `path`: such as `"decoder.safetensors"`.
    - `model`: a module with a field `config`, a dataclass, such as a `Decoder`.
    - `tokenizer`: what made its token ids, a `Vocabulary` or a `BytePairEncoder`; `None` for none.

    **Raises** `ValueError` if `path` does not end in `.safetensors`, the model has parts that its configuration does
    not describe, or the tokenizer has more tokens than the model; `TypeError` if the model has no configuration;
    `OSError` that names the file if it cannot be written; weights that were there before then stay.
    """
    path = _check_path(path)
    if not dataclasses.is_dataclass(getattr(model, "config", None)):
        raise TypeError(f"{type(model).__name__} has no config; expected a model made from one, such as a Decoder.")
    described: Any = jax.tree.structure(_skeleton(type(model), model.config))
    if described != jax.tree.structure(model):
        raise ValueError(
            f"This {type(model).__name__} is not what its config describes, so load_model would build another one; "
            "were parts of another model put into it, with other heads or another activation? Make both of one config."
        )
    header = {"model": type(model).__name__, "config": to_json(model.config, indent=2)}
    if tokenizer is not None:
        _check_tokenizer(tokenizer, model.config)
        header["tokenizer"] = tokenizer.to_json()
    beside, text = path.with_suffix(".json"), header["config"] + "\n"
    if beside.is_file() and beside.read_bytes() != text.encode():
        beside.unlink()  # rather none than one of another model, should this end before the last line
    _write(path, model, header)
    write_text(beside, text)


def load_model(path: Location, model_class: type) -> Any:
    r"""Read back what `save_model` wrote.

    **Arguments**

    - `path`: of the safetensors file.
    - `model_class`: the class of the model, such as `Decoder`.

    **Returns** the model, or the model and its tokenizer if the file holds one. The numbers have the dtypes that they
    were saved with; float64 needs `jax_enable_x64`.

    **Raises** `FileNotFoundError` if there is no such file; `ValueError` if it is damaged, was not written by
    `save_model`, or holds another class of model.
    """
    path = _check_path(path)
    if not isinstance(model_class, type):
        raise TypeError(f"model_class is a {type(model_class).__name__}; expected a class, such as Decoder.")
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}. Looked in {path.parent.resolve()}.")
    try:
        arrays, header = _read(path, "config")
    except ValueError as error:
        raise ValueError(
            f"{path} is damaged, or no file of save_model: {error}. Is it cut short, or a web page? Get it again."
        ) from error
    if header.get("model") != model_class.__name__:
        raise ValueError(f"{path} holds the model {header.get('model')}; expected {model_class.__name__}.")
    config_class = get_type_hints(model_class)["config"]  # of a parent class, too, and where annotations are strings
    try:
        config = parse_json(header["config"], "it")
        # A header of a few bytes may ask for more layers than anybody has time to build.
        if (layers := _count_layers(config)) > max(len(arrays), 100):
            raise ValueError(f"{layers} layers, but {len(arrays)} tensors")
        skeleton = _skeleton(model_class, _from_dict(config_class, config))
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{path} has a configuration that no {model_class.__name__} has: {error}.") from error
    expected = {name: _as_saved(leaf, arrays.get(name)) for name, leaf in named_arrays(skeleton).items()}
    if wrong := differences(arrays, expected):
        raise ValueError(f"{path} does not fit its own configuration: {wrong}.")
    model = with_arrays(skeleton, arrays)
    if "tokenizer" not in header:
        return model
    try:
        return model, tokenizer_from_json(header["tokenizer"])
    except ValueError as error:
        raise ValueError(f"{path} holds {model_class.__name__} and no tokenizer that can be read: {error}") from error


def save_checkpoint(directory: Location, step: int, state, metadata: dict, *, max_to_keep: int = 3) -> Path:
    r"""Save the state of a training run, whole or not at all, and delete all checkpoints but those of the most steps.

    **Arguments**

    - `directory`: where the checkpoints of this run lie, such as `000250.safetensors`; made if missing.
    - `step`: how many steps the state has behind it; the file's name.
    - `state`: any tree of arrays.
    - `metadata`: what else to keep with it, such as configurations and losses; whatever JSON can hold.
    - `max_to_keep`: how many checkpoints stay. What is no checkpoint stays anyway.

    **Returns** the path of the new checkpoint.

    **Raises** `OSError` that names the folder if it cannot be written; older checkpoints stay as they are.
    `FileExistsError`, which is one, if there is a file of this name; `TypeError` if JSON cannot hold the metadata.
    """
    check_positive(max_to_keep=max_to_keep, **{"step + 1": step + 1})
    header, target = {"metadata": to_json(metadata)}, Path(directory).absolute()
    path = target / file_name(step)
    if path.exists():
        kind = "checkpoint" if step in list_checkpoints(target) else "file or folder"
        raise FileExistsError(
            f"There is a {kind} {path} already; delete it, or use another folder. "
            "If another process trains into this one, stop one of the two."
        )
    try:
        target.mkdir(parents=True, exist_ok=True)
        _write(path, state, header)
    except OSError as error:
        raise OSError(
            f"Cannot save step {step} in {target}: {error}. Is the disk full, or the folder read-only? "
            f"Checkpoints that are there already stay: {list_checkpoints(target) or 'none'}."
        ) from error
    for old in list_checkpoints(target)[:-max_to_keep]:
        (target / file_name(old)).unlink(missing_ok=True)
    return path


def list_checkpoints(directory: Location) -> list[int]:
    r"""Return the steps of the checkpoints in a folder, in order; an empty list if there is no folder.

    A checkpoint is a file named by its step, such as `000250.safetensors`, that `save_checkpoint` wrote. A damaged one
    is listed, too: `load_checkpoint` says what is wrong with it.
    """
    target = Path(directory).absolute()
    if not target.is_dir():
        return []
    return sorted(int(path.stem) for path in target.iterdir() if _is_checkpoint(path))


def load_checkpoint(directory: Location, like, *, step: int | None = None) -> tuple[Any, dict, int]:
    r"""Load the state of a training run.

    **Arguments**

    - `directory`: as it was given to `save_checkpoint`.
    - `like`: a tree of the same structure and shapes, whose numbers do not matter; what is no array is taken from it.
      What `fit` saves is like `(model, make_optimiser(config).init(model))`.
    - `step`: which checkpoint; `None` for the newest.

    **Returns** the state, the metadata and the step.

    **Raises** `FileNotFoundError` if there is none; `ValueError` if it was made by another model, or is damaged, with
    the steps of the others; `PermissionError` if it may not be read.
    """
    target, steps = Path(directory).absolute(), list_checkpoints(directory)
    if not steps or step not in (None, *steps):
        which = "no checkpoint" if step is None else f"no checkpoint of step {step}"
        raise FileNotFoundError(f"There is {which} in {target}; found {steps or 'none'}.")
    step = steps[-1] if step is None else step
    path, others = target / file_name(step), [other for other in steps if other != step]
    there = f"Other checkpoints there: {others or 'none'}."
    try:
        arrays, header = _read(path, "metadata")
        metadata = parse_json(header["metadata"], "its metadata")
    except ValueError as error:
        advice = f"To go back to one, delete the file {path}." if others else "Start anew elsewhere."
        raise ValueError(f"The checkpoint {path} is damaged: {error}. {there} {advice}") from error
    if wrong := differences(arrays, named_arrays(like)):
        raise ValueError(
            f"The checkpoint {path} is of another model: {wrong}. "
            f"Train into another directory, or make the model that it was saved from. {there}"
        )
    return with_arrays(like, arrays), metadata, step


def file_name(step: int) -> str:
    """The name of a checkpoint, with zeros in front, so that a list by name is in order."""
    return f"{step:06d}.safetensors"


def named_arrays(tree) -> dict:
    """The arrays of a module or any other tree by their place in it, such as `blocks.0.attention.query.weight`.

    Shapes without numbers, as `eqx.filter_eval_shape` returns them, count as arrays.
    """
    return {_place(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree) if hasattr(leaf, "shape")}


def with_arrays(tree, arrays: dict):
    """The tree with other arrays, by the names that `named_arrays` gives them; what is no array stays."""

    def replaced(path, leaf):
        return jnp.array(arrays[_place(path)]) if hasattr(leaf, "shape") else leaf

    return jax.tree_util.tree_map_with_path(replaced, tree)


def _place(path) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")


def digest(arrays: dict, *texts: str) -> str:
    """A number, in hexadecimal, that changes if an array does, or its name, shape or dtype, or one of the texts."""
    total = hashlib.sha256("".join(f"{len(text)} {text} " for text in texts).encode())
    for name, array in sorted(arrays.items()):
        total.update(f"{name} {array.dtype} {tuple(array.shape)} ".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def differences(found: dict, expected: dict) -> str:
    """In which names, shapes or dtypes two sets of named arrays differ, the first few; "" if in none."""

    def spell(arrays, name):
        return f"{tuple(arrays[name].shape)} {arrays[name].dtype}" if name in arrays else "missing"

    names = [name for name in {**expected, **found} if spell(found, name) != spell(expected, name)]
    said = [f"{name} is {spell(found, name)}, expected {spell(expected, name)}" for name in names[:3]]
    more = [f"and {len(names) - 3} more"] if len(names) > 3 else []
    return "; ".join(said + more).replace("expected missing", "expected none")


def to_json(value, indent: int | None = None) -> str:
    """JSON of a configuration or of anything that holds one; NumPy's and JAX's numbers become Python's."""

    def plain(part):
        if dataclasses.is_dataclass(part) and not isinstance(part, type):
            return dataclasses.asdict(part)
        if hasattr(part, "item"):
            return part.item()
        raise TypeError(f"{part!r} is not JSON serializable; expected numbers, strings, lists and dictionaries.")

    return json.dumps(value, indent=indent, default=plain)


def _from_dict(config_class: Any, fields: dict) -> Any:
    """A dataclass from its fields as `to_json` wrote them; the annotations say which of them are dataclasses, too."""
    hints = get_type_hints(config_class)

    def built(name, value):
        kinds = [kind for kind in (hints.get(name), *get_args(hints.get(name))) if dataclasses.is_dataclass(kind)]
        return _from_dict(kinds[0], value) if kinds and isinstance(value, dict) else value

    return config_class(**{name: built(name, value) for name, value in fields.items()})


def _count_layers(fields: dict) -> int:
    counts = [_count_layers(value) for value in fields.values() if isinstance(value, dict)]
    return sum([*counts, *(value for name, value in fields.items() if name.endswith("_layers"))])


def _skeleton(model_class: type, config):
    """A model of this configuration, with shapes in place of numbers."""
    return eqx.filter_eval_shape(lambda key: model_class(config, key=key), jax.random.key(0))


def _as_saved(leaf, array):
    """The shape of a leaf, with the dtype that the file has for it: a model may have been saved in 16 or 64 bits."""
    both = array is not None and all(jnp.issubdtype(each.dtype, jnp.floating) for each in (leaf, array))
    return jax.ShapeDtypeStruct(leaf.shape, array.dtype if both else leaf.dtype)


def _write(path: Path, tree, header: dict[str, str]) -> None:
    from safetensors.numpy import save

    # In C order, since safetensors writes numbers as they lie.
    arrays = {name: np.asarray(array, order="C") for name, array in named_arrays(tree).items()}
    write_bytes(path, save(arrays, {**header, "sha256": _seal(arrays, header)}))


def _read(path: Path, part: str) -> tuple[dict, dict]:
    """The arrays and the header of a file, which holds a certain part; `ValueError` says what is wrong, not where."""
    from safetensors import SafetensorError, safe_open

    path.open("rb").close()  # raises if it may not be read; safe_open would say that there is no such file
    try:
        with safe_open(path, "numpy") as file:
            header = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no dictionary)
    except (SafetensorError, OSError, AttributeError) as error:  # the last for a dtype that NumPy does not have
        raise ValueError(error) from error
    if part not in header:
        raise ValueError(f"it has no {part} in its header")
    if header.get("sha256") != _seal(arrays, header):
        raise ValueError(f"its numbers or its {part} are not those saved")
    return arrays, header


def _seal(arrays: dict, header: dict[str, str]) -> str:
    return digest(arrays, *(header[part] for part in ("config", "tokenizer", "metadata") if part in header))


def _is_checkpoint(path: Path) -> bool:
    from safetensors import SafetensorError, safe_open

    if not (path.stem.isdecimal() and path.name == file_name(int(path.stem)) and path.is_file()):
        return False
    try:
        with safe_open(path, "numpy") as file:
            return "metadata" in (file.metadata() or {})
    except (SafetensorError, OSError):
        return True  # a damaged one, which loading shall name


def _check_path(path: Location) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path is a {type(path).__name__}; expected a file name, such as 'decoder.safetensors', first.")
    if Path(path).suffix != ".safetensors":
        raise ValueError(f"path is {os.fspath(path)!r}; expected one that ends in .safetensors.")
    return Path(path)


def _check_tokenizer(tokenizer, config) -> None:
    if not hasattr(tokenizer, "to_json"):
        raise TypeError(
            f"tokenizer is a {type(tokenizer).__name__}; expected a Vocabulary or a BytePairEncoder, or None."
        )
    vocab_size = getattr(config, "vocab_size", None)
    if vocab_size is not None and len(tokenizer) > vocab_size:
        raise ValueError(
            f"tokenizer has {len(tokenizer)} tokens, and the model vocab_size={vocab_size}; expected that of the model."
        )
