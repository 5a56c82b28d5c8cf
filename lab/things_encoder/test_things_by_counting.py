"""The opponent of the encoder of things, by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lab import things_lines
from lab.things_encoder import run as things_encoder_run
from lab.things_encoder.things_by_counting import (
    MOST,
    Evidence,
    evidence,
    learn_weights,
    ngram_model,
    num_agreeing,
    parted,
    surprises,
    votes_of,
)
from lab.things_lines import VOCABULARY, line_of, questions

THINGS = {"territory NO": ["Norge", "Norwegen", "Norvège", "Norja"], "city X": ["Wien", "Wenen"]}


@pytest.mark.parametrize(
    ("ours", "theirs", "number"),
    [("", "", 1), ("a", "", 0), ("ab", "ab", 3), ("ab", "abc", 2), ("abcdef", "abcdef", MOST), ("ab", "b", 0)],
)
def test_neighbours_that_agree(ours, theirs, number):
    assert num_agreeing(ours, theirs) == number


def test_votes_by_hand():
    # N?rge: the o of Norja has the N and the beginning on its left, and an r on its right.
    votes = votes_of("Norge", 1, ["Norja"])
    (letter, kind) = np.argwhere(votes)[0]
    assert VOCABULARY.decode([int(letter)]) == "o"
    assert divmod(kind, MOST + 1) == (2, 1)
    assert votes.sum() == 1
    assert votes_of("Norge", 1, ["Norja", "Norwegen"])[letter].sum() == 2


def test_lines_hold_whole_names_of_one_thing():
    rng = np.random.default_rng(0)
    for _ in range(20):
        line = line_of(THINGS["territory NO"] * 3, rng)
        assert len(", ".join(line)) <= things_lines.LENGTH
        assert set(line) <= set(THINGS["territory NO"])
    for line, name, place in questions(THINGS, 50):
        assert sorted(line) == sorted(THINGS["territory NO"])  # the other has fewer than four names
        assert 0 <= place < len(line[name])


def test_what_is_set_aside_to_learn_weights_by_is_in_no_name_that_is_left():
    things = {f"territory {n}": [f"Land{n}x", f"Pays{n}x"] for n in range(8)}
    things["city 0"] = ["Great LAND4X", "Ville", "Stadt"]
    things["city 1"] = ["pays0x du nord", "Dorf"]
    aside, left = parted(things)
    assert list(aside) == ["territory 0", "territory 4"]
    assert left["city 0"] == ["Ville", "Stadt"]
    assert "city 1" not in left  # a single name is left of it
    assert left["territory 1"] == things["territory 1"]


def test_weights_learn_to_believe_the_other_names():
    asked = questions(THINGS, 60)
    given = evidence(ngram_model({"city X": THINGS["city X"]}), asked)
    before = -given.log_probs[np.arange(len(asked)), given.right].mean()
    np.testing.assert_allclose(np.exp(given.log_probs).sum(axis=1), 1, rtol=1e-6)
    blind = Evidence(given.log_probs, np.zeros_like(given.votes), given.right)
    with jax.numpy_dtype_promotion("standard"):  # optax counts in integers
        after, without = (surprises(learn_weights(each, 100), each)[0].mean() for each in (given, blind))
    assert after < before - 1
    assert after < without - 0.5


@pytest.mark.parametrize("alone", [False, True])
def test_the_encoder_is_asked_where_the_question_stands(alone):
    asked = [(["Norge", "Norwegen", "Norja"], 1, 3), (["Norja", "Norge"], 0, 0)]
    seen = []

    def knows(ids, is_token):
        """Logits that are right everywhere but at the hole, and there say w."""
        seen.append(np.asarray(ids))
        shown = jnp.where(ids == things_encoder_run.MASKING["mask_token"], VOCABULARY.encode("w")[0], ids)
        return 20.0 * jax.nn.one_hot(shown, len(VOCABULARY))

    with jax.disable_jit():
        surprise, is_right = things_encoder_run.surprises(knows, asked, alone)
    texts = ["".join(VOCABULARY.decode([int(i)]) if i > 2 else "□" for i in row[row > 0]) for row in seen[0]]
    assert texts == (["Nor□egen", "□orja"] if alone else ["Norge, Nor□egen, Norja", "□orja, Norge"])
    assert is_right.tolist() == [True, False]
    assert surprise[0] < 1e-3 < 5 < surprise[1]
