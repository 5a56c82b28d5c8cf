"""Sentences and their translations: two files of your own, and Multi30k."""

import os
from collections.abc import Sequence
from typing import Literal, NamedTuple

from plainformer.checks import Positive, checked
from plainformer.data.files import download, read_text
from plainformer.data.lists import check_list

# The server of the shared task of 2016 is gone; these are the copies that torchtext names, with their SHA-256.
MULTI30K = "https://raw.githubusercontent.com/neychev/small_DL_repo/master/datasets/Multi30k/"
MULTI30K_ARCHIVES = {
    "train": ("training.tar.gz", "20140d013d05dd9a72dfde46478663ba05737ce983f478f960c1123c6671be5e"),
    "val": ("validation.tar.gz", "a7aa20e9ebd5ba5adce7909498b94410996040857154dab029851af3a866da8c"),
    "test": ("mmt16_task1_test.tar.gz", "6d1ca1dba99e2c5dd54cae1226ff11c2551e6ce63527ebb072a1f70f72a5cd36"),
}
Language = Literal["en", "de"]


class ParallelSplits(NamedTuple):
    """Three lists of pairs of a sentence and its translation: for `training`, for `validation`, for the `test`."""

    training: list[tuple[str, str]]
    validation: list[tuple[str, str]]
    test: list[tuple[str, str]]


@checked
def load_parallel(source: str | os.PathLike, target: str | os.PathLike) -> list[tuple[str, str]]:
    """Read sentences and their translations from two UTF-8 files of your own, one per line, side by side.

    White space around a sentence is dropped, and so are blank lines at the end of a file.

    Raises:
        FileNotFoundError: if one is not there.
        IsADirectoryError: if one is a folder.
        ValueError: if a file is empty or not UTF-8, if a line is blank, naming it, or if one file has more lines than
            the other.
    """
    return _paired(*((os.fspath(path), read_text(path)) for path in (source, target)))


@checked
def keep_short(pairs: Sequence, source_len: Positive, target_len: Positive) -> list:
    """Return the pairs of which neither text is longer than asked for, in their order.

    The texts may be lists of token ids or strings; `len` says how long they are. For a model, leave one place of its
    `context_len` for the start token: `keep_short(pairs, config.source_len, config.context_len - 1)`.

    Raises:
        ValueError: if no pair is left.
    """
    check_list("pairs", pairs, "pairs, each a source and a target")
    for place, pair in enumerate(pairs):
        if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise TypeError(f"pairs[{place}] is {pair!r}; expected a source and a target.")
    kept = [(source, target) for source, target in pairs if len(source) <= source_len and len(target) <= target_len]
    if not kept:
        limits = f"source_len={source_len} and target_len={target_len}"
        raise ValueError(f"None of {len(pairs)} pairs is within {limits}; expected at least one. Allow longer ones.")
    return kept


@checked
def multi30k(source: Language = "en", target: Language = "de") -> ParallelSplits:
    """Download Multi30k once, 1.3 MB: captions of photographs in English, with their German translations.

    Elliott et al., "Multi30K: Multilingual English-German Image Descriptions" (2016), as used in the shared task of
    that year: 29,000 pairs for training, 1,014 for validation, 1,000 for the test. `multi30k("de", "en")` has the
    German first. The archives are kept in the operating system's cache folder, checked by their SHA-256 whenever they
    are read, and never unpacked to disk.

    Raises:
        OSError: if an archive cannot be downloaded.
        ValueError: if what came is another file.
    """
    if source == target:
        raise ValueError(f"source and target are both {source!r}; expected 'en' and 'de', in the order you want.")
    hint = "Try again, or use load_parallel() with a copy of your own; date_splits() needs no network."
    parts = []
    for part, (archive, sha256) in MULTI30K_ARCHIVES.items():
        path = download(MULTI30K + archive, sha256, f"multi30k_{archive}", hint)
        names = f"{part}.{source}", f"{part}.{target}"
        parts.append(_paired(*((name, _member(path, name)) for name in names)))
    return ParallelSplits(*parts)


def _paired(*files: tuple[str, str]) -> list[tuple[str, str]]:
    (source, sentences), (target, translations) = ((path, _sentences(path, text)) for path, text in files)
    if len(sentences) != len(translations):
        found = f"{source} has {len(sentences)} lines and {target} has {len(translations)}"
        raise ValueError(f"{found}; expected as many in both, side by side. Is one of them cut short?")
    return list(zip(sentences, translations, strict=True))


def _sentences(path: str, text: str) -> list[str]:
    # By line feeds alone: str.splitlines would also cut at characters that may stand within a sentence.
    lines = [line.strip() for line in text.rstrip().split("\n")]
    if lines == [""]:
        raise ValueError(f"{path} is empty, or holds white space only; expected one sentence per line.")
    if "" in lines:
        place = f"{path}, line {lines.index('') + 1}"
        raise ValueError(f"{place} is blank; expected one sentence per line. Delete it, in both files.")
    return lines


def _member(archive: str, name: str) -> str:
    """One file of an archive, read in memory, since unpacking is unsafe before Python 3.12; in whichever folder."""
    import tarfile

    with tarfile.open(archive, "r:gz") as tar:
        for member in tar:
            if os.path.basename(member.name) == name and (content := tar.extractfile(member)):
                return content.read().decode("utf-8").removeprefix("\ufeff")
    raise ValueError(f"{archive} holds no file {name}.")
