"""A second listener, who likes only what is possible and true, and its opponents: the same work spent on more stories,
and the better of two drafts.

The world is the judge of every sentence and of every answer, so this reward is exact.
"""

import math
from functools import cache, partial

import equinox as eqx
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
    SEEDS,
    judged,
    learned,
    loss_on,
    possible,
    prompts,
    written,
)
from lab.records import kept, percent

BETAS, RATES = (0.3, 1.0, 3.0, 10.0), (0.00003, 0.0001, 0.0003)
NUM_PAIRS, NUM_PAIRS_KEPT_BACK, ASKED_AT_ONCE, NUM_JUDGED = 300, 100, 1600, 3000
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

    return kept(KEPT / f"truth-pairs-{seed}-{num_pairs}.json", find)


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


@cache
def beginnings_of_sentences() -> set[tuple[str, ...]]:
    """How sentences of stories begin, whole ones included; a thousand stories have them all, many times."""
    told = [[*sentence.split(), "."] for story in pf.data.stories(1000) for sentence in story[2:].split(" .")]
    return {tuple(words[:number]) for words in told for number in range(1, len(words) + 1)}


def broken(text: list[int]) -> bool:
    """Whether a sentence of this text is one that no story has, whatever was told before."""
    *whole, cut_off = VOCABULARY.decode(text).split(".")
    said = [*((*sentence.split(), ".") for sentence in whole), tuple(cut_off.split())]
    return any(words and words not in beginnings_of_sentences() for words in said)


def beside_the_loss(model) -> dict[str, float]:
    """What a teller writes after other beginnings than those that are reported, by which a training can be chosen: the
    shares of texts that are possible, and that are broken."""
    begun = prompts(2000, NUM_JUDGED)
    texts = written(model, begun, 8)
    shares = {"elsewhere": possible(begun, texts), "broken": np.array([broken(text) for text in texts], float)}
    return {name: round(float(each.mean()), 4) for name, each in shares.items()}


def likelier(model) -> dict[str, float]:
    """By how many nats the texts of pairs kept back have become likelier than in the teller that tuning began with."""
    others = pairs(KEPT_BACK, NUM_PAIRS_KEPT_BACK)
    ask = eqx.filter_jit(pf.models.log_probability)
    now = jnp.stack([ask(model, others.chosen), ask(model, others.rejected)], axis=1)
    chosen, rejected = (now - others.reference).mean(axis=0)
    return {"chosen": round(float(chosen), 3), "rejected": round(float(rejected), 3)}


def preferring(
    beta: float, rate: float, seed: int, likelihood: float = 0.0, times: int = 1, more_steps: int = 1
) -> dict:
    """What the teller writes after it has learned what the listener likes; kept under `build`.

    With a weight of the likelihood the words of preferred texts are learned as well, as Pang et al. (2024) do.
    """

    def loss(model, batch, key):
        surprise = pf.models.preference_loss(model, batch, beta=beta)
        return surprise + likelihood * pf.training.next_token_loss(model, batch.chosen, key) if likelihood else surprise

    def find() -> dict:
        model = learned(loss, pairs(seed, times * NUM_PAIRS), rate, seed, more_steps * NUM_STEPS, BATCH_SIZE)
        surprise = loss_on(partial(pf.models.preference_loss, beta=beta), model, pairs(KEPT_BACK, NUM_PAIRS_KEPT_BACK))
        return judged(model, NUM_JUDGED) | {"loss": round(surprise, 4)} | beside_the_loss(model) | likelier(model)

    name = f"truth-{beta:g}-{rate:g}-{seed}-{likelihood:g}-{times}-{more_steps}"
    return kept(KEPT / f"{name}.json", find) | {"beta": beta, "rate": rate}


def on_more_stories(rate: float, seed: int, times: int = 1) -> dict:
    """What the teller writes after it has learned more stories for the same work; kept under `build`."""
    loss, steps = pf.training.next_token_loss, times * steps_for_the_same_work()

    def find() -> dict:
        model = learned(loss, more_stories(seed, steps * A_STEP), rate, seed, steps, A_STEP)
        return judged(model, NUM_JUDGED) | {"loss": round(loss_on(loss, model, more_stories(KEPT_BACK, 1000)), 4)}

    return kept(KEPT / f"more-{rate:g}-{seed}-{steps}.json", find) | {"rate": rate}


def untuned() -> dict:
    """What the teller itself writes after the same beginnings, and the better of two drafts as the world judges."""

    def find() -> dict:
        stored, _ = pf.load_pretrained("stories")
        begun = prompts(1000, NUM_JUDGED)
        either = np.maximum(*(possible(begun, written(stored, begun, key)) for key in (7, 700_007)))
        return judged(stored, NUM_JUDGED) | beside_the_loss(stored) | {"best of 2": round(float(either.mean()), 4)}

    return kept(KEPT / "truth-teller.json", find)


