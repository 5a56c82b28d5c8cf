"""What no run and no file may lose: a field of the configuration, a part of what the checksum covers, a token."""

import dataclasses
import re

import jax.numpy as jnp
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from tiny_run import CONFIG, OTHER, Line, numbers_of, run, validation
from toy_saved import Toy, ToyConfig, filled

from plainformer.tokens.vocabulary import Vocabulary
from plainformer.training.checkpoint import list_checkpoints, load_checkpoint, save_checkpoint
from plainformer.training.fit import fit
from plainformer.training.optimiser import TrainingConfig
from plainformer.training.saving import load_model, save_model

# --- the configuration ------------------------------------------------------------------------------------------


def outcome(config, directory):
    """The weights of a run, what it measured, and the checkpoints that it left."""
    found = run(config, directory=directory, evaluate=lambda model: -validation(model))  # best at first
    return numbers_of(found.model), found.metrics, list_checkpoints(directory)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return outcome(CONFIG, tmp_path_factory.mktemp("plain"))


FIELDS = [field.name for field in dataclasses.fields(TrainingConfig)]
FIELDS.remove("decay_steps")  # which other schedules have: tests/training/test_recipes.py
FIELDS.remove("rematerialise")  # which changes no number, but memory: tests/devices/test_memory.py


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_of_the_training_configuration_acts(name, plain, tmp_path):
    assert name in OTHER, f"TrainingConfig.{name} is new: write another value for it into OTHER of tiny_run"
    found = outcome(dataclasses.replace(CONFIG, **{name: OTHER[name]}), tmp_path)
    assert found != plain, f"TrainingConfig.{name} changes neither weights nor metrics nor checkpoints"


# --- the checksum -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["model", "checkpoint"])
def saved(request, tmp_path_factory):
    """A file of each kind, and what reads it."""
    folder, config = tmp_path_factory.mktemp(request.param), ToyConfig()
    toy = filled(Toy, config)
    if request.param == "checkpoint":
        path = save_checkpoint(folder, 3, toy, {"metrics": []})
        return path, lambda: load_checkpoint(folder, toy)
    path = folder / "toy.safetensors"
    save_model(path, toy, Vocabulary("abc"))
    return path, lambda: load_model(path, Toy)


def header_of(path) -> dict:
    with safe_open(path, "numpy") as file:
        return file.metadata()


def test_every_part_of_a_header_is_held_to_the_checksum_and_so_is_every_array(saved):
    """Also the checksum itself: a file without one is none that was saved."""
    path, load = saved
    whole, header, arrays = path.read_bytes(), header_of(path), load_file(path)
    assert "sha256" in header
    for part, text in header.items():
        others = {name: other for name, other in header.items() if name != part}
        for change, changed in {"without": others, "with another": {**others, part: f"{text} "}}.items():
            save_file(arrays, path, changed)
            check_refused(load, f"a file {change} {part} in its header is read")
    for name, array in arrays.items():
        save_file({**arrays, name: np.nextafter(array, np.inf, dtype=array.dtype)}, path, header)
        check_refused(load, f"a file with other numbers in {name} is read")
    path.write_bytes(whole)
    load()


def check_refused(load, message):
    try:
        load()
    except (ValueError, FileNotFoundError):  # without metadata it is not even taken for a checkpoint
        return
    pytest.fail(message)


# --- what is said while it runs ---------------------------------------------------------------------------------


def test_fit_counts_the_tokens_of_texts_and_not_the_texts(capsys, monkeypatch):
    monkeypatch.setattr("tqdm.std.time", lambda: 1.0)

    def shown(seq_len):
        """What is shown of 12 texts with as many tokens each, and of targets that count for nothing."""
        batch = jnp.zeros((12, seq_len)), jnp.zeros((12, 3))
        fit(Line(), lambda model, batch, key: (model.weight**2).sum(), lambda step: batch, CONFIG)
        return int(re.findall(r"tokens_per_s=([\d,]+)", capsys.readouterr().err)[-1].replace(",", ""))

    assert shown(10) == 2 * shown(5), "texts twice as long have not twice as many tokens"
