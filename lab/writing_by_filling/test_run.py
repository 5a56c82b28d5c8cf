"""The encoder that writes: what is hidden from it, what its loss counts, how its stories are judged, what came out."""

import itertools
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from lab.story_labels.story_encoder import LENGTH, VOCABULARY
from lab.writing_by_filling import run as writing, story_writer
from lab.writing_by_filling.story_writer import MASK

recorded = cache(lambda: pf.data.load_record("writing_by_filling"))
stored = cache(lambda: pf.load_pretrained("story_writer"))
POSSIBLE = ". it is wet . Anna is in the hall . Anna wears boots ."
IMPOSSIBLE = ". it is wet . Anna is in the hall . Anna wears gloves ."


def test_the_stored_encoder_writes_as_recorded():
    model, words = stored()
    assert words.to_json() == VOCABULARY.to_json()
    assert words.decode([MASK]) == "<mask>"
    texts = writing.by_filling(model, writing.starts()["middle"][:60], 16, "surest", 5)
    found = writing.mean_of(recorded()["encoder"]["middle"]["surest"]["16"])
    assert writing.judged(texts)["possible"] == pytest.approx(found, abs=5)
    for text, given in zip(texts, writing.told(), strict=False):
        assert text.split()[: writing.GAP.start] == given.split()[: writing.GAP.start]
        assert text.split()[writing.GAP.stop :] == given.split()[writing.GAP.stop :]


def test_any_number_of_words_is_hidden_but_never_the_first_and_always_by_the_mask():
    ids = jnp.asarray(np.random.default_rng(0).integers(2, 41, size=(4000, LENGTH)))
    batch = story_writer.hidden(ids, jax.random.key(0))
    is_hidden = np.asarray(batch.is_selected)
    np.testing.assert_array_equal(batch.tokens, np.where(is_hidden, MASK, ids))
    np.testing.assert_array_equal(batch.targets, ids)
    counts = np.bincount(is_hidden.sum(axis=1), minlength=LENGTH)
    assert counts[0] == 0
    np.testing.assert_allclose(counts[1:] / 4000, 1 / 63, atol=0.008)
    assert not is_hidden[:, 0].any()
    np.testing.assert_allclose(is_hidden[:, 1:].mean(axis=0), 0.5, atol=0.04)


def test_in_the_bound_every_story_counts_alike():
    log_probs = np.log([[[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]], [[0.9, 0.1], [0.25, 0.75], [0.9, 0.1]]])
    selected = np.array([[True, True, True], [False, True, False]])
    batch = pf.data.MaskedBatch(jnp.ones((2, 3), int), jnp.zeros((2, 3), int), jnp.asarray(selected))
    loss = story_writer.bound(lambda tokens, key: jnp.asarray(log_probs), batch)
    assert loss == pytest.approx((np.log(2) + np.log(4)) / 2)


def test_stories_are_judged_by_their_sentences():
    found = writing.judged([POSSIBLE, IMPOSSIBLE])
    assert found["possible"] == pytest.approx(100 * 5 / 6, abs=0.01)
    assert found["whole"] == 50
    assert found["different"] == 4
    assert found["again"] == found["questions"] == 0
    assert writing.judged([". it is wet . it is wet ."])["again"] == 50
    assert writing.judged(writing.told())["possible"] == 100


def shares(runs: list[dict], what: str = "possible") -> list[float]:
    return [each[what] for each in runs]


def test_more_rounds_write_more_possible_sentences():
    for order in ("surest", "random"):
        found = [shares(runs) for runs in recorded()["encoder"]["whole"][order].values()]
        assert len(found) == 4
        assert all(max(few) < min(more) for few, more in itertools.pairwise(found))


def test_with_sixteen_rounds_a_random_order_writes_more_possible_sentences():
    orders = recorded()["encoder"]["whole"]
    assert min(shares(orders["random"]["16"])) > max(shares(orders["surest"]["16"]))


def test_the_decoder_writes_more_possible_sentences_than_the_encoder_in_any_order():
    decoder = min(shares(recorded()["others"]["whole"]["decoder"]))
    orders = recorded()["encoder"]["whole"]
    best = {order: max(share for runs in each.values() for share in shares(runs)) for order, each in orders.items()}
    assert max(best.values()) < decoder
    assert max(best, key=lambda order: best[order]) == "surest"


def test_the_surest_words_first_write_stories_that_repeat_themselves():
    found, told = recorded()["encoder"]["whole"], recorded()["told"]
    assert min(shares(found["surest"]["63"], "again")) > 3 * told["again"]
    assert max(shares(found["surest"]["63"], "different")) < told["different"] / 2
    for order in ("random", "left"):
        assert max(shares(found[order]["63"], "again")) < 2 * told["again"]


def test_in_the_middle_the_encoder_lies_between_sixteen_and_sixty_four_tries_of_the_decoder():
    found = shares(recorded()["encoder"]["middle"]["surest"]["16"], "whole")
    others = {name: shares(runs, "whole") for name, runs in recorded()["others"]["middle"].items()}
    assert max(others["decoder"]) < max(others["decoder, best of 16"]) < min(found)
    assert max(found) < min(others["decoder, best of 64"])
