"""One step of training: in parts, in 16 bits, with a random key of its own."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jaxtyping import Array, Float
from tiny_run import CONFIG, Line, batch_at, run, squared_error, without_key

from plainformer.training.optimiser import learning_rate_schedule, make_optimiser
from plainformer.training.step import compile_step, make_train_step


@pytest.fixture(scope="module")
def plain():
    """The run without dropout, which several tests compare with."""
    return run(loss=without_key)


def test_train_step_is_what_the_chapter_shows():
    """Loss, gradients, update: one after the other, not compiled, with optax alone."""
    params, batch, key = Line(), batch_at(5), jax.random.fold_in(jax.random.key(CONFIG.seed), 5)
    optimiser = make_optimiser(CONFIG)
    loss, grads = jax.value_and_grad(squared_error)(params, batch, key)
    updates, _ = optimiser.update(grads, optimiser.init(params), params)
    expected = optax.apply_updates(params, updates)
    static = jax.tree.map(lambda _: None, params)
    train_step = make_train_step(squared_error, static, CONFIG)
    found, opt_state, metrics = train_step(params, optimiser.init(params), batch, 5)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    expected = {
        "loss": loss,
        "gradient_norm": optax.tree.norm(grads),
        "learning_rate": learning_rate_schedule(CONFIG)(5),
    }
    for name, number in expected.items():
        np.testing.assert_allclose(metrics[name], number, rtol=1e-6)
    assert jax.tree.structure(opt_state) == jax.tree.structure(optimiser.init(found))


def test_fit_in_parts_equals_fit_on_whole_batches(plain):
    whole = plain
    parts = run(dataclasses.replace(CONFIG, accumulation_steps=3), loss=without_key)
    for one, other in zip(whole.metrics, parts.metrics, strict=True):
        assert one == pytest.approx(other, rel=1e-5, abs=1e-6)
    for one, other in zip(jax.tree.leaves(whole.model), jax.tree.leaves(parts.model), strict=True):
        np.testing.assert_allclose(one, other, atol=2e-6)


def test_fit_cuts_batches_into_equal_parts_only():
    with pytest.raises(ValueError, match=r"^A batch of 12 cannot be cut into accumulation_steps=5 equal"):
        run(dataclasses.replace(CONFIG, accumulation_steps=5))
    message = r"^A batch holds a single number, which cannot be cut .*=3 equal parts; expected arrays whose first axis"
    with pytest.raises(ValueError, match=message):
        run(
            dataclasses.replace(CONFIG, accumulation_steps=3),
            loss=lambda model, batch, key: squared_error(model, batch[:2], key),
            batches=lambda step: (*batch_at(step), jnp.asarray(0.1)),
        )


def test_fit_in_16_bits_is_near(plain):
    dtypes = []

    def noting(model, batch, key):
        dtypes.append(model.weight.dtype)
        return without_key(model, batch, key)

    half = run(dataclasses.replace(CONFIG, precision="bfloat16"), loss=noting)
    assert set(dtypes) == {jnp.dtype("bfloat16")}
    assert half.model.weight.dtype == half.model.bias.dtype == jnp.float32
    losses = [[row["loss"] for row in found.metrics] for found in (plain, half)]
    np.testing.assert_allclose(*losses, rtol=0.05, atol=0.05)
    assert losses[0] != losses[1]


class Wide(eqx.Module):
    """A large table that is not trained, and a few numbers that are."""

    table: Float[Array, "257 129"]
    scale: Float[Array, " 129"]

    def loss(self, batch, key):
        return ((self.table * self.scale).mean() - batch) ** 2


def test_what_is_not_trained_is_no_part_of_the_program():
    model = Wide(jnp.ones((257, 129)), jnp.ones(129))
    params, static = eqx.tree_at(lambda each: each.table, model, None), eqx.filter(model, Wide(True, False))
    train_step = make_train_step(Wide.loss, static, CONFIG)
    arguments = params, make_optimiser(CONFIG).init(params), jnp.asarray(3.0)
    program = train_step.func.lower(*train_step.args, *arguments, 0).as_text()
    held = [line for line in program.splitlines() if "constant" in line and "257x129" in line]
    assert "257x129" in program
    assert held == []
    *_, metrics = train_step(*arguments, 0)
    assert float(metrics["loss"]) == pytest.approx((1 - 3) ** 2)
    assert not static.table.is_deleted()  # it is not given away, as parameters are


@pytest.mark.parametrize("parts", [1, 3])
def test_what_is_not_trained_is_in_16_bits_too(parts):
    dtypes, start = set(), Line()

    def noting(model, batch, key):
        dtypes.add((model.weight.dtype.name, model.bias.dtype.name))
        return without_key(model, batch, key)

    config = dataclasses.replace(CONFIG, precision="bfloat16", accumulation_steps=parts)
    found = run(config, loss=noting, model=start, trainable=lambda name: name == "bias")
    assert dtypes == {("bfloat16", "bfloat16")}
    np.testing.assert_array_equal(found.model.weight, start.weight)
    assert found.model.weight.dtype == found.model.bias.dtype == jnp.float32


def random_number(model, batch, key):
    """A loss that is the step's random number, so that keys can be seen."""
    return jax.random.uniform(key) + 0 * model.weight.sum()


