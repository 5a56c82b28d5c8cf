"""Trained models as files that others can open: weights as safetensors, with the configuration (chapter 06)."""

import dataclasses
import json
import os
from pathlib import Path
from typing import get_type_hints

import equinox as eqx
import jax
import numpy as np

from plainformer.data.files import write_bytes, write_text
from plainformer.training.trees import config_dict, differences, digest, named_arrays, with_arrays

Name = str | os.PathLike


def save_model(path: Name, model) -> None:
    r"""Write a model's weights as a safetensors file, and its configuration beside it.

    **Arguments**

    - `path`: such as `"decoder.safetensors"`; `"decoder.json"`, beside it, tells people and other programs the
      configuration, which stands in the header of the first file, too.
    - `model`: a module with a field `config`, a dataclass, such as a `Decoder`.

    Tensors are named by their place in the model, such as `blocks.0.attention.query_weight`.

    **Raises** `ValueError` if `path` does not end in `.safetensors`, or the model has parts that its configuration does
    not describe; `TypeError` if the model has no configuration;
    `OSError` that names the file if it cannot be written; weights that were there before then stay.
    """
    from safetensors.numpy import save

    path = _checked(path)
    if not dataclasses.is_dataclass(getattr(model, "config", None)):
        raise TypeError(f"{type(model).__name__} has no config; expected a model made from one, such as a Decoder.")
    described: object = jax.tree.structure(_skeleton(type(model), model.config))
    if described != jax.tree.structure(model):
        raise ValueError(
            f"This {type(model).__name__} is not what its config describes, so load_model would build another one; "
            "were parts of another model put into it, with other heads or another activation? Make both of one config."
        )
    arrays = {name: np.asarray(array) for name, array in named_arrays(model).items()}
    config = json.dumps(config_dict(model.config), indent=2)
    header = {"model": type(model).__name__, "config": config, "sha256": digest(arrays, config)}
    content = save(arrays, header)
    write_text(path.with_suffix(".json"), config + "\n")
    write_bytes(path, content)  # last, since these replace what could not be made again


def load_model(path: Name, model_class):
    r"""Read back what `save_model` wrote.

    **Arguments**

    - `path`: of the safetensors file.
    - `model_class`: the class of the model, such as `Decoder`.

    **Returns** the model, its numbers of the same dtypes as when they were saved; float64 needs `jax_enable_x64`.

    **Raises** `FileNotFoundError` if there is no such file; `ValueError` if it is damaged, was not written by
    `save_model`, or holds another class of model.
    """
    from safetensors import SafetensorError, safe_open

    path = _checked(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}. Looked in {path.parent.resolve()}.")
    try:
        with safe_open(path, "numpy") as file:
            header = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no dictionary)
    except (SafetensorError, OSError) as error:
        raise ValueError(
            f"{path} is damaged, or no safetensors file: {error}. Is it cut short, or a web page? Get it again."
        ) from error
    if "config" not in header:
        raise ValueError(f"{path} has no configuration in its header; expected a file that save_model wrote.")
    if header.get("model") != model_class.__name__:
        raise ValueError(f"{path} holds a {header.get('model')}; expected a {model_class.__name__}.")
    if header.get("sha256") != digest(arrays, header["config"]):
        raise ValueError(f"{path} is damaged: its numbers or its configuration are not those saved. Get it again.")
    config_class = get_type_hints(model_class)["config"]  # of a parent class, too, and where annotations are strings
    try:
        config = config_class(**json.loads(header["config"]))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} has a configuration that no {model_class.__name__} has: {error}.") from error
    skeleton = _skeleton(model_class, config)
    shapes = {name: _as_saved(leaf, arrays.get(name)) for name, leaf in named_arrays(skeleton).items()}
    if wrong := differences(arrays, shapes):
        raise ValueError(f"{path} does not fit its own configuration: {wrong}.")
    return with_arrays(skeleton, {name: jax.numpy.asarray(array) for name, array in arrays.items()})


def _skeleton(model_class, config):
    """A model of this configuration, with shapes in place of numbers."""
    return eqx.filter_eval_shape(lambda key: model_class(config, key=key), jax.random.key(0))


def _as_saved(leaf, array):
    """The shape of a leaf, with the dtype that the file has for it: a model may have been saved in 16 or 64 bits."""
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype if array is None else array.dtype)


def _checked(path: Name) -> Path:
    path = Path(path)
    if path.suffix != ".safetensors":
        raise ValueError(f"path is {str(path)!r}; expected one that ends in .safetensors.")
    return path
