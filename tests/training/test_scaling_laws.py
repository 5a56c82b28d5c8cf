"""How the loss falls with size and text: `plainformer.training.scaling_laws`."""

import dataclasses

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from plainformer.training.scaling_laws import (
    PowerLaw,
    _Place,
    best_size,
    bootstrap_power_laws,
    fit_power_law,
    huber,
    power_law_loss,
    training_work,
)

LAW = PowerLaw(floor=0.5, size_factor=9.0, size_power=0.5, text_factor=60.0, text_power=0.4)
SIZES, TOKENS = map(np.ravel, np.meshgrid([1e4, 5e4, 2e5, 8e5], [9e5, 1.8e6, 3.7e6]))


def noisy(seed: int = 0) -> np.ndarray:
    """Losses of the law, each off by about half a per cent."""
    return power_law_loss(SIZES, TOKENS, LAW) * np.exp(0.005 * np.random.default_rng(seed).normal(size=SIZES.size))


@pytest.mark.equation("eq-scaling-laws-loss")
def test_power_law_loss_by_hand():
    law = PowerLaw(floor=0.5, size_factor=8.0, size_power=0.5, text_factor=80.0, text_power=0.5)
    assert power_law_loss(10_000, 1_000_000, law) == pytest.approx(0.5 + 8 / 100 + 80 / 1000)
    np.testing.assert_allclose(power_law_loss([1, 4], 6400.0, law), [9.5, 5.5])


@pytest.mark.equation("eq-scaling-laws-work")
def test_training_work_by_hand():
    np.testing.assert_allclose(training_work(3, [5, 7.0]), [90, 126])


@pytest.mark.equation("eq-scaling-laws-best-size")
def test_best_size_has_the_least_loss_of_all_with_this_work():
    work = 1e13

    def loss(log_size):
        return power_law_loss(np.exp(log_size), work / (6 * np.exp(log_size)), LAW)

    searched = minimize_scalar(loss, bounds=(5, 30), method="bounded", options={"xatol": 1e-10})
    assert best_size(work, LAW) == pytest.approx(np.exp(searched.x), rel=1e-5)


@pytest.mark.equation("eq-scaling-laws-huber")
def test_huber_by_hand():
    np.testing.assert_allclose(huber([0.1, -0.5, 2.0, -3.0], 0.5), [0.005, 0.125, 0.875, 1.375])


@pytest.mark.equation("eq-scaling-laws-fit")
@pytest.mark.parametrize("floor", [None, 0.5])
def test_fit_power_law_finds_the_law_that_made_the_losses(floor):
    found = fit_power_law(SIZES, TOKENS, power_law_loss(SIZES, TOKENS, LAW), floor=floor)
    np.testing.assert_allclose(dataclasses.astuple(found), dataclasses.astuple(LAW), rtol=1e-3)


@pytest.mark.parametrize("floor", [None, 0.5])
def test_the_numbers_by_which_a_search_moves_are_those_of_their_law(floor):
    place = _Place.among(np.stack([SIZES, TOKENS, noisy()]), floor)
    np.testing.assert_allclose(dataclasses.astuple(place.law(place.numbers(LAW))), dataclasses.astuple(LAW), rtol=1e-9)


@pytest.mark.equation("eq-scaling-laws-fit")
def test_fit_power_law_has_the_least_sum_of_huber():
    losses, threshold = noisy(), 1e-3

    def total(law):
        return huber(np.log(power_law_loss(SIZES, TOKENS, law)) - np.log(losses), threshold).sum()

    found = fit_power_law(SIZES, TOKENS, losses, threshold=threshold)
    for field in dataclasses.fields(PowerLaw):
        for factor in (0.995, 1.005):
            assert total(dataclasses.replace(found, **{field.name: getattr(found, field.name) * factor})) > total(found)


def test_fit_power_law_hardly_moves_for_one_run_that_went_wrong():
    losses = power_law_loss(SIZES, TOKENS, LAW)
    losses[5] *= 1.5
    errors = [
        abs(fit_power_law(SIZES, TOKENS, losses, floor=0.5, threshold=threshold).size_power - LAW.size_power)
        for threshold in (1e-3, 1.0)
    ]
    assert errors[0] < 0.01 < errors[1]


def test_bootstrap_power_laws_spreads_around_the_law():
    laws = bootstrap_power_laws(SIZES, TOKENS, noisy(), floor=0.5, num_draws=30)
    low, high = np.percentile([law.size_power for law in laws], [2.5, 97.5])
    assert low < LAW.size_power < high
    assert 0.001 < high - low < 0.5
    assert laws == bootstrap_power_laws(SIZES, TOKENS, noisy(), floor=0.5, num_draws=30)
    assert laws != bootstrap_power_laws(SIZES, TOKENS, noisy(), floor=0.5, num_draws=30, seed=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"floor": 0.9}, "floor is 0.9"),
        ({"num_tokens": TOKENS[:4]}, "have shapes"),
        ({"num_parameters": np.full(12, 7e4)}, "num_parameters is 70000 in all runs"),
        ({"losses": [float("nan")] * 12}, "losses holds nan"),
    ],
)
def test_fit_power_law_refuses(change, message):
    runs = {"num_parameters": SIZES, "num_tokens": TOKENS, "losses": noisy()}
    with pytest.raises(ValueError, match=message):
        fit_power_law(**runs | change)


def test_fit_power_law_refuses_fewer_runs_than_it_fits_numbers():
    with pytest.raises(ValueError, match="There are 5 runs"):
        fit_power_law(SIZES[:5], TOKENS[:5], noisy()[:5])
    with pytest.raises(ValueError, match="There are 4 runs"):
        bootstrap_power_laws(SIZES[:4], TOKENS[:4], noisy()[:4], floor=0.1)
