"""The chemist's model does what is recorded of it, and what the chapter on models of others says of it."""

import numpy as np
import pytest

import plainformer as pf
from lab import chemist
from lab.smiles_graph import bonds_of, reaction_rewritten, rewritten

record = pf.data.load_record


def atoms_and_bonds(molecule):
    """What does not depend on the writing: each atom with its neighbours, in order."""
    atoms, bonds = bonds_of(molecule)
    return sorted((atoms[one], sorted((atoms[other], kind) for other, kind in each)) for one, each in bonds.items())


def test_a_molecule_written_from_another_atom_is_the_same():
    rng = np.random.default_rng(0)
    for text in pf.data.textbook_reactions().values():
        for molecule in text.replace(">>", ".").split("."):
            for _ in range(3):
                assert atoms_and_bonds(rewritten(molecule, rng)) == atoms_and_bonds(molecule)


def test_a_reaction_in_another_order_has_the_same_molecules():
    text = pf.data.textbook_reactions()["esterification"]
    again = reaction_rewritten(text, np.random.default_rng(1), from_other_atoms=False)
    assert [sorted(side.split(".")) for side in again.split(">>")] == [
        sorted(side.split(".")) for side in text.split(">>")
    ]


def test_what_is_not_read_of_a_molecule_is_named():
    with pytest.raises(ValueError, match="has '/', which is not read here"):
        bonds_of("C/C=C/C")


def test_the_opponents_map_as_they_say():
    tokens = ["[CLS]", "C", "O", ".", "O", "C", ">>", "O", "C", "C", "[SEP]"]
    before, behind = [1, 2, 4, 5], [7, 8, 9]
    assert chemist.nearest(tokens, before, behind) == [4, 5, 5]
    assert chemist.in_turn(tokens, before, behind) == [2, 1, 5]
    assert chemist.common_pieces(tokens, before, behind) == [4, 5, 1]


def test_a_reaction_is_judged_as_recorded():
    found = [chemist.judged(text) for text in list(pf.data.textbook_reactions().values())[:2]]
    assert [each["heads"][10][5] for each in found] == [11, 5]
    assert [each["common pieces"] for each in found] == [11, 5]


def test_the_comparison_of_texts_depends_on_how_the_thioether_is_written():
    in_the_readme = (
        "[CH3:1][CH:2]([CH3:3])[SH:4].CN(C)C=O.[F:11][c:10]1[cH:9][cH:8][cH:7][n:6][c:5]1F.O=C([O-])[O-].[K+].[K+]"
        ">>[CH3:1][CH:2]([CH3:3])[S:4][c:5]1[n:6][cH:7][cH:8][cH:9][c:10]1[F:11]"
    )
    mapped = []
    for text in (pf.data.textbook_reactions()["thioether"], in_the_readme):
        reaction, numbers = pf.pretrained.read_numbered(text)
        tokens, numbers = ["[CLS]", *pf.pretrained.smiles.PATTERN.findall(reaction), "[SEP]"], (0, *numbers, 0)
        before, behind = pf.pretrained.atom_places(tokens)
        found = chemist.common_pieces(tokens, before, behind)
        mapped.append(sum(numbers[m] == numbers[n] for m, n in zip(found, behind, strict=True)))
    assert reaction == "CC(C)S.CN(C)C=O.Fc1cccnc1F.O=C([O-])[O-].[K+].[K+]>>CC(C)Sc1ncccc1F"
    assert mapped == [11, 6]


def test_only_the_first_kind_of_segment_was_trained():
    model, _ = pf.open_model(pf.pretrained.packaged_folder("rxnmapper"))
    used, unused = np.asarray(model.encoder.segment_embedding.weight).std(axis=1)
    assert unused < 0.022 < 0.1 < used  # BERT's initial deviation is 0.02


def test_small_mistakes_pass_the_test_of_hidden_tokens():
    found = {name: each["right"] for name, each in record("reactions")["mistakes"].items()}
    passed = {name for name, right in found.items() if right == found["none"]}
    assert {"11 blocks for 12", "13 blocks for 12", "eps 0.1 for 1e-12"} < passed < found.keys()


def test_head_6_is_not_missed_in_any_one_block():
    found = record("reactions")
    silenced = [each["right"] for name, each in found["silenced"].items() if name.startswith("head 6 of block")]
    assert silenced == 12 * [found["mistakes"]["none"]["right"]]


def test_head_6_is_missed_more_than_any_other_head_if_it_is_silenced_everywhere():
    silenced = {name: each["right"] for name, each in record("reactions")["silenced"].items() if "block" not in name}
    assert silenced.pop("head 6") < min(silenced.values())
