"""How good a model is: means over whole data sets however they are cut into batches, and scores of translations."""

import gc
from functools import partial
from types import SimpleNamespace
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sacrebleu
from jax.extend.backend import get_backend
from toy_models import Bigram

import plainformer as pf
from plainformer.data.batches import consecutive_batches, length_buckets, random_batches
from plainformer.data.named_batches import LabelledBatch, MaskedBatch, Windows
from plainformer.data.windows import consecutive_windows, stream_windows
from plainformer.training.evaluation import (
    accuracy,
    bits_per_character,
    corpus_bleu,
    corpus_chrf,
    corpus_loss,
    mean_loss,
)
from plainformer.training.losses import next_token_loss

VOCAB = 7
RANDOM = np.random.default_rng(0)
TEXT = RANDOM.integers(0, VOCAB, 24)  # 23 targets: four windows of five and one of three
TABLE = RANDOM.normal(size=(VOCAB, VOCAB))


class Model(eqx.Module):
    """Logits from a table, for tokens or, with a further axis, for whole texts; padding is as good as any token."""

    bigram: Bigram
    whole: bool = False

    def __call__(self, tokens, is_token=None, segments=None, *, key=None):
        assert key is None  # dropout is off
        logits = self.bigram(tokens)
        return logits.mean(axis=-2) if self.whole else logits


class Reading(Model):
    """One that reads five tokens at a time."""

    config: ClassVar = SimpleNamespace(context_len=5)


class Translator(eqx.Module):
    """Logits from the token before and the number of source tokens."""

    bigram: Bigram

    def __call__(self, source, inputs, is_source, *, key=None):
        return self.bigram(inputs) * is_source.sum(axis=-1).astype(jnp.float32)[:, None, None]


def surprises(table, inputs, targets):
    """Minus the log-probability of each target, in float64."""
    logits = np.asarray(table, np.float64)[inputs]
    return np.log(np.exp(logits).sum(axis=-1)) - np.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]


@pytest.fixture
def model():
    """A model of two tokens at a time."""
    return Model(Bigram(TABLE))


@pytest.mark.equation("eq-decoder-loss")
@pytest.mark.parametrize("batch_size", [2, 64])
def test_corpus_loss_is_the_mean_over_all_tokens(model, batch_size):
    expected = surprises(TABLE, TEXT[:-1], TEXT[1:]).mean()
    found = corpus_loss(model, consecutive_windows(TEXT, 5), batch_size=batch_size)
    assert isinstance(found, float)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    streamed = mean_loss(model, next_token_loss, stream_windows(TEXT, 5, batch_size))
    np.testing.assert_allclose(streamed, expected, rtol=1e-5)


@pytest.mark.equation("eq-decoder-bits")
def test_bits_per_character_count_what_is_guessed():
    bpe = pf.BytePairEncoder.train("aaaa bbbb " * 9, 262, special=["<end>"])
    text = "aaaa bb<end>b aaaa"
    ids = np.array(bpe.encode(text, allowed_special=["<end>"]))
    table = RANDOM.normal(size=(len(bpe), len(bpe)))
    bits = surprises(table, ids[:-1], ids[1:]).sum() / np.log(2)
    found = bits_per_character(Reading(Bigram(table)), text, bpe, allowed_special=["<end>"])
    np.testing.assert_allclose(found, bits / (len("aaaa bbb aaaa") - len(bpe.decode(ids[:1]))), rtol=1e-5)


def test_mean_loss_and_accuracy_of_next_tokens_weigh_targets_not_batches(model):
    batches = [Windows(TEXT[None, :9], TEXT[None, 1:10]), Windows(TEXT[None, 9:12], TEXT[None, 10:13])]
    expected = surprises(TABLE, TEXT[:12], TEXT[1:13])
    np.testing.assert_allclose(mean_loss(model, next_token_loss, batches), expected.mean(), rtol=1e-5)
    assert abs(expected.mean() - (expected[:9].mean() + expected[9:].mean()) / 2) > 0.01
    assert accuracy(model, batches) == pytest.approx((TABLE[TEXT[:12]].argmax(axis=1) == TEXT[1:13]).mean())
    everything = consecutive_windows(TEXT, 5)
    assert accuracy(model, [everything]) == pytest.approx((TABLE[TEXT[:-1]].argmax(axis=1) == TEXT[1:]).mean())


def test_mean_loss_and_accuracy_of_a_masked_model_are_over_what_was_hidden(model):
    tokens, targets = RANDOM.integers(0, VOCAB, (2, 5, 6))
    is_selected = np.arange(6) < np.array([3, 1, 0, 2, 6])[:, None]
    is_token = np.ones((5, 6), bool)
    batches = consecutive_batches([MaskedBatch(tokens, targets, is_selected, is_token, tokens)], 2)
    expected = surprises(TABLE, tokens, targets)[is_selected].mean()
    np.testing.assert_allclose(mean_loss(model, pf.masked_token_loss, batches), expected, rtol=1e-5)
    hits = TABLE[tokens].argmax(axis=-1) == targets
    assert accuracy(model, batches) == pytest.approx(hits[is_selected].mean())
    without = [MaskedBatch(*batch[:3]) for batch in batches]
    assert accuracy(model, without) == accuracy(model, batches)


