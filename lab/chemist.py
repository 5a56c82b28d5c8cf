"""The published model of chemistry, its maps of atoms beside simple opponents, and its guesses at hidden tokens."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from plainformer.pretrained import SmilesTokenizer, atom_places, map_atoms, packaged_folder, read_numbered
from plainformer.pretrained.reactions import ARROW, element_of

LONGEST = 96
# The two reactions in the README of rxnmapper, as they stand there.
PUBLISHED = (
    "CC(C)S.CN(C)C=O.Fc1cccnc1F.O=C([O-])[O-].[K+].[K+]>>CC(C)Sc1ncccc1F",
    "C1COCCO1.CC(C)(C)OC(=O)CONC(=O)NCc1cccc2ccccc12.Cl>>O=C(O)CONC(=O)NCc1cccc2ccccc12",
)


@cache
def chemist():
    """The model and its tokenizer."""
    folder = packaged_folder("rxnmapper")
    return pf.open_model(folder, tokenizer=False)[0], SmilesTokenizer.in_folder(folder)


def padded(texts):
    """Ids of reactions, and which of them are tokens."""
    ids = [chemist()[1].encode(text) for text in texts]
    return pf.data.pad_texts(ids, LONGEST)


@eqx.filter_jit
def all_weights(model, ids, is_token):
    """The attention weights of all blocks and heads."""
    return model.attention_weights(ids, is_token, jnp.zeros_like(ids))


def weights_of(reaction: str, model=None) -> tuple[np.ndarray, list[str]]:
    """Attention weights `(layers, heads, seq, seq)`, and the tokens that were read."""
    published, tokenizer = chemist()
    tokens = ["[CLS]", *tokenizer.split(reaction), "[SEP]"]
    ids, is_token = padded([reaction])
    return np.asarray(all_weights(model or published, ids, is_token))[0, :, :, : len(tokens), : len(tokens)], tokens


def judged(text: str, model=None) -> dict:
    """How many atoms of a numbered reaction each head maps rightly, and each opponent."""
    reaction, known = read_numbered(text)
    numbers = np.array([0, *known, 0])
    weights, tokens = weights_of(reaction, model)
    before, behind = atom_places(tokens)
    right = numbers[behind]
    assert (right > 0).all(), text
    mapped = np.asarray(map_atoms(jnp.asarray(weights), tokens))
    free = np.asarray(before)[weights[:, :, behind][..., before].argmax(-1)]
    guesses = {name: opponent(tokens, before, behind) for name, opponent in OPPONENTS.items()}
    chances = [np.mean(numbers[candidates(tokens, before, place)] == numbers[place]) for place in behind]
    return {
        "atoms": len(behind),
        "heads": (numbers[mapped] == right).sum(-1),
        "any element": (numbers[free] == right).sum(-1),
        **{name: int((numbers[found] == right).sum()) for name, found in guesses.items()},
        "at random": float(sum(chances)),
    }


def candidates(tokens, before, place) -> list[int]:
    """The atoms of the same element among those put in."""
    return [each for each in before if element_of(tokens[each]) == element_of(tokens[place])]


def nearest(tokens, before, behind):
    """The last atom of the same element before the arrow, which is the nearest."""
    return [candidates(tokens, before, place)[-1] for place in behind]


def in_turn(tokens, before, behind):
    """The first carbon is the first carbon, the second the second, and so with each element."""
    used: dict[str, int] = {}
    found = []
    for place in behind:
        element, some = element_of(tokens[place]), candidates(tokens, before, place)
        found.append(some[min(used.get(element, 0), len(some) - 1)])
        used[element] = used.get(element, 0) + 1
    return found


def _unused(some, found) -> int:
    """The last of some atoms that none is mapped to yet, or else the last."""
    return ([each for each in some if each not in found.values()] or some)[-1]


def common_pieces(tokens, before, behind):
    """What is written alike: the longest piece that both sides share, then the longest of the rest, and so on.

    What no piece holds goes to the nearest atom of its element that is still free.
    """
    arrow = tokens.index(ARROW)
    found: dict[int, int] = {}
    free = set(range(len(tokens)))

    def length(i, j):
        k = 0
        while i + k < arrow and j + k < len(tokens) and {i + k, j + k} <= free and tokens[i + k] == tokens[j + k]:
            k += 1
        return k

    while True:
        size, i, j = max((length(i, j), -i, -j) for i in range(1, arrow) for j in range(arrow + 1, len(tokens) - 1))
        if size == 0:
            return [found.get(place, _unused(candidates(tokens, before, place), found)) for place in behind]
        pairs = [(k - i, k - j) for k in range(size)]
        found |= {behind_: before_ for before_, behind_ in pairs}
        free -= {place for pair in pairs for place in pair}


OPPONENTS = {"nearest": nearest, "in turn": in_turn, "common pieces": common_pieces}


@eqx.filter_jit
def _logits(model, ids, is_token, replace):
    segments = jnp.zeros_like(ids)
    return pf.look(model, ids, is_token, segments, replace=replace)[0] if replace else model(ids, is_token, segments)


def hidden_one_by_one(reaction: str, model=None, replace=None):
    """Logits at each token of a reaction while it alone is hidden, `(seq, vocab_size)`, and the tokens."""
    published, tokenizer = chemist()
    ids = np.asarray(tokenizer.encode(reaction))
    places = np.arange(1, len(ids) - 1)
    rows = np.tile(np.pad(ids, (0, LONGEST - len(ids))), (LONGEST, 1))
    rows[np.arange(len(places)), places] = tokenizer.special["[MASK]"]
    is_token = np.broadcast_to(np.arange(LONGEST) < len(ids), rows.shape)
    logits = np.asarray(_logits(model or published, jnp.asarray(rows), jnp.asarray(is_token), replace))
    return logits[np.arange(len(places)), places], ids[places]


def guessed(reactions, model=None, replace=None) -> dict:
    """How many hidden tokens are right, of how many, and their mean surprise in nats."""
    found = [hidden_one_by_one(each, model, replace) for each in reactions]
    logits, ids = (np.concatenate(part) for part in zip(*found, strict=True))
    surprise = -np.asarray(jax.nn.log_softmax(logits))[np.arange(len(ids)), ids]
    return {"right": int((logits.argmax(-1) == ids).sum()), "of": len(ids), "surprise": float(surprise.mean())}
