"""Writing a target: the cache changes nothing, and the source is read exactly once."""

import functools
import itertools

import equinox as eqx
import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest
from closeness import assert_close
from tiers import few_in_the_gate
from toy_translators import (
    CONTEXT,
    HEADS,
    KINDS,
    LAYERS,
    SOURCE_LEN,
    SOURCES,
    START,
    STOP,
    TARGETS,
    call,
    new_model,
    padded,
)

import plainformer as pf

LONGER = [[*text, token] for text, token in zip(TARGETS, [3, 6, 0], strict=True)]


SEEDS = {"learned": 14, "sinusoidal-post": 24, "rotary-modern": 12, "rotary-post": 25}


def conditioned(model):
    """The model, given all three sources."""
    return model.condition_on(*padded()[:2])


def lively(kind):
    """A model that writes something else for each source: the larger its numbers, the more texts differ."""
    return jax.tree.map(lambda leaf: 2 * leaf, new_model(jax.random.key(SEEDS[kind]), kind))


def read_in_pairs(conditioned, tokens, positions):
    """Logits of eight tokens of each text, read two at a time; the last two stand after those before them."""
    cache, logits = conditioned.make_cache(batch=(3,)), []
    for start in range(0, CONTEXT, 2):  # eagerly: the nine kinds share nearly all operations, though no whole program
        tokens_of_pair, places = (each[:, start : start + 2] for each in (tokens, positions))
        rows, cache = conditioned.extend(tokens_of_pair, cache, places if start < 6 else None)
        logits.append(conditioned.logits(rows))
    return np.concatenate(logits, axis=1)


@functools.cache
def read_at_once(kind):
    """A model and its logits at every token of three targets of unequal length, each with a token more."""
    model, (source, is_source, *_) = new_model(kind=kind), padded()
    targets = np.full((3, CONTEXT), 7, np.int32)
    for row, text in zip(targets, LONGER, strict=True):
        row[: len(text)] = text
    return model, targets, call(model, source, jnp.asarray(targets), is_source)


@pytest.mark.equation("eq-seq2seq-model", "eq-seq2seq-cached-context")
@pytest.mark.parametrize("kind", few_in_the_gate(KINDS, 3))
def test_extend_equals_the_full_call(kind):
    model, targets, expected = read_at_once(kind)
    positions = np.tile(np.arange(CONTEXT), (3, 1))
    assert_close(read_in_pairs(conditioned(model), targets, positions), expected)


@pytest.mark.equation("eq-seq2seq-cached-context")
@pytest.mark.parametrize("kind", few_in_the_gate(KINDS, 3))
def test_extend_reads_texts_padded_on_the_left(kind):
    model, _, expected = read_at_once(kind)
    tokens, positions = np.full((3, CONTEXT), 5, np.int32), np.full((3, CONTEXT), -1)
    for row, text in enumerate(LONGER):
        tokens[row, -len(text) :], positions[row, -len(text) :] = text, range(len(text))
    found = read_in_pairs(conditioned(model), tokens, positions)
    for row, text in enumerate(LONGER):
        assert_close(found[row, -len(text) :], expected[row, : len(text)])


@pytest.mark.equation("eq-seq2seq-cached-context")
def test_condition_on_keeps_the_keys_and_values_of_its_sources_as_they_are(monkeypatch):
    source, is_source, target, _ = padded()
    calls, cache_context = [], pf.MultiHeadAttention.cache_context
    monkeypatch.setattr(
        pf.MultiHeadAttention, "cache_context", lambda self, *rest: calls.append(1) or cache_context(self, *rest)
    )

    @eqx.filter_jit
    def read(model):
        conditioned = model.condition_on(source, is_source)
        cache = conditioned.make_cache(batch=(3,))
        assert len(cache) == LAYERS
        for token in range(2):
            rows, cache = conditioned.extend(target[:, token : token + 1], cache)
        of_last, whole = conditioned.logits(rows)[:, 0], model(source, target, is_source)
        return conditioned.contexts, model.encode(source, is_source), of_last, whole[:, 1]

    model = new_model(d_ff=14)  # a size that no other test has: it has to be traced for its calls to be seen
    contexts, encoded, of_last, expected = read(model)
    assert_close(of_last, expected)
    assert len(calls) == LAYERS  # once for each layer, however many tokens are read
    assert [int(part.length) for part in contexts] == [SOURCE_LEN] * LAYERS
    for part, block in zip(contexts, model.stack.blocks, strict=True):
        # Position 0 is everyone's past; -1 is nobody's.
        assert (part.positions == jnp.where(is_source, 0, -1)).all()
        weight, bias = map(np.asarray, (block.cross_attention.key.weight, block.cross_attention.key.bias))
        keys = np.where(np.asarray(is_source)[..., None], encoded, 0) @ weight + bias
        keys = keys.reshape(3, SOURCE_LEN, HEADS, -1).transpose(0, 2, 3, 1)  # texts, heads, columns, places
        assert_close(part.keys, keys)


