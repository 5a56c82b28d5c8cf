"""The decoder of things copies as its card states."""

import re

import numpy as np

import plainformer as pf
from lab import things_lines
from lab.records import LAB
from lab.things_decoder import run as things_decoder_run
from plainformer.models.stored import load_pretrained


def rows_of(card: str) -> dict[str, list[str]]:
    """The rows of a card's table, by their first cells."""
    rows = [line.strip("| ").split(" | ") for line in card.splitlines() if line.startswith("| ")]
    return {name: [cell.strip(" |%") for cell in cells] for name, *cells in rows}


def test_things_decoder_copies_as_its_card_states():
    card = (LAB / "things_decoder" / "card.md").read_text(encoding="utf-8")
    rows = rows_of(card)
    model, vocabulary = load_pretrained("things_decoder")
    assert model.config == things_decoder_run.DECODER
    assert vocabulary.to_json() == things_lines.VOCABULARY.to_json()
    lines = things_decoder_run.lines_to_judge(pf.data.thing_splits().test)
    texts = [", ".join(line) for line in lines]
    found = things_decoder_run.by_name(things_decoder_run.surprise_by_letter(model, texts), lines)
    np.testing.assert_allclose(found, [float(cell) for cell in rows["decoder, seed 0"]], atol=0.02)
    seeds = [[float(cell) for cell in rows[f"decoder, seed {seed}"]] for seed in things_lines.SEEDS]
    assert max(max(each[1:]) for each in seeds) < 2 < 2.4 < min(float(cell) for cell in rows["10-gram"])
    first, again = (re.findall(r"\d\.\d\d", part)[0] for part in card[card.index("**Copying") :].split(";")[:2])
    copied = things_decoder_run.first_and_again(model, things_decoder_run.invented_words(200))
    np.testing.assert_allclose(copied, (float(first), float(again)), atol=0.02)
