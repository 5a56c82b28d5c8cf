"""Choose the settings of the vision transformer on a fold of the training digits; no test image is looked at.

Every fifth training digit of each class is kept out and judged by. What is chosen stands in the chapter and in
`lab/vision/run.py`; this prints what it was chosen from. Run it by hand: `python -m lab.digits.choose_vision`.
"""

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.convolution import ConvolutionalNetwork
from lab.vision.run import TRAINING, VISION, bright, fold_of, shifted_batches, vision_accuracy
from plainformer.data.digits import Digits

TWO_LAYERS = pf.StackConfig(d_model=64, num_layers=2, d_ff=128, position_scheme="sinusoidal_2d")
SMALL = pf.ViTConfig(image_size=8, patch_size=(2, 4), num_classes=10, stack=TWO_LAYERS, pooling="mean")
HOW = pf.TrainingConfig(num_steps=1000, warmup_steps=40, min_lr_ratio=0.01)
FEW = dataclasses.replace(HOW, num_steps=400)
JOINT = dataclasses.replace(HOW, num_steps=700)
SHORT = dataclasses.replace(TRAINING, num_steps=1000)
RATES, DECAYS = (2e-3, 4e-3, 8e-3, 1.6e-2), (0.1, 0.5)


def small(seed: int):
    """The chapter's small vision transformer."""
    return pf.ViT(SMALL, key=jax.random.key(seed))


def convolutional(seed: int):
    """The chapter's convolutional network."""
    return ConvolutionalNetwork(8, (16, 32), key=jax.random.key(seed))


def stored(seed: int):
    """The vision transformer that is stored."""
    return pf.ViT(VISION, key=jax.random.key(seed))


def varied(digits: Digits, seed: int) -> Callable[[int], tuple]:
    """Moved and noisy digits."""
    return shifted_batches(digits, 64, seed, noise=0.3)


def moved(digits: Digits, seed: int) -> Callable[[int], tuple]:
    """Moved digits, without noise."""
    return shifted_batches(digits, 64, seed)


def unmoved(digits: Digits, seed: int) -> Callable[[int], tuple]:
    """Every fifth of the digits, as it is."""
    images, labels = bright(digits.images[::5]), digits.labels[::5]

    def batch_at(step: int) -> tuple:
        chosen = jnp.asarray(np.random.default_rng((seed, step)).integers(len(labels), size=64))
        return pf.data.LabelledBatch(images[chosen], labels[chosen])

    return batch_at


WORDS = pf.data.number_words(range(10))
LETTERS = pf.Vocabulary.from_characters("".join(WORDS))
IDS, IS_LETTER = map(np.asarray, pf.data.pad_texts([LETTERS.encode(word) for word in WORDS]))


def joint(seed: int):
    """The chapter's reader of an image and a word."""
    num_letters, stack = IDS.shape[1], pf.StackConfig(d_model=48, num_layers=2, d_ff=96)
    sizes = {"context_len": 8 + num_letters, "d_in": 8 + len(LETTERS), "num_segments": 2}
    reader = pf.EncoderConfig(**sizes, stack=stack, use_class_token=True)
    return pf.EncoderClassifier(pf.ClassifierConfig(encoder=reader, num_classes=2), key=jax.random.key(seed))


def questions(images, labels, random: np.random.Generator) -> tuple:
    """For each image a number in words, right for about half; as rows, answers, which rows are tokens, segments."""
    labels = np.asarray(labels)
    others = (labels + random.integers(1, 10, size=len(labels))) % 10
    numbers = np.where(random.random(len(labels)) < 0.5, labels, others)
    patches = pf.image_to_patches(images, (2, 4))
    letters = jax.nn.one_hot(IDS[numbers], len(LETTERS))
    widths = [(0, 0), (0, 0)]
    patches = jnp.pad(patches, [*widths, (0, len(LETTERS))])
    rows = jnp.concatenate([patches, jnp.pad(letters, [*widths, (8, 0)])], axis=1)
    is_token = jnp.concatenate([jnp.ones((len(labels), 8), bool), jnp.asarray(IS_LETTER[numbers])], axis=1)
    segments = jnp.tile(jnp.repeat(jnp.arange(2), jnp.array([8, IDS.shape[1]])), (len(labels), 1))
    return pf.data.LabelledBatch(rows, jnp.asarray(numbers == labels, jnp.int32), is_token, segments)


def pairs(digits: Digits, seed: int) -> Callable[[int], tuple]:
    """Moved digits, each with a number in words."""
    moved_at = moved(digits, seed)

    def batch_at(step: int) -> tuple:
        images, labels, *_ = moved_at(step)
        return questions(images, labels, np.random.default_rng((seed, step)))

    return batch_at


def joint_accuracy(model, digits: Digits) -> float:
    """The share of right answers about one number for each digit."""
    rows, answers, *given = questions(bright(digits.images), digits.labels, np.random.default_rng(0))
    return float((eqx.filter_jit(model)(rows, *given).argmax(axis=1) == answers).mean())


def on_fold(
    model_of: Callable, batches_of: Callable, how: pf.TrainingConfig, seeds=(0, 1, 2), judge: Callable = vision_accuracy
) -> list[float]:
    """What each seed comes to on the fold, trained on the rest of the training digits."""
    rest, fold = fold_of(pf.data.digits().training)

    def trained(seed: int):
        return pf.fit(model_of(seed), pf.classification_loss, batches_of(rest, seed), how, progress=False).model

    return [judge(trained(seed), fold) for seed in seeds]


def choose(
    name: str,
    model_of: Callable,
    batches_of: Callable,
    how: pf.TrainingConfig,
    seeds=(0, 1, 2),
    decays=DECAYS,
    judge: Callable = vision_accuracy,
) -> None:
    """Print the accuracy on the fold for every rate and decay, and which mean is the best, the first of equals."""
    means = {}
    for decay in decays:
        for rate in RATES:
            config = dataclasses.replace(how, learning_rate=rate, weight_decay=decay)
            found = on_fold(model_of, batches_of, config, seeds, judge)
            means[rate, decay] = round(float(np.mean(found)), 6)
            each = " ".join(f"{accuracy:.2%}" for accuracy in found)
            print(f"{name:32} rate {rate:g} decay {decay:g}: {np.mean(found):.2%} ({each})", flush=True)
    best = max(means, key=lambda setting: means[setting])
    print(f"{name:32} best: rate {best[0]:g}, decay {best[1]:g}", flush=True)


CHOICES: dict[str, tuple[Any, ...]] = {
    "small": ("vision transformer", small, varied, HOW),
    "convolutional": ("convolutional network", convolutional, varied, HOW),
    "few-small": ("few images: vision transformer", small, unmoved, FEW),
    "few-convolutional": ("few images: convolutional network", convolutional, unmoved, FEW),
    "stored": ("stored vision transformer", stored, moved, SHORT, (0,), (0.1,)),
    "joint": ("image and word", joint, pairs, JOINT, (0,), (0.1,), joint_accuracy),
}

if __name__ == "__main__":
    unknown = set(sys.argv[1:]) - set(CHOICES)
    if unknown:
        sys.exit(f"There is no choice {', '.join(sorted(unknown))}; expected some of {', '.join(CHOICES)}.")
    for choice in sys.argv[1:] or CHOICES:
        choose(*CHOICES[choice])
