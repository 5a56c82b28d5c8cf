"""What the models of chapter 14 predict: the record, its card, and what the chapter says of it."""

from pathlib import Path

import drifts_record
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from plainformer.data.rigid_body import rigid_bodies
from plainformer.models import dynamics

MODELS = Path(__file__).resolve().parents[2] / "models"
RUNS = ("dynamics_short", "dynamics", "dynamics_lengths_short", "dynamics_lengths")


@pytest.fixture(scope="module")
def recorded() -> dict:
    return pf.data.load_record("drifts")


def of_kinds(recorded: dict, name: str, column: str) -> dict[str, list]:
    """A column of the models of each kind."""
    return {kind: [one[column] for one in each] for kind, each in recorded["one shape"][name].items()}


def test_the_card_says_what_was_recorded(recorded):
    assert drifts_record.card(recorded) == (MODELS / "drifts.md").read_text(encoding="utf-8")
    for kinds in recorded["one shape"].values():
        assert list(kinds) == list(drifts_record.KINDS)
        assert {len(each) for each in kinds.values()} == {5}


@pytest.mark.parametrize("kind", ["volume_preserving", "residual", "turning"])
def test_a_stored_model_predicts_as_recorded(recorded, kind):
    models, _ = pf.load_pretrained("dynamics_lengths")
    test = drifts_record.RUNS["dynamics_lengths"].tested()
    found = drifts_record.measured(models.one(kind, 1), test)
    expected = recorded["one shape"]["dynamics_lengths"][kind][1]
    for column in ("window", "distance_100"):
        assert found[column] == pytest.approx(expected[column], rel=0.1), column
    assert found["lost"] == pytest.approx(expected["lost"], abs=5)
    if kind == "turning":
        assert found["length"] < 1e-4


def test_a_trajectory_is_shown_as_recorded(recorded):
    models, test = pf.load_pretrained("dynamics")[0], rigid_bodies().test
    made = drifts_record.shown(models.one("turning", 0), test)
    np.testing.assert_allclose(np.array(made)[:, :60], np.array(recorded["shown"]["turning"])[:, :60], atol=0.02)


def test_lost_and_drifted_are_told_apart():
    start, kappa = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]]), np.full(3, 0.5)
    points = np.repeat(start[:, None], 5, axis=1)
    points[1, 3] *= 1.3  # the square changes by 0.69, and comes back
    points[2, 4] *= 1.5
    found = drifts_record.rollouts(points, np.repeat(start[:, None], 5, axis=1), start, kappa)
    assert (found["lost"], found["half lost"]) == (1, 2)
    assert found["length"] == pytest.approx(0.69)


def test_opponents_are_as_recorded(recorded):
    for row in drifts_record.opponents(rigid_bodies().test).items():
        name, found = row
        assert (found["window"] is None) == (name == "midpoint rule")
        for column in ("distance_100", "distance", "length"):
            assert found[column] == pytest.approx(recorded["opponents"]["dynamics"][name][column], rel=0.01, abs=1e-9)


def test_volumes_of_a_cloud_are_kept_by_those_that_keep_volumes(recorded):
    assert np.abs(recorded["volumes"]["volume_preserving"]).max() < 0.01
    assert np.abs(recorded["volumes"]["network"]).max() < 0.01
    test = rigid_bodies().test
    halved = drifts_record.cloud_volumes(lambda window: window * jnp.float32(0.5), test)
    np.testing.assert_allclose(halved, [9 * time * np.log10(0.5) for time in drifts_record.TIMES], rtol=1e-3)
    layer = dynamics.TriangularLayer(3, key=jax.random.key(0))
    np.testing.assert_allclose(drifts_record.cloud_volumes(layer, test), 0, atol=0.01)


def test_models_for_several_shapes_err_as_recorded(recorded):
    run, (models, _) = drifts_record.RUNS["dynamics_hidden"], pf.load_pretrained("dynamics_hidden")
    test = drifts_record.windows_of(run.tested(), run.is_told)
    for kind in ("placed", "volume_preserving", "network"):
        found = float(drifts_record.window_error(models.one(kind, 2), *test))
        assert found == pytest.approx(recorded["several shapes"]["dynamics_hidden"][kind][2], rel=0.05)


