"""The same buckets as T5, the same slopes as BLOOM."""

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.t5.modeling_t5 import T5Attention

import plainformer as pf


@pytest.mark.parametrize(
    ("num_buckets", "max_distance", "causal"),
    [(32, 128, False), (32, 17, True), (64, 256, True), (20, 100, False), (4, 7, False)],
)
def test_relative_buckets_agree_with_t5(num_buckets, max_distance, causal):
    offsets = np.arange(-300, 301)
    theirs = T5Attention._relative_position_bucket(
        torch.tensor(offsets), bidirectional=not causal, num_buckets=num_buckets, max_distance=max_distance
    )
    sizes = {"num_buckets": num_buckets, "max_distance": max_distance, "causal": causal}
    np.testing.assert_array_equal(pf.relative_buckets(jnp.asarray(offsets)[None], **sizes)[0], theirs.numpy())


@pytest.mark.parametrize("num_heads", [1, 3, 8, 12, 112])
def test_alibi_slopes_agree_with_bloom(num_heads):
    theirs = build_alibi_tensor(torch.ones((1, 2), dtype=torch.long), num_heads, torch.float32)
    np.testing.assert_allclose(pf.alibi_slopes(num_heads), theirs[:, 0, 1].numpy(), rtol=1e-6)
