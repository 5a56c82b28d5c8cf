"""Texts padded to arrays, images of digits, and files of the reader's own."""

import hashlib
import io
import tarfile

import jax.numpy as jnp
import numpy as np
import pytest
from local_server import PROXIES, served
from sklearn.datasets import load_digits

from plainformer.data import parallel as datasets
from plainformer.data.parallel import digits, label_ids, load_labelled, load_parallel, multi30k, pad_texts


def test_pad_texts_fills_up_on_the_right():
    ids, is_token = pad_texts([[5, 0], [7], [1, 2, 3]])
    assert ids.tolist() == [[5, 0, 0], [7, 0, 0], [1, 2, 3]]
    assert is_token.tolist() == [[True, True, False], [True, False, False], [True, True, True]]
    assert ids.dtype == jnp.int32
    assert is_token.dtype == bool


def test_pad_texts_to_a_length_asked_for():
    ids, is_token = pad_texts([np.array([4, 6]), (9,)], 4)
    assert ids.tolist() == [[4, 6, 0, 0], [9, 0, 0, 0]]
    assert is_token.sum(axis=1).tolist() == [2, 1]


def test_pad_texts_gives_back_every_token():
    random = np.random.default_rng(3)
    texts = [random.integers(0, 5, size).tolist() for size in random.integers(1, 12, 40)]
    ids, is_token = (np.asarray(array) for array in pad_texts(texts, 13))
    assert [row[kept].tolist() for row, kept in zip(ids, is_token, strict=True)] == texts
    assert not ids[~is_token].any()


def test_digits_are_those_of_scikit_learn():
    splits = digits()
    assert [part.images.shape for part in splits] == [(1442, 8, 8, 1), (355, 8, 8, 1)]
    assert [part.labels.shape for part in splits] == [(1442,), (355,)]
    for images, labels in splits:
        assert (images.dtype, labels.dtype) == (jnp.float32, jnp.int32)
        assert (images.min(), images.max()) == (0, 1)
    everything = load_digits()
    expected = {(image.tobytes(), label) for image, label in zip(everything.images, everything.target, strict=True)}
    found = [
        (np.asarray(image[..., 0] * 16, np.float64).tobytes(), int(label))
        for part in splits
        for image, label in zip(np.asarray(part.images), np.asarray(part.labels), strict=True)
    ]
    # As many as there are, each once: so no image is in both parts.
    assert len(found) == len(set(found)) == 1797
    assert set(found) == expected


