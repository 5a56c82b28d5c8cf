"""The other texts for the encoder of names are what they are called, and its vectors tell languages apart."""

from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from lab.encoder import run as encoder_run
from lab.encoder_lines import run as lines


@cache
def names() -> list:
    return [name for name in pf.data.name_splits().training if name.language in ("fi", "pl")]


def texts_of(kind: str) -> list[str]:
    batch = lines.batches(kind, names(), seed=0)(0)
    assert not bool((batch.is_selected & ~batch.is_token).any())
    assert 0.2 < float(batch.is_selected.sum() / batch.is_token.sum()) < 0.4
    return [
        encoder_run.VOCABULARY.decode(np.asarray(row)[there].tolist())
        for row, there in zip(batch.targets, np.asarray(batch.is_token), strict=True)
    ]


def languages_of(text: str) -> set[str]:
    return {name.language for part in text.split(", ")[:-1] for name in names() if name.text == part}


@pytest.mark.parametrize(("kind", "most"), [("lines of one language", 1), ("lines of all languages", 2)])
def test_lines_are_of_one_language_or_of_all(kind, most):
    texts = texts_of(kind)
    assert {len(text) for text in texts} == {lines.ENCODER.context_len}
    assert max(len(languages_of(text)) for text in texts) == most


def test_single_names_are_whole_or_cut_after_twenty_letters():
    texts = texts_of("single names")
    assert len(texts) == lines.NAMES_PER_LINE * lines.BATCH_SIZE
    assert set(texts) <= {name.text[:20] for name in names()}
    of_lines = sum(map(len, texts_of("lines of one language")))
    assert sum(map(len, texts)) == pytest.approx(of_lines, rel=0.25)


def test_recognised_is_chance_for_vectors_that_say_nothing_and_more_for_the_stored_encoder():
    splits = pf.data.name_splits()
    stored, _ = pf.load_pretrained("encoder")
    known, asked = (lines.mean_vectors(stored.encoder, names) for names in (splits.training, splits.test))
    assert lines.recognised(np.ones_like(known), np.ones_like(asked), splits, 5, 0) < 0.12
    assert lines.recognised(known, asked, splits, 5, 0) > 0.25


def test_mean_vectors_are_of_the_letters_without_the_class_token():
    def shows_ids(tokens, is_token):
        return jnp.pad(tokens.astype(jnp.float32), ((0, 0), (1, 0)), constant_values=1000)[..., None]

    name = names()[0]._replace(text="Peru")
    ids = encoder_run.VOCABULARY.encode("Peru")
    np.testing.assert_allclose(lines.mean_vectors(shows_ids, [name]), [[sum(ids) / 4]], rtol=1e-6)
