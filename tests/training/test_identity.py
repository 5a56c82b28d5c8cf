"""A run goes on if nothing changed that its numbers depend on: fields of the configuration, and what is not trained."""

import dataclasses
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from tiny_run import CONFIG, OTHER, Line, batch_at, numbers_of, run, validation

from plainformer.models.adapters import AdaptedLinear, is_adapter
from plainformer.tokens.tokens import Linear
from plainformer.training.arrays import read_arrays, to_bytes
from plainformer.training.checkpoint import load_best, load_checkpoint, save_checkpoint
from plainformer.training.identity import READ_BY
from plainformer.training.optimiser import TrainingConfig, make_optimiser

FIELDS = [field.name for field in dataclasses.fields(TrainingConfig)]
NOT_ALONE = {"num_steps", "patience"}  # with another number of steps a run goes on; patience wants an evaluation


def rate(step):
    """A schedule of the reader's own."""
    return 0.1 + 0 * step


HANDED_OVER = {  # what is handed over, and who of READ_BY is asked then
    "nothing": ({}, {"step", "optimiser", "schedule"}),
    "schedule": ({"schedule": rate}, {"step", "optimiser"}),
    "optimiser": ({"optimiser": optax.sgd(0.1)}, {"step"}),
    "both": ({"optimiser": optax.sgd(0.1), "schedule": rate}, {"step"}),
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """For each of these a finished run, its folder and its metrics; a run that goes on there makes no step."""
    found = {}
    for name, (own, _) in HANDED_OVER.items():
        folder = tmp_path_factory.mktemp(name)
        found[name] = folder, run(directory=folder, **own).metrics
    return found


def test_every_field_of_the_configuration_says_who_reads_it():
    assert READ_BY.keys() == set(FIELDS), "say in READ_BY of training/identity.py who reads the new field"


@pytest.mark.parametrize("handed_over", HANDED_OVER)
def test_a_run_goes_on_with_another_value_only_of_what_is_not_read(handed_over, finished):
    folder, metrics = finished[handed_over]
    own, asked = HANDED_OVER[handed_over]
    for name in [name for name in FIELDS if name in OTHER.keys() - NOT_ALONE]:
        config = dataclasses.replace(CONFIG, **{name: OTHER[name]})
        if READ_BY[name] in asked:
            with pytest.raises(ValueError, match=f"of another run: {name} was"):
                run(config, directory=folder, **own)
        else:
            assert run(config, directory=folder, **own).metrics == metrics, name


@pytest.mark.parametrize("handed_over", ["schedule", "both"])
def test_what_is_not_read_changes_no_number(handed_over, finished):
    own, asked = HANDED_OVER[handed_over]
    unread = {name: OTHER[name] for name in FIELDS if READ_BY[name] not in asked and name in OTHER.keys() - NOT_ALONE}
    assert len(unread) >= 6
    assert run(dataclasses.replace(CONFIG, **unread), **own).metrics == finished[handed_over][1]


def only_bias(name):
    return name == "bias"


@pytest.fixture(scope="module")
def partly(tmp_path_factory):
    """A finished run that has trained the bias alone: its folder and its result."""
    folder = tmp_path_factory.mktemp("partly")
    return folder, run(directory=folder, trainable=only_bias)


def test_a_run_does_not_go_on_with_other_numbers_of_what_is_not_trained(partly):
    folder, found = partly
    assert run(directory=folder, trainable=only_bias, model=Line(bias=[7, 7, 7])).metrics == found.metrics
    with pytest.raises(ValueError, match=r"of another run: what is not trained has other numbers now\."):
        run(directory=folder, trainable=only_bias, model=Line(weight=np.ones((5, 3))))


def state_of(model):
    """What the docstring of `load_checkpoint` says that the state of a run is like."""
    return model, make_optimiser(CONFIG).init(model)


def test_load_checkpoint_reads_what_a_run_with_trainable_wrote(partly):
    folder, found = partly
    (model, memory), _, step = load_checkpoint(folder, state_of(Line(bias=[7, 7, 7])))
    assert step == 12
    assert numbers_of(model) == numbers_of(found.model)
    remembered = optax.tree.get(memory, "mu")
    assert (remembered.weight == 0).all()
    assert (remembered.bias != 0).all()


def test_load_checkpoint_refuses_other_numbers_and_other_parts_of_what_is_not_trained(partly):
    folder, _ = partly
    for other in (Line(weight=np.ones((5, 3))), {"weight": Line().weight, "bias": Line().bias, "more": jnp.ones(3)}):
        with pytest.raises(ValueError, match=r"is of another model: 0\.(weight|more) is missing"):
            load_checkpoint(folder, state_of(other))


def test_load_checkpoint_takes_no_array_from_like_that_a_whole_run_has_lost(finished, tmp_path):
    (folder, _), like = finished["nothing"], state_of(Line())
    state, metadata, _ = load_checkpoint(folder, like)
    save_checkpoint(tmp_path, 12, (state[0].bias, state[1]), metadata)
    with pytest.raises(ValueError, match=r"is of another model: 0\.weight is missing"):
        load_checkpoint(tmp_path, like)


class Adapted(eqx.Module):
    """A line of which an adapter is trained beside the weights that it has."""

    layer: AdaptedLinear

    @property
    def weight(self):
        return self.layer.weight

    @property
    def bias(self):
        return self.layer.bias


def adapted(scale: float) -> Adapted:
    return Adapted(AdaptedLinear(Linear(5, 3, key=jax.random.key(0)), 2, scale, key=jax.random.key(1)))


ALONE = {"trainable": is_adapter, "evaluate": validation}
OTHER_SCALE = r"the scale of the adapter .*was 2\.0 and is 8\.0"


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """A finished run that has trained an adapter of the scale 2 alone: its folder and its result."""
    folder = tmp_path_factory.mktemp("tuned")
    return folder, run(directory=folder, model=adapted(2.0), **ALONE)


def test_a_run_does_not_go_on_with_another_scale_of_an_adapter(tuned):
    folder, found = tuned
    assert run(directory=folder, model=adapted(2.0), **ALONE).metrics == found.metrics
    with pytest.raises(ValueError, match=f"of another run: {OTHER_SCALE}"):
        run(directory=folder, model=adapted(8.0), **ALONE)


def test_no_model_is_loaded_from_a_run_into_another_scale_of_its_adapters(tuned):
    folder, found = tuned
    (model, _), _, _ = load_checkpoint(folder, state_of(adapted(2.0)))
    assert numbers_of(model) == numbers_of(found.model)
    assert load_best(folder, adapted(2.0)).layer.scale == 2
    for load in (lambda: load_best(folder, adapted(8.0)), lambda: load_checkpoint(folder, state_of(adapted(8.0)))):
        with pytest.raises(ValueError, match=f"is of another model: {OTHER_SCALE}"):
            load()


def test_a_run_that_was_saved_without_scales_goes_on(tuned, tmp_path):
    folder, found = tuned
    arrays, header = read_arrays(folder / "000012.safetensors", "metadata")
    metadata = json.loads(header["metadata"])
    assert metadata.pop("scales") == {"layer": 2.0}
    (tmp_path / "000012.safetensors").write_bytes(to_bytes(arrays, {"metadata": json.dumps(metadata)}))
    assert run(directory=tmp_path, model=adapted(8.0), **ALONE).metrics == found.metrics


# --- what is asked before the first step --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"evaluate": lambda: 1.0}, "evaluate takes other arguments"),
        ({"evaluate": lambda model, batch: 1.0}, "missing a required argument: 'batch'"),
        ({"callbacks": [print, lambda metrics: 0]}, r"callbacks\[1\] takes other arguments"),
    ],
)
def test_fit_asks_for_the_arguments_of_functions_before_the_first_step(wrong, message):
    steps = []
    with pytest.raises(TypeError, match=message):
        run(batches=lambda step: steps.append(step) or batch_at(step), **wrong)
    assert not steps


class Calling(Line):
    """A line that can be called, as models can."""

    def __call__(self, x):
        return x @ self.weight + self.bias


def test_a_tree_of_labels_in_the_form_of_a_model_is_named():
    labels = jax.tree.map(lambda _: "all", Calling())
    optimiser = optax.multi_transform({"all": optax.sgd(0.1)}, labels)
    with pytest.raises(TypeError, match=r"^The optimiser cannot begin: .* optax calls that: hand over"):
        run(model=Calling(), optimiser=optimiser)
    as_told = optax.multi_transform({"all": optax.sgd(0.1)}, lambda params: labels)
    assert run(model=Calling(), optimiser=as_told).metrics == run(optimiser=optax.sgd(0.1)).metrics
