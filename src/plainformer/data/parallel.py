"""Examples to learn from: images of digits, pairs of sentences and labelled texts; and how texts become arrays."""

import csv
import io
import os
import tarfile
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from plainformer.checks import check_list, check_names, check_positive, check_token_ids
from plainformer.data.files import download, read_text

# The server of the shared task of 2016 is gone; these are the copies that torchtext names, with their SHA-256.
MULTI30K = "https://raw.githubusercontent.com/neychev/small_DL_repo/master/datasets/Multi30k/"
MULTI30K_ARCHIVES = {
    "train": ("training.tar.gz", "20140d013d05dd9a72dfde46478663ba05737ce983f478f960c1123c6671be5e"),
    "val": ("validation.tar.gz", "a7aa20e9ebd5ba5adce7909498b94410996040857154dab029851af3a866da8c"),
    "test": ("mmt16_task1_test.tar.gz", "6d1ca1dba99e2c5dd54cae1226ff11c2551e6ce63527ebb072a1f70f72a5cd36"),
}


class Digits(NamedTuple):
    """Images of digits, `images`, and which digit each shows, `labels`."""

    images: Float[Array, "n height width channels"]
    labels: Int[Array, " n"]


class DigitSplits(NamedTuple):
    """Two sets of `Digits`: for `training`, and for the `test`."""

    training: Digits
    test: Digits


class ParallelSplits(NamedTuple):
    """Three lists of pairs of a sentence and its translation: for `training`, for `validation`, for the `test`."""

    training: list[tuple[str, str]]
    validation: list[tuple[str, str]]
    test: list[tuple[str, str]]


