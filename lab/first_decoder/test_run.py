"""The first decoder begins to learn as recorded."""

import numpy as np
import pytest

import plainformer as pf
from lab.first_decoder import run as first_decoder_run


@pytest.mark.usefixtures("few_steps")
def test_runs_begin_as_recorded():
    stored = pf.data.load_record("first_decoder")
    text = first_decoder_run.VOCABULARY.encode(pf.data.python_reference_splits()[0])
    _, metrics = first_decoder_run.learn_small(text, num_steps=2)
    atol = 0.005 if len(text) == stored["training characters"] else 0.5
    np.testing.assert_allclose([each["loss"] for each in metrics], stored["losses"][:2], atol=atol)
