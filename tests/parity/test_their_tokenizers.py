"""Tokenizers of Hugging Face behind the interface of ours: ids, text, streams, files and what is wrong with them."""

import json

import jax
import pytest
import tokenizers
import transformers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

import plainformer as pf
from plainformer.tokens.hugging_face import HuggingFaceTokenizer
from plainformer.tokens.tokenizer import Tokenizer, tokenizer_from_json

TEXT = ["Anna goes to the garden.", "The lamp is in the hall, isn't it?", "Wo? 灯 👩‍👧 naïve e\u0301"] * 3


def byte_level():
    """As of GPT-2 and Llama 3, with a start token that is added."""
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        TEXT, trainers.BpeTrainer(vocab_size=300, special_tokens=["<s>"], initial_alphabet=alphabet)
    )
    made.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return made


def word_pieces():
    """As of BERT."""
    made = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer, made.decoder = normalizers.BertNormalizer(), decoders.WordPiece()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    made.train_from_iterator(TEXT, trainers.WordPieceTrainer(vocab_size=120, special_tokens=special))
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    made.enable_truncation(4)  # which would cut a text silently
    made.enable_padding(length=20)
    return made


def with_spaces_marked():
    """As of Llama 2 and Mistral: bytes for what it does not know."""
    tokens = ["<unk>", "<s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *"adeghilmnorst", "▁th", "▁the"]
    merges = [("▁", "t"), ("▁t", "h"), ("▁th", "e")]
    tokens.insert(-2, "▁t")
    vocabulary = {token: number for number, token in enumerate(tokens)}
    made = tokenizers.Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    made.decoder = decoders.Sequence(parts)
    made.add_special_tokens(["<s>"])
    return made


KINDS = {make.__name__: make for make in (byte_level, word_pieces, with_spaces_marked)}


@pytest.fixture(params=KINDS)
def theirs(request):
    return KINDS[request.param]()


def test_ids_and_text_are_theirs(theirs):
    ours = HuggingFaceTokenizer(theirs.to_str())
    assert isinstance(ours, Tokenizer)
    theirs.no_truncation()
    theirs.no_padding()
    for text in [*TEXT, "", " ", "<s> [SEP]"]:
        ids = theirs.encode(text).ids
        assert ours.encode(text) == ids
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=False)
        assert "".join(ours.decode_stream(iter(ids))) == ours.decode(ids), text
    assert len(ours) == theirs.get_vocab_size()
    assert all(theirs.token_to_id(token) == number for token, number in ours.special.items())


def test_json_and_folders_are_read_back(theirs, tmp_path):
    ours = HuggingFaceTokenizer(theirs.to_str(), "{{ messages }}")
    again = tokenizer_from_json(ours.to_json())
    assert (again.encode(TEXT[1]), again.chat_template) == (ours.encode(TEXT[1]), "{{ messages }}")
    ours.save_hugging_face(tmp_path)
    found = HuggingFaceTokenizer.in_folder(tmp_path)
    assert (found.encode(TEXT[1]), found.chat_template) == (ours.encode(TEXT[1]), "{{ messages }}")
    opened = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    assert opened(TEXT[1])["input_ids"] == ours.encode(TEXT[1])


@pytest.mark.parametrize(
    ("template", "found"),
    [("A", "A"), ([{"name": "tool", "template": "B"}, {"name": "default", "template": "A"}], "A"), (None, None)],
)
def test_the_form_of_a_conversation_is_named_or_absent(template, found, tmp_path):
    (tmp_path / "tokenizer.json").write_text(byte_level().to_str())
    assert HuggingFaceTokenizer.in_folder(tmp_path).chat_template is None
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    assert HuggingFaceTokenizer.in_folder(tmp_path).chat_template == found


@pytest.fixture
def folder(tmp_path):
    """A GPT-2 with its tokenizer, written by us."""
    tokenizer = HuggingFaceTokenizer(byte_level().to_str())
    stack = pf.StackConfig(d_model=8, num_layers=1, num_heads=2)
    model = pf.Decoder(pf.DecoderConfig(len(tokenizer), 32, stack), key=jax.random.key(0))
    pf.to_hugging_face(tmp_path, model, "gpt2", tokenizer)
    return tmp_path


def test_a_model_and_its_tokenizer_write_and_are_saved(folder, tmp_path):
    model, tokenizer = pf.open_model(folder)
    found = pf.generate(model, "Anna goes", 5, tokenizer=tokenizer, temperature=0.0)
    assert found.text == tokenizer.decode(found.tokens)
    pf.save_model(tmp_path / "decoder.safetensors", model, tokenizer)
    again, same = pf.load_model(tmp_path / "decoder.safetensors", pf.Decoder)
    assert pf.generate(again, "Anna goes", 5, tokenizer=same, temperature=0.0).text == found.text
    assert transformers.AutoTokenizer.from_pretrained(folder)("Anna goes")["input_ids"] == tokenizer.encode("Anna goes")


def test_bad_tokenizers_are_refused(folder):
    path = folder / "tokenizer.json"
    whole = path.read_text()
    path.write_text(whole[:100])
    with pytest.raises(ValueError, match=r"tokenizer.json"):
        pf.open_model(folder)
    assert pf.open_model(folder, tokenizer=False)[1] is None
    larger = byte_level()
    larger.add_tokens(["one", "two"])
    path.write_text(larger.to_str())
    with pytest.raises(ValueError, match=r"a tokenizer of \d+ tokens, and a model with"):
        pf.open_model(folder)
    tokenizer = HuggingFaceTokenizer(byte_level().to_str())
    with pytest.raises(ValueError, match=r"ids"):
        tokenizer.decode([len(tokenizer)])
    with pytest.raises(TypeError, match=r"text"):
        tokenizer.encode(b"bytes")
