"""Slips are other letters, and are found by Bayes' rule."""

import numpy as np

from lab import slips


def test_a_slip_is_another_letter_and_is_found_by_whoever_knows_the_name():
    asked = [(["Norge", "Norwegen"], 1, place) for place in range(8)]
    wrong = slips.with_slips(asked, ["Norge"])
    for (_, _, place), (line, number, at) in zip(asked, wrong, strict=True):
        assert (line[0], number, at) == ("Norge", 1, place)
        assert [n for n in range(8) if line[1][n].lower() != "norwegen"[n]] == [place]

    def knows(places):
        return np.array([line[number][n].lower() != "norwegen"[n] for line, number, n in places], float)

    names = ["Norwegen", "".join(line[1] for line, *_ in wrong)]
    assert slips.slips_found(lambda places: 9 * knows(places), wrong, names) == 1
    assert slips.slips_found(lambda places: -9 * knows(places), wrong, names) == 0


def test_a_letter_that_is_rare_surprises_but_is_seldom_a_slip():
    wrong = [(["exit"], 0, 3)]  # was exix: the x is as surprising as the t, but slips are drawn as often as letters
    assert slips.slips_found(lambda places: np.array([0, 3.1, 0, 3]), wrong, ["tttt", "eix"]) == 1
    assert slips.slips_found(lambda places: np.array([0, 3.1, 0, 3]), wrong, ["teix"]) == 0
    assert slips.slips_found(lambda places: np.array([0, 3, 9, 3.1]), [(["ex-t"], 0, 3)], ["text"]) == 1
