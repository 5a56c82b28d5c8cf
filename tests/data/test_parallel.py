"""Sentences and their translations: files of the reader's own, and Multi30k."""

import hashlib
import io
import tarfile

import pytest

from plainformer.data import parallel
from plainformer.data.parallel import keep_short, load_parallel, multi30k


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_load_parallel_pairs_line_with_line(tmp_path):
    english = write(tmp_path / "text.en", "\ufeffA dog .\r\n Two cats \u2028sit.\r\n")
    german = write(tmp_path / "text.de", "Ein Hund .\nZwei Katzen sitzen.\n\n")
    expected = [("A dog .", "Ein Hund ."), ("Two cats \u2028sit.", "Zwei Katzen sitzen.")]
    assert load_parallel(english, german) == load_parallel(str(english), str(german)) == expected


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (b"a\nb\nc\n", b"x\ny\n", r"source has 3 lines and"),
        (b"a\nb\n", b" \t\r\ny\n", r"target, line 1 is blank"),
        (b"", b"x\n", r"source is empty, or holds white space only"),
        (b"\xff\xfea\x00", b"x\n", r"source is not UTF-8"),
    ],
)
def test_load_parallel_bad_files(tmp_path, source, target, message):
    paths = [tmp_path / "source", tmp_path / "target"]
    for path, content in zip(paths, (source, target), strict=True):
        path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load_parallel(*paths)


def test_load_parallel_without_a_file(tmp_path):
    (tmp_path / "source").write_text("a\n")
    with pytest.raises(FileNotFoundError, match=r"^There is no file"):
        load_parallel(tmp_path / "source", tmp_path / "target")
    with pytest.raises(IsADirectoryError, match=r"is a folder"):
        load_parallel(tmp_path, tmp_path / "source")


SENTENCES = {
    "train": ("A dog .\nTwo cats .\n\n", "Ein Hund .\nZwei Katzen .\n\n"),
    "val": ("A tree .\n", "Ein Baum .\n"),
    "test": ("A house .\nThree birds .\nA boat .", "Ein Haus .\nDrei Vögel .\nEin Boot ."),
}


def archive(files):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
    return content.getvalue()


@pytest.fixture
def download(pages, monkeypatch):
    """Let Multi30k be a few sentences, on a server of this machine: the folder of its pages."""
    folder, address = pages
    archives = {}
    for part, (english, german) in SENTENCES.items():
        # One archive has the other system's shadows of its files among them, and no file stands at the top.
        files = {
            f"._{part}.en": b"\xb0\x00",
            f"./{part}.en": english.encode(),
            f"{part}.fr": b"",
            f"{part}.de": german.encode(),
        }
        content = archive(files)
        write(folder / f"{part}.tar.gz", content)
        archives[part] = (f"{part}.tar.gz", hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(parallel, "MULTI30K_ARCHIVES", archives)
    monkeypatch.setattr(parallel, "MULTI30K", f"{address}/")
    return folder


def test_multi30k_is_downloaded_once(download, tmp_path):
    splits = multi30k()
    assert splits.training == [("A dog .", "Ein Hund ."), ("Two cats .", "Zwei Katzen .")]
    assert splits.validation == [("A tree .", "Ein Baum .")]
    assert splits.test[1] == ("Three birds .", "Drei Vögel .")
    for page in list(download.iterdir()):
        page.unlink()
    assert multi30k() == splits
    # Kept are the archives, and nothing was unpacked.
    kept = sorted(path.name.split("-")[-1] for path in (tmp_path / "cache").rglob("*") if path.is_file())
    assert kept == ["multi30k_test.tar.gz", "multi30k_train.tar.gz", "multi30k_val.tar.gz"]


@pytest.mark.usefixtures("download", "unchecked")
def test_multi30k_the_other_way_round():
    for there, back in zip(multi30k("de", "en"), multi30k(), strict=True):
        assert there == [(target, source) for source, target in back]
    with pytest.raises(ValueError, match=r"^source and target are both 'de'"):
        multi30k("de")


@pytest.mark.usefixtures("unchecked")
def test_keep_short_drops_pairs_with_a_long_text():
    pairs = [([1] * 3, [2] * 4), ([1] * 4, [2]), ([1], [2] * 5), ([], [])]
    assert keep_short(pairs, 3, 4) == [pairs[0], pairs[3]]
    assert keep_short([("a dog", "ein Hund"), ("a", "ein")], 4, 8) == [("a", "ein")]
    with pytest.raises(ValueError, match=r"^None of 2 pairs is within source_len=1 and"):
        keep_short(pairs[:2], 1, 1)
    with pytest.raises(TypeError, match=r"^pairs\[0\] is \[1, 2, 3\]"):
        keep_short([[1, 2, 3]], 1, 1)


def test_multi30k_without_a_file_in_it(download, monkeypatch):
    content = archive({"val.en": b"x"})
    write(download / "val.tar.gz", content)
    archives = parallel.MULTI30K_ARCHIVES | {"val": ("val.tar.gz", hashlib.sha256(content).hexdigest())}
    monkeypatch.setattr(parallel, "MULTI30K_ARCHIVES", archives)
    with pytest.raises(ValueError, match=r"multi30k_val.tar.gz holds no file val.de"):
        multi30k()
