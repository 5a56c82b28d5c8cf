"""The checkpoints that several processes write together, here written by one."""

import shutil

import jax
import numpy as np
import pytest
from tiny_run import CONFIG, Line, run

from plainformer.training.arrays import named_arrays
from plainformer.training.checkpoint import (
    DamagedCheckpoint,
    list_checkpoints,
    load_best,
    load_checkpoint,
    read_checkpoint,
    save_checkpoint,
)
from plainformer.training.sharded_checkpoint import SEAL, list_folders, read_folder, save_folder

# What orbax waited for may answer when it has closed its event loop already.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def state(step: int) -> dict:
    """Arrays by name, to be told from those of another step."""
    return {name: array + step for name, array in named_arrays(Line()).items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    directory = tmp_path_factory.mktemp("folders")
    for step in (8, 12):
        save_folder(directory, step, state(step), {"metrics": [{"step": step, "loss": 0.5}]})
    return directory


def test_list_folders_takes_whole_ones_only(folder, tmp_path):
    assert list_folders(folder) == [8, 12]
    assert list_folders(tmp_path / "none") == []
    shutil.copytree(folder / "000012", tmp_path / "000012")
    assert list_folders(tmp_path) == [12]
    (tmp_path / "000012" / SEAL).unlink()  # as if a process had been killed while it saved
    assert list_folders(tmp_path) == []


def test_read_folder_gives_what_was_saved_where_the_arrays_lie_that_it_is_like(folder):
    like = state(0)
    arrays, metadata = read_folder(folder, 8, like)
    assert metadata == {"metrics": [{"step": 8, "loss": 0.5}]}
    for name, array in state(8).items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].sharding == like[name].sharding


def test_read_folder_of_another_model_gives_its_shapes(folder):
    arrays, _ = read_folder(folder, 12, {"weight": np.zeros((2, 2), np.float32)})
    assert {name: tuple(array.shape) for name, array in arrays.items()} == {"weight": (5, 3), "bias": (3,)}


def test_load_best_takes_the_model_out_of_what_several_processes_saved(tmp_path):
    for step in (8, 12):
        arrays = {f"0.{name}": array for name, array in state(step).items()} | {"1.mu": jax.numpy.ones(7)}
        metrics = [
            {"step": at, "loss": 0.5, "validation_loss": loss} for at, loss in ((8, 1.0), (12, 2.0)) if at <= step
        ]
        save_folder(tmp_path, step, arrays, {"metrics": metrics})
    for name, array in named_arrays(load_best(tmp_path, Line())).items():
        np.testing.assert_array_equal(array, state(8)[name])


def test_a_damaged_folder_is_named_with_those_to_go_back_to(tmp_path):
    for step in (4, 8):
        save_folder(tmp_path, step, state(step), {"metrics": []})
    for path in (tmp_path / "000008" / "state").rglob("*"):
        if path.is_file() and path.parent.name == "d":
            path.write_bytes(path.read_bytes()[:-9] + b"123456789")
    said = r"000008 is damaged: .* Other checkpoints there: \[4\]\. To go back to one, delete .*000008\."
    with pytest.raises(DamagedCheckpoint, match=said):
        read_checkpoint(tmp_path, 8, state(0))


def test_load_checkpoint_reads_what_several_processes_saved(folder):
    assert list_checkpoints(folder) == [8, 12]
    found, metadata, step = load_checkpoint(folder, Line())
    assert (metadata["metrics"], step) == ([{"step": 12, "loss": 0.5}], 12)
    for name, array in named_arrays(found).items():
        np.testing.assert_array_equal(array, state(12)[name])
    with pytest.raises(ValueError, match=r"000008 is of another model: .*Other checkpoints there:"):
        load_checkpoint(folder, {"weight": np.zeros(7, np.float32)}, step=8)


def test_fit_deletes_older_checkpoints_whoever_wrote_them(tmp_path):
    for step in (2, 14):
        save_folder(tmp_path, step, state(step), {"metrics": []})
    save_checkpoint(tmp_path, 13, state(13), {}, max_to_keep=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000013.safetensors", "000014"]
    save_checkpoint(tmp_path, 15, state(15), {}, max_to_keep=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000015.safetensors"]


def test_a_run_takes_the_newest_of_files_and_folders(tmp_path):
    whole = run(CONFIG)
    run(CONFIG, directory=tmp_path)  # to step 12, and 8 before
    for step in (8, 12):
        (tmp_path / f"{step:06d}.safetensors").rename(tmp_path / f"{step}.bak")
    (tmp_path / "8.bak").rename(tmp_path / "000008.safetensors")
    assert list_checkpoints(tmp_path) == [8]
    assert jax.tree.all(jax.tree.map(np.array_equal, run(CONFIG, directory=tmp_path).model, whole.model))
    save_folder(tmp_path, 16, state(16), {"metrics": []})
    assert list_checkpoints(tmp_path) == [8, 12, 16]
    with pytest.raises(ValueError, match="are not of fit"):  # it is the folder that is read now
        run(CONFIG, directory=tmp_path)


def test_a_damaged_folder_is_put_aside_for_the_newest_that_is_whole(tmp_path):
    whole = run(CONFIG)
    run(CONFIG, directory=tmp_path)
    save_folder(tmp_path, 16, state(16), {"metrics": []})
    shutil.rmtree(tmp_path / "000016" / "state")
    with pytest.warns(UserWarning, match="000016 is damaged: training goes on from"):
        found = run(CONFIG, directory=tmp_path)
    assert jax.tree.all(jax.tree.map(np.array_equal, found.model, whole.model))
    assert list_checkpoints(tmp_path) == [8, 12]
