"""Train heads that fetch two colours at once, with one knob turned after the other; write the errors.

No weights are kept: the errors are the result, and stand in `record.json` with a card.
"""

import dataclasses
import itertools
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

import plainformer as pf
from lab.records import BUILD, ends

KEPT = BUILD / "colours"
WIDTH = 24


@dataclasses.dataclass(frozen=True)
class Run:
    """How a layer is made and trained; `head` is the width of a head, `shared` whether all share keys and values."""

    heads: int = 1
    head: int = 24
    steps: int = 600
    batch: int = 64
    rate: float = 0.03
    shared: bool = False
    patches: int = 5
    tests: int = 4096

    @property
    def name(self) -> str:
        """What it is called in the card."""
        heads = "one head" if self.heads == 1 else f"{self.heads} heads"
        sharing = ", keys and values shared" if self.shared else ""
        patches = "" if self.patches == 5 else f"; {self.patches} patches"
        how = f"{self.steps:,} steps of {self.batch}, rate {self.rate:g}"
        return f"{heads} of {self.head}{sharing}; {how}{patches}"


LONGER = Run(steps=1500, batch=256, rate=0.01)
TWO_PATCHES = Run(steps=3000, batch=256, rate=0.01, patches=2, tests=65_536)
RUNS = {
    Run(): (0, 1, 2),
    Run(heads=2, head=12): (0, 1, 2),
    LONGER: (0, 1, 2, 3, 4),
    dataclasses.replace(LONGER, rate=0.003): (0, 1, 2),
    dataclasses.replace(LONGER, rate=0.03): (0, 1, 2),
    dataclasses.replace(LONGER, steps=7500): (0, 1),
    Run(steps=3000): (0, 1, 2),
    Run(rate=0.01): (0, 1, 2),
    Run(steps=3000, rate=0.01): (0, 1, 2),
    Run(head=12): (0, 1, 2),
    Run(head=48): (0, 1, 2),
    dataclasses.replace(LONGER, head=48): (0, 1),
    Run(heads=2, head=6): (0, 1, 2),
    Run(heads=2, head=24): (0, 1, 2),
    Run(heads=2, head=12, steps=3000): (0, 1, 2),
    Run(heads=2, head=12, shared=True): (0, 1, 2),
    Run(heads=4, head=6): (0, 1, 2),
    **{dataclasses.replace(TWO_PATCHES, patches=patches): (0, 1, 2) for patches in (2, 3, 4)},
}


def scenes_of(size: int, seed: int, patches: int = 5) -> tuple[jax.Array, jax.Array]:
    """Scenes `(size, patches + 1, 24)`, the patches and then the question, and the two colours asked for."""
    rng, labels = np.random.default_rng(seed), np.eye(patches)
    asked = rng.choice(np.array(list(itertools.permutations(range(patches), 2))), size)
    scenes = np.zeros((size, patches + 1, WIDTH), np.float32)
    scenes[:, :-1, :3] = rng.normal(size=(size, patches, 3))
    scenes[:, :-1, 3 : 3 + patches] = labels
    scenes[:, -1, 3 + patches : 3 + 3 * patches] = labels[asked].reshape(size, -1)
    wanted = np.take_along_axis(scenes[:, :-1, :3], asked[:, :, None], axis=1)
    return jnp.asarray(scenes), jnp.asarray(wanted.reshape(size, -1))


def misses(layer, scenes, wanted):
    """What is painted, minus what was wanted, in the six numbers of a canvas."""
    return layer(scenes)[:, -1, :6] - wanted


@eqx.filter_jit
def train_on(layer, scenes, wanted, rate: float):
    """The layer after a step of Adam for every batch."""
    parameters, static = eqx.partition(layer, eqx.is_array)
    optimiser = optax.adam(optax.cosine_decay_schedule(rate, len(scenes)))

    def step(carry, batch):
        parameters, state = carry
        slope = jax.grad(lambda numbers: jnp.mean(misses(eqx.combine(numbers, static), *batch) ** 2))(parameters)
        updates, state = optimiser.update(slope, state)
        return (optax.apply_updates(parameters, updates), state), None

    (parameters, _), _ = jax.lax.scan(step, (parameters, optimiser.init(parameters)), (scenes, wanted))
    return eqx.combine(parameters, static)


def trained(run: Run, seed: int):
    """One layer after its training."""
    sharing = 1 if run.shared else None
    layer = eqx.filter_jit(
        lambda key: pf.MultiHeadAttention(WIDTH, run.heads, num_kv_heads=sharing, d_k=run.head, d_v=run.head, key=key)
    )(jax.random.key(seed))
    given = scenes_of(run.steps * run.batch, seed, run.patches)
    scenes, wanted = (array.reshape(run.steps, run.batch, *array.shape[1:]) for array in given)
    return train_on(layer, scenes, wanted, run.rate)


