"""The models of turning bodies learn the same from the same, and are stored as their runs say."""

import jax
import numpy as np

import plainformer as pf
from lab.dynamics import columns, run as dynamics_run
from plainformer.models.stored import load_pretrained


def test_dynamics_learns_the_same_from_the_same(tmp_path, monkeypatch):
    """A run of a few steps is kept, and gone on from; and it learns."""
    monkeypatch.setattr(dynamics_run, "KEPT", tmp_path)
    config = dynamics_run.TrajectoryConfig(num_blocks=1, num_layers=1, num_layers_alone=1, num_models=2)
    run = dynamics_run.Run(200, (0.4, 0.6), spacing=0.5, config=config)
    with jax.numpy_dtype_promotion("standard"):
        models = dynamics_run.trained("toy", run, rate=lambda kind, run: 0.01)
        again = dynamics_run.trained("toy", run, rate=lambda kind, run: 0.01)
    assert all(map(np.array_equal, jax.tree.leaves(models), jax.tree.leaves(again)))
    before = dynamics_run.TrajectoryModels(config, key=jax.random.key(dynamics_run.SEED))
    batch = dynamics_run.in_columns(run.splits().validation, is_told=False)
    for kind in dynamics_run.KINDS:
        first, last = (float(dynamics_run.column_loss(each.one(kind, 1), *batch)) for each in (before, models))
        assert last < first


def test_layers_in_columns_are_those_of_the_package():
    config = dynamics_run.TrajectoryConfig(num_blocks=2, num_layers=2, num_layers_alone=3)
    windows = jax.random.normal(jax.random.key(1), (5, 3, 3))
    for make in dynamics_run.KINDS.values():
        model = make(config, key=jax.random.key(2))
        found = columns.applied(model, windows.transpose(2, 1, 0)).transpose(2, 1, 0)
        np.testing.assert_allclose(found, model(windows), atol=1e-5)


def test_the_dynamics_are_stored_as_their_runs_say():
    for name, run in dynamics_run.RUNS.items():
        models, tokenizer = load_pretrained(name)
        assert (models.config, tokenizer) == (run.config, None)


def test_windows_are_as_many_as_recorded():
    recorded = pf.data.load_record("dynamics")["windows"]
    for name, run in dynamics_run.RUNS.items():
        before, _ = dynamics_run.in_columns(run.splits().training, run.is_told)
        assert before.shape[2] == recorded[name]
