"""AdamW as the papers have it, in NumPy and float64: what the optimiser is held against."""

import math

import numpy as np

from plainformer.training.optimiser import TrainingConfig


def adamw(weights, gradients, config: TrainingConfig, rates):
    """The weights after all steps, one array and one step after the other; `rates` are the learning rates."""
    weights = {name: np.asarray(array, np.float64) for name, array in weights.items()}
    first = {name: np.zeros(array.shape) for name, array in weights.items()}
    second = {name: np.zeros(array.shape) for name, array in weights.items()}
    for step, (gradient, rate) in enumerate(zip(gradients, rates, strict=True), start=1):
        length = math.sqrt(sum((np.asarray(array, np.float64) ** 2).sum() for array in gradient.values()))
        shorter = 1.0 if config.clip_norm is None else min(1.0, config.clip_norm / length)
        for name, array in weights.items():
            slope = shorter * np.asarray(gradient[name], np.float64)
            first[name] = config.beta_1 * first[name] + (1 - config.beta_1) * slope
            second[name] = config.beta_2 * second[name] + (1 - config.beta_2) * slope**2
            change = (first[name] / (1 - config.beta_1**step)) / (
                np.sqrt(second[name] / (1 - config.beta_2**step)) + 1e-8
            )
            decay = config.weight_decay * array if array.ndim >= 2 else 0
            weights[name] = array - rate * (change + decay)
    return weights
