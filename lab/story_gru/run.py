"""Train a recurrent network on the stories of the little world, as the strongest simple opponent of the decoder.

Both are judged as the rows of the staircase are, and with several seeds. At the rate that is taken they are judged
also by the stories that they tell and by those that they doubt. The decoders of three seeds are those that the
staircase has stored. No weights are kept: `record.json` holds what came out.
"""

from collections.abc import Callable
from functools import partial

import equinox as eqx

import plainformer as pf
from lab import growing
from lab.clock import seconds_in_turn
from lab.records import ends, kept
from lab.staircase import telling
from lab.story_gru import labelled
from lab.story_gru.readers import (
    CLIP_NORM,
    DECODER,
    KEPT,
    LONG_DECODER,
    LONG_GRU,
    LONGER,
    RATES,
    SEEDS,
    TRAINED,
    WIDTH,
    Longer,
    model_of,
    named,
)
from lab.story_labels import hidden_words, run as story_labels

NEEDS = ("staircase",)

ASKED = {"possible": (100, ".1f"), "by doubt": (1, ".1f"), "hidden word": (1, ".3f")}  # and how it is written


def judged(name: str, rate: float, seed: int, times: int = 1) -> dict:
    """What a network gives to the stories kept back; kept under `build`."""

    def find() -> dict:
        return growing.judged(growing.expected_by(TRAINED[name](rate, seed, times)))

    return kept(KEPT / f"{name}-{named(rate, seed, times)}.json", find)


def asked_more(model: Callable) -> dict[str, float]:
    """Shares of possible sentences told, and of stories judged rightly by its doubts; nats at one hidden word."""
    doubts = story_labels.doubts_of_reader(model, story_labels.judged())
    return {
        "possible": telling.possible(model),
        "by doubt": story_labels.by_largest(doubts, story_labels.judged()),
        "hidden word": hidden_words.by_reader(model),
    }


def told_and_doubted(name: str, rate: float, seed: int, times: int = 1) -> dict[str, float]:
    """The same of a network after its training; kept under `build`."""
    file = KEPT / f"more-{name}-{named(rate, seed, times)}.json"
    return kept(file, lambda: asked_more(TRAINED[name](rate, seed, times)))


def after_longer(plan: Longer) -> dict:
    """What a network reaches after more steps, seed by seed."""
    name, times, rate, seeds = plan
    runs = [judged(name, rate, seed, times) | told_and_doubted(name, rate, seed, times) for seed in seeds]
    return {"network": name, "times": times, "rate": rate, "seeds": runs}


def with_labels(plan: Longer) -> dict:
    """How a network that was trained for longer judges stories once it has learned from labels."""
    name, times, rate, _ = plan
    return kept(
        KEPT / f"labelled-{name}-{rate:g}-{times}-times.json",
        lambda: labelled.compared(lambda seed: TRAINED[name](rate, seed, times), growing.SEEDS),
    )


def seconds() -> dict[str, float]:
    """Processor seconds for the slopes of the loss on one batch."""
    batch, slopes = growing.batches_of(0)(0), eqx.filter_jit(eqx.filter_value_and_grad(pf.training.next_token_loss))
    models = {"decoder": growing.make(DECODER, 0), "GRU": model_of(0)}
    return seconds_in_turn({name: partial(slopes, model, batch) for name, model in models.items()})


def results() -> dict:
    """All rates with the first seed; the best of each with the others; more steps; and labels after these."""
    rates = {name: {rate: [judged(name, rate, 0)] for rate in each} for name, each in RATES.items()}
    taken = {name: min(each, key=lambda rate: each[rate][0]["above"]) for name, each in rates.items()}
    for name, rate in taken.items():
        rates[name][rate] += [judged(name, rate, seed) for seed in SEEDS[1:]]
    return {
        "parameters": pf.count_parameters(model_of(0)),
        "rates": {name: {f"{rate:g}": seeds for rate, seeds in each.items()} for name, each in rates.items()},
        "told and doubted": {
            name: [told_and_doubted(name, rate, seed) for seed in SEEDS] for name, rate in taken.items()
        },
        "longer": [after_longer(plan) for plan in LONGER],
        "labelled": {plan.network: with_labels(plan) for plan in (LONG_DECODER, LONG_GRU)},
        "seconds": kept(KEPT / "seconds.json", seconds),
    }


def facts(found: dict) -> dict[str, str]:
    """What the chapter says: how many seeds; of the stories that are judged rightly, their least and largest share."""
    right = {kind: [each["by doubt"] for each in seeds] for kind, seeds in found["told and doubted"].items()}
    texts = {"seeds": str(len(right["decoder"]))}
    for plan in (LONG_DECODER, LONG_GRU):
        longer = found["longer"][LONGER.index(plan)]["seeds"]
        right[f"{plan.network}.longer"] = [each["by doubt"] for each in longer]
    for kind, seeds in right.items():
        texts |= ends(f"{kind}.by doubt", seeds, ".1f")
    return texts


