"""What a user of `fit` may hand over: optimisers, schedules, frozen parts, callbacks, further numbers, iterators."""

import csv
import dataclasses
import itertools
import os
import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import optax.contrib
import portalocker
import pytest
from tiny_run import CONFIG, Line, batch_at, numbers_of, run, squared_error, validation

from plainformer.checks import refuse
from plainformer.data.batches import consecutive_batches
from plainformer.data.named_batches import Windows
from plainformer.models.config import StackConfig
from plainformer.models.decoder import Decoder, DecoderConfig
from plainformer.training.checkpoint import list_checkpoints, load_best
from plainformer.training.evaluation import mean_loss
from plainformer.training.fit import fit
from plainformer.training.losses import next_token_loss
from plainformer.training.optimiser import TrainingConfig, learning_rate_schedule


def endless():
    """The batches of every step, one after the other."""
    return map(batch_at, itertools.count())


def test_fit_takes_an_optimiser_of_optax():
    found = run(optimiser=optax.sgd(0.01))
    model, key = Line(), jax.random.key(CONFIG.seed)
    for step in range(CONFIG.num_steps):
        grads = jax.grad(squared_error)(model, batch_at(step), jax.random.fold_in(key, step))
        model = jax.tree.map(lambda weight, grad: weight - 0.01 * grad, model, grads)
    np.testing.assert_allclose(found.model.weight, model.weight, rtol=1e-5)
    np.testing.assert_allclose(found.model.bias, model.bias, rtol=1e-5)
    assert "learning_rate" not in found.metrics[0]  # which only the optimiser knows


def test_fit_takes_a_schedule():
    rates = [row["learning_rate"] for row in run(schedule=lambda step: 0.1 / (1 + step)).metrics]
    np.testing.assert_allclose(rates, 0.1 / np.arange(1, 13), rtol=1e-6)
    same = run(schedule=learning_rate_schedule(CONFIG))
    assert numbers_of(same.model) == numbers_of(run().model) != numbers_of(run(schedule=lambda step: 0.1).model)


def test_a_schedule_beside_an_optimiser_is_only_written_down():
    with_rates = run(optimiser=optax.sgd(0.01), schedule=lambda step: 7.0)
    assert numbers_of(with_rates.model) == numbers_of(run(optimiser=optax.sgd(0.01)).model)
    assert {row["learning_rate"] for row in with_rates.metrics} == {7.0}


def test_fit_trains_only_what_is_trainable(tmp_path):
    names, start = [], Line()
    found = run(model=start, trainable=lambda name: names.append(name) or name == "bias", directory=tmp_path)
    assert names == ["weight", "bias"]
    np.testing.assert_array_equal(found.model.weight, start.weight)
    assert np.all(np.asarray(found.model.bias) != np.asarray(start.bias))
    again = run(model=start, trainable=lambda name: name == "bias", directory=tmp_path)
    assert numbers_of(again.model) == numbers_of(found.model)


def test_fit_names_what_could_be_trained_if_nothing_is():
    with pytest.raises(ValueError, match=r"^Nothing is trained"):
        run(trainable=lambda name: name.startswith("blocks"))


def test_an_error_of_a_callback_costs_no_step_that_was_to_be_saved(tmp_path):
    def fails(metrics, step):
        if step == 8:
            raise ConnectionError("the logger went away")

    with pytest.raises(ConnectionError):
        run(callbacks=[fails], directory=tmp_path)
    assert list_checkpoints(tmp_path) == [4, 8]
    assert run(directory=tmp_path).metrics == run().metrics


def losses_of(numbers):
    """An `evaluate` that says these numbers one after the other, whatever the model."""
    said = iter(numbers)
    return lambda model: next(said)


