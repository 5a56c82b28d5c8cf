"""Reading and writing files: a bad one is named, a good one never half overwritten."""

import os
import re
import stat
import time

import jax.numpy as jnp
import pytest
from toy_models import drawn

import plainformer as pf
from plainformer.data.files import read_json, write_bytes, write_text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": 1', r"x.json is not valid JSON"),
        ('{"a": ' + "1" * 5000 + "}", r"x.json is not valid JSON"),
        ("[1, 2]", r"x.json holds a list"),
        ('{"a": 1, "b": 2, "a": 3}', r"x.json is not valid JSON"),
        ("[" * 100_000, r"x.json is not valid JSON"),
    ],
)
def test_read_json_bad_files(tmp_path, content, message):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        read_json(path)


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_write_text_leaves_the_old_file_when_it_fails(tmp_path, monkeypatch):
    path = tmp_path / "kept.txt"
    write_text(path, "old ✓")

    def fail(*_):
        raise OSError("disk gone")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match=r"^cannot write"):
        write_text(path, "new")
    assert path.read_text(encoding="utf-8") == "old ✓"
    assert names(tmp_path) == ["kept.txt"]


def test_write_bytes_flushes_the_file_before_its_renaming_and_the_folder_after(tmp_path, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace

    def noted_fsync(number):
        calls.append("folder" if stat.S_ISDIR(os.fstat(number).st_mode) else f"{os.fstat(number).st_size} bytes")
        fsync(number)

    def noted_replace(*paths):
        calls.append("renaming")
        replace(*paths)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    write_bytes(tmp_path / "x", b"12345")
    assert calls == ["5 bytes", "renaming", "folder"]


def test_write_bytes_keeps_the_mode_of_the_file_it_replaces(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(b"")
    write_bytes(new, b"")
    assert new.stat().st_mode == old.stat().st_mode  # a new file has that of any other
    for mode in (0o600, 0o444, 0o751):
        old.chmod(mode)
        write_bytes(old, b"secret")
        assert stat.S_IMODE(old.stat().st_mode) == mode


def test_write_text_goes_through_a_symbolic_link(tmp_path):
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    link.symlink_to(target)
    for text in ("new", "newer"):  # at first the link leads nowhere
        write_text(link, text)
        assert link.is_symlink()
        assert target.read_text() == text


def test_write_bytes_replaces_nothing_but_regular_files(tmp_path):
    pipe, loop = tmp_path / "pipe", tmp_path / "loop"
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    (tmp_path / "link").symlink_to(pipe)
    for name in ("pipe", "link", "loop"):
        with pytest.raises(OSError, match=r"^cannot write"):
            write_bytes(tmp_path / name, b"new")
    assert pipe.is_fifo()
    with pytest.raises(IsADirectoryError, match=rf"^cannot write {re.escape(str(tmp_path))}"):
        write_text(tmp_path, "new")
    assert names(tmp_path) == ["link", "loop", "pipe"]


def test_write_bytes_removes_what_killed_writers_left(tmp_path):
    two_hours_ago = time.time() - 7200
    for name in (".plainformer-1.part", ".plainformer-2.part", "mine.part"):
        (tmp_path / name).write_bytes(b"half")
        if name != ".plainformer-2.part":
            os.utime(tmp_path / name, (two_hours_ago, two_hours_ago))
    write_bytes(tmp_path / "x", b"")
    assert names(tmp_path) == [".plainformer-2.part", "mine.part", "x"]  # another writer may be at work on the second


def test_write_text_into_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no folder"):
        write_text(tmp_path / "none" / "x.txt", "")


def test_a_tilde_is_the_home_of_the_user_wherever_a_path_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    letters = pf.Vocabulary.from_characters("ab")
    letters.save("~/letters.json")
    assert pf.Vocabulary.load("~/letters.json").tokens == letters.tokens
    write_text("~/it.txt", "text")
    assert pf.data.load_text("~/it.txt") == "".join(pf.data.stream_text("~/it.txt")) == "text"
    pf.data.write_tokens("~/it.npy", [0, 1], 2)
    assert pf.data.open_tokens("~/it.npy").tolist() == [0, 1]
    (tmp_path / "run").mkdir()
    pf.training.save_checkpoint("~/run", 1, {"it": jnp.zeros(2)}, {})
    assert pf.training.list_checkpoints("~/run") == [1]
    pf.training.load_checkpoint("~/run", {"it": jnp.ones(2)})
    stack = pf.StackConfig(d_model=4, num_layers=1, num_heads=2, d_ff=4)
    pf.save_model("~/it.safetensors", drawn(pf.Decoder, pf.DecoderConfig(2, 3, stack=stack)))
    assert pf.load_model("~/it.safetensors", pf.Decoder).config.vocab_size == 2
    assert {path.name for path in tmp_path.iterdir()} == {
        "letters.json", "it.txt", "it.npy", "run", "it.safetensors", "it.json"
    }  # fmt: skip


def test_a_file_may_begin_with_a_tilde_that_is_nobodys_home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_text("~$it.txt", "text")
    assert pf.data.load_text("~$it.txt") == (tmp_path / "~$it.txt").read_text() == "text"
