"""The transformer on one page with one thing changed at a time: what each of its parts is worth.

The cells are those of the chapter. `record.json` holds the results.
"""

import re
from collections.abc import Iterable

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax

import plainformer as pf
from lab.records import ROOT, ends

NEEDS = ("staircase",)
CHAPTER = ROOT / "chapters" / "decoder.md"
NUM_STEPS, SEEDS = 300, (0, 1, 2)
RATE = "optax.adam(3e-3)"
# What stands in the cells, and what stands there instead.
CHANGES: dict[str, dict[str, str]] = {
    "nothing": {},
    "no norms": {"return scale * x / jnp.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5)": "return scale * x"},
    "no positions": {"return -slopes[:, None, None] * distances": "return 0 * slopes[:, None, None] * distances"},
    "one head": {"num_heads=8": "num_heads=1"},
    "one head, slope 1/4": {
        "num_heads=8": "num_heads=1",
        "slopes = 2.0 ** (-8 * jnp.arange(1, num_heads + 1) / num_heads)": "slopes = jnp.array([0.25])",
    },
    "no network": {'return jax.nn.gelu(x @ w["up"], approximate=False) @ w["down"]': "return 0 * x"},
    "no attention": {"x = x + multi_head(norm": "x = x + 0 * multi_head(norm"},
    "no skips": {"x = x + multi_head(norm": "x = multi_head(norm", "return x + feed_forward(": "return feed_forward("},
    "a learning rate of 0.03": {RATE: "optax.adam(3e-2)"},
    "a learning rate of 0.001": {RATE: "optax.adam(1e-3)"},
}
for _name in ("no norms", "no skips"):  # where another rate may suit better
    CHANGES[f"{_name}, a learning rate of 0.001"] = CHANGES[_name] | {RATE: "optax.adam(1e-3)"}
LONGER, MORE = ", five times the steps", {"stories(400, 65": "stories(8000, 65"}  # and more stories, so that few repeat
for _name in ("nothing", "no network", "no skips", "one head", "one head, slope 1/4"):
    CHANGES[_name + LONGER] = CHANGES[_name] | MORE
# What the chapter shows.
SHOWN = (
    *("nothing", "no attention", "one head", "one head, slope 1/4"),
    *("no positions", "no norms", "no skips", "no network"),
)


def cells() -> tuple[str, str]:
    """What defines the transformer and its loss, and the cell that trains it, without its picture."""
    page = CHAPTER.read_text(encoding="utf-8").partition("(sec-decoder-page)=")[2]
    code = re.findall(r"```\{code-cell\} ipython3\n(?:---\n.*?---\n)?(.*?)```", page, re.DOTALL)
    (model,) = (cell for cell in code if "def transformer" in cell)
    (loss,) = (cell for cell in code if "def mean_surprise" in cell)
    (training,) = (cell for cell in code if "optax.adam" in cell)
    return model.partition("pf.exercises.check")[0] + loss, training.partition("figure, ax =")[0]


def learned(name: str, seed: int, num_steps: int = NUM_STEPS) -> tuple[np.ndarray, float]:
    """The loss of each step, and the lowest loss of the stories, after a change."""
    definition, training = cells()
    num_steps *= 5 if name.endswith(LONGER) else 1
    for old, new in CHANGES[name].items():
        assert (definition + training).count(old) == 1, old
        definition, training = definition.replace(old, new), training.replace(old, new)
    training = training.replace("range(150)", f"range({num_steps})").replace("default_rng(0)", f"default_rng({seed})")
    names = {"np": np, "jax": jax, "jnp": jnp, "optax": optax, "eqx": eqx, "plt": plt, "pf": pf}
    names["machine"], names["words"] = pf.load_pretrained("stories")
    exec(definition + training, names)
    return np.array([float(loss) for loss in names["losses"]]), float(names["lowest"])


def above(name: str, seed: int) -> dict:
    """The first losses of a run, and its last twenty above the lowest loss."""
    losses, lowest = learned(name, seed)
    found = {
        "first": [round(float(loss), 3) for loss in losses[:3]],
        "above": round(float(losses[-20:].mean() - lowest), 3),
    }
    print(name, seed, found, flush=True)
    return found


def table(found: dict, names: Iterable[str]) -> str:
    """What came of some of the changes, as it stands in card and chapter."""
    numbers = {name: ", ".join(f"{each['above']:.2f}" for each in found["changes"][name]) for name in names}
    rows = [f"| {name} | {above} |" for name, above in numbers.items()]
    return "\n".join(["| changed | nats above the lowest |", "|---|---|", *rows])


def facts(found: dict) -> dict[str, str]:
    """What the chapter says: its table, and the least and largest nats above the lowest of each change."""
    texts = {"shown": table(found, SHOWN)}
    above = {name: [each["above"] for each in seeds] for name, seeds in found["changes"].items()}
    above["either slope" + LONGER] = above["one head" + LONGER] + above["one head, slope 1/4" + LONGER]
    for name, values in above.items():
        texts |= ends(name.replace(LONGER, ".longer"), values)
    return texts


def card(found: dict) -> str:
    """What was done, and what came out."""
    return f"""# The transformer on one page, with one thing changed

The cells of *Write the transformer* in {{ref}}`sec-decoder`, run by `lab/page/run.py`, which
`make models` runs. The numbers stand in `record.json`.

- **Training.** As on the page, for {NUM_STEPS} steps instead of 150, with three seeds for weights and batches. Five
  times the steps are {5 * NUM_STEPS:,}, with 8,000 stories instead of 400.
- **Result.** Mean loss of the last twenty steps above the lowest possible, in nats per word, seeds 0, 1 and 2:

{table(found, CHANGES)}

- **Limits.** Two blocks, few steps.
- **Licence.** The numbers are under Apache-2.0, as the code.
"""


def results() -> dict:
    """Run all changes and return their numbers."""
    return {"changes": {name: [above(name, seed) for seed in SEEDS] for name in CHANGES}}
