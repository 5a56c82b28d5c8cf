"""What the training loop refuses: losses that are not numbers, and checkpoints of other runs."""

import dataclasses
import os
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from tiny_run import CONFIG, Line, batch_at, run, without_key

from plainformer.training.checkpoint import DamagedCheckpoint, list_checkpoints, load_checkpoint, save_checkpoint
from plainformer.training.optimiser import make_optimiser


def spoilt(step, number):
    """Batches as ever, but for one number in the targets of one step."""

    def batches(at):
        inputs, targets = batch_at(at)
        return inputs, targets.at[2, 1].set(number) if at == step else targets

    return batches


def test_fit_stops_at_once_when_the_loss_is_not_a_number(tmp_path):
    config = dataclasses.replace(CONFIG, checkpoint_every=2)
    # Step 8 is one at which a checkpoint is saved.
    with pytest.raises(FloatingPointError) as stopped:
        run(config, directory=tmp_path, batches=spoilt(7, 1e30), loss=without_key)
    assert f"The loss is inf at step 8; the last good checkpoint is {tmp_path}/000006" in str(stopped.value)
    assert list_checkpoints(tmp_path) == [4, 6]
    (weights, _), metadata, _ = load_checkpoint(tmp_path, (Line(), make_optimiser(config).init(Line())))
    assert jnp.isfinite(weights.weight).all()
    assert len(metadata["metrics"]) == 6
    assert (tmp_path / "metrics.csv").read_text().count("\n") == 1 + 8  # the bad step included
    assert len(run(config, directory=tmp_path, loss=without_key).metrics) == 12


def test_fit_stops_at_a_gradient_that_is_not_a_number_before_it_is_saved(tmp_path):
    def root_of_zero(model, batch, key):
        return jnp.sqrt(0 * model.weight.sum())  # 0, with an infinite slope times 0

    with pytest.raises(FloatingPointError, match="gradient_norm is nan at step 1"):
        run(dataclasses.replace(CONFIG, checkpoint_every=1), directory=tmp_path, loss=root_of_zero)
    assert list_checkpoints(tmp_path) == []


def test_fit_names_the_checkpoint_whose_weights_gave_nan(tmp_path):
    config = dataclasses.replace(CONFIG, checkpoint_every=2)
    with pytest.raises(FloatingPointError, match=r"the weights in 000002\.safetensors gave it"):
        run(config, directory=tmp_path, batches=spoilt(2, np.nan), loss=without_key)


def test_fit_stops_at_a_validation_loss_that_is_not_a_number_before_it_is_saved(tmp_path):
    config = dataclasses.replace(CONFIG, evaluate_every=4)
    losses = iter([1.0, float("inf")])
    with pytest.raises(FloatingPointError, match="validation_loss is inf at step 8"):
        run(config, directory=tmp_path, evaluate=lambda model: next(losses))
    assert list_checkpoints(tmp_path) == [4]
    assert (tmp_path / "metrics.csv").read_text().splitlines()[-1].endswith(",inf")


