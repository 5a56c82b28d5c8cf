"""What is said of the record: facts, with the tables of the chapter, and the card."""

import math

import numpy as np

from lab.drifts.run import digits, row
from lab.noise.hamiltonian import DATA, ITERATIONS
from lab.noise.tasks import NOISES, NUM_VALIDATION

SIMPLE = {
    "nothing moves": "nothing moves",
    "in time": "polynomial in time",
    "last point": "polynomials of the last point",
    "window": "polynomials of the window",
    "linear": "linear ridge regression",
    "quadratic": "quadratic ridge regression",
    "curve": "polynomials of a fitted curve",
    "GRU": "GRU",
    "transformer": "transformer",
    "told the law": "told the law",
    "told exact windows": "told exact windows",
}


def errors(found: dict, name: str, sigma: float) -> dict[str, list[float]]:
    """The errors in the test with one noise: one of each simple opponent, one of each seed of a network."""
    each = {kind: [one["test"]] for kind, one in found[name]["simple"][str(sigma)].items()}
    for kind, of in found[name]["networks"].items():
        tests = [one["test"] for one in of["models"] if one["noise"] == sigma]
        each |= {kind: tests} if tests else {}
    return each


def verdict(transformer: list[float], opponent: list[float]) -> str:
    """Ahead or behind by more than twice the larger spread, the distance between best and worst seed; or level."""
    gap = float(np.mean(opponent) - np.mean(transformer))
    spread = max(max(each) - min(each) for each in (transformer, opponent))
    return "level" if abs(gap) <= 2 * spread else "ahead" if gap > 0 else "behind"


def cell(values: list[float]) -> str:
    """An error, or the mean of several with the least and the largest, if they differ in what is written."""
    if not values:
        return "–"
    mean, least, largest = (
        f"{each:.{2 - math.floor(math.log10(each))}f}" for each in (np.mean(values), min(values), max(values))
    )
    return mean if least == largest else f"{mean} ({least} to {largest})"


