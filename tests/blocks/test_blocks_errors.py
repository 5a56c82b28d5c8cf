"""Chapter 04's block at its edges: half precision, compiled, without tokens, and what a reader is told."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf

KEY, ROWS, CONTEXT = jax.random.key(0), jnp.ones((5, 6)), jnp.ones((7, 6))


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_transformer_block_in_half_precision_keeps_the_dtype(placement, dtype):
    block = pf.TransformerBlock(6, 3, placement=placement, cross_attention=True, dropout_rate=0.1, key=KEY)
    half = jax.tree.map(lambda w: w.astype(dtype), block)
    x, context = jax.random.normal(KEY, (5, 6)), jax.random.normal(KEY, (7, 6))
    output = half(x.astype(dtype), context=context.astype(dtype), position=pf.RotaryPositions())
    assert output.dtype == dtype
    expected = block(x, context=context, position=pf.RotaryPositions())
    np.testing.assert_allclose(output.astype(jnp.float32), expected, atol=0.1)
    assert half(x.astype(dtype), context=context.astype(dtype), key=KEY).dtype == dtype


def test_transformer_block_takes_no_tokens_and_no_context():
    block = pf.TransformerBlock(6, 3, cross_attention=True, key=KEY)
    assert block(ROWS[:0], context=CONTEXT).shape == (0, 6)
    assert np.isfinite(block(ROWS, context=CONTEXT[:0])).all()


def test_transformer_block_takes_tokens_of_one_number():
    assert np.isfinite(pf.TransformerBlock(1, 1, key=KEY)(jnp.array([[2.0], [-3.0]]))).all()


def test_transformer_block_is_the_same_compiled_and_over_a_batch():
    block, traced = pf.TransformerBlock(6, 3, dropout_rate=0.5, key=KEY), []

    @eqx.filter_jit
    def compiled(block, batch, keys):
        traced.append(batch.shape)
        return jax.vmap(lambda rows, key: block(rows, pf.causal_mask(5), key=key))(batch, keys)

    batch, keys = jax.random.normal(KEY, (3, 5, 6)), jax.random.split(KEY, 3)
    outputs = compiled(block, batch, keys)
    compiled(block, 2 * batch, jax.random.split(keys[0], 3))
    assert len(traced) == 1  # new values and keys, no new trace
    for output, rows, key in zip(outputs, batch, keys, strict=True):
        np.testing.assert_allclose(output, block(rows, pf.causal_mask(5), key=key), rtol=1e-4, atol=1e-5)


def block(**options):
    return pf.TransformerBlock(6, 3, key=KEY, **options)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: block(activation="tanh"), ValueError, r"activation is 'tanh'; expected one of 'relu'.*'swiglu'"),
        (lambda: block(placement="before"), ValueError, r"placement is 'before'; expected one of 'pre', 'post'"),
        (lambda: block(norm="batch"), ValueError, r"norm is 'batch'; expected one of 'layer', 'rms'"),
        (lambda: block(dropout_rate=-0.1), ValueError, r"dropout_rate is -0\.1; expected a probability of at least 0"),
        (lambda: block(dropout_rate=1.0), ValueError, r"dropout_rate is 1\.0; expected a probability .* below 1"),
        (lambda: block(dropout_rate="0.1"), TypeError, r"dropout_rate is '0\.1'; expected a number"),
        (lambda: block(dropout_rate=True), TypeError, r"dropout_rate is True; expected a number"),
        (lambda: pf.TransformerBlock(6, 0, key=KEY), ValueError, r"num_heads is 0; expected at least 1"),
        (lambda: block(d_ff=0), ValueError, r"d_ff is 0; expected at least 1"),
        (lambda: block(num_kv_heads=2), ValueError, r"num_heads=3 is not a multiple of num_kv_heads=2"),
        (lambda: pf.TransformerBlock(0, 1, key=KEY), ValueError, r"d_model is 0; expected at least 1"),
        (lambda: pf.TransformerBlock(7, 3, key=KEY), ValueError, r"d_model=7 is not .*num_heads=3.*another number"),
        (lambda: block()(ROWS[None]), ValueError, r"x has shape \(1, 5, 6\).*batch.*jax\.vmap"),
        (lambda: block()(jnp.ones((5, 8))), ValueError, r"x has shape \(5, 8\); expected \(seq, d_model=6\)"),
        (lambda: block()(ROWS.T), ValueError, r"x has .*swapped.*x\.T"),
        (lambda: block()(ROWS, jnp.ones((5, 4), bool)), ValueError, r"mask has .*expected \(seq=5, kv_seq=5\)"),
        (lambda: block()(ROWS, jnp.ones((5, 5))), TypeError, r"mask is an array of float32; expected a Boolean"),
        (lambda: block()(ROWS, context=CONTEXT), ValueError, r"takes no context; make it with cross_attention=True"),
        (
            lambda: block()(ROWS, context_mask=jnp.ones((5, 7), bool)),
            ValueError,
            r"takes no context; make it with cross_attention=True",
        ),
        (lambda: block(cross_attention=True)(ROWS), ValueError, r"needs a context: pass context=, \(kv_seq, d_model\)"),
        (
            lambda: block(cross_attention=True)(ROWS, context=jnp.ones((7, 8))),
            ValueError,
            r"context has shape \(7, 8\); expected \(kv_seq, d_model=6\)",
        ),
        (
            lambda: block(cross_attention=True)(ROWS, context=CONTEXT, context_mask=jnp.ones((7, 5), bool)),
            ValueError,
            r"context_mask has shape \(7, 5\); expected \(seq=5, kv_seq=7\).*context_mask\.T",
        ),
        (
            lambda: block(cross_attention=True)(ROWS, context=CONTEXT, context_mask=jnp.ones((5, 7))),
            TypeError,
            r"^context_mask is an array of float32; expected a Boolean.*context_mask == 0",
        ),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