def test_the_chapter_says_what_was_recorded(recorded):
    (chapter,) = (MODELS.parent / "chapters").glob("*_dynamics.md")
    text = " ".join(chapter.read_text(encoding="utf-8").split())
    short, long, several = ("dynamics_short", "dynamics", "dynamics_lengths")
    lost = {run: {kind: sum(each) for kind, each in of_kinds(recorded, run, "lost").items()} for run in RUNS}
    drift = {run: {kind: np.median(each) for kind, each in of_kinds(recorded, run, "length").items()} for run in RUNS}
    window = {kind: np.mean(each) for kind, each in of_kinds(recorded, long, "window").items()}
    assert f"by {window['ordinary']:.5f}, ten times less" in text
    assert 8 < window["network"] / window["ordinary"] < 14
    standard = {round(error, 3) for run in RUNS for error in of_kinds(recorded, run, "window")["standard"]}
    assert standard == {0.027, 0.028}
    assert f"lose {lost[long]['ordinary']} of their 610" in text
    assert f"they lose {lost['dynamics_lengths_short']['ordinary']} of 480" in text
    away = {kind: np.mean(each) for kind, each in of_kinds(recorded, several, "distance").items()}
    assert f"{away['ordinary']:.2f} away, where the residual layers are {away['residual']:.2f} away, the turns" in text
    assert f"the turns {away['turning']:.2f}, and the models that keep volumes {away['network']:.2f} and" in text
    assert f"{away['network']:.2f} and {away['volume_preserving']:.2f}. (What never moves is" in text
    assert f"never moves is {recorded['opponents'][long]['nothing moves']['distance']:.2f} away" in text
    assert lost[several]["ordinary"] == 0
    assert away["ordinary"] == min(away.values())
    assert [each == 122 for each in of_kinds(recorded, short, "lost")["ordinary"]].count(True) == 2
    assert f"in the median, by {drift[long]['residual']:.3f} instead of {drift[long]['network']:.2f}" in text
    found = lost[short]["residual"], lost[long]["residual"]
    assert f"residual layers lose {found[0]} of 610 trajectories after the short training and {found[1]} after" in text
    assert lost[long]["network"] == lost[long]["volume_preserving"] == lost[short]["network"] == 0
    found = [lost["dynamics_lengths_short"][kind] for kind in ("residual", "network")]
    assert f"lose {found[0]} of 480 trajectories after the short training" in text
    assert f"where the triangular ones lose {found[1]}" in text
    assert f"which keeps volumes too, loses {lost[short]['volume_preserving']} of 610" in text
    turns = [np.mean(of_kinds(recorded, run, "distance")["turning"]) for run in (long, short)]
    assert f"they are {turns[0]:.2f} away on one sphere, nearest of all, and after the short one {turns[1]:.2f}" in text
    assert turns[0] == min(np.mean(each) for each in of_kinds(recorded, long, "distance").values())
    far = {kind: sum(each) for kind, each in recorded["far"][long].items()}
    assert (
        f"the residual layers lose {far['residual']}, all of one model, the triangular ones {far['network']}," in text
    )
    assert f"and the transformer that keeps volumes {far['volume_preserving']}." in text
    assert sorted(recorded["far"][long]["residual"])[:4] == [0] * 4
    assert not any(number for each in recorded["far"].values() for number in each["turning"])
    most = [one["lost"] for one in recorded["one shape"][long]["ordinary"]]
    assert most[0] == max(most)  # the model of the opening figure
    assert all(lost[run]["turning"] == 0 and drift[run]["turning"] < 5e-6 for run in RUNS)
    np.testing.assert_allclose(recorded["ends"]["residual"], 1, atol=0.005)
    np.testing.assert_allclose(recorded["ends"]["turning"], [[0.98, 1.02]] * 5, atol=0.002)
    assert recorded["volumes"]["residual"][3] == pytest.approx(-14, abs=0.5)
    hidden, told = (
        {kind: np.mean(each) for kind, each in recorded["several shapes"][f"dynamics_{how}"].items()}
        for how in ("hidden", "told")
    )
    assert f"next window by {told['network']:.4f}. Not told, they miss it by {hidden['network']:.4f}" in text
    assert f"hardly better, {hidden['volume_preserving']:.3f}. With places it misses by {hidden['placed']:.3f}" in text
    assert f"come to {hidden['ordinary']:.4f} without" in text
    assert round(recorded["perceptron"], 3) == round(hidden["placed"], 3)
    assert np.abs(recorded["volumes"]["turning"]).max() < 0.1 < 4 < recorded["volumes"]["ordinary"][3]
