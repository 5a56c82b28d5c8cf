"""A fifth of the training digits, moved in training: two networks, a support-vector machine and nearest neighbours.

Rates, numbers of steps and settings are chosen on three folds of these 289 digits, each of which is judged by once.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import plainformer as pf
from lab.digits import choose_vision
from lab.records import BUILD, kept
from lab.vision.run import BATCH_SIZE, bright, moved_copies, vision_accuracy
from plainformer.data.digits import Digits

KEPT, SEEDS, NUM_FOLDS, PART = BUILD / "digits", (0, 1, 2), 3, 5
RATES, TO_CHOOSE = (1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2), 500  # learning rates, and steps by which one is chosen
STEPS, EVERY = 2000, 250  # of the trainings that are judged, and after how many the curve has a point
NETWORKS: dict[str, tuple[Callable, float]] = {  # the model of a seed, and its weight decay, as with all digits
    "vision transformer": (choose_vision.small, 0.5),
    "convolutional network": (choose_vision.convolutional, 0.1),
}
MOVES = {"five": 1, "nine": 2}  # copies moved along one direction or along both
COSTS, SCALES, NEIGHBOURS = (1.0, 10.0, 100.0), (0.5, 1.0, 2.0, 4.0), (1, 3, 5)


def answers(model, *inputs) -> str:
    """The class that the model names for each input, one sign each."""
    return "".join(map(str, np.asarray(eqx.filter_jit(model)(*inputs).argmax(axis=1)).tolist()))


def few(digits: Digits) -> Digits:
    """Every fifth of them."""
    return Digits(digits.images[::PART], digits.labels[::PART])


def folds(digits: Digits) -> Iterator[tuple[Digits, Digits]]:
    """What is learned from, and what is judged by: each digit is judged by once."""
    labels = np.asarray(digits.labels)
    for parts in StratifiedKFold(NUM_FOLDS, shuffle=True, random_state=0).split(labels, labels):
        rest, fold = (Digits(digits.images[part], digits.labels[part]) for part in parts)
        yield rest, fold


def trained(name: str, rate: float, steps: int, digits: Digits, seed: int, fold: Digits | None = None):
    """A network trained on moved digits, and the share of the fold that it names on the way."""
    model_of, decay = NETWORKS[name]
    settings: dict[str, Any] = {
        "num_steps": steps,
        "learning_rate": rate,
        "weight_decay": decay,
        "evaluate_every": EVERY,
    }
    evaluate = None if fold is None else lambda model: {"accuracy": vision_accuracy(model, fold)}
    model, metrics = pf.fit(
        model_of(seed),
        pf.classification_loss,
        choose_vision.varied(digits, seed),
        dataclasses.replace(choose_vision.HOW, **settings),
        evaluate=evaluate,
        progress=False,
    )
    return model, [each["accuracy"] for each in metrics if "accuracy" in each]


def on_folds(share_of: Callable[[Digits, Digits], Any], digits: Digits) -> Any:
    """The share of all digits that are named by what was fitted to the other folds; or several, `(n,)`."""
    rights = [np.asarray(share_of(rest, fold)) * len(fold.labels) for rest, fold in folds(digits)]
    return np.round(sum(rights) / len(digits.labels), 5).tolist()


def by_network(name: str, training: Digits, test: Digits) -> dict[str, Any]:
    """The rate, chosen by the folds, the curve there, and what three seeds then answer to the test."""
    digits = few(training)

    def on_the_way(rate: float, steps: int) -> list[float]:
        """The share of the folds that is named, every so many steps."""
        place = KEPT / f"few-{name}-{rate:g}-{steps}.json"
        return kept(place, lambda: on_folds(lambda rest, fold: trained(name, rate, steps, rest, 0, fold)[1], digits))

    def answered(seed: int) -> str:
        place = KEPT / f"few-{name}-{rate:g}-{STEPS}-answers-{seed}.json"
        return kept(place, lambda: answers(trained(name, rate, STEPS, digits, seed)[0], bright(test.images)))

    rates = {each: on_the_way(each, TO_CHOOSE)[-1] for each in RATES}
    rate = max(RATES, key=lambda each: rates[each])
    curve = on_the_way(rate, STEPS)
    print(name, rates, curve, flush=True)
    return {
        "rates": {f"{each:g}": share for each, share in rates.items()},
        "rate": rate,
        "curve": {str(EVERY * (1 + point)): share for point, share in enumerate(curve)},
        "steps": STEPS,
        "passes": round(STEPS * BATCH_SIZE / len(digits.labels)),
        "parameters": pf.count_parameters(NETWORKS[name][0](0)),
        "answers": [answered(seed) for seed in SEEDS],
    }


def machine(cost: float, scale: float, images: np.ndarray) -> SVC:
    """A support-vector machine with a Gaussian kernel, whose width is a multiple of the one by the variance."""
    return SVC(C=cost, gamma=scale / (images.shape[1] * images.var()))


def by_copies(made: Callable, settings: dict[str, tuple], training: Digits, test: Digits) -> dict[str, Any]:
    """What is fitted to moved copies: which copies and settings the folds choose, and what it answers to the test."""
    digits = few(training)

    def fitted(learned: Digits, moves: str, *setting):
        copies = moved_copies(learned, MOVES[moves])
        images = flat(copies)
        return made(*setting, images).fit(images, np.asarray(copies.labels))

    def share(*setting) -> float:
        return on_folds(lambda rest, fold: fitted(rest, *setting).score(flat(fold), np.asarray(fold.labels)), digits)

    grid = {setting: share(*setting) for setting in itertools.product(MOVES, *settings.values())}
    best = max(grid, key=lambda setting: grid[setting])
    return {
        "grid": {", ".join(map(str, setting)): each for setting, each in grid.items()},
        "setting": dict(zip(["moves", *settings], best, strict=True)),
        "answers": ["".join(map(str, fitted(digits, *best).predict(flat(test)).tolist()))],
    }


def flat(digits: Digits) -> np.ndarray:
    """Images as rows of pixels."""
    return np.asarray(digits.images).reshape(len(digits.labels), -1)


def machines(training: Digits, test: Digits) -> dict[str, dict]:
    """The support-vector machine and the nearest neighbours, each with moved copies."""

    def neighbours(count: int, images: np.ndarray) -> KNeighborsClassifier:
        return KNeighborsClassifier(count, weights="distance")

    return {
        "support-vector machine": by_copies(machine, {"C": COSTS, "gamma": SCALES}, training, test),
        "nearest neighbours": by_copies(neighbours, {"neighbours": NEIGHBOURS}, training, test),
    }


def results(training: Digits, test: Digits) -> dict[str, dict]:
    """What all answer to the test digits, and what their settings were chosen from."""
    return {name: by_network(name, training, test) for name in NETWORKS} | machines(training, test)
