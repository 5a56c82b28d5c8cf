"""Chapter 05, put to use: every scheme in the attention layer and in the block, against a loop and against order."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf

SEQ, KV_SEQ, D_MODEL, HEADS, KV_HEADS, BATCH = 5, 7, 24, 4, 2, 3
SCHEMES = ["sinusoidal", "learned", "rotary", "relative", "alibi"]
IN_ATTENTION = SCHEMES[2:]


def make(name, key):
    """A scheme for four heads; learned numbers are made large enough to be seen."""
    scheme = {
        "sinusoidal": lambda: pf.SinusoidalPositions(D_MODEL),
        "learned": lambda: pf.LearnedPositions(11, D_MODEL, key=key),
        "rotary": lambda: pf.RotaryPositions(base=20.0),
        "relative": lambda: pf.RelativePositions(HEADS, num_buckets=8, max_distance=5, key=key),
        "alibi": lambda: pf.AlibiPositions(HEADS),
    }[name]()
    return jax.tree.map(lambda weights: 50 * weights, scheme)


def multi_head(x, context, layer, name, scheme, mask):
    """Queries, keys and scores one at a time, in float64; buckets 0 to 7 as the table of distances says."""
    x, context = np.asarray(x, np.float64), np.asarray(context, np.float64)
    maps = [layer.query_weight, layer.key_weight, layer.value_weight, layer.output_weight]
    w_q, w_k, w_v, w_o = (np.asarray(w, np.float64) for w in maps)
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


@pytest.fixture
def layer(key):
    """Four query heads that share two key heads."""
    return pf.MultiHeadAttention(D_MODEL, HEADS, num_kv_heads=KV_HEADS, key=jax.random.fold_in(key, 1))


@pytest.fixture
def x(key):
    """Five tokens."""
    return jax.random.normal(key, (SEQ, D_MODEL))


@eqx.filter_jit
def attended(layer, x, mask, scheme, context=None):
    return layer(x, mask, context=context, position=scheme)


@pytest.mark.equation("eq-positions-bias", "eq-positions-rotary", "eq-positions-relative", "eq-positions-alibi")
@pytest.mark.parametrize("name", SCHEMES)
def test_multi_head_attention_with_position_agrees_with_a_loop_in_float64(name, layer, x, key):
    scheme, context = make(name, key), jax.random.normal(jax.random.fold_in(key, 2), (KV_SEQ, D_MODEL))
    causal, some = pf.causal_mask(SEQ), jax.random.bernoulli(key, 0.6, (SEQ, KV_SEQ)).at[:, 0].set(True)
    for mask, other in [(causal, None), (some, context)]:
        expected = multi_head(x, x if other is None else other, layer, name, scheme, np.asarray(mask))
        np.testing.assert_allclose(attended(layer, x, mask, scheme, other), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", IN_ATTENTION)
def test_multi_head_attention_weights_with_position_are_those_behind_the_output(name, layer, x, key):
    scheme = make(name, key)
    weights = layer.weights(x, pf.causal_mask(SEQ), position=scheme)
    values = jnp.repeat(pf.split_heads(x @ layer.value_weight, KV_HEADS), HEADS // KV_HEADS, axis=0)
    by_hand = pf.merge_heads(weights @ values) @ layer.output_weight
    np.testing.assert_allclose(attended(layer, x, pf.causal_mask(SEQ), scheme), by_hand, rtol=1e-4, atol=1e-5)
    assert np.abs(weights - layer.weights(x, pf.causal_mask(SEQ))).max() > 0.05


@pytest.mark.parametrize("name", SCHEMES)
def test_schemes_do_nothing_where_they_have_nothing_to_do(name, layer, x, key):
    scheme = make(name, key)
    if name in IN_ATTENTION:
        assert scheme.embed(x) is x
    else:
        assert np.abs(scheme.embed(x) - x).max() > 0.1
    if name != "rotary":
        assert scheme.rotate(x, jnp.arange(SEQ)) is x
    if name not in ("relative", "alibi"):
        assert scheme.bias(jnp.arange(SEQ), jnp.arange(KV_SEQ)) is None


@pytest.mark.equation("eq-positions-rotary-offset", "eq-positions-relative", "eq-positions-alibi")
@pytest.mark.parametrize("name", IN_ATTENTION)
def test_multi_head_attention_with_position_is_unmoved_by_a_translation(name, layer, x, key):
    # Two tokens that nobody may see push the other three on by two positions.
    scheme, hidden = make(name, key), pf.padding_mask(jnp.array([False] * 2 + [True] * 3))
    pushed = attended(layer, x, hidden, scheme)[2:]
    np.testing.assert_allclose(pushed, attended(layer, x[2:], None, scheme), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", SCHEMES)
def test_schemes_tell_the_order_of_tokens(name, layer, x, key):
    scheme, order = make(name, key), jnp.array([3, 0, 4, 1, 2])

    def output(x, scheme):
        return attended(layer, x if scheme is None else scheme.embed(x), None, scheme)

    np.testing.assert_allclose(output(x[order], None), output(x, None)[order], rtol=1e-4, atol=1e-5)
    assert np.abs(output(x[order], scheme) - output(x, scheme)[order]).max() > 0.02


@pytest.mark.parametrize("name", SCHEMES)
def test_every_scheme_serves_the_same_block_compiled_in_batches_and_with_gradients(name, key):
    block = pf.TransformerBlock(D_MODEL, HEADS, 10, num_kv_heads=KV_HEADS, key=key)
    scheme, batch = make(name, key), jax.random.normal(key, (BATCH, SEQ, D_MODEL))

    def output(model, x):
        block, scheme = model
        return block(scheme.embed(x), pf.causal_mask(SEQ), position=scheme)

    @eqx.filter_jit
    def loss_and_gradient(model, batch):
        return eqx.filter_value_and_grad(lambda m: (jax.vmap(lambda x: output(m, x))(batch) ** 2).mean())(model)

    loss, gradient = loss_and_gradient((block, scheme), batch)
    one_by_one = np.stack([eqx.filter_jit(output)((block, scheme), x) for x in batch])
    np.testing.assert_allclose(loss, (one_by_one**2).mean(), rtol=1e-5)
    np.testing.assert_allclose(output((block, scheme), batch[1]), one_by_one[1], rtol=1e-4, atol=1e-5)
    for part in jax.tree.leaves(gradient):
        assert jnp.isfinite(part).all()
    learned = jax.tree.leaves(gradient[1])
    assert len(learned) == (name in ("learned", "relative"))
    assert all((part != 0).any() for part in learned)
    # The scheme says where a token is, and the causal mask still hides what comes after it.
    changed = output((block, scheme), batch[1].at[-1].add(1.0))
    np.testing.assert_allclose(changed[:-1], one_by_one[1][:-1], rtol=1e-4, atol=1e-5)
