"""Byte-pair encoders in files, the package's own and those of GPT-2."""

import json

import pytest

from plainformer.tokens.bpe import BytePairEncoder

TEXT = "she sells sea shells; the shells she sells are sea shells, she's sure. 12 12 日本 日本 naïve 🙂🙂\n\n  ok"
END = "<|end|>"


@pytest.fixture(scope="module")
def encoder():
    return BytePairEncoder.train(TEXT, 290, special=[END, "<|end|><|end|>"])


def test_save_then_load_is_the_same_encoder(encoder, tmp_path):
    path = tmp_path / "encoder.json"
    path.write_text("old")
    encoder.save(path)
    loaded = BytePairEncoder.load(path)
    assert vars(loaded) | {"_cache": {}} == vars(encoder) | {"_cache": {}}
    assert loaded.encode(TEXT + END, allowed_special=[END]) == encoder.encode(TEXT + END, allowed_special=[END])
    assert [entry.name for entry in tmp_path.iterdir()] == ["encoder.json"]


def test_save_then_load_keeps_pattern_and_whole_pieces(encoder, tmp_path):
    other = BytePairEncoder(encoder.vocabulary, encoder.merges, encoder.special, r"\p{L}+|\s", True)
    other.save(tmp_path / "other.json")
    loaded = BytePairEncoder.load(tmp_path / "other.json")
    assert (loaded.pattern, loaded.whole_pieces) == (r"\p{L}+|\s", True)
    assert vars(loaded) | {"_cache": {}} == vars(other) | {"_cache": {}}


def gpt2_files(encoder, folder):
    vocab, merges = folder / "vocab.json", folder / "merges.txt"
    vocab.write_text(json.dumps(encoder.vocabulary, ensure_ascii=False), encoding="utf-8")
    lines = ["#version: 0.2", *(f"{a} {b}" for a, b in encoder.merges), ""]
    merges.write_text("\n".join(lines), encoding="utf-8")
    return vocab, merges


def test_from_gpt2_reads_vocabulary_and_merges(tmp_path):
    encoder = BytePairEncoder.train(TEXT + "## ## ##", 290, special=["<|endoftext|>"])
    assert ("#", "#") in encoder.merges  # a line that looks like a comment, and is none
    vocab, merges = gpt2_files(encoder, tmp_path)
    loaded = BytePairEncoder.from_gpt2(vocab, merges)
    assert vars(loaded) | {"_cache": {}} == vars(encoder) | {"_cache": {}}
    merges.write_bytes(merges.read_bytes().replace(b"\n", b"\r\n"))
    assert BytePairEncoder.from_gpt2(vocab, merges).merges == encoder.merges


def test_from_gpt2_wants_special_tokens_by_name(encoder, tmp_path):
    vocab, merges = gpt2_files(encoder, tmp_path)
    with pytest.raises(ValueError, match=r"merges.txt"):
        BytePairEncoder.from_gpt2(vocab, merges)
    assert BytePairEncoder.from_gpt2(vocab, merges, special=list(encoder.special)).special == encoder.special


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[:-5], r"no merge makes \d+ tokens of the vocabulary"),
        (lambda lines: [lines[0], *reversed(lines[1:])], "no byte and no earlier merge makes"),
        (lambda lines: [*lines, lines[1]], r"merges holds \('Ġ', 's'\) twice"),
        (lambda lines: [*lines, "h"], r"line 40 is 'h'"),
        (lambda lines: [*lines, "z q"], "merge 38, 'z' with 'q'"),
    ],
)
def test_from_gpt2_corrupt_merges(tmp_path, change, message):
    encoder = BytePairEncoder.train(TEXT, 256 + 38)
    vocab, merges = gpt2_files(encoder, tmp_path)
    lines = merges.read_text(encoding="utf-8").split("\n")[:-1]
    merges.write_text("\n".join(change(lines)), encoding="utf-8")
    with pytest.raises(ValueError, match=r"merges.txt"):
        BytePairEncoder.from_gpt2(vocab, merges)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v.pop("he"), "the ids of 293 tokens must be 0 to 292"),
        (lambda v: v.update(he="256"), "must give each token a whole number"),
        (lambda v: v.update(xx=v.pop("Ā")), "lacks 1 of the 256 bytes"),
    ],
)
def test_from_gpt2_corrupt_vocabulary(tmp_path, unchecked, change, message):
    encoder = BytePairEncoder.train(TEXT, 256 + 38)
    change(encoder.vocabulary)
    with pytest.raises(ValueError, match=message):
        BytePairEncoder.from_gpt2(*gpt2_files(encoder, tmp_path))


def test_from_gpt2_bad_files(encoder, tmp_path):
    vocab, merges = gpt2_files(encoder, tmp_path)
    with pytest.raises(FileNotFoundError, match=r"There is no file"):
        BytePairEncoder.from_gpt2(tmp_path / "none.json", merges)
    with pytest.raises(FileNotFoundError, match=r"There is no file"):
        BytePairEncoder.from_gpt2(vocab, tmp_path / "none.txt")
    with pytest.raises(ValueError, match=r"special token '<pad>' is not in the"):
        BytePairEncoder.from_gpt2(vocab, merges, special=["<pad>", *encoder.special])
    with pytest.raises(ValueError, match=r"special token 'h' is an ordinary token too"):
        BytePairEncoder.from_gpt2(vocab, merges, special=["h", *encoder.special])
    vocab.write_text(vocab.read_text(encoding="utf-8")[:100], encoding="utf-8")
    with pytest.raises(ValueError, match=r"vocab.json is not valid JSON"):
        BytePairEncoder.from_gpt2(vocab, merges)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.pop("special"), r"x.json has the keys \['merges', 'pattern'"),
        (lambda c: c.update(c["vocabulary"]), r"has the keys \['!', '\"', '#', '\$', '%'\]"),
        (lambda c: c.update(vocabulary=[1]), "must give each token a whole number"),
        (lambda c: c.update(merges=[["a"]]), "merges must be a list of pairs"),
        (lambda c: c.update(merges=[["a", 3]]), "every token must be a string"),
        (lambda c: c.update(special=[""]), "special holds an empty name"),
        (lambda c: c["merges"].pop(), r"x.json: no merge makes \d+ tokens"),
        (lambda c: c.update(pattern="(a"), r"x.json: pattern '\(a' is not a regular"),
        (lambda c: c.update(whole_pieces=None), r"x.json: whole_pieces is None"),
    ],
)
def test_load_corrupt_file(encoder, tmp_path, unchecked, change, message):
    path = tmp_path / "x.json"
    encoder.save(path)
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message):
        BytePairEncoder.load(path)
    path.write_text(json.dumps(content)[:-3])
    with pytest.raises(ValueError, match=r"not valid JSON"):
        BytePairEncoder.load(path)


def test_load_and_save_nowhere(encoder, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no file"):
        BytePairEncoder.load(tmp_path / "none.json")
    with pytest.raises(FileNotFoundError, match=r"There is no folder"):
        encoder.save(tmp_path / "none" / "x.json")
