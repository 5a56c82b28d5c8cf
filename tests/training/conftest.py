"""What the tests of training share: compiled steps, since compiling takes most of the time of a small run."""

import dataclasses
import functools
import sys

import equinox as eqx
import jax
import pytest

from plainformer.training.step import make_train_step


@pytest.fixture(scope="session", autouse=True)
def compiled_once():
    """Let runs with the same loss, model and configuration use the same compiled step."""

    @functools.cache
    def once(loss_function, static, config):
        return make_train_step(loss_function, static, config)

    def reused(loss_function, static, config, **options):
        frozen = any(eqx.is_array(leaf) for leaf in jax.tree.leaves(static))  # which cannot be looked up
        if frozen or any(option is not None for option in options.values()):
            return make_train_step(loss_function, static, config, **options)
        # How often is evaluated and saved does not change a step.
        plain = dataclasses.replace(config, evaluate_every=1, checkpoint_every=1, max_to_keep=1)
        return once(loss_function, static, plain)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["plainformer.training.fit"], "make_train_step", reused)
        yield
