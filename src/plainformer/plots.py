"""Pictures of what models return and how they were trained. matplotlib is imported only when one is drawn."""

import csv
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from plainformer.checks import Rate, check_axes, checked, refuse
from plainformer.data.files import as_path, read_text
from plainformer.data.lists import check_list, check_names, check_token_ids

MEMORY = ("parameters", "gradients", "moments", "gathered", "activations")  # of a Plan
MOST_CLASSES = 1000  # of a confusion matrix whose classes have no names: a number by mistake fills no memory
DRAW_ONE = "Of several heads, draw one: weights[0]."


@checked
def attention_map(
    weights,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    *,
    ax=None,
    title: str = "",
    numbers: bool | None = None,
):
    r"""Draw attention weights as a heat map: one row per query, one column per key.

    Args:
        weights: `(q_seq, kv_seq)`, each between 0 and 1.
        rows, columns: a label for each query and for each key, a string being one for each character; `columns`
            defaults to `rows` if they are as many. Spaces at the ends of a label are shown as ␣, line ends as \n.
        ax: the matplotlib axes to draw into; `None` makes a figure.
        numbers: whether each cell shows its weight; `None` for yes if there are at most 8 columns.

    Returns:
        The matplotlib axes.

    Example:
        With a causal mask and equal scores.

        >>> weights = pf.softmax(jnp.zeros((3, 3)), pf.causal_mask(3))
        >>> ax = pf.plots.attention_map(weights, ["the", "cat", "sat"], title="Equal scores")
        >>> [label.get_text() for label in ax.get_yticklabels()]
        ['the', 'cat', 'sat']
    """
    weights = _weights(weights, DRAW_ONE, q_seq=None, kv_seq=None)
    rows, columns = _both_sides(weights, rows, columns)
    numbers = len(columns) <= 8 if numbers is None else numbers
    width, height = (0.55, 0.45) if numbers else (0.25, 0.25)
    ax = _axes(ax, 0.7 + width * len(columns) + _inches(rows), 0.7 + height * len(rows) + _inches(columns), title)
    ax.imshow(weights, vmin=0, vmax=1, cmap="Blues", aspect="auto")
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    _name_ticks(ax, "x", columns)
    _name_ticks(ax, "y", rows)
    ax.set(xlabel="key", ylabel="query")
    if numbers:
        for (row, column), weight in np.ndenumerate(weights):
            ax.text(column, row, f"{weight:.2f}", ha="center", va="center", color=_ink(weight), fontsize=9)
    return ax


@checked
def head_grid(weights, rows: Sequence[str] | None = None, columns: Sequence[str] | None = None, *, title: str = ""):
    r"""Draw the attention weights of every head as a heat map of its own: one row of maps per layer.

    Layers and heads are counted from 0, so that the map called layer 2, head 1 shows `weights[2, 1]`.

    Args:
        weights: of one text, `(layers, heads, q_seq, kv_seq)`, such as `Decoder.attention_weights` returns, or
            `(heads, q_seq, kv_seq)`.
        rows, columns: labels as for `attention_map`; a class token has one, too.

    Returns:
        An array of matplotlib axes, `(layers, heads)` or `(heads,)`.
    """
    import matplotlib.pyplot as plt

    one_layer = _as_array("weights", weights).ndim == 3
    names = ["heads", "q_seq", "kv_seq"] if one_layer else ["layers", "heads", "q_seq", "kv_seq"]
    weights = _weights(weights, "Of several texts, draw one: weights[0].", **dict.fromkeys(names))
    rows, columns = _both_sides(weights, rows, columns)
    maps = weights[None] if one_layer else weights
    num_layers, num_heads = maps.shape[:2]
    width, height = (0.5 + max(1.2, 0.13 * len(labels)) for labels in (columns, rows))
    size = (1 + width * num_heads + _inches(rows), 0.5 + height * num_layers + _inches(columns))
    figure, axes = plt.subplots(num_layers, num_heads, figsize=size, squeeze=False, layout="constrained")
    for (layer, head), ax in np.ndenumerate(axes):
        image = ax.imshow(maps[layer, head], vmin=0, vmax=1, cmap="Blues", aspect="auto")
        ax.set_title(f"head {head}" if one_layer else f"layer {layer}, head {head}", fontsize=10)
        ax.set(xticks=[], yticks=[])
    for ax in axes[-1]:
        _name_ticks(ax, "x", columns)
    for ax in axes[:, 0]:
        _name_ticks(ax, "y", rows)
    figure.supxlabel("key")
    figure.supylabel("query")
    figure.suptitle(title, parse_math=False)
    figure.colorbar(image, ax=axes, label="weight", fraction=0.05, pad=0.02, aspect=15 * num_layers)
    return axes[0] if one_layer else axes


