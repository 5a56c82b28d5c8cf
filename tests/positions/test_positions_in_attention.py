"""Put to use: every scheme in the attention layer and in the block, against a loop and against order."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from closeness import assert_close
from flat import make_block
from toy_models import drawn

import plainformer as pf

SEQ, KV_SEQ, D_MODEL, HEADS, KV_HEADS, BATCH = 5, 7, 24, 4, 2, 3
SCHEMES = ["sinusoidal", "learned", "rotary", "relative", "alibi"]


@functools.cache
def make(name):
    """A scheme for four heads; learned numbers are drawn large enough to be seen."""
    kinds = {
        "sinusoidal": lambda _, key: pf.SinusoidalPositions(D_MODEL),
        "learned": lambda _, key: pf.LearnedPositions(11, D_MODEL, key=key),
        "rotary": lambda _, key: pf.RotaryPositions(base=20.0),
        "relative": lambda _, key: pf.RelativePositions(HEADS, num_buckets=8, max_distance=5, key=key),
        "alibi": lambda _, key: pf.AlibiPositions(HEADS),
    }
    return drawn(kinds[name], None)


def draw(*shape):
    """Normal numbers, made without the compiler."""
    return jnp.asarray(np.random.default_rng(shape).normal(size=shape), jnp.float32)


# Four query heads that share two key heads; five tokens.
LAYER = drawn(lambda sizes, key: pf.MultiHeadAttention(*sizes, num_kv_heads=KV_HEADS, key=key), (D_MODEL, HEADS))
X, CAUSAL = draw(SEQ, D_MODEL), np.tri(SEQ, dtype=bool)


def multi_head(x, context, layer, name, scheme, mask):
    """Queries, keys and scores one at a time, in float64; buckets 0 to 7 as the table of distances says."""
    x, context = np.asarray(x, np.float64), np.asarray(context, np.float64)
    maps = [layer.query, layer.key, layer.value, layer.output]
    w_q, w_k, w_v, w_o = (np.asarray(part.weight, np.float64) for part in maps)
    d_k = D_MODEL // HEADS

    def turned(row, position):
        numbers = row[: d_k // 2] + 1j * row[d_k // 2 :]
        numbers = numbers * np.exp(1j * position * 20.0 ** (-2 * np.arange(d_k // 2) / d_k))
        return np.concatenate([numbers.real, numbers.imag])

    def added(head, n, m):
        if name == "alibi":
            return -(2.0 ** (-2 * (head + 1))) * abs(m - n)
        if name == "relative":  # 2 single distances, then 2 to 3.16, then the rest; those ahead have 4 buckets more
            return float(scheme.table[min(abs(m - n), 2 + (abs(m - n) > 3)) + 4 * (m > n), head])
        return 0.0

    output = np.zeros((len(x), D_MODEL))
    for head in range(HEADS):
        at, kv_at = (slice(h * d_k, (h + 1) * d_k) for h in (head, head * KV_HEADS // HEADS))
        for n in range(len(x)):
            seen, exponentials = [m for m in range(len(context)) if mask[n, m]], []
            for m in seen:
                query, key = x[n] @ w_q[:, at], context[m] @ w_k[:, kv_at]
                if name == "rotary":
                    query, key = turned(query, n), turned(key, m)
                exponentials.append(np.exp(query @ key / d_k**0.5 + added(head, n, m)))
            for m, exponential in zip(seen, exponentials, strict=True):
                output[n] += exponential / sum(exponentials) * (context[m] @ w_v[:, kv_at]) @ w_o[at]
    return output


@eqx.filter_jit
def attended(layer, x, mask, scheme, context=None):
    return layer(x, mask, context=context, scheme=scheme)


@pytest.mark.equation("eq-positions-bias", "eq-positions-rotary", "eq-positions-relative", "eq-positions-alibi")
@pytest.mark.parametrize("name", SCHEMES)
def test_multi_head_attention_with_position_agrees_with_a_loop_in_float64(name):
    scheme, context = make(name), draw(KV_SEQ, D_MODEL)
    some = np.random.default_rng(0).random((SEQ, KV_SEQ)) < 0.6
    some[:, 0] = True
    for mask, other in [(CAUSAL, None), (some, context)]:
        expected = multi_head(X, X if other is None else other, LAYER, name, scheme, mask)
        assert_close(attended(LAYER, X, mask, scheme, other), expected)


@pytest.mark.parametrize("name", ["learned", "rotary", "relative"])
def test_every_scheme_serves_the_same_block_compiled_in_batches_and_with_gradients(name):
    block = drawn(lambda sizes, key: make_block(*sizes, num_kv_heads=KV_HEADS, key=key), (D_MODEL, HEADS, 10))
    model, batch = (block, make(name)), draw(BATCH, SEQ, D_MODEL)

    def output(model, x):
        block, scheme = model
        return block(scheme.embed(x), pf.causal_mask(SEQ), scheme=scheme)

    @eqx.filter_jit
    def loss_and_gradient(model):
        return eqx.filter_value_and_grad(lambda m: (jax.vmap(lambda x: output(m, x))(batch) ** 2).mean())(model)

    loss, gradient = loss_and_gradient(model)
    alone = eqx.filter_jit(output)
    one_by_one = np.stack([alone(model, x) for x in batch])
    assert_close(alone(model, batch), one_by_one)
    np.testing.assert_allclose(loss, (one_by_one**2).mean(), rtol=1e-5)
    for part in jax.tree.leaves(gradient):
        assert np.isfinite(part).all()
    learned = jax.tree.leaves(gradient[1])
    assert len(learned) == (name in ("learned", "relative"))
    assert all((part != 0).any() for part in learned)
    # The scheme says where a token is, and the causal mask still hides what comes after it.
    changed = alone(model, batch[1].at[-1].add(1.0))
    np.testing.assert_allclose(changed[:-1], one_by_one[1][:-1], rtol=1e-4, atol=1e-5)
