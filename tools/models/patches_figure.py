"""Write the numbers of the live figure `patches`: what the book's own vision transformer makes of a few test digits.

`make models` runs it, after the training. Each digit is shown to the model whole, and with each single patch painted
blank, as paper is; the figure computes nothing but means of heads.
"""

import json
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from train_vision import ROOT, bright

import plainformer as pf
from plainformer.data.digits import Digits
from plainformer.models.stored import load_pretrained

NUMBERS = ROOT / "widgets" / "patches.json"
NUM_SHOWN, NUM_MISREAD = 8, 2


def with_each_patch_hidden(image, model: pf.ViT):
    """The image, and the image with one patch white after the other, `(1 + num_patches, height, width, channels)`."""
    down, right = model.config.grid
    tall, wide = image.shape[0] // down, image.shape[1] // right
    is_shown = jnp.concatenate([jnp.ones((1, down * right)), 1 - jnp.eye(down * right)])
    pixels = jnp.repeat(jnp.repeat(is_shown.reshape(-1, down, right), tall, axis=1), wide, axis=2)
    return image[None] * pixels[:, :, :, None]


def chosen(model: pf.ViT, test: Digits) -> list[int]:
    """Which test images: first some that are misread, then of each digit one that a single patch decides, if any."""

    @eqx.filter_jit
    def answers_to(image):
        return model(with_each_patch_hidden(image, model)).argmax(axis=1)

    answers = jax.lax.map(answers_to, bright(test.images))
    labels, answers = np.asarray(test.labels), np.asarray(answers)
    is_right = answers[:, 0] == labels
    is_decided = is_right & (answers != answers[:, :1]).any(axis=1)
    found = np.flatnonzero(~is_right)[:NUM_MISREAD].tolist()
    for digit in range(10):
        of_digit = [*np.flatnonzero(is_decided & (labels == digit)), *np.flatnonzero(is_right & (labels == digit))]
        found += [int(number) for number in of_digit[:1]]
    return found[:NUM_SHOWN]


def patches_numbers(model: pf.ViT) -> dict:
    """The grid; and of each image its pixels, its label, and of each of its variants what the model makes of it.

    Weights are in thousandths, probabilities in hundred-thousandths, whole numbers: the file stays small.
    """
    test = pf.data.digits().test

    @eqx.filter_jit
    def of_image(image):
        variants = bright(with_each_patch_hidden(image, model))
        weights = model.attention_weights(variants)
        rollout = pf.attention_rollout(weights)
        return weights[:, :, :, 0], rollout[:, 0], jax.nn.softmax(model(variants), axis=1)

    def whole(array, unit):
        return np.rint(np.asarray(array, np.float64) * unit).astype(int).tolist()

    def numbers_of(number: int) -> dict:
        weights, rollout, probabilities = of_image(test.images[number])
        return {
            "number": number,
            "label": int(test.labels[number]),
            "pixels": whole(16 * test.images[number, :, :, 0], 1),
            "weights": whole(weights, 1000),
            "rollout": whole(rollout, 1000),
            "probabilities": whole(probabilities, 100_000),
        }

    return {"grid": list(model.config.grid), "images": [numbers_of(number) for number in chosen(model, test)]}


def write(path: Path = NUMBERS) -> None:
    """Write the numbers of the stored model."""
    numbers = patches_numbers(load_pretrained("vision")[0])
    path.write_text(json.dumps(numbers, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
