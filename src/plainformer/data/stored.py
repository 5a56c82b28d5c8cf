"""The files that the book has stored in its folder `models`, wherever the package was installed from."""

import hashlib
import json
import sys
from importlib.metadata import distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np

from plainformer.checks import checked
from plainformer.data.files import download

# The checksum of each stored file; tools/models/checksums.py writes them.
SHA256: dict[str, str] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


@checked
def load_record(name: str) -> dict:
    r"""Load what a longer training left behind: losses, accuracies and settings, but no weights.

    It is found as `pf.load_pretrained` finds a model. The script that trained, and a card that says with which data and
    seeds, stand in the repository's folders `tools/models` and `models`.

    Raises as `pf.load_pretrained` does.

    Args:
        name: such as `"blocks"` for `models/blocks.json`.

    Example:
        >>> pf.data.load_record("recurrent")["rates"]["text"]["lstm"]
        0.069
    """
    return json.loads(stored_path(name, ".json").read_text(encoding="utf-8"))


@checked
def load_weights(name: str) -> dict[str, np.ndarray]:
    r"""Load the arrays of a recorded training by their names, as floats of 32 bits.

    They are found as `pf.load_pretrained` finds a model; `pf.training.with_arrays` puts them into one.

    Raises as `pf.load_pretrained` does.

    Args:
        name: such as `"machines"` for `models/machines.safetensors`, the machines of chapters 02 to 06: `"head.0."`
            begins the names of the one with a single head, trained with seed 0.

    Example:
        >>> weights = pf.data.load_weights("machines")
        >>> weights["head.0.embedding.weight"].shape
        (40, 64)
    """
    from safetensors.numpy import load_file

    return {place: array.astype(np.float32) for place, array in load_file(stored_path(name, ".safetensors")).items()}


def stored_path(name: str, suffix: str) -> Path:
    """Where the file of this name is; raise `ValueError` if the book has none, `FileNotFoundError` if it is nowhere."""
    if name + suffix not in SHA256:
        names = ", ".join(repr(Path(file).stem) for file in SHA256 if file.endswith(suffix))
        raise ValueError(f"name is {name!r}; expected one of {names}.")
    path = _path(name + suffix)
    sys.audit("plainformer.stored", str(path.resolve()))  # what the safetensors library opens, Python does not tell
    return path


def _path(file: str) -> Path:
    own = Path(__file__).parents[3] / "models" / file
    if own.is_file():
        return own
    for path in (Path("../models", file), Path("models", file)):
        if _is_stored(path):
            return path
    source = json.loads(distribution("plainformer").read_text("direct_url.json") or "{}")  # where pip got the package
    url, commit = source.get("url", ""), source.get("vcs_info", {}).get("commit_id")
    path = Path(unquote(urlsplit(url).path), "models", file)
    if url.startswith("file:") and _is_stored(path):
        return path
    hint = f"Work in the folder chapters of the repository, or put {file} of this version into a folder models."
    if commit is None or not url.startswith("http"):
        raise FileNotFoundError(f"There is no models/{file} here, and no address to get it from. {hint}")
    try:
        return Path(download(f"{url.removesuffix('.git')}/raw/{commit}/models/{file}", SHA256[file], file))
    except (OSError, ValueError) as error:
        raise FileNotFoundError(f"models/{file} cannot be downloaded: {error} {hint}") from error


def _is_stored(path: Path) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == SHA256[path.name]