@checked
def attention_arcs(weights, tokens: Sequence[str] | None = None, *, threshold: Rate = 0.1, ax=None, title: str = ""):
    r"""Draw the attention weights of one head as arcs over a line of tokens, the wider the larger the weight.

    An arc above the line leads from a query back to an earlier key, one below it from a query on to a later key, and a
    dot is what a token attends to itself.

    Args:
        weights: `(seq, seq)`, a row per query, each between 0 and 1.
        tokens: a label for each, as for `attention_map`.
        threshold: weights up to this one are left out.

    Returns:
        The matplotlib axes.
    """
    from matplotlib.patches import Arc

    weights = _weights(weights, DRAW_ONE, q_seq=None, kv_seq=None)
    check_axes("weights", weights, "Arcs lead from a text to itself.", q_seq=None, kv_seq=len(weights))
    labels = _labels("tokens", tokens, len(weights), f"as weights is {weights.shape}")
    shown = np.where(weights > threshold, weights, 0)
    above, below = (_reach(triangle) for triangle in (np.tril(shown), np.triu(shown)))
    ax = _axes(ax, 1 + max(2.0, 0.3 * len(labels)), 0.8 + 0.12 * (above + below) + _inches(labels), title)
    for query, key in zip(*np.nonzero(shown - np.diag(shown.diagonal())), strict=True):
        middle, distance, weight = (query + key) / 2, abs(query - key), shown[query, key]
        half = (0, 180) if key < query else (180, 360)
        style = {"lw": 4 * weight, "alpha": 0.3 + 0.6 * min(1, weight), "color": "C0" if key < query else "C1"}
        ax.add_patch(Arc((middle, 0), distance, distance, theta1=half[0], theta2=half[1], **style))
    ax.scatter(range(len(labels)), np.zeros(len(labels)), s=60 * shown.diagonal(), color="C0", zorder=3)
    ax.set(xlim=(-0.7, len(labels) - 0.3), ylim=(-0.5 * below - 0.5, 0.5 * above + 0.5), yticks=[])
    ax.spines[:].set_visible(False)
    _name_ticks(ax, "x", labels)
    return ax


@checked
def logit_lens(logits, ids, tokenizer, *, ax=None, title: str = ""):
    r"""Draw what a model would say after each block: the likeliest token and its probability, at every token read.

    The last block's row is what the model does say; for a decoder it is the next token. From nostalgebraist (2020),
    "interpreting GPT: the logit lens".

    Args:
        logits: of one text and each depth, `(depths, seq, vocab_size)` or a list of matrices, such as
            `[decoder.logits(x) for x in decoder.residual_stream(ids)]`: what enters the first block comes first.
        ids: the tokens that were read, `(seq,)`.
        tokenizer: what the model learned with, such as `load_pretrained` returns.

    Returns:
        The matplotlib axes.
    """
    if not hasattr(tokenizer, "decode"):
        raise TypeError(f"tokenizer is of type {type(tokenizer).__name__}; expected what the text was encoded with.")
    ids = check_token_ids(ids, len(tokenizer))
    hint = "Of several texts, draw one: ids[0], and [each[0] for each in logits]."
    logits = _numbers("logits", logits, hint, depths=None, seq=None, vocab_size=None)
    hint = "One row for each id, one column for each token of the tokenizer that the model learned with."
    check_axes("logits", logits, hint, depths=None, seq=len(ids), vocab_size=len(tokenizer))
    refuse(logits, ~np.isfinite(logits), "logits", "finite numbers.")
    likeliest, probability = logits.argmax(-1), np.asarray(jax.nn.softmax(logits, axis=-1)).max(-1)
    names = {number: _visible(tokenizer.decode([number])) for number in set(likeliest.ravel().tolist())}
    labels = [_visible(tokenizer.decode([number])) for number in ids]
    width = max(0.36, _inches([*names.values(), *labels]))
    ax = _axes(ax, 1.2 + width * len(ids), 0.8 + 0.4 * len(logits) + _inches(labels), title)
    ax.imshow(probability, vmin=0, vmax=1, cmap="Blues", aspect="auto", origin="lower")
    for (depth, place), number in np.ndenumerate(likeliest):
        style = {"ha": "center", "va": "center", "color": _ink(probability[depth, place]), "parse_math": False}
        ax.text(place, depth + 0.18, names[number], fontsize=9, **style)
        ax.text(place, depth - 0.26, f"{probability[depth, place]:.2f}", fontsize=7, **style)
    _name_ticks(ax, "x", labels)
    _name_ticks(ax, "y", [str(depth) for depth in range(len(logits))])
    ax.set(xlabel="token read", ylabel="blocks passed")
    return ax


