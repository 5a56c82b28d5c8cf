"""Checkpoints: whole or not at all, the newest few, named when they are damaged; and nothing else is touched."""

import builtins
import json
import os
import shutil
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import save_file

from plainformer.training.arrays import digest
from plainformer.training.checkpoint import list_checkpoints, load_checkpoint, save_checkpoint


def state(number: int):
    """A state like that of training: matrices, a counter, something empty, 16 bits."""
    numbers = np.random.default_rng(number)
    return (
        {"weight": jnp.asarray(numbers.normal(size=(7, 5)), jnp.float32), "none": None},
        (jnp.asarray(number, jnp.int32), [jnp.asarray(numbers.normal(size=3), jnp.bfloat16)]),
    )


def same(one, other) -> bool:
    return jax.tree.structure(one) == jax.tree.structure(other) and all(
        a.dtype == b.dtype and (a == b).all() for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    )


def names_in(directory) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir())


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Checkpoints 3 and 20, and nothing else; never written to."""
    directory = tmp_path_factory.mktemp("saved")
    for step in (3, 20):
        save_checkpoint(directory, step, state(step), {"metrics": [{"loss": 1 / step}]})
    return directory


@pytest.fixture
def damaged(saved, tmp_path):
    """A copy that a test may spoil."""
    shutil.copytree(saved, tmp_path / "copy")
    return tmp_path / "copy"


def check_damage_is_named(directory):
    with pytest.raises(ValueError, match=rf"{directory}/000020\.safetensors is damaged: .*there: \[3\]"):
        load_checkpoint(directory, state(0))
    found, metadata, step = load_checkpoint(directory, state(0), step=3)
    assert same(found, state(3))
    assert (metadata, step) == ({"metrics": [{"loss": 1 / 3}]}, 3)


@pytest.mark.gate
def test_load_checkpoint_returns_what_was_saved(saved):
    found, metadata, step = load_checkpoint(str(saved), state(0))
    assert same(found, state(20))
    assert (metadata, step) == ({"metrics": [{"loss": 0.05}]}, 20)
    assert list_checkpoints(saved) == [3, 20]
    assert names_in(saved) == ["000003.safetensors", "000020.safetensors"]


def test_save_checkpoint_keeps_the_newest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for step in (1, 2, 1_000_000):
        path = save_checkpoint("new/run", step, state(step), {}, max_to_keep=2)
        assert path == tmp_path / "new" / "run" / f"{step:06d}.safetensors"
    assert list_checkpoints("new/run") == [2, 1_000_000]
    assert names_in(tmp_path / "new" / "run") == ["000002.safetensors", "1000000.safetensors"]
    assert same(load_checkpoint("new/run", state(0), step=2)[0], state(2))


def test_save_checkpoint_keeps_those_of_the_most_steps_in_whatever_order(damaged):
    save_checkpoint(damaged, 12, state(12), {}, max_to_keep=2)
    assert list_checkpoints(damaged) == [12, 20]
    save_checkpoint(damaged, 1, state(1), {}, max_to_keep=2)
    assert list_checkpoints(damaged) == [12, 20]


def test_checkpoints_keep_an_array_however_it_lies(tmp_path):
    turned = np.asfortranarray(np.arange(6.0, dtype=np.float32).reshape(2, 3))
    save_checkpoint(tmp_path, 1, {"turned": turned}, {})
    found, _, _ = load_checkpoint(tmp_path, {"turned": np.zeros((2, 3), np.float32)})
    np.testing.assert_array_equal(found["turned"], turned)


def test_list_checkpoints_of_what_holds_none(tmp_path):
    assert list_checkpoints(tmp_path / "none") == []
    (tmp_path / "000006.safetensors").mkdir()
    assert list_checkpoints(tmp_path) == []
    with pytest.raises(FileNotFoundError, match=rf"There is no checkpoint in {tmp_path}; found none"):
        load_checkpoint(tmp_path, state(0))


def test_load_checkpoint_of_a_step_that_is_not_there(saved):
    with pytest.raises(FileNotFoundError, match=r"There is no checkpoint of step 4 in .*"):
        load_checkpoint(saved, state(0), step=4)


def foreign(directory):
    """Files and folders that are not checkpoints, each the user's own; and their names."""
    names = ["0", "007", "9", "9.safetensors", "0000009.safetensors", "00009x.safetensors", "000005.safetensors"]
    for name in names[:3]:
        (directory / name).mkdir()
    for name in names[3:]:
        save_file({"mine": np.ones(3)}, directory / name, {"format": "mine"})
    return names


def test_what_is_not_a_checkpoint_is_neither_listed_nor_deleted(tmp_path):
    names = foreign(tmp_path)
    for step in (6, 7, 8):
        save_checkpoint(tmp_path, step, state(step), {}, max_to_keep=1)
    assert list_checkpoints(tmp_path) == [8]
    assert load_checkpoint(tmp_path, state(0))[2] == 8
    assert names_in(tmp_path) == sorted([*names, "000008.safetensors"])
    with pytest.raises(FileExistsError, match=r"/000005\.safetensors exists: delete it, or use another"):
        save_checkpoint(tmp_path, 5, state(5), {})


