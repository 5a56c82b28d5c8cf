"""Where the book's own models are found: in the repository, at hand, or where pip got the package from."""

import json
import shutil
from pathlib import Path
from typing import ClassVar

import pytest

import plainformer as pf
from plainformer.data import stored
from plainformer.data.stored import RECORDS, SHA256, WEIGHTS, load_record, load_weights
from plainformer.models.stored import load_pretrained

ROOT = Path(__file__).resolve().parents[2]
FILE = "lab/vision/vision.safetensors"  # the smallest


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The package as it is without a repository: in another folder, from an address that pip noted."""
    monkeypatch.setattr(stored, "__file__", str(tmp_path / "lib" / "a" / "b" / "c" / "d.py"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")

    class Noted:
        origin: ClassVar[dict] = {"url": "https://example.org/book.git", "vcs_info": {"commit_id": "12ab"}}

        def read_text(self, name):
            assert name == "direct_url.json"
            return json.dumps(self.origin)

    monkeypatch.setattr(stored, "distribution", lambda name: Noted())
    return Noted


def test_load_pretrained_reads_the_repositorys_own_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model, tokenizer = load_pretrained("vision")
    assert isinstance(model, pf.ViT)
    assert tokenizer is None
    assert all((ROOT / file).is_file() for file in SHA256)


@pytest.mark.parametrize("folder", [".", ".."])
def test_load_pretrained_reads_the_same_file_at_hand_and_no_other(installed, monkeypatch, folder):
    monkeypatch.setattr(stored, "download", lambda url, sha256, name: ROOT / FILE)
    (own := Path(folder, FILE)).parent.mkdir(parents=True)
    own.write_bytes(b"a model of the reader's own, of the same name")
    assert stored._path(FILE) == ROOT / FILE
    shutil.copy(ROOT / FILE, own)
    assert stored._path(FILE) == own


@pytest.mark.parametrize("origin", [{"dir_info": {}}, {"vcs_info": {"commit_id": "12ab"}}])
def test_load_pretrained_reads_the_folder_that_pip_installed_from(installed, origin):
    installed.origin = {"url": ROOT.as_uri(), **origin}
    assert stored._path(FILE) == ROOT / FILE


def test_load_pretrained_downloads_from_the_commit_of_the_package(installed, monkeypatch):
    asked = []

    def download(*arguments):
        asked.append(arguments)
        return str(ROOT / FILE)

    monkeypatch.setattr(stored, "download", download)
    model, _ = load_pretrained("vision")
    assert isinstance(model, pf.ViT)
    assert asked == [(f"https://example.org/book/raw/12ab/{FILE}", SHA256[FILE], "lab_vision_vision.safetensors")]


def test_load_pretrained_says_what_to_do_where_there_is_no_model(installed, monkeypatch):
    def download(url, *_):
        raise OSError(f"Cannot download {url}: no network.")

    monkeypatch.setattr(stored, "download", download)
    with pytest.raises(FileNotFoundError, match=rf"^{FILE} cannot be downloaded: .*no network\. Work in the fold"):
        load_pretrained("vision")
    installed.origin = {"url": "file:///somewhere", "dir_info": {}}
    with pytest.raises(FileNotFoundError, match=rf"^There is no {FILE} here, and no address to .* put that file"):
        load_pretrained("vision")
    with pytest.raises(ValueError, match=r"^name is 'gpt'"):
        load_pretrained("gpt")


def test_every_stored_file_is_loaded_by_its_name():
    for name in RECORDS:
        assert load_record(name)
    for name in WEIGHTS.keys() - {"machines"}:
        assert load_pretrained(name)


def test_load_weights_gives_floats_of_32_bits():
    weights = load_weights("machines")
    assert {array.dtype.name for array in weights.values()} == {"float32"}
    with pytest.raises(ValueError, match=r"machines\.safetensors holds several models"):
        load_pretrained("machines")
    with pytest.raises(ValueError, match=r"^name is 'blocks'"):
        load_weights("blocks")


def test_load_record_names_the_records():
    assert load_record("recurrent")["parameters"]["text"].keys() == {"classic", "modern", "gated", "rnn", "lstm", "gru"}
    with pytest.raises(ValueError, match=r"^name is 'machines'"):
        load_record("machines")


def test_load_pretrained_names_a_class_that_it_does_not_know(monkeypatch):
    monkeypatch.delitem(pf.models.stored.CLASSES, "Decoder")
    with pytest.raises(ValueError, match="holds a Decoder"):
        load_pretrained("decoder")