def digits() -> DigitSplits:
    r"""Give the 1,797 handwritten digits that ship with scikit-learn, about a fifth of them to test on.

    They are the test part of the UCI set Optical Recognition of Handwritten Digits (Alpaydin and Kaynak, 1998), by 13
    writers. Which writer an image is by is not recorded, so writers cannot be held out: the same hands are in training
    and test, and an accuracy says nothing about the hand of a stranger. Of each digit, a fifth is held out, rounded
    down, chosen by a checksum of the image: always the same one, and no image is in both parts.

    **Returns** training and test, 1,442 and 355 images; in each the `images` `(n, 8, 8, 1)`, float32, 0 for paper to 1
    for ink, and the `labels` `(n,)`, int32, 0 to 9. Both stand in the order that scikit-learn has them in.
    """
    from sklearn.datasets import load_digits

    everything = load_digits()
    sums = np.array([zlib.crc32(image.astype(np.uint8).tobytes()) for image in everything.images])
    is_test = np.zeros(len(sums), bool)
    for digit in range(10):
        places = np.flatnonzero(everything.target == digit)
        is_test[places[np.argsort(sums[places], kind="stable")][: len(places) // 5]] = True
    images = jnp.asarray(everything.images[..., None] / 16, jnp.float32)
    labels = jnp.asarray(everything.target, jnp.int32)
    return DigitSplits(*(Digits(images[part], labels[part]) for part in (~is_test, is_test)))


def load_parallel(source: str | os.PathLike, target: str | os.PathLike) -> list[tuple[str, str]]:
    r"""Read sentences and their translations from two files of your own.

    **Arguments** two UTF-8 files with one sentence a line, where line 1 of one is the translation of line 1 of the
    other, and so on. White space around a sentence is dropped, and so are blank lines at the end of a file.

    **Returns** the pairs.

    **Raises** `FileNotFoundError`, `IsADirectoryError`, or `ValueError` if a file is empty or not UTF-8, if a line is
    blank, naming it, or if one file has more lines than the other.
    """
    return _paired(*((os.fspath(path), read_text(path)) for path in (source, target)))


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
    rows = io.StringIO(read_text(path), newline="")
    tabs = suffix == ".tsv"
    reader = csv.reader(rows, delimiter="\t", quoting=csv.QUOTE_NONE) if tabs else csv.reader(rows, strict=True)
    try:
        pairs = [_pair(path, row, reader.line_num, tabs=tabs) for row in reader if len(row) > 1 or "".join(row).strip()]
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}. Is a quotation mark missing?") from error
    header = [name.lower() for name in pairs[0]] if pairs else []
    if sorted(header) == ["label", "text"]:
        pairs = pairs[1:] if header[0] == "text" else [(text, label) for label, text in pairs[1:]]
    if not pairs:
        raise ValueError(f"{path} is empty; expected rows of a text and its label.")
    return pairs


def label_ids(labels: Sequence[str], names: Sequence[str] | None = None) -> tuple[Int[Array, " n"], list[str]]:
    r"""Number the labels of a data set: those of the training data in sorted order, all others as those were.

    **Arguments**

    - `labels`: a list of labels, one for each example.
    - `names`: the labels that there are, as this function returned them for the training data; `None` for the
      training data itself.

    **Returns** the ids `(n,)`, int32, and the names: `names[ids[i]]` is `labels[i]`.

    **Raises** `ValueError` if a label is not among `names`, is empty, or if there is none; `TypeError` if one is no
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


def multi30k() -> ParallelSplits:
    r"""Download Multi30k once, 1.3 MB, and give its captions of photographs in English, with their German translations.

    Elliott et al., "Multi30K: Multilingual English-German Image Descriptions" (2016), as used in the shared task of
    that year. The archives are kept in the cache folder of the operating system, checked by their SHA-256 whenever
    they are read, and never unpacked to disk.

    **Returns** 29,000 pairs for training, 1,014 for validation, 1,000 for the test. **Raises** `OSError` if an archive
    cannot be downloaded; `ValueError` if what came is another file.
    """
    return ParallelSplits(*(_multi30k_part(part) for part in MULTI30K_ARCHIVES))


def pad_texts(texts, length: int | None = None) -> tuple[Int[Array, "texts seq"], Bool[Array, "texts seq"]]:
    r"""Put texts of unequal length one below the other, filled up on the right.

    **Arguments**

    - `texts`: a list of lists of token ids, each of at least one.
    - `length`: the number of columns; `None` for as many as the longest text has tokens.

    **Returns** the ids `(num_texts, length)`, int32, 0 where there is no token; and `is_token`, of the same shape,
    Boolean, `True` where there is one. The id 0 may well be a token too: only `is_token` tells.

    **Raises** `ValueError` if there is no text, one is empty, one is longer than `length` or an id is none; `TypeError`
    if a text is a string, or its ids are not whole numbers.
    """
    check_list("texts", texts, "texts, each a list of token ids")
    if length is not None:
        check_positive(length=length)
    rows = [_ids_of_text(place, ids) for place, ids in enumerate(texts)]
    if not rows:
        raise ValueError("texts is empty; expected at least one list of token ids.")
    lengths = np.array([len(row) for row in rows])
    if length is None:
        length = int(lengths.max())
    if lengths.max() > length:
        place = int(np.argmax(lengths > length))
        raise ValueError(
            f"texts[{place}] has {lengths[place]} tokens; expected at most {length}, the length asked for. "
            f"Cut it, or pad to length={lengths.max()}, which holds all texts."
        )
    is_token = np.arange(length) < lengths[:, None]
    ids = np.zeros(is_token.shape, np.int32)
    ids[is_token] = np.concatenate(rows)
    return jnp.asarray(ids), jnp.asarray(is_token)


def _ids_of_text(place: int, text) -> list[int]:
    try:
        ids = check_token_ids(text)
    except (ValueError, TypeError) as error:
        raise type(error)(f"texts[{place}]: {error}") from error
    if not ids:
        raise ValueError(f"texts[{place}] is empty; expected at least one token, such as a start or a class token.")
    return ids


def _paired(*files: tuple[str, str]) -> list[tuple[str, str]]:
    (source, sentences), (target, translations) = ((path, _sentences(path, text)) for path, text in files)
    if len(sentences) != len(translations):
        raise ValueError(
            f"{source} has {len(sentences)} lines and {target} has {len(translations)}; expected as many in both, each "
            "line of one the translation of the same line of the other. Is one of them cut short?"
        )
    return list(zip(sentences, translations, strict=True))


def _sentences(path: str, text: str) -> list[str]:
    if not text.strip():
        raise ValueError(f"{path} is empty, or holds white space only; expected one sentence a line.")
    # By line feeds alone: str.splitlines would also cut at characters that may stand within a sentence.
    lines = [line.strip() for line in text.rstrip().split("\n")]
    if "" in lines:
        raise ValueError(
            f"{path}, line {lines.index('') + 1} is blank; expected one sentence a line. Delete it, in both files."
        )
    return lines


def _pair(path: str | os.PathLike, row: list[str], line: int, *, tabs: bool) -> tuple[str, str]:
    if len(row) != 2:
        raise ValueError(
            f"{path}, line {line}, has {len(row)} column{'s' * (len(row) > 1)}; expected 2, text and label, "
            f"with one {'tab' if tabs else 'comma'} between them."
        )
    text, label = (cell.strip() for cell in row)
    if not (text and label):
        raise ValueError(f"{path}, line {line} has no {'label' if text else 'text'}; expected both.")
    return text, label


def _multi30k_part(part: str) -> list[tuple[str, str]]:
    archive, sha256 = MULTI30K_ARCHIVES[part]
    path = download(
        MULTI30K + archive,
        sha256,
        f"multi30k_{archive}",
        what="Multi30k",
        own="load_parallel() with a copy of your own",
        offline="date_splits(), which needs none, or load_parallel() with a copy of your own",
    )
    return _paired(*((name, _member(path, name)) for name in (f"{part}.en", f"{part}.de")))


def _member(archive: str, name: str) -> str:
    """One file of an archive, read in memory, whichever folder of the archive it stands in."""
    with tarfile.open(archive, "r:gz") as tar:
        for member in tar:
            content = tar.extractfile(member) if os.path.basename(member.name) == name else None
            if content is not None:
                return content.read().decode("utf-8").removeprefix("\ufeff")
    raise ValueError(f"{archive} holds no file {name}.")