def test_a_step_has_no_product_as_tall_as_the_source():
    model, (source, is_source, *_) = new_model(), padded()
    conditioned = eqx.filter_eval_shape(model.condition_on, source, is_source)
    arrays, rest = eqx.partition(conditioned, lambda leaf: hasattr(leaf, "shape"))
    cache = eqx.filter_eval_shape(lambda given: given.make_cache(batch=(3,)), conditioned)
    token, positions = jnp.full((3, 1), 2), jnp.full((3, 1), 1)
    step = jax.make_jaxpr(lambda arrays, cache: eqx.combine(arrays, rest).extend(token, cache, positions))

    def rows_of_products(jaxpr):
        for equation in jaxpr.eqns:
            if equation.primitive.name == "dot_general" and equation.invars[1].aval.ndim == 2:
                yield equation.invars[0].aval.shape[0]
            for inner in jax.extend.core.jaxprs_in_params(equation.params):
                yield from rows_of_products(inner)

    rows = list(rows_of_products(step(arrays, cache).jaxpr))
    # A row for each of the three targets: four maps of itself, two for the source, two of the network.
    assert rows == [3] * 8 * LAYERS


def written(model, **options):
    """What the model writes for the three sources, in one program of each kind for all tests."""
    return pf.generate(conditioned(model), [[START]] * 3, CONTEXT, stop_tokens=[STOP], **options)


def log_probs_of(model, source, is_source, texts):
    """Log-probabilities at every place of padded targets, from one full pass."""
    inputs = np.full((len(texts), CONTEXT), START, np.int32)
    for row, text in zip(inputs, texts, strict=True):
        row[1 : len(text)] = text[:-1]
    logits = np.asarray(call(model, source, jnp.asarray(inputs), is_source), np.float64)
    return logits - np.log(np.exp(logits).sum(axis=2, keepdims=True))


def log_prob_of(log_probs, text) -> float:
    """The sum over the tokens of one text."""
    return sum(log_probs[place, token] for place, token in enumerate(text))


@pytest.mark.equation("eq-seq2seq-cached-context")
@pytest.mark.parametrize("kind", SEEDS)
def test_generate_of_unequal_sources_is_a_loop_of_full_passes(kind):
    model = lively(kind)
    source, is_source, _, _ = padded()
    found, texts = written(model, temperature=0.0), [[], [], []]
    for place in range(CONTEXT):
        log_probs = log_probs_of(model, source, is_source, [[*text, 0] for text in texts])[:, place]
        texts = [[*text, int(row.argmax())] for text, row in zip(texts, log_probs, strict=True)]
    log_probs = log_probs_of(model, source, is_source, texts)
    for each, text, logs in zip(found, texts, log_probs, strict=True):
        end = text.index(STOP) + 1 if STOP in text else CONTEXT
        assert each.tokens == text[:end]
        np.testing.assert_allclose(each.log_probs, logs[range(end), text[:end]], rtol=1e-4, atol=1e-5)
    assert len({tuple(each.tokens) for each in found}) > 1  # the sources matter


def test_generate_continues_targets_of_unequal_length():
    model, (source, is_source, *_) = lively("rotary-modern"), padded()
    prompts = [[START, 5, 3], [START], [START, 6]]
    found = pf.generate(conditioned(model), prompts, 4, temperature=0.0)
    texts = [prompt[1:] + each.tokens for prompt, each in zip(prompts, found, strict=True)]
    for text, logs, each in zip(texts, log_probs_of(model, source, is_source, texts), found, strict=True):
        new = np.arange(len(text) - 4, len(text))
        assert logs[new].argmax(axis=1).tolist() == each.tokens
        np.testing.assert_allclose(each.log_probs, logs[new, each.tokens], rtol=1e-4, atol=1e-5)


@pytest.mark.equation("eq-seq2seq-factorisation")
def test_generate_log_probs_sum_to_the_probability_of_the_target(key):
    model, (source, is_source, *_) = new_model(), padded()
    found = written(model, temperature=1.0, key=key)
    log_probs = log_probs_of(model, source, is_source, [each.tokens for each in found])
    for each, logs in zip(found, log_probs, strict=True):
        np.testing.assert_allclose(sum(each.log_probs), log_prob_of(logs, each.tokens), rtol=1e-5)


