"""A real process that trains is killed, interrupted, left without room on its disk; it goes on as if nothing had been.

`make faults` runs these: they take minutes, since each process starts from nothing. `make faults KILLS=200` kills the
smallest of the runs 200 times.
"""

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from plainformer.training.checkpoint import list_checkpoints

TRAINER = Path(__file__).with_name("trainer.py")
NUM_KILLS = 20


class Trainer:
    """The process, with what it said so far; killed at the latest when the test leaves it."""

    def __init__(self, cache, directory, *arguments):
        # Compiled programs are kept from one process to the next, which then starts in seconds.
        settings = {
            "JAX_COMPILATION_CACHE_DIR": str(cache),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
        command = [sys.executable, str(TRAINER), str(directory), *map(str, arguments)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **settings}
        )
        self.lines: list[str] = []
        self.reader = threading.Thread(target=lambda: self.lines.extend(self.process.stdout))
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.end()
        self.process.stdout.close()
        self.process.stderr.close()

    def wait_for(self, expected: int, word: str = "step") -> None:
        """Wait until it has begun so many steps, or has ended."""
        while sum(line.startswith(word) for line in self.lines) < expected and self.process.poll() is None:
            time.sleep(0.001)

    def end(self) -> str:
        """Wait for its end; give what it said on standard error."""
        errors = "" if self.process.stderr.closed else self.process.stderr.read()
        self.process.wait()
        self.reader.join()
        return errors


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture(scope="module")
def whole(tmp_path_factory, cache):
    """The metrics of a run that nobody disturbed."""
    directory = tmp_path_factory.mktemp("whole")
    with Trainer(cache, directory) as trainer:
        assert trainer.end() == ""
        assert trainer.lines[-1] == "finished\n"
    check_complete(directory)
    return (directory / "metrics.csv").read_text()


def check_complete(directory):
    assert list_checkpoints(directory) == [76, 78, 80]
    # What a killed process had half written is hidden, and removed once an hour has passed.
    names = sorted(entry.name for entry in directory.iterdir() if not entry.name.startswith(".plainformer-"))
    assert names == ["000076.safetensors", "000078.safetensors", "000080.safetensors", "metrics.csv"]
    steps = [line.split(",")[0] for line in (directory / "metrics.csv").read_text().splitlines()[1:]]
    assert steps == [str(step) for step in range(1, 81)]


def check_goes_on_to_the_same_end(cache, directory, whole):
    with Trainer(cache, directory) as trainer:
        errors = trainer.end()
        assert trainer.lines[-1] == "finished\n", errors
    check_complete(directory)
    assert (directory / "metrics.csv").read_text() == whole


def test_fit_survives_being_killed_at_twenty_random_moments(tmp_path, cache, whole):
    """A run that was quicker than its killer is whole, and another begins."""
    moments, directory = random.Random(20170612), tmp_path / "0"
    directory.mkdir()
    for number in range(NUM_KILLS):
        before = list_checkpoints(directory)
        with Trainer(cache, directory) as trainer:
            if number % 5 == 4:  # at any moment, be it while it starts or reads its checkpoint
                time.sleep(3 * moments.random())
            else:
                word = moments.choice(["step", "saving"])
                trainer.wait_for(moments.randint(1, 2), word)
                time.sleep({"step": 0.1, "saving": 0.004}[word] * moments.random())  # a save takes milliseconds
            trainer.process.send_signal(signal.SIGKILL)
            trainer.end()
        after = list_checkpoints(directory)
        assert after[-1:] >= before[-1:], f"kill {number} lost a checkpoint: {before}, {after}"
        if trainer.lines[-1:] == ["finished\n"]:
            check_complete(directory)
            directory = tmp_path / str(number + 1)
            directory.mkdir()
    check_goes_on_to_the_same_end(cache, directory, whole)


def test_fit_stopped_by_ctrl_c_says_where_it_saved(tmp_path, cache, whole):
    with Trainer(cache, tmp_path) as trainer:
        trainer.wait_for(5)  # the first batch is asked for once more, to know the data by
        trainer.process.send_signal(signal.SIGINT)
        errors = trainer.end()
        assert trainer.process.returncode != 0  # ended by the exception, a KeyboardInterrupt
    newest = list_checkpoints(tmp_path)[-1]
    assert newest >= 4
    assert f"Stopped after step {newest} of 80; saved in {tmp_path}. Call fit again" in errors.splitlines()[-1]
    check_goes_on_to_the_same_end(cache, tmp_path, whole)


def test_fit_on_a_full_disk_says_so_and_keeps_what_it_saved(tmp_path, cache, whole):
    with Trainer(cache, tmp_path, 7, 2_000) as trainer:
        errors = trainer.end()
        assert trainer.process.returncode == 1
        assert trainer.lines[-1] == "saving 8\n"
    assert f"OSError: Cannot save step 8 in {tmp_path}: " in errors
    assert "Is the disk full, or the folder read-only? Checkpoints that are there already stay: [2, 4, 6]." in errors
    assert list_checkpoints(tmp_path) == [2, 4, 6]
    check_goes_on_to_the_same_end(cache, tmp_path, whole)


def test_a_small_run_survives_as_many_kills_as_asked_for(tmp_path):
    num_kills = int(os.environ.get("KILLS", "20"))
    helpers = os.pathsep.join([str(TRAINER.parents[1] / "helpers"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(TRAINER.with_name("killer.py")), str(tmp_path), str(num_kills)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": helpers})
    assert done.returncode == 0, done.stderr
    *_, last = done.stdout.splitlines()
    assert last.endswith("none lost")
    counts = [int(word) for word in last.partition(":")[2].split() if word.isdecimal()]
    assert sum(counts) == num_kills
    assert re.search(r"\d+ while saving", last)


def test_save_checkpoint_survives_being_killed_before_each_of_its_file_operations(tmp_path):
    command = [sys.executable, str(TRAINER.with_name("saver.py")), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = done.stdout.splitlines()
    # Nothing is there of the new one, then all of it, then the oldest one is deleted.
    assert found == sorted(found, key=["1 2", "1 2 3", "2 3"].index)
    assert set(found) == {"1 2", "1 2 3", "2 3"}
