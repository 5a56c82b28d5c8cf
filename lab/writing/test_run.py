"""What decoder and people wrote is as surprising as recorded."""

import sys

import equinox as eqx
import numpy as np
import pytest

import plainformer as pf
from lab.writing import run as writing_run
from plainformer.models.stored import load_pretrained


def test_what_the_decoder_wrote_is_as_surprising_as_recorded():
    """The first four texts of each way, with the last key."""
    recorded, (model, vocabulary) = pf.data.load_record("writing"), load_pretrained("decoder")
    start, beginnings = writing_run.START, recorded["beginnings"]["letters"]
    for name, way in recorded["letters"].items():
        texts = [
            [vocabulary.special["<other>"] if letter == "◦" else vocabulary.encode(letter)[0] for letter in text]
            for text in way["texts"][-1][:4]
        ]
        ids = np.array([[*begun, *text] for begun, text in zip(beginnings, texts, strict=False)])
        found = writing_run.surprises(model, ids, start) / writing_run.LENGTH
        np.testing.assert_allclose(found, way["surprise"][-1][:4], atol=0.003, err_msg=name)
        if name == "greedy":
            logits = np.asarray(eqx.filter_jit(model)(ids[:, :-1]))[:, start - 1 :]
            chosen = np.take_along_axis(logits, ids[:, start:, None], axis=2)[..., 0]
            assert (chosen > logits.max(axis=2) - 0.01).all()


def test_what_people_wrote_is_in_the_text_that_was_held_out():
    recorded, writer = pf.data.load_record("writing"), writing_run.decoder_of_letters()
    if recorded["python"] == f"{sys.version_info.major}.{sys.version_info.minor}":  # the text depends on it
        assert recorded["beginnings"]["letters"] == writer.beginnings()
        people, texts = recorded["letters"]["people"], [writer.text(text[writer.start :]) for text in writer.real()]
        assert people["texts"] == [texts[:4]]
        assert people["repeated"] == [[pytest.approx(writing_run.repeated(text), abs=1e-4) for text in texts]]
        assert writer.known_words(texts) == pytest.approx(people["known words"][0], abs=1e-4)