def test_mean_loss_and_accuracy_of_a_classifier_are_over_texts():
    model = Model(Bigram(TABLE), whole=True)
    tokens, labels = RANDOM.integers(0, VOCAB, (5, 6)), RANDOM.integers(0, VOCAB, 5)
    batches = consecutive_batches([LabelledBatch(tokens, labels, np.ones((5, 6), bool))], 2)
    logits = TABLE[tokens].mean(axis=1)
    expected = -np.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1).mean()
    np.testing.assert_allclose(mean_loss(model, pf.classification_loss, batches), expected, rtol=1e-5)
    assert accuracy(model, batches) == pytest.approx((logits.argmax(axis=1) == labels).mean())


PAIRS = [([1] * source, RANDOM.integers(0, 5, target).tolist()) for source, target in [(1, 4), (3, 2), (2, 0), (6, 5)]]
SIZES = pf.Seq2SeqConfig(VOCAB, 9, start_token=5, stop_token=6, source_len=8)


def test_mean_loss_of_translations_is_the_same_with_and_without_buckets():
    model, loss = Translator(Bigram(TABLE)), partial(pf.translation_loss, label_smoothing=0.2)
    whole = pf.translation_batch(PAIRS, SIZES)
    buckets = [pf.translation_batch(bucket, SIZES) for bucket in length_buckets(PAIRS, 3)]
    batches = consecutive_batches(buckets, 1)
    assert len({batch.inputs.shape for batch in batches}) == 3
    expected = loss(model, whole)
    np.testing.assert_allclose(mean_loss(model, loss, [whole]), expected, rtol=1e-5)
    np.testing.assert_allclose(mean_loss(model, loss, batches), expected, rtol=1e-5)
    assert accuracy(model, batches) == pytest.approx(accuracy(model, [whole]))
    hits = np.asarray(model(whole.source, whole.inputs, whole.is_source).argmax(axis=-1) == whole.targets)
    assert accuracy(model, [whole]) == pytest.approx(hits[np.asarray(whole.is_target)].mean())


def test_buckets_have_few_programs_for_many_lengths():
    pairs = [([1] * source, [2] * target) for source, target in RANDOM.integers(1, 8, (200, 2))]
    traces = []

    def loss(model, batch, key=None):
        traces.append(batch.inputs.shape)
        return pf.translation_loss(model, batch, key)

    model = Translator(Bigram(TABLE))
    batch_at = random_batches([pf.translation_batch(bucket, SIZES) for bucket in length_buckets(pairs, 3)], 4)
    mean_loss(model, loss, map(batch_at, range(20)))
    assert len(traces) == len(set(traces)) == 3
    mean_loss(model, loss, map(batch_at, range(20, 30)))
    assert len(traces) == 3  # and none again, at the next call


def test_mean_loss_keeps_no_more_than_a_few_programs_of_losses_made_anew(model):
    def num_programs(calls):
        for _ in range(calls):
            mean_loss(
                model, lambda model, batch, key: next_token_loss(model, batch, key), [consecutive_windows(TEXT, 5)]
            )
        gc.collect()
        return len(get_backend().live_executables())

    few = num_programs(9)
    assert num_programs(12) <= few


def test_mean_loss_takes_a_loss_that_holds_arrays(model):
    class Weighted(eqx.Module):
        by: jnp.ndarray

        def __call__(self, model, batch, key):
            return self.by * next_token_loss(model, batch, key)

    batches = [consecutive_windows(TEXT, 5)]
    once, twice = (mean_loss(model, Weighted(jnp.asarray(by)), batches) for by in (1.0, 2.0))
    assert twice == pytest.approx(2 * once)


def test_mean_loss_takes_losses_and_batches_of_the_readers_own(model):
    def squares(model, batch, key):
        return ((model - batch["x"]) ** 2).mean()

    batches = [({"x": jnp.array([1.0, 3.0])}["x"],), (jnp.array([5.0]),)]

    def own(model, batch, key):
        return squares(model, {"x": batch[0]}, key)

    assert mean_loss(jnp.array(1.0), own, batches) == pytest.approx((0 + 4 + 16) / 3)
    pairs = [(jnp.zeros((2, 4)), jnp.ones((2, 4))), (jnp.zeros((1, 4)), jnp.full((1, 4), 3.0))]
    assert mean_loss(None, lambda model, batch, key: (batch[1] - batch[0]).mean(), pairs) == pytest.approx(5 / 3)


