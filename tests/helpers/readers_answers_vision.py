"""Answers to the exercises of the chapter `vision` as readers would write them, right ones and wrong ones."""

import jax
import jax.numpy as jnp
import numpy as np
from exercise_checks import in_jax, in_numpy

import plainformer as pf


def corners(image, tall, wide):
    """The top left corner of each patch, in reading order."""
    height, width, _ = image.shape
    return [(top, left) for top in range(0, height, tall) for left in range(0, width, wide)]


def cut_in_loops(flatten=lambda patch: patch.reshape(-1), order=corners):
    def cut(image, tall, wide):
        return np.stack([flatten(image[y : y + tall, x : x + wide]) for y, x in order(image, tall, wide)])

    return cut


def down_first(image, tall, wide):
    return sorted(corners(image, tall, wide), key=lambda corner: corner[::-1])


def every_corner(image, tall, wide):
    height, width, _ = image.shape
    return [(top, left) for top in range(height - tall + 1) for left in range(width - wide + 1)]


def x_before_y(image, tall, wide):
    rows = []
    for x in range(0, image.shape[0], wide):
        for y in range(0, image.shape[1], tall):
            rows.append(image[x : x + wide, y : y + tall].reshape(-1))
    return rows


def width_by_height(image, tall, wide):
    rows = []
    for y in range(0, image.shape[1], tall):
        for x in range(0, image.shape[0], wide):
            rows.append([image[x + j, y + i].tolist() for i in range(tall) for j in range(wide)])
    return np.array(rows).reshape(len(rows), -1)


def by_channels(patch):
    return np.concatenate([patch[..., c].ravel() for c in range(patch.shape[2])])


def one_reshape(image, tall, wide):
    return image.reshape(-1, tall * wide * image.shape[2])


CUT = [
    (one_reshape, "in one go"),
    (x_before_y, "height and width are swapped"),
    (width_by_height, "first axis of the image for its width"),
    (cut_in_loops(order=every_corner), "overlap"),
    (cut_in_loops(order=down_first), "down the columns first"),
    (cut_in_loops(lambda patch: np.concatenate(list(patch.transpose(1, 0, 2)), axis=None)), "column by column"),
    (cut_in_loops(by_channels), "channels come"),
    (cut_in_loops(lambda patch: patch), "do not flatten"),
    (lambda image, tall, wide: cut_in_loops()(image, tall, wide).T, "one column per patch"),
]


def repeated(class_vector, patches):
    return np.tile(class_vector, (patches.shape[0], 1, 1))


def whole(patches, class_vector, table):
    """Right."""
    return np.concatenate([repeated(class_vector, patches), patches], axis=1) + table


def at_the_end(patches, class_vector, table):
    return np.concatenate([patches, repeated(class_vector, patches)], axis=1) + table


def for_the_first_image(patches, class_vector, table):
    rows = np.zeros((patches.shape[0], patches.shape[1] + 1, patches.shape[2]))
    rows[:, 1:] = patches
    rows[0, 0] = class_vector
    return rows + table


def in_place_of_the_first_patch(patches, class_vector, table):
    rows = patches.copy()
    rows[:, 0] = class_vector
    return rows + table[:-1]


def before_positions(start):
    def embed(patches, class_vector, table):
        placed = patches + table[start : start + patches.shape[1]]
        return np.concatenate([repeated(class_vector, patches), placed], axis=1)

    return embed


def off_by_one(patches, class_vector, table):
    rows = np.concatenate([repeated(class_vector, patches), patches], axis=1)
    return np.stack([rows[:, n] + table[n - 1] for n in range(rows.shape[1])], axis=1)


def one_position_an_image(patches, class_vector, table):
    rows = np.concatenate([repeated(class_vector, patches), patches], axis=1)
    return rows + table[: len(rows)][:, None, :]


