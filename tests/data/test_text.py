"""The text that ships with Python, and the reader's own files."""

import hashlib

import numpy as np
import pytest
from local_server import PROXIES, served

from plainformer.data import text as data
from plainformer.data.text import (
    all_windows,
    load_text,
    python_reference,
    python_reference_splits,
    split_text,
    windows_at,
)


def test_python_reference_is_a_long_english_text():
    text = python_reference()
    assert 300_000 < len(text) < 1_000_000
    assert text.count(" the ") > 3_000
    assert 'The "for" statement' in text


def test_python_reference_missing(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pydoc_data.topics", None)
    with pytest.raises(FileNotFoundError, match=r"without pydoc_data.*load_text"):
        data._topics.__wrapped__()


def test_load_text_keeps_every_character(tmp_path):
    path = tmp_path / "text.txt"
    text = "naïve 日本語 🙂\r\nsecond line\n"
    path.write_bytes(text.encode())
    assert load_text(path) == load_text(str(path)) == text


def test_load_text_drops_a_byte_order_mark(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes("\ufeffabc".encode())
    assert load_text(path) == "abc"


def test_load_text_bad_files(tmp_path):
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"caf\xe9")
    with pytest.raises(ValueError, match=r"bad.txt is not UTF-8: byte 3 \(0xe9\).*Latin-1"):
        load_text(bad)
    bad.write_bytes(b" \n")
    with pytest.raises(ValueError, match=r"bad.txt is empty, or holds white space only"):
        load_text(bad)
    with pytest.raises(FileNotFoundError, match=r"There is no file .*none.txt"):
        load_text(tmp_path / "none.txt")
    with pytest.raises(IsADirectoryError, match=r"is a folder; expected a file"):
        load_text(tmp_path)


def paragraphs(text):
    return [paragraph.strip() for paragraph in text.split("\n\n")]


def test_python_reference_splits_share_no_paragraph():
    training, validation = python_reference_splits()
    assert not set(paragraphs(training)) & set(paragraphs(validation))
    assert len(set(paragraphs(training))) == len(paragraphs(training))
    assert len(set(paragraphs(validation))) == len(paragraphs(validation))
    assert set(paragraphs(training)) | set(paragraphs(validation)) >= set(paragraphs(python_reference())) - {""}
    assert 200_000 < len(training) + len(validation) < len(python_reference())
    assert 0.05 < len(validation) / (len(training) + len(validation)) < 0.2
    assert python_reference_splits() == (training, validation)


@pytest.fixture
def download(tmp_path, monkeypatch):
    """Let Tiny Shakespeare be another text, on a server of this machine: the text, and the folder of its page."""
    pages = tmp_path / "pages"
    pages.mkdir()
    text = "To be, or not to be: that is the question.\n" * 10
    (pages / "input.txt").write_text(text)

    monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path / "cache" / name)
    monkeypatch.setattr(data, "TINY_SHAKESPEARE_SHA256", hashlib.sha256(text.encode()).hexdigest())
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    with served(pages) as address:
        monkeypatch.setattr(data, "TINY_SHAKESPEARE", f"{address}/input.txt")
        yield text, pages


def test_tiny_shakespeare_is_downloaded_once(download, tmp_path):
    text, pages = download
    training, validation = data.tiny_shakespeare()
    assert training + validation == text
    assert len(training) == int(0.9 * len(text))
    (pages / "input.txt").unlink()
    assert data.tiny_shakespeare() == (training, validation)
    # A copy that was spoilt is not used, but fetched again, which fails here: the page is gone.
    (copy,) = (path for path in (tmp_path / "cache").rglob("*") if path.is_file())
    copy.write_text("spoilt")
    with pytest.raises(OSError, match=r"^Cannot download http://127.*404.*use python_reference\(\), or load_text\(\)"):
        data.tiny_shakespeare()


def test_tiny_shakespeare_refuses_another_text(download, tmp_path):
    _, pages = download
    (pages / "input.txt").write_text("All's well that ends well.")
    with pytest.raises(ValueError, match=r"^What http://127.* gave is not Tiny Shakespeare: .*hash.*load_text\(\)"):
        data.tiny_shakespeare()
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_tiny_shakespeare_without_network(monkeypatch, tmp_path, download):
    monkeypatch.setattr(data, "TINY_SHAKESPEARE", "http://127.0.0.1:9/input.txt")  # nobody listens there
    with pytest.raises(
        OSError, match=r"^Cannot download http://127.0.0.1:9/input.txt: .*Without a network, use python"
    ):
        data.tiny_shakespeare()