def measured(layer, scenes, wanted) -> dict[str, float]:
    """The error of one head: whole, along the direction that its scores see, across it, and without that sight."""
    query, key = (np.asarray(each.weight) for each in (layer.query, layer.key))
    seen = np.asarray(scenes)[:, -1] @ query @ key[:3].T
    seen /= np.linalg.norm(seen, axis=1, keepdims=True)
    off = np.asarray(misses(layer, scenes, wanted)).reshape(-1, 2, 3)
    along = np.einsum("bhi,bi->bh", off, seen) ** 2
    blind = eqx.tree_at(lambda each: each.key.weight, layer, layer.key.weight.at[:3].set(0))
    weights = [np.asarray(each.attention_weights(scenes))[:, 0, -1] for each in (layer, blind)]
    values = np.linalg.norm(np.asarray(layer.value.weight @ layer.output.weight)[:, :6], axis=1)
    found = {
        "error": (off**2).mean(),
        "along": along.mean(),
        "across": ((off**2).sum(axis=2) - along).mean() / 2,
        "blind": float(jnp.mean(misses(blind, scenes, wanted) ** 2)),
        "label_length": values[3 : scenes.shape[1] + 2].mean(),
        "colour_length": values[:3].mean(),
        "weight_change": np.abs(weights[0] - weights[1]).max(axis=1).mean(),
    }
    return {name: round(float(number), 4) for name, number in found.items()}


def result_of(run: Run, seed: int) -> dict[str, float]:
    """What one layer came to, kept under `build`, where it is read if it is there."""
    kept = KEPT / f"{run.name}; seed {seed}.json"
    if not kept.exists():
        layer, test = trained(run, seed), scenes_of(run.tests, 1000, run.patches)
        whole = {"error": round(float(jnp.mean(misses(layer, *test) ** 2)), 4)}
        found = {"seed": seed} | (measured(layer, *test) if run.heads == 1 else whole)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(found), encoding="utf-8")
        print(run.name, found, flush=True)
    return json.loads(kept.read_text(encoding="utf-8"))


def facts(found: dict) -> dict[str, str]:
    """What the chapter says: errors of single heads, and what each head of the longer training does."""
    layers = {run["name"]: run["layers"] for run in found["runs"]}
    said = {
        "longer": LONGER,
        "larger_rate": dataclasses.replace(LONGER, rate=0.03),
        "longest": dataclasses.replace(LONGER, steps=7500),
    }
    texts: dict[str, str] = {}
    for name, run in said.items():
        texts |= ends(f"{name}.error", [layer["error"] for layer in layers[run.name]])
    texts |= ends("two_patches.error", [layer["error"] for layer in layers[TWO_PATCHES.name]], ".3f")
    forms = dict.fromkeys(("error", "along", "across", "blind", "weight_change"), ".2f")
    for column, form in (forms | dict.fromkeys(("label_length", "colour_length"), ".0f")).items():
        texts |= {f"longer.{column}.{layer['seed']}": format(layer[column], form) for layer in layers[LONGER.name]}
    single = [run for run in found["runs"] if run["heads"] == 1 and run["patches"] == 5]
    return texts | ends("one_head.error", [layer["error"] for run in single for layer in run["layers"]])


def line_of(run: dict) -> str:
    """The line of a run in the card."""
    layers = run["layers"]
    cells = [", ".join(f"{layer['error']:.3f}" for layer in layers)]
    for name, digits in (("along", 2), ("across", 2), ("blind", 2), ("label_length", 1)):
        cells.append(", ".join(f"{layer[name]:.{digits}f}" for layer in layers) if name in layers[0] else "")
    return f"| {run['name']} | " + " | ".join(cells) + " |"


def card(found: dict) -> str:
    """What was done, and what came out."""
    lines = "\n".join(line_of(run) for run in found["runs"])
    return f"""# Heads that fetch two colours

One attention layer paints the colours of the two patches that a question names. No weights are kept: the errors are the
result, and stand in `record.json`.

- **Data.** Scenes of five patches, if no other number is named, and a question, drawn at random; every one is used
  once. 4,096 others for the test, 65,536 with another number of patches.
- **Model.** One `MultiHeadAttention` of width {WIDTH} without mask.
- **Training.** Adam, the rate falls to 0 along a cosine; seeds 0, 1, 2, … for weights and scenes.
- **Result.** Mean squared error on the test, by seed. Of a single head also the error along the direction *a* of colour
  that its scores see, the one across it, the whole error once the colours' rows of the key matrix are zero, and the
  mean length of what a label's row of W(v) W(o) writes (a colour's has {found["colour_length"]:.1f} in the third line).
- **Knobs turned.** Steps, batch, rate, width and number of heads, keys and values shared by the heads, patches:

| layer and training | error | along *a* | across *a* | blind to colours | length of a label |
|---|---|---|---|---|---|
{lines}

- **Limits.** A task made for two heads.
- **Licence.** The errors are under Apache-2.0, as the code.
"""


def results() -> dict:
    """Train all layers and return their errors."""
    runs = [
        {"name": run.name, **dataclasses.asdict(run), "layers": [result_of(run, seed) for seed in seeds]}
        for run, seeds in RUNS.items()
    ]
    longer = next(run for run in runs if run["name"] == LONGER.name)
    length = float(np.mean([layer["colour_length"] for layer in longer["layers"]]))
    return {"runs": runs, "colour_length": round(length, 2)}
