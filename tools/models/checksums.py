"""Write the checksums of the stored models and records into the package, which downloads them without a repository.

`make models` runs it, after the training. A JSON file beside a model's file tells its configuration, and is no record.
"""

import hashlib
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def checksums(folder: Path = ROOT / "models") -> dict[str, str]:
    """The SHA-256 of each model and of each record, by the file's name."""
    records = [file for file in folder.glob("*.json") if not file.with_suffix(".safetensors").exists()]
    files = sorted([*folder.glob("*.safetensors"), *records], key=lambda file: file.name)
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def write(path: Path = ROOT / "src" / "plainformer" / "data" / "stored.json") -> None:
    """Replace the table of checksums."""
    path.write_text(json.dumps(checksums(), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
