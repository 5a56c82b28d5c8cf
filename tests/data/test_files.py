"""Reading and writing files: a bad one is named, a good one never half overwritten."""

import os
import re
import time

import pytest

from plainformer.data.files import read_json, write_text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": 1', r"x.json is not valid JSON: .*line 1 column 8.*cut short"),
        ('{"a": ' + "1" * 5000 + "}", r"x.json is not valid JSON: .*digits.*\d+ digits.*\.$"),
        ("[1, 2]", r"x.json holds a list; expected a JSON object"),
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
