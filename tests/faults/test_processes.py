"""Several processes that train together, over loopback: the numbers of one process, and one sentence for bad input."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from together import said_by

from plainformer.training.sharded_checkpoint import list_folders

SCRIPT = Path(__file__).with_name("in_processes.py")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("processes")


@pytest.fixture(scope="module")
def said(folder):
    """What each process has printed, by what it did; all that the script does takes some seconds of computing."""
    return said_by(SCRIPT, folder)


def found(folder, name: str, number: int = 0) -> dict:
    """What a process has found, which it leaves in a file."""
    return json.loads((folder / name / f"{number}.json").read_text())


def check_each_says(said, name: str, expected: str):
    for words in said[name]:
        assert expected in words, words


def first_losses(folder, name: str) -> list[float]:
    return [float(line.split(",")[1]) for line in (folder / name / "run" / "metrics.csv").read_text().splitlines()[1:]]


@pytest.mark.parametrize(("name", "count"), [("three", 3), ("four", 4)])
def test_fit_in_several_processes_gives_the_losses_of_one(said, folder, name, count):
    assert sorted(path.name for path in (folder / name).glob("*.json")) == [f"{number}.json" for number in range(count)]
    alone = first_losses(folder, "one")[:20]
    assert len(alone) == 20
    for number in range(count):
        losses = found(folder, name, number)["losses"][:20]
        np.testing.assert_allclose(losses, alone, atol=1e-5, rtol=0)
    validation = found(folder, "one")["validation"]
    assert len(validation) >= 2
    np.testing.assert_allclose(found(folder, name)["validation"][:2], validation[:2], atol=1e-5, rtol=0)


def test_a_decoder_whose_matrices_four_processes_of_two_devices_share_has_the_losses_of_one(said, folder):
    alone = found(folder, "decoder")["losses"]
    assert len(alone) == 20
    for number in range(4):
        np.testing.assert_allclose(found(folder, "decoder in four", number)["losses"], alone, atol=1e-5, rtol=0)


def test_fit_in_several_processes_calls_and_writes_in_the_first_alone(said, folder):
    assert [found(folder, "four", number)["callbacks"] for number in range(4)] == [20, 0, 0, 0]
    names = sorted(path.name for path in (folder / "four" / "run").iterdir() if path.name != ".plainformer-lock")
    assert names == ["000010", "000016", "000020", "metrics.csv"]  # the best, and the newest two
    assert len(first_losses(folder, "four")) == 20


def test_a_checkpoint_of_processes_that_cut_the_weights_goes_on_in_one(said, folder):
    assert [found(folder, "three", number)["weight"] for number in (1, 2)] == [[[5, 1]], [[5, 1]]]
    assert said["three to one"] == ["starting\n"]
    assert list_folders(folder / "three" / "run") == [20]  # of two checkpoints that stay, the newest is a file
    assert (folder / "three" / "run" / "000024.safetensors").is_file()
    np.testing.assert_allclose(first_losses(folder, "three"), first_losses(folder, "one"), atol=1e-5, rtol=0)


def test_a_checkpoint_of_one_process_goes_on_in_two(said, folder):
    assert (folder / "one" / "run" / "000020.safetensors").is_file()
    assert (folder / "one" / "run" / "000024").is_dir()
    assert len(first_losses(folder, "one")) == 24
    assert found(folder, "one", 1)["losses"] == found(folder, "one", 0)["losses"]


def test_fit_in_several_processes_refuses_a_checkpoint_of_another_model(said):
    check_each_says(said, "another model", "are of another run: weight was trained and is not. Train into another")


def test_fit_names_the_entry_out_of_range_in_the_process_that_has_it(said):
    assert "ValueError: inputs[1, 3] is 70.0; expected at most 9." in said["own rows"][1]
    assert "An entry of inputs is not allowed; expected at most 9." in said["own rows"][0]


def test_fit_in_several_processes_refuses_bad_input_in_each(said):
    for expected in (
        "ValueError The axis 'batch' has size 2",
        "ValueError Of 3 processes, 0, 1, 2 do not see the files of all others",
        "OSError Processes [0, 1, 2] cannot make the folder",
        "ValueError The mesh has devices of the processes [0, 1]",
        "ValueError The processes begin with different models or configurations",
    ):
        check_each_says(said, "refused", f"\n{expected}")


def test_iterators_of_several_processes_end_with_the_shortest(said):
    check_each_says(said, "uneven", "There were batches for 2 steps only; expected 20")
    check_each_says(said, "uneven", "2 steps")


def test_ctrl_c_in_one_process_stops_all_after_the_same_step(said, folder):
    check_each_says(said, "interrupted", "TrainingInterrupted: Stopped after step 6 of 20; saved in ")
    assert list_folders(folder / "interrupted" / "run") == [4, 6]


def test_several_processes_pass_over_a_damaged_checkpoint(said, folder):
    assert "000006 is damaged: training goes on from 000004" in said["damaged"][0]
    assert "is damaged" not in said["damaged"][1]
    assert list_folders(folder / "damaged" / "run") == [10, 16, 20]
    assert "000020 was not saved to its end" in said["damaged"][0]
    assert (folder / "damaged" / "run" / ".plainformer-unsealed-000020" / "state").is_dir()
    assert (folder / "damaged" / "run" / "202611" / "notes").is_dir()
    assert first_losses(folder, "damaged") == first_losses(folder, "interrupted") + first_losses(folder, "damaged")[6:]
    np.testing.assert_allclose(first_losses(folder, "damaged"), first_losses(folder, "one")[:20], atol=1e-5, rtol=0)


def test_an_error_of_one_process_alone_ends_the_others(said):
    assert "KeyError: 'no such run'" in said["alone"][0]
    assert "Process 0 of 2 has ended by an error, which it has printed: process 1 stops, too" in said["alone"][1]


def test_training_in_one_process_needs_no_orbax():
    code = "import sys, plainformer; sys.exit('orbax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
