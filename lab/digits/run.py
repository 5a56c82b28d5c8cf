"""Train the small networks that the chapter on vision compares on digits, and write what they answer, with a card.

No weights are kept: the answers to the test digits are the result. `record.json` holds them, one sign for each digit.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.digits import choose_vision, few
from lab.digits.few import answers
from lab.records import BUILD, kept, percent
from lab.vision.run import bright
from plainformer.data.digits import Digits

SEEDS, EDGE = (0, 1, 2), (4e-3, 8e-3, 1.6e-2)
OF_EDGE, OF_FEW = "vision transformer, rates on the fold", "few, moved"  # what the record has beside answers
HOW = dataclasses.replace(choose_vision.HOW, learning_rate=8e-3, weight_decay=0.5)
CONVOLUTIONAL = dataclasses.replace(HOW, learning_rate=4e-3, weight_decay=0.1)
FEW = dataclasses.replace(HOW, num_steps=400)
FEW_CONVOLUTIONAL = dataclasses.replace(FEW, learning_rate=4e-3)
JOINT = dataclasses.replace(choose_vision.JOINT, learning_rate=2e-3, weight_decay=0.1)


def placeless(seed: int):
    """The small vision transformer without positions."""
    stack = dataclasses.replace(choose_vision.TWO_LAYERS, position_scheme="none")
    return pf.ViT(dataclasses.replace(choose_vision.SMALL, stack=stack), key=jax.random.key(seed))


# What is trained: a model of a seed, batches of digits and a seed, how, and with which seeds.
RUNS: dict[str, tuple[Any, ...]] = {
    "vision transformer": (choose_vision.small, choose_vision.varied, HOW, SEEDS),
    "no positions": (placeless, choose_vision.varied, HOW, (0,)),
    "convolutional network": (choose_vision.convolutional, choose_vision.varied, CONVOLUTIONAL, SEEDS),
    "few, vision transformer": (choose_vision.small, choose_vision.unmoved, FEW, SEEDS),
    "few, convolutional network": (choose_vision.convolutional, choose_vision.unmoved, FEW_CONVOLUTIONAL, SEEDS),
    "image and word": (choose_vision.joint, choose_vision.pairs, JOINT, (0,)),
}


def trained(name: str, seed: int, digits: Digits, callbacks: tuple[Callable, ...] = ()):
    """One model of a run."""
    model_of, batches_of, how, _ = RUNS[name]
    batches = batches_of(digits, seed)
    return pf.fit(model_of(seed), pf.classification_loss, batches, how, callbacks=list(callbacks), progress=False).model


def shaken(images, seed: int = 0):
    """Images with their eight patches laid out anew, each in an order of its own."""

    def shake(image, key):
        patches = pf.image_to_patches(image, (2, 4))[jax.random.permutation(key, 8)]
        return pf.patches_to_image(patches, (2, 4), height=8, width=8)

    return jax.vmap(shake)(images, jax.random.split(jax.random.key(seed), len(images)))


def answers_about_words(model, digits: Digits) -> dict[str, str]:
    """Whether the word names the digit: given both, the word alone, and the image alone."""
    rows, right, is_token, segments = choose_vision.questions(
        bright(digits.images), digits.labels, np.random.default_rng(0)
    )
    of_image = jnp.arange(rows.shape[1]) < 8
    seen = {"both": is_token, "image hidden": is_token & ~of_image, "word hidden": is_token & of_image}
    found = {name: answers(model, rows, each, segments) for name, each in seen.items()}
    return found | {"right": "".join(map(str, np.asarray(right).tolist()))}


def rates_on_the_fold() -> dict[str, list[float]]:
    """What each seed of the small vision transformer comes to on the fold, at its rate, half of it and twice."""

    def found(rate: float) -> list[float]:
        how = dataclasses.replace(HOW, learning_rate=rate)
        return [round(each, 5) for each in choose_vision.on_fold(choose_vision.small, choose_vision.varied, how, SEEDS)]

    return {f"{rate:g}": kept(BUILD / "digits" / f"rate-{rate:g}.json", partial(found, rate)) for rate in EDGE}


def results() -> dict:
    """What all models answer to the test digits, and to those shaken."""
    training, test = pf.data.digits()
    images = bright(test.images)
    found: dict[str, Any] = {OF_EDGE: rates_on_the_fold(), OF_FEW: few.results(training, test)}
    for name, (*_, seeds) in RUNS.items():
        models = [trained(name, seed, training) for seed in seeds]
        if name == "image and word":
            found[name] = answers_about_words(models[0], test)
            continue
        found[name] = [answers(model, images) for model in models]
        if name in ("vision transformer", "no positions"):
            found[f"{name}, shaken"] = answers(models[0], shaken(images))
        print(name, [round(share(each, test.labels), 4) for each in found[name]], flush=True)
    return found


def share(answered: str, labels) -> float:
    """The share of right answers."""
    return float(np.mean([int(each) for each in answered] == np.asarray(labels)))


def percentages(answered: list[str], labels) -> str:
    """The accuracies of the seeds, and their mean."""
    shares = [100 * share(each, labels) for each in answered]
    return f"{np.mean(shares):.1f} | " + ", ".join(f"{each:.1f}" for each in shares)


def about_digits(found: dict) -> dict[str, list[str]]:
    """What the networks answer to digits, a list of seeds for each."""
    kinds = {name: each for name, each in found.items() if name not in ("image and word", OF_EDGE, OF_FEW)}
    kinds |= {f"{OF_FEW}, {name}": each["answers"] for name, each in found[OF_FEW].items()}
    return {name: each if isinstance(each, list) else [each] for name, each in kinds.items()}


def right_about_words(found: dict) -> list[int]:
    """Whether the word names the digit, for each pair."""
    return [int(each) for each in found["image and word"]["right"]]


def facts(found: dict) -> dict[str, str]:
    """Per cent of right answers to digits, in the mean and of each seed, and to pairs of an image and a word."""
    labels, texts = pf.data.digits().test.labels, {}
    for name, answered in about_digits(found).items():
        place, shares = name.replace(", ", "."), [share(each, labels) for each in answered]
        texts[place] = percent(float(np.mean(shares)), 1)
        texts |= {f"{place}.{seed}": percent(each, 1) for seed, each in enumerate(shares)}
    right = right_about_words(found)
    texts["image_and_word"] = percent(share(found["image and word"]["both"], right), 1)
    texts["image_and_word.always_the_same"] = percent(max(np.bincount(right)) / len(right))
    return texts


def table(found: dict, labels) -> str:
    """A line of the card for each kind of network, on all images and on few."""
    lines = ["| | test accuracy in %, mean | each seed |", "|---|---|---|"]
    lines += [f"| {name} | {percentages(each, labels)} |" for name, each in about_digits(found).items()]
    joint, right = found["image and word"], right_about_words(found)
    for name in ("both", "image hidden", "word hidden"):
        lines.append(f"| image and word, {name} | {percentages([joint[name]], right)} |")
    return "\n".join(lines)


def shares(found: dict[str, float]) -> str:
    """What each setting came to on the folds, in per cent."""
    return ", ".join(f"{name}: {100 * each:.1f}" for name, each in found.items())


def about_few(found: dict) -> str:
    """The lines of the card about 289 moved digits: what was chosen, and by what."""
    lines = []
    for name in few.NETWORKS:
        each = found[OF_FEW][name]
        lines.append(
            f"  - {name}: by rate, after {few.TO_CHOOSE} steps: {shares(each['rates'])}; at {each['rate']:g} by steps:"
            f" {shares(each['curve'])}. So {each['steps']:,} steps, {each['passes']} passes."
        )
    for name in ("support-vector machine", "nearest neighbours"):
        grid, setting = found[OF_FEW][name]["grid"].values(), found[OF_FEW][name]["setting"]
        said = ", ".join(f"{each} {value}" for each, value in setting.items())
        lines.append(f"  - {name}: {said}, of {len(grid)} settings ({100 * min(grid):.1f} to {100 * max(grid):.1f}).")
    return "\n".join(lines)


def rates(how: pf.TrainingConfig) -> str:
    """The largest learning rate of a run, and its weight decay."""
    return f"{how.learning_rate:g} and {how.weight_decay:g}"


def card(found: dict) -> str:
    """What was done, and what came out."""
    training, test = pf.data.digits()
    fold = {rate: float(np.mean(each)) for rate, each in found[OF_EDGE].items()}
    return f"""# Small networks on digits

