"""Measure what the stored models of rigid bodies predict: one window, a thousand points; write it with a card.

Nothing is trained. `record.json` holds the numbers of every model, and the trajectories that a figure shows.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from sklearn.neural_network import MLPRegressor

import plainformer as pf
from lab import records
from lab.dynamics.run import KINDS, RUNS, WINDOW, WORDS, Run, windows_of
from plainformer.data.rigid_body import Trajectories, energy, implicit_midpoint
from plainformer.models.dynamics import log_volume_change, rollout, window_loss

NEEDS = ("dynamics",)
POINTS, FAR, PER_POINT = 1000, 10_000, 20  # of a rollout, of a long one; between two of a stored curve
LOST = 1.0  # a change that says "lost"
SHOWN, SHOWN_POINTS = (10, 76), 300  # the test trajectories of the figure, and how far they are followed
CLOUD, EDGE, TIMES = 200, 0.02, (1, 10, 30, 100)  # windows in a cloud, its size, and after how many windows it is seen
COLUMNS = "window", "distance", "length", "lost"  # of what is said in chapters
SHAPE_FORMS = {"network": ".4f", "ordinary": ".4f", "volume_preserving": ".3f", "placed": ".3f"}
OFF = 0.98, 1.02  # lengths at which bodies begin that no one has seen


def followed(model, starts, points: int = POINTS) -> np.ndarray:
    """All points that a model predicts, in double precision; what is beyond all bounds counts as a million."""
    found = eqx.filter_jit(lambda starts: rollout(model, starts, -(-points // WINDOW))[:, :points])(starts)
    return np.clip(np.nan_to_num(np.asarray(found, np.float64), nan=1e6), -1e6, 1e6)


def changes(points, start, kappa) -> tuple[np.ndarray, np.ndarray]:
    """How far the squared length and the energy are from those of the start: for each trajectory and point."""
    length = np.abs((points**2).sum(axis=2) - (start**2).sum(axis=1)[:, None])
    return length, np.abs(energy(points, kappa[:, None]) - energy(start, kappa)[:, None])


def rollouts(points, truth, start, kappa) -> dict:
    """What is said of rollouts: distances from the truth, at most 2; drifts, in the median; and how many are lost."""
    distance = np.minimum(np.linalg.norm(points - truth, axis=2), 2)
    length, energies = changes(points, start, kappa)
    largest = length.max(axis=1)
    return {
        "distance_100": three(distance[:, :100].mean()),
        "distance": three(distance.mean()),
        "length": three(np.median(largest)),
        "energy": three(np.median(energies.max(axis=1))),
        "lost": int((largest > LOST).sum()),
        "half lost": int((largest > LOST / 2).sum()),
        "curve": [three(change) for change in np.median(length, axis=0)[PER_POINT - 1 :: PER_POINT]],
    }


def three(number) -> float:
    """Three digits that count."""
    return float(f"{number:.3g}")


@eqx.filter_jit
def window_error(model, before, after):
    """Root mean square error of a number of the next window; a shape that is told does not count."""
    return window_loss(lambda windows: model(windows)[..., :3], (before, after[..., :3])) ** 0.5


def measured(model, test: Trajectories) -> dict:
    """All that is measured of one model for one body."""
    start = test.states[:, WINDOW - 1]
    truth = implicit_midpoint(start, kappa=test.kappa, num_steps=POINTS)[:, 1:]
    points = followed(model, jnp.asarray(test.states[:, :WINDOW], jnp.float32))
    error = three(window_error(model, *windows_of(test, False)))
    return {"window": error} | rollouts(points, truth, start, test.kappa)


def ends(model, test: Trajectories) -> list[float]:
    """Where a quarter of the bodies is after `SHOWN_POINTS` points that began inside the sphere or outside: medians."""
    starts = jnp.asarray(test.states[::4, :WINDOW], jnp.float32)
    last = [followed(model, off * starts, SHOWN_POINTS)[:, -1] for off in OFF]
    return [three(np.median(np.linalg.norm(each, axis=1))) for each in last]


def cloud_volumes(model, test: Trajectories) -> list[float]:
    """By what factor a model changes small volumes of windows, after some windows: medians of log10 over a cloud."""
    rng = np.random.default_rng(0)
    chosen = test.states[rng.integers(len(test.states), size=CLOUD), :WINDOW]
    windows = jnp.asarray(chosen + EDGE * rng.normal(size=chosen.shape), jnp.float32)

    def step(carry, _):
        window, total = carry
        return (model(window), total + log_volume_change(model, window)), total

    run = eqx.filter_jit(jax.vmap(lambda window: jax.lax.scan(step, (window, 0.0), length=TIMES[-1] + 1)[1]))
    totals = np.nan_to_num(np.asarray(run(windows)), nan=-1e3, posinf=1e3, neginf=-1e3) / np.log(10)
    return [round(float(np.median(totals[:, time])), 3) for time in TIMES]


def shown(model, test: Trajectories) -> list:
    """What one model makes of two trajectories."""
    starts = jnp.asarray(test.states[list(SHOWN), :WINDOW], jnp.float32)
    return followed(model, starts, SHOWN_POINTS).round(3).tolist()


def opponents(test: Trajectories) -> dict[str, dict]:
    """The rows of what never moves, and of the midpoint rule, which has no windows, beside four times smaller steps."""
    before, after = windows_of(test, False)
    start = test.states[:, WINDOW - 1]
    truth = implicit_midpoint(start, kappa=test.kappa, num_steps=POINTS)[:, 1:]
    fine = implicit_midpoint(start, kappa=test.kappa, step=0.05, num_steps=4 * POINTS)[:, 4::4]
    still = np.broadcast_to(start[:, None], truth.shape)
    error = three(float(((before[:, -1:] - after) ** 2).mean() ** 0.5))
    return {
        "nothing moves": {"window": error} | rollouts(still, truth, start, test.kappa),
        "midpoint rule": {"window": None} | rollouts(truth, fine, start, test.kappa),
    }


def perceptron_error(run: Run) -> float:
    """The window error of a network of one layer that reads all numbers of a window at once."""
    (before, after), (given, wanted) = windows_of(run.splits().training, False), windows_of(run.tested(), False)
    some = np.random.default_rng(0).permutation(len(before))[:20_000]
    network = MLPRegressor(
        hidden_layer_sizes=(16,), activation="tanh", solver="lbfgs", max_iter=2000, random_state=0, alpha=0
    )
    network.fit(np.asarray(before)[some].reshape(-1, 9), np.asarray(after)[some].reshape(-1, 9))
    guess = network.predict(np.asarray(given).reshape(-1, 9)).reshape(wanted.shape)
    return three(float(((guess - wanted) ** 2).mean() ** 0.5))


def of_several_shapes(name: str) -> dict[str, list[float]]:
    """The window errors of models for bodies of several shapes, told the shape or not."""
    run, (models, _) = RUNS[name], pf.load_pretrained(name)
    test = windows_of(run.tested(), run.is_told)
    numbers = range(run.config.num_models)
    return {kind: [three(window_error(models.one(kind, n), *test)) for n in numbers] for kind in KINDS}


def lost_later(name: str) -> dict[str, list[int]]:
    """Of each model for one body, how many trajectories are lost in `FAR` points."""
    run, (models, _) = RUNS[name], pf.load_pretrained(name)
    test = run.tested()
    starts, start = jnp.asarray(test.states[:, :WINDOW], jnp.float32), test.states[:, WINDOW - 1]

    def lost(model) -> int:
        length, _ = changes(followed(model, starts, FAR), start, test.kappa)
        return int((length.max(axis=1) > LOST).sum())

    return {kind: [lost(models.one(kind, n)) for n in range(run.config.num_models)] for kind in KINDS}


def of_one_shape(name: str) -> dict[str, list[dict]]:
    """What is measured of the models for one body."""
    run, (models, _) = RUNS[name], pf.load_pretrained(name)
    test, numbers = run.tested(), range(run.config.num_models)
    return {kind: [measured(models.one(kind, n), test) for n in numbers] for kind in KINDS}


def results() -> dict:
    """The numbers of all models."""
    models, test = pf.load_pretrained("dynamics")[0], RUNS["dynamics"].tested()
    several = [name for name, run in RUNS.items() if len(run.kappas) > 1]
    return {
        "one shape": {name: of_one_shape(name) for name in RUNS if name not in several},
        "opponents": {name: opponents(RUNS[name].tested()) for name in ("dynamics", "dynamics_lengths")},
        "far": {name: lost_later(name) for name in ("dynamics", "dynamics_lengths")},
        "ends": {kind: [ends(models.one(kind, n), test) for n in range(5)] for kind in KINDS},
        "volumes": {kind: cloud_volumes(models.one(kind, 0), test) for kind in KINDS},
        "shown": {kind: shown(models.one(kind, 0), test) for kind in ("ordinary", "volume_preserving", "turning")},
        "several shapes": {name: of_several_shapes(name) for name in several},
        "perceptron": perceptron_error(RUNS["dynamics_hidden"]),
    }


def amount(number: float) -> str:
    """Two digits that count; what is far off is only said to be."""
    return "> 10" if number > 10 else f"{number:.2g}" if number >= 1e-4 else f"{number:.0e}"


def row(words: str, each: list[dict]) -> str:
    """A line of the card for one kind: the mean of its models, in brackets the least and the largest."""
    cells = []
    for column in ("window", "distance_100", "distance", "length", "energy"):
        values = [one[column] for one in each]
        cells.append(f"{amount(float(np.mean(values)))} ({amount(min(values))} to {amount(max(values))})")
    cells += [", ".join(str(one[column]) for one in each) for column in ("lost", "half lost")]
    return f"| {words} | {' | '.join(cells)} |"


def tables(found: dict) -> str:
    """A table for each run with one shape."""
    head = (
        "| | window | distance, 100 points | 1,000 | length | energy | lost | more than 0.5 |\n|---" + "|---" * 7 + "|"
    )
    parts = []
    for name, kinds in found["one shape"].items():
        run = RUNS[name]
        what = "one sphere" if len(run.lengths) == 1 else "several lengths"
        lines = [row(WORDS[kind], each) for kind, each in kinds.items()]
        parts.append(f"`{name}`, {what}, {run.num_steps:,} steps:\n\n{head}\n" + "\n".join(lines))
    return "\n\n".join(parts)


def shapes_table(found: dict) -> str:
    """The window errors for several shapes."""
    lines = ["| | not told | told |", "|---|---|---|"]
    for kind, words in WORDS.items():
        cells = [", ".join(map(amount, found["several shapes"][f"dynamics_{how}"][kind])) for how in ("hidden", "told")]
        lines.append(f"| {words} | {' | '.join(cells)} |")
    return "\n".join(lines)


def far_table(found: dict) -> str:
    """Lost trajectories after ten times as many points."""
    lines = ["| | `dynamics` | `dynamics_lengths` |", "|---|---|---|"]
    for kind, words in WORDS.items():
        lines.append(
            f"| {words} | " + " | ".join(", ".join(map(str, each[kind])) for each in found["far"].values()) + " |"
        )
    return "\n".join(lines)


def card(found: dict) -> str:
    """What was done, and what came out."""
    volumes = "\n".join(f"| {WORDS[kind]} | {' | '.join(map(str, each))} |" for kind, each in found["volumes"].items())
    return f"""# What the models of rigid bodies predict