@checked
def loss_curve(metrics, columns: Sequence[str] | None = None, *, ax=None, label: str = "", title: str = ""):
    r"""Draw how a loss, or another number that `fit` measured, went from step to step.

    A number that was measured only now and then has a dot at each step where it was. Where it was not finite, and
    training ended, a dotted line stands.

    Args:
        metrics: what `fit` returned, its list of metrics, or the path of a `metrics.csv` or of its folder.
        columns: the names of what to draw; `None` for `loss` and, where it was measured, `validation_loss`.
        ax: the matplotlib axes to draw into, such as those of another run; `None` makes a figure.
        label: what the run is called in the legend.

    Returns:
        The matplotlib axes.

    Raises:
        ValueError: if there are no steps yet, if a column is missing or empty, or if a file is damaged.
        FileNotFoundError: if there is no such file.
    """
    rows = _read_metrics(metrics)
    if columns is None:
        columns = ["loss", "validation_loss"] if _measured(rows, "validation_loss") else ["loss"]
    check_names("columns", columns)
    if not len(columns):
        raise ValueError("columns is empty; expected at least one name, or None for the loss.")
    measured = {column: _measured(rows, column) for column in columns}
    for column in columns:
        if not measured[column]:
            there = ", ".join(dict.fromkeys(str(name) for row in rows for name in row))
            hint = " Train with evaluate." if column == "validation_loss" else ""
            raise ValueError(f"metrics has no number in a column {column!r}; its columns are {there}.{hint}")
    ax = _axes(ax, 6.4, 3.4, title)
    for column, points in measured.items():
        steps, numbers = zip(*points, strict=True)
        name, sparse = f"{label} {column}".strip(), len(steps) < len(rows) or len(rows) == 1
        (line,) = ax.plot(steps, numbers, lw=1, marker="o" if sparse else "", ms=3, label=name)
        for step, number in points:
            if not math.isfinite(number):
                ax.axvline(step, color=line.get_color(), ls=":", label=f"{name} is {number} at step {step:.0f}")
                break
    ax.set_xlabel("step")
    _legend(ax)
    return ax


@checked
def confusion_matrix(targets, predictions, names: Sequence[str] | None = None, *, ax=None, title: str = ""):
    r"""Draw how often a classifier took an example of one class, its row, for one of another class, its column.

    Args:
        targets: the true class of each example, a whole number from 0, `(examples,)`; without `names` below 1,000.
        predictions: the class that the model chose, `(examples,)`, or its logits, `(examples, classes)`, such as
            `EncoderClassifier` and `ViT` return.
        names: a label for each class; `None` for numbers.

    Returns:
        The matplotlib axes.
    """
    from sklearn.metrics import ConfusionMatrixDisplay

    if names is not None:
        check_names("names", names)
    num_classes = None if names is None else len(names)
    predictions = _as_array("predictions", predictions)
    if predictions.ndim == 2:
        logits = _numbers("predictions", predictions, "One column for each class.", examples=None, classes=num_classes)
        refuse(logits, ~np.isfinite(logits), "predictions", "finite logits.")
        predictions, num_classes = logits.argmax(-1), logits.shape[1]
    predictions = _classes("predictions", predictions, None, num_classes)
    targets = _classes("targets", targets, len(predictions), num_classes)
    num_classes = num_classes or max(2, 1 + int(max(targets.max(), predictions.max())))
    labels = _labels("names", names, num_classes, "one for each class")
    side = 0.8 + 0.5 * num_classes + _inches(labels)
    ax = _axes(ax, side, side, title)
    options = {"labels": range(num_classes), "cmap": "Blues", "colorbar": False, "values_format": "d"}
    ConfusionMatrixDisplay.from_predictions(targets, predictions, ax=ax, **options)
    _name_ticks(ax, "x", labels)
    _name_ticks(ax, "y", labels)
    ax.set(xlabel="predicted class", ylabel="true class")
    return ax


