"""Each position scheme begins to learn as recorded, and carries as far beyond its training as the chapter says."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest

import plainformer as pf
from lab.positions import run as positions_run

record = pf.data.load_record


@pytest.mark.usefixtures("few_steps")
def test_runs_begin_as_recorded():
    stored, run = record("positions"), positions_run.Run("learned", 8, text="random", seed=1)
    (found,) = (each for each in stored["runs"] if dataclasses.asdict(run).items() <= each.items())
    np.testing.assert_allclose(positions_run.trained(run, len(found["losses"]))[1], found["losses"], atol=0.005)


def test_squeezed_positions_have_the_angles_of_places_nearer_by():
    rows = jax.random.normal(jax.random.key(0), (5, 8))
    far = positions_run.SqueezedPositions(base=10_000.0, fraction=1.0).rotate(rows, 4 * np.arange(5))
    np.testing.assert_allclose(far, pf.RotaryPositions().rotate(rows), atol=1e-6)


def test_the_head_that_looks_back_divides_its_attention():
    run = positions_run.Run("relative")
    looks = positions_run.look_back(positions_run.LookBack(run), positions_run.texts(run)[:2])
    assert looks.shape == (101,)
    assert float(looks.sum()) == pytest.approx(1, abs=1e-5)


def positions_of(scheme: str, heads: int, text: str) -> np.ndarray:
    """Of a scheme a row for each seed, a column for each quarter of the text."""
    chosen = {"scheme": scheme, "heads": heads, "text": text, "steps": 2000}
    runs = [run for run in record("positions")["runs"] if chosen.items() <= run.items()]
    assert [run["seed"] for run in runs] == list(positions_run.SEEDS)
    return np.array([positions_run.quarters(run["right"]) for run in runs])


def test_positions_carry_beyond_the_training():
    for text, heads in itertools.product(positions_run.TEXTS, positions_run.HEADS):
        for scheme in ("sinusoidal", "learned", "rotary", "relative"):
            assert positions_of(scheme, heads, text)[:, 0].min() > 0.99  # as far as training went
        none, learned = positions_of("none", heads, text), positions_of("learned", heads, text)
        assert none[:, 0].max() < 0.5
        assert learned[:, 1:].max() < none[:, 1:].min()  # worse than no positions at all
        assert positions_of("relative", heads, text)[:, 3].min() > 0.84
        fallen = positions_of("ALiBi", heads, text).mean(axis=0)
        assert -0.005 < fallen[0] - fallen[3] < 0.12
    assert positions_of("rotary", 8, "random")[:, 2:].max() < 0.06  # by chance
