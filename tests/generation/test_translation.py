"""Pairs of texts: how they become arrays, how wrong a model is on them, and translating many at once."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toy_translators import CONTEXT, START, STOP, VOCAB, new_config, new_model

import plainformer as pf

PAIRS = [([2, 7, 1, 8, 5], [3, 0]), ([6, 10], [8, 8, 2, 10, 1]), ([3, 1, 3], [])]
SOURCES = [[2, 7, 1, 8, 5], [6, 10], [3, 1, 4, 1, 5], [8, 8], [5, 2]]  # of two lengths: each has a program
SEED = 35  # its texts differ in length and in their tokens


@eqx.filter_jit
def loss(model, batch, key=None, share=0.0):
    return pf.translation_loss(model, batch, key, label_smoothing=share)


@pytest.fixture(scope="module")
def model():
    """A model that writes something else for each source: the larger its numbers, the more texts differ."""
    return jax.tree.map(lambda leaf: 2 * leaf, new_model(jax.random.key(SEED), "rotary-modern", num_decoder_layers=1))


@pytest.fixture(scope="module")
def log_probs(model):
    """The log-probabilities at every token of each target, read alone."""
    found = []
    for source, target in PAIRS:
        logits = np.asarray(eqx.filter_jit(model)(jnp.array(source), jnp.array([START, *target])), np.float64)
        found.append(logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)))
    return found


def test_translation_batch_by_hand():
    source, is_source, inputs, targets, is_target = pf.translation_batch(PAIRS, new_config())
    assert source.tolist() == [[2, 7, 1, 8, 5], [6, 10, 0, 0, 0], [3, 1, 3, 0, 0]]
    assert is_source.sum(axis=1).tolist() == [5, 2, 3]
    assert inputs.tolist() == [[9, 3, 0, 0, 0, 0], [9, 8, 8, 2, 10, 1], [9, 0, 0, 0, 0, 0]]
    assert targets.tolist() == [[3, 0, 4, 0, 0, 0], [8, 8, 2, 10, 1, 4], [4, 0, 0, 0, 0, 0]]
    assert is_target.sum(axis=1).tolist() == [3, 6, 1]
    for rows in (is_source, is_target):
        assert (rows[:, :-1] >= rows[:, 1:]).all()  # padding on the right


def test_translation_batch_is_as_long_as_asked_for():
    source, is_source, *rest = pf.translation_batch(PAIRS, new_config(), source_len=6, target_len=8)
    assert source.shape == is_source.shape == (3, 6)
    assert [each.shape for each in rest] == [(3, 8)] * 3
    assert not is_source[:, 5:].any()
    assert not rest[2][:, 6:].any()


@pytest.mark.equation("eq-seq2seq-label-smoothing")
def test_cross_entropy_with_label_smoothing_by_hand():
    logits, share = np.array([[1.0, -0.5, 2.0, 0.3], [0.0, 3.0, -1.0, 0.5], [9.0, 9.0, 9.0, 9.0]]), 0.35
    log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    total = 0.0
    for row, target in zip(log_probs[:2], [2, 0], strict=True):
        expected = [share / 4 + (1 - share) * (token == target) for token in range(4)]  # sums to one
        total -= sum(share_of_it * float(log_prob) for share_of_it, log_prob in zip(expected, row, strict=True))
    is_target = jnp.array([True, True, False])
    found = pf.cross_entropy(jnp.array(logits), jnp.array([2, 0, 3]), is_target, label_smoothing=share)
    np.testing.assert_allclose(found, total / 2, rtol=1e-6)


@pytest.mark.equation("eq-seq2seq-loss")
@pytest.mark.parametrize("share", [0.0, 0.15])
def test_translation_loss_is_the_mean_over_the_tokens_of_each_target_alone(model, log_probs, share):
    terms = [
        (1 - share) * row[token] + share * row.mean()
        for rows, (_, target) in zip(log_probs, PAIRS, strict=True)
        for row, token in zip(rows, [*target, STOP], strict=True)
    ]
    found = loss(model, pf.translation_batch(PAIRS, model.config), share=share)
    np.testing.assert_allclose(found, -np.mean(terms), rtol=1e-5)


@pytest.mark.equation("eq-seq2seq-loss")
def test_translation_loss_is_not_reached_by_padding(model):
    batch = pf.translation_batch(PAIRS, model.config, source_len=6, target_len=8)
    source, is_source, inputs, targets, is_target = batch
    other = pf.data.TranslationBatch(
        jnp.where(is_source, source, 4),
        is_source,
        jnp.where(is_target, inputs, 4),
        jnp.where(is_target, targets, 99),  # not even an id
        is_target,
    )
    slope = eqx.filter_jit(eqx.filter_value_and_grad(pf.translation_loss))
    (value, gradient), (value_too, gradient_too) = slope(model, batch), slope(model, other)
    np.testing.assert_allclose(value, value_too, rtol=1e-6)
    for one, two in zip(jax.tree.leaves(gradient), jax.tree.leaves(gradient_too), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)


def test_translation_loss_drops_with_a_key(model):
    batch = pf.translation_batch(PAIRS, model.config)
    dropping = new_model(kind="rotary-modern", num_decoder_layers=1, dropout_rate=0.3)
    dropping = jax.tree.unflatten(jax.tree.structure(dropping), jax.tree.leaves(model))  # the same numbers
    assert loss(dropping, batch, jax.random.key(0)) != loss(dropping, batch, jax.random.key(1))
    np.testing.assert_allclose(loss(dropping, batch), loss(model, batch), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.equation("eq-seq2seq-loss")
def test_fit_teaches_a_model_to_turn_texts_round(key):
    draw = np.random.default_rng(0)
    texts = [draw.integers(5, 9, size=draw.integers(1, 4)).tolist() for _ in range(64)]
    config = new_config(d_model=24, d_ff=32, num_decoder_layers=1, position_scheme="learned")
    batch = pf.translation_batch([(text, text[::-1]) for text in texts], config)
    training = pf.TrainingConfig(num_steps=120, learning_rate=0.01, warmup_steps=10)
    result = pf.fit(pf.Seq2Seq(config, key=key), pf.translation_loss, lambda step: batch, training, progress=False)
    assert result.metrics[0]["loss"] > 1.5
    assert result.metrics[-1]["loss"] < 0.1
    found = targets(pf.translate(result.model, texts[:20], 4))
    assert pf.generation.exact_match(found, [text[::-1] for text in texts[:20]]) > 0.9


def one_by_one(model, sources, max_new_tokens, beam_width=None, **options):
    """Each source alone and without padding, as `translate` is to give it."""
    found, options = [], {"stop_tokens": [STOP], **options}
    for source in sources:
        alone = model.condition_on(jnp.array(source))
        if beam_width:
            best, *_ = pf.beam_search(alone, [START], max_new_tokens, beam_width=beam_width, **options)
        else:
            best = pf.generate(alone, [START], max_new_tokens, temperature=0.0, **options)
        found.append(best)
    return targets(found)


def targets(found):
    """What was written, without the token that stopped it."""
    return [text.tokens[:-1] if text.stopped else text.tokens for text in found]


def test_translate_of_unequal_sources_is_each_one_alone(model):
    expected = one_by_one(model, SOURCES, CONTEXT)
    assert len({tuple(text) for text in expected}) > 2
    assert len({len(text) for text in expected}) > 1
    assert targets(pf.translate(model, SOURCES)) == expected
    assert targets(pf.translate(model, SOURCES, batch_size=3)) == expected  # the last one of the second batch twice
    assert [len(text) for text in targets(pf.translate(model, SOURCES, 2))] == [min(len(text), 2) for text in expected]
    assert not any(STOP in text for text in expected)


def test_translate_with_a_beam_is_each_one_alone(model):
    expected = one_by_one(model, SOURCES, 5, beam_width=3, length_power=0.5)
    assert targets(pf.translate(model, SOURCES, 5, beam_width=3, length_power=0.5)) == expected
    assert targets(pf.translate(model, SOURCES, beam_width=1)) == targets(pf.translate(model, SOURCES))


def test_translate_draws_for_each_source(model):
    sources = [[5, 2]] * 6

    def draw(key, **options):
        return targets(pf.translate(model, sources, 6, temperature=5.0, key=key, **options))

    found = draw(jax.random.key(0))
    assert found == draw(jax.random.key(0))
    assert found != draw(jax.random.key(1))
    assert len({tuple(text) for text in found}) > 2
    assert draw(jax.random.key(0), batch_size=3) == found  # neither the batch nor the other sources count
    sources = [[1], [5, 2], [3], [5, 2]]
    assert [draw(jax.random.key(0))[place] for place in (1, 3)] == found[:2]


@pytest.mark.equation("eq-seq2seq-exact-match")
def test_translate_ends_before_a_stop_string(model):
    letters = pf.Vocabulary(map(chr, range(97, 97 + VOCAB)))
    whole = [each.text for each in pf.translate(model, SOURCES, tokenizer=letters, batch_size=2)]
    stop = whole[0][1:3]
    found = pf.translate(model, SOURCES, tokenizer=letters, batch_size=2, stop=stop)
    assert [each.text for each in found] == [text.split(stop)[0] for text in whole]
    with pytest.raises(TypeError, match="which ranks whole tokens"):
        pf.translate(model, SOURCES, tokenizer=letters, stop=stop, beam_width=2)


def test_exact_match_counts_what_is_the_same_throughout():
    assert pf.generation.exact_match([[1, 2], [3], [], [4, 5]], [[1, 2], [3, 3], [], [5, 4]]) == 0.5
    assert pf.generation.exact_match(["one", "two", "three"], ["one", "Two", "three"]) == pytest.approx(2 / 3)
    assert pf.generation.exact_match([np.array([1, 2])], [[1, 2]]) == 1.0


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: pf.cross_entropy(jnp.zeros((2, 3)), jnp.array([0, 1]), label_smoothing=1.0), ValueError, "label_sm"),
        (lambda m: pf.translation_batch([], m.config), ValueError, "texts"),
        (lambda m: pf.translation_batch([[1, 2, 3]], m.config), TypeError, r"pairs\[0\]"),
        (lambda m: pf.translation_batch([([1] * 7, [1])], m.config), ValueError, "source_len=6"),
        (lambda m: pf.translation_batch([([1], [1]), ([1], [1] * 8)], m.config), ValueError, "context_len=8"),
        (lambda m: pf.translation_batch([([1], [1]), ([1], [2, START])], m.config), ValueError, r"targets\[1, 1\]"),
        (lambda m: pf.translation_batch([([1], [STOP, 1])], m.config), ValueError, r"targets\[0, 0\]"),
        (lambda m: pf.translation_batch([([1, VOCAB], [1])], m.config), ValueError, r"sources\[0, 1\]"),
        (lambda m: pf.translation_loss(m, pf.translation_batch(PAIRS, m.config)[:4]), TypeError, "TranslationBatch"),
        (lambda m: pf.translate(m, [[1], [2], [1, 99]], batch_size=1), ValueError, r"sources\[2\]\[1\]"),
        (lambda m: pf.translate(m.encoder, [[1]]), TypeError, "Seq2Seq"),
        (lambda m: pf.translate(m, [[1] * 7]), ValueError, "source_len=6"),
        (lambda m: pf.translate(m, [[4]], beam_width=2, top_k=3), TypeError, "top_k"),
        (lambda m: pf.translate(m, [[4]], top_k=3), TypeError, "top_k"),
        (lambda m: pf.translate(m, [[4]], length_power=0.5), TypeError, "length_power"),
        (lambda m: pf.generation.exact_match([[1]], []), ValueError, "equally many"),
        (lambda m: pf.generation.exact_match([], []), ValueError, "equally many"),
        (lambda m: pf.generation.exact_match([[1, 2]], ["ab"]), TypeError, "strings"),
        (lambda m: m.condition_on([[3, 4], [5]]), TypeError, "unequal length"),
        (lambda m: pf.generate(m.condition_on(jnp.array([3])), [[START], [4]], 2), ValueError, r"prompts\[1\]"),
        (lambda m: pf.generate(m, [[START]], 2), TypeError, "condition_on"),
    ],
)
def test_bad_input_is_named(model, call, error, message):
    with pytest.raises(error, match=message):
        call(model)


@pytest.mark.parametrize("beam_width", [None, 2])
def test_translate_stops_at_its_own_stop_token_beside_others(model, beam_width):
    plain = pf.translate(model, SOURCES, beam_width=beam_width)
    assert any(each.stopped for each in plain)
    found = pf.translate(model, SOURCES, beam_width=beam_width, stop_tokens=[STOP])
    assert [each.tokens for each in found] == [each.tokens for each in plain]


def test_translate_ends_at_whichever_stop_token_comes_first(model):
    whole = pf.translate(model, [3, 4])
    other = whole.tokens[-2]
    found = pf.translate(model, [3, 4], stop_tokens=[other])
    assert found.tokens == whole.tokens[: whole.tokens.index(other) + 1]
    assert found.stopped
