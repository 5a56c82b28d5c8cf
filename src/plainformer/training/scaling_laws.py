"""How the loss falls with size and with text: the law, its fit, and the best size for a given work."""

import dataclasses
from functools import partial
from itertools import product

import numpy as np

from plainformer.checks import Natural, NonNegative, Positive, PositiveFloat, check_fields, checked, says_where

POWERS = (0.1, 0.3, 1.0)  # with which a search begins, each with each
LOWEST, HIGHEST = (-20, -20, -7, -7, -20), (20, 20, 2, 2, 20)  # how far the numbers of `_Place` may go


@says_where
@dataclasses.dataclass(frozen=True)
class PowerLaw:
    r"""A law of the loss: a floor, what a small size adds to it, and what a short text adds.

    Args:
        floor: the loss that no model falls below, in nats per token.
        size_factor, size_power: of what is lost because a model has few numbers.
        text_factor, text_power: of what is lost because it has read few tokens.

    Example:
        >>> law = pf.training.PowerLaw(floor=0.5, size_factor=8.0, size_power=0.5, text_factor=80.0, text_power=0.5)
        >>> print(pf.training.power_law_loss(10_000, 1_000_000, law).round(2))
        0.66
    """

    floor: NonNegative
    size_factor: PositiveFloat
    size_power: PositiveFloat
    text_factor: PositiveFloat
    text_power: PositiveFloat

    def __post_init__(self):
        check_fields(self)


@checked
def power_law_loss(num_parameters, num_tokens, law: PowerLaw):
    r"""Return the loss that a law gives to models of these sizes after reading so many tokens, in nats per token.

    Implements `eq-scaling-laws-loss`; Hoffmann et al. (2022), equation 2.

    Args:
        num_parameters: how many numbers a model learns; a number, or an array of them.
        num_tokens: how many tokens it has read; a number, or an array.
    """
    sizes, tokens = _above_0(num_parameters=num_parameters, num_tokens=num_tokens)
    return _loss(sizes, tokens, law)


@checked
def training_work(num_parameters, num_tokens):
    r"""Return about how many floating-point operations a training takes: six for each number and token.

    Implements `eq-scaling-laws-work`; Kaplan et al. (2020), section 2.1. `pf.training_flops` counts without rounding.
    """
    sizes, tokens = _above_0(num_parameters=num_parameters, num_tokens=num_tokens)
    return 6 * sizes * tokens


@checked
def best_size(work, law: PowerLaw):
    r"""Return how many numbers a model has whose loss is the lowest that a law allows for a given work.

    Implements `eq-scaling-laws-best-size`; Hoffmann et al. (2022), equation 4. It may then read
    `work / (6 * best_size(work, law))` tokens.

    Args:
        work: in floating-point operations; a number, or an array.
    """
    (work,) = _above_0(work=work)
    both = law.size_power + law.text_power
    balance = law.size_power * law.size_factor / (law.text_power * law.text_factor)
    return balance ** (1 / both) * (work / 6) ** (law.text_power / both)


@checked
def huber(residuals, threshold: PositiveFloat = 1e-3) -> np.ndarray:
    r"""Return half the square of each residual, but beyond the threshold only its size, so that no run rules the fit.

    Implements `eq-scaling-laws-huber`; Huber (1964), equation 1; the threshold is that of Hoffmann et al. (2022).
    """
    size = np.abs(_numbers("residuals", residuals))
    return np.where(size <= threshold, size**2 / 2, threshold * (size - threshold / 2))


