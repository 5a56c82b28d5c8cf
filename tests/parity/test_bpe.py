"""Byte-pair encoding against Hugging Face's `tokenizers`."""

import json
import random
import unicodedata
from itertools import pairwise

import pytest
import regex
from patterns import GPT4, GPT4O
from tokenizers import Regex, Tokenizer, decoders
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split
from tokenizers.trainers import BpeTrainer

from plainformer.data.text import python_reference
from plainformer.tokens.bpe import BytePairEncoder
from plainformer.tokens.merges import GPT2_PATTERN, pre_tokenise

MULTILINGUAL = (
    "Der schnelle braune Fuchs springt über den faulen Hund. Le renard brun saute par-dessus le chien paresseux. "
    "Быстрая лиса перепрыгивает через ленивую собаку. 敏捷的棕色狐狸跳过了懒狗。"
    "素早い茶色の狐はのろまな犬を飛び越える。"
    "빠른 갈색 여우가 게으른 개를 뛰어넘는다. الثعلب البني السريع يقفز فوق الكلب الكسول. תֵּל אָבִיב "
    "तेज़ भूरी लोमड़ी आलसी कुत्ते पर कूदती है। สุนัขจิ้งจอกสีน้ำตาล Γρήγορη καφέ αλεπού. ½ Ⅷ ² ٣٤ e\u0301 ﬁ \u200b\u00a0\u3000 "
) * 3
EMOJI = (
    "🙂🙂 👩‍👩‍👧‍👦 🏳️‍🌈 🇸🇪🇯🇵 ok👍🏽👍🏽 \U0001f9d1\u200d\U0001f680 ♥︎ don't we'll they've I'm he'd she's o'clock'S\n" * 5
)
RANDOM = bytes(random.Random(0).choices(range(256), k=5_000)).decode("latin-1")
SPACES = "".join(random.Random(1).choices(" \t\n\r\x0b\x1c\x1f\x85\xa0\u2028\u3000ab1.", k=5_000))
RUNS = "".join(random.Random(2).choices("ab", k=3_000)) + " " + "a" * 999 + " " + "ab" * 500
TEXTS = {
    "reference": python_reference(),
    "multilingual": MULTILINGUAL,
    "emoji": EMOJI,
    "random": RANDOM,
    "spaces": SPACES,
    "runs": RUNS,
}
# One that leaves gaps between its matches, beside those of others.
GAPS = r"(?i:ss|[e-n]+t)\p{P}*|[^\]\-\s\d]{2,3}\s(?!\s)"
PATTERNS = {"gpt2": GPT2_PATTERN, "gpt4": GPT4, "gpt4o": GPT4O, "gaps": GAPS}
SPECIAL = ["<|endoftext|>", "<|endoftext|><|pad|>", "[MASK]", "über"]


def is_agreed(character):
    """Whether the Unicode tables of Python and of `regex` both know a character, or neither: they differ in age."""
    category = unicodedata.category(character)
    return category != "Cs" and (category != "Cn" or regex.match(r"\p{Cn}", character))


def random_texts(number):
    """Texts of words, of what is hard to cut, of characters from everywhere, and of the names of special tokens."""
    draw = random.Random(7)
    planes = [chr(draw.randrange(plane << 16, plane + 1 << 16)) for plane in range(17) for _ in range(300)]
    low = [chr(n) for n in range(0x3000)]
    pools = [
        [character for character in planes + low if is_agreed(character)],
        [character for character in low if unicodedata.category(character) in ("Mn", "Cc", "Cf", "Zs", "Zl", "Zp")],
        list(" \t\n\r\x0b\x1c\x85\xa0\u2028\u3000"),
        list("aeilmnstvdrESTLſßﬁŉ'’1٣½Ⅷ.,-]/ \n"),
        list(EMOJI),
        MULTILINGUAL.split(" "),
        [*SPECIAL, "<|endoftext|", "<|", "|>", "[MASK", " "],
    ]
    for _ in range(number):
        yield "".join(draw.choice(draw.choice(pools)) for _ in range(draw.randrange(40)))


