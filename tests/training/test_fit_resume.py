"""Runs that are stopped, by an error or by Ctrl-C, go on as if they had not been."""

import dataclasses
import os
import pkgutil
import signal
import threading

import pytest
from tiny_run import CONFIG, Line, batch_at, numbers_of, run, validation

from plainformer.training.checkpoint import list_checkpoints, load_checkpoint
from plainformer.training.fit import TrainingInterrupted
from plainformer.training.optimiser import make_optimiser


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run never interrupted: its result, and its metrics as they were written."""
    directory = tmp_path_factory.mktemp("whole")
    found = run(directory=directory, evaluate=validation)
    assert list_checkpoints(directory) == [10, 12]
    return found, (directory / "metrics.csv").read_text()


def check_same(found, directory, whole):
    assert found.metrics == whole[0].metrics
    assert numbers_of(found.model) == numbers_of(whole[0].model)
    assert (directory / "metrics.csv").read_text() == whole[1]
    assert list_checkpoints(directory)[-1] == 12


def stops_at(step, act):
    """Batches as ever, but for an act at one step."""

    def batches(number):
        if number == step:
            act()
        return batch_at(number)

    return batches


def fail():
    raise ConnectionError("the data went away")


def press_ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)


def test_fit_goes_on_after_an_error_bit_for_bit(tmp_path, whole):
    with pytest.raises(ConnectionError):
        run(directory=tmp_path, evaluate=validation, batches=stops_at(9, fail))
    assert list_checkpoints(tmp_path) == [5, 8]
    assert len((tmp_path / "metrics.csv").read_text().splitlines()) == 1 + 8
    steps = []
    found = run(directory=tmp_path, evaluate=validation, batches=lambda step: steps.append(step) or batch_at(step))
    assert steps == [0, 8, 9, 10, 11]  # the first batch says whether these are the same data
    check_same(found, tmp_path, whole)
    # Once finished, it returns at once, with the same result, and the metrics are there again if they were lost.
    (tmp_path / "metrics.csv").unlink()
    check_same(run(directory=tmp_path, batches=stops_at(12, fail), evaluate=validation), tmp_path, whole)
    assert list_checkpoints(tmp_path) == [10, 12]


def test_fit_returns_a_finished_run_from_a_folder_that_cannot_be_written(tmp_path, whole, monkeypatch):
    run(directory=tmp_path, evaluate=validation)

    def refuse(*_, **__):
        raise OSError(30, os.strerror(30))

    monkeypatch.setattr(os, "replace", refuse)
    check_same(run(directory=tmp_path, evaluate=validation), tmp_path, whole)
    with pytest.raises(OSError, match=rf"Cannot write in {tmp_path}/new: .*Read-only file system.*folder read-only\?"):
        run(directory=tmp_path / "new")


def test_fit_goes_by_where_the_directory_was_at_the_start(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    run(directory="~/run")
    assert list_checkpoints(tmp_path / "run") == [8, 12]
    monkeypatch.chdir(tmp_path)
    run(directory="other", batches=stops_at(5, lambda: os.chdir("elsewhere")))
    assert list_checkpoints(tmp_path / "other") == [8, 12]


def test_fit_may_save_and_evaluate_at_other_intervals_when_it_goes_on(tmp_path, whole):
    with pytest.raises(ConnectionError):
        run(
            dataclasses.replace(CONFIG, checkpoint_every=2, max_to_keep=1),
            directory=tmp_path,
            batches=stops_at(7, fail),
        )
    assert list_checkpoints(tmp_path) == [6]
    found = run(
        dataclasses.replace(CONFIG, evaluate_every=9, checkpoint_every=3), directory=tmp_path, evaluate=validation
    )
    assert list_checkpoints(tmp_path) == [9, 12]
    assert [row["step"] for row in found.metrics if "validation_loss" in row] == [9, 12]
    assert [row["loss"] for row in found.metrics] == [row["loss"] for row in whole[0].metrics]
    assert numbers_of(found.model) == numbers_of(whole[0].model)


def test_fit_stops_at_ctrl_c_saves_and_goes_on_bit_for_bit(tmp_path, whole):
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(TrainingInterrupted) as stopped:
        run(directory=tmp_path, evaluate=validation, batches=stops_at(6, press_ctrl_c))
    assert str(stopped.value) == (
        f"Stopped after step 7 of 12; saved in {tmp_path}. Call fit again with the same arguments to go on."
    )
    assert isinstance(stopped.value, KeyboardInterrupt)
    assert signal.getsignal(signal.SIGINT) is before
    assert list_checkpoints(tmp_path) == [5, 7]
    result = stopped.value.result
    assert result.metrics == whole[0].metrics[:7]
    (weights, _), metadata, step = load_checkpoint(tmp_path, load_like())
    assert (numbers_of(weights), metadata["metrics"], step) == (numbers_of(result.model), result.metrics, 7)
    check_same(run(directory=tmp_path, evaluate=validation), tmp_path, whole)


def load_like():
    """The state of a run of the line: its weights and what the optimiser remembers."""
    return Line(), make_optimiser(CONFIG).init(Line())


def test_fit_stopped_where_it_would_save_anyway_saves_once(tmp_path):
    with pytest.raises(TrainingInterrupted, match="after step 4 of 12"):
        run(directory=tmp_path, batches=stops_at(3, press_ctrl_c))
    assert list_checkpoints(tmp_path) == [4]


def test_fit_stopped_without_directory_says_that_nothing_was_saved():
    with pytest.raises(TrainingInterrupted, match="after step 2 of 12; nothing was saved") as stopped:
        run(batches=stops_at(1, press_ctrl_c))
    assert len(stopped.value.result.metrics) == 2


def test_ctrl_c_is_not_lost_in_the_last_callback(tmp_path, whole):
    def late(metrics, step):
        if step == 12:
            press_ctrl_c()

    with pytest.raises(TrainingInterrupted, match=r"^Stopped after step 12 of 12") as stopped:
        run(directory=tmp_path, evaluate=validation, callbacks=[late])
    check_same(stopped.value.result, tmp_path, whole)


@pytest.mark.parametrize("place", ["tqdm.tqdm.close", "plainformer.training.run.save_checkpoint"])
def test_ctrl_c_is_not_lost_in_the_last_save_nor_where_the_bar_is_closed(place, tmp_path, whole, monkeypatch):
    act = pkgutil.resolve_name(place)

    def interrupted(*arguments, **options):
        found = act(*arguments, **options)
        if list_checkpoints(tmp_path)[-1:] == [12]:
            press_ctrl_c()
        return found

    monkeypatch.setattr(place, interrupted)
    with pytest.raises(TrainingInterrupted, match="step 12 of 12") as stopped:
        run(directory=tmp_path, evaluate=validation)
    check_same(stopped.value.result, tmp_path, whole)
    assert list_checkpoints(tmp_path) == [10, 12]


def test_fit_breaks_off_at_the_second_ctrl_c():
    before = signal.getsignal(signal.SIGINT)

    def twice():
        press_ctrl_c()
        press_ctrl_c()

    with pytest.raises(KeyboardInterrupt) as stopped:
        run(batches=stops_at(1, twice))
    assert not isinstance(stopped.value, TrainingInterrupted)
    assert signal.getsignal(signal.SIGINT) is before


def test_fit_runs_in_a_thread(tmp_path, whole):
    found, threads = [], threading.active_count()
    thread = threading.Thread(target=lambda: found.append(run(directory=tmp_path, evaluate=validation)))
    thread.start()
    thread.join()
    check_same(*found, tmp_path, whole)
    assert threading.active_count() == threads
