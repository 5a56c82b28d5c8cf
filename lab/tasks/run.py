"""One table of all tasks: a transformer beside the strongest simple opponent that we found. Nothing is trained."""

import numpy as np

from lab.tasks.rows import tasks

NEEDS = (
    "staircase", "story_gru", "story_labels", "shakespeare", "docstrings", "recurrent", "recurrent_long",
    "things_decoder", "things_encoder", "fine_tuning", "holes", "encoder", "seq2seq", "numbers", "translator",
    "delta", "digits", "filling", "vision_crossing", "crossing_opponents", "towers", "noise", "drifts", "dynamics",
)  # fmt: skip
VERDICTS = "ahead", "level", "behind"


def results() -> dict:
    """The rows, with their verdicts."""
    rows = []
    for task in tasks():
        how = {"measure": task.measure._asdict(), "training": task.training._asdict()}
        rows.append(task._asdict() | how | {"verdict": task.verdict, "inside": task.training.is_inside})
    return {"tasks": rows}


def written(values: list[float], each: dict) -> str:
    """The mean of the seeds, with the least and the largest."""
    form, scale = each["measure"]["form"], each["measure"]["scale"]
    mean, *ends = (format(scale * value, form) for value in (np.mean(values), min(values), max(values)))
    return mean if len(values) == 1 else f"{mean} ({' to '.join(ends)})"


def line(each: dict) -> str:
    """A task as a line of its table."""
    training, (ours, theirs) = each["training"], each["results"]
    on_the_way = ", ".join(written([value], each) for value in training["on_the_way"]) or "–"
    passes = "all new" if training["passes"] is None else f"{training['passes']:.2g}"
    rate = f"{training['rate']:g}" + ("" if each["inside"] else "*")
    cells = [f"{each['name']} ({{ref}}`sec-{each['chapter']}`)", written(ours, each)]
    cells += [f"{written(theirs, each)}, {each['opponent']}", on_the_way, passes, rate]
    return f"| {' | '.join(cells)} |"


def table(rows: list[dict]) -> str:
    """A line for each of some tasks."""
    head = ["| task | transformer | opponent | on the way | passes | rate |", "|---" * 6 + "|"]
    return "\n".join([*head, *map(line, rows)])


def facts(found: dict) -> dict[str, str]:
    """A table for each verdict, and how many tasks have it."""
    parts = {verdict: [each for each in found["tasks"] if each["verdict"] == verdict] for verdict in VERDICTS}
    texts = {f"table.{verdict}": table(rows) for verdict, rows in parts.items()}
    texts |= {f"number.{verdict}": str(len(rows)) for verdict, rows in parts.items()}
    return texts | {"number": str(len(found["tasks"]))}


def card(found: dict) -> str:
    """What was compared."""
    return f"""# Many tasks, and what each needs

{len(found["tasks"])} comparisons of {{ref}}`sec-tasks`, made of the records of other runs; nothing is trained.
`record.json` holds, for each, the seeds of both sides, how often the transformer read its examples, and its rates.
"""
