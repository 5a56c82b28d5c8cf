"""One of four processes that train together is killed: the others name it, and the run goes on with fewer of them."""

import json
from pathlib import Path

import numpy as np
import pytest
from together import said_by

SCRIPT = Path(__file__).with_name("kill_processes.py")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("killed")


@pytest.fixture(scope="module")
def found(folder):
    return said_by(SCRIPT, folder)


@pytest.mark.parametrize("moment", ["in a step", "while saving", "at the start"])
def test_the_others_end_within_a_minute_and_nothing_saved_is_lost(found, moment):
    kill = found["kills"][moment]
    assert sorted(kill["statuses"]) == ["0", "1", "2", "3"]
    assert sorted(kill["statuses"].values())[:1] == [-9]
    assert 0 not in kill["statuses"].values()
    assert kill["seconds"] < 60
    assert kill["after"][-1:] >= kill["before"][-1:]


@pytest.mark.parametrize(("moment", "victim"), [("in a step", 2), ("while saving", 0)])
def test_the_others_name_the_process_that_was_killed(found, folder, moment, victim):
    for number, said in enumerate(found["kills"][moment]["said"]):
        if number != victim:
            assert said.count(f"\nProcess {victim} of 4 was killed, or its machine has gone: process {number} ") == 1
            assert said.count(f"Start all again with the same directory, {folder}/run, on any number") == 1


def test_before_training_has_begun_jax_names_the_process_that_was_killed(found):
    for said in found["kills"]["at the start"]["said"][:3]:
        assert "tasks are unhealthy (stopped sending heartbeats):\n3\n" in said


def test_a_run_of_four_processes_goes_on_in_two_to_the_same_end(found, folder):
    assert set(found["statuses"].values()) == {0}
    assert found["kills"]["while saving"]["before"] == [4]
    newest = found["kills"]["at the start"]["after"][-1]
    assert newest in (4, 8)
    assert f"step {newest}\n" in found["first"]
    assert f"step {newest - 1}\n" not in found["first"]
    losses = [json.loads((folder / f"{name}.json").read_text()) for name in ("0", "1", "whole")]
    assert [len(each) for each in losses] == [20, 20, 20]
    np.testing.assert_allclose(losses[:2], losses[2:] * 2, atol=1e-5, rtol=0)
    left = sorted(path.name for path in (folder / "run").iterdir() if not path.name.startswith("."))
    assert left == ["000016", "000020", "metrics.csv"]