def test_mean_loss_shows_a_bar_only_if_asked(model, capsys):
    batches = consecutive_batches([consecutive_windows(TEXT, 5)], 2)
    mean_loss(model, next_token_loss, batches)
    assert capsys.readouterr().err == ""
    mean_loss(model, next_token_loss, batches, progress=True)
    assert "3/3" in capsys.readouterr().err


TEXTS = ["A dog runs over the grass.", "Two men sit."]
REFERENCES = ["A dog runs across the grass.", "Two men are sitting."]


def test_corpus_bleu_is_that_of_sacrebleu():
    assert corpus_bleu(TEXTS, TEXTS) == pytest.approx(100)
    expected = sacrebleu.corpus_bleu(TEXTS, [REFERENCES])
    assert corpus_bleu(TEXTS, REFERENCES) == expected.score
    assert 0 < expected.score < 100
    # By hand: of ten characters nine, of nine pairs eight, of eight triples seven, of seven runs of four six.
    assert corpus_bleu(["1987-10-06"], ["1987-10-05"], tokenize="char") == pytest.approx(100 * 0.6**0.25)
    assert corpus_bleu(["a Dog runs OVER the grass."], TEXTS[:1], lowercase=True) == pytest.approx(100)


def test_corpus_chrf_is_that_of_sacrebleu():
    assert corpus_chrf(TEXTS, TEXTS) == pytest.approx(100)
    assert corpus_chrf(TEXTS, REFERENCES) == sacrebleu.corpus_chrf(TEXTS, [REFERENCES]).score < 100
    with_words = sacrebleu.corpus_chrf(TEXTS, [REFERENCES], word_order=2).score
    assert corpus_chrf(TEXTS, REFERENCES, word_order=2) == with_words != corpus_chrf(TEXTS, REFERENCES)


@pytest.mark.parametrize("score", [corpus_bleu, corpus_chrf])
def test_scores_take_several_references_of_a_text(score):
    assert score(TEXTS, [[REFERENCES[0], TEXTS[0]], TEXTS[1]]) == pytest.approx(100)
    assert score(TEXTS, [[each] for each in REFERENCES]) == score(TEXTS, REFERENCES)
    assert score(TEXTS, [[REFERENCES[0], TEXTS[0]], REFERENCES[1]]) > score(TEXTS, REFERENCES)


WINDOWS = consecutive_windows([0, 1, 2], 2)
NOTHING = (*[np.zeros((2, 5), int)] * 2, np.zeros((2, 5), bool))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: corpus_loss(m, (np.zeros((0, 5), int),) * 3), ValueError, "windows is 0"),
        (lambda m: corpus_loss(m, NOTHING), ValueError, "No target counts"),
        (lambda m: mean_loss(m, next_token_loss, []), ValueError, "No target counts"),
        (lambda m: mean_loss(m, next_token_loss, WINDOWS), TypeError, "expected tuples of arrays"),
        (lambda m: mean_loss(m, next_token_loss, lambda step: WINDOWS), TypeError, "batches is of type function"),
        (lambda m: mean_loss(m, lambda model, batch, key: jnp.ones(2), [WINDOWS]), TypeError, "The loss has shape"),
        (lambda m: accuracy(m, [(TEXT, TEXT)]), TypeError, "batch is a tuple"),
        (lambda m: accuracy(m, [LabelledBatch(TEXT[:5], np.ones(5, np.float32))]), TypeError, "targets hold float32"),
        (lambda m: accuracy(m, [LabelledBatch(TEXT[:6].reshape(2, 3), TEXT[:2])]), ValueError, "Logits have shape"),
        (lambda m: corpus_bleu("a dog", "a dog"), TypeError, "texts"),
        (lambda m: corpus_bleu(TEXTS, [REFERENCES]), ValueError, "2 texts and 1 references"),
        (lambda m: corpus_chrf(["a"], [["a", 3]]), TypeError, r"references\[0\]\[1\] is 3"),
        (lambda m: corpus_chrf(["a"], [[]]), TypeError, r"references\[0\]"),
    ],
)
def test_bad_input_is_named(model, call, error, message):
    with pytest.raises(error, match=message):
        call(model)


class Counted(NamedTuple):
    inputs: np.ndarray
    targets: np.ndarray
    counts: np.ndarray

    @property
    def read(self):
        return (self.inputs,)


@pytest.mark.parametrize("counts", [[2, 3, 1], [0.5, 1.0, 0.5]])
def test_accuracy_weighs_targets_by_their_counts(counts):
    def model(tokens):
        return jax.nn.one_hot(tokens + 1, 4)

    batch = Counted(np.array([0, 1, 2]), np.array([1, 2, 0]), np.array(counts))
    assert accuracy(model, [batch]) == pytest.approx(sum(counts[:2]) / sum(counts))
