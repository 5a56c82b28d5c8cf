"""Models that packages bring, made into files for the figures."""

import pytest
from book_meaning import packaged_models

import plainformer as pf
from plainformer.training.arrays import read_arrays


def test_a_packages_model_is_written_with_its_licence(tmp_path):
    packaged_models.copy_packaged(tmp_path, tmp_path / "site")
    file = tmp_path / "site" / "chemist.safetensors"
    arrays, header = read_arrays(file, "config")  # which compares the checksum
    assert 2_000_000 < file.stat().st_size < 3_600_000
    assert header["model"] == "MaskedLanguageModel"
    assert not [name for name in arrays if ".blocks.1." in name]
    model, _ = pf.open_model(pf.pretrained.packaged_folder("rxnmapper"), tokenizer=False)
    for name, array in pf.training.named_arrays(model).items():
        if ".blocks." not in name or ".blocks.0." in name:
            assert (arrays[name] == array).all()
    assert "MIT" in (tmp_path / "site" / "chemist.LICENSE.txt").read_text(encoding="utf-8")
    assert "Apache" in (tmp_path / "site" / "smollm2_tokens.LICENSE.txt").read_text(encoding="utf-8")


def test_the_books_own_models_are_where_they_are(tmp_path):
    (tmp_path / "lab" / "staircase").mkdir(parents=True)
    file = tmp_path / "lab" / "staircase" / "stories.safetensors"
    file.touch()
    assert packaged_models.file_of_model(tmp_path, "stories") == file
    assert not packaged_models.file_of_model(tmp_path, "decoder").exists()


def test_a_package_without_a_licence_is_refused(monkeypatch):
    monkeypatch.setattr(packaged_models, "files", lambda package: [])
    with pytest.raises(ValueError, match="brings no licence"):
        packaged_models._licence("rxnmapper")
