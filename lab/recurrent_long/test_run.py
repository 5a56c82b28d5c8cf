"""The longer trainings of six kinds of language models begin as recorded, and compare as the chapter says."""

import numpy as np
import pytest

import plainformer as pf
from lab.recurrent.runs import KINDS, TEXT, new_model
from lab.recurrent_long import run as recurrent_long


def recorded() -> dict:
    return pf.data.load_record("recurrent_long")


def losses(kind: str) -> list[float]:
    return recurrent_long.ends(recorded()["docstrings"][kind]["runs"])


def test_the_text_is_the_one_that_was_read():
    assert recorded()["letters"] == len(recurrent_long.texts()["training"])


def test_each_rate_is_below_both_its_neighbours():
    for each in recorded()["docstrings"].values():
        rates = sorted(map(float, each["tried"]))
        place = rates.index(each["rate"])
        assert 0 < place < len(rates) - 1
        assert each["rate"] == min(rates, key=lambda rate: each["tried"][f"{rate:g}"])


def test_an_untrained_model_is_as_surprised_as_by_chance():
    parts = recurrent_long.texts()
    windows = pf.data.consecutive_windows(parts["judge"][:6500], TEXT.seq_len)
    loss = float(pf.training.corpus_loss(new_model("modern", TEXT, 0), windows))
    assert loss == pytest.approx(np.log(TEXT.vocab_size), abs=0.4)


def test_half_way_the_gru_is_ahead_and_at_the_end_today_s_decoder_is_with_each_seed():
    half = {
        kind: dict(recurrent_long.curve(each["runs"]))[recurrent_long.STEPS // 2]
        for kind, each in recorded()["docstrings"].items()
    }
    assert half["gru"] < half["modern"] - 0.01
    others = min(loss for kind in ("rnn", "lstm", "gru") for loss in losses(kind))
    assert max(losses("modern")) < others - 2 * np.ptp(losses("modern"))


def test_at_the_end_the_gru_is_level_with_the_decoder_of_2019():
    gap = np.mean(losses("gru")) - np.mean(losses("classic"))
    assert abs(gap) < 2 * max(np.ptp(losses("gru")), np.ptp(losses("classic")))


def test_a_count_of_eight_letters_is_ahead_of_all_six():
    counted, kinds = recorded()["counted"], recorded()["docstrings"].values()
    assert counted["choose"] < min(recurrent_long.curve(each["runs"])[-1][1] for each in kinds) - 0.1
    assert counted["judge"] < min(loss for kind in KINDS for loss in losses(kind)) - 0.1