def test_fit_draws_another_key_each_step():
    config = dataclasses.replace(CONFIG, seed=4)
    losses = [row["loss"] for row in run(config, loss=random_number).metrics]
    key = jax.random.key(4)
    assert losses == [float(jax.random.uniform(jax.random.fold_in(key, step))) for step in range(12)]


def test_fit_draws_another_key_for_each_part():
    def of_parts(key, parts):
        return float(jnp.mean(jnp.stack([jax.random.uniform(jax.random.fold_in(key, part)) for part in range(parts)])))

    config = dataclasses.replace(CONFIG, num_steps=4, accumulation_steps=3)
    steps = [jax.random.fold_in(jax.random.key(0), step) for step in range(4)]
    losses = [row["loss"] for row in run(config, loss=random_number).metrics]
    assert losses == pytest.approx([of_parts(key, 3) for key in steps], rel=1e-6)


def test_a_step_that_computes_blocks_anew_may_be_a_part_of_another_program():
    config = dataclasses.replace(CONFIG, rematerialise="blocks")
    static = jax.tree.map(lambda _: None, Line())
    step, state = make_train_step(squared_error, static, config), (Line(), make_optimiser(config).init(Line()))

    @jax.jit
    def two_steps(state):
        return jax.lax.scan(lambda state, number: (step(*state, batch_at(0), number)[:2], None), state, jnp.arange(2))[
            0
        ]

    params, _ = two_steps(state)
    alone = jax.tree.map(jnp.copy, state)
    for number in range(2):
        *alone, _ = step(*alone, batch_at(0), number)
    for one, other in zip(jax.tree.leaves(params), jax.tree.leaves(alone[0]), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize(
    ("model", "batch", "error", "said"),
    [
        (Line(), lambda step: batch_at(step), TypeError, "batch is of type function; expected one batch"),
        (Line(), iter([batch_at(0)]), TypeError, "batch is of type list_iterator; expected one batch"),
        (Line, batch_at(0), TypeError, "model is of type .*, without numbers to train"),
        ({"size": 3}, batch_at(0), TypeError, "model is of type dict, without numbers to train"),
        (Line(), ("a", "b"), TypeError, "^A batch holds text"),
        (Line(), np.array(["a"]), TypeError, "^A batch holds text"),
    ],
)
def test_compile_step_takes_a_model_and_one_batch(model, batch, error, said):
    with pytest.raises(error, match=said):
        compile_step(model, squared_error, batch, CONFIG)


def test_compile_step_takes_a_loss_of_three_arguments():
    with pytest.raises(
        TypeError, match=r"loss_function takes other arguments than.*The loss comes second, before the batch; give what"
    ):
        compile_step(Line(), lambda model, batch: 0.0, batch_at(0), CONFIG)


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (None, "NoneType"),
        ([1.0], "list"),
        ("a", "str"),
        ((1.0, {}, 3), "tuple"),
        (jnp.int32(3), "int32"),
        (1j, "complex"),
    ],
)
def test_a_loss_that_is_no_number_is_named(loss, said):
    with pytest.raises(TypeError, match=rf"^The loss is of type {said}; expected a single number"):
        compile_step(Line(), lambda model, batch, key: loss, batch_at(0), CONFIG)


def test_compile_step_takes_shapes_of_what_is_not_trained():
    class Shifted(eqx.Module):
        slope: jax.Array
        shift: jax.Array
        key: jax.Array

    shapes = jax.eval_shape(lambda: Shifted(jnp.ones(()), jnp.array([1, 2]), jax.random.key(0)))

    def loss_of(model, batch, key):
        return model.slope * model.shift.sum().astype(jnp.float32) + jax.random.uniform(model.key)

    assert compile_step(shapes, loss_of, batch_at(0), CONFIG).memory_analysis().argument_size_in_bytes > 12 + 8


def test_compile_step_keeps_gradients_and_moments_of_what_is_trainable_alone():
    whole, bias = (
        compile_step(Line(), squared_error, batch_at(0), CONFIG, trainable=trainable).memory_analysis()
        for trainable in (None, lambda name: name == "bias")
    )
    moments = 2 * Line().weight.nbytes
    assert whole.argument_size_in_bytes - bias.argument_size_in_bytes == moments
    assert whole.output_size_in_bytes - bias.output_size_in_bytes >= moments + Line().weight.nbytes
    with pytest.raises(ValueError, match=r"^Nothing is trained; expected at least one of \['weight', 'bias'\]"):
        compile_step(Line(), squared_error, batch_at(0), CONFIG, trainable=lambda name: False)
