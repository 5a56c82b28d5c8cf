"""The script of `tools/train_on_devices.py`: on one device, on eight, and in several processes it finds the same."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from together import free_port

import plainformer as pf

SCRIPT = (Path(__file__).parents[2] / "tools" / "train_on_devices.py").read_text()
END = "directory=FOLDER,"


def said_by(
    folder: Path, devices: int | None = None, *, share: int = 1, processes: int = 1, steps: int = 20
) -> list[tuple]:
    """Start the script so many times, with one layer, SHARE and its last step as given; their codes, what they say."""
    script = SCRIPT
    end = f"{END} callbacks=[lambda metrics, step: step == {steps}],"
    for line, other in {"SHARE = 1  #": f"SHARE = {share}  #", "num_layers=2": "num_layers=1", END: end}.items():
        assert line in script
        script = script.replace(line, other)
    (folder / "train.py").write_text(script)
    command = [sys.executable, "train.py", *([] if devices is None else ["--pretend", str(devices)])]
    if processes > 1:
        command += ["--join", f"127.0.0.1:{free_port()}", str(processes)]
    commands = [[*command, *([str(number)] if processes > 1 else [])] for number in range(processes)]
    running = [subprocess.Popen(each, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for each in commands]
    try:
        said = [process.communicate(timeout=200) for process in running]
    finally:
        for process in running:
            process.kill()
    return [(process.returncode, *each) for process, each in zip(running, said, strict=True)]


def losses_of(folder: Path, **options) -> list[float]:
    """The losses that the script has written at its end, when one of its processes has spoken."""
    said = said_by(folder, **options)
    assert [code for code, *_ in said] == [0] * len(said), said
    assert [out.count(b"; steps: 20; loss") for _, out, _ in said] == [1] + [0] * (len(said) - 1)
    _, words = pf.load_model(folder / "run.safetensors", pf.Decoder, tokenizer=True)
    assert len(words) == 40
    rows = (folder / "run" / "metrics.csv").read_text().splitlines()
    return [float(row.split(",")[1]) for row in rows[1:]]


EIGHT, PAIR = {"devices": 8}, {"devices": 4, "share": 2, "processes": 2}


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    found = losses_of(tmp_path_factory.mktemp("alone"))
    assert len(found) == 20
    return found


@pytest.mark.parametrize(("first", "then"), [(EIGHT, PAIR), (PAIR, EIGHT)], ids=["eight, pair", "pair, eight"])
def test_the_script_goes_on_elsewhere_with_the_losses_of_one_device(tmp_path, alone, first, then):
    losses_of(tmp_path, **first, steps=10)
    np.testing.assert_allclose(losses_of(tmp_path, **then), alone, atol=1e-5, rtol=0)


def test_the_script_says_which_devices_cannot_share(tmp_path):
    ((code, _, error),) = said_by(tmp_path, 3)
    assert code == 1
    assert b"3 devices with SHARE = 1 cannot share 16 texts equally; expected 1, 2, 4, 8, 16 devices." in error
