"""How weights are changed: a configuration, a learning-rate schedule, an optimiser (the primer)."""

import dataclasses
import math
from collections.abc import Callable
from functools import partial
from typing import Annotated, Literal

import jax

from plainformer.checks import (
    Count,
    Natural,
    NonNegative,
    Number,
    Positive,
    PositiveFloat,
    check_each,
    check_fields,
    checked,
    says_where,
)
from plainformer.training.recipes import Optimiser, endless_schedule, muon, promoting, with_decay

Beta = Annotated[float, Number(lambda beta: 0 <= beta < 1, "at least 0 and below 1, such as 0.9")]
Fraction = Annotated[float, Number(lambda share: 0 <= share <= 1, "from 0 to 1")]
ClipNorm = Annotated[float, Number(lambda limit: 0 < limit < math.inf, "finite and above 0, or None for no limit")]


@says_where
@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    r"""How to train: everything that decides the result, but for the model and the data.

    Args:
        num_steps: how many times the weights are changed.
        learning_rate: the largest, reached after `warmup_steps`; from there it goes on as `schedule` says.
        warmup_steps: how many steps the rise takes, fewer than `num_steps`; `None` for 100, or for half of `num_steps`
            if that is less.
        optimiser: `"adamw"`, or `"muon"` for the matrices within blocks, with AdamW for all else.
        schedule: `"cosine"` falls along half a cosine, which ends with `num_steps`; `"constant"` stays, and
            `"inverse_sqrt"` falls ever slower, whenever the run may end.
        decay_steps: for the latter two, how many of the last steps the rate falls in, along a straight line. With a
            constant rate before, that is called WSD: warm-up, stable, decay. A run that goes on may get them later.
        min_lr_ratio: to what share of itself the rate falls at the end.
        weight_decay: of all matrices, none of vectors (AdamW, Loshchilov and Hutter, 2019).
        beta_1, beta_2: of Adam's two averages.
        clip_norm: a gradient longer than this is shortened to it; `None` for no limit.
        accumulation_steps: into how many equal parts a batch is cut, to save memory. Losses and gradients are those of
            the whole batch: a part weighs as much as it has targets that count, by its `counts`; or as it has rows,
            where a batch has no `counts`. Those of `pf.data`, such as `MaskedBatch`, have; for a loss of your own, let
            the batch be a `NamedTuple` with an array `counts`, whose sum is how much the mean stands for.
        precision: `"bfloat16"` to compute losses and gradients with weights rounded to 16 bits, while the weights that
            are trained keep 32; this helps on accelerators, not on most processors.
        rematerialise: what gradients compute anew instead of keeping it. With `"blocks"` only what enters a block is
            kept (Chen et al., 2016): less memory for about a third more work, and the same numbers up to rounding. With
            `"all but products"` what matrices of weights give is kept, too: more memory, and little more work.
        seed: for dropout. Batches have a seed of their own.
        evaluate_every, checkpoint_every: after how many steps; both happen after the last step, too.
        max_to_keep: how many checkpoints stay, the newest; and that of the lowest validation loss, where there is one.
        patience: after how many evaluations without a lower validation loss a run ends early; `None` for never.

    Example:
        The learning rate rises for ten steps, then falls.

        >>> config = pf.TrainingConfig(num_steps=100, learning_rate=0.01, warmup_steps=10)
        >>> learning_rate = pf.training.learning_rate_schedule(config)
        >>> [round(float(learning_rate(step)), 4) for step in (0, 10, 55, 100)]
        [0.0009, 0.01, 0.0055, 0.001]
    """

    num_steps: Count
    learning_rate: PositiveFloat = 1e-3
    warmup_steps: Natural | None = None
    optimiser: Literal["adamw", "muon"] = "adamw"
    schedule: Literal["cosine", "constant", "inverse_sqrt"] = "cosine"
    decay_steps: Natural = 0
    min_lr_ratio: Fraction = 0.1
    weight_decay: NonNegative = 0.1
    beta_1: Beta = 0.9
    beta_2: Beta = 0.99
    clip_norm: ClipNorm | None = 1.0
    accumulation_steps: Positive = 1
    precision: Literal["float32", "bfloat16"] = "float32"
    rematerialise: Literal["nothing", "blocks", "all but products"] = "nothing"
    seed: Natural = 0
    evaluate_every: Count = 250
    checkpoint_every: Count = 250
    max_to_keep: Count = 3
    patience: Count | None = None

    def __post_init__(self):
        check_fields(self)
        warmup, steps = num_warmup_steps(self), self.num_steps
        if warmup >= steps:
            raise ValueError(f"warmup_steps is {warmup}; expected fewer than num_steps={steps}, such as {steps // 10}.")
        if self.decay_steps and self.schedule == "cosine":
            raise ValueError(
                f"decay_steps is {self.decay_steps} with schedule='cosine', which falls by itself; expected 0, or "
                "schedule='constant'."
            )
        if warmup + self.decay_steps > steps:
            raise ValueError(
                f"warmup_steps and decay_steps are {warmup} and {self.decay_steps}; expected together at most "
                f"num_steps={steps}, such as decay_steps={(steps - warmup) // 4}."
            )


