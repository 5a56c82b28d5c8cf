"""The decoder of stories is asked in one way wherever it is asked, and is ahead where chapters say so."""

import numpy as np

import plainformer as pf
from lab import growing
from lab.story_gru import readers

record = pf.data.load_record
RATE = f"{readers.DECODER.learning_rate:g}"


def decoders() -> list[dict]:
    return record("story_gru")["told and doubted"]["decoder"]


def first_seeds(name: str) -> dict[str, float]:
    """Nats above the lowest loss by rate, with the first seed."""
    return {rate: seeds[0]["above"] for rate, seeds in record("story_gru")["rates"][name].items()}


def after(plan: readers.Longer) -> list[dict]:
    """What the seeds of a longer training reached."""
    return record("story_gru")["longer"][readers.LONGER.index(plan)]["seeds"]


def test_what_is_asked_here_agrees_with_what_other_runs_asked():
    rows = record("staircase")["rows"]["decoder"]
    assert decoders()[0]["by doubt"] == record("story_labels")["without labels"]["decoder"]
    assert [each["possible"] for each in decoders()[: len(rows)]] == [each["possible"] for each in rows]
    for here, there in zip(record("story_gru")["rates"]["decoder"][RATE], rows, strict=False):
        assert here == {name: there[name] for name in here}


def test_the_stored_decoders_are_of_the_rate_that_is_taken_and_others_are_trained(monkeypatch):
    asked = []
    monkeypatch.setattr(growing, "trained", lambda row, seed: asked.append((row.learning_rate, seed)))
    for rate, seed in ((readers.DECODER.learning_rate, 2), (readers.DECODER.learning_rate, 3), (0.01, 0)):
        readers.decoder(rate, seed)
    assert asked == [(readers.DECODER.learning_rate, 3), (0.01, 0)]


def test_both_sides_have_all_seeds_at_the_best_rate_of_those_tried():
    rates = record("story_gru")["rates"]
    for name, tried in readers.RATES.items():
        best = min(first_seeds(name), key=first_seeds(name).__getitem__)
        numbers = {rate: len(seeds) for rate, seeds in rates[name].items()}
        assert numbers == {f"{rate:g}": 1 for rate in tried} | {best: len(readers.SEEDS)}
        assert len(record("story_gru")["told and doubted"][name]) == len(readers.SEEDS)


def test_the_rates_of_both_sides_are_best_between_smaller_and_larger_ones():
    for name, tried in readers.RATES.items():
        assert min(tried) < float(min(first_seeds(name), key=first_seeds(name).__getitem__)) < max(tried)


def test_longer_trainings_have_the_best_rate_of_the_shorter_ones_and_all_their_seeds():
    for plan, found in zip(readers.LONGER, record("story_gru")["longer"], strict=True):
        assert (found["network"], found["times"], found["rate"]) == plan[:3]
        assert len(found["seeds"]) == len(plan.seeds)
    for plan in (readers.LONG_DECODER, readers.LONG_GRU):
        assert plan.rate == float(min(first_seeds(plan.network), key=first_seeds(plan.network).__getitem__))


def test_each_decoder_judges_stories_better_than_the_encoder_without_labels():
    assert min(each["by doubt"] for each in decoders()) > record("story_labels")["without labels"]["encoder"]


def test_each_gru_judges_stories_better_than_the_encoder_with_4_000_labels():
    tuned = record("story_labels")["accuracy"]["pre-trained"]["2000"]["accuracy"]
    assert min(each["by doubt"] for each in record("story_gru")["told and doubted"]["GRU"]) > max(tuned)


def test_trained_for_longer_decoder_and_gru_judge_stories_equally_well():
    decoder, gru = ([each["by doubt"] for each in after(plan)] for plan in (readers.LONG_DECODER, readers.LONG_GRU))
    assert (readers.LONG_DECODER.times, readers.LONG_GRU.times, len(gru)) == (2, 5, 3)
    assert abs(np.mean(decoder) - np.mean(gru)) < min(np.std(decoder), np.std(gru))


def test_after_twice_the_steps_each_decoder_is_ahead_of_counting_that_is_told():
    assert min(each["by doubt"] for each in after(readers.LONG_DECODER)) > max(record("opponents")["stories"])


def test_tuning_with_labels_helps_each_seed_by_at_most_half_a_point():
    for each in record("story_gru")["labelled"].values():
        gains = np.subtract(each["tuned"], each["allowed"])
        assert len(gains) == 3
        assert (gains > 0).all()
        assert (gains <= 0.5).all()


def test_more_steps_bring_each_seed_nearer_to_the_lowest_loss():
    for plan in readers.LONGER:
        before = record("story_gru")["rates"][plan.network][f"{plan.rate:g}"]
        if plan.times == 5 and len(plan.seeds) > 1:
            before = after(plan._replace(times=2))
        for one, other in zip(before, after(plan), strict=False):
            assert other["above"] < one["above"]


def test_the_gru_takes_its_steps_in_less_time_than_the_decoder():
    plans = (readers.LONG_DECODER, readers.LONG_GRU)
    decoder, gru = (plan.times * record("story_gru")["seconds"][plan.network] for plan in plans)
    assert gru < decoder
