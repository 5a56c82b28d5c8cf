"""Train the encoder of things for twice as long; it, the decoder of things and the encoder of names at other rates."""

import dataclasses
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import plainformer as pf
from lab import records
from lab.encoder import run as names
from lab.holes.run import asked_of_names
from lab.records import BUILD, percent
from lab.things_decoder import run as decoder
from lab.things_decoder.next_letter_by_counting import NAME
from lab.things_encoder import run as things
from lab.things_lines import SEEDS, TRAINING, questions

KEPT = BUILD / "encoder_longer"
LONGER = dataclasses.replace(TRAINING, num_steps=20_000, evaluate_every=2000)
RATES, TRIED_STEPS = (0.0015, 0.003, 0.006), 1000


@cache
def texts() -> dict[str, Any]:
    """What is learned from, and what is held out."""
    return {"things": pf.data.thing_splits(), "names": pf.data.name_splits()}


def train_things(training: pf.TrainingConfig, folder: str, seed: int = 0, evaluate: Callable | None = None):
    """The encoder of things, and its metrics."""
    return things.train_encoder(texts()["things"].training, seed, training, KEPT / folder, evaluate)


def train_names(training: pf.TrainingConfig, folder: str):
    """The encoder of names by themselves, and its metrics."""
    return names.train_encoder(texts()["names"].training, training, KEPT / folder)


def train_decoder(training: pf.TrainingConfig, folder: str):
    """The decoder of things, and its metrics."""
    return decoder.train_decoder(texts()["things"].training, 0, training, KEPT / folder)


def nats_of_things(model: pf.MaskedLanguageModel) -> float:
    """The mean surprise at the hidden letters of `lab/things_encoder`."""
    return float(things.surprises(model, questions(texts()["things"].test, things.NUM_QUESTIONS))[0].mean())


def nats_of_names(model: pf.MaskedLanguageModel) -> float:
    """The mean surprise at the hidden letters of `lab/holes`."""
    return float(names.surprise_by_encoder(model, asked_of_names(texts()["names"])).mean())


def nats_of_decoder(model: pf.Decoder) -> float:
    """The mean surprise at the fourth names of `lab/things_decoder`."""
    lines = decoder.lines_to_judge(texts()["things"].test)
    return decoder.by_name(decoder.surprise_by_letter(model, [", ".join(line) for line in lines]), lines)[NAME]


class Kind(NamedTuple):
    """How a model is trained, and its loss on what is held out."""

    train: Callable
    nats: Callable


KINDS = {
    "things": Kind(train_things, nats_of_things),
    "names": Kind(train_names, nats_of_names),
    "decoder": Kind(train_decoder, nats_of_decoder),
}


def tried(kind: str) -> dict[str, float]:
    """The loss on what is held out after a short training at each rate."""

    def at(rate: float) -> float:
        training = dataclasses.replace(TRAINING, num_steps=TRIED_STEPS, learning_rate=rate)
        return round(KINDS[kind].nats(KINDS[kind].train(training, f"{kind}_{rate:g}").model), 4)

    return {f"{rate:g}": records.kept(KEPT / f"{kind}_{rate:g}.json", partial(at, rate)) for rate in RATES}


def longer(seed: int) -> dict:
    """The encoder of things after the longer training: its loss on the way, and how `lab/things_encoder` judges it."""

    def find() -> dict:
        held_out = texts()["things"]
        model, metrics = train_things(LONGER, f"things_{seed}", seed, nats_of_things)
        curve = [[each["step"], round(each["validation_loss"], 4)] for each in metrics if "validation_loss" in each]
        asked = questions(held_out.test, things.NUM_QUESTIONS)
        return {"curve": curve} | things.judged(partial(things.surprises, model), held_out, asked)

    return records.kept(KEPT / f"things_{seed}.json", find)


def results() -> dict:
    """Train all of them where they are not kept."""
    return {"things": [longer(seed) for seed in SEEDS], "rates": {kind: tried(kind) for kind in KINDS}}


def nats_of(found: dict) -> list[float]:
    """What the seeds have in the end."""
    return [each["nats"] for each in found["things"]]


def facts(found: dict) -> dict[str, str]:
    """What chapters say after the longer training: nats, and per cent of the letters guessed, of each seed."""
    return {
        "nats": ", ".join(f"{nats:.3f}" for nats in nats_of(found)),
        "right": ", ".join(percent(each["right"], 1) for each in found["things"]),
    }


def table(head: list[str], rows: dict[str, list[str]]) -> str:
    """A line for each row."""
    lines = [["", *head], ["---"] * (len(head) + 1), *([name, *cells] for name, cells in rows.items())]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def curves_table(found: dict) -> str:
    """The losses of the seeds on the way."""
    curves = {f"seed {seed}": each["curve"] for seed, each in enumerate(found["things"])}
    steps = [f"{step:,}" for step, _ in curves["seed 0"]]
    return table(steps, {name: [f"{nats:.3f}" for _, nats in curve] for name, curve in curves.items()})


def rates_table(found: dict) -> str:
    """The losses of all three after short trainings."""
    titles = {"things": "encoder of things", "names": "encoder of names", "decoder": "decoder of things"}
    tried = {titles[kind]: [f"{nats:.3f}" for nats in each.values()] for kind, each in found["rates"].items()}
    return table([f"{rate:g}" for rate in RATES], tried)


def card(found: dict) -> str:
    """What was done, and what came out."""
    forms = {"nats": ".3f", "right": ".1%", "slips": ".1%"}
    nats, right, slips = (
        ", ".join(format(each[what], form) for each in found["things"]) for what, form in forms.items()
    )
    return f"""# The encoder of names of things, trained for longer and at other rates

No weights are kept. Was the encoder of `lab/things_encoder` trained for long enough? And were this encoder, that of
names by themselves and the decoder of things trained at the right rate?

- **Training.** As there, with seeds 0 to {len(found["things"]) - 1}, but {LONGER.num_steps:,} steps; the learning rate
  falls along half a cosine that ends with them. All settings stand in `lab/encoder_longer/run.py`.
- **Result.** The mean surprise, in nats, at one hidden letter in each of {things.NUM_QUESTIONS:,} lines with names of
  things held out, as `lab/things_encoder` asks. On the way, by steps:

{curves_table(found)}

- **In the end** the seeds have {nats} nats, guess {right} of the letters and find {slips} of
  {things.NUM_SLIPS} slips.
- **Rates.** The loss after {TRIED_STEPS:,} steps with seed 0 at three learning rates: of the encoder of things, as
  above; of that of `lab/encoder`, at the letters that `lab/holes` hides; of the decoder of `lab/things_decoder`, at the
  letters of the fourth name of a line. All longer trainings were at {TRAINING.learning_rate:g}.

{rates_table(found)}

- **Limits.** Length and rates were looked at on what is held out. Still more steps were not tried.
"""
