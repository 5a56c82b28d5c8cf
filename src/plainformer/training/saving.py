"""Models as safetensors files, with their configurations and tokenizers (chapter on the decoder)."""

import dataclasses
import os
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_type_hints, overload

import equinox as eqx
import jax
from jax.sharding import Mesh

from plainformer.checks import check_each, checked
from plainformer.data.files import as_path, parse_json, write_bytes
from plainformer.tokens.tokenizer import tokenizer_from_json
from plainformer.training.arrays import (
    Location,
    header_of,
    holds_adapters,
    in_eight_bits,
    in_floats,
    lies_here,
    misfits,
    named_arrays,
    read_arrays,
    to_bytes,
    to_json,
    with_arrays,
)
from plainformer.training.checkpoint import is_checkpoint
from plainformer.training.sharding import Layout

Model = TypeVar("Model")


@checked
def save_model(
    path: Location, model, tokenizer=None, *, metadata: dict | None = None, stored_in: Literal["int8"] | None = None
) -> None:
    r"""Write a model's weights, its configuration and its tokenizer into one safetensors file.

    Tensors are named by their place in the model, such as `embedding.weight`; the configuration and the tokenizer stand
    in the header. `"decoder.json"` beside `"decoder.safetensors"` tells the configuration to people and to other
    programs; it is never read again. The same model gives the same bytes. All processes that a model
    lies in have to call this, and the first one writes.

    Args:
        path: one that ends in `.safetensors`.
        model: a module with a field `config`, a dataclass, such as a `Decoder`.
        tokenizer: what made its token ids.
        metadata: what else is to be kept with it, such as `{"classes": ["de", "en"]}`; whatever JSON can hold.
            `load_metadata` returns it.
        stored_in: `"int8"` for a quarter of the bytes: each matrix is rounded to 255 steps in each of its columns,
            `eq-efficiency-int8`, and `load_model` gives floats again. `None` for numbers as they are.

    Raises:
        ValueError: for a model that `load_model` could not build from its `config`, such as one with adapters or in
            int8.
        FileExistsError: if the file holds adapters, or `"decoder.json"` is there and is not the configuration in
            `"decoder.safetensors"`.
        OSError: if the file cannot be written: the one that was there before stays.

    Example:
        >>> config = pf.DecoderConfig(65, 16, stack=pf.StackConfig(d_model=8, num_layers=1, num_heads=2))
        >>> decoder = pf.Decoder(config, key=jax.random.key(0))
        >>> pf.save_model("decoder.safetensors", decoder, pf.Vocabulary("abc"))
        >>> same, vocabulary = pf.load_model("decoder.safetensors", pf.Decoder)
        >>> vocabulary.decode([2, 0, 1])
        'cab'
    """
    path = _check_path(path)
    if stored_in not in (None, "int8"):
        raise ValueError(f"stored_in is {stored_in!r}; expected 'int8', or None for numbers as they are.")
    content, text = model_bytes(model, tokenizer, stored_in, metadata), _config_text(model)
    beside = path.with_suffix(".json")
    if jax.process_index() and not all(map(lies_here, named_arrays(model).values())):
        return
    if holds_adapters(header_of(path)):
        raise FileExistsError(
            f"{path} holds adapters; expected a new file, or one of save_model. Give it another name."
        )
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


def model_bytes(model, tokenizer=None, stored_in: Literal["int8"] | None = None, metadata: dict | None = None) -> bytes:
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
    if metadata is not None:
        check_each(dict, metadata=metadata)
        header["own"] = to_json(metadata)
    _check_loadable(model, header["config"])
    return to_bytes(model if stored_in is None else in_eight_bits(named_arrays(model)), header)


