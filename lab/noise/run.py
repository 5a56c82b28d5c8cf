"""Measure what noise changes: polynomials, ridge regression and networks on measured points; a learned energy; a probe.

No weights are kept: errors stand in `record.json`, with what was tried.
"""

from functools import partial

import equinox as eqx

import plainformer as pf
from lab.noise import opponents
from lab.noise.card import card as card, facts as facts
from lab.noise.hamiltonian import energies
from lab.noise.law import told
from lab.noise.networks import Recurrent, WindowTransformer
from lab.noise.probe import probes
from lab.noise.tasks import NOISES, SEQ, task
from lab.noise.training import KEPT, Plan, compared, fresh, stored
from lab.records import kept

NEEDS = ("dynamics", "drifts")
WIDTH, HIDDEN = 32, 64
SHAPE_NOISES = (0.03, 0.1)
RATES = (0.002, 0.004, 0.008, 0.016, 0.032)
PLANS = {
    "lengths": {"transformer": Plan(stored, RATES, 10_000, NOISES[1:], NOISES[1:])},
    "shapes": {
        "transformer": Plan(
            fresh(partial(WindowTransformer, SEQ["shapes"], WIDTH)),
            RATES[:4],
            50_000,
            SHAPE_NOISES,
            SHAPE_NOISES[:1],
        ),
        "GRU": Plan(fresh(partial(Recurrent, HIDDEN)), RATES[:4], 100_000, SHAPE_NOISES, SHAPE_NOISES[:1]),
    },
}
KNOBS = {  # of the shapes, with the first seed and one rate
    "transformer, half as wide": Plan(
        fresh(partial(WindowTransformer, SEQ["shapes"], WIDTH // 2)), (0.016,), 50_000, (0.1,), (0.1,), (0,)
    ),
    "transformer, a fifth of the steps": PLANS["shapes"]["transformer"]._replace(
        rates=(0.004,), num_steps=10_000, seeds=(0,)
    ),
    "GRU, five times the steps": PLANS["shapes"]["GRU"]._replace(rates=(0.008,), num_steps=500_000, seeds=(0,)),
}


def simple(name: str) -> dict[str, dict[str, dict]]:
    """What each simple opponent comes to, by noise."""
    found: dict[str, dict[str, dict]] = {}
    of = task(name)
    for sigma in NOISES if name == "lengths" else NOISES[1:]:
        each: dict = {"nothing moves": opponents.still(of, sigma), "in time": opponents.best_extrapolation(of, sigma)}
        for kind, features in opponents.FEATURES[name].items():
            each[kind] = opponents.best_polynomial(of, features, sigma)
        if name == "shapes":
            each |= told(of, sigma)
        found[str(sigma)] = each
    return found


def results() -> dict:
    """All numbers."""
    found: dict = {"parameters": {}}
    for name, plans in PLANS.items():
        networks = {kind: compared(f"{name}_{kind}", task(name), plan) for kind, plan in plans.items()}
        found[name] = {"simple": kept(KEPT / f"{name}_simple.json", partial(simple, name)), "networks": networks}
        model = eqx.filter_eval_shape(PLANS[name]["transformer"].make, (0,))
        found["parameters"][name] = pf.count_parameters(model)
    found["knobs"] = {knob: compared(knob, task("shapes"), plan)["models"] for knob, plan in KNOBS.items()}
    return found | {"energies": energies(), "probes": kept(KEPT / "probes.json", probes)}
