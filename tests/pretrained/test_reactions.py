"""Which atom became which: numbers read from a reaction, and the map that attention gives."""

import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from plainformer.pretrained import atom_places, map_atoms, read_numbered
from plainformer.pretrained.reactions import element_of, is_atom

TOKENS = ["[CLS]", "C", "=", "O", ".", "[O-]", ">>", "C", "O", "(", "N", "[SEP]"]


def test_read_numbered_takes_numbers_out_and_keeps_charges():
    found = read_numbered("[CH3:1][C:2](=[O:3])[O-:4].[nH:5]1[cH:6][cH:6]1.[Na+]>>[CH3:1]Br.[Br:7]")
    assert found.reaction == "CC(=O)[O-].[nH]1cc1.[Na+]>>CBr.Br"
    assert found.numbers == (1, 2, 0, 0, 3, 0, 4, 0, 5, 0, 6, 6, 0, 0, 0, 0, 1, 0, 0, 7)


@pytest.mark.parametrize("text", ["CO", "C>>O>>C"])
def test_read_numbered_wants_one_arrow(text):
    with pytest.raises(ValueError, match=f"has {text.count('>>')} signs >>"):
        read_numbered(text)


def test_atoms_are_told_from_bonds_and_special_tokens():
    assert [token for token in TOKENS if is_atom(token)] == ["C", "O", "[O-]", "C", "O", "N"]
    elements = {"c": "C", "[nH]": "N", "[13CH3]": "C", "Cl": "Cl", "[O-]": "O", "[Na+]": "Na"}
    assert {token: element_of(token) for token in elements} == elements
    assert atom_places(TOKENS) == ([1, 3, 5], [7, 8, 10])


@pytest.mark.equation("eq-pretrained-atom-map")
def test_map_atoms_takes_the_largest_weight_of_the_same_element():
    weights = np.full((2, 12, 12), 0.01)
    weights[0, 7, [1, 3, 8]] = 0.1, 0.5, 0.9  # an oxygen and an atom behind the arrow weigh more
    weights[0, 8, [3, 5]] = 0.2, 0.3
    weights[1, 8, [3, 5]] = 0.3, 0.2
    weights[:, [3, 5], 8] = 0.99  # who attends to it plays no part
    np.testing.assert_array_equal(map_atoms(jnp.asarray(weights), TOKENS), [[1, 5, -1], [1, 3, -1]])


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (TOKENS[1:-1], r"There are 10 tokens and attention weights"),
        (["C"] * 12, "has 0 signs >>"),
        ([">>", *["C"] * 11], "has 0 atoms before >> and 11 behind"),
        (["C", ">>", *["="] * 10], "has 1 atoms before >> and 0 behind"),
    ],
)
def test_reactions_that_are_none_are_named(tokens, said):
    with pytest.raises(ValueError, match=said):
        map_atoms(jnp.ones((12, 12)), tokens)


def test_textbook_reactions_have_a_number_for_every_atom_that_comes_out():
    for name, text in pf.data.textbook_reactions().items():
        reaction, numbers = read_numbered(text)
        tokens = pf.pretrained.SmilesTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]).split(reaction)
        before, behind = atom_places(tokens)
        for n in behind:
            same = {element_of(tokens[m]) for m in before if numbers[m] == numbers[n]}
            assert numbers[n] > 0, name
            assert same == {element_of(tokens[n])}, (name, numbers[n])
