"""The book's own small models, trained and ready, with the tokenizers that they learned with (chapters 06 to 13)."""

import hashlib
import json
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from plainformer.checks import checked
from plainformer.data.files import download
from plainformer.models.decoder import Decoder
from plainformer.models.dynamics import TrajectoryModels
from plainformer.models.pretraining import MaskedLanguageModel
from plainformer.models.seq2seq import Seq2Seq
from plainformer.models.vision import ViT
from plainformer.training.saving import load_model

CLASSES = {
    "date_decoder": Decoder,
    "decoder": Decoder,
    "dynamics": TrajectoryModels,
    "dynamics_hidden": TrajectoryModels,
    "dynamics_told": TrajectoryModels,
    "encoder": MaskedLanguageModel,
    "numbers": Seq2Seq,
    "seq2seq": Seq2Seq,
    "seq2seq_1": Seq2Seq,
    "seq2seq_2": Seq2Seq,
    "things_decoder": Decoder,
    "things_encoder": MaskedLanguageModel,
    "vision": ViT,
    "vision_crossing": ViT,
}
# Written by tools/models/checksums.py.
SHA256 = {
    "date_decoder": "b8d183ecc07bc1b56cd4950319606765013375b0db9ace89f8d9a072096fd7b0",
    "decoder": "54bd992260b5468ea10062f7cd2638e9ec7717390b2cae8ba805163540c244a1",
    "dynamics": "89e4a12e8b6baf072a12885c6a08fc0696f60087e22be9b3a0de931ee8c7e5a1",
    "dynamics_hidden": "6f11f5d8adb8938d5a12156e2e2aa9016bc6c3bde6a9e6bd15a9648a604a7400",
    "dynamics_told": "92a0dbf60de6b14b35437f9a232b57c3ed3497b49348cf4a3458ce8cce459d76",
    "encoder": "6d34761cb3c3cb3df9456221ca46f50300d1a541ee312ef042ee98f3fff7c257",
    "numbers": "07160cb790fbddab19321a79a49e4f501b8b3f55ef6e781d13397b572a25cef8",
    "seq2seq": "4ba0306b6b57c230b2a1a6c729096af4ff4e9e73e152285bd6db43ccfb931ada",
    "seq2seq_1": "7ee73af3f541c6d2efd39fc339d25062bb20aff92255da58050136b55bdd07e5",
    "seq2seq_2": "b483f535afb57c85680298ca1cc93f69f9964bfa737ed81e6bafdd8682864fa4",
    "things_decoder": "5cb8dee60a46c97095f8d75c2860a98c565b1c41d762be79726b284be604dba8",
    "things_encoder": "f93f750e8e237a6697075c73b393f4f28df11e5987b8e6c6fdfb311a3f0254fa",
    "vision": "1b724d5ec6f9cc994da6653bdf08356d09e5f2b5d7d3cbf143bd6ee2fd922787",
    "vision_crossing": "d3eadc64d4a9797145ed1d90543e62440715718572592004d072f9b3bcd3dca2",
}


@checked
def load_pretrained(
    name: Literal[
        "date_decoder",
        "decoder",
        "dynamics",
        "dynamics_hidden",
        "dynamics_told",
        "encoder",
        "numbers",
        "seq2seq",
        "seq2seq_1",
        "seq2seq_2",
        "things_decoder",
        "things_encoder",
        "vision",
        "vision_crossing",
    ],
) -> tuple[Any, Any]:
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
    model_class: Any = CLASSES[name]
    found = load_model(_path(name), model_class)
    return found if isinstance(found, tuple) else (found, None)


def _path(name: str) -> Path:
    file = f"{name}.safetensors"
    own = Path(__file__).parents[3] / "models" / file
    if own.is_file():
        return own
    for path in (Path("../models", file), Path("models", file)):
        if _is_stored(path, name):
            return path
    source = json.loads(distribution("plainformer").read_text("direct_url.json") or "{}")  # where pip got the package
    url, commit = source.get("url", ""), source.get("vcs_info", {}).get("commit_id")
    path = Path(unquote(urlsplit(url).path), "models", file)
    if url.startswith("file:") and _is_stored(path, name):
        return path
    hint = f"Work in the folder chapters of the repository, or put {file} of this version into a folder models."
    if commit is None or not url.startswith("http"):
        raise FileNotFoundError(f"There is no models/{file} here, and no address to get it from. {hint}")
    try:
        return Path(download(f"{url.removesuffix('.git')}/raw/{commit}/models/{file}", SHA256[name], file))
    except (OSError, ValueError) as error:
        raise FileNotFoundError(f"models/{file} cannot be downloaded: {error} {hint}") from error


def _is_stored(path: Path, name: str) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == SHA256[name]
