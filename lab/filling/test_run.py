"""Hidden patches alone count in the loss, and whoever fills them in by counting errs as recorded."""

import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from lab.filling import plateau, run as filling_run, runs as filling


def test_hidden_patches_alone_count_in_the_loss_of_filling():
    patches, shown = jnp.zeros((2, 16, 4)), jnp.asarray(filling.choices(2, 8, 0))
    hidden = filling.is_hidden(shown)
    assert hidden.sum(axis=1).tolist() == [8, 8]
    painted = jnp.where(jnp.asarray(hidden)[:, :, None], 2.0, 100.0) + patches
    assert filling.filling_loss(lambda *given: painted, filling.Hidden(patches, shown)) == pytest.approx(4)
    assert filling.error(painted, np.asarray(patches), shown) == pytest.approx(4)


def test_opponents_of_filling_are_as_recorded():
    assert filling_run.opponents() == pytest.approx(pf.data.load_record("filling")["opponents"], rel=1e-3)


def test_regression_fills_in_what_is_linear():
    """Each pixel twice the one before it: whatever is hidden follows from what is shown."""
    scales = np.random.default_rng(0).random((200, 1, 1)).astype(np.float32)
    images = scales * (1 + np.arange(64, dtype=np.float32)).reshape(1, 16, 4)
    shown = filling.choices(5, 8, 0)
    np.testing.assert_allclose(filling.by_regression(images, images[:5], shown, 1e-6), images[:5], atol=1e-2)


def test_the_network_errs_less_than_linear_regression_and_more_than_the_neighbours_with_each_seed():
    found = pf.data.load_record("filling")
    assert found["opponents"]["neighbours"] < min(found["errors"])
    assert max(found["errors"]) < found["opponents"]["regression"]


def test_after_five_times_the_steps_the_network_is_level_with_the_neighbours():
    found = pf.data.load_record("filling")
    assert abs(found["five times the steps"] - found["opponents"]["neighbours"]) < np.ptp(found["errors"])


def test_after_3_500_steps_autoencoder_plain_network_and_neighbours_are_level():
    found = pf.data.load_record("filling")["at their best"]
    ours, plain = (found[name]["errors"] for name in ("masked autoencoder", "perceptron"))
    assert len(ours) == len(plain) == 3
    assert found["masked autoencoder"]["steps"] == found["perceptron"]["steps"] == 3500
    means = [np.mean(ours), np.mean(plain), found["neighbours"]["error"]]
    assert max(means) - min(means) < 0.007 < 0.04 < found["regression"]["error"] - max(means)


def test_moved_images_make_all_four_worse_on_the_fold():
    found = pf.data.load_record("filling")["at their best"]
    for name in ("masked autoencoder", "perceptron"):
        assert found[name]["images"] == "as they are"
        ways = found[name]["fold"]
        assert ways["moved"]["curve"]["3500"] > ways["as they are"]["curve"]["3500"] + 0.02
    for name in ("neighbours", "regression"):
        assert found[name]["moves"] == "one"
        grid = found[name]["grid"]
        assert (
            min(error for setting, error in grid.items() if not setting.startswith("one")) > min(grid.values()) + 0.01
        )


def test_rates_and_settings_of_filling_lie_inside_their_grids():
    found = pf.data.load_record("filling")["at their best"]
    for name, (_, rates) in plateau.NETWORKS.items():
        for way in found[name]["fold"].values():
            assert list(way["rates"]) == [f"{rate:g}" for rate in rates]
            assert rates[0] < way["rate"] < rates[-1]


def test_after_7_000_steps_the_autoencoder_is_ahead_of_the_neighbours_and_hardly_of_the_plain_network():
    found = pf.data.load_record("filling")["at their best"]
    ours, plain, spread = (
        found["masked autoencoder"],
        found["perceptron"],
        np.ptp(found["masked autoencoder"]["errors"]),
    )
    of_test = [np.mean(each["errors, twice the steps"]) for each in (ours, plain)]
    of_fold = [each["fold, twice the steps"]["7000"] for each in (ours, plain)]
    assert of_test[0] < found["neighbours"]["error"] - spread
    assert of_fold[0] < min(found["neighbours"]["grid"].values()) - spread
    assert 0 < of_test[1] - of_test[0] < spread
    assert 0 < of_fold[1] - of_fold[0] < 2 * spread