def table(found: dict, name: str, kinds: tuple[str, ...]) -> str:
    """A line for each opponent, a column for each noise; a dash where a network has not learned."""
    columns = NOISES[1:]
    each = {sigma: errors(found, name, sigma) for sigma in columns}
    lines = ["| noise | " + " | ".join(f"{sigma:g}" for sigma in columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for kind in kinds:
        lines.append(f"| {SIMPLE[kind]} | " + " | ".join(cell(each[sigma].get(kind, [])) for sigma in columns) + " |")
    return "\n".join(lines)


def facts(found: dict) -> dict[str, str]:
    """Errors by noise, who is ahead, energies and probes."""
    texts: dict[str, str] = {}
    for name in ("lengths", "shapes"):
        for sigma in map(float, found[name]["simple"]):
            each = errors(found, name, sigma)
            noise = f"{sigma:g}".replace(".", "_")
            texts |= {f"{name}.{noise}.{kind}": cell(of) for kind, of in each.items()}
    for name in ("lengths", "shapes"):
        texts[f"{name}.parameters"] = f"{found['parameters'][name]:,}"
        kinds = [kind for kind in SIMPLE if kind in errors(found, name, NOISES[-1])]
        texts[f"{name}.table"] = table(found, name, tuple(kinds))
        texts[f"{name}.passes"] = f"{found[name]['networks']['transformer']['passes']:.0f}"
    texts["shapes.gru.passes"] = f"{found['shapes']['networks']['GRU']['passes']:.0f}"
    texts["energy.parameters"] = f"{found['energies']['parameters']}"
    for data in DATA:
        each = found["energies"][data]["models"]
        short = "lengths" if "lengths" in data else "sphere"
        for column in ("window", "distance", "length"):
            texts[f"energy.{short}.{column}"] = digits(float(np.mean([one[column] for one in each])), 2)
        texts[f"energy.{short}.lost"] = str(sum(one["lost"] for one in each))
    trained, untrained = (np.array(found["probes"][how]) for how in ("trained", "untrained"))
    for depth in (1, 2):
        texts[f"probe.trained.{depth}"] = f"{trained[:, depth].mean():.2f}"
        texts[f"probe.untrained.{depth}"] = f"{untrained[:, depth].mean():.2f}"
    return texts | {f"probe.{name}": f"{value:.2f}" for name, value in found["probes"]["input"].items()}


def tried_table(found: dict) -> str:
    """The validation error after a whole training with each rate."""
    lines = ["| task | network | noise | error by rate | taken |", "|---|---|---|---|---|"]
    for name in ("lengths", "shapes"):
        for kind, of in found[name]["networks"].items():
            for sigma in sorted({one["noise"] for one in of["tried"]}):
                each = {one["rate"]: one["curve"][-1][1] for one in of["tried"] if one["noise"] == sigma}
                cells = ", ".join(f"{rate:g}: {error:.4g}" for rate, error in each.items())
                lines.append(f"| {name} | {kind} | {sigma:g} | {cells} | {min(each, key=lambda r: each[r]):g} |")
    return "\n".join(lines)


def knobs(found: dict) -> str:
    """Errors of networks of another width, or after fewer steps."""
    return "; ".join(
        f"{knob}, noise {one['noise']:g}, rate {one['rate']:g}: {digits(one['test'], 3)}"
        for knob, models in found["knobs"].items()
        for one in models
    )


def curves(found: dict) -> str:
    """The validation errors of the first seed on the way."""
    lines = []
    for name in ("lengths", "shapes"):
        for kind, of in found[name]["networks"].items():
            for one in of["models"]:
                if one["seed"] == 0:
                    errors = ", ".join(f"{error:.4g}" for _, error in one["curve"])
                    lines.append(f"- {name}, {kind}, noise {one['noise']:g}, rate {one['rate']:g}: {errors}")
    return "\n".join(lines)


def chosen_table(found: dict) -> str:
    """The setting of each simple opponent."""
    lines = ["| task | noise | opponent | setting | noisy windows | strength |", "|---|---|---|---|---|---|"]
    for name in ("lengths", "shapes"):
        for sigma, kinds in found[name]["simple"].items():
            for kind, one in kinds.items():
                if "kind" in one:
                    cells = (name, sigma, SIMPLE[kind], one["kind"], f"{one['windows']:,}", f"{one['strength']:g}")
                    lines.append(f"| {' | '.join(cells)} |")
                elif "degree" in one:
                    fit = f"degree {one['degree']} over {one['points']} points"
                    lines.append(f"| {name} | {sigma} | {SIMPLE[kind]} | {fit} | | |")
    return "\n".join(lines)


def card(found: dict) -> str:
    """What was done, and what came out."""
    head = "| | window | distance, 100 points | 1,000 | length | energy | lost | more than 0.5 |\n" + "|---" * 8 + "|"
    energies = "\n".join(row(f"`{data}`", found["energies"][data]["models"]) for data in DATA)
    tried = "; ".join(f"`{data}` {found['energies'][data]['tried']}" for data in DATA)
    probes = found["probes"]
    lengths, shapes = (found[name]["networks"]["transformer"] for name in ("lengths", "shapes"))
    gru = found["shapes"]["networks"]["GRU"]
    return f"""# What noise on the points changes

To every number of every point Gaussian noise is added, to the points that are read as to those that follow; guesses are
held against the true points that follow. Nothing is stored but errors; all settings stand in `lab/noise`.

- **Tasks.** `lengths`: bodies of one shape, the data of `dynamics_lengths`, windows of three points. `shapes`: the data
  of `dynamics_hidden`, seven shapes to learn from and six between them in the test, windows of twelve points. Three
  points are to be predicted. {NUM_VALIDATION:,} windows of the validation trajectories choose all settings.
- **Simple opponents.** Nine polynomials by ridge regression on standardised features, strength 0 (least squares) among
  those tried. Noise is drawn anew for every window that they learn from. A *fitted curve* is a polynomial in time
  through the whole window, whose coefficients are the numbers that products are made of. *Polynomials in time* go on
  with a polynomial through the last points. Who is *told the law* fits shape and first state by
  `scipy.optimize.least_squares` through the true equation. Who is *told exact windows* takes the mean of what follows
  in all windows to learn from as they are, each weighed by how likely it is to be measured as what is read.
- **Networks.** Batches of 64 windows, drawn and measured anew in each step; Adam, a rate that falls to zero along a
  cosine. `lengths`: the stored ordinary blocks of `dynamics_lengths`, which have learned from exact points, go on for
  {lengths["steps"]:,} steps, {lengths["passes"]:g} passes over the windows. `shapes`: two blocks of width 32 with
  learned places, {found["parameters"]["shapes"]:,} numbers, {shapes["steps"]:,} steps, {shapes["passes"]:g} passes; a
  GRU with a state of 64 numbers, {gru["steps"]:,} steps, {gru["passes"]:g} passes. Three seeds.

One shape, several lengths; root mean square error of a number in the test, in brackets the least and the largest:

{table(found, "lengths", tuple(k for k in SIMPLE if k in errors(found, "lengths", NOISES[-1])))}

Several shapes:

{table(found, "shapes", tuple(k for k in SIMPLE if k in errors(found, "shapes", NOISES[-1])))}

- **Settings of the simple opponents.**

{chosen_table(found)}

- **Rates**, by the validation error after a whole training with one seed; other noises take that of the nearest:

{tried_table(found)}

- **Curves.** Validation errors after each tenth of the training, first seed:

{curves(found)}

- **Knobs turned.** Errors in the test of `shapes`, first seed, one rate: {knobs(found)}.
- **A learned energy.** Two layers of 16 with tanh, {found["energies"]["parameters"]} numbers; the implicit midpoint
  rule with {ITERATIONS} iterations, {found["energies"]["steps"]:,} steps of 64 exact windows, three seeds; columns as
  in `lab/drifts`. Errors by rate after a short training: {tried}.

{head}
{energies}

- **Probes.** R² of a ridge regression of the shape on the rows of the ordinary blocks of `dynamics_hidden`, before and
  after each block, learned from validation trajectories of the shapes of the test and judged on the test: trained
  {probes["trained"]}, untrained {probes["untrained"]}; on the nine numbers of the window
  {probes["input"]["numbers"]}, with their products {probes["input"]["quadratic"]}.
- **Limits.** One system, one step between points, noise that is drawn anew. The validation errors of
  all networks of `shapes` were still falling.
- **Licence.** The numbers are under Apache-2.0, as the code.
"""
