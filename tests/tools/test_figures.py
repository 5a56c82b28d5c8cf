"""What live figures and the landing page show of the stored models is what these do."""

import json

import babel
import dynamics_figure
import jax
import jax.numpy as jnp
import numpy as np
import outcomes_figure
import patches_figure
import pytest
import stage_figure
import tokens_figure
from safetensors import safe_open
from train_decoder import DECODER

import plainformer as pf
from plainformer.tokens.merges import byte_alphabet


def stored(figure):
    return json.loads(figure.NUMBERS.read_text("utf-8"))


# --- Turning bodies ---------------------------------------------------------------------------------------------


def applied(layer, x):
    """A layer of the dynamics as the page computes it."""
    identity = np.eye(len(x))
    if "readout" in layer:
        for n, row in enumerate(x):
            skew = np.zeros((3, 3))
            skew[np.triu_indices(3, 1)] = np.tanh(row @ np.array(layer["weight"]) + layer["bias"]) @ layer["readout"]
            x[n] = row @ np.linalg.solve(identity + skew - skew.T, identity - skew + skew.T)
        return x
    if "form" not in layer:
        for step in layer["steps"]:
            x = x + np.tanh(x @ np.array(step["weight"]) + np.array(step["bias"]))
        return x
    scores = x @ np.array(layer["form"]) @ x.T
    return np.linalg.solve(identity + scores, identity - scores) @ x


@pytest.mark.parametrize("kind", dynamics_figure.SHOWN)
def test_layers_of_the_dynamics_are_those_of_the_stored_models(kind):
    model = pf.load_pretrained("dynamics")[0].one(kind, dynamics_figure.NUMBER)
    given = np.random.default_rng(13).normal(size=(3, 3)).astype(np.float32)
    x = given.astype(np.float64)
    for layer in stored(dynamics_figure)[kind]:
        x = applied(layer, x)
    np.testing.assert_allclose(x, model(jnp.asarray(given)), rtol=1e-4, atol=1e-5)


# --- The landing page -------------------------------------------------------------------------------------------

SAME = 24  # other machines add in another order, so that one draw in hundreds falls otherwise


def test_first_and_last_text_dates_and_digit_are_those_of_the_models():
    numbers = stored(outcomes_figure)
    first, _, last = numbers["texts"].values()
    fresh, trained = pf.Decoder(DECODER, key=jax.random.key(0)), pf.load_pretrained("decoder")[0]
    assert first[:SAME] == outcomes_figure.written(fresh)[:SAME]
    assert last[:SAME] == outcomes_figure.written(trained)[:SAME]
    assert numbers["dates"] == outcomes_figure.dates()
    image, label, says, looks = outcomes_figure.digit()
    assert says == label == numbers["digit"]["says"] == numbers["digit"]["label"]
    np.testing.assert_array_equal(numbers["digit"]["pixels"], np.rint(16 * image))
    np.testing.assert_allclose(numbers["digit"]["weights"], looks, atol=0.002)


def test_the_first_answer_is_that_of_the_stored_model(tmp_path):
    """Each array within half a step of what the model computes, and within one of what is written anew."""
    known = stage_figure.arrays()
    stage_figure.write(tmp_path / "stage.safetensors")
    with safe_open(stage_figure.NUMBERS, "numpy") as file, safe_open(tmp_path / "stage.safetensors", "numpy") as new:
        told = json.loads(file.metadata()["recorded"])
        assert {**new.metadata(), "sha256": ""}.keys() == file.metadata().keys()
        assert (told["text"], told["block"], set(file.keys())) == (stage_figure.TEXT, stage_figure.BLOCK, set(known))
        for name in known:
            numbers, step = file.get_tensor(name), told["steps"][name]
            assert np.abs(new.get_tensor(name).astype(int) - numbers).max() <= 1
            np.testing.assert_allclose(numbers * step, known[name], rtol=0, atol=0.51 * step + 1e-5, err_msg=name)
    last = pf.softmax(known["returned"])[-1]
    assert pf.load_pretrained("stories")[1].decode([int(last.argmax())]) == "garden"


# --- Patches ----------------------------------------------------------------------------------------------------


def test_patches_figure_has_the_misread_digits_and_such_as_are_in_doubt():
    images = stored(patches_figure)["images"]
    model, test = pf.load_pretrained("vision")[0], pf.data.digits().test
    assert patches_figure.digits_shown(model)["images"] == images
    numbers = np.array([image["number"] for image in images])
    np.testing.assert_array_equal([image["pixels"] for image in images], 16 * test.images[numbers, :, :, 0])
    probabilities = np.asarray(jax.nn.softmax(model(2 * test.images[numbers])))
    is_wrong = probabilities.argmax(axis=1) != np.asarray(test.labels)[numbers]
    assert is_wrong.tolist() == [True] * 3 + [False] * 5
    assert (np.diff(probabilities.max(axis=1)[3:]) > 0).all()


# --- Tokens -----------------------------------------------------------------------------------------------------


def test_tokens_figure_has_merges_words_and_characters_of_the_reference():
    """They are those of the Python that the file names; another one's reference differs a little."""
    numbers, text = stored(tokens_figure), pf.data.python_reference()
    tokens = list(byte_alphabet().values())
    for left, right in numbers["merges"]:
        tokens.append(tokens[left] + tokens[right])
    assert len(set(tokens)) == len(tokens) == tokens_figure.VOCAB_SIZE
    assert {"Ġthe", "in", "Ġa", "__", "=="} <= set(tokens[256:356])  # as in the chapter
    assert len(set(numbers["words"])) == tokens_figure.NUM_WORDS
    assert sum(word in text for word in numbers["words"]) > 0.99 * tokens_figure.NUM_WORDS
    assert len(set(numbers["characters"]) & set(text)) > 95


def test_tokens_figure_lists_the_same_countries():
    numbers, made = stored(tokens_figure), tokens_figure.lists_of_countries()
    assert [language["code"] for language in numbers["languages"]] == list(tokens_figure.LANGUAGES)
    if numbers["babel"] == babel.__version__:  # others may have newer names
        assert numbers["languages"] == made