def num_warmup_steps(config: TrainingConfig) -> int:
    """Return for how many steps the learning rate rises."""
    return min(100, config.num_steps // 2) if config.warmup_steps is None else config.warmup_steps


@checked
def learning_rate_schedule(config: TrainingConfig) -> Callable:
    r"""Return the function from the number of steps done to the learning rate of the next.

    Implements `eq-real-text-schedule`; Loshchilov and Hutter (2017), equation 5, after a linear warm-up. Others are
    those of `endless_schedule`, with the fall of `with_decay`.
    """
    import optax

    warmup_steps = num_warmup_steps(config)
    if config.schedule != "cosine":
        endless = endless_schedule(config.learning_rate, warmup_steps, config.schedule)
        return with_decay(endless, config.num_steps, config.decay_steps, config.min_lr_ratio)
    schedule = optax.warmup_cosine_decay_schedule(
        init_value=config.learning_rate / (warmup_steps + 1),
        peak_value=config.learning_rate,
        warmup_steps=warmup_steps,
        decay_steps=config.num_steps,
        end_value=config.learning_rate * config.min_lr_ratio,
    )
    return promoting(schedule)


@checked
def make_optimiser(config: TrainingConfig, schedule: Callable | None = None, *, decays: Callable | None = None):
    r"""Return the optimiser that `fit` uses: gradients are clipped, then AdamW, or Muon, follows the schedule.

    Implements `eq-real-text-adamw`, which is `eq-primer-adam` without weight decay; Loshchilov and Hutter (2019),
    algorithm 2; Kingma and Ba (2015), algorithm 1.

    Args:
        config: how to train.
        schedule: another one, in the place of `learning_rate_schedule(config)`.
        decays: on which arrays weight decay falls, a function from `params` to a tree of `True` and `False`, such as
            `hidden_matrices`; `None` for all matrices.
    """
    import optax

    clip = optax.identity() if config.clip_norm is None else optax.clip_by_global_norm(config.clip_norm)
    schedule = learning_rate_schedule(config) if schedule is None else schedule
    decays = partial(jax.tree_util.tree_map_with_path, _decays) if decays is None else decays
    adam = optax.adamw(schedule, b1=config.beta_1, b2=config.beta_2, weight_decay=config.weight_decay, mask=decays)
    if config.optimiser == "muon":
        adam = muon(schedule, weight_decay=config.weight_decay, decays=decays, others=adam)
    both = optax.chain(clip, adam)
    return optax.GradientTransformationExtraArgs(both.init, promoting(both.update))


def _decays(path, leaf) -> bool:
    """Whether weight decay falls on an array: on matrices, those of experts side by side among them, and no biases."""
    return leaf.ndim >= 2 and getattr(path[-1] if path else None, "name", None) != "bias"


def chosen_optimiser(config: TrainingConfig, optimiser=None, schedule: Callable | None = None) -> tuple:
    """Return an optimiser and a schedule: those given, or else those of the configuration.

    With an optimiser of the reader's own, which follows its own schedule, there may be none to tell of.
    """
    if optimiser is not None:
        return told_the_loss(optimiser), schedule
    schedule = learning_rate_schedule(config) if schedule is None else schedule
    return make_optimiser(config, schedule), schedule


def told_the_loss(optimiser):
    """An optimiser that may be told the loss: some want to know it; the others leave it."""
    import optax

    check_each(Optimiser, optimiser=optimiser)
    return optax.with_extra_args_support(optimiser)
