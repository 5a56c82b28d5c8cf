"""Each equation of chapter 06 against what happens inside a model, not only against a function."""

import functools
import importlib
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import reference
from all_models import HEADS, STACK, TEXT, new_model

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


@pytest.mark.equation(
    "eq-positions-rotary", "eq-positions-bias", "eq-positions-relative", "eq-positions-alibi", "eq-positions-buckets"
)
@pytest.mark.parametrize("name", NAMES)
def test_scores_in_a_block_are_those_of_the_equations(name):
    model, inside = seen(name)
    attention, scheme = model.stack.blocks[0].attention, model.stack.scheme
    rows = inside["stack.blocks.0.attention_norm.output"]

    def heads_of(layer):
        made = rows @ np.asarray(layer.weight, np.float64) + np.asarray(layer.bias, np.float64)
        return made.reshape(len(rows), HEADS, -1).transpose(1, 0, 2)

    queries, keys = heads_of(attention.query), heads_of(attention.key)
    if name == "rotary":
        turn = [np.array([reference.turned(head, scheme.base) for head in each]) for each in (queries, keys)]
        queries, keys = turn
    scores = queries @ keys.transpose(0, 2, 1) / queries.shape[-1] ** 0.5
    away = POSITIONS - POSITIONS[:, None]  # of the key from the query
    if name == "alibi":
        scores = scores - np.asarray(pf.alibi_slopes(HEADS))[:, None, None] * np.abs(away)
    elif name == "relative":
        table = np.asarray(scheme.table, np.float64)
        buckets = pf.relative_buckets(
            jnp.asarray(away), num_buckets=len(table), max_distance=scheme.max_distance, causal=True
        )
        scores = scores + table[np.asarray(buckets)].transpose(2, 0, 1)
    else:
        assert name == "rotary" or not scheme.acts_on_scores, f"write the equation of the scores of {name} here"
    np.testing.assert_allclose(inside["stack.blocks.0.attention.scores"], scores, atol=1e-4)


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
    with pytest.raises(ValueError, match=r"position_scheme is 'rotated'; expected one of 'learned', 'sinusoidal'"):
        pf.StackConfig(position_scheme="rotated")
    assert STACK["num_heads"] == HEADS
    assert TEXT["vocab_size"] > int(TOKENS.max())
