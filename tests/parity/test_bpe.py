"""Byte-pair encoding against Hugging Face's `tokenizers`."""

import random
import unicodedata

import pytest
from tokenizers import Tokenizer, decoders
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer

from plainformer.data.text import python_reference
from plainformer.tokens.bpe import BytePairEncoder
from plainformer.tokens.merges import pre_tokenise

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


def trained_by_tokenizers(text, vocab_size, **options):
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = ByteLevel.alphabet()
    trainer = BpeTrainer(vocab_size=vocab_size, initial_alphabet=alphabet, show_progress=False, **options)
    tokenizer.train_from_iterator([text], trainer)
    return tokenizer


def files_of(tokenizer, folder):
    return tokenizer.model.save(str(folder))  # vocab.json, merges.txt


@pytest.mark.equation("eq-tokens-pair-count", "eq-tokens-best-pair")
@pytest.mark.parametrize("name", TEXTS)
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


@pytest.mark.equation("eq-tokens-encode")
@pytest.mark.parametrize("name", TEXTS)
def test_from_gpt2_encodes_as_tokenizers_does(name, tmp_path):
    theirs = trained_by_tokenizers(python_reference() + MULTILINGUAL + EMOJI, 3000, special_tokens=["<|endoftext|>"])
    ours = BytePairEncoder.from_gpt2(*files_of(theirs, tmp_path))
    ids = ours.encode(TEXTS[name])
    assert ids == theirs.encode(TEXTS[name]).ids
    assert ours.decode(ids) == theirs.decode(ids) == TEXTS[name]
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
