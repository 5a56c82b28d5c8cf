"""Labelled texts: a table of your own, and labels as numbers."""

import csv
import io
import os
from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Int

from plainformer.checks import check_names
from plainformer.data.files import read_text


def load_labelled(path: str | os.PathLike) -> list[tuple[str, str]]:
    r"""Read labelled texts from a table of your own.

    **Arguments** a UTF-8 file with two columns, text and label, whose name ends in `.csv`, with commas between them and
    quotation marks around what holds a comma or a line's end, or in `.tsv`, with tabs, where quotation marks are
    characters like any other. If the first row holds the words text and label, it names the columns, in either order.
    White space around a text or label is dropped, and so are blank lines.

    **Returns** pairs of a text and its label.

    **Raises** `FileNotFoundError`, `IsADirectoryError`, or `ValueError` if the file's name ends otherwise, if it is
    empty or not UTF-8, or if a row has more or fewer than two columns or an empty one, naming its last line.
    """
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in (".csv", ".tsv"):
        raise ValueError(
            f"{path} ends neither in .csv nor in .tsv; expected one of them, to know what separates columns."
        )
    lines = io.StringIO(read_text(path), newline="")
    tabs = suffix == ".tsv"
    rows = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE) if tabs else csv.reader(lines, strict=True)
    try:
        pairs = [_pair(f"{path}, line {rows.line_num}", row, tabs) for row in rows if "".join(row).strip() or row[1:]]
    except csv.Error as error:
        raise ValueError(f"{path}, line {rows.line_num}: {error}. Is a quotation mark missing?") from error
    header = [name.lower() for name in pairs[0]] if pairs else []
    if sorted(header) == ["label", "text"]:
        pairs = pairs[1:] if header[0] == "text" else [(text, label) for label, text in pairs[1:]]
    if not pairs:
        raise ValueError(f"{path} is empty; expected rows of a text and its label.")
    return pairs


def label_ids(labels: Sequence[str], names: Sequence[str] | None = None) -> tuple[Int[Array, " n"], list[str]]:
    r"""Number the labels of a data set: those of the training data in sorted order, all others as those were.

    **Arguments**

    - `labels`: a list of labels, one per example.
    - `names`: the labels that there are, as this function returned them for the training data; `None` for the
      training data itself.

    **Returns** the ids `(n,)`, int32, and the names: `names[ids[i]]` is `labels[i]`.

    **Raises** `ValueError` if there is no label, or one is empty or not among `names`; `TypeError` if one is not a
    string.
    """
    check_names("labels", labels)
    if not len(labels):
        raise ValueError("labels is empty; expected one label for each example.")
    if names is None:
        names = sorted(set(labels))
    check_names("names", names)
    numbers = {name: number for number, name in enumerate(names)}
    if len(numbers) < len(names):
        raise ValueError("names holds a label twice; expected them as label_ids() returned them.")
    unseen = next((place for place, label in enumerate(labels) if label not in numbers), None)
    if unseen is not None:
        some = ", ".join(map(repr, names[:20])) + (", …" if len(names) > 20 else "")
        raise ValueError(
            f"label {labels[unseen]!r}, labels[{unseen}], was not among the {len(names)} labels of the training data: "
            f"{some}. Leave it out, or train with examples of it."
        )
    return jnp.asarray([numbers[label] for label in labels], jnp.int32), list(names)


def _pair(place: str, row: list[str], tabs: bool) -> tuple[str, str]:
    if len(row) != 2:
        raise ValueError(
            f"{place}, has {len(row)} column{'s' * (len(row) > 1)}; expected 2, text and label, "
            f"with one {'tab' if tabs else 'comma'} between them."
        )
    text, label = (cell.strip() for cell in row)
    if not (text and label):
        raise ValueError(f"{place} has no {'label' if text else 'text'}; expected both.")
    return text, label
