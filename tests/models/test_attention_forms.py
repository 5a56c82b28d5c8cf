"""Every model computes its attention in the form that its configuration names (chapter on efficiency)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from all_models import KINDS, new_model, plain_logits
from toy_models import drawn

import plainformer as pf

IS_TOKEN = jnp.arange(7) < jnp.array([[7], [3]])


def decoder(seed=0, **options):
    stack = pf.StackConfig(d_model=16, num_layers=2, num_heads=4, **options)
    return drawn(pf.Decoder, pf.DecoderConfig(11, 30, stack=stack), seed)


@pytest.mark.parametrize("kind", ["encoder", "seq2seq"])
def test_every_model_computes_the_same_by_blocks(kind):
    model = new_model(kind, attention="blockwise")
    np.testing.assert_allclose(model(*KINDS[kind].inputs), plain_logits(kind), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"position_scheme": "relative"},
        {"window": 3, "pattern": ("full", "window")},
        {"num_kv_heads": 2, "qk_norm": True, "qk_norm_over": "row", "norm_placement": "output"},
        {"num_kv_heads": 2, "sinks": True, "window": 3},
    ],
)
def test_decoder_and_its_gradients_are_the_same_by_blocks(options):
    tokens = jnp.asarray(np.random.default_rng(0).integers(11, size=(2, 9)))

    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def loss(model):
        return pf.cross_entropy(model(tokens[:, :-1]), tokens[:, 1:])

    found = [jax.tree.leaves(loss(decoder(attention=form, **options))) for form in ("direct", "blockwise")]
    for direct, blockwise in zip(*found, strict=True):
        np.testing.assert_allclose(blockwise, direct, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", ["blockwise", "linear"])
def test_encoder_keeps_padding_out_in_every_form(form):
    config = pf.EncoderConfig(
        vocab_size=11, context_len=9, stack=pf.StackConfig(d_model=16, num_layers=2, num_heads=4, attention=form)
    )
    model, tokens = drawn(pf.Encoder, config), jnp.asarray(np.random.default_rng(1).integers(11, size=(2, 7)))
    found = model(tokens, is_token=IS_TOKEN)
    np.testing.assert_allclose(found[1, :3], model(tokens[1, :3]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("form", ["blockwise", "linear"])
def test_decoder_reads_on_from_a_cache_in_every_form(form):
    model, tokens = decoder(attention=form), jnp.asarray(np.random.default_rng(2).integers(11, size=9))
    cache, rows = model.make_cache(), []
    for part in (tokens[:4], tokens[4:5], tokens[5:]):
        x, cache = model.extend(part, cache)
        rows.append(model.logits(x))
    np.testing.assert_allclose(jnp.concatenate(rows), model(tokens), rtol=1e-4, atol=1e-4)


def test_linear_decoder_looks_at_no_later_token_and_is_another_model():
    tokens = jnp.asarray(np.random.default_rng(3).integers(11, size=9))
    linear, direct = decoder(attention="linear"), decoder()
    before, after = linear(tokens), linear(tokens.at[5:].set(0))
    np.testing.assert_allclose(before[:5], after[:5], rtol=1e-5, atol=1e-6)
    assert np.abs(before - direct(tokens)).max() > 0.01
