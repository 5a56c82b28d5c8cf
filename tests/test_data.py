"""The text that ships with Python, and the reader's own files."""

import os
import re
import time

import pytest

from plainformer.data import load_text, python_reference
from plainformer.files import read_json, write_text


def test_python_reference_is_a_long_english_text():
    text = python_reference()
    assert 300_000 < len(text) < 1_000_000
    assert text.count(" the ") > 3_000
    assert 'The "for" statement' in text


def test_python_reference_missing(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pydoc_data.topics", None)
    with pytest.raises(FileNotFoundError, match=r"without pydoc_data.*load_text"):
        python_reference.__wrapped__()


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
    with pytest.raises(IsADirectoryError, match=r"is a folder; wanted a file"):
        load_text(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": 1', r"x.json is not valid JSON: .*line 1 column 8.*cut short"),
        ('{"a": ' + "1" * 5000 + "}", r"x.json is not valid JSON: .*digits.*\d+ digits.*\.$"),
        ("[1, 2]", r"x.json holds a list; wanted a JSON object"),
        ('{"a": 1, "b": 2, "a": 3}', r"x.json is not valid JSON: the key 'a' stands there twice\.$"),
        ("[" * 100_000, r"x.json is not valid JSON"),
    ],
)
def test_read_json_bad_files(tmp_path, content, message):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        read_json(path)


def test_write_text_leaves_the_old_file_when_it_fails(tmp_path, monkeypatch):
    path = tmp_path / "kept.txt"
    write_text(path, "old ✓")

    def fail(*_):
        raise OSError("disk gone")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match=r"^cannot write .*kept.txt: disk gone$"):
        write_text(path, "new")
    assert path.read_text(encoding="utf-8") == "old ✓"
    assert [entry.name for entry in tmp_path.iterdir()] == ["kept.txt"]


def test_read_json_with_a_late_repeated_key_in_time(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("{" + ", ".join(f'"{n}": 0' for n in [*range(50_000), 49_999]) + "}")
    start = time.process_time()
    with pytest.raises(ValueError, match=r"the key '49999' stands there twice\.$"):
        read_json(path)
    assert time.process_time() - start < 5


def test_write_text_names_the_file_it_cannot_write(tmp_path):
    with pytest.raises(IsADirectoryError, match=rf"^cannot write {re.escape(str(tmp_path))}: Is a directory$"):
        write_text(tmp_path, "new")


def test_write_text_goes_through_a_symbolic_link(tmp_path):
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("old")
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_write_text_into_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*none to put x.txt in"):
        write_text(tmp_path / "none" / "x.txt", "")
