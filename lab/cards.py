"""The cards of the recorded runs, as pages of the appendix: each is said of its record alone."""

import json

from lab.records import LAB, measured
from lab.run import runs


def cards() -> dict[str, str]:
    """The page of each run, by the name of its file."""
    found = {}
    for name, run in runs().items():
        if not (LAB / name / "record.json").is_file():
            raise FileNotFoundError(f"lab/{name} has no record: make it by python -m lab.run {name}, or take it away.")
        record = json.loads((LAB / name / "record.json").read_text(encoding="utf-8"))
        found[f"{name}.md"] = f"---\norphan: true\n---\n\n(card-{name})=\n{run.card(measured(record))}"
    return found
