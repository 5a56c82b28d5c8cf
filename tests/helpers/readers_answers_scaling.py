"""Answers to the exercises of the chapter `scaling` as readers would write them, right ones and wrong ones."""

import jax.numpy as jnp
import numpy as np
from exercise_checks import in_jax, in_numpy


def summands(x, weight, num_devices):
    size = len(weight) // num_devices
    places = [slice(device * size, (device + 1) * size) for device in range(num_devices)]
    return np.stack([x[:, place] @ weight[place] for place in places])


def by_einsum(x, weight, num_devices):
    xs = x.reshape(len(x), num_devices, -1)
    return jnp.einsum("ndi,dij->dnj", xs, weight.reshape(num_devices, -1, weight.shape[1]))


def rows_cut(x, weight, num_devices):
    return np.stack([part @ weight for part in np.split(x, num_devices)])


def columns_cut(x, weight, num_devices):
    return np.stack([x @ part for part in np.split(weight, num_devices, axis=1)])


def in_turns(x, weight, num_devices):
    return np.stack([x[:, i::num_devices] @ weight[i::num_devices] for i in range(num_devices)])


def mixed(x, weight, num_devices):
    parts = np.split(x, num_devices, axis=1)
    return np.stack([part @ weight[i::num_devices] for i, part in enumerate(parts)])


def only_x_cut(x, weight, num_devices):
    return np.stack([part @ weight[: part.shape[1]] for part in np.split(x, num_devices, axis=1)])


SUMMANDS = [
    (lambda x, weight, num_devices: x @ weight, "added the summands up"),
    (lambda x, weight, num_devices: x @ weight / num_devices, "the mean of the summands"),
    (lambda x, weight, num_devices: summands(x, weight, num_devices) / num_devices, "divided by the number of devices"),
    (rows_cut, "cut the rows of x"),
    (columns_cut, "cut the columns of weight"),
    (in_turns, "do not lie side by side: device 0"),
    (mixed, "do not belong together"),
    (only_x_cut, "only x is cut"),
    (lambda x, weight, num_devices: np.stack([x @ weight] * num_devices), "the whole product"),
    (lambda x, weight, num_devices: summands(x, weight, num_devices)[::-1], "the last device first"),
]


def loss_of(losses, is_token):
    return (losses * is_token).sum() / is_token.sum()


def of_devices(losses, is_token):
    return (losses * is_token).sum(axis=1) / is_token.sum(axis=1)


LOSSES = [
    (lambda losses, is_token: of_devices(losses, is_token).mean(), "then the mean of those"),
    (lambda losses, is_token: of_devices(losses, is_token).sum(), "sum the means"),
    (lambda losses, is_token: (losses * is_token).mean(), "padding is counted as tokens"),
    (lambda losses, is_token: losses.sum() / is_token.sum(), "losses at padding are summed"),
    (lambda losses, is_token: (losses * is_token).sum(), "the sum, and not the mean"),
    (lambda losses, is_token: (losses * is_token).sum() / len(losses), "by the number of devices"),
    (lambda losses, is_token: (losses * is_token).sum() / is_token.sum(axis=1).max(), "the largest number of tokens"),
    (lambda losses, is_token: of_devices(losses, is_token)[0], "the first device alone"),
]
RIGHT = [
    ("summed_product", in_numpy(summands)),
    ("summed_product", by_einsum),
    ("batch_loss", in_numpy(loss_of)),
    ("batch_loss", in_jax(lambda losses, is_token: jnp.average(losses, weights=is_token))),
]
WRONG = [
    *(("summed_product", in_numpy(function), words) for function, words in SUMMANDS),
    *(("batch_loss", in_numpy(function), words) for function, words in LOSSES),
]
