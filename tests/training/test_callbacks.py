"""Callbacks hand every step's metrics on, and say what to install where a package is missing.

The packages themselves are not needed here: modules of the same names note what they are told.
"""

import sys
import types

import pytest
from tiny_run import run, validation

from plainformer.training.callbacks import log_to_tensorboard, log_to_wandb


def test_log_to_tensorboard_writes_every_number_at_its_step(tmp_path, monkeypatch):
    told, flushed = [], []

    class Writer:
        def __init__(self, directory):
            assert directory == str(tmp_path)

        def add_scalar(self, name, number, step):
            told.append((name, number, step))

        def flush(self):
            flushed.append(len(told))

    monkeypatch.setitem(sys.modules, "tensorboard", types.ModuleType("tensorboard"))
    monkeypatch.setitem(sys.modules, "tensorboard.summary", types.SimpleNamespace(Writer=Writer))
    metrics = run(callbacks=[log_to_tensorboard(tmp_path)], evaluate=validation).metrics
    expected = [(name, number, row["step"]) for row in metrics for name, number in row.items() if name != "step"]
    assert told == expected
    assert len(flushed) == len(metrics)


def test_log_to_wandb_logs_every_step(monkeypatch):
    told = []

    def init(**settings):
        told.append(settings)
        return types.SimpleNamespace(log=lambda metrics, step: told.append((metrics, step)))

    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(init=init))
    metrics = run(callbacks=[log_to_wandb(project="line", mode="offline")]).metrics
    assert told == [{"project": "line", "mode": "offline"}, *((row, row["step"]) for row in metrics)]


@pytest.mark.parametrize(
    ("make", "module", "message"),
    [
        (lambda: log_to_tensorboard("logs"), "tensorboard.summary", r"TensorBoard is not installed\. Try: pip install"),
        (log_to_wandb, "wandb", r"Weights & Biases is not installed\. Try: pip install wandb"),
    ],
)
def test_a_missing_package_is_named(make, module, message, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=message):
        make()
