"""Hidden patches alone count in the loss, and whoever fills them in by counting errs as recorded."""

import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from lab.filling import run as filling


def test_hidden_patches_alone_count_in_the_loss_of_filling():
    patches, shown = jnp.zeros((2, 16, 4)), jnp.asarray(filling.choices(2, 8, 0))
    hidden = filling.is_hidden(shown)
    assert hidden.sum(axis=1).tolist() == [8, 8]
    painted = jnp.where(jnp.asarray(hidden)[:, :, None], 2.0, 100.0) + patches
    assert filling.filling_loss(lambda *given: painted, filling.Hidden(patches, shown)) == pytest.approx(4)
    assert filling.error(painted, np.asarray(patches), shown) == pytest.approx(4)


def test_opponents_of_filling_are_as_recorded():
    assert filling.opponents() == pytest.approx(pf.data.load_record("filling")["opponents"], rel=1e-3)


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
