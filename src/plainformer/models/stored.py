"""The book's own small models, trained and ready, with the tokenizers that they learned with (chapters 06 to 10)."""

import hashlib
import json
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from plainformer.checks import check_choice
from plainformer.data.files import download
from plainformer.models.decoder import Decoder
from plainformer.models.pretraining import MaskedLanguageModel
from plainformer.models.seq2seq import Seq2Seq
from plainformer.models.vision import ViT
from plainformer.training.saving import load_model

CLASSES = {
    "decoder": Decoder,
    "encoder": MaskedLanguageModel,
    "seq2seq": Seq2Seq,
    "seq2seq_1": Seq2Seq,
    "seq2seq_2": Seq2Seq,
    "vision": ViT,
}
# Written by tools/models/checksums.py.
SHA256 = {
    "decoder": "1d319f3837503615ae28c0399a100a2f153d3451160c2fec30b1048ea4c260c9",
    "encoder": "d85668213f263eb8ce7a4467e116c05b595db975788b93add09e22f2bc59ae6f",
    "seq2seq": "651f54f541995cf1297bdc0c5c48f8b96e41680751864f8e9cf8a623e740c0e0",
    "seq2seq_1": "67dfe7eaef750895cfd75ee7bff69bd25c80a692c8a00faaa0963bee58d5b612",
    "seq2seq_2": "1665a9f0f3902bfcfaebffb43507f4a8298f18f9c4423c5b9a0f3b137a890f9e",
    "vision": "8fb1d9522e5c932933f4907110efd61ee87e7841eca85ab093e0a24449f61b4e",
}


def load_pretrained(name: str) -> tuple[Any, Any]:
    r"""Load a model that the book has trained.

    It is read from the repository's folder `models`: that which the package is installed from, or else one at hand with
    the same file. Otherwise it is downloaded, once, from the very commit that pip took the package from.

    **Arguments** `name`: `"decoder"`, which writes Python's documentation; `"encoder"`, which guesses hidden letters of
    names; `"seq2seq"`, `"seq2seq_1"`, `"seq2seq_2"`, which translate dates and differ by their seeds; `"vision"`, which
    reads digits.

    **Returns** the model and its tokenizer, which is `None` for `"vision"`.

    **Raises** `ValueError` if there is no model of this name; `FileNotFoundError` if the file is not at hand and cannot
    be downloaded.
    """
    check_choice("name", name, CLASSES)
    found = load_model(_path(name), CLASSES[name])
    return found if isinstance(found, tuple) else (found, None)


def _path(name: str) -> Path:
    file = f"{name}.safetensors"
    own = Path(__file__).parents[3] / "models" / file
    if own.is_file():
        return own
    for path in (Path("../models", file), Path("models", file)):
        if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == SHA256[name]:
            return path
    source = json.loads(distribution("plainformer").read_text("direct_url.json") or "{}")  # where pip got the package
    commit = source.get("vcs_info", {}).get("commit_id")
    hint = f"Work in the folder chapters of the repository, or put {file} of this version into a folder models."
    if commit is None:
        raise FileNotFoundError(f"There is no models/{file} here, and no address to get it from. {hint}")
    try:
        return Path(download(f"{source['url'].removesuffix('.git')}/raw/{commit}/models/{file}", SHA256[name], file))
    except (OSError, ValueError) as error:
        raise FileNotFoundError(f"models/{file} cannot be downloaded: {error} {hint}") from error
