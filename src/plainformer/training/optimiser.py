"""How weights are changed: a configuration, a learning-rate schedule, an optimiser (chapter 06)."""

import dataclasses
import math
from collections.abc import Callable
from functools import partial, wraps

import jax
import numpy as np

from plainformer.checks import as_number, check_choice, check_positive


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    r"""How to train: everything that decides the result, but for the model and the data.

    **Arguments**

    - `num_steps`: how many times the weights are changed.
    - `learning_rate`: the largest, reached after `warmup_steps`; from there it falls along half a cosine to
      `min_lr_ratio` of it at the end: `learning_rate_schedule`.
    - `weight_decay`: of all matrices, none of vectors; `beta_1`, `beta_2`: of Adam's two averages (AdamW, Loshchilov
      and Hutter, 2019).
    - `clip_norm`: a gradient longer than this is shortened to it; `None` for no limit.
    - `accumulation_steps`: into how many equal parts a batch is cut, to save memory. Losses and gradients are means
      over the parts: with padding each part counts the same, however many tokens it has.
    - `precision`: `"float32"`, or `"bfloat16"` to compute losses and gradients with weights rounded to 16 bits, while
      the weights that are trained keep 32; this helps on accelerators, not on most processors.
    - `seed`: for dropout, at least 0. Batches have a seed of their own.
    - `evaluate_every`, `checkpoint_every`: after how many steps; both happen after the last step, too.
    - `max_to_keep`: how many checkpoints stay.
    """

    num_steps: int
    learning_rate: float = 1e-3
    warmup_steps: int = 100
    min_lr_ratio: float = 0.1
    weight_decay: float = 0.1
    beta_1: float = 0.9
    beta_2: float = 0.99
    clip_norm: float | None = 1.0
    accumulation_steps: int = 1
    precision: str = "float32"
    seed: int = 0
    evaluate_every: int = 250
    checkpoint_every: int = 250
    max_to_keep: int = 3

    def __post_init__(self):
        counts = ("num_steps", "accumulation_steps", "evaluate_every", "checkpoint_every", "max_to_keep")
        check_positive(**{name: getattr(self, name) for name in counts})
        for name in ("warmup_steps", "seed"):
            count = getattr(self, name)
            if isinstance(count, bool) or not isinstance(count, int | np.integer):
                raise TypeError(f"{name} is {count!r}; expected a whole number, at least 0.")
            if not 0 <= count < 2**31:
                raise ValueError(f"{name} is {count}; expected 0 to {2**31 - 1}.")
        check_choice("precision", self.precision, ["float32", "bfloat16"])
        for name in ("beta_1", "beta_2"):
            if not 0 <= as_number(name, getattr(self, name), "0.9") < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; expected at least 0 and below 1, such as 0.9.")
        if not 0 < as_number("learning_rate", self.learning_rate, "1e-3") < math.inf:
            raise ValueError(f"learning_rate is {self.learning_rate}; expected a finite number above 0, such as 1e-3.")
        if self.clip_norm is not None and not 0 < as_number("clip_norm", self.clip_norm, "1") < math.inf:
            raise ValueError(f"clip_norm is {self.clip_norm}; expected a finite number above 0, or None for no limit.")
        if not 0 <= as_number("weight_decay", self.weight_decay, "0.1") < math.inf:
            raise ValueError(f"weight_decay is {self.weight_decay}; expected a finite number, at least 0.")
        if not 0 <= as_number("min_lr_ratio", self.min_lr_ratio, "0.1") <= 1:
            raise ValueError(f"min_lr_ratio is {self.min_lr_ratio}; expected a number from 0 to 1.")
        if self.warmup_steps >= self.num_steps:
            raise ValueError(
                f"warmup_steps is {self.warmup_steps}; expected fewer than num_steps={self.num_steps}, or it never "
                f"ends. Try warmup_steps={self.num_steps // 10}."
            )


def learning_rate_schedule(config: TrainingConfig) -> Callable:
    r"""Return the function from the number of steps done to the learning rate of the next.

    Implements `eq-decoder-schedule`; Loshchilov and Hutter (2017), equation 5, after a linear warm-up.
    """
    import optax

    schedule = optax.warmup_cosine_decay_schedule(
        init_value=config.learning_rate / (config.warmup_steps + 1),
        peak_value=config.learning_rate,
        warmup_steps=config.warmup_steps,
        decay_steps=config.num_steps,
        end_value=config.learning_rate * config.min_lr_ratio,
    )
    return _promoting(schedule)


def make_optimiser(config: TrainingConfig):
    r"""Return the optimiser that `fit` uses: gradients are clipped, then AdamW follows the schedule."""
    import optax

    clip = optax.identity() if config.clip_norm is None else optax.clip_by_global_norm(config.clip_norm)
    matrices_only = partial(jax.tree.map, lambda leaf: leaf.ndim >= 2)
    adam = optax.adamw(
        learning_rate_schedule(config),
        b1=config.beta_1,
        b2=config.beta_2,
        weight_decay=config.weight_decay,
        mask=matrices_only,
    )
    both = optax.chain(clip, adam)
    return optax.GradientTransformationExtraArgs(both.init, _promoting(both.update))


def _promoting(function: Callable) -> Callable:
    """optax multiplies counts by floats: allow it there, even if JAX is set to refuse such mixtures."""

    @wraps(function)
    def allowed(*args, **kwargs):
        with jax.numpy_dtype_promotion("standard"):
            return function(*args, **kwargs)

    return allowed
