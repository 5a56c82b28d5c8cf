"""The text that ships with Python, and the reader's own files."""

import hashlib

import pytest

from plainformer.data import text as data
from plainformer.data.text import (
    load_text,
    python_reference,
    python_reference_splits,
    split_text,
    stream_text,
    tiny_shakespeare,
)


def test_python_reference_missing(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pydoc_data.topics", None)
    with pytest.raises(FileNotFoundError, match=r"without pydoc_data"):
        data._topics.__wrapped__()


def test_load_text_keeps_every_character(tmp_path):
    path = tmp_path / "text.txt"
    text = "naïve 日本語 🙂\r\nsecond line\n"
    path.write_bytes(text.encode())
    assert load_text(path) == load_text(str(path)) == text
    path.write_bytes(f"\ufeff{text}".encode())  # a byte order mark is no character of it
    assert load_text(path) == text


def test_load_text_bad_files(tmp_path):
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"caf\xe9")
    with pytest.raises(ValueError, match=r"bad.txt is not UTF-8"):
        load_text(bad)
    bad.write_bytes(b" \n")
    with pytest.raises(ValueError, match=r"bad.txt is empty, or holds white space only"):
        load_text(bad)
    with pytest.raises(FileNotFoundError, match=r"There is no file"):
        load_text(tmp_path / "none.txt")
    with pytest.raises(IsADirectoryError, match=r"is a folder"):
        load_text(tmp_path)


def paragraphs(text):
    return [paragraph.strip() for paragraph in text.split("\n\n")]


def test_stream_text_gives_the_whole_text_in_pieces_that_end_with_a_line(tmp_path):
    text = "\ufeffZwei Käfer\r\nsitzen\n\n" + "äöü\u2028" * 9 + "\nim Gras.\n" * 5
    path = tmp_path / "text.txt"
    path.write_bytes(text.encode())
    for size in (3, 7, 12, 1000):
        pieces = list(stream_text(path, size))
        assert "".join(pieces) == load_text(path)
        assert all(0 < len(piece) <= 2 * size for piece in pieces)
        assert all(piece.endswith("\n") or len(piece) == 2 * size for piece in pieces)
    assert list(stream_text(str(path))) == [text[1:]]


@pytest.mark.usefixtures("unchecked")
def test_stream_text_bad_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"^There is no file"):
        stream_text(tmp_path / "none.txt")
    with pytest.raises(IsADirectoryError, match=r"is a folder"):
        stream_text(tmp_path)
    (tmp_path / "latin.txt").write_bytes(b"a line\n" * 5000 + b"caf\xe9\n")
    pieces = stream_text(tmp_path / "latin.txt", 10)
    assert next(pieces) == "a line\na line\n"
    with pytest.raises(ValueError, match=r"latin.txt is not UTF-8, somewhere after"):
        list(pieces)
    with pytest.raises(ValueError, match=r"^piece_size is 0"):
        stream_text(tmp_path / "latin.txt", 0)


def test_python_reference_splits_share_no_paragraph():
    training, validation = python_reference_splits()
    assert not set(paragraphs(training)) & set(paragraphs(validation))
    assert len(set(paragraphs(training))) == len(paragraphs(training))
    assert len(set(paragraphs(validation))) == len(paragraphs(validation))
    assert set(paragraphs(training)) | set(paragraphs(validation)) >= set(paragraphs(python_reference())) - {""}
    assert 0.05 < len(validation) / (len(training) + len(validation)) < 0.2
    assert 'The "for" statement' in training + validation
    assert python_reference_splits() == (training, validation)


@pytest.fixture
def download(pages, monkeypatch):
    """Let Tiny Shakespeare be another text, on a server of this machine: the text, and the folder of its page."""
    folder, address = pages
    text = "To be, or not to be: that is the question.\n" * 10
    (folder / "input.txt").write_text(text)
    monkeypatch.setattr(data, "TINY_SHAKESPEARE_SHA256", hashlib.sha256(text.encode()).hexdigest())
    monkeypatch.setattr(data, "TINY_SHAKESPEARE", f"{address}/input.txt")
    return text, folder


def test_tiny_shakespeare_is_downloaded_once(download, tmp_path):
    text, pages = download
    training, validation = tiny_shakespeare()
    assert training + validation == text
    assert len(training) == int(0.9 * len(text))
    (pages / "input.txt").unlink()
    assert tiny_shakespeare() == (training, validation)
    # A copy that was spoilt is not used, but fetched again, which fails here: the page is gone.
    (copy,) = (path for path in (tmp_path / "cache").rglob("*") if path.is_file())
    copy.write_text("spoilt")
    with pytest.raises(OSError, match=r"^Cannot download http://127"):
        tiny_shakespeare()


def test_tiny_shakespeare_refuses_another_text(download, tmp_path):
    _, pages = download
    (pages / "input.txt").write_text("All's well that ends well.")
    with pytest.raises(ValueError, match=r"^http://127"):
        tiny_shakespeare()
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_split_text_cuts_in_two():
    assert split_text("abcdefghij") == ("abcdefghi", "j")
    assert split_text("abcde", 0.5) == ("ab", "cde")


@pytest.mark.parametrize(
    ("text", "fraction", "message"),
    [("abc", 0.0, r"^fraction is 0.0"), ("abc", 0.2, r"^A text of 3 characters has no 20% of it")],
)
def test_split_text_bad_input(text, fraction, message):
    with pytest.raises(ValueError, match=message):
        split_text(text, fraction)
