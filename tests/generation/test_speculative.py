"""A small model guesses, a large one checks, and the text is distributed as the large one's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toy_models import Bigram, drawn

import plainformer as pf
from plainformer.generation import accept_drafted, speculative_generate

P = jnp.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8], [0.3, 0.3, 0.4]])  # the large model's, at three places
Q = jnp.array([[0.2, 0.7, 0.1], [0.5, 0.25, 0.25]])  # the draft's, at two


def decoder(num_layers, seed, **options):
    stack = pf.StackConfig(d_model=8, num_layers=num_layers, num_heads=2, **options)
    return drawn(pf.Decoder, pf.DecoderConfig(7, 40, stack=stack), seed)


@pytest.mark.equation("eq-efficiency-accept")
@pytest.mark.equation("eq-efficiency-residual")
def test_accept_drafted_is_exact_in_distribution():
    """200,000 pairs of tokens, drafted from Q and corrected, are distributed as P says, place by place and together."""

    def pair(key):
        draft_key, accept_key, rest_key = jax.random.split(key, 3)
        drafted = jax.random.categorical(draft_key, jnp.log(Q)).astype(jnp.int32)
        count, token = accept_drafted(drafted, Q, P, key=accept_key)
        # Where the first was refused, the second is still to be written: by the large model.
        later = jax.random.categorical(rest_key, jnp.log(P[1]))
        return jnp.where(count > 0, drafted[0], token), jnp.where(count > 1, drafted[1], jnp.where(count, token, later))

    num = 200_000
    first, second = jax.jit(jax.vmap(pair))(jax.random.split(jax.random.key(0), num))
    found = np.histogram2d(first, second, bins=[range(4)] * 2)[0] / num
    expected = np.outer(P[0], P[1])
    np.testing.assert_allclose(found, expected, atol=4.5 * np.sqrt(expected.max() / num))


@pytest.mark.equation("eq-efficiency-residual")
def test_accept_drafted_draws_from_what_the_draft_gave_too_little():
    """The draft wrote 1, of which it was too sure; in its place comes 0 or 2, three to one."""
    drafted = jnp.array([1, 0])
    found = jax.vmap(lambda key: accept_drafted(drafted, Q, P, key=key))(jax.random.split(jax.random.key(1), 20_000))
    refused = np.asarray(found[1])[np.asarray(found[0]) == 0]
    np.testing.assert_allclose(len(refused) / 20_000, 1 - 0.3 / 0.7, atol=0.02)
    np.testing.assert_allclose(np.bincount(refused, minlength=3) / len(refused), [0.75, 0, 0.25], atol=0.02)


@pytest.mark.equation("eq-efficiency-speculative")
@pytest.mark.parametrize(
    ("options", "num_drafted"),
    [({"position_scheme": "rotary", "num_kv_heads": 1}, 1), ({"attention": "linear"}, 3)],
)
def test_speculative_text_at_low_temperature_is_the_greedy_one(options, num_drafted):
    """At a temperature near 0 both write the likeliest tokens: caches and positions are in order after a refusal."""
    model, draft = decoder(2, 0, **options), decoder(1, 1, **options)
    [greedy] = pf.generate(model, [[1, 2, 3]], 20, temperature=0)
    found = speculative_generate(
        model, draft, [1, 2, 3], 20, num_drafted=num_drafted, temperature=1e-6, key=jax.random.key(2)
    )
    assert found.tokens == greedy.tokens
    assert 20 / (num_drafted + 1) <= found.num_calls <= 20


@pytest.mark.equation("eq-efficiency-speculative")
def test_speculative_text_is_distributed_as_the_models_own():
    """Of 3,000 tokens, how often each follows each, by models that disagree."""
    tables = np.random.default_rng(0).normal(size=(2, 4, 4))
    model, draft = (Bigram(jnp.asarray(table, jnp.float32), 3_100) for table in tables)
    found = speculative_generate(model, draft, [0], 3_000, num_drafted=2, key=jax.random.key(5))
    counts = np.zeros((4, 4))
    np.add.at(counts, ([0, *found.tokens[:-1]], found.tokens), 1)
    numbers = counts.sum(axis=1, keepdims=True)
    expected = np.exp(tables[0]) / np.exp(tables[0]).sum(axis=1, keepdims=True)
    assert (np.abs(counts / numbers - expected) < 4.5 * np.sqrt(expected * (1 - expected) / numbers)).all()
    assert numbers.min() > 300


def test_speculation_by_the_model_itself_is_never_refused():
    model = decoder(1, 0)
    found = speculative_generate(model, model, [1], 20, num_drafted=4, key=jax.random.key(0))
    assert len(found.tokens) == 20
    assert found.num_calls == 4


def test_a_draft_may_read_less_than_the_model():
    sizes = pf.StackConfig(d_model=8, num_layers=1, num_heads=2)
    model, draft = (drawn(pf.Decoder, pf.DecoderConfig(7, length, stack=sizes), length) for length in (64, 12))
    found = speculative_generate(model, draft, [1, 2, 3], 6, num_drafted=3, temperature=0)
    assert found.tokens == pf.generate(model, [1, 2, 3], 6, temperature=0).tokens


@pytest.mark.parametrize(("max_new_tokens", "stopped"), [(2, False), (3, True), (6, True)])
def test_a_text_has_stopped_if_its_stop_token_is_among_those_asked_for(max_new_tokens, stopped):
    model = Bigram(jnp.asarray(np.roll(np.eye(4), 1, axis=1), jnp.float32), 20)  # 0, 1, 2, 3, 0, …
    found = speculative_generate(model, model, [0], max_new_tokens, num_drafted=3, temperature=0, stop_tokens=[3])
    assert (found.tokens, found.stopped) == ([1, 2, 3][:max_new_tokens], stopped)
