"""Pairs of texts: how they become arrays, how wrong a model is on them, and translating many at once."""

import math

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
    shorter = pf.translation_batch(PAIRS, new_config())
    assert (source[:, :5] == shorter[0]).all()
    assert (rest[1][:, :6] == shorter[3]).all()
    assert not is_source[:, 5:].any()
    assert not rest[2][:, 6:].any()


@pytest.mark.equation("eq-seq2seq-label-smoothing")
@pytest.mark.parametrize("share", [0.1, 0.35])
def test_cross_entropy_with_label_smoothing_by_hand(share):
    logits = np.array([[1.0, -0.5, 2.0, 0.3], [0.0, 3.0, -1.0, 0.5], [9.0, 9.0, 9.0, 9.0]])
    log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    total = 0.0
    for row, target in zip(log_probs[:2], [2, 0], strict=True):
        expected = [share / 4 + (1 - share) * (token == target) for token in range(4)]  # sums to one
        total -= sum(share_of_it * float(log_prob) for share_of_it, log_prob in zip(expected, row, strict=True))
    found = pf.cross_entropy(
        jnp.array(logits), jnp.array([2, 0, 3]), jnp.array([True, True, False]), label_smoothing=share
    )
    np.testing.assert_allclose(found, total / 2, rtol=1e-6)


@pytest.mark.equation("eq-seq2seq-label-smoothing")
def test_cross_entropy_with_label_smoothing_is_least_at_the_smoothed_target():
    share, target = 0.2, 3
    best = jnp.log(jnp.where(jnp.arange(5) == target, 1 - share + share / 5, share / 5))

    @jax.jit
    def loss(logits):
        return pf.cross_entropy(logits[None], jnp.array([target]), label_smoothing=share)

    np.testing.assert_allclose(jax.grad(loss)(best), 0, atol=1e-7)
    np.testing.assert_allclose(loss(best), -(jnp.exp(best) * best).sum(), rtol=1e-6)  # the entropy of the target
    assert loss(best) < loss(best.at[target].add(1.0))  # surer of it is worse
    assert loss(best) < loss(best.at[target].add(-1.0))


@pytest.mark.equation("eq-seq2seq-label-smoothing")
def test_cross_entropy_without_label_smoothing_computes_nothing_more(key):
    logits, targets = jax.random.normal(key, (5, 7)), jnp.array([0, 6, 2, 2, 1])
    plain = jax.make_jaxpr(lambda logits: pf.cross_entropy(logits, targets))(logits)
    assert str(jax.make_jaxpr(lambda logits: pf.cross_entropy(logits, targets, label_smoothing=0.0))(logits)) == str(
        plain
    )
    assert pf.cross_entropy(logits, targets, label_smoothing=0.3) != pf.cross_entropy(logits, targets)


