"""The same rotation as Llama, the same buckets as T5, the same slopes as BLOOM."""

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from transformers import LlamaConfig
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb
from transformers.models.t5.modeling_t5 import T5Attention

import plainformer as pf

SEQ, HEADS, KV_HEADS, D_K = 5, 6, 2, 8


@pytest.fixture
def draw():
    """A NumPy generator."""
    return np.random.default_rng(0)


@pytest.mark.parametrize("base", [10_000.0, 500_000.0])
@pytest.mark.parametrize("positions", [[0, 1, 2, 3, 4], [300, 7, 0, 41, 2]])
def test_rotary_positions_agree_with_llama(positions, base, draw):
    config = LlamaConfig(
        hidden_size=HEADS * D_K,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        rope_parameters={"rope_type": "default", "rope_theta": base},
    )
    queries, keys = (draw.normal(size=(heads, SEQ, D_K)).astype(np.float32) for heads in (HEADS, KV_HEADS))
    cosines, sines = LlamaRotaryEmbedding(config)(torch.zeros(1), torch.tensor([positions]))
    theirs = apply_rotary_pos_emb(torch.tensor(queries)[None], torch.tensor(keys)[None], cosines, sines)
    scheme = pf.RotaryPositions(base=base)
    for ours, expected in zip((queries, keys), theirs, strict=True):
        turned = scheme.rotate(jnp.asarray(ours), jnp.asarray(positions))
        np.testing.assert_allclose(turned, expected[0].numpy(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("num_buckets", "max_distance"), [(32, 128), (32, 17), (8, 20), (16, 64), (64, 256), (20, 100), (4, 7)]
)
def test_relative_buckets_agree_with_t5(num_buckets, max_distance, causal):
    offsets = np.arange(-300, 301)
    theirs = T5Attention._relative_position_bucket(
        torch.tensor(offsets), bidirectional=not causal, num_buckets=num_buckets, max_distance=max_distance
    )
    sizes = {"num_buckets": num_buckets, "max_distance": max_distance, "causal": causal}
    np.testing.assert_array_equal(pf.relative_buckets(jnp.asarray(offsets)[None], **sizes)[0], theirs.numpy())


@pytest.mark.parametrize("num_heads", [1, 2, 3, 6, 8, 12, 16, 20, 71, 112])
def test_alibi_slopes_agree_with_bloom(num_heads):
    theirs = build_alibi_tensor(torch.ones((1, 2), dtype=torch.long), num_heads, torch.float32)
    np.testing.assert_allclose(pf.alibi_slopes(num_heads), theirs[:, 0, 1].numpy(), rtol=1e-6)


@pytest.mark.parametrize("num_heads", [3, 8])
def test_alibi_weights_agree_with_bloom(num_heads, draw):
    scores = draw.normal(size=(num_heads, SEQ, SEQ)).astype(np.float32)
    future = torch.ones((SEQ, SEQ), dtype=torch.bool).triu(1)
    # Their bias grows with the key's position, where ours falls with its distance: a constant apart in each row.
    alibi = build_alibi_tensor(torch.ones((1, SEQ), dtype=torch.long), num_heads, torch.float32)
    theirs = (torch.tensor(scores) + alibi).masked_fill(future, -torch.inf).softmax(-1)
    bias = pf.AlibiPositions(num_heads).bias(jnp.arange(SEQ), jnp.arange(SEQ))
    for head in range(num_heads):
        ours = pf.softmax(jnp.asarray(scores[head]) + bias[head], pf.causal_mask(SEQ))
        np.testing.assert_allclose(ours, theirs[head].numpy(), rtol=0, atol=1e-6)
    assert np.abs(np.asarray(bias) - alibi.numpy()).max() > 1
