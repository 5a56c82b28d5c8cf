"""The decoder of things copies as recorded."""

import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab import things_lines
from lab.things_decoder import run as things_decoder_run
from lab.things_decoder.next_letter_by_counting import NAME, evidence, votes_before
from lab.things_encoder.things_by_counting import ngram_model, surprises
from lab.things_lines import VOCABULARY
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


def test_at_the_fourth_name_the_decoder_is_ahead_of_counting_with_votes_with_each_seed():
    recorded = pf.data.load_record("things_decoder")
    fourth = [recorded["names"][f"decoder, seed {seed}"][NAME] for seed in things_lines.SEEDS]
    assert max(fourth) < recorded["counted by votes"] - 2 * np.ptp(fourth)
    assert recorded["counted by votes"] < recorded["names"]["10-gram"][NAME]


def test_votes_by_hand():
    """The r of Norja and of Norwegen stands, as the one in question, behind a beginning and two letters."""
    votes = votes_before("Norge", 2, ["Norja", "Norwegen"])
    (letter,) = VOCABULARY.encode("r")
    assert votes[letter, 4] == 2
    assert votes.sum() == 2


def test_the_next_letter_of_a_name_that_its_earlier_names_spell_is_less_of_a_surprise():
    line = ["Norja", "Norwegen", "Norvege", "Norge"]
    found = evidence(ngram_model({"x": ["Wien", "Wenen"]}), [line])
    weights = {"name": jnp.array(1.0), "votes": jnp.full(25, 0.5), "scale": jnp.zeros(25)}
    weights["pairs"] = jnp.zeros((len(VOCABULARY), len(VOCABULARY)))
    assert len(found.right) == len("Norge")
    assert float(surprises(weights, found)[0][2]) < float(
        surprises(weights, found._replace(votes=0 * found.votes))[0][2]
    )
