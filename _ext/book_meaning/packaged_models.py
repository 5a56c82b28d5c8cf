"""Models that installed packages bring, as files that figures can run: made with the site, and never part of the book.

A package's model is written into `build/packaged` when a page first needs it, one block once where all are the same; it
goes into `_static/models` beside the licence of the package.
"""

import json
import shutil
import subprocess
import sys
from importlib.metadata import files
from pathlib import Path

PACKAGED = {"chemist": "rxnmapper"}


def file_of_model(source: Path, name: str) -> Path:
    """The file of a model of the book, or that of a package's model, which is written if there is none yet."""
    if name not in PACKAGED:
        return source / "models" / f"{name}.safetensors"
    path = source / "build" / "packaged" / f"{name}.safetensors"
    if not path.is_file():
        # In a process of its own: JAX has threads, and Sphinx forks.
        subprocess.run([sys.executable, __file__, PACKAGED[name], path], check=True)
    return path


def copy_packaged(source: Path, target: Path) -> None:
    """Copy what was written, and the licences, to where the figures find it."""
    target.mkdir(parents=True, exist_ok=True)
    for name in PACKAGED:
        path = file_of_model(source, name)
        for each in (path, path.with_suffix(".LICENSE.txt")):
            shutil.copy(each, target)


def _content(package: str) -> bytes:
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


def _licence(package: str) -> str:
    """The licence that came with a package."""
    found = [file for file in files(package) or () if file.name.upper().startswith("LICENSE")]
    if not found:
        raise ValueError(f"The package {package!r} brings no licence; expected one, to go with its model.")
    return found[0].locate().read_text(encoding="utf-8")


def write(package: str, path: Path) -> None:
    """Write the model and the licence of a package."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_content(package))
    path.with_suffix(".LICENSE.txt").write_text(_licence(package), encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1], Path(sys.argv[2]))
