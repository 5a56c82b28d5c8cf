"""Models that others have trained: opened as ours, and written back in Hugging Face's form."""

import dataclasses
import fnmatch
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from plainformer.checks import checked
from plainformer.data.files import as_path, write_bytes, write_text
from plainformer.models.config import StackConfig
from plainformer.models.decoder import Decoder
from plainformer.models.encoder import EncoderConfig
from plainformer.models.low_precision import in_few_bytes
from plainformer.positions.slower import NtkScaling
from plainformer.pretrained import bert, gpt2, gptj, llama, marian, vit
from plainformer.pretrained.family import Family, Head
from plainformer.pretrained.folders import CONFIG, ONE, folder_of, gguf_in, read_config, read_tensors
from plainformer.pretrained.gguf_files import GgufFile
from plainformer.pretrained.names import Pair, Renamed, pairs_of, spell
from plainformer.tokens.hugging_face import HuggingFaceTokenizer
from plainformer.training.arrays import named_arrays, with_arrays

FAMILIES: dict[str, Family] = {
    each.model_type: each
    for each in (gpt2.FAMILY, gptj.FAMILY, *llama.FAMILIES, *bert.FAMILIES, vit.FAMILY, marian.FAMILY)
}
MOST_LAYERS = 1000
StoredIn = Literal["float32", "bfloat16", "int8"]


@checked
def open_model(
    path: str | os.PathLike, *, tokenizer: bool = True, dtype: StoredIn = "float32"
) -> tuple[Any, HuggingFaceTokenizer | None]:
    r"""Open a model that others have trained, as one of ours, with its tokenizer.

    Implements `eq-pretrained-turned`, where a file has a matrix by its outputs. Nothing that stands in a file is run.

    Args:
        path: a GGUF file; a wheel or a folder with one in it; a folder in Hugging Face's form, with `config.json` and
            the weights, in safetensors or in PyTorch's own files; or the name of a model on the hub, such as
            `"openai-community/gpt2"`, if `huggingface_hub` is installed, which fetches it once.
        tokenizer: whether to read its tokenizer, too, for which `tokenizers` must be installed.
        dtype: what its numbers are kept as. With `"int8"` the weights of a `Decoder`, but for its embedding, are kept
            as `in_few_bytes` does, for writing alone.

    Returns:
        The model and its tokenizer, or `None` if there is none. The model is a `Decoder`, a `MaskedLanguageModel`, an
        `Encoder`, an `EncoderClassifier`, a `Seq2Seq` or a `ViT`, whichever it is.

    Raises:
        ValueError: naming what of it is not read: a family, a field of its configuration, a tensor that is missing,
            left over or of another shape; or a file that is damaged.
        FileNotFoundError: if there is no such file or folder, or no weights in it.
        ImportError: if a library is missing, saying which.

    Example:
        Such a folder, written here; it could as well come from `transformers`.

        >>> config = pf.DecoderConfig(65, 16, stack=pf.StackConfig(d_model=8, num_layers=1, num_heads=2))
        >>> pf.to_hugging_face("gpt2", pf.Decoder(config, key=jax.random.key(0)), "gpt2")
        >>> decoder, tokenizer = pf.open_model("gpt2")
        >>> print(type(decoder).__name__, tokenizer)
        Decoder None
    """
    with gguf_in(path) as file:
        if file is not None:
            read = GgufFile(file)
            return _opened(read.config, file, lambda: read.tensors, lambda: read.tokenizer, tokenizer, dtype)
    folder = folder_of(path)
    theirs = read_config(folder)
    return _opened(
        theirs,
        folder / CONFIG,
        lambda: read_tensors(folder),
        lambda: HuggingFaceTokenizer.in_folder(folder),
        tokenizer,
        dtype,
    )


