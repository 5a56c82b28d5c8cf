"""Today's ways of writing are judged as recorded, and the best setting is the best."""

import calendar
import re

import numpy as np
import pytest

import plainformer as pf
from lab.writing_today import run as today


@pytest.fixture(scope="module")
def recorded() -> dict:
    return pf.data.load_record("writing_today")


def test_told_stories_are_judged_as_the_world_tells_them(recorded):
    prompts, stories = today.beginnings()
    found = today.judged(prompts, stories)
    assert found == recorded["ways"]["told"]
    assert found["possible"] == 1
    wrong = [f"{prompt} Anna wears lamp ." for prompt in prompts]
    assert today.judged(prompts, wrong) == {"possible": 0, "again": 0, "different": 0.01, "sentences": 100}


def test_the_pattern_of_dates_is_the_calendar():
    for year in range(1900, 2100):
        for month in range(1, 13):
            for day in range(32):
                real = 1 <= day <= calendar.monthrange(year, month)[1]
                text = f"{year}-{month:02}-{day:02}"
                assert bool(re.fullmatch(today.DATE, text)) == real, text
                assert today.is_date(text) == real
    assert not today.is_date("20300-1-01")


def test_the_best_setting_writes_as_many_different_sentences_as_are_asked_for(recorded):
    least = 0.9 * recorded["ways"]["told"]["different"]
    for model in ("stored", "narrow"):
        for way, setting in today.best_settings(recorded, model).items():
            choices = {name: today.means(rows) for name, rows in recorded["ways"][model][way].items()}
            rich = [row["possible"] for row in choices.values() if row["different"] >= least]
            if rich:
                assert choices[setting]["possible"] == max(rich)


def best_shares(recorded: dict, model: str, ways: tuple[str, ...]) -> np.ndarray:
    """The mean share of possible sentences of each way at its best setting."""
    settings = today.best_settings(recorded, model)
    return np.array([today.means(recorded["ways"][model][way][settings[way]])["possible"] for way in ways])


def by_key(recorded: dict, model: str, temperature: str) -> list[float]:
    return [row["possible"] for row in recorded["ways"][model]["temperature"][temperature]]


def test_a_frequency_penalty_halves_what_greedy_search_says_again(recorded):
    ways = recorded["ways"]["stored"]
    (plain,), penalised = ways["greedy"][""], ways["greedy, frequency"]
    (strong,), (weak,) = penalised["0.2"], penalised["0.05"]
    assert strong["again"] < plain["again"] / 2 < weak["again"] < plain["again"]
    assert strong["possible"] == pytest.approx(plain["possible"], abs=0.005)


def test_penalties_on_drawn_texts_gain_nothing(recorded):
    ways, plain = recorded["ways"]["stored"], np.mean(by_key(recorded, "stored", "1"))
    for way in ("repetition", "presence", "frequency"):
        assert max(today.means(rows)["possible"] for rows in ways[way].values()) <= plain, way


def test_cuts_gain_hardly_more_than_the_keys_vary_and_equally_well(recorded):
    plain, cut = by_key(recorded, "stored", "1"), best_shares(recorded, "stored", ("top-k", "top-p", "min-p"))
    assert 0 < min(cut - np.mean(plain)) <= max(cut - np.mean(plain)) < 1.1 * np.ptp(plain)
    assert np.ptp(cut) < np.ptp(plain)


def test_at_a_high_temperature_min_p_is_level_with_top_p(recorded):
    cut = best_shares(recorded, "stored", ("top-p, T = 1.5", "min-p, T = 1.5"))
    assert np.ptp(cut) < 0.01 < 0.1 < cut.min() - np.mean(by_key(recorded, "stored", "1.5"))


def test_a_cut_gains_more_for_a_narrow_model(recorded):
    stored, narrow = (
        best_shares(recorded, model, ("top-p", "min-p")) - np.mean(by_key(recorded, model, "1"))
        for model in ("stored", "narrow")
    )
    assert min(narrow) > 0.04 > max(stored)
    assert recorded["ways"]["narrow"]["greedy"][""][0]["possible"] < np.mean(by_key(recorded, "narrow", "1"))


def test_a_low_temperature_without_a_cut_does_as_well(recorded):
    for model in ("stored", "narrow"):
        cold = np.mean(by_key(recorded, model, "0.5"))
        assert max(best_shares(recorded, model, ("top-p", "min-p"))) - cold < 0.01, model


def test_a_pattern_raises_the_share_of_right_dates_with_each_key(recorded):
    found = recorded["pattern"]["decoder"]["years"]
    free, held = (np.array(found["1.5"][way]) for way in ("free", "within the pattern"))
    assert (held[:, 1] > free[:, 1] + 0.1).all()
    assert all(share == 1 for share, _ in found["0"]["free"])


def test_the_mean_per_token_finds_more_of_the_right_pieces_than_the_sum_which_prefers_short_ones(recorded):
    chosen = recorded["choice"]["shakespeare"]
    for (by_sum, letters), (by_mean, _), right in zip(chosen["text"], chosen["token"], chosen["right"], strict=True):
        assert by_sum < by_mean
        assert letters < right