What the stored models of `lab/dynamics` predict. Nothing was trained. All numbers stand in `record.json`, with the
change of the squared length after every {PER_POINT}th of {POINTS:,} points, and trajectories of {SHOWN_POINTS} points.

- **Result.** Of the test trajectories: root mean square error of a number of the next window; distance from the true
  point, taken as 2 where it is more, mean of the first 100 points and of {POINTS:,}; largest change of the squared
  length and of the energy in {POINTS:,} points, median of the trajectories; each the mean of five models, in brackets
  the least and the largest. Of each model, how many of the trajectories are lost, so that the squared length has
  changed by more than {LOST:g} at some point of the {POINTS:,}, and how many by more than {LOST / 2:g}. There are
  {len(RUNS["dynamics"].tested().states)} trajectories on one sphere and {len(RUNS["dynamics_lengths"].tested().states)}
  of several lengths.

{tables(found)}

- **Farther.** Lost trajectories of each model within {FAR:,} points:

{far_table(found)}

- **Volumes.** A cloud of {CLOUD} windows in and around the sphere, pushed on by the first model of each kind: the
  logarithm, base 10, of the factor by which small volumes have changed after {", ".join(map(str, TIMES))} windows,
  median of the cloud.

| | {" | ".join(map(str, TIMES))} |
|---|{"---|" * len(TIMES)}
{volumes}

