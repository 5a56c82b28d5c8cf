"""Exercise `rollout`: attention followed through all layers."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake


def _half_identity(layers):
    """Half of a token is what the residual carries on."""
    return (layers + np.eye(layers.shape[1])) / 2


def _product(layers):
    """The last layer stands on the left, as it reads what the earlier ones made."""
    found = np.eye(layers.shape[1])
    for layer in layers:
        found = layer @ found
    return found


def rollout(
    weights,
    *,
    gather=lambda weights: weights.mean(axis=1),
    keep=_half_identity,
    join=_product,
    finish=lambda found: found,
):
    """Return how much each token of the last layer has of each of the first: one matrix per layer, multiplied."""
    return finish(join(keep(gather(weights))))


def _shares(layers):
    return layers / layers.sum(axis=-1, keepdims=True)


def _elementwise(layers):
    return np.prod(layers, axis=0)


MISTAKES = [
    Mistake(
        "the identity is missing: you multiply the bare attention weights",
        "A block adds what it reads to the token that it had. Which matrix stands for the part that stays?",
        keep=lambda layers: layers,
    ),
    Mistake(
        "you add the identity and do not halve the sum",
        "To how much do the rows of a matrix of weights sum, and to how much do those of your matrices?",
        keep=lambda layers: layers + np.eye(layers.shape[1]),
    ),
    Mistake(
        "you halve the weights and leave out the identity",
        "To how much do the rows of your matrices sum? Which half is missing?",
        keep=lambda layers: layers / 2,
    ),
    Mistake(
        "you add one half everywhere, where you should add half the identity",
        "What does a token carry on of the others when it reads nothing?",
        keep=[lambda layers: (layers + 1) / 2, lambda layers: _shares(layers + 1)],
    ),
    Mistake(
        "you add the heads up, where you should take their mean",
        "To how much do the rows of a layer's matrix sum then?",
        gather=lambda weights: weights.sum(axis=1),
    ),
    Mistake(
        "you follow a single head of each layer",
        "All heads write into the token. What stands for all of them?",
        gather=[lambda weights: weights[:, 0], lambda weights: weights[:, -1]],
    ),
    Mistake(
        "you take the largest weight of all heads, where you should take their mean",
        "To how much do the rows of a layer's matrix sum then?",
        gather=[lambda weights: weights.max(axis=1), lambda weights: _shares(weights.max(axis=1))],
    ),
    Mistake(
        "you average over the layers, axis 0, and multiply what is left for each head",
        "What does axis 0 of weights count, and what axis 1? Which of them follows the other in the model?",
        gather=lambda weights: weights.mean(axis=0),
    ),
    Mistake(
        "you multiply in the wrong order: the first layer stands on the left",
        "A row of the result belongs to a token of the last layer. Which matrix has to be on the left?",
        join=lambda layers: _product(layers[::-1]),
    ),
    Mistake(
        "you multiply number by number, where you should multiply matrices",
        "From token n to token m there is a way through every token k. Which product adds over k?",
        join=[_elementwise, lambda layers: _shares(_elementwise(layers))],
    ),
    Mistake(
        "you average the layers, where you should multiply them",
        "The second layer reads what the first one has made. Which operation puts one after the other?",
        join=lambda layers: layers.mean(axis=0),
    ),
    Mistake(
        "you add the layers up, where you should multiply them",
        "The second layer reads what the first one has made. Which operation puts one after the other?",
        join=lambda layers: layers.sum(axis=0),
    ),
    Mistake(
        "your result is that of a single layer",
        "Does your loop go on with what it had, or begin anew at each layer?",
        join=[lambda layers: layers[-1], lambda layers: layers[0]],
    ),
    Mistake(
        "your result is transposed: its columns sum to one",
        "Rows belong to tokens of the last layer. In which order do you multiply, and do you transpose?",
        finish=lambda found: found.T,
    ),
    Mistake(
        "you return the row of the class token alone",
        "What is the shape of the result asked for?",
        finish=[lambda found: found[0], lambda found: found[0, 1:]],
    ),
]

_RNG = np.random.default_rng(2020)


def _case(name, layers, heads, rows, is_edge=False):
    powers = np.exp(1.5 * _RNG.normal(size=(layers, heads, rows, rows)))
    return Case(name, {"weights": powers / powers.sum(axis=3, keepdims=True)}, is_edge)


_FIRST = [[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]
_SECOND = [[[1.0, 0.0], [1.0, 0.0]], [[0.5, 0.5], [0.5, 0.5]]]

EXERCISE = Exercise(
    rollout,
    MISTAKES,
    cases=[
        _case("three layers", 3, 2, 5),
        _case("more heads than layers", 2, 4, 3),
        _case("a single layer", 1, 3, 4, is_edge=True),
        _case("a single head", 3, 1, 4, is_edge=True),
    ],
    examples=[{"weights": np.array([_FIRST, _SECOND])}],
    result="(rows, rows)",
    tried_on="{weights[0]} layers of {weights[1]} heads, {weights[2]} tokens",
    has_rows_of_weights=True,
)
