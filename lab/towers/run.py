"""Train the two towers, of images and of names, for longer and in other sizes than a cell can.

No weights are kept: how often the name is found of a number that training never showed is the result. `record.json`
holds it.
"""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.records import BUILD, kept, percent
from lab.towers.by_parts import NUM_IMAGES, RIDGE, PartsOfNames
from lab.vision.run import bright, fold_of
from plainformer.data.digits import Digits
from plainformer.models.encoder import RowEncoder
from plainformer.training import contrastive_loss

KEPT, SEEDS, RATE = BUILD / "towers", (0, 1, 2), 8e-3
STEPS, LONG, BATCH_SIZE, TIMES = 600, 3000, 64, 20
LANGUAGES, NUMBERS = ("en", "de", "fr"), np.arange(10, 100)
SHIFTS = 1, 3  # of the units, for two other sets of numbers that are held out
KNOBS: dict[str, dict[str, Any]] = {
    "half the rate": {"rate": RATE / 2},
    "twice the rate": {"rate": 2 * RATE},
    "half the width": {"width": 32},
    "twice the width": {"width": 128},
    "two blocks": {"num_layers": 2},
}
LONGEST, GAMMAS = (2, 3, 4, 5), (0.001, 0.003, 0.01)  # letters of a group of the opponent; its kernels
NAMES = [name for language in LANGUAGES for name in pf.data.number_words(NUMBERS.tolist(), language)]
LETTERS = pf.Vocabulary.from_characters("".join(NAMES))
IDS, IS_LETTER = map(np.asarray, pf.data.pad_texts([LETTERS.encode(name) for name in NAMES]))
SPELT = np.where(IS_LETTER[:, :, None], np.eye(len(LETTERS), dtype=np.float32)[IDS], 0)  # one-hot rows


def held_out(shift: int = 0) -> np.ndarray:
    """Two numbers of each ten that training never shows."""
    return np.array([10 * tens + (3 * tens + more + shift) % 10 for tens in range(2, 10) for more in (2, 7)])


def seen(shift: int = 0) -> np.ndarray:
    """All other numbers."""
    return np.setdiff1d(NUMBERS, held_out(shift))


class Pairs(NamedTuple):
    """Images and, row for row, their names, letter by letter as one-hot rows."""

    images: jax.Array
    spelt: jax.Array


class TwoTowers(eqx.Module):
    """One encoder for images, one for names, a linear map of each mean to a common space, and a temperature."""

    images: RowEncoder
    names: RowEncoder
    from_images: pf.Linear
    from_names: pf.Linear
    log_temperature: jax.Array

    def __init__(self, width: int, num_layers: int, *, key):
        keys = jax.random.split(key, 4)
        sizes: dict[str, Any] = {"d_model": width, "num_layers": num_layers, "d_ff": 2 * width, "activation": "relu"}
        on_grid, in_line = (pf.StackConfig(**sizes, position_scheme=way) for way in ("sinusoidal_2d", "sinusoidal"))
        self.images = RowEncoder(pf.EncoderConfig(context_len=8, d_in=16, stack=on_grid), grid=(2, 4), key=keys[0])
        letters = pf.EncoderConfig(context_len=IDS.shape[1], d_in=len(LETTERS), stack=in_line)
        self.names = RowEncoder(letters, key=keys[1])
        self.from_images, self.from_names = (pf.Linear(width, 32, key=each) for each in keys[2:])
        self.log_temperature = jnp.log(0.1)

    def of_images(self, images):
        """A vector for each image, of 8 x 16 pixels."""
        return self.from_images(pf.mean_pool(self.images(pf.image_to_patches(images, 4))))

    def of_names(self, spelt):
        """A vector for each name, from one-hot rows; rows of zeros behind its end are left out of the mean."""
        return self.from_names(pf.mean_pool(self.names(spelt), spelt.any(axis=-1)))


def towers_loss(model: TwoTowers, batch: Pairs, key=None):
    """How badly images and names of a batch find each other."""
    images, names = model.of_images(batch.images), model.of_names(batch.spelt)
    return contrastive_loss(images, names, jnp.exp(model.log_temperature))


def pictures(digits: Digits, numbers, random) -> np.ndarray:
    """An image of each number, of two digits drawn at random."""
    images, labels = np.asarray(bright(digits.images)), np.asarray(digits.labels)
    of_digit = [np.flatnonzero(labels == digit) for digit in range(10)]
    drawn = [[random.choice(of_digit[each]) for each in divmod(number, 10)] for number in numbers]
    return np.concatenate(list(images[np.array(drawn)].swapaxes(0, 1)), axis=2)


