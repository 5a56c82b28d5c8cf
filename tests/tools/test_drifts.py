"""What the models of chapter 14 predict: the record, its card, and what the chapter says of it."""

from pathlib import Path

import drifts_record
import numpy as np
import pytest

import plainformer as pf
from plainformer.data.rigid_body import implicit_midpoint, rigid_bodies

MODELS = Path(__file__).resolve().parents[2] / "models"


@pytest.fixture(scope="module")
def recorded() -> dict:
    return pf.data.load_record("drifts")


def means(recorded: dict, column: str) -> dict[str, float]:
    """The mean of a column over the models of each kind."""
    return {kind: float(np.mean([one["row"][column] for one in each])) for kind, each in recorded["kinds"].items()}


def test_the_card_says_what_was_recorded(recorded):
    assert drifts_record.card(recorded) == (MODELS / "drifts.md").read_text(encoding="utf-8")
    assert {len(each) for each in recorded["kinds"].values()} == {5}
    curves = [one["curve"] for each in recorded["kinds"].values() for one in each]
    assert {len(curve) for curve in curves} == {drifts_record.LONG // drifts_record.PER_POINT}


def test_a_stored_model_predicts_as_recorded(recorded):
    models, test = pf.load_pretrained("dynamics")[0], rigid_bodies().test
    truth = implicit_midpoint(test.states[:, drifts_record.WINDOW - 1], num_steps=drifts_record.LONG)[:, 1:]
    found, expected = drifts_record.measured(models.one("standard", 0), test, truth), recorded["kinds"]["standard"][0]
    for column in ("window", "error_100", "length_100"):
        assert found["row"][column] == pytest.approx(expected["row"][column], rel=0.1), column
    assert found["middle"] == pytest.approx(expected["middle"], rel=0.05)
    np.testing.assert_allclose(found["ends"], expected["ends"], atol=0.01)
    made = drifts_record.shown(models.one("standard", 0), test)
    np.testing.assert_allclose(np.array(made)[:, :60], np.array(recorded["shown"]["standard"])[:, :60], atol=0.02)


def test_opponents_are_as_recorded(recorded):
    test = rigid_bodies().test
    truth = implicit_midpoint(test.states[:, drifts_record.WINDOW - 1], num_steps=drifts_record.LONG)[:, 1:]
    for name, row in drifts_record.opponents(test, truth).items():
        assert (row["window"] is None) == (name == "midpoint rule")
        for column in ("error_100", "error_1000", "length_1000"):
            assert row[column] == pytest.approx(recorded["opponents"][name][column], rel=0.01), (name, column)


def test_models_for_several_shapes_err_as_recorded(recorded):
    found = drifts_record.of_several_shapes("dynamics_told")
    for kind, errors in recorded["several shapes"]["dynamics_told"].items():
        np.testing.assert_allclose(found[kind], errors, rtol=0.05)


def test_the_chapter_says_what_was_recorded(recorded):
    (chapter,) = (MODELS.parent / "chapters").glob("*_dynamics.md")
    text = " ".join(chapter.read_text(encoding="utf-8").split())
    windows, lengths = means(recorded, "window"), means(recorded, "length_1000")
    distances = means(recorded, "error_1000")
    assert f"misses the window by {windows['standard']:.3f}" in text
    assert f"the error is {windows['skip']:.3f}" in text
    assert f"{np.median([one['apart'] for one in recorded['kinds']['skip']]):.3f} of 0.101" in text
    least, *_, most = sorted(distances[kind] for kind in ("volume_preserving", "network", "standard"))
    assert f"off by {least:.2f} to {most:.2f}" in text
    assert f"never moves has {recorded['opponents']['nothing moves']['error_1000']:.2f}" in text
    assert f"drifts by {lengths['volume_preserving']:.2f} in the transformer that keeps volumes" in text
    assert f"by {lengths['standard']:.2f} in the standard one" in text
    *_, fourth, fifth = sorted(one["row"]["length_1000"] for one in recorded["kinds"]["standard"])
    assert fourth < 0.06
    assert f"at most 0.06, and the fifth has {fifth:.2f}" in text
