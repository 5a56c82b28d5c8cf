"""The rows of the staircase on a real text: the Python reference, a character at a time.

Each machine is made and trained as it is for the stories, and judged by its nats per character on what is held out;
each writes a line, too.
"""

import dataclasses
from functools import cache

import numpy as np

import plainformer as pf
from lab import growing
from lab.decoder.run import VOCABULARY
from lab.growing import ROWS
from lab.staircase import telling

COUNTED = {"words": 1, "pairs": 2}  # how many characters are counted together


@cache
def texts() -> tuple[list[int], list[int]]:
    """The text to learn from, and what is held out."""
    training, validation = (VOCABULARY.encode(text) for text in pf.data.python_reference_splits())
    return training, validation


def counted(row: str) -> tuple[float, str]:
    """What can be counted: nats per character, and a line."""
    training, validation = texts()
    model = pf.training.NgramModel(training, COUNTED[row], len(VOCABULARY))
    every = range(len(VOCABULARY))
    table = np.log([[model.probability(after, [before][: COUNTED[row] - 1]) for after in every] for before in every])
    return round(model.loss(validation), 3), telling.line(telling.by_table(table), VOCABULARY)


def trained(row: str, seed: int = 0) -> tuple[float, str]:
    """The same of a machine after its training."""
    training, validation = texts()
    windows = pf.data.consecutive_windows(validation, growing.LENGTH)
    model, metrics = pf.fit(
        growing.make(ROWS[row], seed, len(VOCABULARY)),
        pf.training.next_token_loss,
        pf.data.random_windows(training, growing.LENGTH, growing.BATCH_SIZE, seed=seed),
        dataclasses.replace(growing.training_of(ROWS[row], seed), evaluate_every=500),
        evaluate=lambda model: pf.training.corpus_loss(model, windows),
        directory=growing.KEPT / f"reference-{row}-{seed}",
        progress=False,
    )
    print(row, [(m["step"], round(m["validation_loss"], 3)) for m in metrics if "validation_loss" in m], flush=True)
    return round(metrics[-1]["validation_loss"], 3), telling.line(model, VOCABULARY)


def found() -> dict[str, tuple[float, str]]:
    """Nats per character of all rows, and a line that each has written."""
    return {row: counted(row) for row in COUNTED} | {row: trained(row) for row in ROWS}


if __name__ == "__main__":
    print(found())
