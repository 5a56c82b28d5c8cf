"""The models of docstrings: the record, its card, what the stored one does, and what chapter 07 says of them."""

import re
from functools import cache

import language_models
import numpy as np
import pytest
import train_docstrings
from records import MODELS

import plainformer as pf

recorded = cache(lambda: pf.data.load_record("docstrings_losses"))
stored = cache(lambda: pf.load_pretrained("docstrings"))


def test_the_card_says_what_was_recorded():
    assert train_docstrings.card(recorded()) == (MODELS / "docstrings.md").read_text(encoding="utf-8")
    assert list(recorded()["sizes"]) == list(train_docstrings.SIZES)
    assert list(recorded()["shares"]) == [str(one_in) for one_in in train_docstrings.SHARES]
    assert recorded()["counted"].keys() == {*recorded()["shares"], "1"}


def test_every_training_went_to_its_end_and_its_loss_is_the_lowest_on_the_way():
    plans = train_docstrings.SIZES | {str(n): size for n, size in train_docstrings.SHARES.items()}
    for name, one in (recorded()["sizes"] | recorded()["shares"]).items():
        assert one["curve"][-1][0] == plans[name].num_steps
        assert one["loss"] == min(loss for _, loss in one["curve"])


def test_the_stored_model_has_the_recorded_loss_on_the_lines_shown():
    model, tokenizer = stored()
    assert len(tokenizer) == train_docstrings.VOCAB_SIZE
    assert model.config == language_models.decoder_config(train_docstrings.SIZES["small"], len(tokenizer))
    shown = recorded()["real"]
    found = language_models.nats_per_character(model, tokenizer.encode(shown), len(shown))
    assert found == pytest.approx(recorded()["real loss"], abs=0.002)
    assert recorded()["stored loss"] == pytest.approx(recorded()["sizes"]["small"]["loss"], abs=0.002)


def test_larger_models_have_smaller_losses_and_so_have_longer_texts():
    losses = [one["loss"] for one in recorded()["sizes"].values()]
    assert losses == sorted(losses, reverse=True)
    of_shares = [one["loss"] for one in recorded()["shares"].values()]
    assert [*of_shares, recorded()["sizes"]["middle"]["loss"]] == sorted([*of_shares, losses[1]], reverse=True)
    counts = [train_docstrings.best_count(recorded(), n) for n in (*train_docstrings.SHARES, 1)]
    assert counts == sorted(counts, reverse=True)


def test_a_share_of_a_text_comes_from_everywhere():
    tokenizer = pf.BytePairEncoder.train("abc " * 20, 258)
    first = "".join(f"{number:07}\n" for number in range(40_000))  # 320,000 characters
    whole = language_models.Text(tokenizer, (first, "held out"), ([], [7]))
    short = train_docstrings.share_of(whole, 3)
    assert short.parts == (first[:50_000] + first[150_000:200_000] + first[300_000:], "held out")
    assert tokenizer.decode(short.ids[0]) == short.parts[0]
    assert short.ids[1] == [7]


def test_bits_per_byte_are_nats_per_character_in_other_units():
    found = {"characters": [9, 10], "bytes": [9, 20]}
    assert train_docstrings.bits_per_byte(np.log(4), found) == pytest.approx(1.0)


def test_the_chapter_says_what_was_recorded():
    (chapter,) = (MODELS.parent / "chapters").glob("*_decoder.md")
    text = re.sub(r"\s+", " ", chapter.read_text(encoding="utf-8"))
    sizes, count = recorded()["sizes"], train_docstrings.best_count(recorded(), 1)
    said = {"middle": "the middle model is {:.2f} nats ahead", "large": "the large one {:.2f}"}
    said["largest"] = "and the largest, eight times the middle model, {:.2f}"
    for name, sentence in said.items():
        assert sentence.format(count - sizes[name]["loss"]) in text
    assert round(sizes["largest"]["parameters"] / sizes["middle"]["parameters"]) == 8
    assert f"the small model is {sizes['small']['loss'] - count:.2f} nats behind the count" in text
