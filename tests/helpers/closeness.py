"""When two results are the same but for rounding."""

import numpy as np


def assert_close(found, expected, scale=1.0):
    """Agreement to 1e-5 of the largest of what is compared, or to `scale` times that."""
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * scale * np.abs(expected).max())
