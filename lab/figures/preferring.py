"""Write what the live figure `preferring` shows: runs of `lab/preferring`, with the texts that were written.

`make models` runs it, after the training.
"""

import json
from pathlib import Path

import numpy as np

import plainformer as pf
from lab.preferring.run import NUM_STEPS
from lab.records import LAB, ROOT

NUMBERS = ROOT / "widgets" / "preferring.json"


def with_verdicts(prompt: str, text: str) -> dict:
    """A beginning and what was written after it, sentence by sentence, with whether each is possible."""
    before = len(pf.data.possible_sentences(prompt))
    found = pf.data.possible_sentences(f"{prompt} {text}")[before:]
    return {"prompt": prompt, "sentences": [[said, bool(is_possible)] for said, is_possible in found]}


def shown(beta: str, seeds: list[dict], prompts: list[str]) -> dict:
    """The means of the seeds, and the texts of the first."""
    means = {name: round(float(np.mean([seed[name] for seed in seeds])), 4) for name in ("reward", "leash", "possible")}
    texts = [with_verdicts(*pair) for pair in zip(prompts, seeds[0]["texts"], strict=True)]
    return {"beta": float(beta), **means, "texts": texts}


def numbers() -> dict:
    """All that the figure reads."""
    stored = json.loads((LAB / "preferring" / "record.json").read_text(encoding="utf-8"))
    prompts = stored["prompts"]
    return {
        "steps": NUM_STEPS,
        "tuned": [shown(beta, seeds, prompts) for beta, seeds in stored["betas"].items()],
        "longer": [shown(beta, [seed], prompts) for beta, seed in stored["longer"].items()],
        "bestOf": [{"n": int(n), **each} for n, each in stored["best of"].items()],
        "frontier": sorted(stored["frontier"].values(), key=lambda each: each["leash"]),
    }


def write(path: Path = NUMBERS) -> None:
    """Write the file."""
    path.write_text(json.dumps(numbers(), separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