def _check_loadable(model, config: str) -> None:
    """Raise `ValueError` if `load_model` would refuse this model, or build another one."""
    name, arrays = type(model).__name__, named_arrays(model)
    try:
        skeleton = _skeleton_of(parse_json(config, "it"), type(model), len(arrays))
    except Exception as error:  # whatever the class does
        raise ValueError(f"load_model could not build a {name} from its config: {error}.") from error
    if skeleton.config != model.config:
        read = f"as {skeleton.config}, and was {model.config}"
        raise ValueError(f"The config of this {name} would be read {read}; let its __post_init__ make tuples of lists.")
    wrong = misfits(skeleton, arrays)
    built: Any = jax.tree.structure(skeleton)
    if not wrong and built == jax.tree.structure(model):
        pairs = zip(_constants(model), _constants(skeleton), strict=True)
        wrong = ", ".join(f"{other} for {one}" for one, other in pairs if not _same(one, other))
        if not wrong:
            return
    raise ValueError(
        f"This {name} is not what its config describes, so load_model would build another one"
        f"{f': {wrong}' if wrong else ''}. Has it parts of another model, with other heads or another activation? Make "
        "both of one config. To store it as it is, such as with adapters or in int8: safetensors.flax.save_file("
        "pf.training.named_arrays(model), path); with_arrays puts them back into such a model."
    )


def _constants(model) -> list:
    """The leaves of a model that are no arrays, such as functions and numbers."""
    return [leaf for leaf in jax.tree.leaves(model) if not hasattr(leaf, "shape")]


def _same(one, other) -> bool:
    """Whether two constants are equal, or functions of one kind and name, which each call of a class may make anew."""
    kinds = [(type(each), getattr(each, "__qualname__", None)) for each in (one, other)]
    return one == other or (callable(one) and kinds[0] == kinds[1])


def _config_text(model) -> bytes:
    """What stands in the file beside a model."""
    return (to_json(model.config, indent=2) + "\n").encode()


def _config_in(path: Path) -> bytes | None:
    """The configuration in a file of `save_model`, as `_config_text` gives it; `None` if it is no such file."""
    config = header_of(path).get("config")
    return None if config is None else (config + "\n").encode()


@overload
def load_model(
    path: Location,
    model_class: type[Model],
    *,
    tokenizer: Literal[False] | None = None,
    mesh: Mesh | None = None,
    sharding: dict[str, str] | None = None,
) -> Model: ...


@overload
def load_model(
    path: Location,
    model_class: type[Model],
    *,
    tokenizer: Literal[True],
    mesh: Mesh | None = None,
    sharding: dict[str, str] | None = None,
) -> tuple[Model, Any]: ...


@checked
def load_model(
    path: Location,
    model_class: type[Model],
    *,
    tokenizer: bool | None = None,
    mesh: Mesh | None = None,
    sharding: dict[str, str] | None = None,
) -> Any:
    r"""Read back what `save_model` wrote.

    Args:
        path: the file.
        model_class: the class of its model, such as `Decoder`.
        tokenizer: whether to return the tokenizer, too: `None` for yes if the file holds one.
        mesh, sharding: devices that share the numbers, and what is cut over which axis of them, as for `fit`.

    Returns:
        The model, or the model and its tokenizer. The numbers have the dtypes that they were saved with; float64 needs
        `jax_enable_x64`.

    Raises:
        ValueError: if the file is damaged, or holds no tokenizer where one is asked for.
        FileNotFoundError: if there is no file.

    Example:
        >>> config = pf.DecoderConfig(65, 16, stack=pf.StackConfig(d_model=8, num_layers=1, num_heads=2))
        >>> pf.save_model("decoder.safetensors", pf.Decoder(config, key=jax.random.key(0)))
        >>> pf.load_model("decoder.safetensors", pf.Decoder).config == config
        True
    """
    path = _check_path(path)
    if not isinstance(model_class, type):
        raise TypeError(f"model_class is a {type(model_class).__name__}; expected a class, such as Decoder.")
    try:
        arrays, header = read_arrays(path, "config")
    except ValueError as error:
        hint = "Is it cut short, or a web page? Get it again."
        if is_checkpoint(path):
            hint = "It is a checkpoint of fit: let fit go on from it, or read it by load_checkpoint."
        raise ValueError(f"{path} is damaged, or no file of save_model: {error}. {hint}") from error
    name = model_class.__name__
    if holds_adapters(header):
        hint = "Put them into one by load_adapters(path, add_adapters(model, …))."
        raise ValueError(f"{path} holds adapters; expected the model {name}. {hint}")
    if header.get("model") != name:
        raise ValueError(f"{path} holds the model {header.get('model')}; expected {name}.")
    try:
        skeleton = _skeleton_of(parse_json(header["config"], "it"), model_class, len(arrays))
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{path} has a configuration that no {name} has: {error}.") from error
    skeleton = Layout(mesh, sharding, skeleton).place(skeleton)
    try:
        model = with_arrays(skeleton, in_floats(arrays))
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
def load_metadata(path: Location) -> dict:
    """Return what `save_model` was told to keep with a model; `{}` if that was nothing.

    Raises:
        ValueError: if the file is damaged.
        FileNotFoundError: if there is no file.

    Example:
        >>> config = pf.DecoderConfig(65, 16, stack=pf.StackConfig(d_model=8, num_layers=1, num_heads=2))
        >>> decoder = pf.Decoder(config, key=jax.random.key(0))
        >>> pf.save_model("decoder.safetensors", decoder, metadata={"trained on": "plays"})
        >>> pf.training.load_metadata("decoder.safetensors")
        {'trained on': 'plays'}
    """
    path = _check_path(path)
    try:
        _, header = read_arrays(path, "config")
    except ValueError as error:
        raise ValueError(f"{path} is damaged, or no file of save_model: {error}. Get it again.") from error
    return parse_json(header.get("own", "{}"), "its metadata")


