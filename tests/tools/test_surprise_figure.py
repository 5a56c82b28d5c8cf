"""The live figure of surprise stands on the stored model's own numbers, and shows what the chapter says of it."""

import json

import numpy as np
import surprise_figure

from plainformer.models.stored import load_pretrained

STORED = json.loads(surprise_figure.NUMBERS.read_text("utf-8"))["texts"]


def test_surprise_figure_has_the_stored_models_numbers():
    made = surprise_figure.surprise_numbers(*load_pretrained("decoder"))["texts"]
    assert [text["text"] for text in STORED] == surprise_figure.TEXTS
    for old, new in zip(STORED, made, strict=True):
        # Other machines add in another order, and what is stored is rounded to four decimals.
        np.testing.assert_allclose(old["surprises"], new["surprises"], atol=2e-3)
        for before, after in zip(old["expected"], new["expected"], strict=True):
            np.testing.assert_allclose([share for _, share in before], [share for _, share in after], atol=2e-3)


def test_surprise_figure_shows_what_the_chapter_says():
    usual, english, disorder, repeated = (np.array(text["surprises"]) for text in STORED)
    assert english.mean() > 2 * usual.mean()
    assert english.mean() < disorder.mean() < english.mean() + 0.5
    one, two, three = (repeated[start : start + 21].mean() for start in (0, 22, 44))
    assert min(two, three) > one - 0.1
    text = STORED[0]["text"]
    begins = np.array([text[n - 1] == " " for n in range(1, len(text))])
    assert usual[begins].mean() > 3 * usual[~begins].mean()
    assert all(word in english_words(STORED[1]) for word in english_words(STORED[2]))


def english_words(text):
    return text["text"].lower().rstrip(".").split()
