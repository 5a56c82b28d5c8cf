"""The exercises of chapter 09: how an image becomes rows, and how attention is followed through the layers."""

import numpy as np

from plainformer.exercises import patch_mistakes, rollout_mistakes as rollout
from plainformer.exercises.exercise import Case, Exercise


def _cut_patches(
    image,
    tall,
    wide,
    *,
    cut=patch_mistakes.tiles,
    count=lambda tiles: tiles,
    within=lambda tiles: tiles,
    lay=patch_mistakes.as_rows,
):
    return lay(within(count(cut(image, tall, wide))))


def _class_token(patches, class_vector, table, *, put=patch_mistakes.put_first, add=patch_mistakes.add_in_order):
    return add(put(patches, class_vector), table)


def _rollout(
    weights,
    *,
    gather=rollout.mean_of_heads,
    keep=rollout.half_identity,
    join=rollout.product,
    finish=lambda found: found,
):
    return finish(join(keep(gather(weights))))


def _cut_cases() -> list[Case]:
    rng = np.random.default_rng(2021)

    def case(name, shape, tall, wide, is_edge=False):
        image = rng.integers(1, 100, shape) / 4
        return Case(name, {"image": image, "tall": tall, "wide": wide}, is_edge)

    return [
        case("patches wider than tall", (6, 12, 5), 2, 3),
        case("patches taller than wide", (8, 4, 3), 4, 2),
        case("a grey image", (12, 6, 1), 3, 2),
        case("patches of a single pixel", (2, 4, 3), 1, 1, is_edge=True),
        case("an image that is one patch", (2, 3, 4), 2, 3, is_edge=True),
    ]


def _cut_examples() -> list[dict]:
    def example(shape, tall, wide):
        return {"image": np.arange(np.prod(shape)).reshape(shape) + 0.0, "tall": tall, "wide": wide}

    return [example((2, 4, 1), 2, 2), example((2, 4, 1), 1, 2), example((2, 2, 2), 1, 2), example((2, 2, 1), 1, 1)]


def _class_cases() -> list[Case]:
    rng = np.random.default_rng(2020)

    def case(name, num_images, num_patches, d_model, is_edge=False):
        shapes = {"patches": (num_images, num_patches, d_model), "class_vector": (d_model,)}
        shapes["table"] = (num_patches + 1, d_model)
        return Case(name, {each: rng.normal(size=shape).round(2) for each, shape in shapes.items()}, is_edge)

    return [
        case("three images", 3, 5, 4),
        case("more images than patches", 4, 2, 6),
        case("a single image", 1, 4, 3, is_edge=True),
        case("images of one patch", 3, 1, 4, is_edge=True),
    ]


def _class_examples() -> list[dict]:
    table = np.array([[10.0, 10], [20, 20], [30, 30]])
    images = np.array([[[1.0, 2], [3, 4]], [[5, 6], [7, 8]]])
    return [{"patches": images, "class_vector": np.array([0.25, 0.5]), "table": table}]


def _rollout_cases() -> list[Case]:
    rng = np.random.default_rng(2020)

    def case(name, layers, heads, rows, is_edge=False):
        powers = np.exp(1.5 * rng.normal(size=(layers, heads, rows, rows)))
        return Case(name, {"weights": powers / powers.sum(axis=3, keepdims=True)}, is_edge)

    return [
        case("three layers", 3, 2, 5),
        case("more heads than layers", 2, 4, 3),
        case("a single layer", 1, 3, 4, is_edge=True),
        case("a single head", 3, 1, 4, is_edge=True),
    ]


def _rollout_examples() -> list[dict]:
    first = [[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]
    second = [[[1.0, 0.0], [1.0, 0.0]], [[0.5, 0.5], [0.5, 0.5]]]
    return [{"weights": np.array([first, second])}]


EXERCISES = {
    "cut_patches": Exercise(
        _cut_patches,
        patch_mistakes.CUT_PATCHES,
        _cut_cases,
        _cut_examples,
        "(num_patches, tall * wide * channels)",
        "images such as {image}, patches of {tall} x {wide} pixels",
    ),
    "class_token": Exercise(
        _class_token,
        patch_mistakes.CLASS_TOKEN,
        _class_cases,
        _class_examples,
        "(num_images, 1 + num_patches, d_model)",
        "patches {patches}, a table {table}",
    ),
    "rollout": Exercise(
        _rollout,
        rollout.ROLLOUT,
        _rollout_cases,
        _rollout_examples,
        "(rows, rows)",
        "{weights[0]} layers of {weights[1]} heads, {weights[2]} tokens",
        has_rows_of_weights=True,
    ),
}