def test_the_best_checkpoint_stays_and_a_run_that_stalls_ends(tmp_path):
    config = dataclasses.replace(CONFIG, evaluate_every=2, checkpoint_every=1, max_to_keep=1, patience=3)
    models = {}
    found = run(
        config,
        evaluate=losses_of([9, 5, 7, 5, 6, 4]),
        callbacks=[lambda metrics, step, model: models.update({step: numbers_of(model)})],
        directory=tmp_path,
    )
    assert len(found.metrics) == 10  # 5 after step 4, and nothing lower after 6, 8, where it is as low, and 10
    assert list_checkpoints(tmp_path) == [4, 10]
    assert numbers_of(load_best(tmp_path, Line())) == models[4]
    assert run(config, evaluate=losses_of([]), directory=tmp_path).metrics == found.metrics  # it has ended
    longer = dataclasses.replace(config, patience=None)  # and goes on, if it is asked to
    assert len(run(longer, evaluate=losses_of([4]), directory=tmp_path).metrics) == 12
    assert list_checkpoints(tmp_path) == [12]


def test_a_best_step_is_saved_though_no_checkpoint_is_due(tmp_path):
    config = dataclasses.replace(CONFIG, evaluate_every=3, checkpoint_every=12)
    run(config, evaluate=losses_of([3, 2, 4, 5]), directory=tmp_path, trainable=lambda name: name == "bias")
    assert list_checkpoints(tmp_path) == [6, 12]
    best = load_best(tmp_path, Line())
    np.testing.assert_array_equal(best.weight, Line().weight)  # which was not trained
    with pytest.raises(ValueError, match="of another model"):
        load_best(tmp_path, Line(weight=np.ones((5, 3))))


def test_load_best_says_if_there_is_none(tmp_path):
    run(directory=tmp_path)
    with pytest.raises(ValueError, match="has no validation_loss"):
        load_best(tmp_path, Line())


def test_a_callback_that_returns_true_ends_the_run(tmp_path):
    found = run(callbacks=[lambda metrics, step: np.int64(step) == 6], directory=tmp_path)
    assert len(found.metrics) == 6
    assert list_checkpoints(tmp_path) == [4, 6]


def test_patience_needs_a_validation_loss():
    config = dataclasses.replace(CONFIG, patience=1)
    with pytest.raises(ValueError, match="nothing is evaluated; expected evaluate="):
        run(config)
    with pytest.raises(ValueError, match="evaluate returned no 'validation_loss' to wait for"):
        run(config, evaluate=lambda model: {"accuracy": 0.5})


def test_fit_takes_numbers_in_the_byte_order_of_other_machines():
    foreign = jax.tree.map(lambda array: np.asarray(array).astype(">f4"), batch_at(0))
    model = eqx.tree_at(lambda line: line.bias, Line(), np.zeros(3, ">f4"))
    found = run(model=model, batches=lambda step: foreign).model
    assert numbers_of(found) == numbers_of(run(model=Line(bias=np.zeros(3)), batches=lambda step: batch_at(0)).model)
    loss = float(squared_error(found, batch_at(0)))
    assert mean_loss(found, squared_error, consecutive_batches([foreign], 5)) == pytest.approx(loss)
    assert mean_loss(found, squared_error, [foreign]) == pytest.approx(loss)


@pytest.mark.run_time_check
def test_a_later_batch_that_is_wrong_is_named_as_the_first_is():
    def loss(model, batch, key):
        return squared_error(model, (refuse(batch[0], batch[0] > 8, "inputs", "at most 8."), batch[1]))

    wrong = batch_at(2)[0].at[1, 2].set(9), batch_at(2)[1]
    with pytest.raises(ValueError, match=r"^inputs\[1, 2\] is 9\.0; expected at most 8"):
        run(loss=loss, batches=iter([batch_at(0), batch_at(1), wrong]))


