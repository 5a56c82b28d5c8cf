"""`tokenizer.json` of Hugging Face's `tokenizers`, read and written; `tests/parity` opens them there."""

import json

import pytest

from plainformer.tokens.bpe import BytePairEncoder
from plainformer.tokens.merges import GPT2_PATTERN, byte_alphabet

TEXT = "she sells sea shells; the shells she sells are sea shells, she's sure. 12 12 日本 日本 naïve 🙂🙂\n\n  ok"
END = "<|end|>"
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
SPLIT = {"type": "Split", "pattern": {"Regex": r"\p{L}+|\p{N}{1,3}"}, "behavior": "Isolated", "invert": False}


def encoder_of(**options):
    return BytePairEncoder.train(TEXT, 290, special=[END, "<pad>"], **options)


def content_of(encoder, path):
    encoder.save_hugging_face(path)
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("pattern", "whole_pieces"), [(GPT2_PATTERN, False), (r"\p{L}+|\p{N}{1,3}", True)])
def test_save_hugging_face_then_from_hugging_face_is_the_same_encoder(tmp_path, pattern, whole_pieces):
    trained = encoder_of(pattern=pattern)
    encoder = BytePairEncoder(trained.vocabulary, trained.merges, trained.special, pattern, whole_pieces)
    encoder.save_hugging_face(tmp_path / "tokenizer.json")
    loaded = BytePairEncoder.from_hugging_face(tmp_path / "tokenizer.json")
    assert vars(loaded) == vars(encoder)


def test_save_hugging_face_by_hand(tmp_path):
    encoder = BytePairEncoder.train("the the", 258, special=[END])
    content = content_of(encoder, tmp_path / "x.json")
    assert content["model"]["vocab"] == encoder.vocabulary
    assert content["model"]["merges"] == ["h e"]
    assert content["pre_tokenizer"] == BYTE_LEVEL
    assert [(token["id"], token["content"], token["special"]) for token in content["added_tokens"]] == [
        (257, END, True)
    ]
    content = content_of(encoder_of(pattern=SPLIT["pattern"]["Regex"]), tmp_path / "x.json")
    assert content["pre_tokenizer"]["pretokenizers"] == [SPLIT, BYTE_LEVEL | {"use_regex": False}]


def test_from_hugging_face_reads_older_and_newer_files(tmp_path):
    encoder, path = encoder_of(), tmp_path / "tokenizer.json"
    content = content_of(encoder, path)
    for change in (
        {"merges": [list(pair) for pair in encoder.merges]},  # the newer form
        {"type": None},
        {"vocab": {token: n for token, n in encoder.vocabulary.items() if token not in encoder.special}},
    ):
        path.write_text(json.dumps(content | {"model": content["model"] | change}), encoding="utf-8")
        assert vars(BytePairEncoder.from_hugging_face(path)) == vars(encoder)
    old = {key: value for key, value in BYTE_LEVEL.items() if key != "use_regex"}
    around = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": END, "type_id": 0}}]}
    path.write_text(json.dumps(content | {"pre_tokenizer": old, "post_processor": around}), encoding="utf-8")
    assert vars(BytePairEncoder.from_hugging_face(path)) == vars(encoder)


