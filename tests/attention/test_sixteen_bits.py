"""Attention of 16-bit numbers is as exact as its 16-bit result: what is in between has 32 bits, in every form."""

import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from plainformer.attention.efficiency import Blockwise
from plainformer.attention.kernels import KeyValueCache, Softmax
from plainformer.attention.linear import LinearKernel
from plainformer.attention.mask import Mask
from plainformer.positions.positions import NO_POSITIONS

HEADS, SEQ, D_K, D_V = 2, 40, 24, 8  # the root of 24 is no power of two, so that 16 bits cannot hold a scaled query
FORMS = {
    "direct": Softmax(),
    "sinks": Softmax(sinks=jnp.asarray([2.0, -1.0])),
    "blockwise": Blockwise(),
    "linear": LinearKernel(),
}
SCHEMES = {"none": NO_POSITIONS, "alibi": pf.AlibiPositions(HEADS)}


def drawn_rows(size, dtype):
    """Queries, keys and values of 16 bits, some of whose scores are about `size`."""
    rng = np.random.default_rng(0)
    root = np.sqrt(size / np.sqrt(D_K))
    shapes = [(HEADS, SEQ, D_K), (HEADS, SEQ, D_K), (HEADS, SEQ, D_V)]
    scales = (root, root, 1)
    return [jnp.asarray(scale * rng.normal(size=shape), dtype) for scale, shape in zip(scales, shapes, strict=True)]


def close_as_rounding(found, exact):
    """Whether an error is at most twice that of rounding the exact result to the dtype of what was found."""
    rounding = np.abs(np.asarray(exact.astype(found.dtype), np.float64) - np.asarray(exact)).max()
    assert np.abs(np.asarray(found, np.float64) - np.asarray(exact)).max() <= 2 * rounding


@pytest.mark.parametrize(("dtype", "size"), [("bfloat16", 3), ("bfloat16", 300), ("float16", 200_000)])
@pytest.mark.parametrize(
    ("form", "scheme", "causal"),
    [
        ("direct", "none", False),
        ("direct", "alibi", True),
        ("sinks", "none", True),
        ("blockwise", "alibi", True),
        ("blockwise", "none", False),
        ("linear", "none", True),
        ("linear", "none", False),
    ],
)
def test_sixteen_bits_cost_no_more_than_rounding_the_result(form, scheme, causal, size, dtype, x64):
    size = min(size, 1000) if form == "linear" else size  # features are sums, and no exponentials that saturate
    rows = drawn_rows(size, dtype)
    exact_rows = [each.astype("float64") for each in rows]
    mask = Mask(causal=causal)

    def attended(queries, keys, values):
        return FORMS[form].attend(queries, keys, values, mask, SCHEMES[scheme])

    close_as_rounding(attended(*rows), attended(*exact_rows))


@pytest.mark.parametrize("form", ["direct", "sinks", "linear"])
def test_sixteen_bits_cost_no_more_from_a_cache(form, x64):
    found, exact = [], []
    for results, dtype in [(found, "bfloat16"), (exact, "float64")]:
        queries, keys, values = (each.astype(dtype) for each in drawn_rows(100, "bfloat16"))
        cache = KeyValueCache(HEADS, SEQ, D_K, D_V, dtype=dtype).append(keys, values, jnp.arange(SEQ, dtype="int32"))
        results.append(FORMS[form].attend_to_cache(queries, cache, jnp.arange(SEQ, dtype="int32"), NO_POSITIONS))
    close_as_rounding(found[0], exact[0])


def test_sixteen_bits_cost_no_more_than_rounding_in_gated_linear_attention(x64):
    rng = np.random.default_rng(1)
    rows = [jnp.asarray(rng.normal(size=(HEADS, SEQ, width)), "bfloat16") for width in (D_K, D_K, D_V)]
    rows.append(jnp.asarray(-rng.random((HEADS, SEQ)) / 8, "bfloat16"))
    found, _ = pf.attention.gated_linear_attention(*rows, block_size=16)
    exact, _ = pf.attention.gated_linear_attention(*(each.astype("float64") for each in rows), block_size=16)
    close_as_rounding(found, exact)


def test_large_scores_of_float16_are_finite():
    queries, keys, values = drawn_rows(200_000, "float16")
    weights = pf.attention_weights(queries, keys)
    np.testing.assert_allclose(np.asarray(weights, np.float32).sum(axis=-1), 1, atol=2e-3)
    assert np.isfinite(np.asarray(pf.attend(queries, keys, values), np.float32)).all()
