"""Writing a target: the cache changes nothing, and the source is read exactly once."""

import itertools

import equinox as eqx
import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest
from closeness import assert_close
from toy_translators import (
    CONTEXT,
    D_MODEL,
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


@eqx.filter_jit
def read(given, tokens, cache, positions=None):
    """Logits of further tokens, and the longer cache."""
    rows, cache = given.extend(tokens, cache, positions)
    return given.logits(rows.reshape(-1, D_MODEL)).reshape(*tokens.shape, -1), cache


@pytest.mark.equation("eq-seq2seq-model", "eq-seq2seq-cached-context")
@pytest.mark.parametrize("kind", KINDS)
def test_given_extend_equals_the_full_call(kind, key):
    model = new_model(key, kind)
    source, is_source, target, _ = padded()
    expected = call(model, source, target, is_source)
    given = model.condition_on(source, is_source)
    cache, pieces = given.make_cache(batch=(3,)), []
    for first, end in [(0, 4), (4, 5), (5, 6), (6, 7)]:
        logits, cache = read(given, target[:, first:end], cache)
        pieces.append(logits)
    assert_close(jnp.concatenate(pieces, axis=1), expected)


@pytest.mark.equation("eq-seq2seq-cached-context")
@pytest.mark.parametrize("kind", ["learned", "sinusoidal-post", "rotary-modern", "relative"])
def test_given_extend_reads_prompts_padded_on_the_left(kind, key):
    model = new_model(key, kind)
    source, is_source, _, _ = padded()
    given = model.condition_on(source, is_source)
    prompts, positions = np.full((3, 7), 5, np.int32), np.full((3, 7), -1, np.int32)
    for row, text in enumerate(TARGETS):
        prompts[row, 7 - len(text) :], positions[row, 7 - len(text) :] = text, range(len(text))
    found, cache = read(given, jnp.asarray(prompts), given.make_cache(9, batch=(3,)), jnp.asarray(positions))
    further, _ = read(given, jnp.array([[3], [6], [0]]), cache)  # at the place after the last one of each text
    for row, (source_text, text, token) in enumerate(zip(SOURCES, TARGETS, [3, 6, 0], strict=True)):
        expected = call(model, jnp.array(source_text), jnp.array([*text, token]))
        assert_close(found[row, 7 - len(text) :], expected[:-1])
        assert_close(further[row, 0], expected[-1])


@pytest.mark.equation("eq-seq2seq-cached-context")
def test_given_keeps_the_keys_and_values_of_its_sources_as_they_are(key, monkeypatch):
    model = new_model(key, d_ff=14)  # a size that no other test has: it has to be traced for its calls to be seen
    source, is_source, target, _ = padded()
    calls = []
    context_cache = pf.MultiHeadAttention.context_cache
    monkeypatch.setattr(
        pf.MultiHeadAttention, "context_cache", lambda self, *rest: calls.append(1) or context_cache(self, *rest)
    )
    given = model.condition_on(source, is_source)
    assert len(calls) == LAYERS
    cache = given.make_cache(batch=(3,))
    assert len(cache) == 2 * LAYERS
    for token in range(3):
        _, cache = given.extend(target[:, token : token + 1], cache)
        assert [int(part.length) for part in cache] == [token + 1] * LAYERS + [SOURCE_LEN] * LAYERS
        assert all(part is kept for part, kept in zip(cache[LAYERS:], given.context, strict=True))
    assert len(calls) == LAYERS
    for part, block in zip(given.context, model.blocks, strict=True):
        # Position 0 is everyone's past; -1 is nobody's.
        assert (part.positions == jnp.where(is_source, 0, -1)).all()
        encoded = model.encode(source, is_source)
        keys = encoded.reshape(-1, D_MODEL) @ block.cross_attention.key_weight + block.cross_attention.key_bias[None]
        keys = keys.reshape(3, SOURCE_LEN, HEADS, -1).transpose(2, 0, 3, 1)  # heads, texts, columns, places
        assert_close(part.keys.reshape(keys.shape), jnp.where(is_source[None, :, None, :], keys, 0))


def test_given_step_has_no_product_as_tall_as_the_source(key):
    model = new_model(key)
    source, is_source, _, _ = padded()
    given = model.condition_on(source, is_source)
    cache = given.make_cache(batch=(3,))
    token, positions = jnp.full((3, 1), 2), jnp.full((3, 1), 1)
    arrays, rest = eqx.partition(given, eqx.is_array)
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


@pytest.mark.equation("eq-seq2seq-cached-context")
@pytest.mark.parametrize("kind", ["learned", "sinusoidal-post", "rotary-modern", "rotary-post"])
def test_generate_of_unequal_sources_is_a_loop_of_full_passes(kind, key):
    model = jax.tree.map(lambda leaf: 2 * leaf, new_model(key, kind))  # the larger its numbers, the more texts differ
    source, is_source, _, _ = padded()
    found = pf.generate(
        model.condition_on(source, is_source), [[START]] * 3, CONTEXT, temperature=0.0, stop_tokens=[STOP]
    )
    whole = eqx.filter_jit(lambda target: model(source, target, is_source))
    target, log_probs = np.full((3, CONTEXT), START, np.int32), np.zeros((3, CONTEXT))
    for place in range(CONTEXT):  # what is to the right of it does not matter
        logits = np.asarray(whole(jnp.asarray(target)), np.float64)[:, place]
        tokens = logits.argmax(axis=1)
        log_probs[:, place] = logits.max(axis=1) - np.log(np.exp(logits).sum(axis=1))
        if place + 1 < CONTEXT:
            target[:, place + 1] = tokens
    texts = np.concatenate([target[:, 1:], tokens[:, None]], axis=1).tolist()
    for each, text, logs in zip(found, texts, log_probs, strict=True):
        end = text.index(STOP) + 1 if STOP in text else CONTEXT
        assert each.tokens == text[:end]
        np.testing.assert_allclose(each.log_probs, logs[:end], rtol=1e-4, atol=1e-5)
    assert len({tuple(each.tokens) for each in found}) > 1  # the sources matter


@pytest.mark.equation("eq-seq2seq-factorisation")
def test_generate_log_probs_sum_to_the_probability_of_the_target(key):
    model = new_model(key)
    source, is_source, _, _ = padded()
    for each, ids, there in zip(
        pf.generate(model.condition_on(source, is_source), [[START]] * 3, 5, key=key), source, is_source, strict=True
    ):
        logits = call(model, ids, jnp.array([START, *each.tokens[:-1]]), there)
        log_probs = jax.nn.log_softmax(logits)[jnp.arange(5), jnp.array(each.tokens)]
        np.testing.assert_allclose(sum(each.log_probs), log_probs.sum(), rtol=1e-5)


def test_generate_draws_several_targets_of_one_source(key):
    model = new_model(key)
    source = jnp.array(SOURCES[0])
    one = model.condition_on(source)
    found = pf.generate(one, [[START]] * 4, 5, key=key)
    many = model.condition_on(jnp.tile(source, (4, 1)))
    assert found == pf.generate(many, [[START]] * 4, 5, key=key)
    assert len({tuple(each.tokens) for each in found}) > 1


def test_generate_takes_a_model_in_32_bits_where_64_are_allowed(key, x64):
    model = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), new_model(key))
    (found,) = pf.generate(model.condition_on(jnp.array(SOURCES[0])), [[START]], 3, temperature=0.0)
    assert len(found.tokens) == len(found.log_probs) == 3


