"""Exercise `both_cuts`: how many numbers a device sends in a step, on a mesh that cuts the batch and the blocks."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake


def both_cuts(
    num_model,
    num_devices,
    num_tokens,
    width,
    num_layers,
    *,
    blocks=lambda num_layers: num_layers,
    weights=lambda num_model, num_devices, width, num_layers: 12 * num_layers * width**2 / num_model,
    tokens=lambda num_model, num_devices, num_tokens: num_tokens * num_model / num_devices,
    times_of_gradients=lambda: 2,
    times_of_activations=lambda: 2,
    sums_of_a_block=lambda: 4,
    factor=lambda num: 1,
    row=lambda width: width,
    order=lambda both: both,
):
    """Return what a device sends of gradients and of activations."""
    weights_of_device = weights(num_model, num_devices, width, num_layers)
    rows = tokens(num_model, num_devices, num_tokens)
    gradients = times_of_gradients() * factor(num_devices / num_model) * weights_of_device
    activations = (
        blocks(num_layers) * sums_of_a_block() * times_of_activations() * factor(num_model) * rows * row(width)
    )
    return np.asarray(order([gradients, activations]))


def _one():
    return 1


def _of_one_block(num_model, num_devices, width, num_layers):
    return 12 * width**2 / num_model


MISTAKES = [
    Mistake(
        "each device sends the gradients of all weights, as if no matrix were cut",
        "Which share of each matrix does a device hold, and for which weights does it have gradients?",
        weights=lambda num_model, num_devices, width, num_layers: 12 * num_layers * width**2,
    ),
    Mistake(
        "the gradients are cut over all devices",
        "The matrices are cut along one axis of the mesh. Over how many devices is that?",
        weights=lambda num_model, num_devices, width, num_layers: 12 * num_layers * width**2 / num_devices,
    ),
    Mistake(
        "the gradients are cut over the axis that cuts the batch",
        "Which of the two axes cuts the matrices, data or model?",
        weights=lambda num_model, num_devices, width, num_layers: 12 * num_layers * width**2 * num_model / num_devices,
    ),
    Mistake(
        "you count one block",
        "How many blocks has the model?",
        {"weights": _of_one_block},
        {"blocks": lambda num_layers: 1},
        {"weights": _of_one_block, "blocks": lambda num_layers: 1},
    ),
    Mistake(
        "you take width² weights a block, and not twelve times as many",
        "Four matrices of attention and two of the network: how many times width² are they?",
        weights=lambda num_model, num_devices, width, num_layers: num_layers * width**2 / num_model,
    ),
    Mistake(
        "you take eight times width² weights a block, and not twelve times",
        "Four matrices of attention and two of the network, whose inner rows are four times as wide: how many weights?",
        weights=lambda num_model, num_devices, width, num_layers: 8 * num_layers * width**2 / num_model,
    ),
    Mistake(
        "you take four times width² weights a block, and not twelve times",
        "Those are attention's four matrices, or one of the network's: which others has a block?",
        weights=lambda num_model, num_devices, width, num_layers: 4 * num_layers * width**2 / num_model,
    ),
    Mistake(
        "the gradients are half of what they should be: six times width² weights a block, or each sent once",
        "How many weights has a block, and how often does each gradient go round the ring?",
        weights=lambda num_model, num_devices, width, num_layers: 6 * num_layers * width**2 / num_model,
    ),
    Mistake(
        "a row of activations has one number in your sum, and not as many as it is wide",
        "What does a device send for each token: how many numbers has its row?",
        row=lambda width: 1,
    ),
    Mistake(
        "each device reads all tokens of the step",
        "The batch is cut along one axis of the mesh. Over how many devices is that?",
        tokens=lambda num_model, num_devices, num_tokens: num_tokens,
    ),
    Mistake(
        "the tokens are cut over all devices, or each row over those that share a matrix",
        "Devices that share a matrix read the same tokens. How many groups of them read different ones?",
        tokens=lambda num_model, num_devices, num_tokens: num_tokens / num_devices,
    ),
    Mistake(
        "the tokens are cut over the axis that cuts the matrices",
        "Which of the two axes cuts the batch, data or model?",
        tokens=lambda num_model, num_devices, num_tokens: num_tokens / num_model,
    ),
    Mistake(
        "you count what an all-reduce sends once, and not twice",
        "A ring adds, and then hands the sums on: how often does each number go round?",
        {"times_of_gradients": _one, "times_of_activations": _one},
    ),
    Mistake(
        "the activations are half of what they should be: two all-reduces in a block and not four, or each sent once",
        "Attention and network, forward and back, and each sum goes round twice: how often is an array of tokens sent?",
        sums_of_a_block=lambda: 2,
    ),
    Mistake(
        "you count six all-reduces in a block, as XLA makes them for processors, and not the paper's four",
        "Attention and network, forward and back: how many are these?",
        sums_of_a_block=lambda: 6,
    ),
    Mistake(
        "the factors of the kind (N - 1) / N are still there",
        "Which factors may be left out, as if there were very many devices?",
        factor=lambda num: (num - 1) / num,
    ),
    Mistake(
        "you return the activations first",
        "Which of the two was asked for first?",
        order=lambda both: both[::-1],
    ),
]


def _case(name, *numbers, is_edge=False):
    names = ("num_model", "num_devices", "num_tokens", "width", "num_layers")
    return Case(name, dict(zip(names, numbers, strict=True)), is_edge)


EXERCISE = Exercise(
    both_cuts,
    MISTAKES,
    cases=[
        _case("four of twelve devices share a matrix", 4, 12, 90, 10, 3),
        _case("two of sixteen devices share a matrix", 2, 16, 400, 12, 5),
        _case("all devices share a matrix", 6, 6, 70, 8, 2, is_edge=True),
    ],
    examples=[_case("", 2, 8, 40, 10, 1).inputs, _case("", 2, 8, 40, 10, 3).inputs],
    result="()",
    parts=("gradients", "activations"),
    tried_on="meshes of 12, 16 and 6 devices",
)
