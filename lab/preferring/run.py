"""Tune the teller of stories to a preference, with leashes of many lengths, beside best-of-n and what is best at all.

A listener likes to hear of Anna: the reward of what is written is how often her name stands in it. No weights are kept:
`record.json` holds what came out, and the chapter on fine-tuning and its live figure read it.
"""

from functools import cache, partial

import numpy as np

import plainformer as pf
from lab.growing import VOCABULARY
from lab.preferring import truth
from lab.preferring.teller import (
    BATCH_SIZE,
    KEPT,
    KEPT_BACK,
    NUM_KEPT_BACK,
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
    rewards,
    written,
)
from lab.records import ends, kept, percent

NEEDS = ("staircase",)
BETAS, NUM_PROMPTS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0), 600
MOST, FRONTIER = 32, (0.5, 1.0, 2.0, 4.0)  # drafts of best-of-n; the prices at which the best of all is found


def share_of_first(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """How likely a listener prefers the first of two texts, by their rewards."""
    return 1 / (1 + np.exp(other - one))


@cache
def pairs(seed: int) -> pf.models.Preferences:
    """Two continuations by the teller itself of each prompt, and a listener's choice between them.

    The first is preferred with the probability that Bradley and Terry (1952) give it: the logistic function of the
    difference of rewards.
    """
    stored, _ = pf.load_pretrained("stories")
    begun, random = prompts(10 + seed, NUM_PROMPTS), np.random.default_rng(seed)
    one, other = written(stored, begun, 100 + seed), written(stored, begun, 5000 + seed)
    first = random.random(len(begun)) < share_of_first(rewards(one), rewards(other))
    found = [(p, a, b) if yes else (p, b, a) for p, a, b, yes in zip(begun, one, other, first, strict=True) if a != b]
    starts, chosen, rejected = map(list, zip(*found, strict=True))
    return pf.models.preferences(stored, starts, chosen, rejected, PROMPT + NUM_WRITTEN)


def chosen_loss(model, batch, key):
    """The loss of an opponent that learns to write the preferred texts, and never sees the others."""
    return pf.training.next_token_loss(model, batch.chosen, key)


def tuned(beta: float, rate: float, seed: int, times: int):
    """The teller after its training, and its loss on pairs kept back; price 0: it learns preferred texts alone."""
    loss = partial(pf.models.preference_loss, beta=beta) if beta else chosen_loss
    model = learned(loss, pairs(seed), rate, seed, NUM_STEPS * times)
    return model, loss_on(loss, model, pairs(KEPT_BACK))


def result(beta: float, rate: float, seed: int, times: int = 1) -> dict:
    """What the tuned teller writes; kept under `build`."""

    def find() -> dict:
        model, loss = tuned(beta, rate, seed, times)
        return judged(model) | {"loss": round(loss, 3)}

    return kept(KEPT / f"{beta:g}-{rate:g}-{seed}-{times}.json", find) | {"rate": rate}


def without_tuning() -> dict:
    """The teller itself, best-of-n, and the most reward that any model can have at a leash, from the same drafts.

    At the price β the best model is the teller with each text weighed by exp(reward / β): prompt by prompt, the drafts
    stand for all texts.
    """

    def find() -> dict:
        stored, _ = pf.load_pretrained("stories")
        begun = prompts(1000, NUM_KEPT_BACK)
        drafts = [written(stored, begun, 20_000 + 1000 * number) for number in range(MOST)]
        reward = np.array([rewards(texts) for texts in drafts])
        found: dict = {"best of": {}, "frontier": {}}
        for n in (1, 2, 4, 8, 16, MOST):
            best = reward[:n].argmax(axis=0)
            texts = [drafts[number][place] for place, number in enumerate(best)]
            found["best of"][str(n)] = {
                "reward": round(float(reward[:n].max(axis=0).mean()), 3),
                "leash": round(float(np.log(n) - (n - 1) / n), 3),
                "possible": round(float(possible(begun, texts).mean()), 4),
            }
        for beta in FRONTIER:
            weights = np.exp(reward / beta)
            mean = (weights * reward).sum(axis=0) / weights.sum(axis=0)
            nats = mean / beta - np.log(weights.mean(axis=0))
            found["frontier"][f"{beta:g}"] = {
                "reward": round(float(mean.mean()), 3),
                "leash": round(float(nats.mean()), 3),
            }
        return found | {"prompts": [VOCABULARY.decode(prompt) for prompt in begun[:3]]}

    return kept(KEPT / "without_tuning.json", find)


@cache
def best_rate(beta: float) -> float:
    """The rate with the lowest loss on pairs kept back, by the first seed."""
    return min(RATES, key=lambda rate: result(beta, rate, 0)["loss"])


def results() -> dict:
    """All prices, the opponents, the knobs, and the second listener."""
    tuned_ones = {f"{beta:g}": [result(beta, best_rate(beta), seed) for seed in SEEDS] for beta in BETAS}
    supervised = [result(0, best_rate(0), seed) for seed in SEEDS]
    longer = {f"{beta:g}": result(beta, best_rate(beta), 0, times=5) for beta in (0.1, 1.0)}
    rates = {f"{each:g}": result(0.1, each, 0) for each in RATES}
    found = {"betas": tuned_ones, "chosen alone": supervised, "longer": longer, "rates": rates}
    return without_tuning() | found | {"possible and true": truth.results()}


def row(name: str, each: list[dict]) -> str:
    """A line of the card: means of the seeds."""
    reward, leash, share = (np.mean([seed[of] for seed in each]) for of in ("reward", "leash", "possible"))
    rate = f"{each[0]['rate']:g}" if "rate" in each[0] else "–"
    return f"| {name} | {rate} | {reward:.2f} | {leash:.2f} | {100 * share:.0f} % |"


def knob_table(found: dict) -> str:
    """The chapter's table of knobs turned."""
    rows = {
        "price 0.1, rate 0.0001": found["rates"]["0.0001"],
        "price 0.1, rate 0.001": found["rates"]["0.001"],
        "price 0.1, five times the steps": found["longer"]["0.1"],
        "price 1, five times the steps": found["longer"]["1"],
    }
    lines = ["| knob turned, one seed | reward | leash | possible |", "|---" * 4 + "|"]
    for name, run in rows.items():
        lines.append(f"| {name} | {run['reward']:.2f} | {run['leash']:.1f} | {percent(run['possible'])} % |")
    return "\n".join(lines)


def facts(found: dict) -> dict[str, str]:
    """The table of knobs; of all runs the seeds' means; of the lowest price the leash at its ends and each reward."""
    texts, forms = {"knobs": knob_table(found)}, {"reward": ".1f", "leash": ".1f", "loss": ".2f"}
    for kind in ("best of", "frontier", "betas", "longer"):
        for way, each in found[kind].items():
            runs, name = each if isinstance(each, list) else [each], f"{kind}.{way}"
            means = {what: float(np.mean([run[what] for run in runs])) for what in forms if what in runs[0]}
            texts |= {f"{name}.{what}": format(mean, forms[what]) for what, mean in means.items()}
    texts["best_of.32.possible"] = percent(found["best of"]["32"]["possible"])
    lowest = found["betas"]["0.01"]
    texts |= {f"betas.0.01.reward.{seed}": f"{run['reward']:.1f}" for seed, run in enumerate(lowest)}
    texts |= truth.facts(found["possible and true"])
    return texts | ends("betas.0.01.leash", [run["leash"] for run in lowest], ".0f")


def card(found: dict) -> str:
    """What was done, and what came out."""
    rows = [row(f"best of {n}", [each]) for n, each in found["best of"].items()]
    rows += [row("supervised, on the preferred texts alone", found["chosen alone"])]
    rows += [row(f"β = {beta}", each) for beta, each in found["betas"].items()]
    rows += [row(f"β = {beta}, 5 times the steps, one seed", [each]) for beta, each in found["longer"].items()]
    rows += [row("β = 0.1, one seed", [each]) for each in found["rates"].values()]
    second = found["possible and true"]
    table = "\n".join(rows)
    frontier = "; ".join(f"{each['reward']:.2f} at {each['leash']:.2f}" for each in found["frontier"].values())
    return f"""# A teller of stories learns what a listener likes

The decoder of stories (`lab/staircase`), tuned by preferences. A listener likes to hear of Anna: the reward is how
often her name stands in the {NUM_WRITTEN} words that the teller writes. No weights are kept: the numbers stand in
`record.json`. Settings: `lab/preferring/run.py`; `make models ONLY=preferring` trains all again.

- **Data.** For each seed {NUM_PROMPTS} beginnings of at most {PROMPT} words, with two continuations by the teller
  itself; which is preferred is drawn, with the logistic function of the difference of rewards. Judged on
  {NUM_KEPT_BACK} other beginnings.
- **Training.** {NUM_STEPS} steps of {BATCH_SIZE} pairs, AdamW without decay; for each price that of the learning rates
  {", ".join(map(str, RATES))} with the lowest loss on pairs kept back, by seed 0; seeds {", ".join(map(str, SEEDS))}.
- **Result.** Reward, leash in nats per text, and the share of texts of which every sentence is possible:

| model | rate | reward | leash | possible |
|---|---|---|---|---|
{table}

- **A second listener** likes what is possible and true, of which the world is the judge, and of two texts that differ
  in it always prefers the one that is: {truth.NUM_PAIRS} pairs, out of {second["drafts"][0]:,} drafts for the first
  seed. The same work is that of these drafts, a pass through the decoder each, of asking the reference, and of
  learning, three passes for a text; for stories, too, the best of three rates. Judged on {truth.NUM_JUDGED:,}
  beginnings: shares of texts of which every sentence is possible, and of which one is a sentence that no story has, and
  by how many nats preferred and other texts of {truth.NUM_PAIRS_KEPT_BACK} pairs kept back have become likelier.

{truth.opponents(second)}

- **Knobs turned** for the second listener, one seed; what it writes is chosen by the share of possible texts after
  {truth.NUM_JUDGED:,} other beginnings than those that are reported, and these drafts are in no account of work:

{truth.knobs(second)}

- **The most reward that any model can have** at a leash, by weighing {MOST} drafts of each beginning, for the prices
  {", ".join(map(str, FRONTIER))}: {frontier}. (At lower prices so few drafts do not stand for all texts.)
- **Limits.** One decoder of 199,744 numbers, one reward, which a single word carries; of possibility the world is the
  judge, which no judge of real texts can be.
- **Licence.** The numbers are under Apache-2.0, as the code.
"""
