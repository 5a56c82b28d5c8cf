"""Which heads of SmolLM2 copy what came before, and which of them are needed: a text of random tokens, said twice."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.records import kept
from lab.smollm2_inside.model import BLOCKS, HEADS, KEPT, opened
from plainformer.models import heads_at, induction_scores, mean_run, patch_path, silence

DRAWS, DRAWN, LEAST, MOST = 2, 60, 1000, 40_000  # texts of so many tokens, drawn between two ids and said twice
OTHERS = 16  # other texts, over which a head's mean is taken
BEST = 4  # heads by their scores
TELLS_BEFORE = (16, 0)  # the head that is missed most: it looks at the token before
COPY = ((17, 3), (18, 6))  # heads that copy, one of each group that has the same keys


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
    for number in range(3):
        groups[f"four others, {number}"] = [others[each] for each in rng.choice(len(others), BEST, replace=False)]
    mean = mean_of_heads(range(100, 100 + OTHERS))

    def lost(heads, instead=None) -> float:
        places, texts = heads_at(mean, heads), [twice(draw) for draw in range(DRAWS)]
        said = [halves(silence(model, ids, places=places, instead=instead), ids)[1] for ids in texts]
        return round(float(np.mean(said)), 3)

    found = {name: {"heads": heads, "again": lost(heads)} for name, heads in groups.items()}
    by_mean = [{"head": head, "again": lost([head], mean)} for head in dict.fromkeys([*copying, *costly])]
    return {"groups": found, "by the mean": by_mean}


def of_paths() -> dict[str, float]:
    """Nats of the second time when a head that copies misses what the head of the token before tells it directly."""
    model, (block, _) = opened()[0], TELLS_BEFORE

    def lost(draw: int, receiver: tuple[int, int], part: str) -> float:
        ids = twice(draw)
        _, seen = pf.look(model, ids)
        name = f"stack.blocks.{block}.attention.heads"
        sender, told = heads_at(seen, [TELLS_BEFORE]), heads_at(seen, [receiver], part)
        nothing = {name: jnp.zeros_like(seen[name])}
        return halves(patch_path(model, ids, sender=sender, receiver=told, source=nothing), ids)[1]

    parts = itertools.product(COPY, ("queries", "keys", "values"))
    return {
        f"{head[0]}.{head[1]} {part}": round(float(np.mean([lost(draw, head, part) for draw in range(DRAWS)])), 3)
        for head, part in parts
    }


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
    groups = kept(KEPT / "groups.json", partial(of_groups, np.array(mean["scores"]), costly))
    return rounded | groups | {"paths": kept(KEPT / "paths.json", of_paths)}
