"""How many numbers are learned, and what training costs, counted by hand."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from flat import decoder_config

import plainformer as pf
from plainformer.models.accounting import cache_bytes, forward_flops

KEY = jax.random.key(20170612)


@pytest.mark.equation("eq-blocks-parameters")
def test_count_parameters_of_known_modules():
    def count(make):
        return pf.count_parameters(eqx.filter_eval_shape(make))

    assert pf.count_parameters(pf.LayerNorm(12)) == 24
    assert pf.count_parameters(pf.RMSNorm(12)) == 12
    assert count(lambda: pf.FeedForward(12, 7, key=KEY)) == 12 * 7 + 7 + 7 * 12 + 12
    assert count(lambda: pf.FeedForward(12, 7, use_bias=False, key=KEY)) == 2 * 12 * 7
    assert count(lambda: pf.SwiGLU(12, 7, key=KEY)) == 3 * 12 * 7
    assert count(lambda: pf.MultiHeadAttention(12, 3, use_bias=True, key=KEY)) == 4 * (12 * 12 + 12)
    assert pf.count_parameters({"ids": jnp.arange(3), "rate": 0.5, "none": None, "two": [jnp.ones((2, 3))] * 2}) == 12


@pytest.mark.equation("eq-efficiency-training-flops")
def test_training_flops_by_hand():
    config = decoder_config(11, 9, d_model=24, num_layers=5, num_heads=6, num_kv_heads=2, d_ff=10)
    weights = 5 * (2 * 24 * 24 + 2 * 24 * 8 + 2 * 24 * 10) + 24 * 11
    for seq_len, length in [(None, 9), (4, 4)]:
        scores_and_averages = 5 * 2 * 24 * length  # each of 6 heads: 4 columns of queries, 4 of values, per key
        assert pf.training_flops(config, 1000, seq_len) == 6 * 1000 * (weights + scores_and_averages)


@pytest.mark.equation("eq-efficiency-training-flops")
def test_training_flops_are_those_of_the_products_of_a_step():
    model = pf.Decoder(decoder_config(11, 9, d_model=24, num_layers=2, num_heads=6, num_kv_heads=2, d_ff=10), key=KEY)
    batch = pf.data.Windows(jnp.zeros((5, 7), int), jnp.zeros((5, 7), int))
    counted = pf.training.count_flops(eqx.filter_value_and_grad(pf.training.next_token_loss), model, batch)
    assert counted == pf.training_flops(model.config, 5 * 7, 7)


def test_count_flops_by_hand():
    def twice_in_a_loop(x):
        return jax.lax.scan(lambda x, _: (jax.jit(jnp.matmul)(x, x), None), x, None, length=2)[0]

    assert pf.training.count_flops(jnp.matmul, jnp.ones((5, 3)), jnp.ones((3, 7))) == 2 * 5 * 3 * 7
    assert pf.training.count_flops(lambda x: jnp.einsum("bij,bkj->bik", x, x), jnp.ones((4, 5, 3))) == 2 * 4 * 5 * 3 * 5
    assert pf.training.count_flops(twice_in_a_loop, jnp.ones((3, 3))) == 2 * 2 * 3 * 3 * 3
    assert pf.training.count_flops(jnp.tanh, jnp.ones((3, 3))) == 0


def test_training_flops_go_by_the_widths_of_keys_and_values():
    config = decoder_config(11, 9, d_model=24, num_layers=5, num_heads=6, d_k=3, d_v=7, d_ff=10)
    weights = 5 * (2 * 24 * 6 * 3 + 2 * 24 * 6 * 7 + 2 * 24 * 10) + 24 * 11
    assert pf.training_flops(config, 1000) == 6 * 1000 * (weights + 5 * 6 * (3 + 7) * 9)


def test_training_flops_refuses_no_tokens():
    with pytest.raises(ValueError, match="num_tokens is 0; expected at least 1"):
        pf.training_flops(decoder_config(11, 9), 0)


def test_count_parameters_refuses_what_holds_no_arrays():
    assert pf.count_parameters(pf.NoPositions()) == pf.count_parameters({}) == 0
    for bad in (None, 3, "decoder", [2.5]):
        with pytest.raises(TypeError, match=r"^module is of type \w+; expected a module, or a tree of arrays\.$"):
            pf.count_parameters(bad)


@pytest.mark.equation("eq-efficiency-forward-flops")
def test_forward_flops_are_those_of_the_products_and_nearly_the_compilers():
    config = decoder_config(97, 300, d_model=48, num_layers=2, num_heads=6, num_kv_heads=2, d_ff=96)
    model, tokens = pf.Decoder(config, key=KEY), jnp.zeros(256, int)
    expected = forward_flops(config, 256, 256)
    assert pf.training.count_flops(model, tokens) == expected
    by_compiler = eqx.filter_jit(model).lower(tokens).compile().compiled.cost_analysis()["flops"]
    assert expected < by_compiler < 1.25 * expected  # which counts norms, activations and exponentials, too


@pytest.mark.equation("eq-efficiency-kept")
@pytest.mark.parametrize(
    ("form", "numbers"),
    [(pf.attend, lambda n: 2 * n**2 + 3 * n * 8), (pf.attention.blockwise_attention, lambda n: n * (4 * 8 + 1))],
)
def test_kept_bytes_of_attention_by_hand(form, numbers):
    rows = 3 * [jnp.zeros((3, 512, 8))]
    kept = pf.training.count_kept_bytes(form, *rows)
    assert 4 * 3 * numbers(512) <= kept <= 1.01 * 4 * 3 * numbers(512)


def test_kept_bytes_of_a_model_count_its_weights_and_leave_out_what_has_no_gradient():
    layer, x = pf.Linear(5, 7, use_bias=False, key=KEY), jnp.zeros((2, 5))
    assert pf.training.count_kept_bytes(layer, x) == 4 * (2 * 5 + 5 * 7)
    assert pf.training.count_kept_bytes(lambda x, ids: x[ids], x, jnp.array([1])) <= 4 * 2


@pytest.mark.equation("eq-efficiency-cache")
@pytest.mark.parametrize("num_kv_heads", [None, 2, 1])
def test_cache_bytes_are_those_of_the_arrays(num_kv_heads):
    config = decoder_config(11, 9, d_model=24, num_layers=3, num_heads=6, num_kv_heads=num_kv_heads, d_k=5, d_v=3)
    cache = pf.Decoder(config, key=KEY).make_cache(13, batch=(2,))
    assert sum(part.keys.nbytes + part.values.nbytes for part in cache) == cache_bytes(config.stack, 2 * 13)
    assert cache_bytes(config.stack, 13, 2) == 3 * (num_kv_heads or 6) * 8 * 13 * 2
