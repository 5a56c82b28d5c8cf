"""Writing a target: the cache changes nothing, and the source is read exactly once."""

import equinox as eqx
import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest
from closeness import assert_close
from tiers import few_in_the_gate
from toy_translators import CONTEXT, LAYERS, SOURCE_LEN, SOURCES, START, STOP, TARGETS, call, new_model, padded

import plainformer as pf

LONGER = [[*text, token] for text, token in zip(TARGETS, [3, 6, 0], strict=True)]


SEEDS = {"learned": 14, "rotary-modern": 12}


def conditioned(model):
    """The model, given all three sources."""
    return model.condition_on(*padded()[:2])


def lively(kind):
    """A model that writes something else for each source: the larger its numbers, the more texts differ."""
    return jax.tree.map(lambda leaf: 2 * leaf, new_model(jax.random.key(SEEDS[kind]), kind))


def read_in_pairs(conditioned, tokens, positions):
    """Logits of eight tokens of each text, read two at a time; the last two stand after those before them."""
    cache, logits = conditioned.make_cache(batch=(3,)), []
    for start in range(0, CONTEXT, 2):  # eagerly: all kinds share nearly all operations
        tokens_of_pair, places = (each[:, start : start + 2] for each in (tokens, positions))
        rows, cache = conditioned.extend(tokens_of_pair, cache, places if start < 6 else None)
        logits.append(conditioned.logits(rows))
    return np.concatenate(logits, axis=1)


def read_at_once(kind):
    """A model and its logits at every token of three targets of unequal length, each with a token more."""
    model, (source, is_source, *_) = new_model(kind=kind), padded()
    targets = np.full((3, CONTEXT), 7, np.int32)
    for row, text in zip(targets, LONGER, strict=True):
        row[: len(text)] = text
    return model, call(model, source, jnp.asarray(targets), is_source)


@pytest.mark.equation("eq-seq2seq-model", "eq-seq2seq-cached-context")
@pytest.mark.parametrize(
    "kind", few_in_the_gate(["learned-post-own", "rotary-modern", "relative", "sinusoidal-own"], 4)
)
def test_extend_reads_texts_padded_on_the_left(kind):
    model, expected = read_at_once(kind)
    tokens, positions = np.full((3, CONTEXT), 5, np.int32), np.full((3, CONTEXT), -1)
    for row, text in enumerate(LONGER):
        tokens[row, -len(text) :], positions[row, -len(text) :] = text, range(len(text))
    found = read_in_pairs(conditioned(model), tokens, positions)
    for row, text in enumerate(LONGER):
        assert_close(found[row, -len(text) :], expected[row, : len(text)])


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


@pytest.mark.equation("eq-seq2seq-cached-context", "eq-seq2seq-factorisation")
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
        np.testing.assert_allclose(each.log_prob, logs[range(end), text[:end]].sum(), rtol=1e-4, atol=1e-5)
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


def test_beam_search_of_width_one_is_greedy():
    model, (source, is_source, *_) = lively("rotary-modern"), padded()
    for number, each in enumerate(written(model, temperature=0.0)):
        alone = model.condition_on(source[number], is_source[number])
        (found,) = pf.beam_search(alone, [START], CONTEXT, beam_width=1, stop_tokens=[STOP])
        assert found.tokens == each.tokens
        np.testing.assert_allclose(found.log_prob, sum(each.log_probs), rtol=1e-5, atol=1e-5)


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