def test_from_hugging_face_reads_several_merges_of_one_token(tmp_path):
    # As made from tiktoken's files, which have no merges: all ways to cut a token in two, even by one made later.
    path = tmp_path / "tokenizer.json"
    numbers = {token: n for n, token in enumerate([*byte_alphabet().values(), "bc", "abc", "ab"])}
    encoder = BytePairEncoder(numbers, [("b", "c"), ("a", "bc"), ("a", "b")])
    content = content_of(encoder, path)
    content["model"]["merges"] = ["b c", "ab c", "a bc", "a b"]
    path.write_text(json.dumps(content), encoding="utf-8")
    loaded = BytePairEncoder.from_hugging_face(path)
    assert loaded.encode("abc ab bc") == encoder.encode("abc ab bc") == [257, 220, 258, 220, 256]
    content["model"]["merges"] = ["b c", "ab c", "a b"]  # now nothing makes abc of what is made before
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match=r"merge 1, 'ab' with 'c'"):
        BytePairEncoder.from_hugging_face(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(normalizer={"type": "NFC"}), r'the file has normalizer {"type"'),
        (lambda c: c.update(truncation={"max_length": 9}), r'the file has truncation {"max_length"'),
        (lambda c: c.update(model=3), r"the model is 3"),
        (lambda c: c["model"].update(dropout=0.1), r"the model has dropout 0.1"),
        (lambda c: c["model"].update(byte_fallback=True), r"the model has byte_fallback true"),
        (lambda c: c["model"].pop("merges"), r"the model lacks an object vocab or a list"),
        (lambda c: c["model"]["vocab"].update({END: 5}), r"'<\|end\|>' has another id in the model's"),
        (lambda c: c["added_tokens"][0].update(special=False), r"'<\|end\|>' has special false"),
        (lambda c: c["added_tokens"][0].update(single_word=True), r"'<\|end\|>' has single_word true"),
        (lambda c: c["added_tokens"][0].update(normalized=True), r"some added tokens are normalized and some"),
        (lambda c: c["added_tokens"].append(c["added_tokens"][0]), r"added_tokens holds '<\|end\|>' twice"),
        (lambda c: c["added_tokens"].append({"content": "x"}), r'added_tokens holds {"content"'),
    ],
)
def test_from_hugging_face_refuses_what_would_make_other_ids(tmp_path, unchecked, change, message):
    path = tmp_path / "tokenizer.json"
    content = content_of(encoder_of(), path)
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match=r"tokenizer.json"):
        BytePairEncoder.from_hugging_face(path)


@pytest.mark.parametrize(
    "pre_tokenizer",
    [
        None,
        BYTE_LEVEL | {"add_prefix_space": True},
        BYTE_LEVEL | {"use_regex": False},
        {"type": "Sequence", "pretokenizers": [SPLIT, BYTE_LEVEL]},
        {"type": "Sequence", "pretokenizers": [SPLIT | {"behavior": "Removed"}, BYTE_LEVEL | {"use_regex": False}]},
    ],
)
def test_from_hugging_face_refuses_other_ways_to_cut(tmp_path, pre_tokenizer):
    path = tmp_path / "tokenizer.json"
    content = content_of(encoder_of(), path) | {"pre_tokenizer": pre_tokenizer}
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match=r"tokenizer.json"):
        BytePairEncoder.from_hugging_face(path)


def test_from_hugging_face_refuses_a_pattern_that_may_be_read_otherwise(tmp_path):
    path = tmp_path / "tokenizer.json"
    split = SPLIT | {"pattern": {"Regex": r"\w+|\W"}}
    steps = {"type": "Sequence", "pretokenizers": [split, BYTE_LEVEL | {"use_regex": False}]}
    path.write_text(json.dumps(content_of(encoder_of(), path) | {"pre_tokenizer": steps}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"tokenizer.json"):
        BytePairEncoder.from_hugging_face(path)


def test_hugging_face_files_nowhere(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no file"):
        BytePairEncoder.from_hugging_face(tmp_path / "none.json")
    with pytest.raises(FileNotFoundError, match=r"There is no folder"):
        encoder_of().save_hugging_face(tmp_path / "none" / "x.json")
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(ValueError, match=r"x.json is not valid JSON"):
        BytePairEncoder.from_hugging_face(tmp_path / "x.json")


def test_save_hugging_face_refuses_a_name_that_no_file_holds(tmp_path):
    encoder = BytePairEncoder.train("ab", 258, special=["<\ud800>"])
    with pytest.raises(ValueError, match=r"'<\\ud800>' holds a lone surrogate"):
        encoder.save_hugging_face(tmp_path / "x.json")
