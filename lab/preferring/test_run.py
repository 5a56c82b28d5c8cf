"""The listener's choices have the chances that the model of Bradley and Terry gives them."""

import numpy as np

from lab.preferring import run as preferring_run


def test_a_listener_prefers_as_bradley_and_terry_say():
    one, other = np.array([3.0, 0.0]), np.array([1.0, 0.0])
    np.testing.assert_allclose(preferring_run.share_of_first(one, other), [1 / (1 + np.exp(-2)), 0.5])
