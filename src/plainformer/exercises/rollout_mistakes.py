"""The mistakes in rolling attention out through the layers that the exercises know by name."""

import numpy as np

from plainformer.exercises.exercise import Mistake


def mean_of_heads(weights):
    """One matrix for each layer."""
    return weights.mean(axis=1)


def half_identity(layers):
    """Half of a token is what the residual carries on."""
    return (layers + np.eye(layers.shape[1])) / 2


def product(layers):
    """The last layer stands on the left, as it reads what the earlier ones made."""
    found = np.eye(layers.shape[1])
    for layer in layers:
        found = layer @ found
    return found


def _shares(layers):
    return layers / layers.sum(axis=-1, keepdims=True)


def _elementwise(layers):
    return np.prod(layers, axis=0)


ROLLOUT = [
    Mistake(
        "keep",
        "the identity is missing: you multiply the bare attention weights",
        "A block adds what it reads to the token that it had. Which matrix stands for the part that stays?",
        lambda layers: layers,
    ),
    Mistake(
        "keep",
        "you add the identity and do not halve the sum",
        "To how much do the rows of a matrix of weights sum, and to how much do those of your matrices?",
        lambda layers: layers + np.eye(layers.shape[1]),
    ),
    Mistake(
        "keep",
        "you halve the weights and leave out the identity",
        "To how much do the rows of your matrices sum? Which half is missing?",
        lambda layers: layers / 2,
    ),
    Mistake(
        "keep",
        "you add one half everywhere, where you should add half the identity",
        "What does a token carry on of the others when it reads nothing?",
        lambda layers: (layers + 1) / 2,
        lambda layers: _shares(layers + 1),
    ),
    Mistake(
        "gather",
        "you add the heads up, where you should take their mean",
        "To how much do the rows of a layer's matrix sum then?",
        lambda weights: weights.sum(axis=1),
    ),
    Mistake(
        "gather",
        "you follow a single head of each layer",
        "All heads write into the token. What stands for all of them?",
        lambda weights: weights[:, 0],
        lambda weights: weights[:, -1],
    ),
    Mistake(
        "gather",
        "you take the largest weight of all heads, where you should take their mean",
        "To how much do the rows of a layer's matrix sum then?",
        lambda weights: weights.max(axis=1),
        lambda weights: _shares(weights.max(axis=1)),
    ),
    Mistake(
        "gather",
        "you average over the layers, axis 0, and multiply what is left for each head",
        "What does axis 0 of weights count, and what axis 1? Which of them follows the other in the model?",
        lambda weights: weights.mean(axis=0),
    ),
    Mistake(
        "join",
        "you multiply in the wrong order: the first layer stands on the left",
        "A row of the result belongs to a token of the last layer. Which matrix has to be on the left?",
        lambda layers: product(layers[::-1]),
    ),
    Mistake(
        "join",
        "you multiply number by number, where you should multiply matrices",
        "From token n to token m there is a way through every token k. Which product adds over k?",
        _elementwise,
        lambda layers: _shares(_elementwise(layers)),
    ),
    Mistake(
        "join",
        "you average the layers, where you should multiply them",
        "The second layer reads what the first one has made. Which operation puts one after the other?",
        lambda layers: layers.mean(axis=0),
    ),
    Mistake(
        "join",
        "you add the layers up, where you should multiply them",
        "The second layer reads what the first one has made. Which operation puts one after the other?",
        lambda layers: layers.sum(axis=0),
    ),
    Mistake(
        "join",
        "your result is that of a single layer",
        "Does your loop go on with what it had, or begin anew at each layer?",
        lambda layers: layers[-1],
        lambda layers: layers[0],
    ),
    Mistake(
        "finish",
        "your result is transposed: its columns sum to one",
        "Rows belong to tokens of the last layer. In which order do you multiply, and do you transpose?",
        lambda found: found.T,
    ),
    Mistake(
        "finish",
        "you return the row of the class token alone",
        "What is the shape of the result asked for?",
        lambda found: found[0],
        lambda found: found[0, 1:],
    ),
]
