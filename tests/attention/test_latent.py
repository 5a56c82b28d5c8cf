"""Keys and values of one short vector per token, plain and absorbed, and what its cache holds."""

import functools
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from all_models import KINDS, new_model
from closeness import assert_close
from jax.test_util import check_grads
from toy_models import drawn

import plainformer as pf
from plainformer.attention import LatentAttention, LatentConfig, absorbed_scores, latent_keys, latent_values
from plainformer.models.accounting import cache_bytes

SEQ, D_MODEL, HEADS, D_K, D_V, WIDTH, ROTARY, QUERY = 7, 12, 3, 10, 5, 8, 4, 9
LATENT = LatentConfig(width=WIDTH, rotary_width=ROTARY, query_width=QUERY)
ROTARY_SCHEME = pf.RotaryPositions(base=50.0)
POSITIONS = np.arange(SEQ)


def draw(*shape, seed=0):
    return jnp.asarray(np.random.default_rng([seed, *shape]).normal(size=shape), float)


@functools.cache
def new_layer(query_width=QUERY, kernel=None, norms=True, use_bias=True):
    """A layer with all its numbers drawn, biases too."""
    latent = LatentConfig(width=WIDTH, rotary_width=ROTARY, query_width=query_width)
    options = {"latent": latent, "d_k": D_K, "d_v": D_V, "use_bias": use_bias}
    if kernel is not None:
        options["kernel"] = kernel
    if norms:
        options["latent_norm"] = pf.RMSNorm(WIDTH)
        options |= {} if query_width is None else {"query_norm": pf.RMSNorm(query_width)}
    return drawn(lambda sizes, key: LatentAttention(*sizes, **options, key=key), (D_MODEL, HEADS))


def arrays():
    return draw(2, SEQ, WIDTH), draw(2, SEQ, ROTARY, seed=1), draw(HEADS, WIDTH, D_K - ROTARY), draw(HEADS, WIDTH, D_V)


@pytest.mark.equation("eq-modern-latent-keys", "eq-modern-latent-values")
def test_latent_keys_and_values_by_hand():
    """A short vector (1, 2); the first head takes their sum, the second their difference; 7 and 8 are shared."""
    latents, shared = jnp.asarray([[1.0, 2.0]]), jnp.asarray([[7.0, 8.0]])
    ups = jnp.asarray([[[1.0], [1.0]], [[1.0], [-1.0]]])
    np.testing.assert_array_equal(latent_keys(latents, shared, ups), [[[3.0, 7.0, 8.0]], [[-1.0, 7.0, 8.0]]])
    np.testing.assert_array_equal(latent_values(latents, ups), [[[3.0]], [[-1.0]]])


@pytest.mark.equation("eq-modern-latent-absorbed")
def test_absorbed_scores_are_the_products_with_the_keys():
    latents, shared, key_up, _ = arrays()
    queries = draw(2, HEADS, 5, D_K)
    expected = pf.dot_product_scores(queries, latent_keys(latents, shared, key_up))
    assert_close(absorbed_scores(queries, latents, shared, key_up), expected)


@pytest.mark.equation("eq-modern-latent-absorbed")
def test_gradients_of_both_forms(x64):
    latents, shared, key_up, _ = (jnp.asarray(each, jnp.float64) for each in arrays())
    queries = jnp.asarray(draw(2, HEADS, 5, D_K), jnp.float64)
    check_grads(latent_keys, (latents, shared, key_up), 1, modes=["rev"])
    check_grads(absorbed_scores, (queries, latents, shared, key_up), 1, modes=["rev"])


@pytest.mark.equation("eq-modern-latent-keys", "eq-modern-latent-values")
@pytest.mark.parametrize(("query_width", "scheme"), [(QUERY, ROTARY_SCHEME), (None, pf.AlibiPositions(HEADS))])
def test_latent_attention_agrees_with_a_loop_in_float64(query_width, scheme):
    layer, x, mask = new_layer(query_width), draw(SEQ, D_MODEL), pf.causal_mask(SEQ)
    found, weights = layer(x, mask, scheme=scheme), layer.attention_weights(x, mask, scheme=scheme)
    assert_close(found, reference.multi_head(x, x, layer, np.asarray(mask), scheme))
    np.testing.assert_allclose(weights, reference.multi_head_weights(x, x, layer, np.asarray(mask), scheme), atol=1e-5)


