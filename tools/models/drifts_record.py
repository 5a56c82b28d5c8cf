"""Measure what the stored models of chapter 14 predict: one window, a thousand points; write it with a card.

Nothing is trained. `drifts.json` holds the numbers of every model, and the trajectories that a figure shows.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from records import write_record
from train_dynamics import KINDS, LONG, RUNS, WINDOW, WORDS, deviations, row_of, tested, windows_of

import plainformer as pf
from plainformer.data.rigid_body import implicit_midpoint, rigid_bodies
from plainformer.models.dynamics import rollout, window_loss

SHOWN, SHOWN_POINTS = (10, 76), 300  # the test trajectories of the figure, and how far they are followed
ENDS = 300  # points after which it is asked whether a body that began off the sphere has come back
OFF = 0.98, 1.02  # lengths at which it began
PER_POINT = 10  # points between two of a stored curve


def rounded(row: dict[str, float]) -> dict[str, float]:
    """A row of the table, in three digits."""
    return {column: float(f"{number:.3g}") for column, number in row.items()}


@eqx.filter_jit
def followed(model, starts):
    """All points that a model predicts, and what it makes of the windows of the test."""
    return rollout(model, starts, -(-LONG // WINDOW))[:, :LONG]


@eqx.filter_jit
def of_windows(model, before, after):
    """Window error, how far apart first and last predicted points are, and the error of the middle one."""
    guess = model(before)
    apart = jnp.linalg.norm(guess[:, 0] - guess[:, 2], axis=1).mean()
    middle = ((guess - after)[:, 1] ** 2).mean() ** 0.5
    return window_loss(model, (before, after)) ** 0.5, apart, middle


def measured(model, test, truth) -> dict:
    """All that is measured of one model."""
    starts = jnp.asarray(test.states[:, :WINDOW], jnp.float32)
    found = deviations(followed(model, starts), truth, test.kappa)
    error, apart, middle = map(float, of_windows(model, *windows_of(test, False)))
    ends = [np.linalg.norm(np.nan_to_num(followed(model, off * starts)[::4, ENDS - 1], nan=1e6), axis=1) for off in OFF]
    record = {"row": rounded(row_of(error, *found)), "apart": round(apart, 4), "middle": round(middle, 5)}
    record["ends"] = [float(f"{np.median(each):.4g}") for each in ends]
    record["curve"] = [float(f"{change:.3g}") for change in np.median(found[1], axis=0)[PER_POINT - 1 :: PER_POINT]]
    return record


def shown(model, test) -> list:
    """What one model makes of two trajectories."""
    starts = jnp.asarray(test.states[list(SHOWN), :WINDOW], jnp.float32)
    return np.asarray(followed(model, starts), np.float64)[:, :SHOWN_POINTS].round(3).tolist()


def opponents(test, truth) -> dict[str, dict]:
    """The rows of what never moves, and of the midpoint rule, which has no windows, beside four times smaller steps."""
    before, after = windows_of(test, False)
    still = np.broadcast_to(test.states[:, WINDOW - 1 : WINDOW], truth.shape)
    error = float(((before[:, -1:] - after) ** 2).mean() ** 0.5)
    fine = implicit_midpoint(test.states[:, WINDOW - 1], step=0.05, num_steps=4 * LONG)[:, 4::4]
    return {
        "nothing moves": rounded(row_of(error, *deviations(still, truth, test.kappa))),
        "midpoint rule": rounded(row_of(np.nan, *deviations(truth, fine, test.kappa))) | {"window": None},
    }


def of_several_shapes(name: str) -> dict[str, list[float]]:
    """The window errors of models for bodies of several shapes, told the shape or not."""
    run, (models, _) = RUNS[name], pf.load_pretrained(name)
    given, wanted = windows_of(tested(run, rigid_bodies()), run.is_told)

    @eqx.filter_jit
    def error(model):
        return ((model(given) - wanted)[..., :3] ** 2).mean() ** 0.5

    return {kind: [round(float(error(models.one(kind, n))), 5) for n in range(run.config.num_models)] for kind in KINDS}


def results() -> dict:
    """The numbers of all models."""
    models, test = pf.load_pretrained("dynamics")[0], rigid_bodies().test
    truth = implicit_midpoint(test.states[:, WINDOW - 1], num_steps=LONG)[:, 1:]
    numbers = range(RUNS["dynamics"].config.num_models)
    return {
        "kinds": {kind: [measured(models.one(kind, n), test, truth) for n in numbers] for kind in KINDS},
        "opponents": opponents(test, truth),
        "shown": {kind: shown(models.one(kind, 0), test) for kind in KINDS if kind != "skip"},
        "several shapes": {name: of_several_shapes(name) for name in ("dynamics_hidden", "dynamics_told")},
    }


def table(found: dict) -> str:
    """A line of the card for each kind: medians of its models."""
    lines = ["| model | first to last | middle | from 0.98 | from 1.02 |", "|---|---|---|---|---|"]
    for kind, each in found["kinds"].items():
        columns = [[one["apart"], one["middle"], *one["ends"]] for one in each]
        cells = [f"{number:.4f}" if number < 10 else "> 10" for number in np.median(columns, axis=0)]
        lines.append(f"| {WORDS[kind]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def card(found: dict) -> str:
    """What was done, and what came out."""
    return f"""# Predictions of the models of chapter 14

What the stored models of `dynamics.md` predict, measured once more in what the chapter shows. Nothing was trained. All
numbers stand in `drifts.json`: for each model a row with the columns of `dynamics.md`, the change of the squared length
after every tenth of {LONG:,} points, median of the test trajectories, two trajectories of {SHOWN_POINTS} points, and
the window errors for bodies of several shapes.

- **Result.** Medians of the models of a kind: distance of the first from the last of three predicted points, and root
  mean square error of the middle one; length of the state after {ENDS} points, if it was {OFF[0]} or {OFF[1]} at first:

{table(found)}

- **Limits.** Those of `dynamics.md`. What a long rollout does depends on the last digits, so other machines may find
  other numbers there. All settings stand in `tools/models/drifts_record.py`; `make models` measures anew.
- **Licence.** The numbers are under Apache-2.0, as the code.
"""


def write() -> None:
    """Measure, and write the numbers with a card."""
    found = results()
    write_record("drifts", found, card(found))


if __name__ == "__main__":
    write()