@checked
def fit_power_law(
    num_parameters, num_tokens, losses, *, floor: NonNegative | None = None, threshold: PositiveFloat = 1e-3
) -> PowerLaw:
    r"""Return the law whose losses are, in their logarithms, closest to those of some trainings.

    Implements `eq-scaling-laws-fit`; Hoffmann et al. (2022), section 3.3, with the sum of Besiroglu et al. (2024), who
    found that a mean, which is small, made the search end too early. The search begins at many places, and the best end
    is returned.

    Args:
        num_parameters, num_tokens, losses: a number of each training, `(runs,)`; at least five trainings, or six if the
            floor is fitted.
        floor: the loss that no model falls below, if it is known; `None` to fit it, too.

    Raises:
        ValueError: if there are fewer than five trainings, all have one size or have read one number of tokens, or the
            floor is not below all losses.

    Example:
        >>> law = pf.training.PowerLaw(floor=0.5, size_factor=8.0, size_power=0.5, text_factor=80.0, text_power=0.5)
        >>> sizes, tokens = [1e4, 1e5, 1e6, 1e4, 1e5, 1e6], [1e6, 1e6, 1e6, 1e7, 1e7, 1e8]
        >>> losses = pf.training.power_law_loss(sizes, tokens, law)
        >>> found = pf.training.fit_power_law(sizes, tokens, losses)
        >>> print(round(found.floor, 3), round(found.size_power, 2), round(found.text_power, 2))
        0.5 0.5 0.5
    """
    runs = _runs(num_parameters, num_tokens, losses, floor)
    spread = np.log(max(np.ptp(runs[2]), 1e-6))
    starts = [(spread, spread, *powers, 2.0)[: 4 + (floor is None)] for powers in product(np.log(POWERS), repeat=2)]
    place = _Place.among(runs, floor)
    return place.law(place.nearest(runs, threshold, starts))


@checked
def bootstrap_power_laws(
    num_parameters,
    num_tokens,
    losses,
    *,
    floor: NonNegative | None = None,
    threshold: PositiveFloat = 1e-3,
    num_draws: Positive = 100,
    seed: Natural = 0,
) -> list[PowerLaw]:
    r"""Return the laws of as many draws of the trainings, each with replacement: their spread is the error of the fit.

    Efron (1979). The first arguments are those of `fit_power_law`. Draws with fewer than three sizes or numbers of
    tokens are drawn again. Each search begins at the law of all trainings.

    Args:
        num_draws: how many laws.
        seed: of the draws.

    Raises:
        ValueError: as `fit_power_law` does.
    """
    runs = _runs(num_parameters, num_tokens, losses, floor)
    place, random = _Place.among(runs, floor), np.random.default_rng(seed)
    laws: list[PowerLaw] = []
    start = place.numbers(fit_power_law(*runs, floor=floor, threshold=threshold))
    while len(laws) < num_draws:
        drawn = runs[:, random.integers(runs.shape[1], size=runs.shape[1])]
        if min(len(set(drawn[0])), len(set(drawn[1]))) >= min(3, len(set(runs[0])), len(set(runs[1]))):
            laws.append(place.law(place.nearest(drawn, threshold, [start])))
    return laws


def _loss(sizes, tokens, law: PowerLaw):
    return law.floor + law.size_factor / sizes**law.size_power + law.text_factor / tokens**law.text_power


