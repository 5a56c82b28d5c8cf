"""Choosing among texts: answers read as they would be written, lengths, and the majority."""

import jax.numpy as jnp
import numpy as np
import pytest
from flat import decoder_config
from toy_models import drawn

import plainformer as pf
from plainformer.generation import best_of, majority, read_answers
from plainformer.generation.sampling import Continuation

VOCABULARY = pf.Vocabulary(["no", "yes", "perhaps", "it", "is"], separator=" ")


def text(words: str, log_prob: float) -> Continuation:
    tokens = VOCABULARY.encode(words)
    return Continuation(tokens, words, log_prob, False, [log_prob / len(tokens)] * len(tokens))


@pytest.fixture(scope="module")
def model():
    sizes = {"d_model": 12, "num_layers": 2, "num_heads": 3, "d_ff": 10, "position_scheme": "learned"}
    return drawn(pf.Decoder, decoder_config(5, 24, **sizes), seed=3)


@pytest.mark.equation("eq-decoder-factorisation")
def test_read_answers_gives_what_the_model_gives_to_their_tokens(model):
    prompt, answers = "it is", ["no", "perhaps it is", "yes yes"]
    found = read_answers(model, prompt, answers, tokenizer=VOCABULARY)
    for answer, read in zip(answers, found, strict=True):
        ids = jnp.asarray(VOCABULARY.encode(f"{prompt} {answer}"))
        np.testing.assert_allclose(read.log_probs, pf.generation.sequence_log_probs(model, ids)[1:], atol=1e-5)
        assert read.log_prob == pytest.approx(sum(read.log_probs))
        assert (read.text, read.tokens) == (answer, VOCABULARY.encode(answer))
    ids = read_answers(model, [1, 2], [[3], [4, 0]])
    assert [each.text for each in ids] == [None, None]
    [longest] = read_answers(model, [1] * 20, [[2] * 5])  # the last token need not be read
    assert len(longest.log_probs) == 5


@pytest.mark.equation("eq-serving-choice")
def test_best_of_divides_by_what_it_is_told():
    texts = [text("no", -2.0), text("yes it is", -4.5), text("perhaps", -2.4)]
    assert best_of(texts, per="text").text == "no"  # -2
    assert best_of(texts, per="token").text == "yes it is"  # -1.5 beside -2 and -2.4
    assert best_of(texts, per="character").text == "perhaps"  # -0.34 beside -1 and -0.5
    assert best_of(texts).text == "yes it is"
    assert best_of(texts[:1] * 2) is texts[0]
    stopped = Continuation([0], "", -0.5, True, [-0.5])  # no character at all counts as one
    assert best_of([stopped, texts[2]], per="character").text == "perhaps"


@pytest.mark.equation("eq-serving-majority")
def test_majority_counts_whole_texts():
    texts = [text("no", -0.1), text("yes", -3.0), text("perhaps", -1.0), text("yes", -3.0)]
    assert majority(texts).text == "yes"
    assert majority(texts[:3]).text == "no"  # of equally frequent ones the first
    without = [each._replace(text=None) for each in texts]
    assert majority(without).tokens == VOCABULARY.encode("yes")


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        (lambda model: best_of([]), ValueError, "texts"),
        (lambda model: majority(["no"]), TypeError, "texts"),
        (lambda model: best_of([text("no", -1.0)], per="word"), ValueError, "per"),
        (lambda model: best_of([text("no", -1.0)._replace(text=None)], per="character"), ValueError, "tokenizer"),
        (lambda model: read_answers(model, [1], [2, 3]), TypeError, "answers"),
        (lambda model: read_answers(model, [1], [[2], []]), ValueError, "answers"),
        (lambda model: read_answers(model, [1] * 20, [[2] * 6]), ValueError, "context_len"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_choosing_says_what_is_wrong(model, wrong, error, says):
    with pytest.raises(error, match=says):
        wrong(model)
