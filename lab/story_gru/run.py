"""Train a recurrent network on the stories of the little world, as the strongest simple opponent of the decoder.

Both are judged as the rows of the staircase are, and with several seeds. At the rate that is taken they are judged
also by the stories that they tell and by those that they doubt. The decoders of three seeds are those that the
staircase has stored. No weights are kept: `record.json` holds what came out.
"""

import dataclasses
from collections.abc import Callable

import jax

import plainformer as pf
from lab import growing
from lab.growing import WORDS
from lab.records import BUILD, ends, kept
from lab.staircase import telling
from lab.story_labels import hidden_words, run as story_labels
from plainformer.models.recurrent import RecurrentConfig, RecurrentModel

NEEDS = ("staircase",)
KEPT = BUILD / "story_gru"
WIDTH, CLIP_NORM = 176, 1.0
SEEDS = (*growing.SEEDS, 3, 4)
DECODER = growing.ROWS["decoder"]
RATES = {"decoder": (0.001, 0.003, 0.01), "GRU": (0.003, 0.01, 0.03, 0.1)}


def model_of(seed: int) -> RecurrentModel:
    """A GRU with as many numbers as the decoder, untrained."""
    return RecurrentModel(RecurrentConfig(WORDS, WIDTH, "gru"), key=jax.random.key(seed))


def gru(rate: float, seed: int) -> RecurrentModel:
    """The network after as many steps as the decoder, on the same batches."""
    training = pf.TrainingConfig(
        num_steps=DECODER.num_steps,
        learning_rate=rate,
        warmup_steps=100,
        weight_decay=0.1,
        clip_norm=CLIP_NORM,
        seed=seed,
    )
    loss, directory = pf.training.next_token_loss, KEPT / f"{rate:g}-{seed}"
    return pf.fit(model_of(seed), loss, growing.batches_of(seed), training, directory=directory).model


def decoder(rate: float, seed: int) -> pf.Decoder:
    """The decoder as it is stored, or trained in the same way with another rate or seed."""
    row = dataclasses.replace(DECODER, learning_rate=rate)
    return growing.stored("decoder", seed) if row == DECODER and seed in growing.SEEDS else growing.trained(row, seed)


TRAINED: dict[str, Callable[[float, int], Callable]] = {"decoder": decoder, "GRU": gru}


def judged(name: str, rate: float, seed: int) -> dict:
    """What a network gives to the stories kept back; kept under `build`."""

    def find() -> dict:
        return growing.judged(growing.expected_by(TRAINED[name](rate, seed)))

    return kept(KEPT / f"{name}-{rate:g}-{seed}.json", find)


def asked_more(model: Callable) -> dict[str, float]:
    """Shares of possible sentences told, and of stories judged rightly by its doubts; nats at one hidden word."""
    doubts = story_labels.doubts_of_reader(model, story_labels.judged())
    return {
        "possible": telling.possible(model),
        "by doubt": story_labels.by_largest(doubts, story_labels.judged()),
        "hidden word": hidden_words.by_reader(model),
    }


def told_and_doubted(name: str, rate: float, seed: int) -> dict[str, float]:
    """The same of a network after its training; kept under `build`."""
    return kept(KEPT / f"more-{name}-{rate:g}-{seed}.json", lambda: asked_more(TRAINED[name](rate, seed)))


def results() -> dict:
    """All rates with the first seed; the best of each with the others."""
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
    }


def facts(found: dict) -> dict[str, str]:
    """What the chapter says: how many seeds; of the stories that the decoder judges, their least and largest share."""
    right = {kind: [each["by doubt"] for each in seeds] for kind, seeds in found["told and doubted"].items()}
    decoder, gru = (ends(f"{kind}.by doubt", right[kind], ".1f") for kind in ("decoder", "GRU"))
    return {"seeds": str(len(right["decoder"]))} | decoder | gru


def rates_table(rates: dict) -> str:
    """A line for each network, rate and seed: nats, and right answers of each kind."""
    kinds = ("wears", "where 1", "where 2", "where 3", "who", "light")
    head = ["network", "rate", "seed", "nats above the lowest", *kinds]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, each in rates.items():
        for rate, seeds in each.items():
            for seed, found in zip(SEEDS, seeds, strict=False):
                shares = [f"{100 * found['kinds'][kind][1]:.0f} %" for kind in kinds]
                lines.append(f"| {name} | {rate} | {seed} | {found['above']:.4f} | {' | '.join(shares)} |")
    return "\n".join(lines)


def card(found: dict) -> str:
    """What was done, and what came out."""
    told, doubted, hidden = (
        "; ".join(
            f"{name} {', '.join(f'{scale * each[what]:{form}}' for each in seeds)}"
            for name, seeds in found["told and doubted"].items()
        )
        for what, scale, form in (("possible", 100, ".1f"), ("by doubt", 1, ".1f"), ("hidden word", 1, ".3f"))
    )
    return f"""# A recurrent network on the stories of the little world

A GRU of {WIDTH} numbers, {found["parameters"]:,} learned ones, beside the decoder of `lab/staircase`: the same stories
and batches, {DECODER.num_steps:,} steps of AdamW, and the same stories to be judged on. The gradients of the GRU are
clipped at {CLIP_NORM:g}. Both learn with several rates and the first seed, and with the best of them with all seeds.
The decoders of the seeds 0, 1 and 2 are those that the staircase has stored. No weights are kept here; the numbers
stand in `record.json`. Settings: `lab/story_gru/run.py`; `make models ONLY=story_gru` trains all of them again.

- **Result.** Nats per word above the lowest loss possible, and right answers to the questions of each kind:

{rates_table(found["rates"])}

- **Told.** Of the sentences of {telling.NUM_STORIES} stories of {telling.NUM_WORDS} words, drawn as they come, so many
  in a hundred are possible where they stand, with seeds {SEEDS[0]} to {SEEDS[-1]}: {told}.
- **Doubted.** The doubt about a word is by how much the likeliest one would have been likelier, in nats. If of
  {story_labels.NUM_TEST:,} stories, half of them impossible (`lab/story_labels`), that half is called so with the
  larger of the largest doubts, so many in a hundred are judged rightly: {doubted}.
- **One hidden word**, guessed from both sides of it, by putting each word there in turn (`lab/story_labels`). Nats:
  {hidden}.
- **Licence.** The numbers are under Apache-2.0, as the code.
"""