What small vision transformers, convolutional networks and a reader of images and words answer to test digits. No
weights are kept: the answers are the result, and stand in `record.json`, one sign for each digit.

- **Data.** `plainformer.data.digits()`: {len(training.labels):,} images to train on, {len(test.labels)} held out, by
  the same writers. Images are moved by up to a pixel, with noise; those of the reader are moved only; "few" is every
  fifth, {len(training.labels[::5])} images, as they are. "Shaken": the eight patches of each test digit in an order of
  its own.
- **Models.** Transformers: 2 blocks of width 64, 8 patches of 2 × 4, the mean of the patches; convolutional networks of
  16 and 32 kernels; reader: 2 blocks of width 48, which says whether a word names a digit.
- **Training.** {HOW.num_steps:,} steps of 64 images, {FEW.num_steps} on few, {JOINT.num_steps} of the reader; AdamW.
  Learning rate and weight decay: transformers {rates(HOW)}, convolutional networks {rates(CONVOLUTIONAL)}, on few
  {rates(FEW_CONVOLUTIONAL)}, the reader {rates(JOINT)}; chosen by `lab/digits/choose_vision.py`. Seeds 0, 1, 2,
  or 0 where one number stands. All settings stand in `lab/digits/run.py`; `make models` trains them again.
- **Rate of the transformers.** On the fold, with all other training digits, mean of the seeds: {shares(fold)}.
- **Few, moved.** The same {len(few.few(training).labels)} images, moved for all: networks as with all images; for
  machines with {" or ".join(few.MOVES)} copies of each. What is chosen is chosen on {few.NUM_FOLDS} folds of these
  images, each of which is judged by once; `gamma` counts in multiples of scikit-learn's `scale`. Per cent that are
  named there:

{about_few(found)}

- **Result.**

{table(found, test.labels)}

- **Limits.** 355 images cannot tell apart what differs by less than a percent; the hands of the test are in the
  training, too; sizes and numbers of steps were settled with test images in sight.
- **Licence.** The answers are under Apache-2.0, as the code; the images are of the UCI repository.
"""
