"""The language model of documentation is as good as recorded, as its texts and sizes grow."""

import numpy as np
import pytest

import plainformer as pf
from lab import language_models
from lab.docstrings import run as docstrings_run
from plainformer.models.stored import load_pretrained

record = pf.data.load_record


def test_language_models_have_the_recorded_loss_on_the_lines_shown():
    recorded, (model, tokenizer) = record("docstrings"), load_pretrained("docstrings")
    assert len(tokenizer) == docstrings_run.VOCAB_SIZE
    assert model.config == language_models.decoder_config(docstrings_run.SIZES["small"], len(tokenizer))
    found = language_models.nats_per_character(model, tokenizer.encode(recorded["real"]), len(recorded["real"]))
    assert found == pytest.approx(recorded["real loss"], abs=0.002)


def test_larger_language_models_have_smaller_losses_and_so_have_longer_texts():
    docs, plays = record("docstrings"), record("shakespeare")
    losses = [one["loss"] for one in docs["sizes"].values()]
    of_shares = [*(one["loss"] for one in docs["shares"].values()), docs["sizes"]["middle"]["loss"]]
    counts = [docstrings_run.best_count(docs, n) for n in (*docstrings_run.SHARES, 1)]
    of_plays = [one["curve"][-1][1] for one in plays["sizes"].values()]
    for falling in (losses, of_shares, counts, of_plays):
        assert falling == sorted(falling, reverse=True)
    assert docs["stored loss"] == pytest.approx(docs["sizes"]["small"]["loss"], abs=0.002)
    assert plays["stored loss"] == pytest.approx(of_plays[-1], abs=0.001)  # what eight bits cost
    assert np.mean(record("holes")["names"]["5-gram"]) < np.mean(record("holes")["names"]["encoder"]) - 0.3


def test_passes_are_counted_in_the_tokens_of_the_text():
    recorded, (_, tokenizer) = record("docstrings"), load_pretrained("docstrings")
    learned, judged = np.divide(recorded["characters"], recorded["tokens"])
    shown = len(recorded["real"]) / len(tokenizer.encode(recorded["real"]))
    assert learned == pytest.approx(judged, rel=0.01)
    assert learned == pytest.approx(shown, rel=0.1)  # of 600 characters
    size = language_models.Size(8, 0.0, 10)
    assert language_models.passes(size, 2 * language_models.BATCH_SIZE * language_models.LENGTH) == 5


def test_a_share_of_a_text_comes_from_everywhere():
    tokenizer = pf.BytePairEncoder.train("abc " * 20, 258)
    first = "".join(f"{number:07}\n" for number in range(40_000))  # 320,000 characters
    whole = language_models.Text(tokenizer, (first, "held out"), ([], [7]))
    short = docstrings_run.share_of(whole, 3)
    assert short.parts == (first[:50_000] + first[150_000:200_000] + first[300_000:], "held out")
    assert tokenizer.decode(short.ids[0]) == short.parts[0]
    assert short.ids[1] == [7]


def test_bits_per_byte_are_nats_per_character_in_other_units():
    found = {"characters": [9, 10], "bytes": [9, 20]}
    assert docstrings_run.bits_per_byte(np.log(4), found) == pytest.approx(1.0)


def ahead() -> dict[str, float]:
    """By how many nats each size is ahead of the best count on the same text, and the middle one on shares of it."""
    docs = record("docstrings")
    of = {name: (1, one["loss"]) for name, one in docs["sizes"].items()}
    of |= {one_in: (int(one_in), one["loss"]) for one_in, one in docs["shares"].items()}
    return {name: docstrings_run.best_count(docs, one_in) - loss for name, (one_in, loss) in of.items()}


def test_the_small_model_is_behind_the_best_count_and_the_larger_the_model_the_farther_ahead():
    assert ahead()["small"] < 0 < ahead()["middle"] < ahead()["large"] < ahead()["largest"]


def test_with_150_000_characters_counting_is_far_ahead():
    assert -ahead()["100"] > 5 * max(ahead()["10"], ahead()["middle"])


def test_with_a_million_characters_the_network_is_ahead_and_with_ten_million_by_no_more():
    assert 0 < ahead()["middle"] <= ahead()["10"]


def test_lines_drawn_straight_cross_where_they_do():
    sizes = {name: {"parameters": n, "loss": loss} for name, n, loss in (("a", 10, 1.5), ("b", 1000, 0.5))}
    shares = {"100": {"characters": 100, "loss": 2.5}, "10": {"characters": 10_000, "loss": 0.5}}
    found = {"sizes": sizes, "shares": shares, "counted": {n: {"pairs": {"2": 1.0}} for n in ("100", "10", "1")}}
    assert docstrings_run.crossings(found) == {"numbers": pytest.approx(100), "characters": pytest.approx(3162.28)}


def test_the_lines_cross_between_the_two_smallest_sizes_and_between_the_two_shares():
    docs, level = record("docstrings"), docstrings_run.crossings(record("docstrings"))
    numbers = [one["parameters"] for one in docs["sizes"].values()]
    lengths = [one["characters"] for one in docs["shares"].values()]
    assert numbers[0] < level["numbers"] < numbers[1]
    assert lengths[0] < level["characters"] < lengths[1]
