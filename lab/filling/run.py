"""Train the masked autoencoder for longer, and in other sizes, than a cell can; write a record.

No weights are kept: how far the filled-in pixels are from the true ones is the result. `record.json` holds it.
"""

from typing import Any

import jax
import numpy as np

import plainformer as pf
from lab.filling import plateau
from lab.filling.runs import (
    BATCH_SIZE,
    NUM_SHOWN,
    RIDGES,
    SEEDS,
    SHARPNESS,
    STEPS,
    MaskedAutoencoder,
    Run,
    by_neighbours,
    by_regression,
    choices,
    error,
    measured,
    parts,
)

RATES, LONG = (4e-3, 8e-3), 3500


def opponents() -> dict[str, Any]:
    """The errors of what needs no training, on the test, with settings chosen on the fold."""
    found, (learned, judged) = {}, parts("all")
    rest, fold = parts("rest")
    shown, shown_of_fold = choices(len(judged), NUM_SHOWN, 0), choices(len(fold), NUM_SHOWN, 0)
    found["mean"] = error(np.broadcast_to(learned.mean(axis=0), judged.shape), judged, shown)
    for name, fill, values in (("regression", by_regression, RIDGES), ("neighbours", by_neighbours, SHARPNESS)):
        errors = [error(fill(rest, fold, shown_of_fold, value), fold, shown_of_fold) for value in values]
        best = values[int(np.argmin(errors))]
        found[name], found[f"{name}, setting"] = error(fill(learned, judged, shown, best), judged, shown), best
    return found


def best_rate() -> float:
    """The learning rate with the lowest error on the fold."""
    errors = [measured(Run(rate, part="rest")) for rate in RATES]
    return RATES[int(np.argmin(errors))]


def results() -> dict[str, Any]:
    """All that the card states."""
    rate = best_rate()
    return {
        "rate": rate,
        "parameters": pf.count_parameters(MaskedAutoencoder(64, "loud", key=jax.random.key(0))),
        "errors": [measured(Run(rate, seed)) for seed in SEEDS],
        "five times the steps": measured(Run(rate, steps=LONG)),
        "sinusoids": measured(Run(rate, positions="sinusoids")),
        "opponents": opponents(),
        "at their best": plateau.results(),
    }


def line(errors: list[float]) -> str:
    """The errors of three seeds."""
    return ", ".join(f"{each:.3f}" for each in errors)


def about_best(found: dict[str, Any]) -> str:
    """The part of the card about trainings until the error stands still, and about moved images."""
    rows, choices = [], []
    for name in plateau.NETWORKS:
        each = found[name]
        how = f"images {each['images']}, {each['steps']:,} steps, {each['passes']} passes"
        rows.append(f"| {name}, {each['parameters']:,} parameters, {how} | {line(each['errors'])} |")
        rows.append(f"| {name}, twice the steps | {line(each['errors, twice the steps'])} |")
        choices += [
            f"  - {name}, images {way}: by rate, {plateau.STEPS_TO_CHOOSE:,} steps: {by_name(on_fold['rates'])};"
            f" at {on_fold['rate']:g} by steps: {by_name(on_fold['curve'])}"
            for way, on_fold in each["fold"].items()
        ]
        choices.append(
            f"  - {name}, images {each['images']}, twice the steps: {by_name(each['fold, twice the steps'])}"
        )
    for name in ("neighbours", "regression"):
        each = found[name]
        rows.append(f"| {name}, {each['moves']} of each image, setting {each['setting']:g} | {each['error']:.3f} |")
        choices.append(f"  - {name}, copies of each image and setting: {by_name(each['grid'])}")
    head = ["| each at its best | 8 of 16 patches shown |", "|---|---|"]
    return "\n".join([*head, *rows, "", "- **By which was chosen**: errors on the fold.", "", *choices])


def by_name(errors: dict[str, float]) -> str:
    """Errors, each with the setting that it is of."""
    return ", ".join(f"{name}: {each:.3f}" for name, each in errors.items())


