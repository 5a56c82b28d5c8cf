"""Which cases of a test belong to the gate: a few of them, where the rest runs in `make rooms`."""

from collections.abc import Iterable
from typing import Any

import pytest


def few_in_the_gate(cases: Iterable[Any], every: int) -> list:
    """Mark all cases as slow but the first of each `every`."""
    return [case if n % every == 0 else pytest.param(case, marks=pytest.mark.slow) for n, case in enumerate(cases)]
