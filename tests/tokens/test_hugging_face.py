"""Tokenizers of the library `tokenizers`, by hand; `tests/parity` compares them with that library."""

import json

from plainformer.pretrained.gguf_files import byte_pairs
from plainformer.tokens.hugging_face import HuggingFaceTokenizer
from plainformer.tokens.tokenizer import tokenizer_from_json

CONTENT = byte_pairs([*"abc", "<s>", "<end>"], [], [1] * 3 + [3] * 2, "gpt-2", None)
TEMPLATE = "{{ bos_token }}{% for each in messages %}{{ each.content }}{{ eos_token }}{% endfor %}"


def test_json_and_folders_are_read_back(tmp_path):
    tokenizer = HuggingFaceTokenizer(CONTENT, TEMPLATE, "<s>", "<end>")
    tokenizer.save_hugging_face(tmp_path)
    config = {"bos_token": "<s>", "eos_token": {"content": "<end>"}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert HuggingFaceTokenizer.in_folder(tmp_path / "none") is None
    for each in (tokenizer, tokenizer_from_json(tokenizer.to_json()), HuggingFaceTokenizer.in_folder(tmp_path)):
        assert each.special == {"<s>": 3, "<end>": 4}
        assert len(each) == 5
        assert each.encode("cab<end>") == [2, 0, 1, 4]
        assert each.encode_conversation([{"role": "user", "content": "cab"}]) == [3, 2, 0, 1, 4]
        assert each.decode([3, 2, 0, 4]) == "".join(each.decode_stream([3, 2, 0, 4])) == "<s>ca<end>"
