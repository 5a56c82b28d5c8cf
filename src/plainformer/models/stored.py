"""The book's own small models, trained and ready, with the tokenizers that they learned with (chapters 06 to 13)."""

import hashlib
import json
from importlib.metadata import distribution
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from plainformer.checks import checked
from plainformer.data.files import download
from plainformer.models.decoder import Decoder
from plainformer.models.dynamics import TrajectoryModels
from plainformer.models.pretraining import MaskedLanguageModel
from plainformer.models.seq2seq import Seq2Seq
from plainformer.models.vision import ViT
from plainformer.training.saving import load_model

CLASSES = {each.__name__: each for each in (Decoder, MaskedLanguageModel, Seq2Seq, TrajectoryModels, ViT)}
# The checksum of each stored file; tools/models/checksums.py writes them.
SHA256: dict[str, str] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


@checked
def load_pretrained(name: str) -> tuple[Any, Any]:
    r"""Load a model that the book has trained.

    It is read from the repository's folder `models`: that which the package is installed from, or else one at hand with
    the same file. Otherwise it is downloaded, once, from the very commit that pip took the package from.

    **Arguments** `name`: `"decoder"`, which writes Python's documentation; `"encoder"`, which guesses hidden letters of
    names; `"seq2seq"`, `"seq2seq_1"`, `"seq2seq_2"`, which translate dates and differ by their seeds; `"date_decoder"`,
    which does so without an encoder; `"numbers"`, which puts German numbers into English; `"things_decoder"`,
    which writes the names of one thing in many languages, and `"things_encoder"`, which guesses hidden letters of them;
    `"dynamics"`, twenty models that follow a turning body, and `"dynamics_hidden"` and `"dynamics_told"`, bodies of
    several shapes; `"vision"`, which reads digits; `"vision_crossing"`, which reads the one digit of nine that two bars
    point to.

    **Returns** the model and its tokenizer, which is `None` for those of images and trajectories.

    **Raises** `ValueError` if there is no model of this name; `FileNotFoundError` if the file is not at hand and cannot
    be downloaded.

    **Example**: the decoder is small, and its tokens are characters.

    >>> decoder, tokenizer = pf.load_pretrained("decoder")
    >>> f"{pf.count_parameters(decoder):,} parameters, {len(tokenizer)} tokens"
    '804,096 parameters, 97 tokens'
    """
    from safetensors import safe_open

    path = _path(_stored(name, ".safetensors"))
    with safe_open(path, "numpy") as file:
        model_class: Any = CLASSES[file.metadata()["model"]]
    found = load_model(path, model_class)
    return found if isinstance(found, tuple) else (found, None)


@checked
def load_record(name: str) -> dict:
    r"""Load what a longer training left behind: losses, accuracies and settings, but no weights.

    It is found as `load_pretrained` finds a model. The script that trained, and a card that says with which data and
    seeds, stand in the repository's folders `tools/models` and `models`.

    **Arguments** `name`, such as `"blocks"` for `models/blocks.json`. **Raises** as `load_pretrained` does.

    **Example**

    >>> pf.load_record("recurrent")["rates"]["text"]["lstm"]
    0.03
    """
    return json.loads(_path(_stored(name, ".json")).read_text(encoding="utf-8"))


def _stored(name: str, suffix: str) -> str:
    """The file of this name; raise `ValueError` if the book has none."""
    if name + suffix not in SHA256:
        names = ", ".join(repr(Path(file).stem) for file in SHA256 if file.endswith(suffix))
        raise ValueError(f"name is {name!r}; expected one of {names}.")
    return name + suffix


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
