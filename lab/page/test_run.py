"""What is changed on the page begins to learn as recorded."""

import numpy as np
import pytest

import plainformer as pf
from lab.page import run as page_run


@pytest.mark.usefixtures("few_steps")
def test_runs_begin_as_recorded():
    name = page_run.SHOWN[-1]
    losses = page_run.learned(name, 0, num_steps=3)[0]
    np.testing.assert_allclose(losses, pf.data.load_record("page")["changes"][name][0]["first"], atol=0.005)