def test_evaluate_may_return_several_numbers(tmp_path):
    def evaluate(model):
        return {"validation_loss": validation(model), "largest": np.float32(jnp.abs(model.weight).max())}

    found = run(evaluate=evaluate, directory=tmp_path)
    assert found.metrics[-1]["largest"] == float(jnp.abs(found.model.weight).max())
    with (tmp_path / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["largest"]) for row in rows if row["largest"]] == [
        row["largest"] for row in found.metrics if "largest" in row
    ]
    assert run(evaluate=evaluate, directory=tmp_path).metrics == found.metrics


@pytest.mark.parametrize(
    ("found", "error"), [([1.0], TypeError), ({"accuracy": np.ones(3)}, TypeError), ({"loss": 1.0}, ValueError)]
)
def test_fit_says_what_evaluate_should_return(found, error):
    with pytest.raises(error, match="evaluate returned"):
        run(evaluate=lambda model: found)


@pytest.mark.parametrize("parts", [1, 3])
def test_a_loss_may_return_further_numbers(parts, tmp_path):
    def measured(model, batch, key):
        return squared_error(model, batch), {"bias": model.bias[0], "points": len(batch[0])}

    def plain(model, batch, key):
        return squared_error(model, batch)

    config = dataclasses.replace(CONFIG, accumulation_steps=parts)
    found, before = run(config, loss=measured, directory=tmp_path), run(config, loss=plain)
    assert numbers_of(found.model) == numbers_of(before.model)
    assert [row["loss"] for row in found.metrics] == [row["loss"] for row in before.metrics]
    assert found.metrics[0]["bias"] == pytest.approx(float(Line().bias[0]))
    assert found.metrics[0]["points"] == 12 / parts
    assert (tmp_path / "metrics.csv").read_text().startswith("step,loss,gradient_norm,learning_rate,validation_loss,b")


@pytest.mark.parametrize(
    ("loss", "error", "message"),
    [
        (lambda model, batch, key: (model.bias.sum(), [1]), TypeError, "a dictionary"),
        (lambda model, batch, key: model.bias, ValueError, "The loss has shape"),
        (
            lambda model, batch: model.bias.sum(),
            TypeError,
            r"takes other arguments .*give what else it takes by functools\.partial\.",
        ),
    ],
)
def test_fit_says_what_a_loss_should_be(loss, error, message, unchecked):
    with pytest.raises(error, match=message):
        run(loss=loss)


def test_fit_draws_from_an_iterator_as_many_batches_as_it_uses(tmp_path):
    drawn = []
    whole = run(batches=(drawn.append(step) or batch_at(step) for step in itertools.count()), directory=tmp_path)
    assert drawn == list(range(12))
    assert whole.metrics == run().metrics


def test_fit_keeps_what_it_learned_when_the_batches_end(tmp_path):
    with pytest.warns(UserWarning, match="^There were batches for 5 steps only"):
        found = run(batches=itertools.islice(endless(), 5), directory=tmp_path)
    assert [row["step"] for row in found.metrics] == [1, 2, 3, 4, 5]
    assert list_checkpoints(tmp_path) == [4, 5]
    assert run(batches=endless(), directory=tmp_path).metrics == run().metrics


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"batches": batch_at(0)}, "batches is a tuple"),
        ({"callbacks": [print, "log"]}, r"callbacks\[1\]"),
        ({"callbacks": print}, "expected a list of functions"),
        ({"model": Line}, "model is Line, which has nothing to train"),
    ],
)
def test_fit_names_an_argument_of_another_kind(wrong, message, unchecked):
    with pytest.raises(TypeError, match=message):
        fit(**{"model": Line(), "loss_function": squared_error, "batches": batch_at, "config": CONFIG} | wrong)


