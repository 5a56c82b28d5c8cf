"""Chapter 04, the whole block: where the norm stands, what passes untouched, which tokens reach which."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from jax.test_util import check_grads
from redraw import redrawn

import plainformer as pf

SEQ, KV_SEQ, D_MODEL, HEADS, D_FF = 5, 7, 12, 3, 10
CLOSE = {"rtol": 1e-3, "atol": 1e-4}


@pytest.fixture
def x(key):
    """Five tokens."""
    return jax.random.normal(key, (SEQ, D_MODEL)) + 1


@pytest.fixture
def context(key):
    """Seven other tokens."""
    return jax.random.normal(jax.random.fold_in(key, 1), (KV_SEQ, D_MODEL))


@pytest.fixture
def context_mask(key):
    """A mask for the context with a row that sees nothing."""
    return jax.random.bernoulli(key, 0.6, (SEQ, KV_SEQ)).at[1].set(False).at[0, 0].set(True)


def silenced(block):
    """The block with zeros in the last matrix of every sublayer, which therefore adds nothing."""
    ends = [block.attention.output_weight, block.feed_forward.out_weight]
    return eqx.tree_at(
        lambda m: [m.attention.output_weight, m.feed_forward.out_weight], block, [jnp.zeros_like(w) for w in ends]
    )


@pytest.mark.equation("eq-blocks-pre-norm", "eq-blocks-post-norm")
def test_pre_norm_and_post_norm_by_hand():
    x = jnp.array([[1.0, 3.0], [2.0, 10.0]])
    halve, square = (lambda rows: rows / 2), (lambda rows: rows**2)
    np.testing.assert_array_equal(pf.pre_norm(x, halve, square), [[1.25, 5.25], [3, 35]])  # x + (x / 2)²
    np.testing.assert_array_equal(pf.post_norm(x, halve, square), [[1, 6], [3, 55]])  # (x + x²) / 2


@pytest.mark.equation("eq-blocks-pre-norm", "eq-blocks-block")
def test_transformer_block_with_silent_sublayers_is_the_identity_only_with_pre_norm(x, key):
    before, after = (pf.TransformerBlock(D_MODEL, HEADS, placement=p, key=key) for p in ("pre", "post"))
    np.testing.assert_array_equal(silenced(before)(x), x)
    np.testing.assert_allclose(silenced(after)(x), pf.standardise(x), atol=1e-4)


@pytest.mark.equation("eq-blocks-pre-norm")
def test_pre_norm_takes_the_skip_from_the_token_not_from_its_normalised_form(x):
    from_token = pf.pre_norm(x, pf.standardise, jnp.zeros_like)
    from_norm = pf.standardise(x) + jnp.zeros_like(x)
    np.testing.assert_array_equal(from_token, x)
    assert np.abs(from_norm - x).max() > 0.5


@pytest.mark.equation("eq-blocks-block", "eq-blocks-pre-norm", "eq-blocks-post-norm")
@pytest.mark.parametrize("cross_attention", [False, True])
@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize(
    ("placement", "activation", "num_kv_heads", "use_bias"),
    [
        ("pre", "gelu", None, True),
        ("pre", "swiglu", 2, False),
        ("pre", "silu", 1, True),
        ("post", "relu", 2, True),
        ("post", "gelu_tanh", None, False),
        ("post", "swiglu", 4, True),
    ],
)
def test_transformer_block_agrees_with_a_loop_in_float64(
    placement, activation, num_kv_heads, use_bias, norm, cross_attention, x, context, context_mask, key
):
    block = pf.TransformerBlock(
        D_MODEL,
        4,
        D_FF,
        placement=placement,
        norm=norm,
        activation=activation,
        num_kv_heads=num_kv_heads,
        cross_attention=cross_attention,
        use_bias=use_bias,
        key=key,
    )
    block, mask = redrawn(block, key), pf.causal_mask(SEQ)
    more = {"context": context, "context_mask": context_mask} if cross_attention else {}
    np.testing.assert_allclose(block(x, mask, **more), reference.block(x, block, mask, **more), **CLOSE)


@pytest.mark.equation("eq-blocks-block")
@pytest.mark.parametrize("name", ["sinusoidal", "learned", "rotary", "relative", "alibi"])
def test_transformer_block_takes_every_position_scheme(name, x, key):
    position = {
        "sinusoidal": lambda: pf.SinusoidalPositions(D_MODEL),
        "learned": lambda: pf.LearnedPositions(9, D_MODEL, key=key),
        "rotary": lambda: pf.RotaryPositions(base=100.0),
        "relative": lambda: redrawn(pf.RelativePositions(HEADS, num_buckets=4, max_distance=3, key=key), key),
        "alibi": lambda: pf.AlibiPositions(HEADS),
    }[name]()
    block = redrawn(pf.TransformerBlock(D_MODEL, HEADS, D_FF, key=key), key)
    rows = position.embed(x)
    output = block(rows, position=position)
    np.testing.assert_allclose(output, reference.block(rows, block, position=position), **CLOSE)
    assert np.abs(output - block(x)).max() > 0.01


@pytest.mark.equation("eq-blocks-block")
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_transformer_block_follows_a_permutation_of_its_tokens_and_ignores_one_of_the_context(
    placement, x, context, key
):
    order, other = jnp.array([3, 0, 4, 1, 2]), jnp.array([6, 1, 5, 0, 2, 4, 3])
    block = pf.TransformerBlock(D_MODEL, HEADS, placement=placement, cross_attention=True, key=key)
    expected = block(x, context=context)[order]
    np.testing.assert_allclose(block(x[order], context=context[other]), expected, rtol=1e-4, atol=1e-5)
    causal = block(x[order], pf.causal_mask(SEQ), context=context)
    assert np.abs(causal - block(x, pf.causal_mask(SEQ), context=context)[order]).max() > 0.01


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_transformer_block_lets_no_gradient_back_from_the_future(placement, x, key):
    block = pf.TransformerBlock(D_MODEL, HEADS, placement=placement, key=key)
    jacobian = jax.jacobian(lambda x: block(x, pf.causal_mask(SEQ), position=pf.RotaryPositions()))(x)
    reach = np.abs(jacobian).sum(axis=(1, 3))
    assert (reach[np.triu_indices(SEQ, 1)] == 0.0).all()
    assert (reach[np.tril_indices(SEQ)] > 0).all()


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_transformer_block_ignores_padding(placement, x, context, key):
    block = pf.TransformerBlock(D_MODEL, HEADS, placement=placement, cross_attention=True, key=key)
    padded = jnp.concatenate([x, jnp.full((2, D_MODEL), 99.0)])
    rest = jnp.concatenate([context, jnp.full((4, D_MODEL), -99.0)])
    mask = pf.padding_mask(jnp.arange(SEQ + 2) < SEQ)
    context_mask = pf.padding_mask(jnp.arange(KV_SEQ + 4) < KV_SEQ, SEQ + 2)
    output = block(padded, mask, context=rest, context_mask=context_mask)
    np.testing.assert_allclose(output[:SEQ], block(x, context=context), rtol=1e-4, atol=1e-5)


@pytest.mark.equation("eq-blocks-block", "eq-blocks-dropout")
def test_transformer_block_without_key_or_rate_drops_nothing(x, key):
    block = pf.TransformerBlock(D_MODEL, HEADS, dropout_rate=0.5, key=key)
    plain = pf.TransformerBlock(D_MODEL, HEADS, key=key)
    np.testing.assert_array_equal(block(x), plain(x))
    np.testing.assert_array_equal(plain(x, key=key), plain(x))
    assert np.abs(block(x, key=key) - block(x)).max() > 0.1
    np.testing.assert_array_equal(block(x, key=key), block(x, key=key))


@pytest.mark.equation("eq-blocks-dropout")
def test_transformer_block_drops_each_sublayer_by_a_mask_of_its_own(key):
    wide = 40
    block = pf.TransformerBlock(wide, 4, cross_attention=True, dropout_rate=0.5, key=key)
    # Three sublayers that return 1, 100 and 10,000 everywhere: the digits of the sum say which of them was dropped.
    biases = [jnp.full(wide, size) for size in (1.0, 100.0, 10_000.0)]
    block = jax.tree.map(jnp.zeros_like, block)
    block = eqx.tree_at(
        lambda m: [m.attention.output_bias, m.cross_attention.output_bias, m.feed_forward.out_bias], block, biases
    )
    x = jnp.zeros((50, wide))
    dropped = np.asarray(block(x, context=jnp.zeros((3, wide)), key=key))
    kept = [dropped % 100 == 2, dropped // 100 % 100 == 2, dropped // 10_000 == 2]
    np.testing.assert_array_equal(dropped, sum(2 * size * k for size, k in zip((1, 100, 10_000), kept, strict=True)))
    for n, mask in enumerate(kept):
        assert abs(mask.mean() - 0.5) < 0.05
        for other in kept[n + 1 :]:  # two independent masks agree in half of the places
            assert abs((mask == other).mean() - 0.5) < 0.05


@pytest.mark.equation("eq-blocks-dropout")
def test_transformer_block_dropout_keeps_the_mean_of_what_the_last_sublayer_adds(x, key):
    block = silenced(pf.TransformerBlock(D_MODEL, HEADS, dropout_rate=0.25, key=key))
    block = eqx.tree_at(lambda m: m.feed_forward.out_bias, block, jnp.arange(D_MODEL, dtype=jnp.float32))
    outputs = jax.vmap(lambda key: block(x, key=key))(jax.random.split(key, 2000))
    np.testing.assert_allclose(outputs.mean(axis=0), block(x), atol=0.6)


def test_transformer_block_starts_without_two_equal_weights(key):
    block = pf.TransformerBlock(D_MODEL, HEADS, D_MODEL, cross_attention=True, activation="swiglu", key=key)
    stack = [pf.TransformerBlock(D_MODEL, HEADS, D_MODEL, key=k) for k in jax.random.split(key, 2)]
    matrices = [w for w in jax.tree.leaves((block, stack)) if w.ndim == 2]
    assert len(matrices) == 11 + 2 * 6
    assert all(w.shape == (D_MODEL, D_MODEL) for w in matrices)
    for n, matrix in enumerate(matrices):
        assert all(np.abs(matrix - other).max() > 0.01 for other in matrices[n + 1 :])


@pytest.mark.equation("eq-blocks-parameters")
def test_count_parameters_of_a_block(key):
    attention, norm, feed_forward = 4 * (144 + 12), 24, 12 * 48 + 48 + 48 * 12 + 12
    block = pf.TransformerBlock(D_MODEL, HEADS, key=key)
    assert pf.count_parameters(block) == attention + feed_forward + 2 * norm
    crossed = pf.TransformerBlock(D_MODEL, HEADS, cross_attention=True, key=key)
    assert pf.count_parameters(crossed) == 2 * attention + feed_forward + 3 * norm
    bare = pf.TransformerBlock(D_MODEL, HEADS, norm="rms", use_bias=False, key=key)
    assert pf.count_parameters(bare) == 4 * 144 + 2 * 12 * 48 + 2 * 12


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_transformer_block_has_right_gradients(placement, x64, key):
    block = pf.TransformerBlock(4, 2, 5, placement=placement, cross_attention=True, num_kv_heads=1, key=key)
    parameters, rest = eqx.partition(redrawn(block, key), eqx.is_array)
    x = jax.random.normal(key, (3, 4), jnp.float64)
    context = jax.random.normal(jax.random.fold_in(key, 1), (2, 4), jnp.float64)

    def output(parameters, x, context):  # check_grads hands over NumPy arrays
        parameters, x, context = jax.tree.map(jnp.asarray, (parameters, x, context))
        return eqx.combine(parameters, rest)(x, pf.causal_mask(3), context=context, key=key)

    check_grads(jax.jit(output), (parameters, x, context), order=1, modes=("rev",))


@pytest.mark.equation("eq-blocks-block")
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_transformer_block_of_several_texts_is_each_text_alone(placement, context_mask, key):
    block = pf.TransformerBlock(D_MODEL, HEADS, D_FF, placement=placement, cross_attention=True, key=key)
    block, num_texts = redrawn(block, key), 2
    x = jax.random.normal(key, (num_texts, SEQ, D_MODEL))
    contexts = jax.random.normal(key, (num_texts, KV_SEQ, D_MODEL))

    def one_by_one(block, x, contexts):
        mask = pf.causal_mask(SEQ)
        return jax.vmap(lambda x, c: block(x, mask, context=c, context_mask=context_mask))(x, contexts)

    def together(block, x, contexts):
        rows, context = x.reshape(-1, D_MODEL), contexts.reshape(-1, D_MODEL)
        options = {"context": context, "context_mask": context_mask, "num_texts": num_texts}
        return block(rows, pf.causal_mask(SEQ), **options).reshape(x.shape)

    (expected, wanted_back), (found, back) = (jax.vjp(jax.jit(f), block, x, contexts) for f in (one_by_one, together))
    np.testing.assert_allclose(found, expected, **CLOSE)
    slopes = jax.random.normal(key, x.shape)
    for mine, other in zip(jax.tree.leaves(back(slopes)), jax.tree.leaves(wanted_back(slopes)), strict=True):
        np.testing.assert_allclose(mine, other, **CLOSE)
