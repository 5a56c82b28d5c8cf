"""What the training loop refuses: numbers that are none, and checkpoints of other runs."""

import dataclasses
import shutil

import jax.numpy as jnp
import numpy as np
import pytest
from tiny_run import CONFIG, Line, batch_at, run, without_key

from plainformer.checkpoints import list_checkpoints, load_checkpoint, save_checkpoint
from plainformer.optimisation import new_optimiser


def spoilt(step, number):
    """Batches as ever, but for one number in the targets of one step."""

    def batches(at):
        inputs, targets = batch_at(at)
        return inputs, targets.at[2, 1].set(number) if at == step else targets

    return batches


@pytest.mark.parametrize(("number", "name"), [(np.nan, "nan"), (1e30, "inf")])
def test_fit_stops_at_once_when_the_loss_is_no_number(tmp_path, number, name):
    config = dataclasses.replace(CONFIG, checkpoint_every=2)
    # Step 8 is one at which a checkpoint is saved.
    with pytest.raises(FloatingPointError) as stopped:
        run(config, directory=tmp_path, batches=spoilt(7, number), loss=without_key)
    said = str(stopped.value)
    assert f"The loss is {name} at step 8; the last good checkpoint is {tmp_path / '6'}. Try a smaller" in said
    assert list_checkpoints(tmp_path) == [4, 6]
    (weights, _), notes, _ = load_checkpoint(tmp_path, (Line(), new_optimiser(config).init(Line())))
    assert jnp.isfinite(weights.weight).all()
    assert len(notes["metrics"]) == 6
    assert (tmp_path / "metrics.csv").read_text().count("\n") == 1 + 6
    assert len(run(config, directory=tmp_path, loss=without_key).metrics) == 12


def test_fit_stops_at_a_gradient_that_is_no_number_before_it_is_saved(tmp_path):
    def root_of_zero(model, batch, key):
        return jnp.sqrt(0 * model.weight.sum())  # 0, with an infinite slope times 0

    with pytest.raises(FloatingPointError, match=r"^The gradient_norm is nan at step 1; nothing was saved before\."):
        run(dataclasses.replace(CONFIG, checkpoint_every=1), directory=tmp_path, loss=root_of_zero)
    assert list_checkpoints(tmp_path) == []


def test_fit_without_directory_names_the_step_too():
    with pytest.raises(FloatingPointError, match=r"^The loss is nan at step 1; nothing was saved before\."):
        run(batches=spoilt(0, np.nan), loss=without_key)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run of four steps; never written to."""
    directory = tmp_path_factory.mktemp("finished")
    run(dataclasses.replace(CONFIG, num_steps=4), directory=directory)
    return directory


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"learning_rate": 0.2}, r"of another run: learning_rate was 0\.3 and is 0\.2\. Train into another"),
        ({"num_steps": 5}, r"num_steps was 4 and is 5"),
        ({"seed": 1, "clip_norm": None}, r"clip_norm was 4\.0 and is None, seed was 0 and is 1"),
    ],
)
def test_fit_names_what_differs_from_the_run_that_was_saved(finished, other, message):
    with pytest.raises(ValueError, match=message):
        run(dataclasses.replace(CONFIG, **{"num_steps": 4, **other}), directory=finished)


def test_fit_names_a_model_of_another_shape(finished):
    with pytest.raises(ValueError, match=r"is of another model: 0\.bias is \(3,\) float32, wanted \(4,\) float32"):
        run(dataclasses.replace(CONFIG, num_steps=4), directory=finished, model=Line(bias=[1, 2, 3, 4]))


def test_fit_names_another_model_of_the_same_shapes(finished):
    @dataclasses.dataclass(frozen=True)
    class Settings:
        rate: float

    class Other(Line):
        config = Settings(rate=0.5)

    with pytest.raises(ValueError, match=r"another run: model was Line and is Other, rate was None and is 0\.5"):
        run(dataclasses.replace(CONFIG, num_steps=4), directory=finished, model=Other())


def test_fit_refuses_checkpoints_that_it_did_not_write(tmp_path):
    save_checkpoint(tmp_path, 4, (Line(), new_optimiser(CONFIG).init(Line())), {"mine": 1})
    with pytest.raises(ValueError, match=r"The checkpoints in .* are not of fit; train into another directory"):
        run(directory=tmp_path)


def test_fit_goes_on_from_an_older_checkpoint_once_a_damaged_one_is_deleted(tmp_path):
    whole = run(directory=tmp_path)
    shutil.rmtree(tmp_path / "12" / "notes")
    with pytest.raises(ValueError, match=rf"{tmp_path}/12 is damaged: .*there: \[8\].*delete the folder"):
        run(directory=tmp_path)
    shutil.rmtree(tmp_path / "12")
    assert run(directory=tmp_path).metrics == whole.metrics
    assert list_checkpoints(tmp_path) == [8, 12]


def test_fit_names_a_directory_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match=rf"Cannot save step 4 in {tmp_path}/file/run: .*there already stay: none"):
        run(directory=tmp_path / "file" / "run")
