"""Which atom became which: in reactions whose atoms have numbers, and by the attention of a model."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from plainformer.checks import checked
from plainformer.data.lists import check_list
from plainformer.pretrained.smiles import PATTERN, SPECIAL

ARROW = ">>"
ATOM = re.compile(r"\[[^\]]+\]|Br|Cl|[BCNOPSFIbcnops]")
ELEMENT = re.compile(r"\[?\d*(Br|Cl|[A-Z][a-z]?|[bcnops])")
NUMBERED = re.compile(r"\[([^\]:]+):(\d+)\]")
# What needs no brackets: an element of organic chemistry whose hydrogens follow from its bonds.
BARE = re.compile(r"(Br|Cl|[BCNOPSFI])(?:H\d*)?|(c)(?:H\d*)?|([bnops])")


class NumberedReaction(NamedTuple):
    """A reaction as a model reads it, and what is known of its atoms: a number for each token, 0 for none."""

    reaction: str
    numbers: tuple[int, ...]


@checked
def read_numbered(text: str) -> NumberedReaction:
    r"""Take the numbers out of a reaction such as `"[CH3:1][OH:2]>>[CH2:1]=[O:2]"`.

    Raises:
        ValueError: if it has no `>>`.

    Example:
        Both sides of an oxidation.

        >>> pf.pretrained.read_numbered("[CH3:1][OH:2]>>[CH2:1]=[O:2]")
        NumberedReaction(reaction='CO>>C=O', numbers=(1, 2, 0, 1, 0, 2))
    """
    found = [NUMBERED.fullmatch(token) or token for token in PATTERN.findall(text)]
    tokens = [each if isinstance(each, str) else _without_brackets(each[1]) for each in found]
    _arrow_in(tokens)
    return NumberedReaction("".join(tokens), tuple(0 if isinstance(each, str) else int(each[2]) for each in found))


def _without_brackets(atom: str) -> str:
    """An atom as it is usually written: without its hydrogens where these follow from its bonds."""
    found = BARE.fullmatch(atom)
    return f"[{atom}]" if found is None else next(filter(None, found.groups()))


def _arrow_in(tokens: Sequence[str]) -> int:
    """Where the sign between both sides stands."""
    if (count := list(tokens).count(ARROW)) != 1:
        raise ValueError(
            f"The reaction has {count} signs {ARROW}; expected one, between what is put in and what comes out."
        )
    return list(tokens).index(ARROW)


def is_atom(token: str) -> bool:
    """Whether a token is an atom, rather than a bond, a bracket, the number of a ring or a special token."""
    return ATOM.fullmatch(token) is not None and token not in SPECIAL


def element_of(token: str) -> str:
    """The element of an atom, such as `"C"` for `"c"` and `"O"` for `"[O-]"`."""
    found = ELEMENT.match(token)
    return token if found is None else found[1].capitalize()


@checked
def atom_places(tokens: Sequence[str]) -> tuple[list[int], list[int]]:
    """The places of the atoms among the tokens of a reaction, those before the arrow and those behind it.

    Raises:
        ValueError: if there is not one arrow, or no atom on a side of it.
    """
    check_list("tokens", tokens, "tokens")
    arrow = _arrow_in(tokens)
    places = [place for place, token in enumerate(tokens) if is_atom(token)]
    before, behind = [p for p in places if p < arrow], [p for p in places if p > arrow]
    if not before or not behind:
        raise ValueError(
            f"The reaction has {len(before)} atoms before {ARROW} and {len(behind)} behind; expected some."
        )
    return before, behind


@checked
def map_atoms(weights: Float[Array, "*heads seq seq"], tokens: Sequence[str]) -> Integer[Array, "*heads atoms"]:
    r"""Return for each atom that comes out the atom of the same element, among those put in, that it attends to most.

    Implements `eq-pretrained-atom-map`; Schwaller et al. (2021), whose program also goes on to add the attention in the
    other direction and to favour neighbours of atoms that it has mapped.

    Args:
        weights: attention weights, a row for each token that attends.
        tokens: what was read, special tokens included.

    Returns:
        Places among the tokens, of the atoms behind the arrow from left to right; -1 where no such element was put in.

    Raises:
        ValueError: if there are more or fewer tokens than rows, or as `atom_places` does.

    Example:
        Three tokens: the carbon that comes out attends to the one that was put in.

        >>> pf.pretrained.map_atoms(jnp.asarray([[1, 0, 0], [0, 1, 0], [0.9, 0.1, 0]]), ["C", ">>", "C"]).tolist()
        [0]
    """
    if len(tokens) != weights.shape[-1]:
        raise ValueError(
            f"There are {len(tokens)} tokens and attention weights of {weights.shape[-1]}; expected those of one "
            'reading. Did you leave out "[CLS]" and "[SEP]"?'
        )
    before, behind = atom_places(tokens)
    same = np.asarray([[element_of(tokens[p]) == element_of(tokens[e]) for e in before] for p in behind])
    most = jnp.where(same, weights[..., behind, :][..., before], -1.0).argmax(axis=-1)
    return jnp.where(same.any(axis=-1), jnp.asarray(before)[most], -1)
