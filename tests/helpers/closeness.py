"""When two results are the same but for rounding."""

import numpy as np


def assert_close(found, wanted, scale=1.0):
    """Agreement to 1e-5 of the largest of what is compared, or to `scale` times that."""
    found, wanted = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * scale * np.abs(wanted).max())
