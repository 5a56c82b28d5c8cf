"""A draft is trained and asked as recorded, and a call gives as many letters as it can."""

import jax
import numpy as np
import pytest

import plainformer as pf
from lab.drafts import run as drafts_run

record = pf.data.load_record


def test_a_draft_is_trained_and_asked_as_recorded():
    decoder, vocabulary = pf.load_pretrained("decoder")
    training, held_out = (vocabulary.encode(text) for text in pf.data.python_reference_splits())
    (run,) = (run for run in record("drafts")["runs"] if (run["num_steps"], run["seed"]) == (120, 1))
    with jax.numpy_dtype_promotion("standard"):
        draft, first = drafts_run.trained(training, len(vocabulary), 120, 1)
        found = drafts_run.asked(decoder, draft, drafts_run.beginnings(held_out)[:8], numbers=(4,))
    np.testing.assert_allclose(first, run["first"], atol=0.02)
    assert np.mean(found["calls"]["4"]) == pytest.approx(np.mean(run["calls"]["4"]), rel=0.15)


def test_a_call_of_a_draft_gives_one_letter_at_least_and_one_more_than_were_drafted_at_most():
    drafts, seconds = record("drafts"), record("seconds")
    for run in [*drafts["runs"], drafts["itself"]]:
        for num_drafted in drafts_run.NUM_DRAFTED:
            assert 1 < drafts_run.letters_per_call([run], num_drafted) <= num_drafted + 1
    assert np.mean([run["surprise"] for run in drafts["runs"]]) == pytest.approx(drafts["alone"], abs=0.05)
    for each in seconds["speculation"].values():
        assert all(1 <= per_call <= int(num) + 1 for num, per_call in each["per call"].items())
        assert each["ms"]["draft alone"] / each["ms"]["alone"] == pytest.approx(0.2, abs=0.05)
    nats = seconds["bits"]["nats"]
    assert abs(nats["8"] - nats["32"]) < 0.001 < nats["4"] - nats["32"] < 0.02