@checked
def device_map(array, *, ax=None, title: str = ""):
    r"""Draw which device holds which part of an array: a box for each part, with the numbers of those that hold it.

    Args:
        array: with one axis or two, as `jax.device_put` lays it out over devices; or a `jax.ShapeDtypeStruct` with such
            a sharding.
        ax: the matplotlib axes to draw into; `None` makes a figure.

    Returns:
        The matplotlib axes.

    Example:
        >>> mesh = jax.make_mesh((1,), ("data",))
        >>> rows = jax.NamedSharding(mesh, jax.P("data"))
        >>> ax = pf.plots.device_map(jax.device_put(jnp.ones((8, 16)), rows))
        >>> [text.get_text() for text in ax.texts]
        ['0']
    """
    from matplotlib.patches import Rectangle

    sharding, shape = getattr(array, "sharding", None), getattr(array, "shape", ())
    without_devices = isinstance(getattr(sharding, "mesh", None), jax.sharding.AbstractMesh)
    if not isinstance(sharding, jax.sharding.Sharding) or without_devices:
        what = f"array is of type {type(array).__name__}"
        raise TypeError(
            f"{what}; expected an array of JAX, or its shape with a sharding: lay it out by jax.device_put."
        )
    if len(shape) not in (1, 2) or 0 in shape:
        raise ValueError(f"array has shape {shape}; expected one axis or two. Of several arrays, draw one: array[0].")
    holders: dict[Any, list[int]] = {}
    device: Any
    for device, place in sharding.devices_indices_map(shape).items():
        ends = [part.indices(size)[:2] for part, size in zip(place, shape, strict=True)]
        holders.setdefault(((0, 1), *ends)[-2:], []).append(device.id)
    height, width = (1, *shape)[-2:]
    ax = _axes(ax, 5.0, 0.9 + 4.5 * min(max(height / width, 0.2), 1), title)
    for number, (((top, bottom), (left, right)), ids) in enumerate(sorted(holders.items())):
        box = Rectangle((left, top), right - left, bottom - top, fc=f"C{number % 10}", alpha=0.35, ec="black")
        ax.add_patch(box)
        names = ", ".join(map(str, sorted(ids)))
        ax.text((left + right) / 2, (top + bottom) / 2, names, ha="center", va="center", wrap=True)
    rows, columns = (sorted({end for place in holders for end in place[axis]}) for axis in (0, 1))
    ax.set(xlim=(0, width), ylim=(height, 0), xticks=columns, yticks=rows if len(shape) == 2 else [])
    return ax


