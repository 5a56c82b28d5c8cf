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
from lab.noise.networks import Perceptron, WindowTransformer
from lab.noise.probe import probes
from lab.noise.tasks import NOISES, SEQ, task
from lab.noise.training import KEPT, Plan, compared, fresh, stored
from lab.records import kept

NEEDS = ("dynamics", "drifts")
WIDTH, INNER = 16, 64
SHAPE_NOISES = (0.01, 0.03, 0.1)
RATES = {
    "blocks": (0.004, 0.008, 0.016, 0.032, 0.064),
    "layers": (0.00125, 0.0025, 0.005, 0.01, 0.02),
    "stored": (0.002, 0.004, 0.008, 0.016, 0.032),
}
PLANS = {
    "lengths": {"transformer": Plan(stored, RATES["stored"], 10_000, NOISES[1:], NOISES[1:])},
    "shapes": {
        "transformer": Plan(
            fresh(partial(WindowTransformer, SEQ["shapes"], WIDTH)),
            RATES["blocks"],
            10_000,
            SHAPE_NOISES[1:],
            (0.03,),
            ((0.1, 3), (0.1, 4), (0.1, 5)),  # where it comes close to its opponents
        ),
        "perceptron": Plan(
            fresh(partial(Perceptron, SEQ["shapes"], INNER)), RATES["layers"], 20_000, SHAPE_NOISES, (0.03,)
        ),
    },
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
    return found | {"energies": energies(), "probes": kept(KEPT / "probes.json", probes)}