@pytest.mark.parametrize("kernel", [pf.attention.Softmax(), pf.attention.Blockwise(block_size=3)])
def test_latent_attention_keeps_padding_out(kernel):
    layer, x = new_layer(kernel=kernel), draw(2, SEQ, D_MODEL)
    is_token = np.arange(SEQ) < np.array([[SEQ], [4]])
    found = layer(x.at[1, 4:].set(jnp.nan), pf.attention.Mask(is_token=jnp.asarray(is_token)), scheme=ROTARY_SCHEME)
    assert_close(found[0], layer(x[0], scheme=ROTARY_SCHEME))
    assert_close(found[1, :4], layer(x[1, :4], scheme=ROTARY_SCHEME))


compiled_extend = eqx.filter_jit(lambda layer, *given, **options: layer.extend(*given, **options))


def extended(layer, x, parts, **options):
    """What a layer returns if it reads a text in parts, and the cache then."""
    cache, rows = layer.make_cache(9, batch=x.shape[:-2]), []
    for first, last in itertools.pairwise(parts):
        places = np.broadcast_to(np.arange(first, last), (*x.shape[:-2], last - first))
        out, cache = compiled_extend(layer, x[..., first:last, :], cache, places, **options)
        rows.append(out)
    return jnp.concatenate(rows, axis=-2), cache


@pytest.mark.equation("eq-modern-latent-absorbed")
@pytest.mark.parametrize(("query_width", "scheme"), [(None, ROTARY_SCHEME), (QUERY, pf.AlibiPositions(HEADS))])
def test_the_absorbed_form_returns_what_the_plain_one_does(query_width, scheme):
    layer, x = new_layer(query_width), draw(2, 3, SEQ, D_MODEL)
    found, _ = extended(layer, x, [0, 4, 5, SEQ], scheme=scheme)
    assert_close(found, layer(x, pf.causal_mask(SEQ), scheme=scheme))


@pytest.mark.equation("eq-modern-latent-cache")
def test_the_cache_holds_short_vectors_and_turned_keys_and_nothing_else():
    layer, x = new_layer(), draw(2, SEQ, D_MODEL)
    cache = extended(layer, x, [0, SEQ], scheme=ROTARY_SCHEME)[1]
    assert cache.keys.shape == (2, 1, ROTARY, 9)
    assert cache.values.shape == (2, 1, 9, WIDTH)
    assert_close(cache.values[:, 0, :SEQ], layer.latent_norm(layer.down(x)))
    assert_close(cache.keys[:, 0, :, :SEQ].mT, ROTARY_SCHEME.rotate(layer.rotary_key(x)))


def test_extend_hides_padding_and_texts_can_be_selected():
    layer, x = new_layer(), draw(2, 4, D_MODEL)
    places = np.array([[0, 1, 2, 3], [-1, -1, 0, 1]])
    rows, cache = layer.extend(x, layer.make_cache(9, batch=(2,)), places, scheme=ROTARY_SCHEME)
    alone, _ = extended(layer, x[1, 2:], [0, 2], scheme=ROTARY_SCHEME)
    assert_close(rows[1, 2:], alone)
    again = draw(2, 1, D_MODEL, seed=3)
    swapped = layer.extend(again, cache.select(np.array([1, 0])), np.array([[2], [4]]), scheme=ROTARY_SCHEME)[0]
    assert_close(swapped[::-1], layer.extend(again[::-1], cache, np.array([[4], [2]]), scheme=ROTARY_SCHEME)[0])


def test_a_layer_of_16_bits_stays_in_16_bits():
    half = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), new_layer())
    x = draw(SEQ, D_MODEL).astype(jnp.bfloat16)
    rows, cache = half.extend(x, half.make_cache(9), POSITIONS, scheme=ROTARY_SCHEME)
    assert half(x, scheme=ROTARY_SCHEME).dtype == rows.dtype == cache.keys.dtype == cache.values.dtype == jnp.bfloat16


