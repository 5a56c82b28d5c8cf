"""Inputs and targets, one token apart."""

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given, settings, strategies as st

from plainformer.tokens.tokens import next_token_pairs


@pytest.mark.equation("eq-tokens-next")
def test_next_token_pairs_by_hand():
    inputs, targets = next_token_pairs([5, 3, 4], start=0, end=1)
    assert inputs.tolist() == [0, 5, 3, 4]
    assert targets.tolist() == [5, 3, 4, 1]
    assert inputs.dtype == targets.dtype == jnp.int32


@pytest.mark.equation("eq-tokens-next")
@settings(max_examples=10)  # every new length is compiled anew
@given(st.lists(st.integers(2, 9), min_size=2, max_size=5))
def test_next_token_pairs_shift_by_one(ids):
    inputs, targets = next_token_pairs(jnp.array(ids))
    assert inputs.tolist() == ids[:-1]
    assert targets.tolist() == ids[1:]
    inputs, targets = next_token_pairs(ids, start=0, end=1)
    assert len(inputs) == len(targets) == len(ids) + 1
    assert inputs[1:].tolist() == targets[:-1].tolist() == ids


def test_next_token_pairs_of_no_text_and_of_too_little():
    inputs, targets = next_token_pairs([], start=0, end=1)
    assert (inputs.tolist(), targets.tolist()) == ([0], [1])
    with pytest.raises(ValueError, match=r"There are 1 tokens in all"):
        next_token_pairs([4])


def test_next_token_pairs_bad_ids():
    for batch in (jnp.zeros((3, 4), dtype=jnp.int32), [[1, 2], [3]]):
        with pytest.raises(ValueError, match=r"batch"):
            next_token_pairs(batch)
    with pytest.raises(TypeError, match=r"ids holds True or False"):
        next_token_pairs([True, 2])
    with pytest.raises(TypeError, match=r"ids holds float32"):
        jax.jit(next_token_pairs)(jnp.array([1.5, 2.5]))
    with pytest.raises(ValueError, match=r"ids has shape \(3, 4\)"):
        jax.jit(next_token_pairs)(jnp.zeros((3, 4), int))
    with pytest.raises(ValueError, match=rf"ids\[0\] is {2**40}"):
        next_token_pairs([2**40, 2])
    with pytest.raises(ValueError, match=r"ids\[1\] is -3"):
        next_token_pairs([2, -3])
    with pytest.raises(ValueError, match=r"start\[0\] is -1"):
        next_token_pairs([2, 3], start=-1)


def test_next_token_pairs_inside_compiled_and_mapped_functions():
    ids = jnp.array([[4, 2, 3], [5, 6, 7]])
    inputs, targets = jax.jit(jax.vmap(lambda row: next_token_pairs(row, start=0)))(ids)
    assert inputs.tolist() == [[0, 4, 2], [0, 5, 6]]
    assert targets.tolist() == ids.tolist()
