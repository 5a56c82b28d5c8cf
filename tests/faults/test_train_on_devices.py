"""The script of `tools/train_on_devices.py`: on one device, on eight, and in several processes it finds the same."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from together import free_port

import plainformer as pf

SCRIPT = (Path(__file__).parents[2] / "tools" / "train_on_devices.py").read_text()


def losses_of(folder: Path, *options: str, share: int = 1, processes: int = 1) -> list[float]:
    """Start the script so many times, with its line of SHARE changed as it says; the losses that it has written."""
    script = SCRIPT
    for line, other in {"SHARE = 1  #": f"SHARE = {share}  #", "num_layers=2": "num_layers=1"}.items():
        assert line in script
        script = script.replace(line, other)
    (folder / "train.py").write_text(script)
    join = ["--join", f"127.0.0.1:{free_port()}", str(processes)] if processes > 1 else []
    commands = [
        [sys.executable, "train.py", *options, *join, *([str(number)] if join else [])] for number in range(processes)
    ]
    running = [subprocess.Popen(each, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for each in commands]
    try:
        said = [process.communicate(timeout=200) for process in running]
    finally:
        for process in running:
            process.kill()
    assert [process.returncode for process in running] == [0] * processes, said
    assert [out.count(b"; steps: 20; loss") for out, _ in said] == [1] + [0] * (processes - 1)  # one speaks
    _, words = pf.load_model(folder / "run.safetensors", pf.Decoder, tokenizer=True)
    assert len(words) == 40
    rows = (folder / "run" / "metrics.csv").read_text().splitlines()
    return [float(row.split(",")[1]) for row in rows[1:]]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    found = losses_of(tmp_path_factory.mktemp("alone"))
    assert len(found) == 20
    return found


@pytest.mark.parametrize(("processes", "devices", "share"), [(1, 8, 1), (2, 4, 2)])
def test_the_script_finds_the_losses_of_one_device(tmp_path, alone, processes, devices, share):
    found = losses_of(tmp_path, "--pretend", str(devices), share=share, processes=processes)
    np.testing.assert_allclose(found, alone, atol=1e-5, rtol=0)
