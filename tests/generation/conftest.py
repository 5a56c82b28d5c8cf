"""Each program of these tests runs a few times at most: it is compiling that takes long."""

import jax
import pytest


@pytest.fixture(scope="module", autouse=True)
def quick_to_compile():
    """Let the compiler leave out most of its optimisations."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