def test_digits_are_split_the_same_way_for_every_digit():
    training, test = (np.bincount(np.asarray(part.labels)) for part in digits())
    assert len(training) == len(test) == 10
    assert (test == (training + test) // 5).all()


def test_digits_are_split_by_the_images_alone(monkeypatch):
    everything = load_digits()
    order = np.random.default_rng(0).permutation(1797)
    held_out = {np.asarray(image).tobytes() for image in digits().test.images}
    everything.images, everything.target = everything.images[order], everything.target[order]
    monkeypatch.setattr("sklearn.datasets.load_digits", lambda: everything)
    assert {np.asarray(image).tobytes() for image in digits().test.images} == held_out
    # They are spread over the whole set, and with it over those who wrote them.
    everything.images, everything.target = everything.images[np.argsort(order)], everything.target[np.argsort(order)]
    places = [n for n, image in enumerate(everything.images) if np.float32(image[..., None] / 16).tobytes() in held_out]
    assert np.histogram(places, 5, (0, 1797))[0].min() > 50


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_load_parallel_pairs_line_with_line(tmp_path):
    english = write(tmp_path / "text.en", "\ufeffA dog .\r\n Two cats \u2028sit.\r\n")
    german = write(tmp_path / "text.de", "Ein Hund .\nZwei Katzen sitzen.\n\n")
    expected = [("A dog .", "Ein Hund ."), ("Two cats \u2028sit.", "Zwei Katzen sitzen.")]
    assert load_parallel(english, german) == load_parallel(str(english), str(german)) == expected


def test_load_labelled_reads_commas_and_tabs(tmp_path):
    commas = write(tmp_path / "texts.csv", '"Paris, je t\'aime",fr\n"say ""no""\nnow", en\r\n\n  \nhallo,de\n')
    assert load_labelled(commas) == [("Paris, je t'aime", "fr"), ('say "no"\nnow', "en"), ("hallo", "de")]
    tabs = write(tmp_path / "texts.TSV", '"Paris", je t\'aime\tfr\r\n5" wide\ten\n')
    assert load_labelled(str(tabs)) == [('"Paris", je t\'aime', "fr"), ('5" wide', "en")]


def test_load_labelled_reads_a_header(tmp_path):
    assert load_labelled(write(tmp_path / "a.csv", "Text, Label\nhallo,de\n")) == [("hallo", "de")]
    assert load_labelled(write(tmp_path / "b.tsv", "label\ttext\nde\thallo\n")) == [("hallo", "de")]
    assert load_labelled(write(tmp_path / "c.csv", "hallo,de\ntext,label\n")) == [("hallo", "de"), ("text", "label")]


@pytest.mark.usefixtures("unchecked")
def test_label_ids_take_an_array_of_numpy():
    ids, names = label_ids(np.array(["fr", "de", "fr"]))
    assert (ids.tolist(), names) == ([1, 0, 1], ["de", "fr"])


def test_label_ids_number_labels_in_sorted_order():
    ids, names = label_ids(["fr", "de", "fr", "pl"])
    assert ids.tolist() == [1, 0, 1, 2]
    assert ids.dtype == jnp.int32
    assert names == ["de", "fr", "pl"]
    # Another data set, in which one of them does not occur, has the same numbers.
    ids, again = label_ids(("pl", "fr"), names)
    assert ids.tolist() == [2, 1]
    assert again == names


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
def download(tmp_path, monkeypatch):
    """Let Multi30k be a few sentences, on a server of this machine: the folder of its pages."""
    pages = tmp_path / "pages"
    pages.mkdir()
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
        write(pages / f"{part}.tar.gz", content)
        archives[part] = (f"{part}.tar.gz", hashlib.sha256(content).hexdigest())
    monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path / "cache" / name)
    monkeypatch.setattr(datasets, "MULTI30K_ARCHIVES", archives)
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    with served(pages) as address:
        monkeypatch.setattr(datasets, "MULTI30K", f"{address}/")
        yield pages


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


def test_multi30k_refuses_another_file(download):
    write(download / "val.tar.gz", archive({"val.en": b"x", "val.de": b"y"}))
    with pytest.raises(
        ValueError, match=r"^What http://127.*/val.tar.gz gave is not Multi30k: .*hash.*load_parallel\(\)"
    ):
        multi30k()


def test_multi30k_without_a_file_in_it(download, monkeypatch):
    content = archive({"val.en": b"x"})
    write(download / "val.tar.gz", content)
    archives = datasets.MULTI30K_ARCHIVES | {"val": ("val.tar.gz", hashlib.sha256(content).hexdigest())}
    monkeypatch.setattr(datasets, "MULTI30K_ARCHIVES", archives)
    with pytest.raises(ValueError, match=r"multi30k_val.tar.gz holds no file val.de"):
        multi30k()


@pytest.mark.usefixtures("download")
def test_multi30k_without_network(monkeypatch):
    monkeypatch.setattr(datasets, "MULTI30K", "http://127.0.0.1:9/")  # nobody listens there
    with pytest.raises(
        OSError, match=r"^Cannot download http://127.0.0.1:9/train.tar.gz: .*Without a network, use date_s"
    ):
        multi30k()


def test_multi30k_is_the_one_everybody_uses():
    sums = [sha256[:8] for _, sha256 in datasets.MULTI30K_ARCHIVES.values()]
    assert sums == ["20140d01", "a7aa20e9", "6d1ca1db"]
    assert all(len(sha256) == 64 for _, sha256 in datasets.MULTI30K_ARCHIVES.values())
