"""The tools compute the book's numbers: here they do it as `make models` does."""

import pytest


@pytest.fixture(autouse=True)
def as_for_a_reader(unchecked):
    """Without the run-time checks of shapes, which take most of the time of code that counts letters in Python."""
