"""The book's own small models, trained and ready, with the tokenizers that they learned with."""

from typing import Any

from plainformer.checks import checked
from plainformer.data.stored import WEIGHTS, stored_path
from plainformer.models.decoder import Decoder
from plainformer.models.dynamics import TrajectoryModels
from plainformer.models.pretraining import MaskedLanguageModel
from plainformer.models.seq2seq import Seq2Seq
from plainformer.models.vision import ViT
from plainformer.training.saving import load_model

CLASSES = {each.__name__: each for each in (Decoder, MaskedLanguageModel, Seq2Seq, TrajectoryModels, ViT)}


@checked
def load_pretrained(name: str) -> tuple[Any, Any]:
    r"""Load a model that the book has trained.

    It is read from the repository's folder `lab`: that which the package is installed from, or else one at hand with
    the same file. Otherwise it is downloaded, once, from the very commit that pip took the package from.

    Args:
        name: `"decoder"`, which writes Python's documentation; `"encoder"`, which guesses hidden letters of names;
            `"seq2seq"`, `"seq2seq_1"`, `"seq2seq_2"`, which translate dates and differ by their seeds;
            `"date_decoder"`, which does so without an encoder; `"numbers"`, which puts German numbers into English;
            `"things_decoder"`, which writes the names of one thing in many languages, and `"things_encoder"`, which
            guesses hidden letters of them; `"stories"`, which tells stories of the little world, `"story_encoder"`,
            which guesses hidden words of them, and `"story_writer"`, which writes them by filling holes;
            `"shakespeare"`, which writes plays in byte pairs, and `"docstrings"`, which writes docstrings;
            `"dynamics"`, models of seven kinds that follow a turning body, and `"dynamics_lengths"`, bodies of several
            angular momenta, both with `"_short"` for a short training, and `"dynamics_hidden"` and `"dynamics_told"`,
            bodies of several shapes; `"vision"`, which reads digits;
            `"vision_crossing"`, which reads the one digit of nine that two bars point to.

    Returns:
        The model and its tokenizer, which is `None` for those of images and trajectories.

    Raises:
        ValueError: if there is no model of this name.
        FileNotFoundError: if the file is not at hand and cannot be downloaded.

    Example:
        The decoder is small, and its tokens are characters.

        >>> decoder, tokenizer = pf.load_pretrained("decoder")
        >>> f"{pf.count_parameters(decoder):,} parameters, {len(tokenizer)} tokens"
        '804,096 parameters, 97 tokens'
    """
    from safetensors import safe_open

    path = stored_path(name, WEIGHTS)
    with safe_open(path, "numpy") as file:
        of = (file.metadata() or {}).get("model")
    if of is None:
        raise ValueError(f"{path} holds several models; expected one. Use pf.data.load_weights({name!r}).")
    if of not in CLASSES:
        raise ValueError(f"{path} holds a {of}; expected one of {', '.join(CLASSES)}. Add its class to CLASSES.")
    model_class: Any = CLASSES[of]
    found = load_model(path, model_class)
    return found if isinstance(found, tuple) else (found, None)
