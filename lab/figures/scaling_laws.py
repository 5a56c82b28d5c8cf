"""Write what the live figure `scaling` shows: the law of `lab/scaling_laws` with a known floor, and its draws.

`make models` runs it, after the training.
"""

import dataclasses
import json
from pathlib import Path

import plainformer as pf
from lab.records import LAB, ROOT
from lab.scaling_laws.run import arrays_of

NUMBERS = ROOT / "widgets" / "scaling.json"
NUM_DRAWS = 60  # of the trainings, each with a law of its own


def short(law: pf.training.PowerLaw) -> list[float]:
    """Floor, factor and power of size, factor and power of text, to six figures."""
    return [float(f"{number:.6g}") for number in dataclasses.astuple(law)]


def numbers() -> dict:
    """All that the figure reads."""
    recorded = json.loads((LAB / "scaling_laws" / "record.json").read_text(encoding="utf-8"))
    runs, floor = recorded["runs"]["world"], recorded["floor"]
    draws = pf.training.bootstrap_power_laws(*arrays_of(runs), floor=floor, num_draws=NUM_DRAWS)
    return {
        "law": short(pf.training.fit_power_law(*arrays_of(runs), floor=floor)),
        "draws": [short(law) for law in draws],
        "sizes": [run["parameters"] for run in runs],
    }


def write(path: Path = NUMBERS) -> None:
    """Write the file."""
    path.write_text(json.dumps(numbers(), separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