def test_generate_draws_several_targets_of_one_source(key):
    model, (source, is_source, *_) = new_model(), padded()
    options = {"max_new_tokens": CONTEXT, "stop_tokens": [STOP], "temperature": 1.0, "key": key}
    found = pf.generate(model.condition_on(source[0], is_source[0]), [[START]] * 3, **options)
    same = jnp.zeros(3, int)
    assert found == pf.generate(model.condition_on(source[same], is_source[same]), [[START]] * 3, **options)
    assert len({tuple(each.tokens) for each in found}) > 1


def test_generate_takes_a_model_in_32_bits_where_64_are_allowed(x64):
    model = new_model(num_decoder_layers=1)
    model = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf, np.float32)), model)
    (found,) = pf.generate(model.condition_on(jnp.array(SOURCES[0])), [[START]], 3, temperature=0.0)
    assert len(found.tokens) == len(found.log_probs) == 3


@pytest.fixture(scope="module")
def small():
    """A model of three tokens, 2 the stop token, and its source, padded: small enough to list all targets."""
    model = new_model(jax.random.key(54), vocab_size=3, source_vocab_size=11, start_token=0, stop_token=2)
    source, is_source, _, _ = padded()
    return model, source[:1], is_source[:1]


def log_probs_of_small(small, texts):
    """The same for 81 targets of the one source, however few there are."""
    model, *source = small
    repeated = [jnp.asarray(np.repeat(each, 81, axis=0)) for each in source]
    inputs = np.zeros((81, CONTEXT), np.int32)
    for row, text in zip(inputs, texts, strict=False):
        row[1 : len(text)] = text[:-1]
    return np.asarray(jax.nn.log_softmax(call(model, repeated[0], jnp.asarray(inputs), repeated[1])))


@pytest.mark.equation("eq-seq2seq-factorisation")
@pytest.mark.parametrize("length_power", few_in_the_gate([1.0, 0.0], 2))
def test_beam_search_as_wide_as_the_tree_is_exhaustive(small, length_power):
    model, source, is_source = small
    texts = list(itertools.product(range(3), repeat=4))
    expected = {}
    for text, logs in zip(texts, log_probs_of_small(small, texts), strict=True):
        end = text.index(2) + 1 if 2 in text else 4
        expected[text[:end]] = log_prob_of(logs, text[:end]) / end**length_power
    options = {"beam_width": 81, "length_power": length_power, "stop_tokens": [2]}
    found = pf.beam_search(model.condition_on(source, is_source), [0], 4, **options)
    assert [tuple(each.tokens) for each in found] == sorted(expected, key=lambda text: -expected[text])
    np.testing.assert_allclose([each.score for each in found], sorted(expected.values())[::-1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["learned", "sinusoidal-post", "rotary-modern"])
def test_beam_search_of_width_one_is_greedy(kind):
    model, (source, is_source, *_) = lively(kind), padded()
    for number, each in enumerate(written(model, temperature=0.0)):
        alone = model.condition_on(source[number], is_source[number])
        (found,) = pf.beam_search(alone, [START], CONTEXT, beam_width=1, stop_tokens=[STOP])
        assert found.tokens == each.tokens
        np.testing.assert_allclose(found.log_prob, sum(each.log_probs), rtol=1e-5, atol=1e-5)


def test_beam_search_keeps_what_has_ended_though_worse_beginnings_go_on(small):
    model, *source = small
    options = {"beam_width": 5, "length_power": 0.0, "stop_tokens": [2]}
    found = pf.beam_search(model.condition_on(*source), [0], 7, **options)
    assert len({len(each.tokens) for each in found if each.tokens[-1] == 2}) > 1
    log_probs = log_probs_of_small(small, [each.tokens for each in found])
    for logs, each in zip(log_probs, found, strict=False):
        assert 2 not in each.tokens[:-1]
        np.testing.assert_allclose(each.log_prob, log_prob_of(logs, each.tokens), rtol=1e-5, atol=1e-5)


def test_beam_search_takes_a_model_that_hands_on_a_copy_of_its_cache():
    class Copying(eqx.Module):
        inner: eqx.Module

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def extend(self, tokens, cache, positions):
            return self.inner.extend(tokens, jax.tree.map(jnp.copy, cache), positions)

    new = SOURCE_LEN - 1  # as many slots as the source has tokens
    one = new_model().condition_on(padded()[0][:1])
    found, copied = (pf.beam_search(each, [START], new, beam_width=2) for each in (one, Copying(one)))
    assert found == copied
