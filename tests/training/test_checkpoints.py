"""Checkpoints: whole or not at all, the newest few, and named when they are damaged."""

import gc
import logging
import os
import shutil
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.training.checkpoints import list_checkpoints, load_checkpoint, save_checkpoint

# Where a file cannot be read, orbax leaves the reading half done, and Python reports that when it tidies up.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def tidied_up():
    """Let such reports come before the next test, which they do not concern."""
    yield
    time.sleep(0.05)
    gc.collect()


def state(number: int):
    """A state like that of training: matrices, a counter, something empty, 16 bits."""
    numbers = np.random.default_rng(number)
    return (
        {"weight": jnp.asarray(numbers.normal(size=(7, 5)), jnp.float32), "none": None},
        (jnp.asarray(number, jnp.int32), [jnp.asarray(numbers.normal(size=3), jnp.bfloat16)]),
    )


def single(number: int):
    """A state of one array, to be damaged."""
    return {"weight": state(number)[0]["weight"]}


def same(one, other) -> bool:
    return jax.tree.structure(one) == jax.tree.structure(other) and all(
        a.dtype == b.dtype and (a == b).all() for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    )


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Checkpoints 3 and 20, and nothing else; never written to."""
    directory = tmp_path_factory.mktemp("saved")
    for step in (3, 20):
        save_checkpoint(directory, step, state(step), {"metrics": [{"loss": 1 / step}]})
    return directory


@pytest.fixture(scope="module")
def saved_single(tmp_path_factory):
    """The same, each of a single array."""
    directory = tmp_path_factory.mktemp("single")
    for step in (3, 20):
        save_checkpoint(directory, step, single(step), {"metrics": [{"loss": 1 / step}]})
    return directory


@pytest.fixture
def damaged(saved_single, tmp_path):
    """A copy that a test may spoil."""
    shutil.copytree(saved_single, tmp_path / "copy")
    return tmp_path / "copy"


def check_damage_is_named(directory):
    with pytest.raises(ValueError, match=rf"{directory / '20'} is damaged: .*there: \[3\]\. To go back to one, delete"):
        load_checkpoint(directory, single(0))
    found, notes, step = load_checkpoint(directory, single(0), step=3)
    assert same(found, single(3))
    assert (notes, step) == ({"metrics": [{"loss": 1 / 3}]}, 3)


def test_load_checkpoint_gives_back_what_was_saved(saved):
    found, notes, step = load_checkpoint(str(saved), state(0))
    assert same(found, state(20))
    assert (notes, step) == ({"metrics": [{"loss": 0.05}]}, 20)
    assert list_checkpoints(saved) == [3, 20]


def test_save_checkpoint_keeps_the_newest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for step in range(1, 4):
        assert save_checkpoint("new/run", step, state(step), {}, keep=2) == tmp_path / "new" / "run" / str(step)
    assert list_checkpoints("new/run") == [2, 3]
    assert sorted(entry.name for entry in (tmp_path / "new" / "run").iterdir()) == ["2", "3"]
    assert same(load_checkpoint("new/run", state(0), step=2)[0], state(2))


def test_checkpoints_make_no_noise_and_leave_no_threads(tmp_path, capfd, caplog):
    threads = threading.active_count()
    with caplog.at_level(logging.WARNING):
        save_checkpoint(tmp_path, 1, state(1), {})
        load_checkpoint(tmp_path, state(0))
    assert capfd.readouterr() == ("", "")
    assert not caplog.records
    patience = time.monotonic() + 10
    while threading.active_count() > threads and time.monotonic() < patience:
        time.sleep(0.01)  # they end on their own, soon
    assert threading.active_count() == threads


def test_list_checkpoints_of_what_holds_none(tmp_path):
    assert list_checkpoints(tmp_path / "none") == []
    (tmp_path / "5").write_text("a file")
    (tmp_path / "6.orbax-checkpoint-tmp-7").mkdir()
    assert list_checkpoints(tmp_path) == []
    with pytest.raises(FileNotFoundError, match=rf"There is no checkpoint in {tmp_path}; found none"):
        load_checkpoint(tmp_path, state(0))


def test_load_checkpoint_of_a_step_that_is_not_there(saved):
    with pytest.raises(FileNotFoundError, match=r"There is no checkpoint 4 in .*; found \[3, 20\]"):
        load_checkpoint(saved, state(0), step=4)


def test_leftovers_of_a_killed_save_are_ignored_and_removed(damaged):
    # As orbax calls what it has not finished.
    leftover = damaged / "21.orbax-checkpoint-tmp"
    shutil.copytree(damaged / "20", leftover)
    (leftover / "commit_success.txt").unlink(missing_ok=True)
    assert list_checkpoints(damaged) == [3, 20]
    assert load_checkpoint(damaged, single(0))[2] == 20
    save_checkpoint(damaged, 21, single(21), {})
    assert sorted(entry.name for entry in damaged.iterdir()) == ["20", "21", "3"]
    assert same(load_checkpoint(damaged, single(0))[0], single(21))


def test_a_half_deleted_older_checkpoint_is_no_obstacle(damaged):
    shutil.rmtree(damaged / "3" / "state")
    (damaged / "3" / "_CHECKPOINT_METADATA").unlink()
    assert load_checkpoint(damaged, single(0))[2] == 20
    save_checkpoint(damaged, 21, single(21), {}, keep=2)
    assert list_checkpoints(damaged) == [20, 21]


def test_save_checkpoint_keeps_those_of_the_most_steps_in_whatever_order(damaged):
    save_checkpoint(damaged, 12, single(12), {}, keep=2)
    assert list_checkpoints(damaged) == [12, 20]
    save_checkpoint(damaged, 1, single(1), {}, keep=2)
    assert list_checkpoints(damaged) == [12, 20]


def test_a_killed_deletion_leaves_no_half_checkpoint_and_is_finished_later(damaged, monkeypatch):
    def killed(folder, *_, **__):
        raise KeyboardInterrupt  # as good as a kill: nothing of it is caught

    monkeypatch.setattr(shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        save_checkpoint(damaged, 21, single(21), {}, keep=2)
    monkeypatch.undo()
    assert list_checkpoints(damaged) == [20, 21]
    assert len(list(damaged.iterdir())) == 3
    save_checkpoint(damaged, 22, single(22), {}, keep=2)
    assert sorted(entry.name for entry in damaged.iterdir()) == ["21", "22"]


def files_of(folder):
    return sorted((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)


SAVED_NOTES = ({"metrics": [{"loss": 0.05}]}, 20)


def result_of_loading(directory):
    """What loading gives, or "named" if the error names the folder."""
    try:
        return load_checkpoint(directory, single(0))
    except ValueError as error:
        return "named" if f"{directory / '20'} is damaged" in str(error) else str(error)


def test_every_file_but_marks_is_needed_or_its_loss_is_named(damaged):
    names = [path.relative_to(damaged / "20") for path in files_of(damaged / "20")]
    refused = 0
    for name in names:
        path = damaged / "20" / name
        content = path.read_bytes()
        for spoilt in (None, content[: len(content) // 2], b""):
            path.unlink() if spoilt is None else path.write_bytes(spoilt)
            outcome = result_of_loading(damaged)
            refused += isinstance(outcome, str)
            # What orbax writes for itself alone may be missing; nothing else is given back than what was saved.
            assert outcome == "named" or (same(outcome[0], single(20)) and outcome[1:] == SAVED_NOTES)
        path.write_bytes(content)
    assert refused >= 6
    assert same(load_checkpoint(damaged, single(0))[0], single(20))


@pytest.mark.parametrize("where", [0.25, 0.5, 0.75])
def test_altered_bytes_in_the_largest_file_are_noticed(damaged, where):
    path = files_of(damaged / "20" / "state")[-1]
    content = bytearray(path.read_bytes())
    content[int(where * len(content))] ^= 0x10
    path.write_bytes(content)
    check_damage_is_named(damaged)


def test_altered_notes_are_noticed(damaged):
    (path,) = [path for path in (damaged / "20" / "notes").iterdir() if b"0.05" in path.read_bytes()]
    path.write_bytes(path.read_bytes().replace(b"0.05", b"0.04"))
    check_damage_is_named(damaged)


@pytest.mark.parametrize("part", ["state", "notes", "state/d", "state/manifest.ocdbt", "_CHECKPOINT_METADATA"])
def test_missing_parts_are_noticed(damaged, part):
    path = damaged / "20" / part
    path.unlink() if path.is_file() else shutil.rmtree(path)
    if part == "_CHECKPOINT_METADATA":  # orbax does without
        assert same(load_checkpoint(damaged, single(0))[0], single(20))
    else:
        check_damage_is_named(damaged)


def test_load_checkpoint_of_another_model(saved):
    weights, rest = state(0)
    with pytest.raises(
        ValueError, match=r"20 is of another model: 0\.weight is \(7, 5\) float32, expected \(7, 6\) float"
    ):
        load_checkpoint(saved, ({"weight": jnp.zeros((7, 6)), "none": None}, rest))
    with pytest.raises(
        ValueError, match=r"of another model: 0\.more is missing, expected \(1,\) float32.*there: \[3\]"
    ):
        load_checkpoint(saved, ({**weights, "more": jnp.zeros(1)}, rest))


def test_load_checkpoint_advises_to_delete_only_where_that_helps(damaged):
    with pytest.raises(
        ValueError, match=r"Train into another .*, or make the model .* saved from\. Other .*: \[3\]\.$"
    ):
        load_checkpoint(damaged, {"weight": jnp.zeros((7, 6))})
    shutil.rmtree(damaged / "3")
    shutil.rmtree(damaged / "20" / "state")
    with pytest.raises(ValueError, match=r"20 is damaged: .*Other checkpoints there: none\. Start anew elsewhere\.$"):
        load_checkpoint(damaged, single(0))


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), MemoryError(), ImportError("no orbax")])
def test_load_checkpoint_calls_nothing_damaged_that_it_could_not_read(saved, monkeypatch, error):
    def refuse():
        raise error

    monkeypatch.setattr("plainformer.training.checkpoints._checkpointer", refuse)
    with pytest.raises(type(error)) as raised:
        load_checkpoint(saved, state(0))
    assert raised.value is error


def test_save_checkpoint_refuses_what_it_cannot_keep(damaged, unchecked):
    with pytest.raises(FileExistsError, match=r"There is a checkpoint .*20 already; delete it"):
        save_checkpoint(damaged, 20, single(1), {})
    assert same(load_checkpoint(damaged, single(0))[0], single(20))
    with pytest.raises(TypeError, match="not JSON serializable"):
        save_checkpoint(damaged, 21, single(1), {"key": object()})
    with pytest.raises(ValueError, match=r"^keep is 0; expected at least 1"):
        save_checkpoint(damaged, 21, single(1), {}, keep=0)
    with pytest.raises(ValueError, match=r"^step \+ 1 is 0; expected at least 1"):
        save_checkpoint(damaged, -1, single(1), {})
    assert list_checkpoints(damaged) == [3, 20]


def test_save_checkpoint_where_it_cannot_write(damaged, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match=rf"Cannot save step 1 in {tmp_path}/file/run: .*disk full, or the folder read-o"):
        save_checkpoint(tmp_path / "file" / "run", 1, single(1), {})

    def refuse(*_, **__):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "rename", refuse)
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match=r"Cannot save step 21 in .*No space left.*already stay: \[3, 20\]"):
        save_checkpoint(damaged, 21, single(21), {})
    monkeypatch.undo()
    assert list_checkpoints(damaged) == [3, 20]
    assert same(load_checkpoint(damaged, single(0))[0], single(20))
    save_checkpoint(damaged, 21, single(21), {}, keep=2)
    assert list_checkpoints(damaged) == [20, 21]
