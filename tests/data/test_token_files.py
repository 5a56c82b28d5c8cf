"""Token ids on the disk: written as they come, whole or not at all, and read where they are wanted."""

import os
import tracemalloc

import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.data import token_files
from plainformer.data.text import stream_text
from plainformer.data.token_files import open_tokens, write_tokens
from plainformer.data.windows import random_windows, stream_windows
from plainformer.tokens.vocabulary import Vocabulary

IDS = [5, 0, 7, 7, 3, 1, 6]


@pytest.mark.parametrize(
    "ids",
    [IDS, iter(IDS), np.array(IDS), jnp.array(IDS), [[5, 0], [], (7, 7, 3), np.array([1, 6])], [jnp.array(IDS)]],
    ids=["list", "iterator", "numpy", "jax", "texts", "array"],
)
def test_write_tokens_takes_ids_and_texts(tmp_path, monkeypatch, ids):
    monkeypatch.setattr(token_files, "CHUNK", 2)
    written = write_tokens(tmp_path / "text.npy", ids, 8)
    assert isinstance(written, np.memmap)
    assert (written.tolist(), written.dtype) == (IDS, np.uint16)
    assert open_tokens(str(tmp_path / "text.npy")).tolist() == np.load(tmp_path / "text.npy").tolist() == IDS
    assert [path.name for path in tmp_path.iterdir()] == ["text.npy"]


@pytest.mark.parametrize(("vocab_size", "dtype"), [(2**16, np.uint16), (2**16 + 1, np.int32)])
def test_write_tokens_uses_two_bytes_where_they_hold_every_id(tmp_path, vocab_size, dtype):
    tokens = write_tokens(tmp_path / "text.npy", [0, vocab_size - 1], vocab_size)
    assert (tokens.tolist(), tokens.dtype) == ([0, vocab_size - 1], dtype)


def test_a_text_on_the_disk_becomes_windows(tmp_path):
    text = "to be\nor not to be\n" * 9
    (tmp_path / "text.txt").write_text(text)
    vocabulary = Vocabulary.from_characters(text)
    pieces = (vocabulary.encode(piece) for piece in stream_text(tmp_path / "text.txt", 10))
    tokens = write_tokens(tmp_path / "text.npy", pieces, len(vocabulary))
    expected, found = random_windows(vocabulary.encode(text), 6, 5), random_windows(tokens, 6, 5)
    for step in (0, 7):
        np.testing.assert_array_equal(found(step).inputs, expected(step).inputs)
        np.testing.assert_array_equal(found(step).targets, expected(step).targets)


def test_write_tokens_leaves_the_old_file_if_the_stream_fails(tmp_path):
    path = tmp_path / "text.npy"
    write_tokens(path, IDS, 8)

    def broken():
        yield [1, 2]
        raise RuntimeError("the network is down")

    with pytest.raises(RuntimeError, match=r"^the network is down$"):
        write_tokens(path, broken(), 8)

    def missing():
        yield [1, 2]
        yield (tmp_path / "missing.txt").read_bytes()

    with pytest.raises(FileNotFoundError, match=r"^\[Errno 2\] No such file or directory"):
        write_tokens(path, missing(), 8)
    with pytest.raises(ValueError, match=r"^ids holds no token"):
        write_tokens(path, iter([]), 8)
    assert open_tokens(path).tolist() == IDS
    assert [path.name for path in tmp_path.iterdir()] == ["text.npy"]


def test_write_tokens_names_a_full_disk(tmp_path, monkeypatch):
    def full(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"^cannot write"):
        write_tokens(tmp_path / "text.npy", IDS, 8)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        ([[1, 2, 3], [4, 8]], ValueError, r"^After 3 ids"),
        ([[1], [0.5]], TypeError, r"^ids is 0.5"),
        (np.ones((2, 3), int), ValueError, r"^After 0 ids"),
        ("a long text " * 99, TypeError, r"^ids is .{,40}"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_write_tokens_bad_ids(tmp_path, ids, error, message):
    with pytest.raises(error, match=message):
        write_tokens(tmp_path / "text.npy", ids, 8)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("unchecked")
def test_write_tokens_bad_places(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"^There is no folder"):
        write_tokens(tmp_path / "none" / "text.npy", IDS, 8)
    with pytest.raises(IsADirectoryError, match=r"exists and is not a regular file"):
        write_tokens(tmp_path, IDS, 8)
    with pytest.raises(ValueError, match=r"^vocab_size is 0"):
        write_tokens(tmp_path / "text.npy", IDS, 0)


def test_open_tokens_bad_files(tmp_path):
    path = tmp_path / "text.npy"
    with pytest.raises(FileNotFoundError, match=r"^There is no file"):
        open_tokens(path)
    with pytest.raises(IsADirectoryError, match=r"is a folder"):
        open_tokens(tmp_path)
    write_tokens(path, IDS, 8)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"text.npy is no file of tokens"):
        open_tokens(path)
    path.write_bytes(b"To be, or not to be")
    with pytest.raises(ValueError, match=r"text.npy is no file of tokens"):
        open_tokens(path)
    for array, what in ((np.ones(3), r"float64 and shape \(3,\)"), (np.ones((2, 3), int), r"int64 and shape \(2, 3\)")):
        np.save(path, array)
        with pytest.raises(ValueError, match=rf"holds an array of {what}"):
            open_tokens(path)


def test_a_text_larger_than_memory_is_never_read_whole(tmp_path):
    path, size = tmp_path / "text.npy", 10**8  # 200 MB, of which the disk holds next to nothing
    file = np.lib.format.open_memmap(path, mode="w+", dtype=np.uint16, shape=(size,))
    file[-1] = 3
    del file
    tracemalloc.start()
    tokens = open_tokens(path)
    random_windows(tokens, 64, 32)(0)
    batches = stream_windows(tokens, 1000, 100)
    inputs, targets, is_token = next(batches)
    write_tokens(tmp_path / "copy.npy", tokens[: 10**6], 8)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert inputs.shape == targets.shape == is_token.shape == (100, 1000)
    assert peak < 16e6  # of 200 MB


@pytest.mark.usefixtures("unchecked")
def test_windows_of_a_file_with_another_dtype(tmp_path):
    np.array([7, -1, 5, 6] * 9, np.int32).tofile(tmp_path / "text.bin")
    for dtype, number in ((np.int32, -1), (np.uint32, 2**32 - 1)):
        batch_at = random_windows(np.memmap(tmp_path / "text.bin", dtype, "r"), 3, 4)
        with pytest.raises(ValueError, match=f"is {number}; expected 0 to 2147483647"):
            batch_at(0)
    with pytest.raises(TypeError, match=r"^tokens are float32"):
        random_windows(np.memmap(tmp_path / "text.bin", np.float32, "r"), 3, 4)
    with pytest.raises(ValueError, match=r"^tokens has shape \(4, 9\)"):
        stream_windows(np.memmap(tmp_path / "text.bin", np.int32, "r", shape=(4, 9)), 3, 4)
