"""Writing with a hybrid, of which some blocks keep a state in place of keys and values (chapter on modern models)."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toy_models import drawn

import plainformer as pf

PATTERN, CONTEXT = ("delta", "full"), 20
PROMPTS = [[3, 1, 4, 1, 5, 9], [2, 6]]


@pytest.fixture(scope="module")
def hybrid() -> pf.Decoder:
    stack = pf.StackConfig(d_model=12, num_layers=2, num_heads=3, d_ff=10, position_scheme="rotary", pattern=PATTERN)
    return drawn(pf.Decoder, pf.DecoderConfig(11, CONTEXT, stack=stack))


def test_generate_writes_what_full_passes_would_behind_prompts_of_two_lengths(hybrid):
    call = eqx.filter_jit(lambda model, text: model(text))
    written = pf.generate(hybrid, PROMPTS, 8, temperature=0)
    for prompt, found in zip(PROMPTS, written, strict=True):
        text = list(prompt)
        for _ in range(8):
            padded = jnp.asarray(text + [0] * (CONTEXT - len(text)))
            text.append(int(np.argmax(call(hybrid, padded)[len(text) - 1])))
        assert found.tokens == text[len(prompt) :]


def test_beyond_the_context_attention_has_a_window_and_a_state_remembers(hybrid):
    """As with a window of that length in a longer context; from the last tokens alone, something else comes."""
    stack = dataclasses.replace(hybrid.config.stack, pattern=("delta", "window"), window=CONTEXT)
    config = dataclasses.replace(hybrid.config, context_len=3 * CONTEXT, stack=stack)
    longer = drawn(pf.Decoder, config)
    found, expected = (pf.generate(model, PROMPTS[0], 2 * CONTEXT, temperature=0) for model in (hybrid, longer))
    assert found.tokens == expected.tokens
    np.testing.assert_allclose(found.log_probs, expected.log_probs, rtol=1e-4, atol=1e-5)
    text = [*PROMPTS[0], *found.tokens]
    begun_anew = pf.generate(hybrid, text[-1 - CONTEXT : -1], 1, temperature=0)
    assert abs(begun_anew.log_prob - found.log_probs[-1]) > 1e-3


@pytest.mark.run_time_check
def test_the_cache_of_a_hybrid_is_full_when_its_keys_are(hybrid):
    cache = hybrid.make_cache(3)
    _, cache = hybrid.extend(jnp.asarray([1, 2, 3]), cache)
    with pytest.raises(ValueError, match="room for 3 tokens and holds 3"):
        hybrid.extend(jnp.asarray([4]), cache)
    read = eqx.filter_jit(lambda model, cache: model.extend(jnp.asarray([4]), cache)[0])
    with pytest.raises(Exception, match="at most 2"):
        jax.block_until_ready(read(hybrid, cache))


def test_what_takes_tokens_back_or_shares_a_cache_refuses_a_state(hybrid):
    with pytest.raises(ValueError, match="state"):
        pf.generation.speculative_generate(hybrid, hybrid, PROMPTS[0], 4, temperature=0)
    with pytest.raises(TypeError, match="DeltaCache"):
        pf.beam_search(hybrid, PROMPTS[0], 4, beam_width=2)


def test_models_that_see_later_tokens_refuse_a_state():
    stack = pf.StackConfig(d_model=12, num_layers=2, num_heads=3, pattern=PATTERN)
    with pytest.raises(ValueError, match="pattern"):
        eqx.filter_eval_shape(
            pf.Encoder, pf.EncoderConfig(vocab_size=11, context_len=CONTEXT, stack=stack), key=jax.random.key(0)
        )