def facts(found: dict[str, Any]) -> dict[str, str]:
    """Mean squared errors: of each seed, of what was changed, and of what needs no network."""
    errors = {f"error.{seed}": each for seed, each in enumerate(found["errors"])}
    errors |= {name: found[name] for name in ("five times the steps", "sinusoids")}
    errors |= {name: found["opponents"][name] for name in ("regression", "neighbours")}
    best = found["at their best"]
    for name in plateau.NETWORKS:
        errors |= {f"best.{name}": float(np.mean(best[name]["errors"]))}
        errors |= {f"best.{name}.twice the steps": float(np.mean(best[name]["errors, twice the steps"]))}
        for way, on_fold in best[name]["fold"].items():
            errors[f"best.{name}.{way}.fold"] = on_fold["curve"][str(best[name]["steps"])]
        *_, errors[f"best.{name}.twice the steps.fold"] = best[name]["fold, twice the steps"].values()
    errors |= {f"best.{name}": best[name]["error"] for name in ("neighbours", "regression")}
    errors["best.neighbours.fold"] = min(best["neighbours"]["grid"].values())
    texts = {name: f"{each:.3f}" for name, each in errors.items()}
    return texts | {f"best.{name}.steps": f"{best[name]['steps']:,}" for name in plateau.NETWORKS}


def card(found: dict[str, Any]) -> str:
    """What was done, and what came out."""
    rivals = found["opponents"]
    return f"""# The masked autoencoder of digits

How well a small masked autoencoder paints patches of digits that it is not shown, beside what needs no network. No
weights are kept: the mean squared error of the hidden pixels, which lie from 0 to 2, is the result.

- **Data.** `plainformer.data.digits()`: 1,442 images to train on, 355 held out, by the same writers. Of 16 patches of
  2 × 2 pixels 8 are shown, drawn anew for each batch.
- **Model.** {found["parameters"]:,} parameters: an encoder of two blocks of width 64 that reads the patches that are
  shown, a decoder of one block that reads its rows and one learned row in all other places. Learned positions, which
  begin 50 times as large as usual.
- **Training.** {STEPS} steps of {BATCH_SIZE} images, or {LONG:,}; AdamW; learning rate up to {found["rate"]:g}, the
  better of {" and ".join(f"{rate:g}" for rate in RATES)} on a fold of 285 training digits; seeds 0, 1, 2. All settings
  stand in `lab/filling/run.py`; `make models ONLY=filling` trains again.
- **Opponents.** Linear regression of each hidden pixel on all that are shown, from means and covariances of the
  training images, with {rivals["regression, setting"]:g} added to the variances. Neighbours: the mean of all training
  images, weighted by a Gaussian kernel of sharpness {rivals["neighbours, setting"]:g}. Both settings were chosen on the
  fold.
- **Result.** Mean squared error on the test digits:

| | 8 of 16 patches shown |
|---|---|
| mean of the training images | {rivals["mean"]:.3f} |
| linear regression | {rivals["regression"]:.3f} |
| neighbours | {rivals["neighbours"]:.3f} |
| masked autoencoder, {STEPS} steps, each seed | {line(found["errors"])} |

- **Each at its best.** Whether training images are moved by up to a pixel was chosen on the fold, for networks after
  the whole training, for others among {", ".join(plateau.MOVES)} copies of each. The perceptron has two hidden layers
  of {plateau.NETWORKS["perceptron"][0].width} and reads all pixels, those of hidden patches 0, and which are shown.
  Mean squared error on the test digits, each seed:

{about_best(found["at their best"])}

- **Knobs turned**, images as they are, seed 0. With {LONG:,} steps: {found["five times the steps"]:.3f}. With
  two-dimensional sinusoids in place of the loud table of positions, {STEPS} steps: {found["sinusoids"]:.3f}. Not
  turned: the width, how many patches are shown.
- **Limits.** Tiny, centred digits; a test image has near relatives among the training images, and neighbours look them
  up. Whether the encoder is a good start for naming digits was not measured.
- **Licence.** The numbers are under Apache-2.0, as the code; the images are of the UCI repository.
"""
