"""What the choice of an expert tells is counted right."""

import numpy as np
import pytest

from lab.experts import run as experts_run


def test_information_of_experts_by_hand():
    experts, labels = np.array([0, 0, 1, 1]), np.array([3, 3, 5, 5])
    assert experts_run.information(experts, labels) == pytest.approx(np.log(2))
    assert experts_run.information(experts, labels[[0, 2, 0, 2]]) == pytest.approx(0)
    tokens = np.array([7, 8, 7, 8])
    assert experts_run.within(experts, labels, tokens) == pytest.approx(np.log(2))  # the token says nothing of it
    assert experts_run.within(experts, labels, labels) == pytest.approx(0)  # the token says all of it