@checked
def memory_bars(plans, *, ax=None, title: str = ""):
    r"""Draw what a device holds while it trains, as `plan` works it out, to scale: a bar of five parts for each plan.

    Gradients come as activations go, so that a device holds less than all parts together: a thick line across each bar
    stands at the most that it holds. A dotted line is the memory of the device, where that is not far away.

    Args:
        plans: what `plan` returns, or several by name, such as `{"alone": …, "eight devices": …}`.
        ax: the matplotlib axes to draw into; `None` makes a figure.

    Returns:
        The matplotlib axes.

    Example:
        >>> options = {"hardware": "H100", "batch_size": 8}
        >>> plans = {n: pf.plan(pf.DecoderConfig(40, 64), {"data": n}, **options) for n in (1, 8)}
        >>> ax = pf.plots.memory_bars({f"one of {n}": plan for n, plan in plans.items()})
        >>> [label.get_text() for label in ax.get_yticklabels()]
        ['one of 1', 'one of 8']
    """
    named = plans if isinstance(plans, Mapping) else {"": plans}
    if not named or not all(hasattr(plan, "activations") and hasattr(plan, "memory") for plan in named.values()):
        what = f"of type {type(plans).__name__}" if plans else "empty"
        raise TypeError(f'plans is {what}; expected what pf.plan returns, or several by name: {{"alone": plan, …}}.')
    plans = named
    largest = max(sum(getattr(plan, part) for part in MEMORY) for plan in plans.values())
    size, unit = next((10**n, unit) for n, unit in ((12, "TB"), (9, "GB"), (6, "MB"), (0, "bytes")) if largest >= 10**n)
    ax = _axes(ax, 6.4, 1.5 + 0.5 * len(plans), title)
    ends = np.zeros(len(plans))
    for number, part in enumerate(MEMORY):  # of one colour in all figures, also where another part is missing
        widths = np.array([getattr(plan, part) / size for plan in plans.values()])
        if not widths.any():
            continue
        name = "weights" if part == "parameters" else part
        ax.barh(range(len(plans)), widths, left=ends, height=0.6, color=f"C{number}", label=name)
        ends += widths
    for row, plan in enumerate(plans.values()):
        ax.plot([plan.memory / size] * 2, [row - 0.4, row + 0.4], color="black", lw=2)
    for memory in sorted({plan.hardware.memory / size for plan in plans.values()}):
        if memory < 1.5 * ends.max():
            ax.axvline(memory, color="black", ls=":")
    _name_ticks(ax, "y", list(map(str, plans)))
    ax.set(xlabel=unit, ylim=(len(plans) - 0.5, -0.5))
    ax.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1), frameon=False)
    return ax


def _axes(ax, width: float, height: float, title: str):
    """The axes to draw into, or new ones of a size in inches."""
    import matplotlib.pyplot as plt

    if ax is None:
        _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    if not hasattr(ax, "imshow"):
        raise TypeError(f"ax is of type {type(ax).__name__}; expected matplotlib axes. Of several, pass one: axes[0].")
    if title:
        ax.set_title(title, parse_math=False)
    return ax


def _legend(ax) -> None:
    """A legend of all lines by their labels as they are: matplotlib leaves out one that begins with an underscore."""
    lines = [line for line in ax.get_lines() if not line.get_label().startswith(("_child", "_nolegend"))]
    legend = ax.legend(lines, [line.get_label() for line in lines], frameon=False)
    for text in legend.get_texts():
        text.set_parse_math(False)


def _inches(labels: list[str]) -> float:
    """About how long the longest label is."""
    return 0.1 + 0.085 * max(map(len, labels))


def _name_ticks(ax, side: str, labels: list[str]) -> None:
    """Write a label at each of 0, 1, …: small where places are small, upright where it is wider than its place."""
    axis, length = (ax.xaxis, ax.bbox.width) if side == "x" else (ax.yaxis, ax.bbox.height)
    points = 72 * length / ax.figure.dpi / len(labels)
    size = min(10, max(5, 0.95 * points))
    # A dollar sign in a token is a dollar sign, not the beginning of a formula.
    axis.set_ticks(range(len(labels)), labels, fontsize=size, parse_math=False)
    for tick, label in zip(axis.get_ticklabels(), labels, strict=True):
        tick.set_rotation(90 if side == "x" and 0.55 * size * len(label) > points else 0)
    axis.set_tick_params(length=0)


def _visible(label) -> str:
    """A label with the spaces at its ends as ␣, and what cannot be printed, such as a line end, as Python spells it."""
    text = "".join(each if each.isprintable() else repr(each)[1:-1] for each in str(label))
    return re.sub("^ +| +$", lambda spaces: "␣" * len(spaces[0]), text)


def _ink(shade) -> str:
    return "white" if shade > 0.55 else "black"


def _reach(weights: np.ndarray) -> int:
    """How far from the diagonal the last weight is that is not 0."""
    query, key = np.nonzero(weights)
    return int(abs(query - key).max(initial=0))


def _labels(name: str, labels, expected: int, reason: str) -> list[str]:
    """The labels as they are shown; numbers if there are none."""
    if labels is None:
        return [str(number) for number in range(expected)]
    if not isinstance(labels, str):
        check_list(name, labels, "labels")
    if len(labels) != expected:
        raise ValueError(f"{name} holds {len(labels)} labels; expected {expected}, {reason}.")
    return [_visible(label) for label in labels]