@pytest.mark.equation("eq-modern-latent-cache")
def test_latent_cache_bytes_are_those_of_the_arrays():
    config = pf.StackConfig(d_model=24, num_layers=5, num_heads=6, d_k=9, d_v=7, latent=LATENT)
    decoder = eqx.filter_eval_shape(
        lambda key: pf.Decoder(pf.DecoderConfig(11, 30, config), key=key), jax.random.key(0)
    )
    cache = eqx.filter_eval_shape(lambda model: model.make_cache(13, batch=(2,)), decoder)
    assert cache_bytes(config, 2 * 13) == 5 * (8 + 4) * 2 * 13 * 4
    assert sum(4 * (part.key_columns.size + part.value_rows.size) for part in cache) == cache_bytes(config, 2 * 13)


@pytest.mark.equation("eq-efficiency-training-flops")
@pytest.mark.parametrize("query_width", [QUERY, None])
def test_training_flops_are_those_of_the_products_of_a_step_with_latent_attention(query_width):
    latent = LatentConfig(width=WIDTH, rotary_width=ROTARY, query_width=query_width)
    model = new_model("decoder", latent=latent, d_k=D_K, d_v=D_V, position_scheme="rotary")
    batch = pf.data.Windows(jnp.zeros((5, 7), int), jnp.zeros((5, 7), int))
    counted = pf.training.count_flops(eqx.filter_value_and_grad(pf.training.next_token_loss), model, batch)
    assert counted == pf.training_flops(model.config, 5 * 7, 7)


@pytest.mark.parametrize("kind", ["decoder", "seq2seq"])
def test_a_model_with_latent_attention_is_saved_and_loaded(kind, tmp_path):
    model = new_model(kind, latent=LATENT, d_k=D_K, position_scheme="rotary")
    pf.save_model(tmp_path / "it.safetensors", model)
    again = pf.load_model(tmp_path / "it.safetensors", KINDS[kind].model)
    assert again.config == model.config
    for found, expected in zip(jax.tree.leaves(again), jax.tree.leaves(model), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_latent_decoder_writes_the_same_with_a_cache():
    model = new_model("decoder", latent=LATENT, d_k=D_K, num_layers=2, position_scheme="rotary", window=3)
    tokens = jnp.asarray(np.random.default_rng(5).integers(11, size=(2, 9)))
    cache, rows = model.make_cache(batch=(2,)), []
    for part in (tokens[:, :4], tokens[:, 4:5], tokens[:, 5:]):
        x, cache = model.extend(part, cache)
        rows.append(model.logits(x))
    assert_close(jnp.concatenate(rows, axis=1), model(tokens), scale=3.0)


def test_an_adapter_and_few_bytes_reach_the_absorbed_form_too():
    model = new_model("decoder", latent=LATENT, d_k=D_K, position_scheme="rotary")
    adapted = pf.models.add_adapters(model, rank=2, key=jax.random.key(1))
    adapted = jax.tree.map(lambda leaf: leaf + 0.1 if eqx.is_array(leaf) else leaf, adapted)
    small = pf.models.low_precision.in_few_bytes(model, "int8")
    tokens = jnp.asarray(np.random.default_rng(5).integers(11, size=9))
    for each in (adapted, small):
        rows, _ = each.extend(tokens, each.make_cache())
        assert_close(each.logits(rows), each(tokens), scale=3.0)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"d_k": ROTARY}, "rotary_width"),
        ({"attention": "linear"}, "Linear"),
        ({"num_kv_heads": 2}, "num_kv_heads"),
        ({"qk_norm": True}, "qk_norm"),
        ({"rotary_fraction": 0.5}, "rotary_fraction"),
    ],
)
def test_what_does_not_go_with_latent_attention_is_refused(wrong, said, unchecked):
    with pytest.raises(ValueError, match=said):
        pf.StackConfig(**{"d_model": D_MODEL, "num_heads": 6, "d_k": D_K, "latent": LATENT} | wrong)


def test_a_cache_of_another_layer_is_refused(unchecked):
    other = pf.MultiHeadAttention(D_MODEL, HEADS, key=jax.random.key(0)).make_cache(9)
    with pytest.raises(ValueError, match=r"cache\.keys"):
        new_layer().extend(draw(SEQ, D_MODEL), other, POSITIONS)


def test_a_plan_for_many_devices_says_that_it_does_not_count_short_vectors(unchecked):
    stack = pf.StackConfig(d_model=D_MODEL, num_heads=HEADS, d_k=D_K, latent=LATENT)
    with pytest.raises(ValueError, match="latent attention"):
        pf.plan(pf.DecoderConfig(11, 9, stack), {"data": 1}, "A100", batch_size=2)