@pytest.fixture(scope="module")
def small():
    """A model of three tokens, and its source, padded: small enough to list all targets."""
    model = new_model(jax.random.key(2), vocab_size=3, source_vocab_size=11, start_token=0, stop_token=2)
    source, is_source, _, _ = padded()
    return model, source[:1], is_source[:1]


@pytest.mark.equation("eq-seq2seq-factorisation")
@pytest.mark.parametrize("length_power", [0.0, 1.0])
def test_beam_search_as_wide_as_the_tree_is_exhaustive(small, length_power):
    model, source, is_source = small
    texts = np.array(list(itertools.product(range(3), repeat=4)))
    inputs = jnp.asarray(np.concatenate([np.zeros((81, 1), int), texts[:, :-1]], axis=1))
    logits = call(model, jnp.tile(source, (81, 1)), inputs, jnp.tile(is_source, (81, 1)))
    log_probs = np.take_along_axis(np.asarray(jax.nn.log_softmax(logits)), texts[..., None], axis=2)[..., 0]
    expected = {}
    for text, logs in zip(texts.tolist(), log_probs, strict=True):
        end = text.index(2) + 1 if 2 in text else 4
        expected[tuple(text[:end])] = logs[:end].sum() / end**length_power
    given = model.condition_on(source, is_source)
    found = pf.beam_search(given, [0], 4, beam_width=81, length_power=length_power, stop_tokens=[2])
    assert [tuple(each.tokens) for each in found] == sorted(expected, key=lambda text: -expected[text])
    np.testing.assert_allclose([each.score for each in found], sorted(expected.values())[::-1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["learned", "sinusoidal-post", "rotary-modern"])
def test_beam_search_of_width_one_is_greedy(kind, key):
    model = new_model(key, kind)
    source, is_source, _, _ = padded()
    greedy = pf.generate(model.condition_on(source, is_source), [[START]] * 3, 6, temperature=0.0, stop_tokens=[STOP])
    for number, each in enumerate(greedy):
        given = model.condition_on(source[number], is_source[number])
        (found,) = pf.beam_search(given, [START], 6, beam_width=1, stop_tokens=[STOP])
        assert found.tokens == each.tokens
        np.testing.assert_allclose(found.log_prob, sum(each.log_probs), rtol=1e-5, atol=1e-5)


def test_beam_search_keeps_what_has_ended_though_worse_beginnings_go_on(small):
    model, source, is_source = small
    found = pf.beam_search(
        model.condition_on(source, is_source), [0], 7, beam_width=5, length_power=0.0, stop_tokens=[2]
    )
    assert len({len(each.tokens) for each in found if each.tokens[-1] == 2}) > 1
    inputs = np.zeros((5, 7), np.int32)
    for row, each in zip(inputs, found, strict=True):
        assert 2 not in each.tokens[:-1]
        row[1 : len(each.tokens)] = each.tokens[:-1]
    logits = call(model, jnp.tile(source, (5, 1)), jnp.asarray(inputs), jnp.tile(is_source, (5, 1)))
    for logs, each in zip(np.asarray(jax.nn.log_softmax(logits)), found, strict=True):
        total = sum(logs[place, token] for place, token in enumerate(each.tokens))
        np.testing.assert_allclose(each.log_prob, total, rtol=1e-5, atol=1e-5)
