"""A long run of the tests gives back what it compiled, and ends when one of its workers dies."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

COUNT = """\
from pathlib import Path

import conftest
import jax
import jax.numpy as jnp

FILE = Path("before.txt")
conftest.MANY_MAPPINGS = 0  # any number is many

def num_mappings():
    return len(Path("/proc/self/maps").read_text().splitlines())
"""
COMPILES_MUCH = """\
from count import FILE, jax, jnp, num_mappings

def test_each_program_holds_mappings():
    jax.jit(jnp.cumsum)(jnp.ones(1))  # the first brings the compiler with it
    before = num_mappings()
    for size in range(2, 52):
        jax.jit(jnp.cumsum)(jnp.ones(size))
    assert num_mappings() > before + 100
    FILE.write_text(str(before))
"""
COMES_NEXT = """\
from count import FILE, num_mappings

def test_nothing_is_held():
    assert num_mappings() < int(FILE.read_text()) + 20
"""


def run(folder, files, *options):
    """Run files of tests, by name and source, with this repository's configuration and fixtures."""
    for name, source in files.items():
        (folder / name).write_text(source, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", *options, str(folder)]
    return subprocess.run(
        [*command, "--config-file", str(ROOT / "pyproject.toml"), "--rootdir", str(folder)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(folder)])},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_clear_compiled_gives_mappings_back(tmp_path):
    files = {"count.py": COUNT, "test_1.py": COMPILES_MUCH, "test_2.py": COMES_NEXT}
    done = run(tmp_path, files)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def test_a_worker_that_dies_ends_the_run(tmp_path):
    # One file for each worker at first, and more to give to the one that would take the dead one's place.
    files = {f"test_{i}.py": "def test_passes():\n    pass\n" for i in range(1, 6)}
    files["test_0.py"] = "import os\n\ndef test_dies():\n    os._exit(1)\n\ndef test_never_runs():\n    pass\n"
    done = run(tmp_path, files, "--numprocesses", "2", "--dist", "loadfile")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "crashed while running 'test_0.py::test_dies'" in done.stdout
