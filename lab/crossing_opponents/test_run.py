"""Other learning rates of the strongest opponent at crossings."""

import numpy as np

import plainformer as pf
from lab.crossing_opponents import run as opponents


def test_no_other_rate_of_attention_with_coordinates_is_better_in_the_mean_at_held_out_crossings():
    found = pf.data.load_record("crossing_opponents")
    ours = found["table"][opponents.words(opponents.Run("attention", True))]
    others = [found["turned"][opponents.at_rate(rate)] for rate, _ in opponents.TURNED]
    assert [rate for rate, _ in opponents.TURNED] == [opponents.RATE / 2, 2 * opponents.RATE, 4 * opponents.RATE]
    means = [np.mean([run["held_out"] for run in runs]) for runs in [ours, *others]]
    assert max(means) == means[0]
