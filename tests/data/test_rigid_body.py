"""The data: the rigid body against hand and an independent solver's result, and what it conserves."""

import numpy as np
import pytest

from plainformer.data.rigid_body import (
    energy,
    first_states,
    following_windows,
    implicit_midpoint,
    rigid_bodies,
    rigid_body_velocity,
)

STATE, KAPPA = np.array([0.3, -0.5, 0.8]), 0.3


@pytest.mark.equation("eq-dynamics-rigid-body")
def test_rigid_body_velocity_is_that_of_the_hand():
    np.testing.assert_allclose(rigid_body_velocity([1, 2, 3]), [6, -1.5, -1])
    np.testing.assert_allclose(rigid_body_velocity([1, 2, 3], 0.25), [6, -0.75, -1.5])
    many = np.random.default_rng(0).normal(size=(4, 5, 3))
    np.testing.assert_array_equal(rigid_body_velocity(many)[2, 1], rigid_body_velocity(many[2, 1]))


@pytest.mark.equation("eq-dynamics-invariants")
def test_energy_and_length_do_not_change_along_the_velocity():
    slopes = np.array([1, KAPPA, 1 + KAPPA]) * STATE
    velocity = rigid_body_velocity(STATE, KAPPA)
    assert abs(slopes @ velocity) < 1e-16
    assert abs(STATE @ velocity) < 1e-16
    step = 1e-6 * velocity
    assert energy(STATE, KAPPA) == pytest.approx(slopes @ STATE / 2, rel=1e-14)
    assert abs(energy(STATE + step, KAPPA) - energy(STATE - step, KAPPA)) < 1e-16
    assert energy([1, 2, 3]) == pytest.approx((1 + 4 / 2 + 9 * 3 / 2) / 2)


@pytest.mark.equation("eq-dynamics-invariants")
def test_rigid_bodies_keep_both_invariants():
    for part in rigid_bodies():
        lengths, energies = (part.states**2).sum(axis=2), energy(part.states)
        assert np.abs(lengths - 1).max() < 1e-12
        assert np.abs(energies - energies[:, :1]).max() < 1e-12


@pytest.mark.equation("eq-dynamics-midpoint")
def test_implicit_midpoint_solves_its_equation():
    points = implicit_midpoint(STATE, kappa=KAPPA, step=0.25, num_steps=7)
    assert points.shape == (8, 3)
    np.testing.assert_array_equal(points[0], STATE)
    middle = (points[1:] + points[:-1]) / 2
    np.testing.assert_allclose(points[1:] - points[:-1], 0.25 * rigid_body_velocity(middle, KAPPA), atol=4e-16)


def test_rigid_bodies_are_those_of_the_text():
    splits = rigid_bodies()
    assert [len(part.states) for part in splits] == [992, 124, 122]
    starts = [{tuple(start) for start in part.states[:, 0].round(9)} for part in splits]
    assert len(set.union(*starts)) == sum(map(len, starts)) == 1238
    angles = 0.1 + 0.01 * np.arange(619)
    every = {tuple(start) for start in first_states(angles).reshape(-1, 3).round(9)}
    assert every == set.union(*starts)
    np.testing.assert_allclose(
        first_states([0.5])[:, 0], [[np.sin(0.5), 0, np.cos(0.5)], [0, np.sin(0.5), np.cos(0.5)]]
    )


def test_rigid_bodies_of_several_shapes_know_which_is_which():
    part = rigid_bodies((0.3, 0.6), spacing=0.5).training
    assert set(part.kappa.tolist()) == {0.3, 0.6}
    one, other = (part.states[part.kappa == kappa] for kappa in (0.3, 0.6))
    for states, kappa in ((one, 0.3), (other, 0.6)):
        np.testing.assert_allclose(
            states, implicit_midpoint(states[:, 0], kappa=kappa, step=0.2, num_steps=100), atol=1e-14
        )
    starts = [{tuple(start) for start in states[:, 0]} for states in (one, other)]
    assert len(starts[0]) == len(one), "a start meets a shape twice"
    assert starts[0] == starts[1], "a start meets one shape only"


def test_following_windows_follow():
    series = np.arange(2 * 9 * 3.0).reshape(2, 9, 3)
    before, after = following_windows(series, 2)
    assert before.shape == after.shape == (2 * 6, 2, 3)
    for place, (one, other) in enumerate(zip(before, after, strict=True)):
        trajectory, point = divmod(place, 6)
        np.testing.assert_array_equal(one, series[trajectory, point : point + 2])
        np.testing.assert_array_equal(other, series[trajectory, point + 2 : point + 4])


def with_nan():
    series = np.zeros((2, 9, 3))
    series[1, 4, 2] = np.nan
    return series


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: following_windows(with_nan(), 2), r"trajectories\[1, 4, 2\] is nan"),
        (lambda: following_windows(np.zeros((2, 5, 3)), 3), r"has 5 points"),
        (lambda: following_windows(np.zeros((9, 3)), 2), r"shape \(9, 3\)"),
        (lambda: implicit_midpoint([1.0, 2.0]), r"shape \(2,\)"),
        (lambda: implicit_midpoint([1.0, np.nan, 2.0]), "NaN or infinity"),
        (lambda: implicit_midpoint([1.0, 2.0, 3.0], step=50.0), "step is 50.0"),
    ],
)
def test_what_cannot_be_followed_is_refused(call, says):
    with pytest.raises(ValueError, match=says):
        call()
