"""Models and training runs as safetensors files: whole or not at all, and checked when they are read (chapter 06)."""

import dataclasses
import hashlib
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_type_hints, overload

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from plainformer.checks import Natural, Positive, checked
from plainformer.data.files import parse_json, write_bytes
from plainformer.tokens.tokenizer import tokenizer_from_json

Location = str | os.PathLike
Model = TypeVar("Model")


class DamagedCheckpoint(ValueError):
    """A checkpoint is not as it was saved."""


def save_model(path: Location, model, tokenizer=None) -> None:
    r"""Write a model's weights, its configuration and its tokenizer into one safetensors file.

    Tensors are named by their place in the model, such as `embedding.weight`; the configuration and the tokenizer stand
    in the header. `"decoder.json"` beside `"decoder.safetensors"` tells the configuration to people and to other
    programs; it is never read again. The same model gives the same bytes.

    **Arguments** a path that ends in `.safetensors`; a module with a field `config`, a dataclass, such as a `Decoder`;
    what made its token ids. **Raises** `ValueError` for a model that `load_model` could not build from its `config`,
    such as one with adapters or in int8; `FileExistsError` if `"decoder.json"` is there and is not the configuration in
    `"decoder.safetensors"`; `OSError` if the file cannot be written: the one that was there before stays.

    **Example**

    >>> config = pf.DecoderConfig(65, 16, stack=pf.StackConfig(d_model=8, num_layers=1, num_heads=2))
    >>> decoder = pf.Decoder(config, key=jax.random.key(0))
    >>> pf.save_model("decoder.safetensors", decoder, pf.Vocabulary("abc"))
    >>> same, vocabulary = pf.load_model("decoder.safetensors", pf.Decoder)
    >>> vocabulary.decode([2, 0, 1])
    'cab'
    """
    path = _check_path(path)
    content, text, beside = model_bytes(model, tokenizer), _config_text(model), path.with_suffix(".json")
    before = _config_in(path)
    if os.path.lexists(beside) and not (beside.is_file() and beside.read_bytes() in (before, text)):
        raise FileExistsError(
            f"{beside} exists, and is not the configuration of a model in {path.name}; nothing was written. Give the "
            "model another name, or that file."
        )
    if before != text:
        beside.unlink(missing_ok=True)  # if this ends before the last line, no configuration is left of another model
    write_bytes(path, content)
    write_bytes(beside, text)


def model_bytes(model, tokenizer=None) -> bytes:
    """The content of the file that `save_model` writes; errors as there."""
    if not dataclasses.is_dataclass(getattr(model, "config", None)):
        raise TypeError(f"{type(model).__name__} has no config; expected a model made from one, such as a Decoder.")
    header = {"model": type(model).__name__, "config": to_json(model.config, indent=2)}
    if tokenizer is not None:
        if not hasattr(tokenizer, "to_json"):
            raise TypeError(f"tokenizer is a {type(tokenizer).__name__}; expected a Vocabulary or a BytePairEncoder.")
        vocab_size = getattr(model.config, "vocab_size", None)
        if vocab_size is not None and len(tokenizer) > vocab_size:
            raise ValueError(f"tokenizer has {len(tokenizer)} tokens; expected that of the model, with {vocab_size=}.")
        header["tokenizer"] = tokenizer.to_json()
        tokenizer_from_json(header["tokenizer"])  # raises if it could not be loaded
    _check_loadable(model, header["config"])
    return _to_bytes(model, header)


def _check_loadable(model, config: str) -> None:
    """Raise `ValueError` if `load_model` would refuse this model, or build another one."""
    name, arrays = type(model).__name__, named_arrays(model)
    try:
        skeleton = _described(parse_json(config, "it"), type(model), len(arrays))
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"load_model could not build a {name} from its config: {error}.") from error
    if skeleton.config != model.config:
        read = f"as {skeleton.config}, and was {model.config}"
        raise ValueError(f"The config of this {name} would be read {read}; let its __post_init__ make tuples of lists.")
    wrong = _misfits(skeleton, arrays)
    if not wrong and jax.tree.structure(skeleton) == jax.tree.structure(model):
        return
    raise ValueError(
        f"This {name} is not what its config describes, so load_model would build another one"
        f"{f': {wrong}' if wrong else ''}. Has it parts of another model, with other heads or another activation? Make "
        "both of one config. To store it as it is, such as with adapters or in int8: safetensors.flax.save_file("
        "pf.training.named_arrays(model), path); with_arrays puts them back into such a model."
    )


def _config_text(model) -> bytes:
    """What stands in the file beside a model."""
    return (to_json(model.config, indent=2) + "\n").encode()


