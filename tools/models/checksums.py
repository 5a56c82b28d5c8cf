"""Write the checksums of the stored models into the package, which downloads them where there is no repository.

`make models` runs it, after the training.
"""

import hashlib
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = re.compile(r"(?<=^SHA256 = \{\n).*?(?=^\})", flags=re.DOTALL | re.MULTILINE)


def checksums(folder: Path = ROOT / "models") -> dict[str, str]:
    """The SHA-256 of each model's file, by the model's name."""
    return {file.stem: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.glob("*.safetensors"))}


def write(path: Path = ROOT / "src" / "plainformer" / "models" / "stored.py") -> None:
    """Replace the table of checksums."""
    lines = "".join(f'    "{name}": "{checksum}",\n' for name, checksum in checksums().items())
    path.write_text(TABLE.sub(lines, path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write()