@pytest.mark.filterwarnings("ignore:There were batches for")
def test_evaluate_is_called_after_the_last_step_where_batches_end_early(tmp_path):
    calls = []

    def few(number, directory=None):
        batches = itertools.islice(endless(), number)
        return run(batches=batches, evaluate=lambda model: calls.append(0) or validation(model), directory=directory)

    found = few(8, tmp_path)
    assert [row["step"] for row in found.metrics if "validation_loss" in row] == [5, 8]
    assert found.metrics[-1]["validation_loss"] == float(validation(found.model))
    last = (tmp_path / "metrics.csv").read_text().splitlines()[-1]
    assert float(last.split(",")[-1]) == found.metrics[-1]["validation_loss"]
    # It goes on alike, though the checkpoint of step 8 was saved before it was evaluated.
    assert few(8, tmp_path).metrics == found.metrics
    assert len(calls) == 3
    few(5)
    assert len(calls) == 4  # once after step 5, as ever


def test_a_run_that_goes_on_does_not_warm_up_again(tmp_path):
    short = TrainingConfig(num_steps=10, learning_rate=0.3)
    first = run(short, directory=tmp_path)
    found = run(dataclasses.replace(short, num_steps=60), directory=tmp_path).metrics
    assert found[:10] == first.metrics
    rates = [row["learning_rate"] for row in found[10:]]
    assert rates == sorted(rates, reverse=True)
    expected = learning_rate_schedule(TrainingConfig(num_steps=60, learning_rate=0.3, warmup_steps=5))
    np.testing.assert_allclose(rates, jax.vmap(expected)(jnp.arange(10, 60)), rtol=1e-5)
    # Nor does it when it goes on once more, and the warm-up may be named or not.
    longer = dataclasses.replace(short, num_steps=300)
    with pytest.warns(UserWarning, match="There were batches for 62 steps only"):
        found = run(longer, directory=tmp_path, batches=itertools.islice(endless(), 62)).metrics
    assert found[61]["learning_rate"] < found[60]["learning_rate"] < found[5]["learning_rate"]
    assert run(TrainingConfig(num_steps=62, learning_rate=0.3, warmup_steps=5), directory=tmp_path).metrics == found
    with pytest.raises(ValueError, match="warmup_steps was 5 and is 7"):
        run(dataclasses.replace(longer, warmup_steps=7), directory=tmp_path)


@pytest.mark.parametrize(("num_steps", "warmup"), [(1, 0), (50, 25), (1000, 100)])
def test_warmup_follows_the_number_of_steps(num_steps, warmup):
    rates = jax.vmap(learning_rate_schedule(TrainingConfig(num_steps)))(jnp.arange(num_steps))
    assert int(rates.argmax()) == warmup


@pytest.mark.run_time_check
def test_an_id_out_of_range_is_told_in_one_sentence_within_fit():
    sizes = StackConfig(d_model=8, num_layers=1, num_heads=2)
    model = eqx.filter_jit(Decoder)(DecoderConfig(vocab_size=4, context_len=3, stack=sizes), key=jax.random.key(0))
    batch = Windows(jnp.asarray([[0, 1, 4]]), jnp.asarray([[1, 2, 3]]))
    with pytest.raises(ValueError, match=r"^ids\[0, 2\] is 4") as caught:
        fit(model, next_token_loss, lambda step: batch, TrainingConfig(2), progress=False)
    assert caught.value.__suppress_context__


def test_metrics_are_appended(tmp_path):
    seen = []

    def look(metrics, step):
        path = tmp_path / "metrics.csv"
        seen.append((path.stat().st_ino, len(path.read_text().splitlines())))

    run(callbacks=[look], directory=tmp_path)
    assert len({number for number, _ in seen}) == 1  # the same file all along
    assert [lines for _, lines in seen] == [1, 1, 1, 5, 5, 5, 5, 9, 9, 9, 9, 13]


