"""What the book has stored in the folders of `lab`, its weights and records, wherever the package came from."""

import hashlib
import json
import sys
from importlib.metadata import distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np

from plainformer.checks import checked
from plainformer.data.files import download

# Each stored file, from the repository's own folder on, with its checksum; lab/records.py writes them.
SHA256: dict[str, str] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
RECORDS = {Path(file).parent.name: file for file in SHA256 if file.endswith("/record.json")}
WEIGHTS = {Path(file).stem: file for file in SHA256 if file.endswith(".safetensors")}


@checked
def load_record(name: str) -> dict:
    r"""Load what a longer training left behind: losses, accuracies and settings, but no weights.

    It is found as `pf.load_pretrained` finds a model. The script that trained, and a card that says with which data and
    seeds, stand beside it in the repository, in `lab/<name>`. Beside what was measured it holds `facts`, the texts and
    tables that chapters show; where they are known `made`, the minutes and versions; and `weights`, the checksums of
    models.

    Raises as `pf.load_pretrained` does.

    Args:
        name: such as `"blocks"` for `lab/blocks/record.json`.

    Example:
        >>> pf.data.load_record("recurrent")["rates"]["text"]["lstm"]
        0.069
    """
    return json.loads(stored_path(name, RECORDS).read_text(encoding="utf-8"))


@checked
def load_weights(name: str) -> dict[str, np.ndarray]:
    r"""Load the arrays of a recorded training by their names, as floats of 32 bits.

    They are found as `pf.load_pretrained` finds a model; `pf.training.with_arrays` puts them into one.

    Raises as `pf.load_pretrained` does.

    Args:
        name: such as `"machines"`, the machine as it grows: `"head.0."` begins the names of the one with a
            single head, trained with seed 0.

    Example:
        >>> weights = pf.data.load_weights("machines")
        >>> weights["head.0.embedding.weight"].shape
        (40, 64)
    """
    from safetensors.numpy import load_file

    return {place: array.astype(np.float32) for place, array in load_file(stored_path(name, WEIGHTS)).items()}


def stored_path(name: str, files: dict[str, str]) -> Path:
    """Where one of these files is; raise `ValueError` if none has this name, `FileNotFoundError` if it is nowhere."""
    if name not in files:
        raise ValueError(f"name is {name!r}; expected one of {', '.join(map(repr, files))}.")
    path = _path(files[name])
    sys.audit("plainformer.stored", str(path.resolve()))  # what the safetensors library opens, Python does not tell
    return path


def _path(file: str) -> Path:
    own = Path(__file__).parents[3] / file
    if own.is_file():
        return own
    for folder in ("..", "."):
        if _is_stored(folder, file):
            return Path(folder, file)
    source = json.loads(distribution("plainformer").read_text("direct_url.json") or "{}")  # where pip got the package
    url, commit = source.get("url", ""), source.get("vcs_info", {}).get("commit_id")
    folder = unquote(urlsplit(url).path)
    if url.startswith("file:") and _is_stored(folder, file):
        return Path(folder, file)
    hint = f"Work in the folder chapters of the repository, or put that file of this version at {file}."
    if commit is None or not url.startswith("http"):
        raise FileNotFoundError(f"There is no {file} here, and no address to get it from. {hint}")
    try:
        address = f"{url.removesuffix('.git')}/raw/{commit}/{file}"
        return Path(download(address, SHA256[file], file.replace("/", "_")))
    except (OSError, ValueError) as error:
        raise FileNotFoundError(f"{file} cannot be downloaded: {error} {hint}") from error


def _is_stored(folder: str, file: str) -> bool:
    path = Path(folder, file)
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == SHA256[file]
