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
    config = decoder_config(11, 9, d_model=24, num_layers=5, num_heads=6, num_kv_heads=2, d_k=3, d_v=7, d_ff=10)
    weights = 5 * (24 * 6 * (3 + 7) + 24 * 2 * (3 + 7) + 2 * 24 * 10) + 24 * 11
    for seq_len, length in [(None, 9), (4, 4)]:
        scores_and_averages = 5 * 6 * (3 + 7) * length  # each of 6 heads: 3 columns of queries, 7 of values, per key
        assert pf.training_flops(config, 1000, seq_len) == 6 * 1000 * (weights + scores_and_averages)


@pytest.mark.equation("eq-efficiency-training-flops")
@pytest.mark.parametrize(("seq_len", "block"), [(200, 32), (20, 20)])
def test_training_flops_of_blocks_with_a_state_by_hand(seq_len, block):
    sizes = {"d_model": 24, "num_layers": 3, "num_heads": 6, "d_k": 3, "d_v": 7, "d_ff": 10}
    config = decoder_config(11, 999, **sizes, pattern=("delta", "full", "delta"))
    full = 24 * 6 * (3 + 3 + 7 + 7) + 6 * (3 + 7) * seq_len
    maps = 24 * 6 * (3 + 3 + 7 + 7 + 7 + 1 + 1) + 4 * 6 * (3 + 3 + 7)  # with a gate, two numbers a head, the mixing
    delta = maps + 6 * (3 * 3 * 7 + block * (3 + 3 + 7 + 7))
    assert pf.training_flops(config, 1000, seq_len) == 6 * 1000 * (2 * delta + full + 3 * 2 * 24 * 10 + 24 * 11)


@pytest.mark.equation("eq-efficiency-training-flops")
def test_training_flops_are_those_of_the_products_of_a_step():
    model = pf.Decoder(decoder_config(11, 9, d_model=24, num_layers=2, num_heads=6, num_kv_heads=2, d_ff=10), key=KEY)
    batch = pf.data.Windows(jnp.zeros((5, 7), int), jnp.zeros((5, 7), int))
    counted = pf.training.count_flops(eqx.filter_value_and_grad(pf.training.next_token_loss), model, batch)
    assert counted == pf.training_flops(model.config, 5 * 7, 7)


EXPERTS = pf.blocks.ExpertsConfig(num_experts=7, per_token=3, width=5, shared=2, moved_bias=True, dense_layers=1)
ROUTED = {"d_model": 24, "num_heads": 6, "num_kv_heads": 2, "d_ff": 10, "experts": EXPERTS}


@pytest.mark.equation("eq-modern-active")
@pytest.mark.parametrize(("activation", "matrices", "biases"), [("swiglu", 3, 0), ("gelu", 2, 1)])
def test_active_parameters_by_hand(activation, matrices, biases):
    config = decoder_config(11, 9, **ROUTED, num_layers=4, activation=activation)
    model = eqx.filter_eval_shape(pf.Decoder, config, key=KEY)
    of_expert = matrices * 24 * 5 + biases * (5 + 24)
    assert pf.count_parameters(model) - pf.models.active_parameters(model) == 3 * (7 - 3) * of_expert
    block = model.stack.blocks[1].feed_forward
    shared = matrices * 24 * 2 * 5 + biases * (2 * 5 + 24)
    router = 24 * 7 + 7 + 7  # a map with a bias, and the bias that is moved
    assert pf.count_parameters(block) == router + shared + 7 * of_expert
    assert pf.models.active_parameters(block) == router + shared + 3 * of_expert
    dense = model.stack.blocks[0]
    assert pf.models.active_parameters(dense) == pf.count_parameters(dense)


@pytest.mark.equation("eq-efficiency-training-flops", "eq-modern-active")
def test_training_flops_of_experts_are_those_at_work():
    """With fewer tokens than would fill four blocks for each expert, no block has an empty row, and all agrees."""
    model = pf.Decoder(decoder_config(11, 9, **ROUTED, num_layers=2, activation="swiglu"), key=KEY)
    routed = 24 * 7 + 3 * 24 * (3 + 2) * 5
    weights = 2 * (2 * 24 * 24 + 2 * 24 * 8) + 3 * 24 * 10 + routed + 24 * 11
    assert pf.training_flops(model.config, 1000) == 6 * 1000 * (weights + 2 * 2 * 24 * 9)
    for texts, most in [(2, 1.0), (61, 1.25)]:
        batch = pf.data.Windows(jnp.zeros((texts, 7), int), jnp.zeros((texts, 7), int))
        counted = pf.training.count_flops(eqx.filter_value_and_grad(pf.training.next_token_loss), model, batch)
        expected = pf.training_flops(model.config, texts * 7, 7)
        assert expected <= counted <= most * expected


def test_count_flops_by_hand():
    def twice_in_a_loop(x):
        return jax.lax.scan(lambda x, _: (jax.jit(jnp.matmul)(x, x), None), x, None, length=2)[0]

    assert pf.training.count_flops(jnp.matmul, jnp.ones((5, 3)), jnp.ones((3, 7))) == 2 * 5 * 3 * 7
    assert pf.training.count_flops(lambda x: jnp.einsum("bij,bkj->bik", x, x), jnp.ones((4, 5, 3))) == 2 * 4 * 5 * 3 * 5
    assert pf.training.count_flops(twice_in_a_loop, jnp.ones((3, 3))) == 2 * 2 * 3 * 3 * 3
    assert pf.training.count_flops(jnp.tanh, jnp.ones((3, 3))) == 0


def test_count_parameters_refuses_what_holds_no_arrays():
    assert pf.count_parameters(pf.NoPositions()) == pf.count_parameters({}) == 0
    with pytest.raises(TypeError, match="module"):
        pf.count_parameters([2.5])


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
@pytest.mark.parametrize("num_kv_heads", [None, 2])
def test_cache_bytes_are_those_of_the_arrays(num_kv_heads):
    config = decoder_config(11, 9, d_model=24, num_layers=3, num_heads=6, num_kv_heads=num_kv_heads, d_k=5, d_v=3)
    cache = pf.Decoder(config, key=KEY).make_cache(13, batch=(2,))
    assert sum(part.keys.nbytes + part.values.nbytes for part in cache) == cache_bytes(config.stack, 2 * 13)
    assert cache_bytes(config.stack, 13, 2) == 3 * (num_kv_heads or 6) * 8 * 13 * 2


@pytest.mark.equation("eq-efficiency-cache")
def test_cache_bytes_of_a_state_are_those_of_the_arrays_and_do_not_grow():
    sizes = {"d_model": 24, "num_layers": 5, "num_heads": 6, "num_kv_heads": 2, "d_k": 5, "d_v": 3}
    stack = decoder_config(11, 9, **sizes, pattern=("delta", "delta", "full")).stack
    cache = pf.Decoder(pf.DecoderConfig(11, 9, stack), key=KEY).make_cache(13)
    deltas, (full,) = [part for number, part in enumerate(cache) if number != 2], cache[2:3]
    of_states = sum(part.state.nbytes + part.rows.nbytes for part in deltas)
    assert of_states + full.keys.nbytes + full.values.nbytes == cache_bytes(stack, 13)
    assert cache_bytes(stack, 14) - cache_bytes(stack, 13) == 2 * (5 + 3) * 4  # the one block with keys and values
    assert cache_bytes(stack, 14, 2) - cache_bytes(stack, 13, 2) == 2 * (5 + 3) * 2
