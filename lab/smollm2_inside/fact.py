"""A fact moved in SmolLM2: the capital of one country, by the stream of a prompt about another."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.inside.study import share, summary
from lab.records import kept
from lab.smollm2_inside.model import BLOCKS, HEADS, KEPT, opened
from plainformer.models import effect, patch

# The ten states of Europe with the most inhabitants of which name, without an article, and capital are one token each.
CAPITALS = {
    "Russia": "Moscow",
    "Germany": "Berlin",
    "France": "Paris",
    "Italy": "Rome",
    "Spain": "Madrid",
    "Poland": "Warsaw",
    "Belgium": "Brussels",
    "Sweden": "Stockholm",
    "Portugal": "Lisbon",
    "Greece": "Athens",
}
ASKED, UNRELATED = "The capital of {} is", "The colour of snow is"
COUNTRY, LAST = 3, 4  # tokens of each of the two
STREAM = ["stack.input", *(f"stack.blocks.{block}.output" for block in range(BLOCKS))]


class Moved:
    """Pairs of prompts that differ in the country; each is patched from the other and from an unrelated prompt."""

    def __init__(self, stride: int = 1):
        self.model, tokenizer = opened()
        pairs = list(itertools.permutations(CAPITALS, 2))[::stride]
        self.ours, self.theirs = (
            jnp.asarray([tokenizer.encode(ASKED.format(pair[n])) for pair in pairs]) for n in (0, 1)
        )
        self.unrelated = jnp.asarray(tokenizer.encode(UNRELATED))
        self.capitals = np.array([[tokenizer.encode(f" {CAPITALS[each]}")[0] for each in pair] for pair in pairs])
        self.before, self.after = (self.margin(self.model(ids)) for ids in (self.ours, self.theirs))

    def margin(self, logits) -> jax.Array:
        """The logit of our capital minus that of the other, at the last token."""
        each = np.arange(len(logits))
        return logits[each, -1, self.capitals[:, 0]] - logits[each, -1, self.capitals[:, 1]]

    def named(self, logits) -> list[float]:
        """How often our capital is the likeliest token, and the other."""
        said = np.asarray(logits[:, -1].argmax(axis=-1))
        return [share(said == self.capitals[:, which]) for which in (0, 1)]

    def run(self, which: str) -> dict:
        """The stream in the run on the other prompts, or on the one that is unrelated, the same for all."""
        ids = self.theirs if which == "the other" else self.unrelated
        return {name: x for name, x in pf.look(self.model, ids)[1].items() if name in STREAM}

    def by_depth(self, which: str, at: int) -> list[dict]:
        """What a patch of the stream at one token does, before the first block and after each."""
        source, found = self.run(which), []
        for name in STREAM:
            logits = patch(self.model, self.ours, places={name: np.s_[..., at, :]}, source=source)
            moved = np.asarray(effect(self.margin(logits), self.before, self.after))
            found.append({"effect": summary(moved), "named": self.named(logits)})
        return found

    def of_block(self, block: int) -> list[list[float]]:
        """What a patch of each head of a block at the last token does: a summary of the effects."""
        _, source = pf.look(self.model, self.theirs)
        name = f"stack.blocks.{block}.attention.heads"

        def moved(head: int) -> list[float]:
            logits = patch(self.model, self.ours, places={name: np.s_[..., head, LAST, :]}, source=source)
            return summary(np.asarray(effect(self.margin(logits), self.before, self.after)))

        return [moved(head) for head in range(HEADS)]


def of_depth(which: str, at: int) -> list[dict]:
    """All depths of one kind of patch."""
    return Moved().by_depth(which, at)


PATCHED = {
    "the other, country": ("the other", COUNTRY),
    "the other, last": ("the other", LAST),
    "unrelated, last": ("unrelated", LAST),
}


def of_fact() -> dict:
    """All pairs as they are, and patched at each depth."""

    def whole() -> dict:
        moved = Moved()
        right = [share(moved.before > 0), share(moved.after < 0)]
        return {"pairs": len(moved.ours), "right": right, "named": moved.named(moved.model(moved.ours))}

    found = kept(KEPT / "pairs.json", whole)
    found |= {name: kept(KEPT / f"{name}.json", partial(of_depth, *kind)) for name, kind in PATCHED.items()}
    block = last_at(found["the other, country"])
    heads = kept(KEPT / "block.json", lambda: Moved().of_block(block))
    return found | {"block": block, "heads of the block": heads}


def turned_in(found: list[dict]) -> list[float]:
    """The share of pairs in which the other capital becomes the likeliest token, at each depth."""
    return [each["named"][1] for each in found]


def last_at(found: list[dict]) -> int:
    """After how many blocks a patch turns most pairs for the last time: the block that comes then moves the fact."""
    return max(depth for depth, share in enumerate(turned_in(found)) if share > 0.5)
