"""Hidden letters surprise encoder and counting as recorded."""

import numpy as np

import plainformer as pf
from lab.holes import run as holes_run


def test_the_first_hidden_letters_surprise_encoder_and_counting_as_recorded():
    recorded, splits, number = pf.data.load_record("holes"), pf.data.name_splits(), 12
    assert len(recorded["names"]["encoder"]) == len(holes_run.asked_of_names(splits))
    for name, nats in holes_run.of_names(splits, number).items():
        # The names are those of this Babel, whose versions differ a little.
        np.testing.assert_allclose(nats, recorded["names"][name][:number], atol=0.02)


def test_places_of_the_same_letter_are_in_other_names_only():
    same = holes_run.same_letter_elsewhere([("Anna, Ana, Hanna", 1), ("Oslo, Rom", 7)])
    assert np.flatnonzero(same[0]).tolist() == [7, 13, 14]
    assert np.flatnonzero(same[1]).tolist() == [3]