@dataclasses.dataclass(frozen=True)
class _Place:
    """The law that belongs to four or five numbers without bounds, by which a search moves.

    They are the logarithms of what is lost at the middle of all runs, for size and for text, those of both powers, and,
    if the floor is fitted, the logit of its share of the least loss. Factors proper would be tied to their powers.
    """

    floor: float | None
    ceiling: float
    size: float
    tokens: float

    @classmethod
    def among(cls, runs: np.ndarray, floor: float | None) -> "_Place":
        """The middle is that of these runs; a floor that is fitted is below the lowest of their losses."""
        return cls(floor, runs[2].min(), *np.exp(np.log(runs[:2]).mean(axis=1)))

    def law(self, numbers) -> PowerLaw:
        size_loss, text_loss, size_power, text_power = (float(number) for number in np.exp(numbers[:4]))
        floor = self.ceiling / (1 + np.exp(-numbers[4])) if self.floor is None else self.floor
        factors = size_loss * self.size**size_power, text_loss * self.tokens**text_power
        return PowerLaw(float(floor), float(factors[0]), size_power, float(factors[1]), text_power)

    def numbers(self, law: PowerLaw) -> list[float]:
        losses = law.size_factor / self.size**law.size_power, law.text_factor / self.tokens**law.text_power
        found = [*np.log([*losses, law.size_power, law.text_power])]
        return found if self.floor is not None else [*found, np.log(law.floor / (self.ceiling - law.floor))]

    def slopes(self, runs: np.ndarray, numbers) -> np.ndarray:
        """The derivatives of the logarithm of each run's loss, one for each number."""
        law = self.law(numbers)
        losses = _loss(runs[0], runs[1], law)
        by_size = law.size_factor / runs[0] ** law.size_power / losses
        by_text = law.text_factor / runs[1] ** law.text_power / losses
        of_size_power = -by_size * law.size_power * np.log(runs[0] / self.size)
        of_text_power = -by_text * law.text_power * np.log(runs[1] / self.tokens)
        of_floor = law.floor * (1 - law.floor / self.ceiling) / losses
        slopes = [by_size, by_text, of_size_power, of_text_power, of_floor]
        return np.stack(slopes[: len(numbers)], axis=1)

    def nearest(self, runs: np.ndarray, threshold: float, starts):
        """The numbers of the law with the least sum of Huber's losses, of all that a search from these starts finds."""
        from scipy.optimize import least_squares

        def residuals(numbers):
            return np.log(_loss(runs[0], runs[1], self.law(numbers))) - np.log(runs[2])

        count = len(starts[0])
        slopes = partial(self.slopes, runs)
        how = {"method": "dogbox", "loss": "huber", "f_scale": threshold, "bounds": (LOWEST[:count], HIGHEST[:count])}
        ends = [least_squares(residuals, start, slopes, **how) for start in starts]
        return min(ends, key=lambda end: end.cost).x


def _runs(num_parameters, num_tokens, losses, floor: float | None) -> np.ndarray:
    """Sizes, tokens and losses as rows of one array, if a law can be fitted to them."""
    found = _above_0(num_parameters=num_parameters, num_tokens=num_tokens, losses=losses)
    if any(numbers.ndim != 1 or len(numbers) != len(found[0]) for numbers in found):
        shapes = ", ".join(str(numbers.shape) for numbers in found)
        raise ValueError(
            f"num_parameters, num_tokens and losses have shapes {shapes}; expected one number of each run."
        )
    if (number := len(found[0])) < 5 + (floor is None):
        hint = "Train more, or give the floor." if floor is None else "Train more."
        raise ValueError(f"There are {number} runs; expected at least {5 + (floor is None)}. {hint}")
    for name, numbers in zip(("num_parameters", "num_tokens"), found, strict=False):
        if len(set(numbers)) < 2:
            raise ValueError(
                f"{name} is {numbers[0]:g} in all runs; expected at least two different ones, to see its effect."
            )
    if floor is not None and floor >= found[2].min():
        raise ValueError(f"floor is {floor:g}; expected less than the lowest of the losses, {found[2].min():g}.")
    return np.array(found)


def _numbers(name: str, argument) -> np.ndarray:
    """An argument as an array of floats."""
    try:
        numbers = np.asarray(argument, float)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is a {type(argument).__name__}; expected a number, or an array of numbers.") from None
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} holds {numbers[~np.isfinite(numbers)].flat[0]:g}; expected numbers that are finite.")
    return numbers


def _above_0(**arguments) -> list[np.ndarray]:
    """Arguments as arrays of floats, if all are finite and above 0."""
    found = [_numbers(name, argument) for name, argument in arguments.items()]
    for name, numbers in zip(arguments, found, strict=True):
        if not numbers.size or numbers.min() <= 0:
            what = f"{numbers.min():g}" if numbers.size else "nothing"
            raise ValueError(f"{name} holds {what}; expected numbers above 0.")
    return found