CLASS = [
    (at_the_end, "at the end"),
    (for_the_first_image, "only the first image"),
    (in_place_of_the_first_patch, "place of the first patch"),
    (lambda patches, class_vector, table: patches + class_vector + table[1:], "to every patch"),
    (lambda patches, class_vector, table: patches + class_vector + table[:-1], "to every patch"),
    (before_positions(1), "gets no position"),
    (before_positions(0), "gets no position"),
    (off_by_one, "off by one"),
    (lambda patches, class_vector, table: whole(patches, class_vector, 0 * table), "there are no positions"),
    (one_position_an_image, "one position to each image"),
    (lambda patches, class_vector, table: whole(patches, class_vector, table) + table, "positions twice"),
]


def rolled(
    heads=lambda layer: layer.mean(axis=0),
    keep=lambda matrix: 0.5 * matrix + 0.5 * np.eye(len(matrix)),
    step=lambda matrix, found: matrix @ found,
    start=np.eye,
):
    """The loop of a reader who stays with NumPy and takes the layers in turn."""

    def roll(weights):
        found = start(weights.shape[-1])
        for layer in weights:
            found = step(keep(heads(layer)), found)
        return found

    return roll


def normalised(matrix):
    return matrix / matrix.sum(axis=-1, keepdims=True)


def mixed(weights):
    """One matrix for each layer, half of it the identity."""
    return (weights.mean(axis=1) + np.eye(weights.shape[3])) / 2


def per_head(weights):
    matrices = [weights[:, h].mean(axis=0) for h in range(weights.shape[1])]
    found = np.eye(weights.shape[3])
    for matrix in matrices:
        found = (matrix + np.eye(len(matrix))) / 2 @ found
    return found


ROLLOUT = [
    (rolled(keep=lambda matrix: matrix), "identity is missing"),
    (rolled(keep=lambda matrix: matrix + np.eye(len(matrix))), "do not halve"),
    (rolled(keep=lambda matrix: matrix / 2), "leave out the identity"),
    (rolled(keep=lambda matrix: 0.5 * matrix + 0.5), "one half everywhere"),
    (rolled(keep=lambda matrix: normalised(matrix + 1)), "one half everywhere"),
    (rolled(heads=sum), "add the heads up"),
    (rolled(heads=lambda layer: layer[0]), "a single head"),
    (rolled(heads=lambda layer: layer[-1]), "a single head"),
    (rolled(heads=lambda layer: layer.max(axis=0)), "largest weight"),
    (rolled(heads=lambda layer: normalised(layer.max(axis=0))), "largest weight"),
    (per_head, "average over the layers, axis 0"),
    (rolled(step=lambda matrix, found: found @ matrix), "wrong order"),
    (rolled(step=lambda matrix, found: matrix * found, start=lambda rows: np.ones((rows, rows))), "number by number"),
    (lambda weights: normalised(np.prod(mixed(weights), axis=0)), "number by number"),
    (lambda weights: mixed(weights).mean(axis=0), "average the layers, where"),
    (lambda weights: mixed(weights).sum(axis=0), "add the layers up"),
    (rolled(step=lambda matrix, found: matrix), "of a single layer"),
    (lambda weights: mixed(weights)[0], "of a single layer"),
    (lambda weights: rolled()(weights).T, "is transposed"),
    (lambda weights: rolled()(weights)[0], "row of the class token"),
    (lambda weights: rolled()(weights)[0, 1:], "row of the class token"),
]


def one_image_at_a_time(patches, class_vector, table):
    return jax.vmap(lambda rows: jnp.vstack([class_vector[None], rows]) + table)(patches)


RIGHT = [
    ("cut_patches", in_numpy(cut_in_loops())),
    ("cut_patches", in_jax(lambda image, tall, wide: pf.image_to_patches(image, (tall, wide)), static_argnums=(1, 2))),
    ("class_token", in_numpy(whole)),
    ("class_token", in_jax(one_image_at_a_time)),
    ("rollout", in_numpy(rolled())),
    ("rollout", in_numpy(lambda weights: np.linalg.multi_dot([np.eye(weights.shape[3]), *mixed(weights)[::-1]]))),
    ("rollout", in_jax(pf.attention_rollout)),
]
WRONG = [
    *(("cut_patches", in_numpy(function), words) for function, words in CUT),
    *(("class_token", in_numpy(function), words) for function, words in CLASS),
    *(("rollout", in_numpy(function), words) for function, words in ROLLOUT),
]
