"""A batch in parts is the batch: losses weigh by the targets that count, however these are spread over the parts."""

import functools
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jaxtyping import Array, Float

import plainformer as pf
from plainformer.data import LabelledBatch, MaskedBatch, PaddedWindows, TranslationBatch, Windows
from plainformer.training.evaluation import mean_loss
from plainformer.training.step import make_train_step

VOCAB, ROWS, SEQ, SOURCE_SEQ = 7, 12, 5, 4


class Table(eqx.Module):
    """Logits by the token and by how much else there is to read; of `whole` texts, their mean."""

    table: Float[Array, "vocab vocab"]
    whole: bool = eqx.field(static=True, default=False)

    def __call__(self, inputs, *others, key=None):
        scale = sum(jnp.sum(other, axis=-1, keepdims=True) for other in others if other is not None)
        logits = self.table[inputs] * jnp.asarray(1 + scale, float)[..., None]
        return logits.mean(axis=-2) if self.whole else logits


class Translator(Table):
    """The same of the targets, with the source's padding as what else there is."""

    def __call__(self, source, inputs, is_source, key=None):
        return super().__call__(inputs, is_source)


class Weighed(NamedTuple):
    """A reader's own batch: numbers, and how much each row stands for."""

    x: Float[Array, "rows seq"]
    weights: Float[Array, " rows"]

    @property
    def counts(self):
        return self.weights


def weighed_mean(model, batch, key=None):
    """A reader's own loss, a mean by the weights of the batch; NaN where they are all zero."""
    error = ((batch.x - model.table[0, :SEQ]) ** 2).mean(axis=1)
    return (error * batch.weights).sum() / batch.weights.sum()


def mean_of_rows(model, batch, key=None):
    """A reader's own loss on a batch without counts: a mean over rows."""
    x, y = batch
    return ((x @ model.table[:SEQ, 0] - y) ** 2).mean()


def padding(random, seq):
    """True at as many first places of each row as chance has it; some rows have none."""
    return jnp.asarray(np.arange(seq) < random.integers(seq + 1, size=(ROWS, 1)))


def ids(random, *shape):
    return jnp.asarray(random.integers(VOCAB, size=shape))


LOSSES = {
    "windows": (pf.training.next_token_loss, Table, lambda r: Windows(ids(r, ROWS, SEQ), ids(r, ROWS, SEQ))),
    "padded windows": (
        pf.training.next_token_loss,
        Table,
        lambda r: PaddedWindows(ids(r, ROWS, SEQ), ids(r, ROWS, SEQ), padding(r, SEQ)),
    ),
    "masked": (
        pf.masked_token_loss,
        Table,
        lambda r: MaskedBatch(ids(r, ROWS, SEQ), ids(r, ROWS, SEQ), padding(r, SEQ), padding(r, SEQ)),
    ),
    "labelled": (
        pf.classification_loss,
        partial(Table, whole=True),
        lambda r: LabelledBatch(ids(r, ROWS, SEQ), ids(r, ROWS), padding(r, SEQ), ids(r, ROWS, SEQ)),
    ),
    "translation": (
        partial(pf.translation_loss, label_smoothing=0.1),
        Translator,
        lambda r: TranslationBatch(
            ids(r, ROWS, SOURCE_SEQ),
            padding(r, SOURCE_SEQ),
            ids(r, ROWS, SEQ),
            ids(r, ROWS, SEQ),
            padding(r, SEQ),
        ),
    ),
    "of one's own": (
        weighed_mean,
        Table,
        lambda r: Weighed(jnp.asarray(r.normal(size=(ROWS, SEQ)), float), jnp.asarray(r.integers(3, size=ROWS), float)),
    ),
    "of rows": (
        mean_of_rows,
        Table,
        lambda r: (jnp.asarray(r.normal(size=(ROWS, SEQ)), float), jnp.asarray(r.normal(size=ROWS), float)),
    ),
}


@functools.cache
def steps(name):
    """For each number of parts a compiled step that moves the weights by their gradient."""
    loss, kind, _ = LOSSES[name]
    _, static = eqx.partition(kind(jnp.zeros((VOCAB, VOCAB))), eqx.is_inexact_array)
    configs = [pf.TrainingConfig(num_steps=1, warmup_steps=0, accumulation_steps=parts) for parts in (1, 2, 4)]
    return [make_train_step(loss, static, config, optimiser=optax.sgd(1.0)) for config in configs]


def made(step, model, batch):
    """Loss and gradient of a step: the gradient is what the weights lose."""
    params, _ = eqx.partition(model, eqx.is_inexact_array)
    after, _, metrics = step(jax.tree.map(jnp.copy, params), optax.sgd(1.0).init(params), batch, 0)
    return float(metrics["loss"]), np.asarray(params.table - after.table)


def first_rows_empty(batch):
    """The batch with nothing that counts in its first half, which is a part or two of it."""
    name = {MaskedBatch: "is_selected", TranslationBatch: "is_target", PaddedWindows: "is_token", Weighed: "weights"}
    field = name.get(type(batch))
    if field is None:
        return batch
    array = np.array(getattr(batch, field))
    array[: ROWS // 2] = 0
    return batch._replace(**{field: jnp.asarray(array)})


@pytest.mark.parametrize("name", LOSSES)
def test_the_parts_of_a_batch_are_together_the_batch(name):
    loss, kind, draw = LOSSES[name]
    at_once, *in_parts = steps(name)
    for seed in range(2):
        random = np.random.default_rng([19, seed])
        model, batch = kind(jnp.asarray(random.normal(size=(VOCAB, VOCAB)), float)), draw(random)
        batch = first_rows_empty(batch) if seed == 0 else batch
        value, gradient = made(at_once, model, batch)
        assert np.isfinite(value)
        assert np.abs(gradient).max() > 0.01
        for step in in_parts:
            found, found_gradient = made(step, model, batch)
            np.testing.assert_allclose(found, value, rtol=1e-5)
            np.testing.assert_allclose(found_gradient, gradient, rtol=1e-5, atol=1e-5 * np.abs(gradient).max())
    cut = [jax.tree.map(lambda array, rows=rows: array[rows], batch) for rows in (slice(2), slice(2, ROWS))]
    np.testing.assert_allclose(mean_loss(model, loss, cut), value, rtol=1e-5)
    if name not in ("windows", "labelled", "of rows"):  # parts that weigh the same would give another loss
        halves = [jax.tree.map(lambda array, rows=rows: array[rows], batch) for rows in (slice(6), slice(6, ROWS))]
        assert abs(sum(float(loss(model, half)) for half in halves) / 2 - value) > 1e-3


def test_a_batch_in_which_nothing_counts_has_no_loss_in_parts_either():
    _, kind, draw = LOSSES["masked"]
    batch = draw(np.random.default_rng(0))
    batch = batch._replace(is_selected=jnp.zeros_like(batch.is_selected))
    value, gradient = made(steps("masked")[-1], kind(jnp.ones((VOCAB, VOCAB))), batch)
    assert value == 0
    assert (gradient == 0).all()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", ["windows", "masked", "labelled", "translation"])
def test_a_loss_refuses_a_batch_that_does_not_say_what_counts(name):
    batch = (jnp.zeros((2, 3), int), jnp.zeros((2, 3), int), jnp.ones((2, 3), bool))
    with pytest.raises(TypeError, match="batch is a tuple of 3"):
        LOSSES[name][0](lambda *read, key: jnp.zeros((2, 3, VOCAB)), batch)
