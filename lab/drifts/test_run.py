"""The stored models of rigid bodies predict as recorded, and keep what they are built to keep."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from lab.drifts import run as drifts_run
from plainformer.data.rigid_body import rigid_bodies
from plainformer.models import dynamics


@pytest.fixture(scope="module")
def recorded() -> dict:
    return pf.data.load_record("drifts")


@pytest.mark.parametrize("kind", ["volume_preserving", "turning"])
def test_a_stored_model_predicts_as_recorded(recorded, kind):
    models, _ = pf.load_pretrained("dynamics_lengths")
    test = drifts_run.RUNS["dynamics_lengths"].tested()
    found = drifts_run.measured(models.one(kind, 1), test)
    expected = recorded["one shape"]["dynamics_lengths"][kind][1]
    for column in ("window", "distance_100"):
        assert found[column] == pytest.approx(expected[column], rel=0.1), column
    assert found["lost"] == pytest.approx(expected["lost"], abs=5)
    if kind == "turning":
        assert found["length"] < 1e-4


def test_lost_and_drifted_are_told_apart():
    start, kappa = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]]), np.full(3, 0.5)
    points = np.repeat(start[:, None], 5, axis=1)
    points[1, 3] *= 1.3  # the square changes by 0.69, and comes back
    points[2, 4] *= 1.5
    found = drifts_run.rollouts(points, np.repeat(start[:, None], 5, axis=1), start, kappa)
    assert (found["lost"], found["half lost"]) == (1, 2)
    assert found["length"] == pytest.approx(0.69)


def test_opponents_are_as_recorded(recorded):
    for row in drifts_run.opponents(rigid_bodies().test).items():
        name, found = row
        assert (found["window"] is None) == (name == "midpoint rule")
        for column in ("distance_100", "distance", "length"):
            assert found[column] == pytest.approx(recorded["opponents"]["dynamics"][name][column], rel=0.01, abs=1e-9)


def test_volumes_of_a_cloud_are_kept_by_those_that_keep_volumes(recorded):
    assert np.abs(recorded["volumes"]["volume_preserving"]).max() < 0.01
    assert np.abs(recorded["volumes"]["network"]).max() < 0.01
    test = rigid_bodies().test
    halved = drifts_run.cloud_volumes(lambda window: window * jnp.float32(0.5), test)
    np.testing.assert_allclose(halved, [9 * time * np.log10(0.5) for time in drifts_run.TIMES], rtol=1e-3)
    layer = dynamics.TriangularLayer(3, key=jax.random.key(0))
    np.testing.assert_allclose(drifts_run.cloud_volumes(layer, test), 0, atol=0.01)


def test_models_for_several_shapes_err_as_recorded(recorded):
    run, (models, _) = drifts_run.RUNS["dynamics_hidden"], pf.load_pretrained("dynamics_hidden")
    test = drifts_run.windows_of(run.tested(), run.is_told)
    for kind in ("placed", "network"):
        found = float(drifts_run.window_error(models.one(kind, 2), *test))
        assert found == pytest.approx(recorded["several shapes"]["dynamics_hidden"][kind][2], rel=0.05)


def test_models_of_rigid_bodies_keep_what_they_are_built_to_keep(recorded):
    runs = recorded["one shape"]
    lost = {name: {kind: sum(one["lost"] for one in each) for kind, each in runs[name].items()} for name in runs}
    drift = {name: np.median([one["length"] for one in runs[name]["turning"]]) for name in runs}
    assert all(lost[name]["turning"] == 0 and drift[name] < 5e-6 for name in runs)
    assert (
        lost["dynamics"]["network"] == lost["dynamics"]["volume_preserving"] == lost["dynamics_short"]["network"] == 0
    )
    volumes = {kind: np.abs(each).max() for kind, each in recorded["volumes"].items()}
    assert max(volumes["volume_preserving"], volumes["network"]) < 0.01
    assert volumes["turning"] < 0.1 < 4 < recorded["volumes"]["ordinary"][3]


def test_ordinary_blocks_miss_a_window_by_a_tenth_of_what_those_that_keep_volumes_do(recorded):
    each = recorded["one shape"]["dynamics"]
    missed = {kind: np.mean([one["window"] for one in models]) for kind, models in each.items()}
    assert missed["ordinary"] < min(missed["volume_preserving"], missed["network"]) / 10


def test_ordinary_blocks_are_nearest_on_several_lengths_after_the_long_training(recorded):
    runs = recorded["one shape"]["dynamics_lengths"]
    away = {kind: np.mean([one["distance"] for one in each]) for kind, each in runs.items()}
    assert all(one["lost"] == 0 for one in runs["ordinary"])
    assert away.pop("ordinary") < min(away.values())


def test_residual_layers_drift_less_than_triangular_ones_on_one_sphere(recorded):
    for name in ("dynamics_short", "dynamics"):
        each = recorded["one shape"][name]
        residual, network = (np.median([one["length"] for one in each[kind]]) for kind in ("residual", "network"))
        assert residual < network / 5, name
    np.testing.assert_allclose(recorded["ends"]["residual"], 1, atol=0.005)


def test_residual_layers_lose_trajectories_on_one_sphere_and_triangular_ones_none(recorded):
    for name in ("dynamics_short", "dynamics"):
        each = recorded["one shape"][name]
        residual, network = (sum(one["lost"] for one in each[kind]) for kind in ("residual", "network"))
        assert network == 0 < residual, name
    lost = recorded["one shape"]["dynamics"]["residual"]
    assert [one["lost"] > 0 for one in lost].count(True) == 1  # all by one model


def test_residual_layers_are_ahead_of_triangular_ones_in_nearly_every_column_on_several_lengths(recorded):
    columns, behind = {"window": np.mean, "distance": np.mean, "length": np.median, "lost": np.sum}, {}
    for name in ("dynamics_lengths_short", "dynamics_lengths"):
        for column, over in columns.items():
            each = {kind: over([one[column] for one in models]) for kind, models in recorded["one shape"][name].items()}
            behind[name, column] = each["network"] - each["residual"]
    assert min(behind.values()) >= 0
    assert sum(difference > 0 for difference in behind.values()) >= 7
    assert behind["dynamics_lengths_short", "lost"] > 0


def test_in_ten_thousand_points_residual_layers_lose_fewer_than_those_that_keep_volumes(recorded):
    far = recorded["far"]["dynamics"]
    assert 0 < sum(far["residual"]) < sum(far["network"]) < sum(far["volume_preserving"])
    assert sum(lost > 0 for lost in far["residual"]) == 1


def test_turns_are_nearest_on_one_sphere_after_the_long_training(recorded):
    each = recorded["one shape"]["dynamics"]
    away = {kind: np.mean([one["distance"] for one in models]) for kind, models in each.items()}
    assert away.pop("turning") < min(away.values())


def test_without_places_a_transformer_is_hardly_better_than_triangular_layers(recorded):
    missed = {kind: np.mean(each) for kind, each in recorded["several shapes"]["dynamics_hidden"].items()}
    assert 0.75 * missed["network"] < missed["volume_preserving"] < missed["network"]


def test_with_places_a_transformer_errs_as_little_as_one_layer_over_all_numbers(recorded):
    missed = np.mean(recorded["several shapes"]["dynamics_hidden"]["placed"])
    assert missed == pytest.approx(recorded["perceptron"], rel=0.1)


def test_untold_only_ordinary_blocks_are_ahead_of_a_linear_map_and_none_of_polynomials(recorded):
    """What a linear map and quadratic polynomials miss by stands in the chapter, which fits them."""
    shapes, linear, polynomials = recorded["several shapes"], 0.0021, 0.0005
    untold = shapes["dynamics_hidden"]
    assert {kind for kind, each in untold.items() if min(each) < linear} == {"ordinary"}
    assert max(untold["ordinary"]) < linear < recorded["perceptron"]
    assert min(min(each) for kinds in shapes.values() for each in kinds.values()) > polynomials