@pytest.mark.parametrize(
    ("share", "error", "message"),
    [
        (1.0, ValueError, r"label_smoothing is 1\.0; expected at least 0 and below 1"),
        (-0.1, ValueError, r"label_smoothing is -0\.1; expected at least 0"),
        (10, ValueError, r"label_smoothing is 10; expected at least 0 .*such as 0\.1"),
        ("0.1", TypeError, r"label_smoothing is '0\.1'; expected a number"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_cross_entropy_names_a_bad_share(share, error, message):
    with pytest.raises(error, match=message):
        pf.cross_entropy(jnp.zeros((2, 3)), jnp.array([0, 1]), label_smoothing=share)


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
def test_exact_match_counts_what_is_the_same_throughout():
    assert pf.generation.exact_match([[1, 2], [3], [], [4, 5]], [[1, 2], [3, 3], [], [5, 4]]) == 0.5
    assert pf.generation.exact_match(["one", "two", "three"], ["one", "Two", "three"]) == pytest.approx(2 / 3)
    assert pf.generation.exact_match([np.array([1, 2])], [[1, 2]]) == 1.0
    assert pf.generation.exact_match([[1, 2]], [[1, 2, 0]]) == 0.0
    assert not math.isnan(pf.generation.exact_match([[]], [[]]))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: pf.translation_batch([], m.config), ValueError, r"texts is empty; expected at least one"),
        (lambda m: pf.translation_batch([([], [1])], m.config), ValueError, r"texts\[0\] is empty"),
        (
            lambda m: pf.translation_batch([[1, 2, 3]], m.config),
            TypeError,
            r"pairs\[0\] is \[1, 2, 3\]; expected",
        ),
        (lambda m: pf.translation_batch(["ab"], m.config), TypeError, r"pairs\[0\] is 'ab'; expected a source"),
        (lambda m: pf.translation_batch("ab", m.config), TypeError, r"pairs is a string; expected a list of pairs"),
        (
            lambda m: pf.translation_batch([([1] * 7, [1])], m.config),
            ValueError,
            r"A source has 7 tokens; expected 1 to source_len=6\. Cut it",
        ),
        (
            lambda m: pf.translation_batch([([1], [1]), ([1], [1] * 8)], m.config),
            ValueError,
            r"A target with its start token has 9 tokens; expected 1 to context_len=8",
        ),
        (lambda m: pf.translation_batch(iter([]), m.config), TypeError, r"pairs is <.*; expected a list of pairs"),
        (lambda m: pf.translate(m, {(1, 2)}), TypeError, r"sources is {\(1, 2\)}; expected a list of ids"),
        (
            lambda m: pf.translation_batch([([1], [1]), ([1], [2, START])], m.config),
            ValueError,
            r"targets\[1, 1\] is 9; expected the text alone, without start and stop token: these are",
        ),
        (
            lambda m: pf.translation_batch([([1], [STOP, 1])], m.config),
            ValueError,
            r"targets\[0, 0\] is 4; expected the text alone",
        ),
        (
            lambda m: pf.translation_batch([([1, VOCAB], [1])], m.config),
            ValueError,
            r"sources\[0, 1\] is 11; expected 0 to 10, as there are 11 tokens",
        ),
        (
            lambda m: pf.translation_batch([([1], [12])], m.config),
            ValueError,
            r"targets\[0, 0\] is 12; expected 0 to 10",
        ),
        (lambda m: pf.translation_batch([([1], [-1])], m.config), ValueError, r"-1; expected 0 to"),
        (
            lambda m: pf.translation_loss(m, pf.translation_batch(PAIRS, m.config)[:4]),
            TypeError,
            r"batch is a tuple of 4; expected one that .*: pf\.data\.TranslationBatch\(source, is_source, ",
        ),
        (lambda m: pf.translate(m, []), ValueError, r"^sources is empty; expected at least one token"),
        (lambda m: pf.translate(m, [[1], []]), ValueError, r"sources\[1\] is empty"),
        (
            lambda m: pf.translate(m, [[1], [2], [1, 99]], batch_size=1),
            ValueError,
            r"sources\[2\]\[1\] is 99; expected 0 to 10",
        ),
        (
            lambda m: pf.translate(m.encoder, [[1]]),
            TypeError,
            r"model is of type Encoder; expected a Seq2Seq",
        ),
        (lambda m: m.condition_on([[[3], [4, 5]], [[3]]]), TypeError, r"source is a list; expected .*unequal length"),
        (lambda m: pf.translate(m, "ab"), TypeError, r"sources is a string; expected a list"),
        (lambda m: pf.translate(m, [[1] * 7]), ValueError, r"A source has 7 tokens; expected 1 to source_len=6"),
        (
            lambda m: pf.translate(m, [[1]], 9),
            ValueError,
            r"A target of max_new_tokens has 9 tokens; expected 1 to context_len=8",
        ),
        (lambda m: pf.translate(m, [[1]], batch_size=0), ValueError, r"batch_size is 0; expected at least 1"),
        (lambda m: pf.translate(m, [[1]], 3, beam_width=0), ValueError, r"beam_width is 0; expected at least 1"),
        (lambda m: pf.translate(m, [[1]], 3, temperature=1.0), TypeError, r"key is None; expected a random key"),
        (
            lambda m: pf.generation.exact_match([[1]], []),
            ValueError,
            r"1 texts found, 0 expected; there must be equally many",
        ),
        (lambda m: pf.generation.exact_match([], []), ValueError, r"0 texts found, .*equally many, and some"),
        (
            lambda m: pf.generation.exact_match([[1, 2]], ["ab"]),
            TypeError,
            r"Some texts are strings and some are lists of ids",
        ),
        (lambda m: pf.generation.exact_match([[1.5]], [[1]]), TypeError, r"ids are float64; expected whole numbers"),
        (
            lambda m: pf.translate(m, [[4]], beam_width=2, top_k=3),
            TypeError,
            r"top_k, top_p, min_p and key are for drawing, (and )?beam_width for",
        ),
        (
            lambda m: pf.generation.exact_match("ab", ["a", "b"]),
            TypeError,
            r"found is a string; expected a list of texts",
        ),
        (lambda m: pf.translate(m, [[3]], 99), ValueError, r"^A target of max_new_tokens has 99 tokens; expected 1 to"),
        (
            lambda m: m.condition_on([[3, 4], [5]]),
            TypeError,
            r"unequal length: .*pf\.data\.pad_texts",
        ),
        (
            lambda m: pf.generate(m.condition_on(jnp.array([3, 4])), [[START], [4]], 2, temperature=0.0),
            ValueError,
            rf"^prompts\[1\] begins with 4; expected the start token, {START}\. Put it first",
        ),
        (lambda m: pf.generate(m, [[START]], 2), TypeError, r"type Seq2Seq; expected .*condition_on of an encoder"),
    ],
)
def test_bad_input_is_named(model, call, error, message):
    with pytest.raises(error, match=message):
        call(model)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"beam_width": 0}, ValueError, r"^beam_width is 0; expected at least 1"),
        ({"beam_width": "3"}, TypeError, r"^beam_width is '3'; expected a whole number"),
        (
            {"beam_width": 2, "length_power": -1.0},
            ValueError,
            r"^length_power is -1\.0; expected finite and at least 0",
        ),
        ({"beam_width": 2, "max_new_tokens": 0}, ValueError, r"^max_new_tokens is 0; expected at least 1"),
        ({"stream": True}, TypeError, r"unexpected keyword argument 'stream'"),
        ({"length_power": 0.5}, TypeError, r"^length_power is 0\.5, which is for searching; expected a beam_width"),
        ({"top_k": 5}, TypeError, r"^top_k, top_p and min_p are for drawing; expected a temperature beside them"),
        (
            {"top_p": 0.9, "key": jax.random.key(0)},
            TypeError,
            r"^top_k, top_p and min_p are for drawing; expected a temperature",
        ),
    ],
)
def test_translate_names_an_option_that_makes_no_sense(model, options, error, message, unchecked):
    with pytest.raises(error, match=message):
        pf.translate(model, [[3, 4]], **options)


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
