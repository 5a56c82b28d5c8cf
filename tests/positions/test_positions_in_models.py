"""Each equation of the chapter on positions against what happens inside a model, not only against a function."""

import functools
import importlib
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import reference
from all_models import new_model

import plainformer as pf
from plainformer.positions.positions import PositionScheme
from plainformer.positions.schemes import SCHEMES
from plainformer.positions.window import Window

TOKENS = jnp.asarray([3, 1, 4, 1, 5, 9, 2])
NAMES = [name for name in SCHEMES if name != "sinusoidal_2d"]  # which is for images
POSITIONS = np.arange(len(TOKENS))


@functools.cache
def seen(name):
    """A decoder with this scheme, and what it has inside."""
    model = new_model("decoder", position_scheme=name)
    return model, {place: np.asarray(value, np.float64) for place, value in pf.look(model, TOKENS)[1].items()}


@pytest.mark.equation("eq-positions-embed", "eq-positions-scale", "eq-positions-learned", "eq-positions-sinusoid")
@pytest.mark.parametrize("name", NAMES)
def test_what_enters_the_first_block_is_the_scaled_token_and_its_code(name):
    model, inside = seen(name)
    rows = np.asarray(model.embedding.weight, np.float64)[np.asarray(TOKENS)]
    width = rows.shape[1]
    if name == "sinusoidal":
        rows = width**0.5 * rows + reference.sinusoid(len(rows), width)
    elif name == "learned":
        rows = rows + np.asarray(model.stack.scheme.table)[POSITIONS]
    np.testing.assert_allclose(inside["stack.input"], rows, atol=1e-5)


def kinds(scheme=PositionScheme):
    """All classes of schemes in the package."""
    found = {each for each in scheme.__subclasses__() if each.__module__.startswith("plainformer.positions.")}
    return found.union(*map(kinds, found))


def test_every_scheme_is_in_the_registry_by_a_name_that_a_configuration_takes():
    for file in Path(pf.positions.__file__).parent.glob("*.py"):
        importlib.import_module(f"plainformer.positions.{file.stem}")
    assert kinds() - {Window} == set(SCHEMES.values()), "a scheme is a row of positions/schemes.py, too"
    for name in NAMES:
        model, _ = seen(name)
        assert type(model.stack.scheme) is SCHEMES[name]
    with pytest.raises(ValueError, match=r"position_scheme is 'rotated'"):
        pf.StackConfig(position_scheme="rotated")