def _opened(
    theirs: dict, place: Path, tensors: Callable, read_tokenizer: Callable, tokenizer: bool, dtype: StoredIn
) -> tuple[Any, HuggingFaceTokenizer | None]:
    """What `open_model` does with their configuration, which stands in a `place`, and what reads the rest."""
    family = _family_of(theirs, place)
    _check_layers(theirs, place)
    try:
        theirs = family.complete(theirs)
        head = family.head_of(theirs)
        config = head.read_config(theirs)
    except KeyError as error:
        raise ValueError(f"{place} has no {error}; expected one, as of a {family.model_type}.") from error
    except (ValueError, TypeError, AttributeError, ArithmeticError) as error:
        reason = str(error).removesuffix(".")
        raise ValueError(f"{place} describes no {family.model_type} that is read here: {reason}.") from error
    if dtype == "int8" and head.model_class is not Decoder:
        raise ValueError(f'dtype is "int8", and the model a {head.model_class.__name__}; expected a Decoder for it.')
    found = read_tokenizer() if tokenizer else None
    _check_tokenizer(found, config, place)
    given = _by_full_name(tensors(), family)
    kept_as = jnp.bfloat16 if dtype == "bfloat16" else jnp.float32
    try:
        skeleton = eqx.filter_eval_shape(head.model_class, config, key=jax.random.key(0))
        arrays = _to_ours(given, head, theirs, family, named_arrays(skeleton), kept_as)
    except ValueError as error:
        where = place.parent if place.name == CONFIG else place
        raise ValueError(f"The weights in {where} do not fit its configuration. {error}") from None
    model = with_arrays(skeleton, arrays, copy=False)
    return (in_few_bytes(model, "int8") if dtype == "int8" else model), found


def _check_layers(theirs: dict, place: Path) -> None:
    """Raise `ValueError` for more layers than anybody has time to build: a few bytes may ask for a thousand million."""
    for name, value in theirs.items():
        if name.endswith(("_layers", "n_layer")) and isinstance(value, int | float) and value > MOST_LAYERS:
            raise ValueError(f"{place} says {name}={value:,}; expected at most {MOST_LAYERS:,}.")


def _check_tokenizer(tokenizer: HuggingFaceTokenizer | None, config, place: Path) -> None:
    """Raise `ValueError` if a tokenizer has more tokens than the model."""
    vocab_size = getattr(config, "vocab_size", None)
    if tokenizer is not None and vocab_size is not None and len(tokenizer) > vocab_size:
        raise ValueError(
            f"{place} has a tokenizer of {len(tokenizer)} tokens, and a model with vocab_size={vocab_size}; expected "
            "those of one model. Without the tokenizer: tokenizer=False."
        )


def _family_of(theirs: dict, place: Path) -> Family:
    name = theirs.get("model_type")
    if not isinstance(name, str) or name not in FAMILIES:
        raise ValueError(f"{place} says model_type {name!r}; expected one of {', '.join(FAMILIES)}.")
    return FAMILIES[name]


def _by_full_name(tensors: Mapping, family: Family) -> Mapping:
    """The tensors by the names that the table has: with the family's prefix, and endings as they are today."""
    full = {}
    for name in tensors:
        new = name
        for old, today in family.renamed.items():
            new = new.removesuffix(old) + today if new.endswith(old) else new
        full[new] = name
    if not any(name.startswith(family.prefix) for name in full):
        heads = ("lm_head.", "cls.", "classifier.")
        full = {name if name.startswith(heads) else family.prefix + name: stored for name, stored in full.items()}
    return Renamed(tensors, full)


def _to_ours(tensors: Mapping, head: Head, theirs: dict, family: Family, arrays: dict, dtype) -> dict:
    """Our arrays by name; `ValueError` for tensors that are missing, left over or of another shape."""
    pairs = pairs_of(head.lines(theirs), arrays)
    wanted = [pair.theirs for pair in pairs if pair.theirs is not None]
    if missing := set(wanted) - set(tensors):
        raise ValueError(f"It lacks {spell(missing)}.")
    _check_left(set(tensors) - set(wanted), tensors, family)
    found: dict = {}
    for pair in pairs:
        tensor = None if pair.theirs is None else _floats(pair.theirs, tensors[pair.theirs], dtype)
        shapes = [arrays[name].shape for name in pair.ours]
        try:
            read = pair.form.read(tensor, shapes)
            if [array.shape for array in read] != shapes:
                raise ValueError("other shapes")
        except (ValueError, TypeError, IndexError) as error:
            shape = getattr(tensor, "shape", None)
            raise ValueError(
                f"{pair.theirs} has shape {shape}, which does not make {pair.ours[0]} {shapes[0]}."
            ) from error
        found |= dict(zip(pair.ours, read, strict=True))
    return found


def _floats(name: str, tensor, dtype):
    if not jnp.issubdtype(tensor.dtype, jnp.floating):
        raise ValueError(f"{name} holds {tensor.dtype}; expected floats.")
    if not np.isfinite(tensor).all():
        raise ValueError(f"{name} holds numbers that are not finite; the file is damaged, or its training diverged.")
    return jnp.asarray(tensor, dtype)