def _config_in(path: Path) -> bytes | None:
    """The configuration in a file of `save_model`, as `_config_text` gives it; `None` if it is no such file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "numpy") as file:
            return (file.metadata()["config"] + "\n").encode()
    except (SafetensorError, OSError, TypeError, KeyError):
        return None


@overload
def load_model(path: Location, model_class: type[Model], *, tokenizer: Literal[False] | None = None) -> Model: ...


@overload
def load_model(path: Location, model_class: type[Model], *, tokenizer: Literal[True]) -> tuple[Model, Any]: ...


@checked
def load_model(path: Location, model_class: type[Model], *, tokenizer: bool | None = None) -> Any:
    r"""Read back what `save_model` wrote.

    **Arguments** the file; the class of its model, such as `Decoder`; `tokenizer`, whether to return the tokenizer,
    too: `None` for yes if the file holds one.

    **Returns** the model, or the model and its tokenizer. The numbers have the dtypes that they were saved with;
    float64 needs `jax_enable_x64`. **Raises** `ValueError` if the file is damaged, or holds no tokenizer where one is
    asked for; `FileNotFoundError` if there is no file.

    **Example**

    >>> config = pf.DecoderConfig(65, 16, stack=pf.StackConfig(d_model=8, num_layers=1, num_heads=2))
    >>> pf.save_model("decoder.safetensors", pf.Decoder(config, key=jax.random.key(0)))
    >>> pf.load_model("decoder.safetensors", pf.Decoder).config == config
    True
    """
    path = _check_path(path)
    if not isinstance(model_class, type):
        raise TypeError(f"model_class is a {type(model_class).__name__}; expected a class, such as Decoder.")
    try:
        arrays, header = _read(path, "config")
    except ValueError as error:
        hint = "Is it cut short, or a web page? Get it again."
        if _is_checkpoint(path):
            hint = "It is a checkpoint of fit: let fit go on from it, or read it by load_checkpoint."
        raise ValueError(f"{path} is damaged, or no file of save_model: {error}. {hint}") from error
    name = model_class.__name__
    if header.get("model") != name:
        raise ValueError(f"{path} holds the model {header.get('model')}; expected {name}.")
    try:
        skeleton = _described(parse_json(header["config"], "it"), model_class, len(arrays))
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{path} has a configuration that no {name} has: {error}.") from error
    try:
        model = with_arrays(skeleton, arrays)
    except ValueError as error:
        raise ValueError(f"{path} does not fit its own configuration. {error}") from None
    if tokenizer is False or (tokenizer is None and "tokenizer" not in header):
        return model
    if "tokenizer" not in header:
        raise ValueError(f"{path} holds no tokenizer; expected one, as save_model(path, model, tokenizer) writes it.")
    try:
        return model, tokenizer_from_json(header["tokenizer"])
    except ValueError as error:
        raise ValueError(f"The tokenizer in {path} cannot be read: {error} To do without: tokenizer=False.") from error


@checked
def save_checkpoint(directory: Location, step: Natural, state, metadata: dict, *, max_to_keep: Positive = 3) -> Path:
    r"""Save the state of a training run, whole or not at all, and delete all checkpoints but those of the most steps.

    **Arguments**

    - `directory`: where the checkpoints of this run lie, such as `000250.safetensors`; made if missing.
    - `step`: how many steps the state, a tree of arrays, has behind it.
    - `metadata`: what else to keep with it, such as configurations and losses; whatever JSON can hold.
    - `max_to_keep`: how many checkpoints stay. What is no checkpoint stays anyway.

    **Returns** its path. **Raises** `OSError` if it cannot be written, or is there: older ones stay as they are.
    """
    header, target = {"metadata": to_json(metadata)}, Path(directory).absolute()
    path = target / file_name(step)
    if path.exists():
        raise FileExistsError(f"{path} exists: delete it, or use another folder. Does another process train there?")
    try:
        target.mkdir(parents=True, exist_ok=True)
        write_bytes(path, _to_bytes(state, header))
    except OSError as error:
        raise OSError(
            f"Cannot save step {step} in {target}: {error}. Is the disk full, or the folder read-only? "
            f"Checkpoints that are there already stay: {list_checkpoints(target) or 'none'}."
        ) from error
    for old in list_checkpoints(target)[:-max_to_keep]:
        (target / file_name(old)).unlink(missing_ok=True)
    return path


@checked
def list_checkpoints(directory: Location) -> list[int]:
    r"""Return the steps of the checkpoints in a folder, in order; of damaged ones, too; none if there is no folder."""
    target = Path(directory).absolute()
    if not target.is_dir():
        return []
    return sorted(int(path.stem) for path in target.iterdir() if _is_checkpoint(path))


@checked
def load_checkpoint(directory: Location, like, *, step: Natural | None = None) -> tuple[Any, dict, int]:
    r"""Load the state of a training run.

    **Arguments**

    - `like`: a tree of the same structure and shapes, whose numbers do not matter; what is no array is taken from it.
      What `fit` saves is like `(model, make_optimiser(config).init(model))`.
    - `step`: which checkpoint; `None` for the newest.

    **Returns** the state, the metadata and the step. **Raises** `FileNotFoundError` if there is none,
    `DamagedCheckpoint`, a `ValueError`, if it is damaged; `ValueError` if it is of another model.
    """
    arrays, metadata, step = read_checkpoint(directory, step)
    if wrong := differences(arrays, named_arrays(like)):
        path, others = Path(directory).absolute() / file_name(step), _others(directory, step)
        raise ValueError(
            f"The checkpoint {path} is of another model: {wrong}. Train into another directory, or make the model that "
            f"it was saved from. Other checkpoints there: {others or 'none'}."
        )
    return with_arrays(like, arrays), metadata, step


def read_checkpoint(directory: Location, step: int | None = None) -> tuple[dict, dict, int]:
    """The arrays of a checkpoint by name, its metadata and its step; as for `load_checkpoint`, of whichever model."""
    target, steps = Path(directory).absolute(), list_checkpoints(directory)
    which = "" if step is None else f" of step {step}"
    step = max(steps, default=None) if step is None else step
    if step not in steps:
        raise FileNotFoundError(f"There is no checkpoint{which} in {target}; found {steps or 'none'}.")
    path, others = target / file_name(step), _others(directory, step)
    try:
        arrays, header = _read(path, "metadata")
        return arrays, parse_json(header["metadata"], "its metadata"), step
    except ValueError as error:
        advice = f"To go back to one, delete the file {path}." if others else "Start anew elsewhere."
        raise DamagedCheckpoint(
            f"The checkpoint {path} is damaged: {error}. Other checkpoints there: {others or 'none'}. {advice}"
        ) from error


def _others(directory: Location, step: int) -> list[int]:
    return [other for other in list_checkpoints(directory) if other != step]


def file_name(step: int) -> str:
    """The name of a checkpoint, with zeros in front, so that a list by name is in order."""
    return f"{step:06d}.safetensors"


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
def with_arrays(tree, arrays: dict):
    """Return the tree with other arrays, by the names that `named_arrays` gives them; what is no array stays.

    So weights from elsewhere come into a model: `with_arrays(model, {"embedding.weight": array, …})`. Floats may have
    another number of bits. **Raises** `ValueError` that names unknown, missing and misshapen ones.
    """
    if wrong := _misfits(tree, arrays):
        raise ValueError(f"The arrays do not fit: {wrong}.")

    def replaced(path, leaf):
        if not hasattr(leaf, "shape"):
            return leaf
        array = jnp.array(arrays[place_of(path)])
        return jax.random.wrap_key_data(array, impl=jax.random.key_impl(leaf)) if _is_key(leaf) else array

    return jax.tree_util.tree_map_with_path(replaced, tree)


def _misfits(tree, arrays: dict) -> str:
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


def _described(fields: dict, model_class: type, num_tensors: int):
    """The model that a configuration describes, with shapes in place of numbers."""
    # A header of a few bytes may ask for more layers than anybody has time to build.
    if (layers := _count_layers(fields)) > max(num_tensors, 100):
        raise ValueError(f"{layers} layers, but {num_tensors} tensors")
    hints = get_type_hints(model_class)  # of a parent class, too, and where annotations are strings
    if "config" not in hints:
        raise TypeError(f"{model_class.__name__} does not say the class of its config; write it as a field")
    return _skeleton(model_class, _from_dict(hints["config"], fields))


def _count_layers(fields: dict) -> int:
    within = sum(_count_layers(value) for value in fields.values() if isinstance(value, dict))
    return within + sum(value for name, value in fields.items() if name.endswith("_layers"))


def _from_dict(config_class: Any, fields: dict) -> Any:
    """A dataclass from its fields as `to_json` wrote them; the annotations say which of them are dataclasses, too."""
    hints = get_type_hints(config_class)

    def built(name, value):
        kinds = [kind for kind in (hints.get(name), *get_args(hints.get(name))) if dataclasses.is_dataclass(kind)]
        return _from_dict(kinds[0], value) if kinds and isinstance(value, dict) else value

    return config_class(**{name: built(name, value) for name, value in fields.items()})


def _skeleton(model_class: Any, config) -> Any:
    return eqx.filter_eval_shape(model_class, config, key=jax.random.key(0))


def _as_saved(leaf, array):
    """The shape of a leaf, with the dtype that the file has for it: a model may have been saved in 16 or 64 bits."""
    both = array is not None and all(jnp.issubdtype(each.dtype, jnp.floating) for each in (leaf, array))
    return jax.ShapeDtypeStruct(leaf.shape, array.dtype if both else leaf.dtype)


def _to_bytes(tree, header: dict[str, str]) -> bytes:
    """A safetensors file of a tree's arrays, which are the same bytes each time: its own order of the header is not."""
    from safetensors.numpy import save

    # In C order, since safetensors writes numbers as they lie.
    arrays = {name: np.asarray(array, order="C") for name, array in named_arrays(tree).items()}
    content = save(arrays, {**header, "sha256": _seal(arrays, header)})
    end = 8 + int.from_bytes(content[:8], "little")  # eight bytes say how long the header is; it ends in white space
    text = json.dumps(json.loads(content[8:end]), sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + content[end:]


def _read(path: Path, part: str) -> tuple[dict, dict]:
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
    return Path(path).absolute()
