"""Runs compute the book's numbers: here they do it as `make models` does."""

import jax
import pytest


@pytest.fixture(autouse=True)
def as_for_a_reader(unchecked):
    """Without the run-time checks of shapes, which take most of the time of code that counts letters in Python."""


@pytest.fixture
def few_steps():
    """For the first steps of a run: to compile them well would take longer than to make them."""
    jax.config.update("jax_disable_most_optimizations", True)
    with jax.numpy_dtype_promotion("standard"):  # optax counts in integers
        yield
    jax.config.update("jax_disable_most_optimizations", False)