def test_leftovers_of_a_killed_save_are_ignored_and_removed_in_time(damaged, monkeypatch):
    def killed(*_, **__):
        raise KeyboardInterrupt  # as good as a kill: nothing of it is caught

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        patch.setattr(Path, "unlink", killed)
        with pytest.raises(KeyboardInterrupt):
            save_checkpoint(damaged, 21, state(21), {})
    (leftover,) = set(names_in(damaged)) - {"000003.safetensors", "000020.safetensors"}
    assert list_checkpoints(damaged) == [3, 20]
    assert load_checkpoint(damaged, state(0))[2] == 20
    os.utime(damaged / leftover, (time.time() - 4000,) * 2)
    save_checkpoint(damaged, 21, state(21), {})
    assert names_in(damaged) == [f"{step:06d}.safetensors" for step in (3, 20, 21)]
    assert same(load_checkpoint(damaged, state(0))[0], state(21))


def test_a_save_killed_before_it_deletes_older_ones_is_finished_later(damaged, monkeypatch):
    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("plainformer.training.checkpoint.list_checkpoints", killed)
        with pytest.raises(KeyboardInterrupt):
            save_checkpoint(damaged, 21, state(21), {}, max_to_keep=2)
    assert list_checkpoints(damaged) == [3, 20, 21]
    assert same(load_checkpoint(damaged, state(0))[0], state(21))
    save_checkpoint(damaged, 22, state(22), {}, max_to_keep=2)
    assert list_checkpoints(damaged) == [21, 22]


def test_a_damaged_older_checkpoint_is_no_obstacle(damaged):
    (damaged / "000003.safetensors").write_bytes(b"")
    assert load_checkpoint(damaged, state(0))[2] == 20
    save_checkpoint(damaged, 21, state(21), {}, max_to_keep=2)
    assert list_checkpoints(damaged) == [20, 21]


@pytest.mark.parametrize("share", [0, 0.5])
def test_a_checkpoint_cut_short_is_named(damaged, share):
    path = damaged / "000020.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    assert list_checkpoints(damaged) == [3, 20]
    check_damage_is_named(damaged)


@pytest.mark.parametrize("metadata", ["[]", "[" * 100_000])
def test_metadata_of_another_kind_is_damage_though_its_sum_be_right(damaged, metadata):
    array = np.ones(3)
    header = {"metadata": metadata, "sha256": digest({"weight": array}, metadata)}
    save_file({"weight": array}, damaged / "000020.safetensors", header)
    check_damage_is_named(damaged)


def test_load_checkpoint_of_another_model(saved):
    weights, rest = state(0)
    with pytest.raises(ValueError, match=r"0\.weight is \(7, 5\) float32"):
        load_checkpoint(saved, ({"weight": jnp.zeros((7, 6)), "none": None}, rest))
    with pytest.raises(ValueError, match=r"0\.more is missing"):
        load_checkpoint(saved, ({**weights, "more": jnp.zeros(1)}, rest))


@pytest.mark.parametrize(
    ("place", "error"),
    [
        ("safetensors.safe_open", OSError(5, "Input/output error")),
        ("pathlib.Path.open", PermissionError(13, "Permission denied")),  # the tests may run as root
        ("plainformer.training.checkpoint.read_arrays", MemoryError()),
    ],
)
def test_load_checkpoint_does_not_call_damaged_what_it_had_no_means_to_read(saved, monkeypatch, place, error):
    def refuse(*_):
        raise error

    monkeypatch.setattr(place, refuse)
    with pytest.raises(type(error)) as raised:
        load_checkpoint(saved, state(0))
    assert raised.value is error


def test_save_checkpoint_refuses_what_it_cannot_keep(damaged):
    with pytest.raises(FileExistsError, match=r"20\.safetensors exists"):
        save_checkpoint(damaged, 20, state(1), {})
    assert same(load_checkpoint(damaged, state(0))[0], state(20))
    with pytest.raises(TypeError, match="not JSON serializable"):
        save_checkpoint(damaged, 21, state(1), {"key": object()})
    assert list_checkpoints(damaged) == [3, 20]


def test_save_checkpoint_where_it_cannot_write(damaged, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match=rf"Cannot save step 1 in {tmp_path}/file/run: .*disk full, or the folder read-o"):
        save_checkpoint(tmp_path / "file" / "run", 1, state(1), {})

    def refuse(*_, **__):
        raise OSError(28, os.strerror(28))

    for module, name in ((os, "replace"), (builtins, "open")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, refuse)
            with pytest.raises(OSError, match=r"Cannot save step 21 in .*No space left.*already stay: \[3"):
                save_checkpoint(damaged, 21, state(21), {})
        assert names_in(damaged) == ["000003.safetensors", "000020.safetensors"]
    assert same(load_checkpoint(damaged, state(0))[0], state(20))
    save_checkpoint(damaged, 21, state(21), {}, max_to_keep=2)
    assert list_checkpoints(damaged) == [20, 21]


def test_checkpoints_can_be_opened_by_other_programs(saved):
    from safetensors import safe_open

    with safe_open(saved / "000020.safetensors", "numpy") as file:
        assert sorted(file.keys()) == ["0.weight", "1.0", "1.1.0"]
        assert json.loads(file.metadata()["metadata"]) == {"metrics": [{"loss": 0.05}]}
