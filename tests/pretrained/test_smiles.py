"""Reactions in SMILES cut into tokens, the model that a package brings, and what is neither."""

import re
from importlib import metadata

import pytest

import plainformer as pf
from plainformer.pretrained import SmilesTokenizer, packaged_folder
from plainformer.pretrained.smiles import SPECIAL

TOKENS = [*SPECIAL, "C", "O", "c", "1", "(", ")", "=", "[O-]", "Br", ">>"]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("CC(=O)[O-].[Na+]", ["C", "C", "(", "=", "O", ")", "[O-]", ".", "[Na+]"]),
        ("BrCCl>>C", ["Br", "C", "Cl", ">>", "C"]),
        ("c1ccccc1", ["c", "1", "c", "c", "c", "c", "c", "1"]),
        ("C%10C[13CH4]", ["C", "%10", "C", "[13CH4]"]),
        ("", []),
    ],
)
def test_split_keeps_atoms_whole_and_loses_nothing(text, tokens):
    assert SmilesTokenizer(TOKENS).split(text) == tokens
    assert "".join(tokens) == text


def test_encode_adds_a_start_and_an_end_and_names_strangers():
    tokenizer = SmilesTokenizer(TOKENS)
    assert tokenizer.encode("CBr>>N") == [2, 5, 13, 14, 1, 3]
    assert tokenizer.decode(tokenizer.encode("CO>>C")) == "[CLS]CO>>C[SEP]"
    assert (len(tokenizer), repr(tokenizer)) == (15, "SmilesTokenizer(15 tokens)")
    assert tokenizer.special["[MASK]"] == 4


def test_in_folder_reads_a_token_in_each_line(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(TOKENS) + "\n", encoding="utf-8")
    assert SmilesTokenizer.in_folder(tmp_path).tokens == tuple(TOKENS)
    with pytest.raises(FileNotFoundError, match="There is no file"):
        SmilesTokenizer.in_folder(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("tokens", "said"), [([*TOKENS, "C"], "tokens holds 'C' twice"), (TOKENS[1:], r"tokens has no \[PAD\]")]
)
def test_vocabularies_that_are_none_are_named(tokens, said):
    with pytest.raises(ValueError, match=said):
        SmilesTokenizer(tokens)


@pytest.mark.usefixtures("unchecked")
def test_ids_and_texts_of_another_kind_are_named():
    tokenizer = SmilesTokenizer(TOKENS)
    with pytest.raises(TypeError, match="text is a list"):
        tokenizer.encode(["C"])
    with pytest.raises(ValueError, match="15"):
        tokenizer.decode([15])


def test_packaged_folder_finds_the_model_without_running_the_package():
    folder = packaged_folder("rxnmapper")
    assert (folder / "pytorch_model.bin").exists()
    assert len(SmilesTokenizer.in_folder(folder)) == 591


def test_packages_that_are_missing_or_have_no_model_are_named():
    hint = re.escape("The package 'no-such-chemist' is not installed. Its files are enough: pip install --no-deps")
    with pytest.raises(ModuleNotFoundError, match=hint):
        packaged_folder("no-such-chemist")
    with pytest.raises(ValueError, match=r"'numpy' has 0 files config\.json"):
        packaged_folder("numpy")


def test_a_package_with_two_models_is_named(monkeypatch):
    twice = [metadata.PackagePath("a/config.json"), metadata.PackagePath("b/config.json")]
    monkeypatch.setattr("plainformer.pretrained.smiles.files", lambda name: twice)
    with pytest.raises(ValueError, match=r"has 2 files config\.json"):
        packaged_folder("chemist")


def test_the_published_model_opens_as_ours():
    model, tokenizer = pf.open_model(packaged_folder("rxnmapper"), tokenizer=False)
    assert tokenizer is None
    assert isinstance(model, pf.MaskedLanguageModel)
    first, *others = model.encoder.stack.blocks
    assert len(others) == 11
    assert all((block.attention.query.weight == first.attention.query.weight).all() for block in others)
