"""Chapter 20, models that others have published: our counts are theirs, and each is built in small."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toy_models import drawn

import plainformer as pf
from plainformer.models.accounting import cache_bytes, training_flops

KEY = jax.random.key(0)
PUBLISHED = pf.models.PUBLISHED
every_model = pytest.mark.parametrize("name", PUBLISHED)
# The biases that the experts of gpt-oss have and ours do not: two of the inner width and one of a token's, each.
BIASES = {
    name: 3 * 2880 * layers * experts for name, layers, experts in (("gpt-oss 20b", 24, 32), ("gpt-oss 120b", 36, 128))
}
SMALL = {"width": 32, "depth": 32}  # so small that all of them are drawn and run in a test


def in_digits(count: int, published: str) -> str:
    """A count in as many digits as are published."""
    unit = {"M": 10**6, "B": 10**9}.get(published[-1], 1)
    return f"{count / unit:.0f}{published[-1]}" if unit > 1 else str(count)


@pytest.mark.slow
@pytest.mark.equation("eq-blocks-parameters")
@every_model
def test_every_published_model_has_as_many_parameters_as_it_says(name):
    published = PUBLISHED[name].parameters
    count = pf.models.planned_parameters(PUBLISHED[name].config) + BIASES.get(name, 0)
    assert in_digits(count, published) == published


def test_counts_that_are_published_in_few_digits():
    """By the files that were released; in parity tests, by the classes of `transformers`."""
    exact = {"GPT-2 small": 124_439_808, "GPT-2 XL": 1_557_611_200, "DeepSeek-V3": 671_026_419_200}
    assert {name: pf.models.planned_parameters(PUBLISHED[name].config) for name in exact} == exact


@pytest.mark.equation("eq-modern-active")
@pytest.mark.parametrize(
    ("name", "billions"),
    # Jiang et al. (2024), section 1; DeepSeek-AI (2024), abstract; OpenAI (2025), table 1, without embeddings.
    [
        ("Mixtral 8x7B", 13),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in (("DeepSeek-V3", 37), ("Qwen3 30B-A3B", 3))),
        ("gpt-oss 20b", 4),
        ("Llama 3 8B", 8),
    ],
)
def test_as_many_parameters_work_on_a_token_as_the_reports_say(name, billions):
    config = PUBLISHED[name].config
    model = eqx.filter_eval_shape(pf.Decoder, config, key=KEY)
    table = config.vocab_size * config.stack.d_model
    without, whole = pf.models.active_parameters(model) - table, pf.models.active_parameters(model)
    assert without / 1e9 - 0.5 <= billions <= whole / 1e9 + 0.5


@pytest.mark.equation("eq-modern-block-parameters")
@pytest.mark.parametrize("name", ["Mistral 7B", "Llama 3 8B", "Llama 3 70B", "SmolLM2 135M"])
def test_block_parameters_are_those_of_the_arrays(name):
    stack = PUBLISHED[name].config.stack
    block = eqx.filter_eval_shape(pf.make_block, stack, key=KEY)
    sizes = stack.d_model, stack.num_heads, stack.num_kv_heads, stack.key_width, stack.inner_width
    assert pf.models.block_parameters(*sizes) == pf.count_parameters(block)


@pytest.mark.equation("eq-modern-block-parameters")
def test_block_parameters_by_hand():
    """Width 6, three heads of two columns, one of keys and values, an inner width of 5."""
    assert pf.models.block_parameters(6, num_heads=3, num_kv_heads=1, d_k=2, d_ff=5) == (36 + 12 + 12 + 36) + 90 + 12


@every_model
def test_every_published_model_is_shrunk_to_about_a_hundredth(name):
    whole, small = PUBLISHED[name].config, pf.models.shrunk(PUBLISHED[name].config)
    assert 70 < pf.models.planned_parameters(whole) / pf.models.planned_parameters(small) < 140
    kinds = {
        "norm",
        "norm_placement",
        "qk_norm",
        "qk_norm_over",
        "activation",
        "position_scheme",
        "use_bias",
        "pattern",
    }
    kinds |= {"num_heads", "num_kv_heads", "rope_theta", "attention"}
    assert {kind: getattr(small.stack, kind) for kind in kinds} == {kind: getattr(whole.stack, kind) for kind in kinds}
    assert (small.stack.experts is None, small.stack.latent is None) == (
        whole.stack.experts is None,
        whole.stack.latent is None,
    )
    assert set(small.stack.kinds) == set(whole.stack.kinds)


@every_model
def test_every_published_model_is_built_in_small_and_reads_with_a_cache_as_without(name):
    config = pf.models.shrunk(PUBLISHED[name].config, **SMALL)
    model, tokens = drawn(pf.Decoder, config), jnp.asarray([3, 1, 4, 1, 5, 9])
    assert pf.count_parameters(model) == pf.models.planned_parameters(config)
    logits = eqx.filter_jit(model)(tokens)
    assert logits.shape == (6, config.vocab_size)
    assert np.isfinite(logits).all()
    cache = model.make_cache(8)
    arrays = [leaf for leaf in jax.tree.leaves(cache) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    assert sum(array.nbytes for array in arrays) == cache_bytes(config.stack, 8)
    rows = eqx.filter_jit(model.extend)(tokens, cache)[0]
    np.testing.assert_allclose(model.logits(rows), logits, rtol=1e-4, atol=1e-5 * np.abs(logits).max())


def test_shrunk_by_one_is_the_model_itself():
    config = PUBLISHED["Qwen3 8B"].config
    assert pf.models.shrunk(config, width=1, depth=1) == config


def test_shrunk_names_a_width_that_does_not_divide():
    config = PUBLISHED["Gemma 3 1B"].config
    with pytest.raises(ValueError, match=r"d_model is 1152, which 5 does not divide; expected a divisor of it"):
        pf.models.shrunk(config, width=5)


def test_grouped_heads_and_short_vectors_save_what_the_chapter_says():
    """The bytes for each token with 16 bits a number."""
    found = {
        name: cache_bytes(PUBLISHED[name].config.stack, 1, 2) for name in ("OLMo 2 7B", "Llama 3 8B", "DeepSeek-V3")
    }
    assert found == {"OLMo 2 7B": 2 * 32 * 2 * 4096, "Llama 3 8B": 2 * 32 * 2 * 1024, "DeepSeek-V3": 2 * 61 * 576}


@pytest.mark.parametrize("name", ["Mistral 7B", "Mixtral 8x7B"])
def test_operations_of_a_published_model_are_twice_its_active_numbers_and_attention(name):
    config = dataclasses.replace(PUBLISHED[name].config, tied_embedding=False)
    model = eqx.filter_eval_shape(pf.Decoder, config, key=KEY)
    norms = (2 * config.stack.num_layers + 1) * config.stack.d_model
    weights = pf.models.active_parameters(model) - config.vocab_size * config.stack.d_model - norms
    widths = 2 * config.stack.num_heads * config.stack.key_width
    expected = 6 * (weights + config.stack.num_layers * widths * 512)
    assert training_flops(config, 1, 512) == expected
