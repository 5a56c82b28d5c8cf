"""The training loop: against a loop in NumPy, what it writes, and what it says while it runs."""

import csv
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from adamw import adamw
from tiny_run import CONFIG, Line, batch_at, numbers_of, run, squared_error, validation, without_key

from plainformer.data.windows import random_windows
from plainformer.models.config import StackConfig
from plainformer.models.decoder import Decoder, DecoderConfig
from plainformer.training.fit import fit
from plainformer.training.losses import next_token_loss
from plainformer.training.optimiser import TrainingConfig, learning_rate_schedule


def gradient_by_hand(weights, batch):
    """Loss and gradient of the line, worked out on paper, in float64."""
    inputs, targets = (np.asarray(array, np.float64) for array in batch)
    error = inputs @ weights["weight"] + weights["bias"] - targets
    slope = 2 * error / error.size
    return (error**2).mean(), {"weight": inputs.T @ slope, "bias": slope.sum(axis=0)}


def by_hand(config: TrainingConfig):
    """The whole run in NumPy: weights and losses. All is done again for each step, as nobody would who had to wait."""
    rates = np.asarray(jax.vmap(learning_rate_schedule(config))(jnp.arange(config.num_steps))).tolist()
    line = Line()
    first = weights = {"weight": np.asarray(line.weight, np.float64), "bias": np.asarray(line.bias, np.float64)}
    rows, gradients = [], []
    for step in range(config.num_steps):
        loss, gradient = gradient_by_hand(weights, batch_at(step))
        gradients.append(gradient)
        norm = np.sqrt(sum((array**2).sum() for array in gradient.values()))
        rows.append({"step": step + 1, "loss": loss, "gradient_norm": norm, "learning_rate": rates[step]})
        weights = adamw(first, gradients, config, rates[: step + 1])
    return weights, rows


@pytest.mark.equation("eq-real-text-schedule")
def test_fit_equals_a_loop_in_numpy():
    weights, rows = by_hand(CONFIG)
    assert any(row["gradient_norm"] > CONFIG.clip_norm for row in rows)
    assert any(row["gradient_norm"] < CONFIG.clip_norm for row in rows)
    found = run(loss=without_key)
    for name, array in weights.items():
        np.testing.assert_allclose(getattr(found.model, name), array, atol=2e-6)
    for row, expected in zip(found.metrics, rows, strict=True):
        assert row == pytest.approx(expected, rel=1e-5)
    assert found.metrics[-1]["loss"] < found.metrics[0]["loss"] / 2


def test_fit_teaches_a_decoder(key):
    text = [0, 1, 2, 3, 2, 1] * 20  # what follows a 2 or a 1 is decided by the token before it
    sizes = StackConfig(d_model=12, num_layers=1, num_heads=2, dropout_rate=0.05)
    model = eqx.filter_jit(Decoder)(DecoderConfig(vocab_size=4, context_len=7, stack=sizes), key=key)
    config = TrainingConfig(num_steps=80, learning_rate=0.03, warmup_steps=5)
    metrics = fit(model, next_token_loss, random_windows(text, 7, 5), config, progress=False).metrics
    assert metrics[0]["loss"] == pytest.approx(np.log(4), rel=0.3)
    assert np.mean([row["loss"] for row in metrics[-5:]]) < 0.35  # log(2) / 2 without a look at the token before


def test_a_step_is_compiled_once_even_if_a_number_begins_without_a_type_of_its_own():
    class Shift(eqx.Module):
        by: jax.Array

    traced = []

    def loss(model, batch, key):
        traced.append(batch)
        return ((model.by - batch) ** 2).mean()

    shift = Shift(jnp.log(0.1))
    assert shift.by.weak_type
    fit(shift, loss, lambda step: jnp.ones(3), TrainingConfig(num_steps=3), progress=False)
    assert len(traced) == 1


def test_fit_drops_by_the_generator_that_is_set(key):
    """The README advises `rbg`, whose bits are cheaper, for training with dropout."""
    sizes = StackConfig(d_model=12, num_layers=1, num_heads=2, dropout_rate=0.5)
    model = Decoder(DecoderConfig(4, 6, stack=sizes), key=key)

    def trained():
        def loss(model, batch, key):  # a new one each time, so that nothing compiled before is used
            return next_token_loss(model, batch, key)

        batches = random_windows([0, 1, 2, 3, 2, 1] * 20, seq_len=5, batch_size=3)
        return [row["loss"] for row in fit(model, loss, batches, TrainingConfig(num_steps=3), progress=False).metrics]

    usual = trained()
    with jax.default_prng_impl("rbg"):
        once, again = trained(), trained()
    assert once == again
    assert once != usual
    assert np.isfinite(once).all()


def test_fit_writes_what_it_returns_and_says_nothing(tmp_path, capfd):
    model = Line()
    before = numbers_of(model)
    found = run(model=model, directory=tmp_path, evaluate=validation)
    assert capfd.readouterr() == ("", "")
    assert numbers_of(model) == before != numbers_of(found.model)  # the caller's model is not trained
    with (tmp_path / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["step", "loss", "gradient_norm", "learning_rate", "validation_loss"]
    assert [int(row["step"]) for row in rows] == list(range(1, 13))
    for written, row in zip(rows, found.metrics, strict=True):
        assert {name: float(number) for name, number in written.items() if number} == row
    assert [row["step"] for row in found.metrics if "validation_loss" in row] == [5, 10, 12]
    assert found.metrics[-1]["validation_loss"] == float(validation(found.model))


def test_fit_evaluates_the_model_after_the_step_and_lets_it_be_kept():
    kept = []

    def keep(model):
        kept.append(model)
        return validation(model)

    found = run(evaluate=keep)
    assert len(kept) == 3
    assert [float(validation(model)) for model in kept] == [
        row["validation_loss"] for row in found.metrics if "validation_loss" in row
    ]
    assert numbers_of(kept[-1]) == numbers_of(found.model)


def test_fit_shows_its_progress(capsys):
    fit(Line(), squared_error, batch_at, CONFIG)
    out, shown = capsys.readouterr()
    assert not out
    last = shown.split("\r")[-1]
    assert "12/12" in last
    assert "loss=" in last
    rates = re.findall(r"tokens_per_s=([^,\]]*)", shown)
    assert rates
    assert all(rate.isdigit() for rate in rates)  # below a thousand, as the compiler takes most of the time
    assert "<" in last  # between time taken and time left
