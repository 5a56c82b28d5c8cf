"""Answers to the exercises of the chapter `scaling` as readers would write them, right ones and wrong ones."""

import math

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


def reshaped(x, weight, num_devices):
    return x.reshape(num_devices, len(x), -1) @ weight.reshape(num_devices, -1, weight.shape[1])


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
    (reshaped, "cut by a reshape"),
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


def devices(num_parameters, memory, share):
    return -(-16 * num_parameters // (share * memory))


DEVICES = [
    (lambda n, memory, share: np.ceil(4 * n / (share * memory)), "its weight alone"),
    (lambda n, memory, share: np.ceil(8 * n / (share * memory)), "weight and gradient alone"),
    (lambda n, memory, share: np.ceil(12 * n / (share * memory)), "one of four is missing"),
    (lambda n, memory, share: np.ceil(16 * n / memory), "fill the whole memory"),
    (lambda n, memory, share: np.ceil(16 * n / (memory - share * memory)), "leave the share free"),
    (lambda n, memory, share: np.ceil(16 * n / memory * share), "multiply by the share"),
    (lambda n, memory, share: 16 * n // (share * memory), "round down"),
    (lambda n, memory, share: round(16 * n / (share * memory)), "to the nearest whole number"),
    (lambda n, memory, share: 16 * n // (share * memory) + 1, "always take one device more"),
    (lambda n, memory, share: 16 * n / (share * memory), "you do not round"),
    (lambda n, memory, share: 2 ** np.ceil(np.log2(16 * n / (share * memory))), "next power of two"),
    (lambda n, memory, share: 2 ** np.floor(np.log2(16 * n / (share * memory))), "power of two below"),
]


def sent(num_model, num_devices, num_tokens, width, num_layers):
    of_gradients = 24 * num_layers * width * width / num_model
    return np.array([of_gradients, 8 * num_layers * width * num_tokens / (num_devices / num_model)])


def sent_with(gradients=1, activations=1):
    """What is sent, with factors that somebody has forgotten or put in; functions of devices along both axes."""

    def found(num_model, num_devices, num_tokens, width, num_layers):
        across = num_devices / num_model
        factors = [each(num_model, across) if callable(each) else each for each in (gradients, activations)]
        return sent(num_model, num_devices, num_tokens, width, num_layers) * np.array(factors)

    return found


def of_one_block(num_model, num_devices, num_tokens, width, num_layers):
    return sent(num_model, num_devices, num_tokens, width, num_layers) / np.array([num_layers, 1])


SENT = [
    (sent_with(gradients=lambda model, data: model), "as if no matrix were cut"),
    (sent_with(gradients=lambda model, data: 1 / data), "gradients are cut over all devices"),
    (sent_with(gradients=lambda model, data: model / data), "gradients are cut over the axis that cuts the batch"),
    (of_one_block, "count one block"),
    (lambda m, n, tokens, width, layers: sent(m, n, tokens, width, layers) / layers, "count one block"),
    (sent_with(gradients=1 / 12), "you take width² weights"),
    (sent_with(gradients=8 / 12), "eight times width² weights"),
    (lambda *sizes: sent(*sizes) / [1, sizes[3]], "has one number in your sum"),
    (sent_with(activations=lambda model, data: data), "reads all tokens"),
    (sent_with(activations=lambda model, data: 1 / model), "tokens are cut over all devices"),
    (sent_with(activations=lambda model, data: data / model), "tokens are cut over the axis that cuts the matrices"),
    (sent_with(1 / 2, 1 / 2), "sends once, and not twice"),
    (sent_with(gradients=1 / 2), "the gradients are half of what they should be"),
    (sent_with(gradients=4 / 12), "you take four times width² weights"),
    (sent_with(activations=1 / 2), "the activations are half of what they should be"),
    (sent_with(activations=3 / 2), "six all-reduces"),
    (sent_with(lambda model, data: (data - 1) / data, lambda model, data: (model - 1) / model), "factors of the kind"),
    (lambda *sizes: sent(*sizes)[::-1], "activations first"),
]
RIGHT = [
    ("devices_needed", lambda num_parameters, memory, share: math.ceil(16 * num_parameters / (share * memory))),
    ("devices_needed", devices),
    ("both_cuts", sent),
    ("both_cuts", sent_with()),
    ("summed_product", in_numpy(summands)),
    ("summed_product", by_einsum),
    ("batch_loss", in_numpy(loss_of)),
    ("batch_loss", in_jax(lambda losses, is_token: jnp.average(losses, weights=is_token))),
]
WRONG = [
    *(("devices_needed", function, words) for function, words in DEVICES),
    *(("both_cuts", function, words) for function, words in SENT),
    *(("summed_product", in_numpy(function), words) for function, words in SUMMANDS),
    *(("batch_loss", in_numpy(function), words) for function, words in LOSSES),
]