def results() -> dict:
    """Prices and rates of preferring, the best by the loss and by what is written, other forms, and the opponents."""
    found: dict = {"untuned": untuned(), "drafts": [drawn(seed)["drafts"] for seed in SEEDS]}
    tried = [preferring(beta, rate, SEEDS[0]) for beta in BETAS for rate in RATES]
    by_loss = _settings(min(tried, key=lambda run: run["loss"]))
    by_writing = _settings(max(tried, key=lambda run: run["elsewhere"]))
    too = [preferring(by_loss[0], rate, SEEDS[0], 1.0) for rate in RATES]
    stories = [on_more_stories(rate, SEEDS[0]) for rate in RATES]
    of_both, of_stories = (min(runs, key=lambda run: run["loss"]) for runs in (too, stories))
    found |= {"steps": steps_for_the_same_work(), "tried": tried, "likelihood too": too, "tried on stories": stories}
    found["ways"] = {
        "by loss": [preferring(*by_loss, seed) for seed in SEEDS],
        "by loss, likelihood too": [preferring(*_settings(of_both), seed, 1.0) for seed in SEEDS],
        "by writing": [preferring(*by_writing, seed) for seed in SEEDS],
        "more stories": [on_more_stories(of_stories["rate"], seed) for seed in SEEDS],
    }
    found["4 times the pairs"] = {
        f"{name}, {steps}": preferring(*settings, SEEDS[0], times=4, more_steps=steps)
        for name, settings in {"by loss": by_loss, "by writing": by_writing}.items()
        for steps in (1, 4)
    }
    longer = [on_more_stories(rate, SEEDS[0], times=5) for rate in RATES[:2]]  # the third was behind with less work
    found["tried with 5 times the work"], found["5 times the work"] = longer, min(longer, key=lambda run: run["loss"])
    return _without_texts(found)


def _settings(run: dict) -> tuple[float, float]:
    """Price and rate."""
    return run["beta"], run["rate"]


def _without_texts(found):
    """The numbers alone."""
    if isinstance(found, list):
        return [_without_texts(each) for each in found]
    if isinstance(found, dict):
        return {name: _without_texts(each) for name, each in found.items() if name != "texts"}
    return found


def mean(runs: list[dict], what: str) -> float:
    """The seeds' mean of a number."""
    return float(np.mean([run[what] for run in runs]))


def wrong(run: dict) -> float:
    """The share of texts that are not possible though each of their sentences stands in some story."""
    return 1 - run["elsewhere"] - run["broken"]


def by_name(found: dict) -> dict[str, list[dict]]:
    """The runs of each row of the chapter's table."""
    ways, more = found["ways"], found["4 times the pairs"]
    chosen = {name: "price {beta:g}, rate {rate:g}".format(**ways[name][0]) for name in ("by loss", "by writing")}
    return {
        "untuned": [found["untuned"]],
        f"DPO of the lowest loss: {chosen['by loss']}": ways["by loss"],
        "with the ordinary loss of preferred texts added": ways["by loss, likelihood too"],
        "with 4 times the pairs, one seed": [more["by loss, 1"]],
        f"DPO of the best texts: {chosen['by writing']}": ways["by writing"],
        "with 4 times the pairs and steps, one seed": [more["by writing, 4"]],
        f"the same work spent on {found['steps'] * A_STEP:,} stories": ways["more stories"],
        "5 times that work, one seed": [found["5 times the work"]],
    }


def opponents(found: dict) -> str:
    """The chapter's table."""
    lines = ["| teller | possible | broken | preferred | other |", "|---" * 5 + "|"]
    for name, runs in by_name(found).items():
        shares = [f"{percent(mean(runs, what), 1)} %" if what in runs[0] else "" for what in ("possible", "broken")]
        nats = [
            f"{mean(runs, what):+.1f}".replace("-", "−") if what in runs[0] else "" for what in ("chosen", "rejected")
        ]
        lines.append(f"| {name} | {' | '.join(shares + nats)} |")
    lines.append(
        f"| the better of two drafts, as the world judges | {percent(found['untuned']['best of 2'], 1)} % |" + " |" * 3
    )
    return "\n".join(lines)


def knobs(found: dict) -> str:
    """The card's table of all that was tried."""
    rows = {"DPO": found["tried"], "DPO, the ordinary loss of preferred texts added": found["likelihood too"]}
    rows |= {f"4 times the pairs, {name} times the steps": [run] for name, run in found["4 times the pairs"].items()}
    lines = ["| way | price | rate | loss on other pairs | leash | possible | possible elsewhere |", "|---" * 7 + "|"]
    for name, runs in rows.items():
        for run in runs:
            numbers = f"{run['beta']:g} | {run['rate']:g} | {run['loss']:.3f} | {run['leash']:.2f}"
            shares = (f"{percent(run[where], 1)} %" for where in ("possible", "elsewhere"))
            lines.append(f"| {name} | {numbers} | {' | '.join(shares)} |")
    stories = {"more stories": found["tried on stories"], "5 times that work": found["tried with 5 times the work"]}
    for name, runs in stories.items():
        for run in runs:
            numbers = f"– | {run['rate']:g} | {run['loss']:.4f} on stories | {run['leash']:.2f}"
            lines.append(f"| {name} | {numbers} | {percent(run['possible'], 1)} % | |")
    return "\n".join(lines)


def facts(found: dict) -> dict[str, str]:
    """The table of opponents, and how often two tellers are wrong in whole sentences."""
    ways = {"untuned": [found["untuned"]], "by_writing": found["ways"]["by writing"]}
    shares = {name: float(np.mean([wrong(run) for run in runs])) for name, runs in ways.items()}
    return {"truth.opponents": opponents(found)} | {
        f"truth.{name}.wrong": percent(share, 1) for name, share in shares.items()
    }
