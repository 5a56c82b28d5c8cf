"""Labelled texts: a table of your own, and labels as numbers."""

import csv
import io
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress

import jax.numpy as jnp
from jaxtyping import Array, Int

from plainformer.checks import Positive, checked
from plainformer.data.files import parse_json, read_text, spell_keys
from plainformer.data.lists import check_list, check_names, check_once, check_token_ids
from plainformer.data.named_batches import LabelledBatch
from plainformer.data.padding import pad_texts

SEPARATORS = {".csv": (",", ";", "\t"), ".tsv": ("\t",)}  # the first is that of a table whose columns have no names
Pairs = list[tuple[str, str]]


@checked
def load_labelled(path: str | os.PathLike, *, text: str | None = None, label: str | None = None) -> Pairs:
    r"""Read pairs of a text and its label from a UTF-8 table of your own.

    Its name ends in `.csv`, with commas between the columns and quotation marks around what holds a comma or a line's
    end, or in `.tsv`, with tabs, where quotation marks are characters like any other; or in `.jsonl`, with a JSON
    object in each line. White space around a text or label is dropped, and so are blank lines.

    Args:
        text, label: what the columns are called, in the first row, or the keys of the objects. There may then be
            others, and a `.csv` may have semicolons or tabs in place of commas. `None` for a table of two columns, text
            and label, which the first row may call so, in either order; of objects, for the keys `text` and `label`.

    Example:
        >>> rows = "id;words;language\n1;hallo;de\n2;ciao;it\n"
        >>> with open("mine.csv", "w") as file:
        ...     _ = file.write(rows)
        >>> pf.data.load_labelled("mine.csv", text="words", label="language")
        [('hallo', 'de'), ('ciao', 'it')]

    Raises:
        FileNotFoundError: if there is no such file.
        IsADirectoryError: if it is a folder.
        ValueError: for a bad row, naming its last line.
    """
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in (*SEPARATORS, ".jsonl"):
        raise ValueError(f"{path} ends in none of .csv, .tsv and .jsonl, which tell how a table is written.")
    content, names = read_text(path), (text or "text", label or "label")
    if suffix == ".jsonl":
        pairs = [_pair_of_object(place, line, names) for place, line in _lines(path, content)]
    elif text is None and label is None:
        pairs = _two_columns(path, content, SEPARATORS[suffix][0])
    else:
        pairs = _named_columns(path, content, SEPARATORS[suffix], names)
    if not pairs:
        raise ValueError(f"{path} is empty; expected rows of a text and its label.")
    return pairs


@checked
def classification_batch(texts: Sequence, labels: Sequence | Array, length: Positive | None = None) -> LabelledBatch:
    """Turn texts and their labels into the arrays that a classifier learns from, one row each.

    Args:
        texts: lists of token ids.
        labels: the number of each text's class, as `label_ids` returns them.
        length: how long the padded rows shall be, at most the model's `context_len`: of longer texts the beginning is
            kept. `None` for the longest.

    Example:
        Three texts, of which the second is cut.

        >>> batch = pf.data.classification_batch([[5, 6], [7, 8, 9, 5], [6]], [0, 1, 0], length=3)
        >>> print(batch.inputs, batch.labels)
        [[5 6 0]
         [7 8 9]
         [6 0 0]] [0 1 0]
        >>> batches = pf.data.random_batches([batch], batch_size=2)
    """
    check_list("labels", labels, "numbers of classes, as label_ids returns them")
    if names := [label for label in labels if isinstance(label, str)]:
        raise TypeError(f"labels holds {names[0]!r}; expected numbers of classes: numbers, names = label_ids(labels).")
    numbers = check_token_ids(labels, name="labels")
    if len(numbers) != len(texts):
        raise ValueError(f"There are {len(texts)} texts and {len(numbers)} labels; expected one label for each text.")
    ids, is_token = pad_texts(texts, length, cut=True)
    return LabelledBatch(ids, jnp.asarray(numbers, jnp.int32), is_token)


