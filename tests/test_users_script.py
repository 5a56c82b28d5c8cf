"""A user's script runs as it stands: it trains, goes on, saves, and in a fresh process loads and writes."""

import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("helpers") / "users_script.py"


def said(folder: Path, task: str) -> str:
    """What the script prints."""
    found = subprocess.run([sys.executable, SCRIPT, folder, task], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_a_script_trains_goes_on_saves_loads_and_writes(tmp_path):
    first, last, validation = map(float, re.findall(r"\d+\.\d+", said(tmp_path, "train")))
    assert last < first / 2
    assert validation < first / 2
    written = said(tmp_path, "write")
    assert len(written) > 40
    assert " sat " in written