def _check_left(left: set[str], tensors: Mapping, family: Family) -> None:
    """Raise `ValueError` for tensors that would be left over, unless the model can do without or has them twice."""
    left = {name for name in left if not any(fnmatch.fnmatchcase(name, extra) for extra in family.extras)}
    for name in left & set(family.twins):
        if not np.array_equal(tensors[name], tensors[family.twins[name]]):
            raise ValueError(f"{name} differs from {family.twins[name]}; expected the same, as this family has it.")
    if left := left - set(family.twins):
        raise ValueError(f"It has {spell(left)}, and the model no place for it.")


@checked
def to_hugging_face(
    folder: str | os.PathLike, model: eqx.Module, model_type: str, tokenizer: HuggingFaceTokenizer | None = None
) -> None:
    r"""Write a model in Hugging Face's form: `config.json` and `model.safetensors`, which `transformers` opens.

    Args:
        folder: where to; it is made if there is none.
        model: one of the classes that `open_model` returns.
        model_type: the family as which it shall be opened, such as `"gpt2"` or `"llama"`.
        tokenizer: its tokenizer, which is written as `tokenizer.json`.

    Raises:
        ValueError: if the family has no such model, naming in what it differs.
        OSError: if a file cannot be written.
    """
    if model_type not in FAMILIES:
        raise ValueError(f"model_type is {model_type!r}; expected one of {', '.join(FAMILIES)}.")
    if not isinstance(tokenizer, HuggingFaceTokenizer | None):
        raise TypeError(f"tokenizer is a {type(tokenizer).__name__}; expected that of open_model, or None.")
    family = FAMILIES[model_type]
    heads = {name: head for name, head in family.heads.items() if type(model) is head.model_class}
    if not heads:
        classes = sorted({head.model_class.__name__ for head in family.heads.values()})
        raise ValueError(f"The model is a {type(model).__name__}; a {model_type} is a {' or a '.join(classes)}.")
    name, head = next(iter(heads.items()))
    theirs = _their_config(family, head, model)
    arrays, tensors = named_arrays(model), {}
    try:
        for pair in pairs_of(head.lines(family.complete(theirs)), arrays):
            tensor = _written(pair, arrays)
            if pair.theirs is not None:
                tensors[pair.theirs] = np.ascontiguousarray(tensor)
    except ValueError as error:
        raise ValueError(f"This {type(model).__name__} is no {model_type}: {error}.") from error
    from safetensors.numpy import save

    folder = as_path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    header = {"architectures": [name], "model_type": model_type, "dtype": "float32"}
    write_bytes(folder / ONE, save(tensors, {"format": "pt"}))
    write_text(folder / CONFIG, json.dumps(header | theirs, indent=2) + "\n")
    if tokenizer is not None:
        tokenizer.save_hugging_face(folder)


def _their_config(family: Family, head: Head, model) -> dict:
    """Their configuration, if it says all that ours does."""
    spelling = {ours: name for name, ours in family.spelling.items()}
    theirs = {spelling.get(name, name): value for name, value in head.write_config(model).items()}
    again, wanted = (_meaning(each) for each in (head.read_config(family.complete(theirs)), model.config))
    wrong = [f"{name}={wanted[name]!r} (but {value!r})" for name, value in again.items() if value != wanted[name]]
    if wrong:
        raise ValueError(f"A {family.model_type} cannot have {', '.join(wrong)}.")
    return theirs


def _meaning(config) -> dict[str, Any]:
    """The fields of a configuration, and of those within, with what they mean where they leave it open."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if isinstance(value, StackConfig):
            if isinstance(scaling := value.rope_scaling, NtkScaling):  # a larger base, and they say so
                base = scaling.base(value.rope_theta, value.key_width)
                value = dataclasses.replace(value, rope_theta=base, rope_scaling=None)
            value = dataclasses.replace(
                value,
                num_kv_heads=value.num_kv_heads or (None if value.latent else value.num_heads),
                pattern=value.pattern if len({*value.kinds}) > 1 or "delta" in value.kinds else None,
                d_k=value.key_width,
                d_v=value.value_width,
                d_ff=value.inner_width,
                attention="linear" if value.attention == "linear" else "direct",
                dropout_rate=0.0,
            )
        inner = _meaning(value) if isinstance(value, StackConfig | EncoderConfig) else None
        found |= (
            {field.name: value} if inner is None else {f"{field.name}.{name}": each for name, each in inner.items()}
        )
    return found


def _written(pair: Pair, arrays: dict):
    """Their tensor of a pair."""
    try:
        return pair.form.write([jnp.asarray(arrays[name], jnp.float32) for name in pair.ours])
    except ValueError as error:
        raise ValueError(f"{spell(pair.ours)}: {error}") from error
