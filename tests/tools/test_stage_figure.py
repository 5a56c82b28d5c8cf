"""What the landing page draws before a model is fetched is small, and is what the stored model computes."""

import json

import numpy as np
import stage_figure
from safetensors import safe_open

import plainformer as pf


def test_the_first_answer_is_small():
    assert 20_000 < stage_figure.NUMBERS.stat().st_size <= 100_000


def test_the_first_answer_is_that_of_the_stored_model():
    """Each array within half a step of what the model computes."""
    known = stage_figure.arrays()
    with safe_open(stage_figure.NUMBERS, "numpy") as file:
        told = json.loads(file.metadata()["recorded"])
        stored = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no dictionary)
    assert (told["text"], told["block"], set(stored)) == (stage_figure.TEXT, stage_figure.BLOCK, set(known))
    for name, numbers in stored.items():
        step = told["steps"][name]
        assert numbers.shape == known[name].shape
        np.testing.assert_allclose(numbers * step, known[name], rtol=0, atol=0.51 * step + 1e-5, err_msg=name)


def test_the_first_answer_is_sure_and_sensible():
    _, vocabulary = pf.load_pretrained("stories")
    last = pf.softmax(stage_figure.arrays()["returned"])[-1]
    assert vocabulary.decode([int(last.argmax())]) == "garden"
    assert last.max() > 0.99


def test_the_script_writes_what_is_stored(tmp_path):
    stage_figure.write(tmp_path / "stage.safetensors")
    with safe_open(tmp_path / "stage.safetensors", "numpy") as new, safe_open(stage_figure.NUMBERS, "numpy") as old:
        assert {**new.metadata(), "sha256": ""}.keys() == old.metadata().keys()
        for name in old.keys():  # noqa: SIM118 (no dictionary)
            assert np.abs(new.get_tensor(name).astype(int) - old.get_tensor(name)).max() <= 1
