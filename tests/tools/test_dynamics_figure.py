"""The live figure of turning bodies runs the stored models' own weights."""

import json

import dynamics_figure
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.models.stored import load_pretrained

X = np.random.default_rng(13).normal(size=(3, 3)).astype(np.float32)


@pytest.fixture(scope="module")
def stored():
    return json.loads(dynamics_figure.NUMBERS.read_text("utf-8"))


def applied(layer, x):
    """A layer as the page computes it."""
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
def test_dynamics_figure_has_the_stored_models(stored, kind):
    model = load_pretrained("dynamics")[0].one(kind, dynamics_figure.NUMBER)
    assert stored[kind] == dynamics_figure.dynamics_numbers(model)
    x = X.astype(np.float64)
    for layer in stored[kind]:
        x = applied(layer, x)
    np.testing.assert_allclose(x, model(jnp.asarray(X)), rtol=1e-4, atol=1e-5)


def test_dynamics_figure_writes_what_is_stored(stored, tmp_path, monkeypatch):
    monkeypatch.setattr(dynamics_figure, "NUMBERS", tmp_path / "dynamics.json")
    dynamics_figure.write()
    assert json.loads((tmp_path / "dynamics.json").read_text("utf-8")) == stored
