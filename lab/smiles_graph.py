"""Molecules in SMILES written again from another atom: the same molecule, other text. No stereochemistry."""

from typing import Any

import numpy as np

from plainformer.pretrained.reactions import is_atom
from plainformer.pretrained.smiles import PATTERN

BONDS = "-=#:"


def bonds_of(molecule: str) -> tuple[list[str], dict[int, list[tuple[int, str]]]]:
    """The atoms of a molecule as they are written, and of each one its neighbours and the bonds to them."""
    atoms: list[str] = []
    bonds: dict[int, list[tuple[int, str]]] = {}
    opened: dict[str, tuple[int, str]] = {}
    branches: list[Any] = []
    last: Any = None
    bond = ""

    def join(one: int, other: int, kind: str) -> None:
        bonds[one].append((other, kind))
        bonds[other].append((one, kind))

    for token in PATTERN.findall(molecule):
        if is_atom(token):
            atoms.append(token)
            bonds[len(atoms) - 1] = []
            if last is not None:
                join(last, len(atoms) - 1, bond)
            last, bond = len(atoms) - 1, ""
        elif token in BONDS:
            bond = token
        elif token == "(":
            branches.append(last)
        elif token == ")":
            last = branches.pop()
        elif token.isdigit() and token in opened:
            other, kind = opened.pop(token)
            join(last, other, kind or bond)
            bond = ""
        elif token.isdigit():
            opened[token], bond = (last, bond), ""
        else:
            raise ValueError(f"{molecule} has {token!r}, which is not read here.")
    return atoms, bonds


def rewritten(molecule: str, rng: np.random.Generator) -> str:
    """The same molecule from an atom drawn at random, its branches in an order drawn at random."""
    atoms, bonds = bonds_of(molecule)
    ring_bonds: dict[tuple[int, int], str] = {}
    children: dict[int, list[tuple[int, str]]] = {}
    seen: list[int] = []

    def visit(atom: int, parent: int | None) -> None:
        seen.append(atom)
        children[atom] = []
        for other, kind in (bonds[atom][i] for i in rng.permutation(len(bonds[atom]))):
            if other == parent:
                continue
            if other in seen:
                ring_bonds.setdefault((min(atom, other), max(atom, other)), kind)
            else:
                children[atom].append((other, kind))
                visit(other, atom)

    visit(int(rng.integers(len(atoms))), None)
    number = {pair: str(n + 1) for n, pair in enumerate(ring_bonds)}

    def spelt(atom: int) -> str:
        rings = "".join(
            (kind if atom == pair[0] else "") + number[pair] for pair, kind in ring_bonds.items() if atom in pair
        )
        parts = [kind + spelt(other) for other, kind in children[atom]]
        return atoms[atom] + rings + "".join(f"({part})" for part in parts[:-1]) + "".join(parts[-1:])

    return spelt(seen[0])


def reaction_rewritten(reaction: str, rng: np.random.Generator, *, from_other_atoms: bool) -> str:
    """A reaction with what is put in in an order drawn at random; and if wished, each molecule written again."""
    sides = []
    for side in reaction.split(">>"):
        molecules = side.split(".")
        drawn = [molecules[i] for i in rng.permutation(len(molecules))]
        sides.append(".".join(rewritten(each, rng) if from_other_atoms else each for each in drawn))
    return ">>".join(sides)