def test_fit_without_directory_names_the_step_too():
    with pytest.raises(FloatingPointError, match="The loss is nan at step 1; no good checkpoint"):
        run(batches=spoilt(0, np.nan), loss=without_key)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run of four steps; never written to."""
    directory = tmp_path_factory.mktemp("finished")
    run(dataclasses.replace(CONFIG, num_steps=4), directory=directory)
    return directory


@dataclasses.dataclass(frozen=True)
class Shape:
    """A configuration as a model may have it, with a name that the training has, too."""

    sizes: tuple = (5, 3)
    seed: int = 0


class Shaped(Line):
    """A line with a configuration."""

    config: Any = eqx.field(static=True)

    def __init__(self, config):
        super().__init__()
        self.config = config


@pytest.mark.parametrize(
    ("fields", "other", "message"),
    [
        ({"num_steps": 3, "warmup_steps": 2}, {}, "warmup_steps was 3 and is 2"),
        ({"seed": 1, "clip_norm": None}, {}, r"clip_norm was 4\.0 and is None, seed was 0 and is 1"),
        ({}, {"model": Line(bias=[1, 2, 3, 4])}, r"0\.bias is \(3,\) float32, expected \(4,\) float32"),
        ({}, {"model": Shaped(Shape(seed=5))}, "model was Line and is Shaped, .*seed was None and is 5"),
        ({}, {"batches": lambda step: batch_at(step + 1)}, "the first batch is another one now"),
    ],
)
def test_fit_names_what_differs_from_the_run_that_was_saved(finished, fields, other, message):
    with pytest.raises(ValueError, match=f"of another run: {message}"):
        run(dataclasses.replace(CONFIG, **{"num_steps": 4, **fields}), directory=finished, **other)


def test_fit_names_another_optimiser(tmp_path):
    run(directory=tmp_path)
    with pytest.raises(ValueError, match=r"of another run: the optimiser .* 1\.0\.mu, .*, and now"):
        run(directory=tmp_path, optimiser=optax.sgd(0.1, momentum=0.9))
    with pytest.raises(ValueError, match=r"1\.2\.count, and now nothing"):
        run(directory=tmp_path, optimiser=optax.sgd(0.1))


@pytest.mark.parametrize(
    ("then", "now", "message"),
    [
        (None, "bias", "weight was trained and is not"),
        ("bias", "weight", "bias was trained and is not, weight was not trained and is now"),
    ],
)
def test_fit_names_other_trainable_parts(then, now, message, tmp_path):
    def only(name):
        return None if name is None else lambda place: place == name

    run(directory=tmp_path, trainable=only(then))
    with pytest.raises(ValueError, match=message):
        run(directory=tmp_path, trainable=only(now))


def test_fit_goes_on_with_a_model_whose_configuration_holds_a_tuple(tmp_path):
    found = run(directory=tmp_path, model=Shaped(Shape()))
    assert run(directory=tmp_path, model=Shaped(Shape())).metrics == found.metrics


def test_fit_compares_configurations_of_model_and_training_each_with_its_own(tmp_path):
    run(directory=tmp_path, model=Shaped(Shape(seed=0)))
    with pytest.raises(ValueError, match=r"of another run: seed was 0 and is 7\. Train into another"):
        run(directory=tmp_path, model=Shaped(Shape(seed=7)))


def test_fit_names_what_differs_within_a_nested_configuration(tmp_path):
    @dataclasses.dataclass(frozen=True)
    class Nested:
        width: int
        inner: Shape

    run(directory=tmp_path, model=Shaped(Nested(width=3, inner=Shape(seed=0))))
    with pytest.raises(ValueError, match=r"another run: width was 3 and is 4, inner\.seed was 0 and is"):
        run(directory=tmp_path, model=Shaped(Nested(width=4, inner=Shape(seed=7))))


def test_fit_names_a_configuration_that_cannot_be_saved_before_the_first_step(tmp_path):
    steps = []
    with pytest.raises(TypeError, match="not JSON serializable"):
        run(directory=tmp_path, model=Shaped(Shape(sizes=({1, 2},))), loss=lambda *_: steps.append(0))
    assert not steps


def test_fit_refuses_checkpoints_that_it_did_not_write(tmp_path):
    save_checkpoint(tmp_path, 4, (Line(), make_optimiser(CONFIG).init(Line())), {"mine": 1})
    with pytest.raises(ValueError, match=r"The checkpoints in .* are not of fit"):
        run(directory=tmp_path)


def test_fit_refuses_fewer_steps_than_were_made(tmp_path):
    run(dataclasses.replace(CONFIG, num_steps=4, warmup_steps=None), directory=tmp_path)
    with pytest.raises(ValueError, match="are of 4 steps"):
        run(dataclasses.replace(CONFIG, num_steps=3, warmup_steps=None), directory=tmp_path)


def test_fit_falls_back_to_the_newest_whole_checkpoint_and_says_so(tmp_path):
    whole = run(directory=tmp_path)
    newest = tmp_path / "000012.safetensors"
    newest.write_bytes(b"torn")
    with pytest.warns(UserWarning, match=rf"{newest} is damaged: training goes on from 000008\.safetensors"):
        assert run(directory=tmp_path).metrics == whole.metrics
    assert list_checkpoints(tmp_path) == [8, 12]
    assert (tmp_path / "000012.damaged").read_bytes() == b"torn"


def test_fit_does_not_begin_anew_where_all_checkpoints_are_damaged(tmp_path):
    run(directory=tmp_path)
    for path in tmp_path.glob("*.safetensors"):
        path.write_bytes(b"")
    with pytest.raises(DamagedCheckpoint, match=rf"^All checkpoints in {tmp_path} are damaged"):
        run(directory=tmp_path)
    assert list_checkpoints(tmp_path) == [8, 12]


def test_fit_names_a_directory_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("in the way")
    steps = []
    for directory in (tmp_path / "file" / "run", tmp_path / "file"):
        with pytest.raises(OSError, match=rf"Cannot write in {directory}: .*Is a file in the way"):
            run(directory=directory, loss=lambda *_: steps.append(0))
    assert not steps


@pytest.mark.parametrize("directory", ["", "gs://bucket/run", "run\0"])
def test_fit_refuses_what_is_no_folder_of_this_machine(directory, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="directory is"):
        run(directory=directory)
    assert not list(tmp_path.iterdir())


def test_fit_finds_out_before_it_goes_on_that_the_disk_is_full(tmp_path, monkeypatch):
    def stops(step):
        if step == 9:
            raise ConnectionError
        return batch_at(step)

    def refuse(*_):
        raise OSError(28, os.strerror(28))

    with pytest.raises(ConnectionError):
        run(directory=tmp_path, batches=stops)
    steps = []
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refuse)
        with pytest.raises(OSError, match=rf"^Cannot write in {tmp_path}: .*No space left"):
            run(directory=tmp_path, batches=lambda step: steps.append(step) or batch_at(step))
    assert steps == [0]  # the first batch alone, to tell the data by
    assert len(run(directory=tmp_path).metrics) == 12