@checked
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


def _two_columns(path, content: str, separator: str) -> Pairs:
    """The pairs of a table of two columns, whose first row may name them."""
    pairs = [_pair_of_row(place, row, separator) for place, row in _rows(path, content, separator)]
    header = [name.lower() for name in pairs[0]] if pairs else []
    if sorted(header) == ["label", "text"]:
        pairs = pairs[1:] if header[0] == "text" else [(text, label) for label, text in pairs[1:]]
    return pairs


def _named_columns(path, content: str, separators: Sequence[str], names: tuple[str, str]) -> Pairs:
    """The pairs of a table whose first row has these names among others, by the first separator with which it has."""
    found: list[list[str]] = []
    for separator in separators:
        with suppress(ValueError, StopIteration):  # with another one a row may have quotation marks in odd places
            found.append(next(_rows(path, content, separator))[1])
            if set(names) <= set(found[-1]):
                break
    else:
        columns = max(found, key=len, default=[])
        raise ValueError(f"{path} has the columns {columns}; expected {names[0]!r} and {names[1]!r} among them.")
    header, pairs = found[-1], []
    check_once(f"The first row of {path}", [name for name in header if name in names])
    for place, row in list(_rows(path, content, separator))[1:]:
        if len(row) != len(header):
            raise ValueError(f"{place}, has {len(row)} columns; expected {len(header)}, as in the first row.")
        cells = dict(zip(header, row, strict=True))
        pairs.append(_whole(place, cells[names[0]], cells[names[1]]))
    return pairs


def _rows(path, content: str, separator: str) -> Iterator[tuple[str, list[str]]]:
    """Where each row of a table ends that is not blank, and its cells."""
    lines = io.StringIO(content, newline="")
    tabs = separator == "\t"
    csv.field_size_limit(max(csv.field_size_limit(), len(content)))  # of all tables that this process reads
    rows = csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_NONE if tabs else csv.QUOTE_MINIMAL, strict=True)
    try:
        for row in rows:
            if "".join(row).strip() or row[1:]:
                yield f"{path}, line {rows.line_num}", [cell.strip() for cell in row]
    except csv.Error as error:
        raise ValueError(f"{path}, line {rows.line_num}: {error}. Is a quotation mark missing?") from error


def _lines(path, content: str) -> list[tuple[str, str]]:
    """Where each line is that is not blank, and the line."""
    return [(f"{path}, line {n}", line) for n, line in enumerate(content.split("\n"), start=1) if line.strip()]


def _pair_of_object(place: str, line: str, names: tuple[str, str]) -> tuple[str, str]:
    found = parse_json(line, place)
    if not set(names) <= found.keys():
        hint = "Name others by text=… and label=…."
        raise ValueError(f"{place}, has the keys {spell_keys(found)}; expected {names[0]!r} and {names[1]!r}. {hint}")
    text, label = (found[name] for name in names)
    if not isinstance(text, str) or not isinstance(label, str | int):
        raise ValueError(f"{place}, has {text!r} and {label!r}; expected a string, and a string or a whole number.")
    return _whole(place, text.strip(), str(label).strip())


def _pair_of_row(place: str, row: list[str], separator: str) -> tuple[str, str]:
    if len(row) != 2:
        found, mark = f"{len(row)} column{'s' * (len(row) > 1)}", "tab" if separator == "\t" else "comma"
        hint = "Of a table with others, or with ; between them, name the two: text=…, label=…."
        raise ValueError(f"{place}, has {found}; expected 2, text and label, with one {mark} between them. {hint}")
    return _whole(place, *row)


def _whole(place: str, text: str, label: str) -> tuple[str, str]:
    if not (text and label):
        raise ValueError(f"{place} has no {'label' if text else 'text'}; expected both.")
    return text, label
