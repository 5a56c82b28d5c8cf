"""One table of all tasks: a transformer beside the strongest simple opponent that we found. Nothing is trained."""

import numpy as np

from lab.tasks.rows import tasks

NEEDS = (
    "staircase", "story_gru", "story_labels", "opponents", "shakespeare", "docstrings", "recurrent", "recurrent_long",
    "things_decoder", "things_encoder", "encoder_longer", "fine_tuning", "holes", "encoder", "seq2seq",
    "date_opponents", "numbers", "translator", "delta", "digits", "filling", "vision_crossing", "crossing_opponents",
    "towers", "noise", "drifts", "dynamics",
)  # fmt: skip
VERDICTS = "ahead", "level", "behind"


def results() -> dict:
    """The rows, with their verdicts."""
    rows = []
    for task in tasks():
        how = {"measure": task.measure._asdict(), "training": task.training._asdict()}
        told = task.told and task.ahead_of([task.told[1]]) > 0
        verdicts = {"verdict": task.verdict(), "by the ends": task.verdict(np.ptp), "ahead of what is told": told}
        rows.append(task._asdict() | how | verdicts | {"inside": task.training.is_inside})
    return {"tasks": rows}


def written(values: list[float], each: dict) -> str:
    """The mean of the seeds, with the least and the largest where they differ."""
    form, scale = each["measure"]["form"], each["measure"]["scale"]
    mean, *ends = (format(scale * value, form) for value in (np.mean(values), min(values), max(values)))
    return mean if len({*ends}) == 1 else f"{mean} ({' to '.join(ends)})"


def cells(each: dict) -> list[str]:
    """What its table says of a task."""
    training, told = each["training"], each["told"]
    passes = "all new" if training["passes"] is None else f"{training['passes']:,.{int(training['passes'] < 10)}f}"
    found = [f"{each['name']} ({{ref}}`sec-{each['chapter']}`)", written(each["ours"], each)]
    found.append(f"{written(each['theirs'], each)}, {each['opponent']}")
    found += [f"{written([told[1]], each)}, {told[0]}" if told else "–"]
    return [*found, passes, f"{training['rate']:g}" + ("" if each["inside"] else "\\*")]


def table(rows: list[dict]) -> str:
    """A line for each of some tasks."""
    head = ["task", "transformer", "learns from the same", "is told more", "passes", "rate"]
    lines = [head, ["---"] * len(head), *map(cells, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def facts(found: dict) -> dict[str, str]:
    """A table for each verdict; how many tasks there are of each sort, and ahead if the ends of the seeds count."""
    parts = {verdict: [each for each in found["tasks"] if each["verdict"] == verdict] for verdict in VERDICTS}
    texts = {f"table.{verdict}": table(rows) for verdict, rows in parts.items()}
    told = [each["ahead of what is told"] for each in found["tasks"] if each["told"]]
    by_ends = sum(each["by the ends"] == "ahead" for each in found["tasks"])
    counts = {"number": len(found["tasks"]), "told": len(told), "told.behind": sum(told), "ahead.by_the_ends": by_ends}
    counts |= {verdict: len(rows) for verdict, rows in parts.items()}
    return texts | {name: str(count) for name, count in counts.items()}


def card(found: dict) -> str:
    """What was compared."""
    shorter = "; ".join(
        f"{each['name']}: {written([each['training']['shorter'][1]], each)} after {each['training']['shorter'][0]:.0%}"
        for each in found["tasks"]
        if each["training"]["shorter"]
    )
    return f"""# Many tasks, and what each needs

{len(found["tasks"])} comparisons of {{ref}}`sec-tasks`, made of the records of other runs; nothing is trained.
`record.json` holds, for each, the seeds of both sides, how often the transformer read its examples, and its rates.
Where the same test was asked with fewer steps, of the whole number: {shorter}.
"""
