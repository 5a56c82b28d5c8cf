"""A text ends at a string wherever its tokens are cut, in a stream as without, alone as among others."""

import jax.numpy as jnp
import numpy as np
import pytest
from toy_models import drawn

import plainformer as pf
from plainformer.generation.stopping import Written

LETTERS = pf.BytePairEncoder.train("lower lower lower lowest " * 9, 262, special=["<end>"])
END = LETTERS.special["<end>"]
STACK = pf.StackConfig(d_model=8, num_layers=1, num_heads=2, d_ff=8, position_scheme="rotary")
MODEL = drawn(pf.Decoder, pf.DecoderConfig(len(LETTERS), 40, stack=STACK))


def saying(*texts):
    """What makes a model say a text, one for each first byte of a prompt, and then end it again and again."""
    scripts = np.full((256, 24), END)
    for text in texts:
        ids = LETTERS.encode(text)
        scripts[ids[0], : len(ids)] = ids

    def adjust(logits, prompt, written):
        token = jnp.asarray(scripts)[prompt[-1], (written >= 0).sum()]
        return jnp.where(jnp.arange(len(logits)) == token, 0.0, -jnp.inf)

    return adjust


def say(text, stop, **options):
    """What `generate` returns of a model that says this text."""
    prompt = LETTERS.encode(text)[:1]
    return pf.generate(MODEL, prompt, 24, temperature=0, tokenizer=LETTERS, stop_tokens=[END], stop=stop,
                       adjust=saying(text), **options)  # fmt: skip


@pytest.mark.parametrize(
    ("stop", "expected"),
    [
        ((), "so lower\n\nand lower"),
        ("\n\n", "so lower"),  # across tokens
        ("we", "so lo"),  # within a token
        (["and", "r\n"], "so lowe"),  # of several, the one that is first
        ("r\nx", "so lower\n\nand lower"),  # which never comes
        ("so", ""),  # at once
    ],
)
def test_a_text_ends_before_a_stop_string(stop, expected):
    found = say("so lower\n\nand lower", stop)
    assert found.text == expected
    assert found.stopped
    assert LETTERS.decode(found.tokens).startswith(expected)
    assert len(found.log_probs) == len(found.tokens)
    streamed = list(say("so lower\n\nand lower", stop, stream=True))
    assert LETTERS.decode([token for token in streamed if token != END]) == expected


def test_what_may_become_a_stop_string_is_held_back():
    written, arrived = Written(("\n\nx",), LETTERS), ""
    for token in LETTERS.encode("ab\nc\n\nd"):
        written.append(token, 0.0, False)
        arrived += LETTERS.decode(written.released(is_over=False))
        assert not arrived.endswith("\n")  # it comes with what shows that it is none
    assert arrived == "ab\nc\n\nd"


def test_texts_of_a_batch_end_each_at_its_own_string():
    texts = ["a lower b", "b\nc lower", "c"]
    options = {"temperature": 0, "tokenizer": LETTERS, "stop_tokens": [END], "stop": [" lo", "\n"],
               "adjust": saying(*texts)}  # fmt: skip
    prompts = [LETTERS.encode(text)[:1] for text in texts]
    found = pf.generate(MODEL, prompts, 24, **options)
    assert [each.text for each in found] == ["a", "b", "c"]
    columns = zip(*pf.generate(MODEL, prompts, 24, stream=True, **options), strict=True)
    streamed = [[token for token in column if token not in (None, END)] for column in columns]
    assert [LETTERS.decode(ids) for ids in streamed] == ["a", "b", "c"]


def test_special_tokens_are_named_in_prompts_and_among_stop_tokens(unchecked):
    options = {"temperature": 0, "tokenizer": LETTERS}
    named = pf.generate(MODEL, "<end>lower", 6, allowed_special=["<end>"], stop_tokens=["<end>"], **options)
    assert named == pf.generate(MODEL, [END, *LETTERS.encode("lower")], 6, stop_tokens=[END], **options)
    assert named.log_probs != pf.generate(MODEL, "<end>lower", 6, **options).log_probs  # letters, if not allowed
    with pytest.raises(ValueError, match=r"begins behind .* \[tokenizer.special\['<end>'\]\]"):
        pf.generate(MODEL, "", 6, **options)
    with pytest.raises(ValueError, match=r"allowed_special .* no tokenizer"):
        pf.generate(MODEL, [1], 6, temperature=0, allowed_special=["<end>"])
    letters = pf.Vocabulary(map(chr, range(97, 97 + len(LETTERS))))
    with pytest.raises(TypeError, match="expected none with a Vocabulary"):
        pf.generate(MODEL, "a", 6, temperature=0, tokenizer=letters, allowed_special=["<end>"])


def test_what_is_no_stop_string_is_refused(unchecked):
    for stop, kind in [("", ValueError), ([3], TypeError), (3, TypeError)]:
        with pytest.raises(kind, match=r"^stop"):
            say("a", stop)
    with pytest.raises(ValueError, match="tokenizer"):
        pf.generate(MODEL, [97], 2, temperature=0, stop="a")