def drawn(digits: Digits, seed: int, step: int, shift: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Images of as many numbers as there are pairs in a batch, each once, and the place of one name of each."""
    random = np.random.default_rng((seed, step))
    numbers = random.choice(seen(shift), BATCH_SIZE, replace=False)
    places = numbers - NUMBERS[0] + len(NUMBERS) * random.integers(len(LANGUAGES), size=BATCH_SIZE)
    return pictures(digits, numbers, random), places


def pairs_at(digits: Digits, seed: int, shift: int = 0):
    """From the number of the step to a batch."""

    def batch_at(step: int) -> Pairs:
        images, places = drawn(digits, seed, step, shift)
        return Pairs(jnp.asarray(images), jnp.asarray(SPELT[places]))

    return batch_at


def shares(model: TwoTowers, digits: Digits, numbers) -> list[float]:
    """For each language, how often an image's own name is the nearest of all ninety."""
    asked = np.repeat(numbers, TIMES)
    images = model.of_images(jnp.asarray(pictures(digits, asked, np.random.default_rng(0))))
    found = []
    for rows in np.split(np.arange(len(IDS)), len(LANGUAGES)):
        names = model.of_names(jnp.asarray(SPELT[rows]))
        nearest = NUMBERS[np.asarray(pf.cosine_similarity(images, names)).argmax(axis=1)]
        found.append(float((nearest == asked).mean()))
    return found


@dataclasses.dataclass(frozen=True)
class Run:
    """One training."""

    seed: int = 0
    steps: int = STEPS
    width: int = 64
    num_layers: int = 1
    rate: float = RATE
    shift: int = 0

    @property
    def name(self) -> str:
        """What it is called among those that are kept."""
        return "-".join(map(str, dataclasses.astuple(self)))


def measured(run: Run) -> dict[str, Any]:
    """The shares of a run, for each language, on numbers that training showed and on the others."""

    def find() -> dict[str, Any]:
        training, test = pf.data.digits()
        how = pf.TrainingConfig(num_steps=run.steps, learning_rate=run.rate, warmup_steps=40, min_lr_ratio=0.01)
        model = TwoTowers(run.width, run.num_layers, key=jax.random.key(run.seed))
        batches = pairs_at(training, run.seed, run.shift)
        model, metrics = pf.fit(model, towers_loss, batches, how, progress=False, directory=KEPT / run.name)
        found: dict[str, Any] = {
            name: shares(model, test, numbers(run.shift)) for name, numbers in (("seen", seen), ("new", held_out))
        }
        found["loss"] = float(np.mean([each["loss"] for each in metrics[-50:]]))
        found["temperature"] = float(jnp.exp(model.log_temperature))
        print(run.name, found, flush=True)
        return found

    return kept(KEPT / f"{run.name}.json", find)


def told() -> float:
    """Told that there are two digits, side by side: a support-vector machine names each, on the same new images."""
    from sklearn.svm import SVC

    training, test = pf.data.digits()
    machine = SVC(gamma="scale", C=10).fit(np.asarray(bright(training.images)).reshape(-1, 64), training.labels)
    asked = np.repeat(held_out(), TIMES)
    images = pictures(test, asked, np.random.default_rng(0))
    tens, units = (machine.predict(half.reshape(-1, 64)) for half in np.split(images, 2, axis=2))
    return float((10 * tens + units == asked).mean())


def by_parts(digits: Digits, seed: int, left_out: np.ndarray, *setting) -> list[PartsOfNames]:
    """For each language, the regression that has learned from the pairs of a training, but for some numbers."""
    images, places = map(np.concatenate, zip(*(drawn(digits, seed, step) for step in range(STEPS)), strict=True))
    languages, numbers = np.divmod(places, len(NUMBERS))
    is_there = ~np.isin(NUMBERS[numbers], left_out)
    found = []
    for language in range(len(LANGUAGES)):
        chosen = is_there & (languages == language)
        found.append(PartsOfNames(*setting).fit(images[chosen], [NAMES[place] for place in places[chosen]]))
    return found


def shares_by_parts(machines: list[PartsOfNames], digits: Digits, numbers) -> list[float]:
    """For each language, how often an image's own name is the likeliest of all ninety."""
    asked = np.repeat(numbers, TIMES)
    images = pictures(digits, asked, np.random.default_rng(0))
    names = [NAMES[n * len(NUMBERS) : (n + 1) * len(NUMBERS)] for n in range(len(LANGUAGES))]
    found = [machine.named(images, each) for machine, each in zip(machines, names, strict=True)]
    return [float((NUMBERS[places] == asked).mean()) for places in found]


def without_towers() -> dict[str, Any]:
    """The shares of regressions on the same pairs, with the best setting on digits and numbers kept back."""
    training, test = pf.data.digits()
    rest, fold = fold_of(training)
    kept_back, none = held_out(SHIFTS[0]), np.array([])
    tried = {
        f"{longest}, {gamma:g}": shares_by_parts(by_parts(rest, 9, kept_back, longest, gamma), fold, kept_back)
        for longest in LONGEST
        for gamma in GAMMAS
    }
    best = max(tried, key=lambda setting: sum(tried[setting]))
    longest, gamma = best.split(", ")
    runs = []
    for seed in SEEDS:
        machines = by_parts(training, seed, none, int(longest), float(gamma))
        runs.append(
            {name: shares_by_parts(machines, test, numbers()) for name, numbers in (("seen", seen), ("new", held_out))}
        )
    return {"tried": tried, "setting": [int(longest), float(gamma)], "runs": runs}


def results() -> dict[str, Any]:
    """All that the card states."""
    return {
        "parameters": pf.count_parameters(TwoTowers(64, 1, key=jax.random.key(0))),
        "told": told(),
        "by parts": kept(KEPT / "by_parts.json", without_towers),
        "runs": [measured(Run(seed)) for seed in SEEDS],
        "five times the steps": measured(Run(steps=LONG)),
        "knobs": {name: measured(Run(**changed)) for name, changed in KNOBS.items()},
        "other numbers": [measured(Run(shift=shift)) for shift in SHIFTS],
    }


def percentages(shares: list[float]) -> str:
    """Shares of each language, in percent."""
    return ", ".join(f"{100 * share:.1f}" for share in shares)


def table(found: dict[str, Any]) -> str:
    """A row for each training."""
    rows = {f"{STEPS} steps, seed {seed}": run for seed, run in zip(SEEDS, found["runs"], strict=True)}
    rows[f"{LONG:,} steps, seed 0"] = found["five times the steps"]
    rows |= {f"{name}, seed 0": run for name, run in found["knobs"].items()}
    rows |= {f"units shifted by {n}, seed 0": run for n, run in zip(SHIFTS, found["other numbers"], strict=True)}
    lines = [f"| {name} | {percentages(run['new'])} | {percentages(run['seen'])} |" for name, run in rows.items()]
    seeds = zip(SEEDS, found["by parts"]["runs"], strict=True)
    lines += [f"| regression, seed {n} | {percentages(run['new'])} | {percentages(run['seen'])} |" for n, run in seeds]
    return "\n".join(["| | numbers never shown, in % | numbers of the training, in % |", "|---|---|---|", *lines])


def facts(found: dict[str, Any]) -> dict[str, str]:
    """Per cent of the numbers never shown whose name is found: each language; by regression; told of two digits."""
    texts = {"told": percent(found["told"], 1)}
    texts["en.new.by_parts"] = percent(float(np.mean([run["new"][0] for run in found["by parts"]["runs"]])), 1)
    for place, language in enumerate(LANGUAGES):
        texts[f"{language}.new"] = percent(float(np.mean([run["new"][place] for run in found["runs"]])), 1)
        texts[f"{language}.new.five_times_the_steps"] = percent(found["five times the steps"]["new"][place], 1)
        for shift, run in zip(SHIFTS, found["other numbers"], strict=True):
            texts[f"{language}.new.shifted.{shift}"] = percent(run["new"][place])
    return texts


def card(found: dict[str, Any]) -> str:
    """What was done, and what came out."""
    longest, gamma = found["by parts"]["setting"]
    tried = "; ".join(f"{name}: {percentages(shares)}" for name, shares in found["by parts"]["tried"].items())
    return f"""# Two towers, of images and of names

How often two encoders, of images and of names, find the name of a two-digit number that training never showed. No
weights are kept: the shares of right answers are the result, and stand in `record.json`.

- **Data.** Images of 8 × 16 pixels, two digits of `plainformer.data.digits()` side by side, drawn anew for each batch
  from 1,442 training digits, or from 355 others for the test. Names in English, German and French, by
  `plainformer.data.number_words`, letter by letter. {len(held_out())} of the numbers from 10 to 99 are held out, two of
  each ten from the twenties on: {", ".join(map(str, sorted(held_out().tolist())))}. Each is asked
  for with {TIMES} images.
- **Model.** {found["parameters"]:,} parameters: two encoders of one block of width 64, one reads 8 patches of 4 × 4,
  the other letters, as one-hot rows; the mean of the rows of each goes to 32 numbers. The temperature is learned, from
  0.1 on.
- **Training.** {STEPS} steps of {BATCH_SIZE} different numbers with one name each, or {LONG:,}; AdamW, learning rate up
  to {RATE:g}. All settings stand in `lab/towers/run.py`; `make models ONLY=towers` trains again.
- **Result and knobs turned.** How often the name of the image's number is nearest among the 90 of a language: English,
  German, French. Chance is 1.1 %. Told that there are two digits side by side, a support-vector machine that names
  each is right for {100 * found["told"]:.1f} % of the same images.

{table(found)}

- **Regression.** It learns from the same pairs as the towers with the same seed. Images are compared with
  {NUM_IMAGES:,} of them by a Gaussian kernel, and regression with a ridge of {RIDGE:g} says of each group of letters of
  one language how probably the name has it; of 90 names the likeliest is taken. Groups of up to {longest} letters and
  gamma {gamma:g} are the best by the mean of three languages on every fifth digit of each kind and on other numbers,
  both kept back from training. Letters of a group, gamma, and per cent right there: {tried}.
- **Limits.** The digits are by the same writers as those of the training; the names are few and regular. One set of
  held-out numbers but for two runs.
- **Licence.** The numbers are under Apache-2.0, as the code; the images are of the UCI repository.
"""