def taken(rates: dict) -> float:
    """The rate with which all seeds were trained."""
    return float(max(rates, key=lambda rate: len(rates[rate])))


def nats_table(found: dict) -> str:
    """A line for each network, training and seed: nats, and right answers of each kind."""
    kinds = ("wears", "where 1", "where 2", "where 3", "who", "light")
    head = ["network", "steps", "rate", "seed", "nats above the lowest", *kinds]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    runs = [(name, 1, rate, seeds) for name, each in found["rates"].items() for rate, seeds in each.items()]
    runs += [(each["network"], each["times"], each["rate"], each["seeds"]) for each in found["longer"]]
    for name, times, rate, seeds in runs:
        for seed, one in zip(SEEDS, seeds, strict=False):
            start = [name, f"{times * DECODER.num_steps:,}", str(rate), str(seed), f"{one['above']:.4f}"]
            shares = [f"{100 * one['kinds'][kind][1]:.1f} %" for kind in kinds]
            lines.append(f"| {' | '.join(start + shares)} |")
    return "\n".join(lines)


def told_table(found: dict) -> str:
    """A line for each network and training: what it tells, doubts and guesses, seed by seed."""
    lines = [f"| network | steps | rate | {' | '.join(ASKED)} |", "|---" * (3 + len(ASKED)) + "|"]
    shorter = [
        {"network": name, "times": 1, "rate": taken(found["rates"][name]), "seeds": seeds}
        for name, seeds in found["told and doubted"].items()
    ]
    for each in shorter + found["longer"]:
        cells = [
            ", ".join(f"{scale * seed[what]:{form}}" for seed in each["seeds"]) for what, (scale, form) in ASKED.items()
        ]
        start = [each["network"], f"{each['times'] * DECODER.num_steps:,}", f"{each['rate']:g}"]
        lines.append(f"| {' | '.join(start + cells)} |")
    return "\n".join(lines)


def labelled_lines(found: dict) -> str:
    """What each network reaches with labels, and at which rates."""
    return "; ".join(
        f"{name} {', '.join(f'{share:.1f}' for share in each['allowed'])} by the doubt that is allowed,"
        f" {', '.join(f'{share:.1f}' for share in each['tuned'])} after tuning at the rate {each['rate']:g} (other"
        f" stories: {', '.join(f'{share:.1f} at {rate}' for rate, share in each['tried'].items())})"
        for name, each in found.items()
    )


def card(found: dict) -> str:
    """What was done, and what came out."""
    return f"""# A recurrent network on the stories of the little world

A GRU of {WIDTH} numbers, {found["parameters"]:,} learned ones, beside the decoder of `lab/staircase`: the same stories
and batches, {DECODER.num_steps:,} steps of AdamW, and the same stories to be judged on. The gradients of the GRU are
clipped at {CLIP_NORM:g}. Both learn with several rates and the first seed, and with the best of them with all seeds.
The decoders of the seeds 0, 1 and 2 are those that the staircase has stored. No weights are kept here; the numbers
stand in `record.json`. Settings: `lab/story_gru/run.py`; `make models ONLY=story_gru` trains all of them again.

- **Result.** Nats per word above the lowest loss possible, and right answers to the questions of each kind. In the
  longer trainings the rate falls as before, over all steps:

{nats_table(found)}

- **Time.** A step without its update takes {1e3 * found["seconds"]["decoder"]:.0f} ms of a core in the decoder and
  {1e3 * found["seconds"]["GRU"]:.0f} ms in the GRU.
- **Told, doubted, guessed**, with seeds {SEEDS[0]} to {SEEDS[-1]}, or the first of them. *Possible*: of the sentences
  of {telling.NUM_STORIES} stories of {telling.NUM_WORDS} words, drawn as they come, so many in a hundred are possible
  where they stand. *By doubt*: the doubt about a word is by how much the likeliest one would have been likelier, in
  nats. If of {story_labels.NUM_TEST:,} stories, half of them impossible (`lab/story_labels`), that half is called so
  with the larger of the largest doubts, so many in a hundred are judged rightly. *Hidden word*: nats at one word,
  guessed from both sides of it, by putting each word there in turn (`lab/story_labels`).

{told_table(found)}

- **With labels.** {labelled.NUM_LABELS:,} labelled stories of either kind say how large the largest doubt of a possible
  story may be, and then tune all weights, in {story_labels.NUM_STEPS[labelled.NUM_LABELS]:,} steps of
  {story_labels.BATCH_SIZE} stories (`lab/story_gru/labelled.py`). Of the decoders of
  {LONG_DECODER.times * DECODER.num_steps:,} steps and the GRUs of {LONG_GRU.times * DECODER.num_steps:,}, each with
  labels of its own, so many in a hundred are judged rightly: {labelled_lines(found["labelled"])}.
- **Licence.** The numbers are under Apache-2.0, as the code.
"""