def test_tiny_shakespeare_is_the_one_everybody_uses():
    assert data.TINY_SHAKESPEARE_SHA256.startswith("86c4e6aa9db7c042")
    # Its parts, as everybody cuts it, follow from its length.
    training, validation = split_text("x" * 1_115_394)
    assert (len(training), len(validation)) == (1_003_854, 111_540)


def test_split_text_cuts_in_two():
    assert split_text("abcdefghij") == ("abcdefghi", "j")
    assert split_text("abcde", 0.5) == ("ab", "cde")


@pytest.mark.parametrize(
    ("text", "fraction", "message"),
    [
        ("abc", 0.0, r"^fraction is 0.0; expected more than 0 and less than 1"),
        ("abc", 1.0, r"^fraction is 1.0; expected more than 0 and less than 1"),
        ("abc", float("nan"), r"^fraction is nan; expected more than 0"),
        ("abc", 0.2, r"^A text of 3 characters has no 20% of it that leaves two parts"),
        ("", 0.9, r"^A text of 0 characters"),
    ],
)
def test_split_text_bad_input(text, fraction, message):
    with pytest.raises(ValueError, match=message):
        split_text(text, fraction)


def test_windows_at_gives_windows_and_what_follows():
    text = np.arange(100, 117)
    batch_at = windows_at(text, 5, 64)
    inputs, targets = (np.asarray(array) for array in batch_at(0))
    assert inputs.shape == targets.shape == (64, 5)
    assert inputs.dtype == targets.dtype == np.int32
    assert (inputs == inputs[:, :1] + np.arange(5)).all()
    assert (targets == inputs + 1).all()
    # Every start occurs: the first, and the last, whose last target is the last token.
    starts = {int(start) for step in range(8) for start in np.asarray(batch_at(step)[0])[:, 0]}
    assert starts == set(range(100, 112))


def test_windows_at_depends_on_data_seed_and_step_alone():
    text = list(range(1_000))
    first = windows_at(text, 7, 3, seed=2)
    batches = [first(step)[0].tolist() for step in (5, 0, 1)]
    again = windows_at(np.array(text), 7, 3, seed=2)
    assert [again(step)[0].tolist() for step in (5, 0, 1)] == batches
    others = [windows_at(text, 7, 3, seed=seed)(step)[0].tolist() for seed in (1, 3) for step in (0, 1, 2)]
    assert not [batch for batch in others if batch in batches]
    assert batches[1] != batches[2]


def test_windows_of_the_shortest_text():
    inputs, targets = windows_at([4, 5, 6], 2, 3)(9)
    assert inputs.tolist() == [[4, 5]] * 3
    assert targets.tolist() == [[5, 6]] * 3
    inputs, targets, is_token = all_windows([4, 5, 6], 2)
    assert (inputs.tolist(), targets.tolist(), is_token.tolist()) == ([[4, 5]], [[5, 6]], [[True, True]])


@pytest.mark.parametrize("num_tokens", [8, 9, 10, 11, 12, 22])
def test_all_windows_make_every_token_but_the_first_a_target_once(num_tokens):
    text = np.arange(50, 50 + num_tokens)
    inputs, targets, is_token = (np.asarray(array) for array in all_windows(text, 7))
    assert inputs.shape == targets.shape == is_token.shape == (-(-(num_tokens - 1) // 7), 7)
    assert targets[is_token].tolist() == text[1:].tolist()
    assert inputs[is_token].tolist() == text[:-1].tolist()
    assert (targets[~is_token] == 0).all()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: windows_at([1, 2, 3], 3, 2), ValueError, r"^The text has 3 tokens; expected at least 4, a window and"),
        (lambda: all_windows([], 3), ValueError, r"^The text has 0 tokens; expected at least 4.*shorter window"),
        (lambda: windows_at([1, 2, 3], 0, 2), ValueError, r"^seq_len is 0; expected at least 1"),
        (lambda: windows_at([1, 2, 3], 2, 0), ValueError, r"^batch_size is 0; expected at least 1"),
        (lambda: windows_at([1, 2, 3], 2, 1, seed=-1), ValueError, r"^seed is -1; expected a whole number, at least 0"),
        (lambda: windows_at([1, 2, -3], 2, 1), ValueError, r"^ids\[2\] is -3; expected 0 to"),
        (lambda: all_windows([1.0, 2.0, 3.0], 2), TypeError, r"^ids are float64; expected whole numbers"),
        (lambda: all_windows([[1, 2], [3, 4]], 2), ValueError, r"^ids has shape \(2, 2\); expected \(seq,\)"),
    ],
)
def test_windows_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
