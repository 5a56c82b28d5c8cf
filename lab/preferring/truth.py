"""A second listener, who likes only what is possible and true, and its opponent: the same work spent on more stories.

The world is the judge of every sentence and of every answer, so this reward is exact.
"""

import math
from collections.abc import Callable
from functools import cache, partial

import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.growing import VOCABULARY
from lab.preferring.teller import (
    BATCH_SIZE,
    KEPT,
    KEPT_BACK,
    NUM_STEPS,
    NUM_WRITTEN,
    PROMPT,
    RATES,
    SEEDS,
    judged,
    learned,
    loss_on,
    possible,
    prompts,
    written,
)
from lab.records import kept, percent

BETA, NUM_PAIRS, NUM_PAIRS_KEPT_BACK, ASKED_AT_ONCE, NUM_JUDGED = 0.3, 300, 100, 1600, 3000
LENGTH = PROMPT + NUM_WRITTEN
A_STEP = 2 * BATCH_SIZE  # texts that a step of eight pairs learns from


def drawn(seed: int, num_pairs: int = NUM_PAIRS) -> dict:
    """Beginnings, each with two continuations by the teller, of which only the first is possible, and how many drafts
    it took; kept under `build`.

    Of two that both are possible, or both are not, this listener likes neither better.
    """

    def find() -> dict:
        stored, _ = pf.load_pretrained("stories")
        found: list[tuple] = []
        number = 0
        while len(found) < num_pairs:
            number += 1
            at = 100_000 * (seed + 1) + 1000 * number
            begun = prompts(at, ASKED_AT_ONCE)
            one, other = (written(stored, begun, 2 * at + 100_000 * draft) for draft in range(2))
            both = zip(begun, one, other, possible(begun, one), possible(begun, other), strict=True)
            found += [(p, a, b) if first else (p, b, a) for p, a, b, first, second in both if first != second]
        return {"pairs": found[:num_pairs], "drafts": 2 * number * ASKED_AT_ONCE}

    return kept(KEPT / f"truth-pairs-{seed}.json", find)


@cache
def pairs(seed: int, num_pairs: int = NUM_PAIRS) -> pf.models.Preferences:
    """What the listener likes and what it does not, with what the teller itself thinks of both."""
    stored, _ = pf.load_pretrained("stories")
    return pf.models.preferences(stored, *map(list, zip(*drawn(seed, num_pairs)["pairs"], strict=True)), LENGTH)


def steps_for_the_same_work() -> int:
    """How many steps on stories cost as much as all that preferring costs, with the pairs of the first seed.

    A text that is learned from costs three passes through the decoder, there and back; a draft costs one, and so does a
    text that the reference is asked for.
    """
    passes = 3 * A_STEP * NUM_STEPS + drawn(SEEDS[0])["drafts"] + 2 * NUM_PAIRS
    return math.ceil(passes / (3 * A_STEP))


@cache
def more_stories(seed: int, number: int) -> pf.data.Windows:
    """Stories that the teller has never seen, as long as a beginning with what is written after it."""
    told = pf.data.stories(number, LENGTH + 1, seed=7_000_000 + seed)
    ids = jnp.asarray(np.array([VOCABULARY.encode(story) for story in told], np.int32))
    return pf.data.Windows(ids[:, :-1], ids[:, 1:])


def found_of(name: str, loss: Callable, examples, other, rate: float, seed: int, num_steps: int, size: int) -> dict:
    """How a teller writes that has learned from some examples, and its loss on others; kept under `build`."""

    def find() -> dict:
        model = learned(loss, examples(), rate, seed, num_steps, size)
        return judged(model, NUM_JUDGED) | {"loss": round(loss_on(loss, model, other()), 4)}

    return kept(KEPT / f"{name}-{rate:g}-{seed}-{num_steps}.json", find) | {"rate": rate}


def preferring(rate: float, seed: int) -> dict:
    """What the teller writes after it has learned what the listener likes."""
    loss = partial(pf.models.preference_loss, beta=BETA)
    given = loss, lambda: pairs(seed), lambda: pairs(KEPT_BACK, NUM_PAIRS_KEPT_BACK)
    return found_of(f"truth-{BETA:g}", *given, rate, seed, NUM_STEPS, BATCH_SIZE)


def on_more_stories(rate: float, seed: int, times: int = 1) -> dict:
    """What the teller writes after it has learned more stories for the same work."""
    steps = times * steps_for_the_same_work()
    given = (
        pf.training.next_token_loss,
        lambda: more_stories(seed, steps * A_STEP),
        lambda: more_stories(KEPT_BACK, 1000),
    )
    return found_of("more", *given, rate, seed, steps, A_STEP)


def untuned() -> dict:
    """What the teller itself writes after the same beginnings."""
    return kept(KEPT / "truth-untuned.json", lambda: judged(pf.load_pretrained("stories")[0], NUM_JUDGED))


def at_the_best_rate(learn: Callable[[float, int], dict]) -> tuple[list[dict], dict[str, dict]]:
    """The runs of all seeds at the rate with the lowest loss, and what each rate gave the first seed."""
    tried = {rate: learn(rate, SEEDS[0]) for rate in RATES}
    best = min(tried, key=lambda rate: tried[rate]["loss"])
    return [learn(best, seed) for seed in SEEDS], {f"{rate:g}": run for rate, run in tried.items()}


def results() -> dict:
    """The listener's teller, its opponent, and that with five times the work."""
    drafts = [drawn(seed)["drafts"] for seed in SEEDS]
    found: dict = {"untuned": untuned(), "drafts": drafts, "steps": steps_for_the_same_work()}
    found |= {"ways": {}, "rates": {}}
    for name, learn in {"preferring": preferring, "more stories": on_more_stories}.items():
        found["ways"][name], found["rates"][name] = at_the_best_rate(learn)
    found["5 times the work"] = on_more_stories(found["ways"]["more stories"][0]["rate"], SEEDS[0], times=5)
    return _without_texts(found)


def _without_texts(found):
    """The numbers alone."""
    if isinstance(found, list):
        return [_without_texts(each) for each in found]
    if isinstance(found, dict):
        return {name: _without_texts(each) for name, each in found.items() if name != "texts"}
    return found


def facts(found: dict) -> dict[str, str]:
    """The shares of texts that are possible and true, by the seeds' means, and how many stories the same work reads."""
    shares = {"untuned": found["untuned"]["possible"], "5_times": found["5 times the work"]["possible"]}
    shares |= {way: float(np.mean([run["possible"] for run in runs])) for way, runs in found["ways"].items()}
    stories = f"{found['steps'] * A_STEP:,}"
    return {"truth.stories": stories} | {f"truth.{name}": percent(share, 1) for name, share in shares.items()}
