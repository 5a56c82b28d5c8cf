"""Labelled texts: a table of your own, and labels as numbers."""

import csv
import io
import os
from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Int

from plainformer.checks import checked
from plainformer.data.files import read_text
from plainformer.data.lists import check_list, check_names, check_once


@checked
def load_labelled(path: str | os.PathLike) -> list[tuple[str, str]]:
    """Read pairs of a text and its label from a UTF-8 table of your own, of these two columns.

    Its name ends in `.csv`, with commas between the columns and quotation marks around what holds a comma or a line's
    end, or in `.tsv`, with tabs, where quotation marks are characters like any other. If the first row holds the words
    text and label, it names the columns, in either order. White space around a text or label is dropped, and so are
    blank lines.

    Raises:
        FileNotFoundError: if there is no such file.
        IsADirectoryError: if it is a folder.
        ValueError: for a bad row, naming its last line.
    """
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in (".csv", ".tsv"):
        raise ValueError(f"{path} ends neither in .csv nor in .tsv, which tell what separates the columns.")
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
    """Number the labels of the training data in sorted order, and those of other data by the `names` found there.

    Returns:
        The ids, and the names to give when other data are numbered: `names[ids[i]]` is `labels[i]`.

    Raises:
        ValueError: if there is no label, or one is empty or not among given `names`.
    """
    check_names("labels", labels)
    if not len(labels):
        raise ValueError("labels is empty; expected one label for each example.")
    if names is None:
        names = sorted(set(labels))
    check_names("names", names)
    check_list("names", names, "names")
    check_once("names", names)
    numbers = {name: number for number, name in enumerate(names)}
    for place, label in enumerate(labels):
        if label not in numbers:
            some = ", ".join(map(repr, names[:20])) + (", …" if len(names) > 20 else "")
            seen = f"among the {len(names)} labels of the training data: {some}"
            hint = "Leave it out, or train with examples of it."
            raise ValueError(f"label {label!r}, labels[{place}], was not {seen}. {hint}")
    return jnp.asarray([numbers[label] for label in labels], jnp.int32), list(names)


def _pair(place: str, row: list[str], tabs: bool) -> tuple[str, str]:
    if len(row) != 2:
        found, mark = f"{len(row)} column{'s' * (len(row) > 1)}", "tab" if tabs else "comma"
        raise ValueError(f"{place}, has {found}; expected 2, text and label, with one {mark} between them.")
    text, label = (cell.strip() for cell in row)
    if not (text and label):
        raise ValueError(f"{place} has no {'label' if text else 'text'}; expected both.")
    return text, label