def test_another_process_may_not_train_into_the_same_directory(tmp_path):
    script = (
        "import sys; sys.path[:0] = sys.argv[2:]\n"
        "from plainformer.training.run import Run\n"
        "from plainformer.training.optimiser import TrainingConfig\n"
        "with Run(sys.argv[1], {}) as run:\n"
        "    run.resume(None, TrainingConfig(1)); print('holds', flush=True); sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ, text=True) as other:
        assert other.stdout.readline() == "holds\n"
        with pytest.raises(BlockingIOError, match="Another run trains in"):
            run(directory=tmp_path)
        other.kill()  # the system lets go of the lock, however a process ends
        other.wait()
    assert len(run(directory=tmp_path).metrics) == 12
    assert len(run(directory=tmp_path).metrics) == 12  # nor does a run keep it beyond its end


@pytest.fixture
def as_a_user_has_it():
    """The tests refuse to mix kinds of numbers, as some of optax's optimisers do."""
    with jax.numpy_dtype_promotion("standard"):
        yield


@pytest.mark.usefixtures("as_a_user_has_it")
@pytest.mark.parametrize(
    "optimiser",
    [optax.contrib.prodigy(), optax.chain(optax.sgd(0.01), optax.contrib.reduce_on_plateau())],
    ids=["remembers the weights", "wants the loss"],
)
def test_optimisers_of_every_kind_train_go_on_and_leave_the_callers_model_alone(optimiser, tmp_path):
    model = Line()
    whole = run(model=model, optimiser=optimiser)
    assert numbers_of(model) == numbers_of(Line()) != numbers_of(whole.model)
    half = dataclasses.replace(CONFIG, num_steps=6)
    run(half, model=model, optimiser=optimiser, schedule=lambda step: 0.1, directory=tmp_path)
    found = run(model=model, optimiser=optimiser, schedule=lambda step: 0.1, directory=tmp_path)
    assert numbers_of(found.model) == numbers_of(whole.model)


@pytest.mark.parametrize("name", ["step", "validation_loss"])
def test_a_loss_may_not_return_what_training_measures_itself(name):
    with pytest.raises(ValueError, match=f"returned '{name}'"):
        run(loss=lambda model, batch, key: (squared_error(model, batch), {name: 0.1}))


def test_an_error_while_evaluating_costs_no_step(tmp_path):
    def fails(model):
        raise KeyError("no such split")

    with pytest.raises(KeyError):
        run(evaluate=fails, directory=tmp_path)
    assert list_checkpoints(tmp_path) == [4, 5]
    assert [row["step"] for row in run(directory=tmp_path).metrics] == list(range(1, 13))


@pytest.mark.usefixtures("as_a_user_has_it")
def test_a_random_key_in_the_optimisers_state_is_saved(tmp_path):
    def optimiser():
        return optax.noisy_sgd(0.01, key=jax.random.key(7))

    whole = run(optimiser=optimiser())
    run(dataclasses.replace(CONFIG, num_steps=6), optimiser=optimiser(), directory=tmp_path)
    assert numbers_of(run(optimiser=optimiser(), directory=tmp_path).model) == numbers_of(whole.model)


def test_a_file_system_without_locks_is_told_and_used(tmp_path, monkeypatch):
    def cannot(file, flags):
        raise portalocker.LockException("no locks available")

    monkeypatch.setattr(portalocker, "lock", cannot)
    with pytest.warns(UserWarning, match="no locks available"):
        assert run(directory=tmp_path).metrics == run().metrics


def test_metrics_that_cannot_be_written_cost_no_checkpoint(tmp_path, monkeypatch):
    def cannot(path, text):
        raise PermissionError(13, "open in another program", str(path))

    with monkeypatch.context() as patch:
        patch.setattr("plainformer.training.callbacks.append_text", cannot)
        with pytest.warns(UserWarning, match="open in another program"):
            run(dataclasses.replace(CONFIG, num_steps=5, warmup_steps=3), directory=tmp_path)
    assert list_checkpoints(tmp_path) == [4, 5]
    metrics = run(dataclasses.replace(CONFIG, num_steps=8, warmup_steps=3), directory=tmp_path).metrics
    assert len((tmp_path / "metrics.csv").read_text().splitlines()) == 1 + len(metrics) == 9