def _both_sides(weights: np.ndarray, rows, columns) -> tuple[list[str], list[str]]:
    """The labels of queries and of keys, which are the same if only those of a square's rows are given."""
    num_rows, num_columns = weights.shape[-2:]
    columns = rows if columns is None and num_rows == num_columns else columns
    reason = f"as weights is {weights.shape}"
    return _labels("rows", rows, num_rows, reason), _labels("columns", columns, num_columns, reason)


def _as_array(name: str, given) -> np.ndarray:
    """What a model returned, as NumPy's array; float32, but for whole numbers and truth values."""
    try:
        array = np.asarray(given)
        return array if array.dtype.kind in "iub" else array.astype(np.float32)
    except (TypeError, ValueError):
        what = f"is a {type(given).__name__} that makes no array of numbers"
        raise TypeError(f"{name} {what}; expected what a model returned, or lists of equal lengths.") from None


def _numbers(name: str, given, hint: str, **axes: int | None) -> np.ndarray:
    """What a model returned, as an array of floats with these axes and at least one number."""
    array = _as_array(name, given)
    check_axes(name, array, hint, **axes)
    if not array.size:
        raise ValueError(f"{name} has shape {array.shape}, and so no numbers; expected at least one along each axis.")
    return array.astype(np.float32)


def _weights(weights, hint: str, **axes: int | None) -> np.ndarray:
    """Attention weights with these axes; a scale of low precision may round 1 up."""
    array = _numbers("weights", weights, hint, **axes)
    return refuse(array, ~((array >= 0) & (array < 1.01)), "weights", "0 to 1, as a softmax gives.")


def _classes(name: str, numbers, examples: int | None, num_classes: int | None) -> np.ndarray:
    """The class of each example."""
    _numbers(name, numbers, "One class for each example.", examples=examples)
    array, end = _as_array(name, numbers), MOST_CLASSES if num_classes is None else num_classes
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} holds {array.dtype}; expected whole numbers, the class of each example.")
    reason = "unless `names` says that there are more" if num_classes is None else f"as there are {end} classes"
    expected = f"0 to {end - 1}, {reason}."
    return refuse(array, (array < 0) | (array >= end), name, expected)


def _read_metrics(metrics) -> list[Mapping]:
    """One dictionary per step, from whatever tells of a run."""
    rows = getattr(metrics, "metrics", metrics)
    if isinstance(rows, str | os.PathLike):
        path = as_path(rows)
        rows = _read_csv(path / "metrics.csv" if path.is_dir() else path)
    if not isinstance(rows, Sequence) or not all(isinstance(row, Mapping) for row in rows):
        expected = "what fit returned, or the path of a metrics.csv or of its folder"
        raise TypeError(f"metrics is of type {type(metrics).__name__}; expected {expected}.")
    if not rows:
        raise ValueError("metrics holds no steps; expected at least one. Has fit saved yet?")
    return list(rows)


def _read_csv(path: Path) -> list[dict]:
    lines = csv.reader(read_text(path).splitlines(), strict=True)
    try:
        header, *rows = [line for line in lines if line] or [[]]
    except csv.Error as error:
        raise ValueError(f"{path}, line {lines.line_num}: {error}. Is the file damaged?") from error
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            expected = f"expected {len(header)}, as the header has. Is the file cut short?"
            raise ValueError(f"{path}, row {number}, has {len(row)} columns; {expected}")
    return [dict(zip(header, row, strict=True)) for row in rows]


def _measured(rows: list[Mapping], column: str) -> list[tuple[float, float]]:
    """The steps at which a column has a number, and the numbers."""
    found = []
    for place, row in enumerate(rows, start=1):
        step, cell = row.get("step", ""), row.get(column)
        if cell is None or (isinstance(cell, str) and not cell.strip()):
            continue
        try:
            found.append((float(step), float(cell)))
        except (TypeError, ValueError):
            what = f"step is {step!r} and {column} is {cell!r}"
            raise ValueError(f"metrics, row {place}: {what}; expected numbers. Is the file damaged?") from None
    return found
