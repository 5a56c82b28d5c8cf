"""Points are measured with the noise that is said, opponents and networks do what they say, and sentences hold."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge

import plainformer as pf
from lab.noise import card, hamiltonian, law, networks, opponents, probe, run as noise_run, tasks, training
from plainformer.data.rigid_body import energy, implicit_midpoint, rigid_body_velocity
from plainformer.models.dynamics import OrdinaryTransformer, TrajectoryConfig


@pytest.fixture(scope="module")
def recorded() -> dict:
    return pf.data.load_record("noise")


@pytest.fixture(scope="module")
def small() -> tasks.Task:
    """A few windows of twelve points of each part."""
    first = np.random.default_rng(0).normal(size=(40, 3))
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    windows = tasks.cut(implicit_midpoint(first, kappa=np.linspace(0.2, 0.8, 40), num_steps=30), 15)
    return tasks.Task(12, windows[:400], windows[400:500], windows[500:])


def test_read_and_following_points_are_measured_with_the_same_noise(small):
    """Inputs and targets of a training are noisy; the truth that a guess is held against is not."""
    many = np.repeat(small.training, 20, axis=0)
    seen = np.asarray(tasks.measured(many, 0.03, jax.random.key(0)))
    np.testing.assert_allclose((seen - many).std(axis=(0, 2)), 0.03, rtol=0.05)
    before, after = tasks.drawn(small.training[:1], 12, 0.03, 20_000, 0)
    for part, true in ((before, small.training[0, :12]), (after, small.training[0, 12:])):
        np.testing.assert_allclose((part - true).std(axis=(0, 2)), 0.03, rtol=0.05)
    given, wanted = tasks.asked(many, 12, 0.03, 0)
    np.testing.assert_allclose((given - many[:, :12]).std(axis=(0, 2)), 0.03, rtol=0.05)
    np.testing.assert_array_equal(wanted, many[:, 12:])


def test_networks_learn_from_noisy_points_to_guess_noisy_points(small):
    """Batches differ from the true windows by the noise, in what is read and in what follows, and each anew."""
    still = jnp.broadcast_to(jnp.float32([0.6, 0, 0.8]), (5, 15, 3))
    batches = [np.asarray(training.batch(still, 0.03, jax.random.key(seed))) for seed in range(30)]
    noise = np.stack(batches) - np.float32([0.6, 0, 0.8])[:, None, None]
    np.testing.assert_allclose(noise.std(axis=(0, 1, 3)), 0.03, rtol=0.1)
    assert abs(np.corrcoef(noise[0].ravel(), noise[1].ravel())[0, 1]) < 0.1


def test_networks_in_columns_are_those_in_rows():
    window = jax.random.normal(jax.random.key(1), (5, 12, 3))
    ordinary = OrdinaryTransformer(TrajectoryConfig(), key=jax.random.key(2))
    for model, x in (
        (networks.WindowTransformer(12, 8, key=jax.random.key(2)), window),
        (networks.Recurrent(8, key=jax.random.key(2)), window),
        (ordinary, window[:, :3]),
    ):
        found = networks.applied(model, x.transpose(2, 1, 0)).transpose(2, 1, 0)
        np.testing.assert_allclose(found, model(x), atol=1e-5)


def test_networks_learn(small, few_steps):
    make = training.fresh(partial(networks.Recurrent, 16))
    plans = [training.Plan(make, (0.01,), num_steps, (0.01,), (0.01,)) for num_steps in (10, 300)]
    first, last = (training.learned(small, plan, [(0, 0.01, 0.01)])[0] for plan in plans)
    assert last["test"] < first["test"] / 2
    assert [step for step, _ in last["curve"]] == [*range(30, 301, 30)]
    assert last["curve"][-1][1] < last["curve"][0][1]


def test_ridge_regression_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    features, targets, asked = rng.normal(size=(50, 4)), rng.normal(size=(50, 2)), rng.normal(size=(5, 4))
    features[:, 1] += features[:, 0]
    guess = opponents.by_strength(features, targets)
    np.testing.assert_allclose(guess(asked, 0.0), LinearRegression().fit(features, targets).predict(asked))
    scaled = (features - features.mean(axis=0)) / features.std(axis=0)
    expected = Ridge(0.1 * 50).fit(scaled, targets).predict((asked - features.mean(axis=0)) / features.std(axis=0))
    np.testing.assert_allclose(guess(asked, 0.1), expected)


def test_polynomials_in_time_go_on():
    times = np.arange(8.0)
    cubic = np.stack([times**3, times, 1 - times], axis=1)
    np.testing.assert_allclose(opponents.onward(5, 4, 3) @ cubic[:5], cubic[5:], atol=1e-9)
    found = opponents.in_time(12, 1) @ (2 * np.linspace(-1, 0, 12) + 3)
    np.testing.assert_allclose(found, [2, 3])


def test_who_is_told_the_law_finds_shape_and_state(small):
    kappa = np.linspace(0.3, 0.7, 5)
    first = np.array([[0.6, 0, 0.8], [0, 0.6, 0.8], [0.6, 0.48, 0.64], [0.8, 0, 0.6], [0, 0.8, 0.6]])
    windows = implicit_midpoint(first, kappa=kappa, num_steps=11)
    found, start = law.fitted(windows + 1e-5 * np.random.default_rng(0).normal(size=windows.shape), 1e-5)
    np.testing.assert_allclose(found, kappa, atol=2e-3)
    np.testing.assert_allclose(start, first, atol=1e-4)


def test_the_energy_of_a_body_moves_it_as_the_chapter_says():
    """y × the slope of the energy is the velocity; and a step with a learned energy keeps the length."""
    y, kappa = np.random.default_rng(0).normal(size=(6, 3)), 0.3
    slope = y * np.array([1, kappa, 1 + kappa])
    nudged = [(energy(y + 1e-6 * unit, kappa) - energy(y - 1e-6 * unit, kappa)) / 2e-6 for unit in np.eye(3)]
    np.testing.assert_allclose(np.stack(nudged, axis=1), slope, atol=1e-6)
    np.testing.assert_allclose(np.cross(y, slope), rigid_body_velocity(y, kappa), atol=1e-12)
    model = hamiltonian.LearnedEnergy(5, key=jax.random.key(0))
    after = model(jnp.asarray(y, jnp.float32).reshape(2, 3, 3))
    np.testing.assert_allclose((after**2).sum(axis=2), np.repeat((y[2::3] ** 2).sum(axis=1)[:, None], 3, 1), rtol=1e-4)


def test_a_true_energy_steps_as_the_data_do():
    class Body(hamiltonian.LearnedEnergy):
        def energy(self, y):
            return y**2 @ jnp.float32([0.5, 0.25, 0.75])

    model = Body(2, key=jax.random.key(0))
    first = np.array([[0.6, 0.0, 0.8], [0.0, 0.6, 0.8]])
    found = model(jnp.asarray(np.repeat(first[:, None], 3, axis=1), jnp.float32))
    np.testing.assert_allclose(found, implicit_midpoint(first, num_steps=3)[:, 1:], atol=1e-5)


def test_probes_are_as_recorded(recorded):
    splits = probe.rigid_bodies(probe.SHAPES_BETWEEN, spacing=0.05)
    learned, asked = map(probe.windows_and_shapes, (splits.validation, splits.test))
    found = probe.explained(lambda windows: windows.reshape(len(windows), -1), learned, asked)
    assert found == pytest.approx(recorded["probes"]["input"]["numbers"], abs=0.01)
    model = pf.load_pretrained("dynamics_hidden")[0].one("ordinary", 1)
    last = probe.explained(probe.inside(model, 2), learned, asked)
    assert last == pytest.approx(recorded["probes"]["trained"][1][2], abs=0.02)


def test_opponents_are_as_recorded(recorded):
    task = tasks.task("shapes")
    for sigma in ("0.01", "0.1"):
        simple = recorded["shapes"]["simple"][sigma]
        assert opponents.still(task, float(sigma))["test"] == pytest.approx(simple["nothing moves"]["test"])
        found = opponents.best_polynomial(task, opponents.FEATURES["shapes"]["linear"], float(sigma))
        assert found["test"] == pytest.approx(simple["linear"]["test"], rel=0.01)


def test_rates_and_settings_lie_inside_what_was_tried(recorded):
    for name, plans in noise_run.PLANS.items():
        for kind, plan in plans.items():
            of = recorded[name]["networks"][kind]
            assert (of["rates"], of["steps"]) == (list(plan.rates), plan.num_steps)
            assert [(one["noise"], one["seed"]) for one in of["models"]] == [
                *itertools.product(plan.noises, plan.seeds)
            ]
            assert len({(one["noise"], one["rate"]) for one in of["models"]}) == len(plan.noises)
            for sigma in plan.search:
                found = [one["curve"][-1][1] for one in of["tried"] if one["noise"] == sigma]
                best = int(np.argmin(found))
                inner = found[1] if best == 0 else found[-2] if best == len(found) - 1 else None
                assert inner is None or inner < 1.01 * found[best], (name, kind, sigma)  # at an edge nothing is gained
    learned = [one["curve"] for of in recorded["shapes"]["networks"].values() for one in of["models"]]
    assert all(curve[-1][1] < curve[-2][1] for curve in learned)  # still falling, as the card says
    for data in hamiltonian.DATA:
        assert recorded["energies"][data]["rate"] in hamiltonian.RATES[1:-1]


def test_learned_energies_are_nearer_than_the_networks_of_the_table_and_lose_nothing(recorded):
    """And keep lengths, also on other seeds; the networks of the table have learned twenty times as long."""
    table = pf.data.load_record("drifts")["one shape"]
    for data in hamiltonian.DATA:
        each = recorded["energies"][data]["models"]
        assert all(one["lost"] == 0 and one["length"] < 1e-5 for one in each)
        others = [np.mean([one["distance"] for one in kind]) for kind in table[data].values()]
        assert max(one["distance"] for one in each) < min(others)
    assert recorded["energies"]["steps"] * 20 == 400_000


def test_trained_rows_tell_something_of_the_shape_and_less_than_products_of_two_numbers(recorded):
    probes = recorded["probes"]
    trained, untrained = (np.array(probes[how])[:, 2] for how in ("trained", "untrained"))
    assert max(untrained.max(), probes["input"]["numbers"]) < 0.03 < 0.15 < trained.min()
    assert trained.max() < probes["input"]["quadratic"] - 0.1


def test_three_noisy_points_tell_more_than_the_last_by_about_the_root_of_three(recorded):
    """A polynomial of the last point misses by the noise itself, one of three points by less; without noise not."""
    simple = recorded["lengths"]["simple"]
    for sigma in ("0.003", "0.01", "0.03", "0.1"):
        last, window = (simple[sigma][kind]["test"] for kind in ("last point", "window"))
        assert 0.9 * float(sigma) < last < 1.05 * float(sigma)
        assert 1.5 < last / window < 3**0.5
    assert simple["0.0"]["last point"]["test"] < simple["0.0"]["window"]["test"] < 1e-5


def test_two_networks_are_ahead_of_all_polynomials_of_noisy_points(recorded):
    """By more than twice the spread."""
    for sigma in noise_run.SHAPE_NOISES:
        each = card.errors(recorded, "shapes", sigma)
        polynomials = [each[kind] for kind in ("nothing moves", "in time", *opponents.FEATURES["shapes"])]
        for network, other in itertools.product(noise_run.PLANS["shapes"], polynomials):
            assert card.verdict(each[network], other) == "ahead", (sigma, network)


def test_after_a_fifth_of_the_steps_the_curve_is_ahead_with_little_noise(recorded):
    little, _ = recorded["knobs"]["transformer, a fifth of the steps"]
    assert little["noise"] == 0.03
    assert little["test"] > 1.05 * recorded["shapes"]["simple"]["0.03"]["curve"]["test"]


def test_after_five_times_the_steps_the_gru_is_ahead_of_the_transformer(recorded):
    """With one seed, and ten times the steps of the transformer; before, with twice its steps, the GRU was level."""
    for longer in recorded["knobs"]["GRU, five times the steps"]:
        each = card.errors(recorded, "shapes", longer["noise"])
        assert card.verdict(each["transformer"], [longer["test"]]) == "behind"
        assert np.mean(each["GRU"]) == pytest.approx(np.mean(each["transformer"]), rel=0.005)


def test_two_networks_are_ahead_of_a_fit_of_the_true_law(recorded):
    for sigma in noise_run.SHAPE_NOISES:
        each = card.errors(recorded, "shapes", sigma)
        for network in noise_run.PLANS["shapes"]:
            assert card.verdict(each[network], each["told the law"]) == "ahead", (sigma, network)


def test_the_less_noise_there_is_the_more_the_law_is_worth(recorded):
    """Beside a fitted curve, which with much noise is ahead of it."""
    simple = recorded["shapes"]["simple"]
    behind = [
        simple[str(sigma)]["curve"]["test"] / simple[str(sigma)]["told the law"]["test"] for sigma in tasks.NOISES[1:]
    ]
    assert behind == sorted(behind, reverse=True)
    assert behind[2] > 1 > behind[3]


def test_exact_windows_are_as_good_as_the_transformer_with_much_noise_alone(recorded):
    """With any number of them the mean would be the best guess; with little noise few are near."""
    exact = {
        sigma: recorded["shapes"]["simple"][str(sigma)]["told exact windows"]["test"] for sigma in tasks.NOISES[1:]
    }
    errors = {sigma: card.errors(recorded, "shapes", sigma)["transformer"] for sigma in noise_run.SHAPE_NOISES}
    assert exact[0.1] == pytest.approx(np.mean(errors[0.1]), rel=0.01)
    assert exact[0.03] > 1.1 * max(errors[0.03])


def test_exact_windows_are_averaged_by_how_likely_they_are_to_be_measured_so():
    exact = np.arange(24.0).reshape(2, 4, 3) / 12
    given = 0.75 * exact[0, :2] + 0.25 * exact[1, :2]  # at distances of 1/4 and 3/4 of √6 from both
    share = 1 / (1 + np.exp(-(9 - 1) / 16 * 6 / (2 * 0.5**2)))
    wanted = share * exact[0, 2:] + (1 - share) * exact[1, 2:]
    np.testing.assert_allclose(law.averaged(exact, given[None], 0.5)[0], wanted.ravel(), rtol=1e-5)


def test_verdicts_are_by_twice_the_larger_spread():
    assert card.verdict([1.0, 1.1], [1.3]) == "ahead"
    assert card.verdict([1.0, 1.1], [1.2]) == "level"
    assert card.verdict([1.0, 1.1], [0.5, 0.6]) == "behind"


def test_ordinary_blocks_are_for_no_noise_ahead_of_polynomials_of_three_points(recorded):
    found = {sigma: card.errors(recorded, "lengths", sigma) for sigma in tasks.NOISES[1:]}
    said = {sigma: card.verdict(each["transformer"], each["window"]) for sigma, each in found.items()}
    assert said == {0.003: "behind", 0.01: "level", 0.03: "level", 0.1: "level"}
    for sigma in (0.003, 0.01, 0.03):
        assert min(found[sigma]["transformer"]) > found[sigma]["window"][0]
    for sigma in (0.03, 0.1):
        assert max(found[sigma]["transformer"]) < 1.08 * sigma / 3**0.5  # the error of a mean of three
