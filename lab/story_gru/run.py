"""Train a recurrent network on the stories of the little world, as the strongest simple opponent of the decoder.

It is judged as the rows of the staircase are, and at its best rate by the stories that it tells and by those that it
doubts, beside the decoder. No weights are kept: `record.json` holds what came out.
"""

from collections.abc import Callable
from functools import partial

import jax

import plainformer as pf
from lab import growing
from lab.growing import SEEDS, WORDS
from lab.records import BUILD, ends, kept
from lab.staircase import telling
from lab.story_labels import hidden_words, run as story_labels
from plainformer.models.recurrent import RecurrentConfig, RecurrentModel

NEEDS = ("staircase",)
KEPT = BUILD / "story_gru"
WIDTH, RATES, CLIP_NORM = 176, (0.003, 0.01, 0.03, 0.1), 1.0


def model_of(seed: int) -> RecurrentModel:
    """A GRU with as many numbers as the decoder, untrained."""
    return RecurrentModel(RecurrentConfig(WORDS, WIDTH, "gru"), key=jax.random.key(seed))


def result(rate: float, seed: int) -> dict:
    """What it gives to the stories kept back; kept under `build`."""
    return kept(KEPT / f"{rate:g}-{seed}.json", partial(judged_after, rate, seed))


def trained(rate: float, seed: int) -> RecurrentModel:
    """The network after as many steps as the decoder, on the same batches."""
    training = pf.TrainingConfig(
        num_steps=growing.ROWS["decoder"].num_steps,
        learning_rate=rate,
        warmup_steps=100,
        weight_decay=0.1,
        clip_norm=CLIP_NORM,
        seed=seed,
    )
    loss, directory = pf.training.next_token_loss, KEPT / f"{rate:g}-{seed}"
    return pf.fit(model_of(seed), loss, growing.batches_of(seed), training, directory=directory).model


def judged_after(rate: float, seed: int) -> dict:
    """What it gives to the stories kept back."""
    return growing.judged(growing.expected_by(trained(rate, seed)))


def asked_more(model: Callable) -> dict[str, float]:
    """Shares of possible sentences told, and of stories judged rightly by its doubts; nats at one hidden word."""
    doubts = story_labels.doubts_of_reader(model, story_labels.judged())
    return {
        "possible": telling.possible(model),
        "by doubt": story_labels.by_largest(doubts, story_labels.judged()),
        "hidden word": hidden_words.by_reader(model),
    }


def asked_of(rate: float, seed: int) -> dict[str, float]:
    """The same of the network after its training."""
    return asked_more(trained(rate, seed))


def results() -> dict:
    """All rates with the first seed, and the better one with the others."""
    found = {f"{rate:g}": [result(rate, 0)] for rate in RATES}
    best = min(found, key=lambda rate: found[rate][0]["above"])
    found[best] += [result(float(best), seed) for seed in SEEDS[1:]]
    networks = [kept(KEPT / f"more-{seed}.json", partial(asked_of, float(best), seed)) for seed in SEEDS]
    return {
        "parameters": pf.count_parameters(model_of(0)),
        "rates": found,
        "told and doubted": {
            "decoder": [asked_more(growing.stored("decoder", seed)) for seed in SEEDS],
            "GRU": networks,
        },
    }


def facts(found: dict) -> dict[str, str]:
    """What the chapter says: of the stories that the decoder judges, the least and the largest share of the seeds."""
    return ends("decoder.by doubt", (each["by doubt"] for each in found["told and doubted"]["decoder"]), ".1f")


def card(found: dict) -> str:
    """What was done, and what came out."""
    kinds = ("wears", "where 1", "where 2", "where 3", "who", "light")
    head = ["rate", "nats above the lowest", *kinds]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for rate, seeds in found["rates"].items():
        for each in seeds:
            shares = [f"{100 * each['kinds'][kind][1]:.0f} %" for kind in kinds]
            lines.append(f"| {rate} | {each['above']:.4f} | {' | '.join(shares)} |")
    table, more = "\n".join(lines), found["told and doubted"]
    told, doubted, hidden = (
        "; ".join(
            f"{name} {', '.join(f'{scale * each[what]:{form}}' for each in seeds)}" for name, seeds in more.items()
        )
        for what, scale, form in (("possible", 100, ".1f"), ("by doubt", 1, ".1f"), ("hidden word", 1, ".3f"))
    )
    return f"""# A recurrent network on the stories of the little world

A GRU of {WIDTH} numbers, {found["parameters"]:,} learned ones, beside the decoder of `lab/staircase`: the same stories
and batches, {growing.ROWS["decoder"].num_steps:,} steps of AdamW, gradients clipped at {CLIP_NORM:g}, and the same
stories to be judged on. No weights are kept; the numbers stand in `record.json`. Settings:
`lab/story_gru/run.py`; `make models ONLY=story_gru` trains it again.

- **Result.** Nats per word above the lowest loss possible, and right answers to the questions of each kind; the best
  rate with seeds 0, 1 and 2, the others with seed 0:

{table}

- **Told.** Of the sentences of {telling.NUM_STORIES} stories of {telling.NUM_WORDS} words, drawn as they come, so many
  in a hundred are possible where they stand, with seeds 0, 1, 2: {told}.
- **Doubted.** The doubt about a word is by how much the likeliest one would have been likelier, in nats. If of
  {story_labels.NUM_TEST:,} stories, half of them impossible (`lab/story_labels`), that half is called so with the
  larger of the largest doubts, so many in a hundred are judged rightly: {doubted}.
- **One hidden word**, guessed from both sides of it, by putting each word there in turn (`lab/story_labels`). Nats:
  {hidden}.
- **Licence.** The numbers are under Apache-2.0, as the code.
"""
