"""A machine of the walk learns, and begins anew with each seed."""

import numpy as np

from lab.walk import run as walk_run
from plainformer.models.accounting import cache_bytes


def test_a_machine_of_the_walk_learns_and_begins_anew_with_each_seed():
    stack = walk_run.config_of("windows in turn").stack
    assert stack.kinds == ("window", "full", "window", "full")
    assert walk_run.read_bytes(stack) == cache_bytes(stack, walk_run.LENGTH) * (32 + 128) // (2 * 128)
    windows = np.random.default_rng(0).integers(7, size=(50, walk_run.LENGTH + 1))
    config = walk_run.config_of("sinks", width=16, vocab_size=7)
    batches = walk_run.batches_of(windows, 0)
    sinks = []
    for seed in (0, 1):
        model, _ = walk_run.after_training(config, batches, 0.01, 2, seed)
        sinks.append(model.stack.blocks[0].attention.kernel.sinks)
    assert (sinks[0] != 0).all()
    assert (sinks[0] != sinks[1]).any()