- **Several shapes.** Window errors of three models of each kind. A network of one layer with 16 numbers in it, which
  reads the nine numbers of a window at once (313 parameters, scikit-learn), has {amount(found["perceptron"])}, and is
  not told.

{shapes_table(found)}

- **Limits.** One system, one step. What a long rollout does depends on the last digits, so other machines may find
  other numbers there. All settings stand in `lab/drifts/run.py`; `make models` measures anew.
- **Licence.** The numbers are under Apache-2.0, as the code.
"""


def digits(number: float, count: int) -> str:
    """A number in plain figures, of which so many count."""
    return np.format_float_positional(number, count, fractional=False, trim="-")


def seeds(values: list[float]) -> str:
    """Mean, least and largest of several models, with two digits that count."""
    mean, least, largest = (digits(each, 2) for each in (float(np.mean(values)), min(values), max(values)))
    return f"{mean} ({least} to {largest})"


def said_of(name: str, each: list[dict]) -> dict[str, str]:
    """The facts of one kind in one run: what is lost in all, means of error and distance, the median change."""
    window, distance, length, lost = ([one[column] for one in each] for column in COLUMNS)
    return {
        f"{name}.window": digits(float(np.mean(window)), 1),
        f"{name}.window.seeds": seeds(window),
        f"{name}.distance": f"{np.mean(distance):.2f}",
        f"{name}.length": digits(float(np.median(length)), 1),
        f"{name}.lost": str(sum(lost)),
    }


def facts(found: dict) -> dict[str, str]:
    """What chapters say of each kind in each run, of ten times as many points, and of several shapes."""
    texts: dict[str, str] = {}
    shapes = found["several shapes"]
    for run, kinds in found["one shape"].items():
        for kind, each in kinds.items():
            texts |= said_of(f"{run}.{kind}", each)
    for run, kinds in found["far"].items():
        texts |= {f"far.{run}.{kind}.lost": str(sum(lost)) for kind, lost in kinds.items()}
    for how in ("hidden", "told"):
        for kind, form in SHAPE_FORMS.items():
            texts[f"{how}.{kind}"] = format(np.mean(shapes[f"dynamics_{how}"][kind]), form)
    texts |= {f"told.placed.{n}": f"{error:.3f}" for n, error in enumerate(sorted(shapes["dynamics_told"]["placed"]))}
    texts["hidden.ordinary.seeds"] = seeds(shapes["dynamics_hidden"]["ordinary"])
    texts["perceptron"] = digits(found["perceptron"], 2)
    standard = [one["window"] for kinds in found["one shape"].values() for one in kinds["standard"]]
    texts |= records.ends("standard.window", standard, ".3f")
    texts["ends.residual"] = f"{np.mean(found['ends']['residual']):.2f}"
    return texts | {"still.distance": f"{found['opponents']['dynamics']['nothing moves']['distance']:.2f}"}
