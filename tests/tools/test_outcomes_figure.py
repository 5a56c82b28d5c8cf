"""What the landing page shows of the stored models is what they do."""

import json

import jax
import numpy as np
import outcomes_figure
from outcomes_figure import VOCABULARY
from train_decoder import DECODER

import plainformer as pf
from plainformer.models.stored import load_pretrained

NUMBERS = json.loads(outcomes_figure.NUMBERS.read_text("utf-8"))
TEXTS = list(NUMBERS["texts"].values())
SAME = 24  # other machines add in another order, so that one draw in hundreds falls otherwise


def test_first_and_last_text_are_those_of_the_models():
    fresh, stored = pf.Decoder(DECODER, key=jax.random.key(0)), load_pretrained("decoder")[0]
    assert len(TEXTS) == 3
    assert TEXTS[0][:SAME] == outcomes_figure.written(fresh)[:SAME]
    assert TEXTS[2][:SAME] == outcomes_figure.written(stored)[:SAME]


def test_the_texts_come_nearer_to_what_the_stored_model_has_learned():
    stored, _ = load_pretrained("decoder")
    surprises = [
        -float(np.mean(pf.generation.sequence_log_probs(stored, VOCABULARY.encode(text[:120])))) for text in TEXTS
    ]
    assert surprises[0] > surprises[1] + 1 > surprises[2] + 1.5


def test_dates_are_those_that_the_stored_model_writes():
    assert NUMBERS["dates"] == outcomes_figure.dates()


def test_the_digit_is_what_the_model_says():
    image, label, says, looks = outcomes_figure.digit()
    stated = NUMBERS["digit"]
    assert says == label == stated["says"] == stated["label"]
    np.testing.assert_array_equal(stated["pixels"], np.rint(16 * image))
    np.testing.assert_allclose(stated["weights"], looks, atol=0.002)
    assert 0 < looks.sum() <= 1