def trained_by_tokenizers(text, vocab_size, pattern=GPT2_PATTERN, **options):
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=True)
    if pattern != GPT2_PATTERN:
        by_bytes = ByteLevel(add_prefix_space=False, use_regex=False)
        tokenizer.pre_tokenizer = Sequence([Split(Regex(pattern), "isolated"), by_bytes])
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = ByteLevel.alphabet()
    trainer = BpeTrainer(vocab_size=vocab_size, initial_alphabet=alphabet, show_progress=False, **options)
    tokenizer.train_from_iterator([text], trainer)
    return tokenizer


def files_of(tokenizer, folder):
    return tokenizer.model.save(str(folder))  # vocab.json, merges.txt


@pytest.mark.equation("eq-subwords-pair-count", "eq-subwords-best-pair")
@pytest.mark.parametrize("name", ["reference", "multilingual", "spaces", "runs"])
def test_train_learns_the_same_merges(name, tmp_path):
    text, vocab_size = TEXTS[name], 1000
    theirs = trained_by_tokenizers(text, vocab_size)
    ours = BytePairEncoder.train(text, vocab_size)
    assert ours.vocabulary == theirs.get_vocab()
    assert ours.merges == BytePairEncoder.from_gpt2(*files_of(theirs, tmp_path)).merges
    assert len(ours.merges) > 50


def test_train_stops_at_the_same_count():
    for min_count in (2, 3):
        theirs = trained_by_tokenizers(EMOJI + MULTILINGUAL, 5000, min_frequency=min_count)
        ours = BytePairEncoder.train(EMOJI + MULTILINGUAL, 5000, min_count=min_count)
        assert ours.vocabulary == theirs.get_vocab()


@pytest.mark.equation("eq-subwords-encode")
def test_from_gpt2_encodes_as_tokenizers_does(tmp_path):
    theirs = trained_by_tokenizers(python_reference() + MULTILINGUAL + EMOJI, 3000, special_tokens=["<|endoftext|>"])
    ours = BytePairEncoder.from_gpt2(*files_of(theirs, tmp_path))
    for name, text in TEXTS.items():
        ids = ours.encode(text)
        assert ids == theirs.encode(text).ids, name
        assert ours.decode(ids) == theirs.decode(ids) == text, name
    assert ours.special == {"<|endoftext|>": 0}
    assert ours.encode("a<|endoftext|>", allowed_special={"<|endoftext|>"}) == theirs.encode("a<|endoftext|>").ids


def test_pre_tokenise_cuts_where_tokenizers_does():
    # Every character that this Python's Unicode tables know; younger ones depend on the tables of either library.
    theirs = ByteLevel(add_prefix_space=False, use_regex=True)
    for number in range(0x110000):
        character = chr(number)
        if unicodedata.category(character) in ("Cn", "Cs"):
            continue
        text = f"a{character}1{character}.{character}{character} {character}"
        ends = [end for _, (_, end) in theirs.pre_tokenize_str(text)]
        lengths = [len(piece) for piece in pre_tokenise(text)]
        assert [sum(lengths[: n + 1]) for n in range(len(lengths))] == ends, hex(number)


def assert_same_ids(ours, theirs):
    """Encode 2,000 texts by both, the names of special tokens in them as such or as text, and decode them again."""
    for text in random_texts(2000):
        theirs.encode_special_tokens = False
        ids = theirs.encode(text, add_special_tokens=False).ids
        assert ours.encode(text, allowed_special=ours.special) == ids, text
        assert ours.decode(ids) == text
        theirs.encode_special_tokens = True
        assert ours.encode(text) == theirs.encode(text).ids, text
        assert theirs.decode(ours.encode(text), skip_special_tokens=False) == text


