"""The decoder of things copies as recorded."""

import numpy as np

import plainformer as pf
from lab import things_lines
from lab.things_decoder import run as things_decoder_run
from plainformer.models.stored import load_pretrained


def test_things_decoder_copies_as_recorded():
    recorded = pf.data.load_record("things_decoder")
    rows = recorded["names"]
    model, vocabulary = load_pretrained("things_decoder")
    assert model.config == things_decoder_run.DECODER
    assert vocabulary.to_json() == things_lines.VOCABULARY.to_json()
    lines = things_decoder_run.lines_to_judge(pf.data.thing_splits().test)
    texts = [", ".join(line) for line in lines]
    found = things_decoder_run.by_name(things_decoder_run.surprise_by_letter(model, texts), lines)
    np.testing.assert_allclose(found, rows["decoder, seed 0"], atol=0.02)
    seeds = [rows[f"decoder, seed {seed}"] for seed in things_lines.SEEDS]
    assert max(max(each[1:]) for each in seeds) < 2 < 2.4 < min(rows["10-gram"])
    copied = things_decoder_run.first_and_again(model, things_decoder_run.invented_words(200))
    np.testing.assert_allclose(copied, [*recorded["words"][0].values()], atol=0.02)