def _skeleton_of(fields: dict, model_class: Any, num_tensors: int) -> Any:
    """The model that a configuration describes, with shapes in place of numbers."""
    # A header of a few bytes may ask for more layers than anybody has time to build.
    if (layers := _count_layers(fields)) > max(num_tensors, 100):
        raise ValueError(f"{layers} layers, but {num_tensors} tensors")
    hints = get_type_hints(model_class)  # of a parent class, too, and where annotations are strings
    if "config" not in hints:
        raise TypeError(f"{model_class.__name__} does not say the class of its config; write it as a field")
    return eqx.filter_eval_shape(model_class, _from_dict(hints["config"], fields), key=jax.random.key(0))


def _count_layers(fields: dict) -> int:
    within = sum(_count_layers(value) for value in fields.values() if isinstance(value, dict))
    return within + sum(value for name, value in fields.items() if name.endswith("_layers") and isinstance(value, int))


def _from_dict(config_class: Any, fields: dict) -> Any:
    """A dataclass from its fields as `to_json` wrote them; the annotations say which of them are dataclasses, too."""
    hints = get_type_hints(config_class)

    def built(name, value):
        kinds = [kind for kind in (hints.get(name), *get_args(hints.get(name))) if dataclasses.is_dataclass(kind)]
        if not kinds or not isinstance(value, dict):
            return value
        # Of several dataclasses that may stand here, each names itself by a field `kind`, but for at most one.
        named = [kind for kind in kinds if getattr(kind, "kind", None) == value.get("kind")]
        return _from_dict((named or kinds)[0], value)

    made = {field.name for field in dataclasses.fields(config_class) if not field.init}
    config = config_class(**{name: built(name, value) for name, value in fields.items() if name not in made})
    # Else what a field is by default would be part of what the file means, and no default could ever change.
    if missing := [field.name for field in dataclasses.fields(config) if field.name not in made | fields.keys()]:
        raise ValueError(
            f"its {config_class.__name__} does not say {', '.join(missing)}; if it was saved before there were such "
            "fields, make the model by a configuration that says them, put the numbers of the file into it "
            "(pf.training.with_arrays) and save it anew"
        )
    return config


def _check_path(path: Location) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path is a {type(path).__name__}; expected a file name, such as 'decoder.safetensors', first.")
    if Path(path).suffix != ".safetensors":
        raise ValueError(f"path is {os.fspath(path)!r}; expected one that ends in .safetensors.")
    return as_path(path).absolute()