@pytest.mark.parametrize("name", ["gpt2", "gpt4o", "gaps"])
def test_save_hugging_face_opens_in_tokenizers_with_the_same_ids(name, tmp_path):
    path, text = str(tmp_path / "tokenizer.json"), python_reference()[:100_000] + MULTILINGUAL + EMOJI
    ours = BytePairEncoder.train(text, 2000, special=SPECIAL, pattern=PATTERNS[name])
    ours.save_hugging_face(path)
    theirs = Tokenizer.from_file(path)
    assert theirs.get_vocab() == ours.vocabulary
    assert_same_ids(ours, theirs)
    theirs.save(path)  # and back
    again = BytePairEncoder.from_hugging_face(path)
    assert vars(again) | {"_cache": {}} == vars(ours) | {"_cache": {}}


@pytest.mark.parametrize("name", ["gpt2", "gpt4"])
def test_from_hugging_face_encodes_as_tokenizers_does(name, tmp_path):
    path, text = str(tmp_path / "tokenizer.json"), python_reference()[:100_000] + MULTILINGUAL + EMOJI
    theirs = trained_by_tokenizers(text, 2000, PATTERNS[name], special_tokens=SPECIAL[:2])
    theirs.add_special_tokens(SPECIAL[2:])  # not in the model's vocabulary
    theirs.save(path)
    ours = BytePairEncoder.from_hugging_face(path)
    assert ours.special == {name: theirs.token_to_id(name) for name in SPECIAL}
    assert_same_ids(ours, theirs)
    ours.save_hugging_face(path)
    again = Tokenizer.from_file(path)
    assert again.get_vocab() == theirs.get_vocab()
    for text in random_texts(200):
        assert again.encode(text).ids == ours.encode(text, allowed_special=ours.special)


def test_from_hugging_face_reads_files_made_from_tiktokens(tmp_path):
    """As Llama 3 has it: for merges all ways to cut each token in two; and pieces that are tokens become those."""
    path = tmp_path / "tokenizer.json"
    trained = BytePairEncoder.train(python_reference()[:100_000] + MULTILINGUAL, 2000, pattern=GPT4)
    vocabulary = trained.vocabulary | {"Ġzqxj": len(trained)}  # which no merge makes
    merges = [
        f"{token[:cut]} {token[cut:]}"
        for token in vocabulary
        for cut in sorted(range(1, len(token)), key=lambda cut: vocabulary.get(token[:cut], 0))
        if token[:cut] in vocabulary and token[cut:] in vocabulary
    ]
    assert len(merges) > len(trained.merges)
    trained.save_hugging_face(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    content["model"] |= {"vocab": vocabulary, "merges": merges, "ignore_merges": True}
    path.write_text(json.dumps(content), encoding="utf-8")
    theirs, ours = Tokenizer.from_file(str(path)), BytePairEncoder.from_hugging_face(path)
    assert ours.encode(" zqxj") == theirs.encode(" zqxj").ids == [len(trained)]
    for text in (*TEXTS.values(), *random_texts(2000)):
        assert ours.encode(text) == theirs.encode(text).ids
    ours.save_hugging_face(path)
    assert Tokenizer.from_file(str(path)).encode(MULTILINGUAL).ids == ours.encode(MULTILINGUAL)


@pytest.mark.parametrize("name", ["gpt4", "gaps"])
def test_encode_stream_equals_tokenizers_on_the_whole(name, tmp_path):
    path = str(tmp_path / "tokenizer.json")
    ours = BytePairEncoder.train(MULTILINGUAL + EMOJI, 1000, special=SPECIAL, pattern=PATTERNS[name])
    ours.save_hugging_face(path)
    texts = list(random_texts(500))
    expected = Tokenizer.from_file(path).encode("".join(texts)).ids
    assert list(ours.encode_stream(texts, allowed_special=ours.special)) == expected
    whole = "".join(texts)
    cuts = sorted(random.Random(3).choices(range(len(whole)), k=3_000))
    parts = [whole[start:end] for start, end in pairwise([0, *cuts, len(whole)])]
    assert list(ours.encode_stream(parts, allowed_special=ours.special)) == expected
