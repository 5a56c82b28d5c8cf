"""Models that others have published: our counts are theirs, and each is built in small."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toy_models import drawn

import plainformer as pf
from plainformer.models.accounting import cache_bytes

KEY = jax.random.key(0)
PUBLISHED = pf.models.PUBLISHED
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
def test_every_published_model_has_as_many_parameters_as_it_says():
    for name, model in PUBLISHED.items():
        count = pf.models.planned_parameters(model.config) + BIASES.get(name, 0)
        assert in_digits(count, model.parameters) == model.parameters, name


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
        pytest.param("DeepSeek-V3", 37, marks=pytest.mark.slow),
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
@pytest.mark.parametrize("name", ["Mistral 7B", "SmolLM2 135M"])
def test_block_parameters_are_those_of_the_arrays(name):
    stack = PUBLISHED[name].config.stack
    block = eqx.filter_eval_shape(pf.make_block, stack, key=KEY)
    sizes = stack.d_model, stack.num_heads, stack.num_kv_heads, stack.key_width, stack.inner_width
    assert pf.models.block_parameters(*sizes) == pf.count_parameters(block)


def test_every_published_model_is_shrunk_to_about_a_hundredth():
    kinds = ["norm", "norm_placement", "qk_norm", "qk_norm_over", "activation", "position_scheme", "use_bias"]
    kinds += ["pattern", "num_heads", "num_kv_heads", "rope_theta", "attention"]
    for name, model in PUBLISHED.items():
        whole, small = model.config, pf.models.shrunk(model.config)
        assert 70 < pf.models.planned_parameters(whole) / pf.models.planned_parameters(small) < 140, name
        for kind in kinds:
            assert getattr(small.stack, kind) == getattr(whole.stack, kind), f"{kind} of {name}"
        assert (small.stack.experts is None) == (whole.stack.experts is None), name
        assert (small.stack.latent is None) == (whole.stack.latent is None), name
        assert set(small.stack.kinds) == set(whole.stack.kinds), name


@pytest.mark.parametrize(
    "name", ["GPT-2 small", "OLMo 2 7B", "DeepSeek-V3", "Gemma 3 1B", "Qwen3 30B-A3B", "gpt-oss 20b"]
)
def test_a_published_model_is_built_in_small_and_reads_with_a_cache_as_without(name):
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


def test_shrunk_names_a_width_that_does_not_divide():
    config = PUBLISHED["Gemma 3 1B"].config
    with pytest.raises(ValueError, match="d_model is 1152, which 5 does not divide"):
        pf.models.shrunk(config, width=5)
